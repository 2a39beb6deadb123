"""Is what lies on the Hub what was to be uploaded, byte for byte?"""

from __future__ import annotations

from pathlib import Path

from toolkit.sharing.hub_errors import HubError, hub_errors


def check_remote(repo: str, commit: str, folder: Path) -> list[str]:
    """Compare every file of the folder with the commit: it is there, with the same hash.

    The hash is SHA-256 for large files (git-LFS), that of the git blob for small ones.

    Returns:
        Files of the repository that are not of the folder.

    Raises:
        HubError: a file is missing or another one, or the Hub cannot be asked.
    """
    from huggingface_hub import HfApi

    with hub_errors(f"comparing {repo} with {folder.name}/", repo):
        found = HfApi().verify_repo_checksums(repo, revision=commit, local_dir=folder)
    wrong = [f"{path} is missing" for path in found.extra_paths]
    wrong += [f"{mismatch['path']} has another content" for mismatch in found.mismatches]
    if wrong:
        shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise HubError(
            f"{repo} at {commit[:12]} is not what was uploaded: {shown}. Do not use it; push again."
        )
    return sorted(found.missing_paths)

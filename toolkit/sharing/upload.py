"""A folder to a repository of the Hub, in one commit; what is there already is not sent again."""

from __future__ import annotations

import fnmatch
import glob
import time
from pathlib import Path

from toolkit.console import notify
from toolkit.sharing.files import PROCESSORS
from toolkit.sharing.hub_errors import HubError, hub_errors

PAUSES = (3.0, 15.0)
"""Seconds before the second and the third attempt."""
# Of the model that a repository held before: with these left, loaders would find two models.
_OF_A_MODEL = (
    *PROCESSORS,
    "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin", "adapter_model.bin",
    "pytorch_model.bin.index.json", "*.joblib", "config.json", "generation_config.json",
    "adapter_config.json", "*.model", "modeling_*.py", "configuration_*.py",
    "training_summary.json", "training.png",
)  # fmt: skip


def upload(folder: Path, repo: str, message: str) -> str:
    """Upload the folder's files, and delete those of a model that lay there before.

    Where the connection fails it is tried again, `len(PAUSES)` times.

    Returns:
        The commit (40 hexadecimal digits).

    Raises:
        UserError: the Hub refuses.
        HubError: it still fails after the last attempt.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    with hub_errors(f"listing the files of {repo}", repo):
        stale = stale_files(api.list_repo_files(repo), folder)
    if stale:
        notify(f"{repo}: files of the model that was there before go: {', '.join(stale)}")
    for pause in (*PAUSES, None):
        try:
            with hub_errors(f"uploading to {repo}", repo):
                done = api.upload_folder(
                    repo_id=repo,
                    folder_path=folder,
                    commit_message=message,
                    delete_patterns=[glob.escape(name) for name in stale],
                )
            return str(done.oid)
        except HubError as error:
            if pause is None:
                raise
            notify(f"{error} Trying again in {pause:g} s; what is there is not sent again.")
            time.sleep(pause)
    raise AssertionError("unreachable")


def stale_files(there: list[str], folder: Path) -> list[str]:
    """Files of a model at the top of a repository that the folder does not replace."""
    return sorted(
        name
        for name in there
        if "/" not in name
        and not (folder / name).exists()
        and any(fnmatch.fnmatchcase(name, pattern) for pattern in _OF_A_MODEL)
    )

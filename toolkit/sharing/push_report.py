"""What a push did, for the person at the terminal and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from toolkit.console import console

if TYPE_CHECKING:
    from toolkit.sharing.pushing import Pushed
    from toolkit.sharing.staging import Staged


def print_staged(staged: Staged, difference: float) -> None:
    """Files and sizes, and how the folder did in a fresh process."""
    table = Table(title="files", title_justify="left")
    table.add_column("file")
    table.add_column("bytes", justify="right")
    for name, size in staged.files.items():
        table.add_row(name, f"{size:,}")
    console.print(table)
    _say(
        "Loaded in a fresh process without this package; largest difference of its outputs from "
        f"those of the run's model: {difference:.2g}"
    )


def print_pushed(pushed: Pushed) -> None:
    """Likewise, and where it is now."""
    print_staged(pushed.staged, pushed.difference)
    access = pushed.access
    if pushed.other_files:
        _say(f"Left as they were in {access.repo}: {', '.join(pushed.other_files)}")
    seen = "private" if access.private else "public"
    _say(f"Pushed and checked: {access.url} ({seen}, commit {pushed.commit})")


def describe_staged(staged: Staged, difference: float) -> dict[str, Any]:
    """Plain JSON values of what was not pushed."""
    return {
        "pushed": False,
        "library": staged.shareable.library,
        "base_model": staged.shareable.base_model,
        "largest_difference": difference,
        "files": staged.files,
    }


def describe_pushed(pushed: Pushed) -> dict[str, Any]:
    """Likewise of what was."""
    return describe_staged(pushed.staged, pushed.difference) | {
        "pushed": True,
        "repository": pushed.access.repo,
        "url": pushed.access.url,
        "private": pushed.access.private,
        "commit": pushed.commit,
        "other_files": pushed.other_files,
    }


def _say(line: str) -> None:
    console.print(line, soft_wrap=True, markup=False)

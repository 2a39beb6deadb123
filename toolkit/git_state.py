"""Which version of the code runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

CODE = ("toolkit", "scratch_models", "recipes", "pyproject.toml")
"""What decides what a run or a report computes; a changed report or note does not."""


def git_state() -> dict[str, Any] | None:
    """Commit of the code that runs and whether it was changed since; None outside a checkout."""
    root = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "-uno", "--", *CODE)),
        }
    except (OSError, subprocess.CalledProcessError):
        return None

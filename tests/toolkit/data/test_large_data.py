"""A million reviews fit into 2 GB of memory, and are prepared once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("large_data.py")


def prepare(rows: int, folder: Path) -> tuple[dict[str, Any], str]:
    """What the script printed, and what was said meanwhile; in a process of its own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, str(SCRIPT), str(rows), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(ended.stdout), ended.stderr


@pytest.mark.slow
def test_a_million_reviews(tmp_path: Path) -> None:
    first, said = prepare(1_000_000, tmp_path)
    assert first["sizes"] == {"train": 800_000, "validation": 100_000, "test": 100_000}
    assert first["peak_gb"] < 2
    assert "tokenising 800000/800000" in said
    second, said = prepare(1_000_000, tmp_path)
    assert second["peak_gb"] < 2
    assert "tokenising" not in said
    same = ("sizes", "sha256", "tokens")
    assert [second[name] for name in same] == [first[name] for name in same]
    print(json.dumps([first, second], indent=2))  # pytest -s shows the seconds

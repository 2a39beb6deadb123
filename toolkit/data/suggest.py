"""Did you mean ...?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


def near_names(name: str, existing: Iterable[str]) -> str:
    """A sentence, after a space, that offers the closest existing names; "" without any."""
    near = difflib.get_close_matches(name, list(existing), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def near_paths(path: Path) -> str:
    """Suggestions from the deepest folder of a missing path that exists; "" without any."""
    for parent in path.parents:
        if parent.is_dir():
            wrong = path.relative_to(parent).parts[0]
            return near_names(wrong, [child.name for child in parent.iterdir()])
    return ""

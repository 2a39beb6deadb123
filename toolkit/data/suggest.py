"""Did you mean ...?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_names(name: str, existing: Iterable[str]) -> str:
    """A sentence, after a space, that offers the closest existing names; "" without any."""
    near = difflib.get_close_matches(name, list(existing), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(near)}?" if near else ""

"""report.json as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = r"(?:-?\d[\d.e+-]*|null)"
# Line ends stand between values only: those of texts are escaped.
_NUMBERS = re.compile(rf"\[\n\s+({_NUMBER}(?:,\n\s+{_NUMBER})*)\n\s+\]", re.IGNORECASE)


def json_text(data: Mapping[str, Any]) -> str:
    """Indented JSON that any reader takes, lists of numbers on one line, with a line end.

    Raises:
        ValueError: it holds NaN or infinity.
    """
    text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
    text = _NUMBERS.sub(lambda found: f"[{re.sub(chr(10) + r' +', ' ', found[1])}]", text)
    # UTF-8 has no half of a surrogate pair; an escape of JSON can say it.
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text) + "\n"

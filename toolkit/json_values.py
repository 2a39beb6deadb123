"""Values that JSON can hold."""

from __future__ import annotations

import math
from typing import Any


def without_nan(value: Any) -> Any:
    """The value with None for what JSON has no number for: NaN and infinity, at any depth."""
    if isinstance(value, dict):
        return {key: without_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

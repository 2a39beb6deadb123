"""More than one comparison at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) step-down adjustment of a family of p values; same order as given.

    Written out because statsmodels' `multipletests` forces a garbage collection on every call.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    # The smallest p counts all hypotheses, the next one fewer, and none may fall below a smaller.
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1.0).tolist()

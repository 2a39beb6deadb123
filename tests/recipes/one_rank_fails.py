"""A recipe of which process 1 meets a broken row in the middle of training."""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

from toolkit.data.collate import ClassificationCollator

collate = ClassificationCollator.__call__
batches = 0


def collate_or_fail(self: ClassificationCollator, rows: Any) -> Any:
    global batches
    batches += 1
    # Before it come five steps, an evaluation and another step.
    if batches == 8 and os.environ["RANK"] == "1":
        raise ValueError("this row is broken")
    return collate(self, rows)


if __name__ == "__main__":
    ClassificationCollator.__call__ = collate_or_fail  # type: ignore[method-assign]
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")

"""How far runs are from published numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.comparison.compare import Comparison
from toolkit.comparison.saved_run import SavedRun
from toolkit.task_scores.measures import Measure


@dataclass(frozen=True)
class PublishedDistance:
    """A method's value and the published one it should be seen beside.

    `value` is the mean over seeds on the split that the published one is of; `published` what the
    runs' preset says: value, split, setting, source.
    """

    row: int
    measure: Measure
    value: float
    published: dict[str, Any]

    @property
    def distance(self) -> float:
        """The method's value minus the published one."""
        return self.value - float(self.published["value"])


def published_distances(comparison: Comparison) -> list[PublishedDistance]:
    """Of the methods whose preset names a published number of a measure that is compared."""
    by_key = {measure.key: measure for measure in comparison.view.measures}
    found = []
    for place, row in enumerate(comparison.rows):
        published = row.run.section("published")
        measure = by_key.get(str(published.get("metric")))
        values = [_value(run, published) for run in row.method.runs]
        known = [value for value in values if value is not None]
        if measure is not None and len(known) == len(values):
            found.append(PublishedDistance(place, measure, float(np.mean(known)), published))
    return found


def _value(run: SavedRun, published: dict[str, Any]) -> float | None:
    """What the run itself reached on the published number's split."""
    described = run.section(str(published.get("split"))).get(str(published.get("metric")))
    value = described.get("value") if isinstance(described, dict) else described
    return None if value is None else float(value)

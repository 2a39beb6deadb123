"""How long it will take: the mean of what is most alike, in words without false precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolkit.experiment import load_experiment
from toolkit.experiment.estimate import Estimates, in_words, roughly

Cells = Callable[..., dict[str, Any]]


def test_the_same_cell_counts_before_the_same_recipe_before_all(lab: Any, cells: Cells) -> None:
    file = lab.save({
        "seeds": [0, 1],
        "cells": {"a": cells(freeze="a"), "b": cells(freeze="b"),
                  "c": cells(freeze="c") | {"recipe": "other"}},
    })  # fmt: skip
    (a0, a1), (b0, _), (c0, c1) = (cell.runs for cell in load_experiment(file).cells)
    estimates = Estimates()
    assert estimates.of(a0) is None
    assert estimates.left([a0, b0]) is None
    estimates.add(a0, 10)
    assert estimates.of(a1) == estimates.of(b0) == estimates.of(c0) == 10
    estimates.add(a1, 20)
    estimates.add(b0, 60)
    assert estimates.of(a0) == 15  # the cell: 10, 20
    assert estimates.of(b0) == 60
    assert estimates.of(c0) == 30  # all: 10, 20, 60
    estimates.add(c0, 110)
    assert estimates.of(c1) == 110
    assert estimates.left([a0, a1, b0, c1]) == 15 + 15 + 60 + 110
    assert estimates.left([]) is None


def test_a_new_cell_is_judged_by_its_recipe(lab: Any, cells: Cells) -> None:
    file = lab.save({"cells": {"a": cells(1), "b": cells(2), "c": cells(3) | {"recipe": "other"}}})
    a, b, c = (cell.runs[0] for cell in load_experiment(file).cells)
    estimates = Estimates()
    estimates.add(a, 10)
    estimates.add(c, 90)
    assert estimates.of(b) == 10


@pytest.mark.parametrize(
    ("seconds", "exact", "rough"),
    [
        (0.4, "0 s", "a few seconds"),
        (44, "44 s", "about 40 s"),
        (59.6, "1 min", "about 1 min"),
        (114, "1 min 54 s", "about 1 min 50 s"),
        (250, "4 min 10 s", "about 4 min"),
        (419, "6 min 59 s", "about 7 min"),
        (3600, "1 h", "about 1 h"),
        (7500, "2 h 5 min", "about 2 h 5 min"),
        (7199, "2 h", "about 2 h"),
    ],
)
def test_times_in_words(seconds: float, exact: str, rough: str) -> None:
    assert in_words(seconds) == exact
    assert roughly(seconds) == rough

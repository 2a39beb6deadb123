"""A resumed run goes on with the data it began with, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolkit.data_record import check_same_data, check_same_rows
from toolkit.errors import UserError

DATA = {
    "source": "reviews.csv",
    "sizes": {"train": 1200, "validation": 20, "test": 20},
    "sha256": {"train": "a", "validation": "b", "test": "c"},
    "training_rows": 1500,
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "data.json").write_text(json.dumps(DATA), encoding="utf-8")
    return tmp_path


def changed(**parts: dict[str, Any]) -> dict[str, Any]:
    return {name: {**value, **parts.get(name, {})} if isinstance(value, dict) else value
            for name, value in DATA.items()}  # fmt: skip


def test_equal_data_are_let_through(run: Path) -> None:
    check_same_data(run, {"source": "elsewhere/reviews.csv", "sha256": DATA["sha256"]})
    check_same_rows(run, 1500)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"sha256": {"train": "x"}}, "the rows of train are others. Going on"),
        (
            {"sha256": {"train": "x", "test": "y"}, "sizes": {"train": 1199}},
            "the rows of train and test are others (1,200 and 20 then, 1,199 and 20 now)",
        ),
        ({"sha256": {"more": "x"}, "sizes": {"more": 3}}, "the rows of more are others (0 then, 3"),
        (
            {"sha256": {"train": "x", "validation": "y", "test": "z"}},
            "the rows of train, validation and test are others.",
        ),
    ],
)
def test_the_split_that_changed_is_named(run: Path, now: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        check_same_data(run, changed(**now))
    assert said in str(refused.value)
    assert "Put reviews.csv back as it was, or start a new run." in str(refused.value)


def test_other_rows_of_the_same_data_are_refused(run: Path) -> None:
    with pytest.raises(UserError, match=r"began with 1,500 rows .* now the same data give 1,499"):
        check_same_rows(run, 1499)


def test_what_was_not_recorded_is_not_compared(tmp_path: Path) -> None:
    """Runs of older versions; runs that train without steps."""
    check_same_data(tmp_path, DATA)
    check_same_rows(tmp_path, 3)
    (tmp_path / "data.json").write_text('{"sha256": {"train": "a"}}')
    check_same_rows(tmp_path, 3)
    check_same_rows(tmp_path, None)

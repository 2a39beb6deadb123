"""What image runs report besides accuracy."""

from __future__ import annotations

from toolkit.image_outcome import seconds_to_accuracy


def test_the_first_evaluation_that_reaches_a_level_counts() -> None:
    events = [
        {"step": 1, "seconds": 1.0, "loss": 2.0},
        {"step": 5, "seconds": 4.0, "validation": {"accuracy": 0.4}},
        {"step": 10, "seconds": 8.5, "validation": {"accuracy": 0.72}},
        {"step": 15, "seconds": 12.0, "validation": {"accuracy": 0.65}},
        {"step": 20, "seconds": 16.0, "validation": {"accuracy": 0.9}},
    ]
    assert seconds_to_accuracy(events) == {
        "0.5": 8.5, "0.6": 8.5, "0.7": 8.5, "0.8": 16.0, "0.85": 16.0, "0.9": 16.0, "0.95": None,
        "0.97": None, "0.98": None, "0.99": None,
    }  # fmt: skip

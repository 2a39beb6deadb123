"""Class weights from the data or by name, in id order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from toolkit.errors import UserError
from toolkit.loss_config import ClassificationLossConfig


def data(labels: list[int], names: list[str]) -> Any:
    return SimpleNamespace(train={"label": labels}, label_names=names)


def weights(config: ClassificationLossConfig, data: Any) -> Any:
    found = config.classification(data).class_weights
    return None if found is None else found.tolist()


def test_balanced_weights_are_scikit_learns_and_said_in_id_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = [0] * 5 + [1] * 95
    found = weights(ClassificationLossConfig(class_weights="balanced"), data(labels, ["差", "好"]))
    expected = compute_class_weight("balanced", classes=np.array([0, 1]), y=np.array(labels))
    assert found == pytest.approx(expected.tolist())
    assert found == pytest.approx([10.0, 0.526316])
    assert "class weights: 差 10, 好 0.5263" in capsys.readouterr().err


def test_weights_by_name_come_in_id_order() -> None:
    config = ClassificationLossConfig(class_weights={"b": 3, "a": 1.5})
    assert weights(config, data([0, 1], ["a", "b"])) == [1.5, 3.0]
    assert weights(ClassificationLossConfig(), data([0, 1], ["a", "b"])) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": 1}, "labels of the data are a, b; no weight is given for b"),
        ({"a": 1, "c": 2}, "no weight is given for b and unknown are c"),
        ({"a": 1, "b": -1}, "at least 0"),
        ({"a": 0, "b": 0}, "not all 0"),
        ({"a": 1, "b": float("nan")}, "at least 0"),
    ],
)
def test_weights_that_cannot_be(given: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ClassificationLossConfig(class_weights=given).classification(data([0, 1], ["a", "b"]))


def test_smoothing_outside_its_range() -> None:
    with pytest.raises(UserError, match=r"label_smoothing 1.5"):
        ClassificationLossConfig(label_smoothing=1.5).classification(data([0], ["a"]))

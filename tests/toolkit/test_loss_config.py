"""Class weights from the data or by name, in id order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from toolkit.arguments import load_config, parse_arguments
from toolkit.config import RunConfig
from toolkit.config_files import save_config
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
        ({"a": 1, "b": float("inf")}, "finite numbers"),
    ],
)
def test_weights_that_cannot_be(given: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ClassificationLossConfig(class_weights=given).classification(data([0, 1], ["a", "b"]))


@pytest.mark.parametrize(
    ("written", "names", "expected"),
    [
        ("{yes: 2, no: 1}", ["no", "yes"], [1, 2]),  # YAML: true and false
        ("{No: 2, YES: 1}", ["No", "YES"], [2, 1]),
        ("{true: 2, false: 1}", ["false", "true"], [1, 2]),
        ("{'yes': 2, 'no': 1}", ["no", "yes"], [1, 2]),
        ("{1: 2, 0: 1}", ["0", "1"], [1, 2]),
        ("{007: 2, 010: 1}", ["007", "010"], [2, 1]),  # YAML: 7 and 8
        ("{2026-01-02: 2, x: 1}", ["2026-01-02", "x"], [2, 1]),
        ("{yes: 2, '[x': 1, '2026-13-45': 3}", ["2026-13-45", "[x", "yes"], [3, 1, 2]),
        ("{null: 2, x: 1}", ["null", "x"], [2, 1]),
        ("{'yes': 2, true: 1, no: 4}", ["no", "true", "yes"], [4, 1, 2]),
    ],
)
def test_names_that_yaml_reads_as_something_else(
    tmp_path: Path, written: str, names: list[str], expected: list[float]
) -> None:
    @dataclass
    class Config(ClassificationLossConfig, RunConfig):
        pass

    file = tmp_path / "weights.yaml"
    file.write_text(f"class_weights: {written}\n", encoding="utf-8")
    labels = data([*range(len(names))], names)
    for argv in (["--class_weights", written], ["--config", str(file)]):
        config = parse_arguments(Config, "recipe.py", argv).config
        assert weights(config, labels) == expected
    save_config(config, file)
    assert weights(load_config(Config, file), labels) == expected


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({True: 2, False: 1}, ["0", "1"]),  # True == 1 in Python
        ({True: 2, False: 1}, ["no", "off", "yes"]),  # which of the two?
        ({True: 2, False: 1}, ["No", "no", "true"]),
        ({True: 2, False: 1}, ["no", "true", "yes"]),
    ],
)
def test_names_that_yaml_mixes_up_need_quotes(given: dict[Any, float], names: list[str]) -> None:
    with pytest.raises(UserError, match=r'quote those names \("yes"\)'):
        weights(ClassificationLossConfig(class_weights=given), data([*range(len(names))], names))


def test_balanced_weights_name_a_label_without_rows() -> None:
    config = ClassificationLossConfig(class_weights="balanced")
    with pytest.raises(UserError, match=r"--class_weights balanced: .* label 中, so"):
        config.classification(data([0, 2], ["差", "中", "好"]))


def test_smoothing_outside_its_range() -> None:
    with pytest.raises(UserError, match=r"label_smoothing 1.5"):
        ClassificationLossConfig(label_smoothing=1.5).classification(data([0], ["a"]))

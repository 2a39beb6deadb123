"""How examples and labels weigh in the loss of a classifier: settings that recipes share."""

# No `from __future__ import annotations` here: recipes inherit from this dataclass.
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import yaml

from toolkit.config import check_range
from toolkit.console import notify
from toolkit.data.labels import balanced_class_weights, label_name
from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.objectives import Classification
    from toolkit.outcome import LabelledSplits


@dataclass
class ClassificationLossConfig:
    """Label smoothing and class weights."""

    label_smoothing: float = 0.0
    """Share of every label that is spread over all classes."""
    class_weights: Literal["balanced"] | dict[str, float] | None = None
    """What an example counts in the training loss by its label: balanced (rare labels count more,
    so that all weigh the same in sum), or a number for each label: {"bad": 2, "good": 1}."""

    def classification(self, data: "LabelledSplits") -> "Classification":
        """The objective; weights are said, in id order.

        Raises:
            UserError: a smoothing outside 0 to 1, a label that the data have not or that has no
                weight, a weight below 0 or infinite, or a class without training rows to balance.
        """
        from toolkit.objectives import Classification

        check_range("label_smoothing", self.label_smoothing, 0, 1)
        if self.class_weights is None:
            return Classification(self.label_smoothing)
        names = data.label_names
        if self.class_weights == "balanced":
            weights = balanced_class_weights(data.train["label"][:], names).tolist()
        else:
            weights = _in_id_order(self.class_weights, names)
        said = ", ".join(
            f"{name} {weight:.4g}" for name, weight in zip(names, weights, strict=True)
        )
        notify(f"class weights: {said}")
        return Classification(self.label_smoothing, weights)


def _in_id_order(given: dict[Any, float], names: list[str]) -> list[float]:
    found = {_meant(key, given, names): weight for key, weight in given.items()}
    missing = [name for name in names if name not in found]
    unknown = [name for name in found if name not in names]
    if missing or unknown:
        quotes = ""
        if not all(isinstance(key, str) or str(key) in names for key in given):
            quotes = ' YAML reads yes, no, on, off and numbers as such: quote those names ("yes").'
        raise UserError(
            f"--class_weights: the labels of the data are {', '.join(names)}; "
            + " and ".join(
                f"{what} {', '.join(labels)}"
                for what, labels in (("no weight is given for", missing), ("unknown are", unknown))
                if labels
            )
            + f". Give every label one number.{quotes}"
        )
    wrong = [name for name, weight in found.items() if not 0 <= weight < math.inf]
    if wrong or not any(found.values()):
        raise UserError(
            f"--class_weights {given}: expected finite numbers of at least 0, not all 0"
        )
    return [float(found[name]) for name in names]


def _meant(key: Any, given: dict[Any, float], names: list[str]) -> str:
    """The label that a key stands for: without quotes YAML reads `yes` as true, `007` as 7."""
    scalar = isinstance(key, str | int | float)
    name = (label_name(key) if scalar else None) or str(key)
    if name in names or isinstance(key, str):
        return name
    alike = [
        name
        for name in names
        if name not in given and type(_in_yaml(name)) is type(key) and _in_yaml(name) == key
    ]
    return alike[0] if len(alike) == 1 else str(key)


def _in_yaml(name: str) -> Any:
    try:
        return yaml.safe_load(name)
    except (yaml.YAMLError, ValueError):  # [x; 2026-13-45
        return name

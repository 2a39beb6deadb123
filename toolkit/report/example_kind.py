"""What the examples of a comparison are called, and what their speed is counted in."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.compare import Comparison
from toolkit.run_results import SavedRun


@dataclass(frozen=True)
class ExampleKind:
    """`plural` names the examples; a run's speed is `training[speed_key]`, in `speed_unit`.

    `training_time` says what the seconds of a run count.
    """

    plural: str
    speed_unit: str
    speed_key: str
    training_time: str

    def speed(self, run: SavedRun) -> float | None:
        """What a run trained per second; None where it did not record that."""
        speed: float | None = run.section("training").get(self.speed_key)
        return speed


_COUNTED = "Training time counts the training steps with the preparation of their batches"
TEXTS = ExampleKind(
    plural="texts",
    speed_unit="tokens/s",
    speed_key="tokens_per_second",
    training_time=f"{_COUNTED} (for frozen features and TF-IDF: the features of the training texts "
    "and the fit with the chosen penalty); tokenisation, evaluation, checkpoints and the search "
    "for a penalty are not in it.",
)
IMAGES = ExampleKind(
    plural="images",
    speed_unit="images/s",
    speed_key="examples_per_second",
    training_time=f"{_COUNTED}, augmentation among it (for frozen features: the features of the "
    "training images and the fit with the chosen penalty); reading the image files, evaluation, "
    "checkpoints and the search for a penalty are not in it.",
)


def example_kind(comparison: Comparison) -> ExampleKind:
    """By the task, which is that of all compared runs."""
    task = comparison.rows[0].run.summary["task"]
    return IMAGES if task == "image-classification" else TEXTS

"""Say which settings of a command line do nothing with the method that was chosen."""

from __future__ import annotations

from typing import Any

from toolkit.console import notify
from toolkit.run import Run

_NEW = ("shape.", "vit.", "resnet.", "lowercase")
_PRETRAINED = ("dropout", "allow_missing_weights", "source_code", "target_code", "prefix")
_TRAINING = (
    "train.", "label_smoothing", "class_weights", "augmentation.", "unknown_share", "average",
    "select_by", "samples.",
)  # fmt: skip
_EVALUATION = ("train.eval_batch_size", "train.mixed_precision", "train.workers")

_UNUSED = {
    "full": (*_NEW, "lora."),
    "lora": (*_NEW, "freeze_layers"),
    "dora": (*_NEW, "freeze_layers"),
    "from_scratch": (*_PRETRAINED, "lora.", "freeze_layers"),
    "frozen": (*_NEW, "lora.", "freeze_layers"),
}


def say_unused(run: Run[Any], method: str, *, trains: bool = True) -> None:
    """One line about the flags that the method does not use; those of presets and files are silent.

    A sweep over methods may give all of them the same flags, so that it is no error.

    Args:
        method: one of `toolkit.fine_tuning.Method`, or what else a recipe does.
        trains: False where nothing is trained by steps: settings of training do nothing either.
    """
    names = _UNUSED.get(method, ()) + (() if trains else _TRAINING)
    found = sorted(name for name in run.given if name.startswith(names) and name not in _EVALUATION)
    if found:
        notify(f"warning: not used by {method}: {', '.join('--' + name for name in found)}")

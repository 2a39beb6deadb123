"""Which module reads the runs of which task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from toolkit.task_scores import (
    classification,
    language,
    pretraining,
    questions,
    tagging,
    translation,
)
from toolkit.task_scores.predictions import Predictions
from toolkit.task_scores.view import TaskView


class _Read(Protocol):
    def __call__(self, path: Path, summary: dict[str, Any]) -> Predictions: ...


class _View(Protocol):
    def __call__(
        self, task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]
    ) -> TaskView: ...


@dataclass(frozen=True)
class Task:
    """How the runs of a task are compared; `split` is the one whose predictions are."""

    read: _Read
    view: _View
    split: str = "test"


TASKS: dict[str, Task] = {
    "text-classification": Task(classification.read, classification.view),
    "image-classification": Task(classification.read, classification.view),
    "token-classification": Task(tagging.read, tagging.view),
    "question-answering": Task(questions.read, questions.view),
    "translation": Task(translation.read, translation.view),
    "language-modeling": Task(language.read, language.view),
    "pretraining": Task(pretraining.read, pretraining.view, split="validation"),
}
"""By the `task` of a run's summary."""

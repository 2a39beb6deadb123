"""What runs of every task say of themselves: the same words as in the README of the run."""

from __future__ import annotations

import importlib
from typing import Any

from toolkit.run_readme import Findings

# Imported when they are needed: they bring the training code with them.
_OF_TASK = {
    "text-classification": ("toolkit.classification_readme", "classification_findings"),
    "image-classification": ("toolkit.classification_readme", "classification_findings"),
    "token-classification": ("toolkit.tagging_outcome", "tagging_findings"),
    "question-answering": ("toolkit.question_answering_outcome", "question_findings"),
    "translation": ("toolkit.translation_outcome", "translation_findings"),
    "language-modeling": ("toolkit.language_outcome", "language_findings"),
    "pretraining": ("toolkit.pretraining", "pretraining_findings"),
}


def findings_of(summary: dict[str, Any]) -> Findings:
    """Paragraph and results of a run.

    Args:
        summary: schema version 1, of a task that is known.
    """
    module, name = _OF_TASK[summary["task"]]
    findings: Findings = getattr(importlib.import_module(module), name)(summary)
    return findings

"""The scores that predictions files give are those that the recipes' summaries record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.task_scores.tasks import TASKS

MEASURES = {
    "translation": ["bleu", "chrf", "exact_match", "bleu_lowercase"],
    "question_answering": ["f1", "exact_match"],
    "token_classification": ["entity_f1", "precision", "recall"],
    "gpt2_generation": ["perplexity", "word_perplexity", "bits_per_byte"],
}


@pytest.mark.parametrize("recipe", MEASURES)
def test_sums_over_examples_give_what_the_run_recorded(
    run_recipe: Callable[..., Any],
    tiny: Callable[..., tuple[object, ...]],
    tmp_path: Path,
    recipe: str,
) -> None:
    finished = run_recipe(recipe, *tiny(recipe, 0.0), "--train.max-steps", "6")
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs" / recipe / "a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    task = TASKS[summary["task"]]
    read = task.read(run / f"predictions/{task.split}.parquet", summary)
    view = task.view(summary["task"], [read], [summary])
    assert [measure.key for measure in view.measures] == MEASURES[recipe]
    for measure in view.measures:
        recorded = summary[task.split][measure.key]
        value = recorded["value"] if isinstance(recorded, dict) else recorded
        sums = view.statistics(measure.key, 0).sum(0)
        assert float(measure.score(sums)) == pytest.approx(value, rel=1e-9, abs=1e-12)
    if recipe == "question_answering":
        assert view.clusters is not None
        assert len(set(view.clusters)) == 15  # each question of this file has a text of its own

"""The scores that predictions files give are those that the recipes' summaries record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.task_scores.outside import read_outside
from toolkit.task_scores.tasks import TASKS

MEASURES = {
    "translation": ["bleu", "chrf", "exact_match", "bleu_lowercase"],
    "question_answering": ["f1", "exact_match"],
    "token_classification": ["entity_f1", "precision", "recall"],
    "gpt2_generation": ["perplexity", "word_perplexity", "bits_per_byte"],
}
# Fields of the predictions, and their columns in a file from outside.
COLUMNS = {
    "translation": [("hypothesis", "prediction")],
    "question_answering": [("prediction", "prediction")],
    "token_classification": [("predicted", "prediction")],
    "gpt2_generation": [("nll", "nll"), ("tokens", "tokens")],
}


def plain(value: Any) -> Any:
    return value if isinstance(value, str | tuple) else float(value)


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

    # The same answers in a file of somebody else's give the same, by the same definitions.
    file = tmp_path / "theirs.jsonl"
    rows = [
        {"id": name} | {theirs: plain(read.fields[ours][row]) for ours, theirs in COLUMNS[recipe]}
        for row, name in enumerate(read.ids)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)), encoding="utf-8")
    like = SimpleNamespace(folder=run, summary=summary, test=read)
    _, outside = read_outside(file, like)
    for measure in view.measures:
        recorded, found = summary["test"][measure.key], outside["test"][measure.key]
        if isinstance(recorded, dict):
            assert found["signature"] == recorded["signature"]
            recorded, found = recorded["value"], found["value"]
        assert found == pytest.approx(recorded, rel=1e-9, abs=1e-12)

    if recipe == "question_answering":
        assert view.clusters is not None
        assert len(set(view.clusters)) == 15  # each question of this file has a text of its own

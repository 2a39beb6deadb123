"""Pretraining of BERT: masked tokens and next sentences of the validation texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import UserError
from toolkit.task_scores.columns import count_column, text_column
from toolkit.task_scores.measures import Measure, Unit, ratio
from toolkit.task_scores.predictions import Predictions, numbers_of, read_table
from toolkit.task_scores.view import TaskView, length_breakdown

MASKED_ACCURACY = Measure(
    "masked_accuracy", "masked tokens right", Unit.SHARE, ratio, needs_same_tokens=True
)
MASKED_LOSS = Measure(
    "masked_loss",
    "loss per masked token",
    Unit.NUMBER,
    ratio,
    higher_is_better=False,
    needs_same_tokens=True,
)
NEXT_SENTENCE_ACCURACY = Measure(
    "next_sentence_accuracy", "next sentences right", Unit.SHARE, ratio, counts_right=True
)
# What is summed for a measure, and what it is divided by.
_TERMS = {
    MASKED_ACCURACY.key: ("correct", "masked"),
    MASKED_LOSS.key: ("loss_sum", "masked"),
    NEXT_SENTENCE_ACCURACY.key: ("next_correct", "pairs"),
}


def read(path: Path, summary: dict[str, Any]) -> Predictions:
    """Read predictions on the validation texts, one row a text.

    Columns: `id`, `text` where it was kept, `masked` tokens, `correct` ones among them, their
    `loss_sum` (nats), and `next_correct` (1 or 0). The truth is the text, else the id: what was
    masked depends on tokenizer and seed.

    Raises:
        UserError: names file and row of what is wrong.
    """
    columns = ("masked", "correct", "next_correct")
    table = read_table(path, ("id", *columns, "loss_sum"))
    ids = [str(value) for value in table["id"].to_pylist()]
    fields = {name: count_column(table, name, path) for name in columns}
    for name, most in (("correct", fields["masked"]), ("next_correct", np.ones(len(ids)))):
        wrong = np.flatnonzero(fields[name] > most)
        if len(wrong) > 0:
            row = int(wrong[0])
            raise UserError(
                f"{path}, row {row}: '{name}' is {fields[name][row]:g}, expected at most "
                f"{most[row]:g}."
            )
    texts = text_column(table, "text", path) if "text" in table.column_names else None
    return Predictions(
        ids=ids,
        inputs=texts,
        images=None,
        truth=list(texts or ids),
        fields=fields
        | {"loss_sum": numbers_of(table, "loss_sum", path), "pairs": np.ones(len(ids))},
    )


def view(task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]) -> TaskView:
    """Runs on the same texts in the same order.

    Where they masked other numbers of tokens (another tokenizer or share), only next sentences are
    compared.
    """
    first = runs[0]
    masked = first.fields["masked"]
    measures = [MASKED_ACCURACY, MASKED_LOSS, NEXT_SENTENCE_ACCURACY]
    same_tokens = all(np.array_equal(run.fields["masked"], masked) for run in runs)
    if not same_tokens:
        measures = measures[2:]

    def statistics(key: str, run: int) -> NDArray[np.float64]:
        return np.stack([runs[run].fields[name] for name in _TERMS[key]], axis=-1)

    right = np.stack([run.fields["next_correct"] == 1 for run in runs])
    shares = np.stack([ratio(statistics(MASKED_ACCURACY.key, place)) for place in range(len(runs))])
    losses = np.stack([ratio(statistics(MASKED_LOSS.key, place)) for place in range(len(runs))])
    breakdowns = []
    if first.inputs is not None:
        lengths = np.array([len(text) for text in first.inputs])
        breakdowns.append(
            length_breakdown(
                statistics, measures[0], len(runs), lengths, "length of the text in characters"
            )
        )
    return TaskView(
        task=task,
        noun="texts",
        measures=measures,
        statistics=statistics,
        truth=[f"{int(count):,} masked tokens" if same_tokens else "" for count in masked],
        answers=[_shown(run) for run in runs],
        quality=shares,
        quality_label="share of the text's masked tokens that are right",
        right=right,
        right_means="the next sentence told from a wrong one",
        loss=losses,
        breakdowns=breakdowns,
        facts=_facts(runs, summaries, same_tokens),
        chance=_guess(summaries, int(masked.sum())) if same_tokens else None,
    )


def _shown(run: Predictions) -> list[str]:
    columns = (run.fields[name].astype(int) for name in ("correct", "masked", "next_correct"))
    return [
        f"{correct:,} of {masked:,} masked tokens; next sentence {'right' if pair else 'wrong'}"
        for correct, masked, pair in zip(*columns, strict=True)
    ]


def _facts(
    runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]], same_tokens: bool
) -> list[str]:
    facts = ["The texts are those of validation, which chose the checkpoint: there is no test set."]
    if same_tokens:
        facts.append(f"Masked: {int(runs[0].fields['masked'].sum()):,} tokens.")
    else:
        facts.append(
            "The runs masked different numbers of tokens, so accuracy and loss per masked token "
            "are left out: they would be of different things."
        )
    masks = {
        (summary["data"].get("masking") or {}).get("validation_sha256") for summary in summaries
    }
    if len(masks) > 1:
        facts.append("The runs were asked different things (masks, pairs) about the same texts.")
    return facts


def _guess(summaries: Sequence[dict[str, Any]], masked: int) -> tuple[str, float] | None:
    """Accuracy of the most frequent token, where all runs recorded the same one."""
    found = set()
    for summary in summaries:
        recorded = (summary.get("validation") or {}).get("unigram_guess") or {}
        found.add(recorded.get("value") if recorded.get("n") == masked else None)
    [value, *others] = found
    if value is None or others:
        return None
    return "always saying the most frequent token", float(value)

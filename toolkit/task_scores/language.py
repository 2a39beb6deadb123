"""Language modelling: perplexity per token and per word, and bits per byte, of documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.task_scores.columns import count_column, text_column
from toolkit.task_scores.measures import Measure, Unit, exp_ratio, ratio
from toolkit.task_scores.predictions import Predictions, numbers_of, read_table
from toolkit.task_scores.view import TaskView, length_breakdown

PERPLEXITY = Measure(
    "perplexity",
    "perplexity per token",
    Unit.NUMBER,
    exp_ratio,
    higher_is_better=False,
    needs_same_tokens=True,
)
BITS_PER_BYTE = Measure(
    "bits_per_byte", "bits per byte", Unit.NUMBER, ratio, higher_is_better=False
)
# What the nats of a document are divided by.
_TERMS = {"perplexity": "tokens", "word_perplexity": "words", "bits_per_byte": "bytes"}


def word_perplexity(word: str) -> Measure:
    """Perplexity per "word" or "character": what a word is, a run's summary says."""
    return Measure(
        "word_perplexity", f"perplexity per {word}", Unit.NUMBER, exp_ratio, higher_is_better=False
    )


def read(path: Path, summary: dict[str, Any]) -> Predictions:
    """Read a file of losses: `id`, `text`, `nll` (nats), `tokens`, `words`, `bytes` per document.

    The truth is the text: words and bytes are of the part that was scored, all but the first token,
    so they depend on the tokenizer.

    Raises:
        UserError: names file and row of what is wrong, a loss that is not finite too.
    """
    table = read_table(path, ("id", "text", "nll", "tokens", "words", "bytes"))
    texts: list[Any] = text_column(table, "text", path)
    return Predictions(
        ids=[str(value) for value in table["id"].to_pylist()],
        inputs=texts,
        images=None,
        truth=texts,
        fields={
            "nll": numbers_of(table, "nll", path),
            **{name: count_column(table, name, path) for name in _TERMS.values()},
        },
    )


def view(task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]) -> TaskView:
    """Runs on the same documents in the same order.

    Where they cut them into other numbers of tokens, perplexity per token is left out, for it is of
    different things; words and bytes are what they have in common.
    """
    first = runs[0]
    word = str(summaries[0]["data"].get("word") or "word")
    measures = [PERPLEXITY, word_perplexity(word), BITS_PER_BYTE]
    same_tokens = all(np.array_equal(run.fields["tokens"], first.fields["tokens"]) for run in runs)
    if not same_tokens:
        measures = measures[1:]

    def statistics(key: str, run: int) -> NDArray[np.float64]:
        fields = runs[run].fields
        unit = np.log(2) if key == BITS_PER_BYTE.key else 1.0
        return np.stack([fields["nll"] / unit, fields[_TERMS[key]]], axis=-1)

    per_byte = np.stack([run.fields["nll"] / np.maximum(run.fields["bytes"], 1) for run in runs])
    lengths = np.array([len(str(text)) for text in first.truth])
    return TaskView(
        task=task,
        noun="documents",
        measures=measures,
        statistics=statistics,
        truth=[f"{length:,} characters" for length in lengths],
        truth_name="Length",
        answers=[_shown(run, same_tokens) for run in runs],
        quality=-per_byte,
        quality_label="nats per byte, the fewer the better",
        loss=per_byte,
        breakdowns=[
            length_breakdown(
                statistics, measures[0], len(runs), lengths, "length of the document in characters"
            )
        ],
        facts=_facts(runs, word, same_tokens),
        chance=_counting(summaries, len(first.ids)) if same_tokens else None,
    )


def _shown(run: Predictions, same_tokens: bool) -> list[str]:
    """What a run reached on each document, in the unit that the runs have in common."""
    fields = run.fields
    if same_tokens:
        values = exp_ratio(np.stack([fields["nll"], fields["tokens"]], axis=-1))
        return [f"perplexity {value:,.1f}" for value in values]
    values = ratio(np.stack([fields["nll"] / np.log(2), fields["bytes"]], axis=-1))
    return [f"{value:.2f} bits per byte" for value in values]


def _facts(runs: Sequence[Predictions], word: str, same_tokens: bool) -> list[str]:
    fields = runs[0].fields
    tokens, words = int(fields["tokens"].sum()), int(fields["words"].sum())
    if same_tokens:
        return [f"Scored: {tokens:,} tokens, which are {words:,} {word}s."]
    scored = [int(run.fields["words"].sum()) for run in runs]
    counts = f"{min(scored):,}" if len({*scored}) == 1 else f"{min(scored):,} to {max(scored):,}"
    first = "" if len({*scored}) == 1 else ", for no model scores its first token, and these differ"
    return [
        f"Scored: {counts} {word}s{first}.",
        "The runs cut the documents into different tokens, so perplexity per token is left out: "
        "it would be of different things.",
    ]


def _counting(summaries: Sequence[dict[str, Any]], documents: int) -> tuple[str, float] | None:
    """Perplexity of the frequencies of training tokens, where all runs recorded the same one."""
    found = set()
    for summary in summaries:
        recorded = ((summary.get("yardsticks") or {}).get("test") or {}).get("unigram") or {}
        found.add(recorded.get("value") if recorded.get("n") == documents else None)
    [value, *others] = found
    if value is None or others:
        return None
    return "guessing by how often each token stands in training", float(value)

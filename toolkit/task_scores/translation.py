"""Translation: BLEU, chrF and exact matches of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu import metrics

from toolkit.errors import UserError
from toolkit.task_scores.columns import text_column
from toolkit.task_scores.measures import Measure, Unit, ratio
from toolkit.task_scores.predictions import (
    Predictions,
    numbers_of,
    objects,
    read_table,
    stacked,
)
from toolkit.task_scores.text_statistics import (
    BleuStatistics,
    ChrfStatistics,
    bleu_of_sums,
    chrf_of_sums,
)
from toolkit.task_scores.view import TaskView, length_breakdown
from toolkit.text_metrics import bleu_tokenizer, matches

BLEU = Measure("bleu", "BLEU", Unit.SCORE, bleu_of_sums, sacrebleu=True)
CHRF = Measure("chrf", "chrF", Unit.SCORE, chrf_of_sums, sacrebleu=True)
EXACT_MATCH = Measure("exact_match", "exact match", Unit.SHARE, ratio, counts_right=True)
BLEU_LOWERCASE = Measure(
    "bleu_lowercase", "BLEU, lower case", Unit.SCORE, bleu_of_sums, sacrebleu=True
)


def read(path: Path, summary: dict[str, Any]) -> Predictions:
    """Read a predictions file: `id`, `source`, `reference`, `hypothesis`, and `loss` where it is.

    `fields` are `hypothesis` and `loss` (nats per target token); the truth is the reference.

    Raises:
        UserError: names file and row of what is wrong.
    """
    if not isinstance(summary["data"].get("target_language"), str):
        raise UserError(
            f"{path.parent.parent / 'summary.json'}: 'data.target_language' is "
            f"{summary['data'].get('target_language')!r}, expected the code of the language "
            "translated to, such as 'zh': BLEU splits texts by its rules."
        )
    table = read_table(path, ("id", "source", "reference", "hypothesis"))
    fields: dict[str, NDArray[Any]] = {
        "hypothesis": objects(text_column(table, "hypothesis", path))
    }
    if "loss" in table.column_names and table["loss"].null_count == 0:
        fields["loss"] = numbers_of(table, "loss", path)
    references: list[Any] = text_column(table, "reference", path)
    return Predictions(
        ids=[str(value) for value in table["id"].to_pylist()],
        inputs=text_column(table, "source", path),
        images=None,
        truth=references,
        fields=fields,
    )


def view(task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]) -> TaskView:
    """Runs on the same sentences in the same order, by the rules of the target language."""
    first = runs[0]
    references = [str(text) for text in first.truth]
    hypotheses: list[list[str]] = [list(run.fields["hypothesis"]) for run in runs]
    language = str(summaries[0]["data"]["target_language"])
    counts = _sentence_counts(hypotheses, references, language)
    right = np.array([matches(texts, references) for texts in hypotheses])
    counts[EXACT_MATCH.key] = [np.stack([row, np.ones(len(row))], axis=-1) for row in right]

    def statistics(key: str, run: int) -> NDArray[np.float64]:
        return counts[key][run]

    breakdowns = []
    if first.inputs is not None:
        lengths = np.array([len(source) for source in first.inputs])
        breakdowns.append(
            length_breakdown(
                statistics, BLEU, len(runs), lengths, "length of the source in characters"
            )
        )
    return TaskView(
        task=task,
        noun="sentences",
        measures=[BLEU, CHRF, EXACT_MATCH, BLEU_LOWERCASE],
        statistics=statistics,
        truth=references,
        answers=hypotheses,
        quality=np.stack([chrf_of_sums(run) for run in counts[CHRF.key]]),
        quality_label="chrF of the sentence",
        right=right,
        right_means="equal to the reference",
        loss=stacked(runs, "loss"),
        breakdowns=breakdowns,
        facts=[
            f"BLEU splits the texts by sacrebleu's rules {bleu_tokenizer(language)!r} (target "
            f"language {language})."
        ],
        single_answers={
            place: texts[0] for place, texts in enumerate(hypotheses) if len(set(texts)) == 1
        },
    )


def _sentence_counts(
    hypotheses: Sequence[Sequence[str]], references: Sequence[str], language: str
) -> dict[str, list[NDArray[np.float64]]]:
    """Of each measure of sacrebleu and each run [sentences, k]."""
    tokenize = bleu_tokenizer(language)
    count_bleu = BleuStatistics(metrics.BLEU(tokenize=tokenize), references)
    count_chrf = ChrfStatistics(references)
    count_lowercase = None
    if any(text != text.lower() for texts in (references, *hypotheses) for text in texts):
        count_lowercase = BleuStatistics(
            metrics.BLEU(tokenize=tokenize, lowercase=True), references
        )
    bleu, lowercase = [], []
    for texts in hypotheses:
        split = count_bleu.words(texts)
        bleu.append(count_bleu.of_words(split))
        if count_lowercase is None:
            lowercase.append(bleu[-1])
        else:
            lower = count_lowercase.words_in_lower_case(texts, split)
            lowercase.append(count_lowercase.of_words(lower))
    return {
        BLEU.key: bleu,
        BLEU_LOWERCASE.key: lowercase,
        CHRF.key: [count_chrf(texts) for texts in hypotheses],
    }

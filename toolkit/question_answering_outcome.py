"""The end of a question answering run: test once, write answers and scores, show them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from rich.table import Table

from toolkit.answer_metrics import describe_answers, score_answer
from toolkit.batching import Collate
from toolkit.console import console
from toolkit.data.question_answering import QuestionData
from toolkit.data.windows import Windows
from toolkit.outcome import SPLITS, describe_training, draw_training, split_outputs
from toolkit.question_answering import AnswerExtraction, AnswerMetric, Answers, AnswerTexts
from toolkit.run import Run, describe_run
from toolkit.run_predictions import save_predictions
from toolkit.run_readme import Findings, markdown_table, run_readme, signatures
from toolkit.training.engine import FitResult


def finish_question_answering(
    run: Run[Any],
    result: FitResult,
    data: QuestionData,
    windows: Windows,
    *,
    objective: AnswerExtraction,
    metric: AnswerMetric,
    collate: Collate,
    title: str,
    model: dict[str, Any],
) -> dict[str, Any]:
    """Test once, write predictions and summary, print the result, and complete the run.

    The no-answer threshold is that of validation.

    Returns:
        The summary (schema version 1).
    """
    found: dict[str, dict[str, Any]] = {}
    threshold = -np.inf
    for split in SPLITS:  # validation first: it decides the threshold
        rows, read = getattr(data, split), getattr(windows, split)
        outputs = split_outputs(run, result, split, read, objective, collate)
        answers = AnswerTexts(rows, read)(outputs)
        if split == "validation":
            threshold = metric.threshold(answers)
        given = answers.above(threshold)
        found[split] = describe_answers(given, rows["answers"][:], data.language, threshold)
        if run.accelerator.is_main_process:
            _write_predictions(run, split, rows, answers, given, data.language)
    summary = {
        **describe_run(run, title, "question-answering", data.summary),
        "model": model,
        "data": {
            "dataset": data.summary["source"],
            **{f"{split}_examples": len(getattr(data, split)) for split in ("train", *SPLITS)},
            "language": data.language,
            "hashes": data.summary["sha256"],
        },
        "training": describe_training(run, result),
        **found,
    }
    run.write_json("data.json", data.summary)
    if run.accelerator.is_main_process:
        draw_training(run, result.state.best_step, "f1")
        run.write_text("README.md", _readme(summary, max_answer=objective.max_answer))
        _print(run, summary)
    run.complete(summary)
    return summary


def _write_predictions(
    run: Run[Any], split: str, rows: Any, answers: Answers, given: Sequence[str], language: str
) -> None:
    """One row per question: its text, what is right, the prediction, the best answer, its margin.

    `context_hash` is equal for questions about the same text: they are no independent examples.
    """
    right = rows["answers"][:]
    pairs = zip(given, right, strict=True)
    exact, f1 = zip(*(score_answer(*pair, language) for pair in pairs), strict=True)
    table = pyarrow.table(
        {
            "id": rows["id"][:],
            "question": rows["question"][:],
            # Equal texts stand in the file once: parquet writes a column's values as a dictionary.
            "context": rows["context"][:],
            "context_hash": [_hash(context) for context in rows["context"][:]],
            "answers": pyarrow.array(right, pyarrow.list_(pyarrow.string())),
            "prediction": given,
            "best_answer": answers.texts,
            "margin": answers.margins,
            "exact_match": exact,
            "f1": f1,
        }
    )
    save_predictions(run, split, table)


def _hash(context: str) -> str:
    return hashlib.sha256(context.encode()).hexdigest()[:12]


def _print(run: Run[Any], summary: dict[str, Any]) -> None:
    table = Table(title=f"{summary['title']}: {run.directory}", title_justify="left")
    for column in ("questions", "number", "exact match", "95% interval", "F1", "95% interval"):
        table.add_column(column, justify="left" if column == "questions" else "right")
    for split in SPLITS:
        exact, f1 = summary[split]["exact_match"], summary[split]["f1"]
        intervals = ["{:.1%}-{:.1%}".format(*score["interval"]) for score in (exact, f1)]
        table.add_row(
            split, f"{exact['n']:,}", f"{exact['value']:.1%}", intervals[0], f"{f1['value']:.1%}",
            intervals[1],
        )  # fmt: skip
    for part in ("answerable", "unanswerable"):
        if part in summary["test"] and "unanswerable" in summary["test"]:
            values = summary["test"][part]
            table.add_row(
                f"  test: {part}", f"{values['n']:,}", f"{values['exact_match']:.1%}", "",
                f"{values['f1']:.1%}", "",
            )  # fmt: skip
    console.print(table)


_USE = """import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("model")
model = AutoModelForQuestionAnswering.from_pretrained("model")
question, text = {question}
batch = tokenizer(question, text, return_offsets_mapping=True, return_tensors="pt")
places = batch.pop("offset_mapping")[0]
with torch.no_grad():
    output = model(**batch)
scores = output.start_logits[0][:, None] + output.end_logits[0]  # of every first and last token
in_text = torch.tensor([part == 1 for part in batch.sequence_ids(0)])
possible = (in_text[:, None] & in_text).triu().tril({longest})  # at most {max_answer} tokens
score, place = scores.masked_fill(~possible, -torch.inf).flatten().max(0)
first, last = divmod(int(place), len(scores))
answer = text[places[first, 0] : places[last, 1]]
{show}
"""
_QUESTIONS = {
    "zh": '"展览在哪里举行？", "据介绍，展览在上海举行，从六月一日开始。"',
    "en": '"Where does it open?", "The exhibition opens in Hamburg on the first of June."',
}
# Where some questions have no answer, the score of position 0 stands for giving none.
_SHOW_OR_NOT = 'print(answer if score - scores[0, 0] > {threshold} else "(not in this text)")'


def _readme(summary: dict[str, Any], max_answer: int) -> str:
    threshold = summary["test"]["no_answer_threshold"]
    use = _USE.format(
        question=_QUESTIONS[summary["data"]["language"]],
        longest=max_answer - 1,
        max_answer=max_answer,
        show="print(answer)" if threshold is None else _SHOW_OR_NOT.format(threshold=threshold),
    )
    return run_readme(summary, question_findings(summary), use=use)


def question_findings(summary: dict[str, Any]) -> Findings:
    """What was trained on what, and how well its answers agree with the right ones."""
    model, data, test = summary["model"], summary["data"], summary["test"]
    rows = [
        [
            split,
            f"{score['n']:,}",
            label,
            f"{score['value']:.4f}",
            "{:.4f}-{:.4f}".format(*score["interval"]),
        ]
        for split in SPLITS
        for label, score in (
            ("exact match", summary[split]["exact_match"]),
            ("F1", summary[split]["f1"]),
        )
    ]
    return Findings(
        f"{model['architecture']} ({model['name']}, method {model['method']}), trained on "
        f"{data['train_examples']:,} questions of {data['dataset']}.",
        [
            *markdown_table(("split", "questions", "", "value", "95% interval"), rows),
            "",
            *signatures([test["exact_match"], test["f1"]]),
        ],
    )

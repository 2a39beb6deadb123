"""Answers to questions about texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np
from torch import nn

from toolkit.data.answer_windows import AnswerCollator, question_windows
from toolkit.data.pair_layout import pair_layout
from toolkit.data.quiet import quiet_datasets
from toolkit.data.splits import is_blank
from toolkit.data.tokenization import input_limit
from toolkit.errors import UserError
from toolkit.modeling import load_tokenizer
from toolkit.prediction.batches import Advance, BatchLimits, predict_sorted
from toolkit.prediction.loading import limits_of, load_model
from toolkit.prediction.predictor import NO_TEXT, NOTE, Answer, Options
from toolkit.prediction.source import QUESTIONS, Source
from toolkit.question_answering import AnswerExtraction, AnswerTexts

MAX_LENGTH, OVERLAP, MAX_QUESTION, MAX_ANSWER = 384, 128, 64, 64


class Answerer:
    """Finds answers; rows are (question, context).

    Args:
        limit: tokens of a window, question and special tokens included.
        overlap: tokens of the context that neighbouring windows share.
        max_question, max_answer: tokens.
        threshold: margin over giving no answer above which an answer is given.
    """

    task, kind, names = QUESTIONS, "question", ("prediction", "margin")
    labels: Sequence[str] = ()

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        limit: int,
        overlap: int,
        max_question: int,
        max_answer: int,
        threshold: float,
        limits: BatchLimits,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.layout = pair_layout(tokenizer, "a")
        self.limit, self.max_question, self.threshold = limit, max_question, threshold
        room = limit - self.layout.special_tokens - max_question
        if room < 1:
            raise UserError(
                f"--max-length {limit}: with {max_question} tokens for the question and "
                f"{self.layout.special_tokens} special ones there is no room for the text."
            )
        self.overlap = min(overlap, room - 1)
        self.objective = AnswerExtraction(max_answer)
        self.collate = AnswerCollator(tokenizer)
        self.limits = limits

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """`prediction` ("" for none) and `margin`: the score of the best answer over none."""
        with quiet_datasets():
            table = datasets.Dataset.from_dict(
                {
                    "question": [question for question, _ in rows],
                    "context": [context for _, context in rows],
                    "start": [-1] * len(rows),
                    "end": [-1] * len(rows),
                }
            )
        windows, _ = question_windows(
            table, self.tokenizer, self.layout, self.limit, self.overlap, self.max_question,
            keep_offsets=True,
        )  # fmt: skip
        found = predict_sorted(
            self.model, windows.to_list(), lengths=windows["length"][:], collate=self.collate,
            compute=self.objective.outputs, limits=self.limits, advance=advance,
            owners=windows["question"][:],
        )  # fmt: skip
        outputs = {name: np.array(values) for name, values in found.items()}
        answers = AnswerTexts(table, windows)(outputs)
        made: list[Answer] = []
        for row, text, margin in zip(
            rows, answers.above(self.threshold), answers.margins, strict=True
        ):
            answer: Answer = {"prediction": text, "margin": _finite(margin)}
            if any(map(is_blank, row)):
                answer[NOTE] = NO_TEXT
            made.append(answer)
        return made


def open_answerer(source: Source, options: Options) -> Answerer:
    """The model of a run, with its threshold; or a checkpoint, which always answers.

    Raises:
        UserError: whatever is wrong with its files.
    """
    tokenizer = load_tokenizer(source.folder)
    if not tokenizer.is_fast:
        raise UserError(
            f"{source.name}: {type(tokenizer).__name__} does not tell which characters its tokens "
            "are; a tokenizer with a tokenizer.json (a fast one) is needed."
        )
    model = load_model(source, "question-answering", options)
    threshold = options.no_answer_threshold
    if threshold is None:
        threshold = source.summary.get("test", {}).get("no_answer_threshold")
    config = source.config
    asked = options.max_length or source.tokenization("max_length") or MAX_LENGTH
    return Answerer(
        model,
        tokenizer,
        limit=input_limit(asked, tokenizer, model.config),
        overlap=config.get("overlap", OVERLAP),
        max_question=config.get("max_question", MAX_QUESTION),
        max_answer=config.get("max_answer", MAX_ANSWER),
        threshold=-np.inf if threshold is None else float(threshold),
        limits=limits_of(options),
    )


def _finite(margin: float) -> float | None:
    return float(margin) if np.isfinite(margin) else None

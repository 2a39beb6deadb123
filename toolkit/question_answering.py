"""Extractive question answering as a task: its loss, what it answers, the metric that chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from toolkit.answer_metrics import best_threshold, score_answer
from toolkit.config import check_range
from toolkit.data.answer_windows import NO_ANSWER
from toolkit.evaluation import Outputs
from toolkit.objectives import Batch

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class AnswerExtraction:
    """Cross entropy of the answer's first and last position (Devlin et al. 2019, section 4.2).

    Only positions of the context and the first position (no answer) can be chosen: neither the
    question nor padding takes part in the softmax.

    Args:
        max_answer: tokens of the longest answer that may be predicted.
    """

    def __init__(self, max_answer: int) -> None:
        check_range("max_answer", max_answer, 1, 100_000)
        self.max_answer = max_answer

    def count(self, batch: Batch) -> list[int]:
        """Every window is one loss term."""
        return [len(batch["labels"])]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Summed mean of the cross entropies of first and last position."""
        return self._losses(*self._logits(model, batch), batch).sum().view(1)

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Per window: the best span and its `score`, the score of `none`, and `loss`.

        `start` and `end` count the tokens of the context in the window. Where a window has none of
        the context, the score is minus infinity.
        """
        start_logits, end_logits = self._logits(model, batch)
        score, start, end = best_spans(
            start_logits, end_logits, batch["context_mask"].bool(), self.max_answer
        )
        return {
            "score": score,
            "start": start - batch["context_start"],
            "end": end - batch["context_start"],
            "none": start_logits[:, NO_ANSWER] + end_logits[:, NO_ANSWER],
            "loss": self._losses(start_logits, end_logits, batch),
        }

    def _logits(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """[batch, length] each, float32; minus infinity where no answer can begin or end."""
        output = model(**{name: batch[name] for name in _INPUTS if name in batch})
        possible = batch["context_mask"].bool().clone()
        possible[:, NO_ANSWER] = True
        start, end = (
            logits.float().masked_fill(~possible, -torch.inf)
            for logits in (output.start_logits, output.end_logits)
        )
        return start, end

    def _losses(self, start_logits: Tensor, end_logits: Tensor, batch: Batch) -> Tensor:
        start, end = batch["labels"].T
        losses = F.cross_entropy(start_logits, start, reduction="none")
        return (losses + F.cross_entropy(end_logits, end, reduction="none")) / 2


def best_spans(
    start_logits: Tensor, end_logits: Tensor, possible: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The span with the highest sum of logits in every row, of at most `longest` tokens.

    Args:
        start_logits, end_logits: [rows, length].
        possible: positions that a span may have, bool [rows, length]; they are one run.

    Returns:
        Score, first and last position [rows] each.
    """
    starts = start_logits.masked_fill(~possible, -torch.inf)
    ends = end_logits.masked_fill(~possible, -torch.inf)
    longest = min(longest, starts.shape[1])
    # [rows, length, longest]: the ends that can follow each start.
    following = F.pad(ends, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)
    totals = (starts.unsqueeze(-1) + following).flatten(1)
    score, place = totals.max(1)
    start = place // longest
    return score, start, start + place % longest


@dataclass(frozen=True)
class Answers:
    """The best answer to every question of a split, and its margin over giving none."""

    texts: list[str]
    margins: NDArray[np.float64]

    def above(self, threshold: float) -> list[str]:
        """The answers with a higher margin; "" for the others."""
        pairs = zip(self.texts, self.margins, strict=True)
        return [text if margin > threshold else "" for text, margin in pairs]


class AnswerTexts:
    """Finds the best answer over all windows of a question.

    Args:
        rows: of the split, with contexts.
        windows: of the same split (`toolkit.data.answer_windows.tokenize_questions`).
    """

    def __init__(self, rows: Any, windows: Any) -> None:
        self.contexts: list[str] = rows["context"][:]
        self.questions = np.asarray(windows["question"][:])
        self.begins: list[list[int]] = windows["begins"][:]
        self.ends: list[list[int]] = windows["ends"][:]

    def __call__(self, outputs: Outputs) -> Answers:
        """Compute from the outputs of `AnswerExtraction`.

        The margin is the score of the best span of any window minus the lowest score of none: a
        window that holds the answer is surer of it than the others are of having none (Devlin et
        al. 2019, section 4.3).
        """
        scores = outputs["score"].astype(np.float64)
        n = len(self.contexts)
        none = np.full(n, np.inf)
        np.minimum.at(none, self.questions, outputs["none"].astype(np.float64))
        best = np.full(n, -np.inf)
        np.maximum.at(best, self.questions, scores)
        texts = [""] * n
        for window in np.flatnonzero(scores == best[self.questions])[::-1]:  # the first one wins
            if np.isfinite(scores[window]):
                question = self.questions[window]
                begin = self.begins[window][outputs["start"][window]]
                end = self.ends[window][outputs["end"][window]]
                texts[question] = self.contexts[question][begin:end].strip()
        return Answers(texts, best - none)


class AnswerMetric:
    """Exact match and F1 with the best no-answer threshold, and loss per window; chosen by F1.

    Args:
        rows: of the validation split.
        texts: finds the answers to them.
        language: whose rules compare answers.
    """

    selection = "f1"
    higher_is_better = True

    def __init__(self, rows: Any, texts: AnswerTexts, language: str) -> None:
        self.answers: list[list[str]] = rows["answers"][:]
        self.texts = texts
        self.language = language

    def threshold(self, found: Answers) -> float:
        """The margin above which to answer, so that F1 is highest on these questions."""
        pairs = list(zip(found.texts, self.answers, strict=True))
        if_answered = [score_answer(text, right, self.language)[1] for text, right in pairs]
        if_empty = [score_answer("", right, self.language)[1] for right in self.answers]
        return best_threshold(found.margins, np.array(if_answered), np.array(if_empty))

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Compute from the outputs of `AnswerExtraction`."""
        found = self.texts(outputs)
        given = found.above(self.threshold(found))
        pairs = zip(given, self.answers, strict=True)
        exact, f1 = np.array([score_answer(*pair, self.language) for pair in pairs]).mean(0)
        return {
            "exact_match": float(exact),
            "f1": float(f1),
            "loss": float(outputs["loss"].mean()),
        }

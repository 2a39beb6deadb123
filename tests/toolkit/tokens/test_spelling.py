"""Tokens to be read, and where tokens without offsets are found."""

from __future__ import annotations

import pytest
from tokenizers import pre_tokenizers

from toolkit.tokens.searching import byte_offsets, search_offsets
from toolkit.tokens.spelling import byte_signs, is_split, readable


def test_the_signs_of_bytes_are_those_of_the_library() -> None:
    signs = byte_signs()
    assert sorted(signs) == sorted(pre_tokenizers.ByteLevel.alphabet())
    cutter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in ("他把书", "aé \n\t\x00😀"):
        [(written, _)] = cutter.pre_tokenize_str(text)
        assert bytes(signs[sign] for sign in written) == text.encode()


@pytest.mark.parametrize(
    ("token", "spelling", "said", "split"),
    [
        ("Ġun", "bytes as signs", "␣un", False),
        ("ä»", "bytes as signs", "⟨E4 BB⟩", True),
        ("ĸæ", "bytes as signs", "⟨96 E6⟩", True),  # the end of one character, the begin of another
        ("aä»ĸç", "bytes as signs", "a他⟨E7⟩", True),
        ("Ċ", "bytes as signs", "⏎", False),
        ("<0xE4>", "plain", "⟨E4⟩", True),
        ("<0x41>", "plain", "A", False),
        ("##ness", "plain", "##ness", False),
        ("ä", "bytes as characters", "⟨E4⟩", True),
        ("他", "bytes as characters", "他", False),  # no byte: a token added by hand
    ],
)
def test_a_token_is_readable(token: str, spelling: str, said: str, split: bool) -> None:
    assert readable(token, spelling) == said  # type: ignore[arg-type]
    assert is_split(token, spelling) is split  # type: ignore[arg-type]


def test_tokens_are_found_in_order() -> None:
    assert search_offsets("The cat the", ["the", "cat", "the"]) == [(0, 3), (4, 7), (8, 11)]
    assert search_offsets("a他b", ["a", None, "b"]) == [(0, 1), None, (2, 3)]
    # "x" is nowhere; the "b" behind it may lie further on.
    assert search_offsets("a zz b", ["a", "x", "b"]) == [(0, 1), None, (5, 6)]
    # "b" is not next to "a", and nothing unknown lies between: no guess.
    assert search_offsets("a zz b", ["a", "b"]) == [(0, 1), None]


def test_bytes_belong_to_characters() -> None:
    assert byte_offsets("他a", [b"\xe4\xbb", b"\x96a"]) == [(0, 1), (0, 2)]
    assert byte_offsets("他", [b"\xe4", b"\xbb"]) == [None, None]  # not the bytes of the text

"""Labels of tokens, by vocabularies of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.attention import tokens_of
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.modeling import load_tokenizer

TEXT = "the 酒店 is good"


@pytest.fixture(scope="module")
def byte_bpe() -> Any:
    """Joins English words, but no bytes of Chinese characters."""
    return train_byte_bpe(["the hotel is good, the room is good"] * 3, 400)


def test_bytes_of_a_character_are_called_by_it(byte_bpe: Any) -> None:
    found = tokens_of(byte_bpe(TEXT)["input_ids"], byte_bpe)

    assert found.labels == (
        "the", "␣", "酒 1/3", "酒 2/3", "酒 3/3", "店 1/3", "店 2/3", "店 3/3", "␣is", "␣good",
    )  # fmt: skip
    assert not any(found.special)


def test_bytes_that_are_no_character_are_written_as_such(byte_bpe: Any) -> None:
    ids = byte_bpe("酒店")["input_ids"]

    assert tokens_of(ids[:2], byte_bpe).labels == ("<0xE9>", "<0x85>")
    # A character cut in its middle does not spoil the next one.
    assert tokens_of(ids[1:], byte_bpe).labels == (
        "<0x85>", "<0x92>", "店 1/3", "店 2/3", "店 3/3",
    )  # fmt: skip


def test_a_special_token_ends_a_character(byte_bpe: Any) -> None:
    ids = byte_bpe("酒")["input_ids"]

    found = tokens_of([*ids[:1], byte_bpe.eos_token_id, *ids], byte_bpe)

    assert found.labels == ("<0xE9>", "<|endoftext|>", "酒 1/3", "酒 2/3", "酒 3/3")
    assert found.special == (False, True, False, False, False)


def test_pieces_of_words_and_unknown_ones(
    write_tiny_bert: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_tiny_bert(tmp_path / "bert")
    vocabulary = (folder / "vocab.txt").read_text("utf-8") + "room\n##s\n"
    (folder / "vocab.txt").write_text(vocabulary, "utf-8")
    tokenizer = load_tokenizer(str(folder))

    found = tokens_of(tokenizer("酒rooms猫")["input_ids"], tokenizer)

    assert found.labels == ("[CLS]", "酒", "room", "##s", "[UNK]", "[SEP]")
    assert found.special == (True, False, False, False, False, True)  # [UNK] stands for a word


def test_sentencepiece_with_bytes(tmp_path: Path) -> None:
    """As in Llama's vocabulary: spaces are ▁, what is not known is spelt in bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "酒"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>"
    )

    found = tokens_of([*wrapped("a 酒店")["input_ids"], 1], wrapped)

    assert found.labels == ("␣", "a", "␣", "酒", "店 1/3", "店 2/3", "店 3/3", "</s>")
    assert found.special[-1]
    assert not any(found.special[:-1])


def test_real_vocabularies_read_back_as_the_text(byte_bpe: Any) -> None:
    """Labels without marks are the text, however its characters were split."""
    labels = tokens_of(byte_bpe("naïve 😀 ok")["input_ids"], byte_bpe).labels
    kept = [label for label in labels if "/" not in label or "1/" in label]
    text = "".join(label.partition(" ")[0] if "/" in label else label for label in kept)
    assert text.replace("␣", " ") == "naïve 😀 ok"
    assert json.dumps(labels)  # no half characters

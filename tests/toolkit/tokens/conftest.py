"""Tiny tokenizers of every kind, with vocabularies chosen by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WORDPIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##happi", "##ness", "他", "把", "书", "a",
]  # fmt: skip


@pytest.fixture(scope="session")
def wordpiece_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocab.txt alone, as BERT's first releases were."""
    folder = tmp_path_factory.mktemp("wordpiece")
    (folder / "vocab.txt").write_text("\n".join(WORDPIECES) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def wordpiece(wordpiece_folder: Path) -> Any:
    from transformers import BertTokenizer

    return BertTokenizer.from_pretrained(wordpiece_folder)


@pytest.fixture(scope="session")
def byte_bpe() -> Any:
    """Bytes, and "un" and "Ġa" joined: GPT-2's way."""
    from tokenizers import pre_tokenizers
    from transformers import GPT2Tokenizer

    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = ["<|endoftext|>", *signs, "un", "Ġa"]
    return GPT2Tokenizer(
        vocab={token: number for number, token in enumerate(vocabulary)},
        merges=[("u", "n"), ("Ġ", "a")],
    )


@pytest.fixture(scope="session")
def unigram() -> Any:
    """SentencePiece's kind, with five pieces and an unknown one."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("▁un", -1.0),
        ("happy", -1.5),
        ("他", -1.0),
        ("把", -1.0),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")

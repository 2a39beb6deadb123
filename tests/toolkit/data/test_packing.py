"""Blocks and windows of documents: nothing lost, nothing twice, nothing seen across documents."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings, strategies
from transformers import GPT2Config, GPT2LMHeadModel

from scratch_models import ScratchGPT2LMHeadModel
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.data.packing import (
    PackedCollator,
    cut,
    evaluation_windows,
    pack,
    pack_documents,
    tokenize_documents,
)
from toolkit.errors import UserError
from toolkit.ignored_label import IGNORED

lengths_of_documents = strategies.lists(strategies.integers(1, 40), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_bpe(["酒店房间很干净", "hello world hello"] * 3, 300)


def test_three_documents_have_three_ends_whatever_they_spell_out(tokenizer):
    texts = ["酒店", "a <|endoftext|> b", "hello\n\nworld"]
    documents = tokenize_documents(texts, tokenizer)
    blocks, summary = pack_documents(documents, 64)
    ids = [i for row in blocks["input_ids"][:] for i in row]
    assert ids.count(tokenizer.eos_token_id) == 3
    assert summary["tokens"] == len(ids) == sum(map(len, documents))
    assert [tokenizer.decode(d[:-1]) for d in documents] == texts
    without_end = SimpleNamespace(eos_token_id=None)
    with pytest.raises(UserError, match="no end-of-text token"):
        tokenize_documents(texts, without_end)


@settings(max_examples=30)
@given(lengths_of_documents, strategies.integers(2, 12))
def test_every_token_but_the_first_is_predicted_once(lengths, block_size):
    documents = [[100 * n + i for i in range(length)] for n, length in enumerate(lengths)]
    if max(lengths) < 2:
        with pytest.raises(UserError, match="nothing to predict"):
            pack_documents(documents, block_size)
        return
    blocks, summary = pack_documents(documents, block_size)
    batch = PackedCollator(0)([blocks[i] for i in range(len(blocks))])
    predicted = batch["labels"][batch["labels"] != IGNORED].tolist()
    expected = [token for document in documents for token in document[1:]]
    assert sorted(predicted) == sorted(expected)
    assert summary["predicted_tokens"] == len(expected)
    assert summary["documents_cut"] == sum(length > block_size for length in lengths)
    assert batch["input_ids"].shape[1] <= block_size
    # a label stands where its token is, and the token before it belongs to the same document
    rows, places = (batch["labels"] != IGNORED).nonzero(as_tuple=True)
    before = batch["input_ids"][rows, places - 1]
    assert torch.equal(before + 1, batch["labels"][rows, places])
    assert torch.equal(
        batch["position_ids"][rows, places], batch["position_ids"][rows, places - 1] + 1
    )


def test_best_fit_fills_blocks_and_cuts_no_short_document():
    pieces = [piece for n, length in enumerate([4, 6, 3, 7, 5, 5]) for piece in cut(length, 10, n)]
    blocks = pack(pieces, 10)
    assert sorted(sum(map(len, block)) for block in blocks) == [10, 10, 10]
    assert sorted(piece.document for block in blocks for piece in block) == list(range(6))
    # a document of 21 tokens in blocks of 10: two full pieces, the third sees one token again
    assert [(p.start, p.stop) for p in cut(21, 10)] == [(0, 10), (9, 19), (18, 21)]


@settings(max_examples=30)
@given(lengths_of_documents, strategies.integers(2, 12), strategies.data())
def test_windows_score_every_token_once_with_all_the_context_they_can(lengths, window, data):
    stride = data.draw(strategies.integers(1, window - 1))
    documents = [[100 * n + i for i in range(length)] for n, length in enumerate(lengths)]
    if max(lengths) < 2:
        with pytest.raises(UserError, match="nothing to predict"):
            evaluation_windows(documents, window, stride)
        return
    rows = evaluation_windows(documents, window, stride)
    batch = PackedCollator(0)([rows[i] for i in range(len(rows))])
    scored = batch["labels"][batch["labels"] != IGNORED].tolist()
    assert sorted(scored) == [token for document in documents for token in document[1:]]
    for row in rows:
        first = row["input_ids"][0] % 100
        assert first == 0 or len(row["input_ids"]) == window
        fresh = len(row["input_ids"]) - row["first_target"]
        assert fresh <= (window if first == 0 else stride)
    with pytest.raises(UserError, match="--stride"):
        evaluation_windows(documents, window, window)


@pytest.mark.parametrize("model_class", [GPT2LMHeadModel, ScratchGPT2LMHeadModel])
@pytest.mark.parametrize("attention", ["sdpa", "eager", "scratch"])
def test_documents_of_a_block_do_not_see_each_other(model_class, attention):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=61, n_positions=16, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3,
        bos_token_id=0, eos_token_id=0, attn_implementation=attention,
    )  # fmt: skip
    model = model_class(config).eval()
    documents = [torch.randint(1, 61, (length,)).tolist() for length in (5, 7, 4, 9, 2, 3)]
    blocks, _ = pack_documents(documents, 16)
    assert max(map(len, blocks["lengths"][:])) > 1
    batch = PackedCollator(0)([blocks[i] for i in range(len(blocks))])
    labels = batch.pop("labels")
    assert len(labels) == 2
    seen = 0
    with torch.no_grad():
        packed = model(**batch, use_cache=False).logits
        for row, lengths in enumerate(blocks["lengths"][:]):
            start = 0
            for length in lengths:
                ids = batch["input_ids"][row, start : start + length]
                alone = model(input_ids=ids[None], use_cache=False).logits[0]
                assert (packed[row, start : start + length] - alone).abs().max() < 1e-5
                start += length
                seen += 1
    assert seen == 6

"""Perplexity by brute force: every token once, whatever the batch, the window or the padding."""

import math

import datasets
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from transformers import GPT2Config, GPT2LMHeadModel

from scratch_models import ScratchGPT2LMHeadModel
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.data.documents import Documents
from toolkit.data.packing import PackedCollator, evaluation_windows
from toolkit.evaluation import predict
from toolkit.ignored_label import IGNORED
from toolkit.language_modeling import (
    CausalLanguageModeling,
    PerplexityMetric,
    count_words,
    describe_scores,
    per_document,
    perplexity,
    prepare,
)

POSITIONS = 8
DOCUMENTS = [[5, 9, 3, 7, 0], [4, 0], list(range(1, 30)), [8, 8, 0], [6] * 8]


@pytest.fixture(scope="module", params=[GPT2LMHeadModel, ScratchGPT2LMHeadModel])
def model(request):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=61, n_positions=POSITIONS, n_embd=32, n_layer=2, n_head=4,
        initializer_range=0.3, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return request.param(config).eval()


def outputs_of(model, windows, batch_size):
    accelerator = Accelerator(cpu=True)
    return predict(
        model,
        windows,
        compute=CausalLanguageModeling().outputs,
        collate=PackedCollator(0),
        accelerator=accelerator,
        batch_size=batch_size,
    )


def loss_of_last(model, ids):
    """Nats of the last token, from a forward pass of its own."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -2].double()
    return -logits.log_softmax(-1)[ids[-1]].item()


def test_a_stride_of_one_gives_every_token_all_the_context_there_is(fresh_accelerator, model):
    outputs = outputs_of(model, evaluation_windows(DOCUMENTS, POSITIONS, 1), 3)
    expected = [
        loss_of_last(model, document[max(0, end - POSITIONS) : end])
        for document in DOCUMENTS
        for end in range(2, len(document) + 1)
    ]
    assert outputs["tokens"].sum() == len(expected)
    assert outputs["nll"].sum() == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("stride", [1, 3, 7])
def test_values_do_not_depend_on_the_batch(fresh_accelerator, model, stride):
    windows = evaluation_windows(DOCUMENTS, POSITIONS, stride)
    values = [PerplexityMetric()(outputs_of(model, windows, size)) for size in (1, 2, 4)]
    for value in values[1:]:
        assert value == pytest.approx(values[0], rel=1e-5)
    # by hand, window after window
    total, tokens = 0.0, 0
    for row in windows:
        ids, first = row["input_ids"], row["first_target"]
        total += sum(loss_of_last(model, ids[: end + 1]) for end in range(first, len(ids)))
        tokens += len(ids) - first
    assert values[0]["perplexity"] == pytest.approx(math.exp(total / tokens), rel=1e-5)
    assert tokens == sum(len(document) - 1 for document in DOCUMENTS)


def test_padding_on_the_left_gives_the_same(model):
    objective = CausalLanguageModeling()
    rows = [{"input_ids": [5, 9, 3, 7, 0]}, {"input_ids": [4, 2]}]
    right = PackedCollator(0)(rows)
    left = {
        "input_ids": torch.tensor([[5, 9, 3, 7, 0], [0, 0, 0, 4, 2]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]),
        "position_ids": torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 0, 1]]),
        "labels": torch.tensor([[IGNORED, 9, 3, 7, 0], [IGNORED] * 4 + [2]]),
    }
    with torch.no_grad():
        a, b = objective.outputs(model, right), objective.outputs(model, left)
    assert a["tokens"].tolist() == b["tokens"].tolist() == [4, 1]
    assert torch.allclose(a["nll"], b["nll"], atol=1e-5)


def test_the_count_is_the_number_of_terms_and_the_sum_is_huggingfaces(model):
    objective = CausalLanguageModeling()
    batch = PackedCollator(0)([{"input_ids": [5, 9, 3, 7], "lengths": [4]}])
    batch["labels"][0, 0] = 5  # nothing predicts it
    with torch.no_grad():
        loss = objective.loss(model, batch)
        theirs = model(input_ids=batch["input_ids"], labels=batch["input_ids"]).loss
    assert objective.count(batch) == [3]
    assert loss.shape == (1,)
    assert loss.item() / 3 == pytest.approx(theirs.item(), rel=1e-5)
    batch["labels"][:] = IGNORED
    assert objective.count(batch) == [0]
    assert objective.loss(model, batch).item() == 0


def test_a_corpus_has_one_mean_not_a_mean_of_means():
    outputs = {"nll": np.array([0.4, 1.5]), "tokens": np.array([3, 5])}
    assert PerplexityMetric()(outputs)["perplexity"] == pytest.approx(1.268075, abs=1e-6)
    assert perplexity(1e6, 1) == math.inf
    assert PerplexityMetric()({"nll": np.array([1e6]), "tokens": np.array([1])})["loss"] == 1e6


def data_of(texts, tokenizer, **options):
    rows = datasets.Dataset.from_dict({"id": [str(i) for i in range(len(texts))], "text": texts})
    return prepare(Documents(rows, rows, rows, {}), tokenizer, **options)


def test_words_bytes_and_characters_are_those_of_the_scored_text():
    chinese = train_byte_bpe(["酒店很好，房间干净。"] * 3, 300)
    data = data_of(["酒店很好 吗", "早饭"], chinese, block_size=16, stride=None)
    split = data.splits["test"]
    assert data.word == "character"
    first = chinese.decode(split.tokens[0][:1])
    assert first == "酒店很好"  # a token of its own, and not scored
    assert split.words.tolist() == [1, 1]  # of 早 only the first bytes are a token: it goes whole
    assert split.bytes.tolist() == [len(" 吗".encode()), 3]
    english = data_of(["the hotel was clean"], train_byte_bpe(["the hotel"], 258), block_size=30,
                      stride=None)  # fmt: skip
    assert english.word == "word"
    assert english.splits["test"].words.tolist() == [4]
    assert english.splits["test"].bytes.tolist() == [18]
    assert (count_words("a b\n c", "word"), count_words("a b\n c", "character")) == (3, 3)


def test_scores_are_ratios_of_sums_with_an_interval_over_documents():
    data = data_of(["ab cd", "abc d", "a b c"], train_byte_bpe(["ab"], 258), block_size=9, stride=4)
    split = data.splits["test"]
    tokens = np.array([len(ids) - 1 for ids in split.tokens])
    nll = np.array([3.0, 5.0, 4.0])
    described = describe_scores({"a": nll, "b": 2 * nll}, split, data)
    scores = described["a"]
    assert scores["perplexity"]["value"] == pytest.approx(math.exp(12 / tokens.sum()))
    assert scores["word_perplexity"]["value"] == pytest.approx(math.exp(12 / split.words.sum()))
    assert scores["bits_per_byte"]["value"] == pytest.approx(12 / math.log(2) / split.bytes.sum())
    low, high = scores["perplexity"]["interval"]
    assert low < scores["perplexity"]["value"] < high
    double = described["b"]["bits_per_byte"]
    assert double["value"] == pytest.approx(2 * scores["bits_per_byte"]["value"])
    assert double["interval"] == pytest.approx([2 * x for x in scores["bits_per_byte"]["interval"]])
    assert "window:9|stride:4" in scores["perplexity"]["signature"]
    windows = np.array(split.windows["document"][:])
    fair = {"nll": np.ones(len(windows)), "tokens": np.zeros(len(windows))}
    with pytest.raises(RuntimeError, match="tokens to be scored, counted 0"):
        per_document(fair, split)

"""Operations counted against what can be computed by hand, and that counting changes no bit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import scratch_models
from scratch_models.baselines.lstm.modeling import (
    ScratchLSTMConfig,
    ScratchLSTMForSequenceClassification,
)
from toolkit.compute import FlopCounter, matmul_rate
from toolkit.flop_formulas import FORMULAS, cudnn_recurrent, cudnn_recurrent_backward

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


def counted(run: Callable[[], Any]) -> int | None:
    with FlopCounter() as counter:
        run()
    return counter.flops


# A tiny BERT by hand

BATCH, LENGTH, WIDTH, INNER, CLASSES, LAYERS = 3, 7, 8, 12, 5, 2
IDS = torch.arange(BATCH * LENGTH).view(BATCH, LENGTH) % 20


def tiny_bert(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=2, num_labels=CLASSES, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout, max_position_embeddings=16,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config).train()


# Of one layer forward: query, key, value, output; up and down; QK^T and the weights times V.
LINEAR = 2 * BATCH * LENGTH * (4 * WIDTH**2 + 2 * WIDTH * INNER)
ATTENTION = 2 * 2 * BATCH * LENGTH**2 * WIDTH
HEAD = 2 * BATCH * (WIDTH**2 + WIDTH * CLASSES)  # pooler and classifier, of one position


def step(model: Any) -> Callable[[], Any]:
    labels = torch.arange(BATCH) % CLASSES
    return lambda: model(input_ids=IDS, labels=labels).loss.backward()


def test_a_bert_forward_is_as_counted_by_hand() -> None:
    model = tiny_bert()
    with torch.no_grad():
        flops = counted(lambda: model(input_ids=IDS))
    assert flops == LAYERS * (LINEAR + ATTENTION) + HEAD


def test_a_bert_step_is_as_counted_by_hand() -> None:
    """Every product has two gradients; a fused attention computes the scores once more."""
    linear = 3 * (LAYERS * LINEAR + HEAD)
    assert counted(step(tiny_bert())) == linear + LAYERS * ATTENTION * 7 / 2
    # Dropout of the weights: no fused kernel, so the scores are kept.
    assert counted(step(tiny_bert(dropout=0.1))) == linear + LAYERS * ATTENTION * 3


def test_frozen_weights_have_no_gradients_to_compute() -> None:
    model = tiny_bert()
    model.bert.requires_grad_(False)
    forward = LAYERS * (LINEAR + ATTENTION) + HEAD
    assert counted(step(model)) == forward + 2 * BATCH * WIDTH * CLASSES
    # Weights frozen above ones that are trained: what passes through them has a gradient.
    model = tiny_bert()
    for layer in model.bert.encoder.layer:
        layer.requires_grad_(False)
    expected = LAYERS * (2 * LINEAR + ATTENTION * 7 / 2) + 3 * HEAD
    assert counted(step(model)) == expected


def test_what_gradient_checkpointing_computes_again_is_counted_again() -> None:
    model = tiny_bert()
    plain = counted(step(model))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert plain is not None
    assert counted(step(model)) == plain + LAYERS * (LINEAR + ATTENTION)


def test_lora_is_cheaper_by_the_gradients_of_the_weights_it_leaves() -> None:
    import peft

    rank = 2
    model = tiny_bert()
    config = peft.LoraConfig(
        task_type="SEQ_CLS", r=rank, lora_dropout=0.0, target_modules=["query", "value"],
        modules_to_save=["classifier"],
    )  # fmt: skip
    adapted = peft.get_peft_model(model, config).train()
    tokens = BATCH * LENGTH
    pairs = 2 * LAYERS  # query and value of every layer
    low_rank = 2 * tokens * 2 * WIDTH * rank  # down and up
    # The first layer's inputs come from frozen embeddings: nothing asks for their gradient.
    first_inputs = 2 * tokens * (3 * WIDTH**2 + 2 * WIDTH * rank)
    forward = LAYERS * (LINEAR + ATTENTION) + HEAD
    backward = (
        LAYERS * (LINEAR + ATTENTION * 5 / 2) + HEAD + 2 * BATCH * WIDTH * CLASSES - first_inputs
    )
    assert counted(step(adapted)) == forward + backward + 3 * pairs * low_rank


# What torch leaves out or counts otherwise


@pytest.mark.parametrize("causal", [False, True])
def test_fused_attention_on_the_cpu(causal: bool) -> None:
    query = torch.ones(2, 3, 4, 8, requires_grad=True)
    key, value = (torch.ones(2, 3, 5, 8, requires_grad=True) for _ in range(2))
    one = 2 * 2 * 3 * 4 * 5 * 8
    flops = counted(
        lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal).sum().backward()
    )
    assert flops == 7 * one


LSTM_STEP = 2 * 4 * 6 * (5 + 6)  # one position: four gates of 6 from 5 inputs and 6 states


@pytest.mark.parametrize("directions", [1, 2])
def test_an_lstm_in_a_fused_kernel_of_the_cpu(directions: int) -> None:
    lstm = nn.LSTM(5, 6, bidirectional=directions == 2)
    x = torch.ones(4, 3, 5, requires_grad=True)
    forward = directions * 4 * 3 * LSTM_STEP
    with torch.no_grad():
        assert counted(lambda: lstm(x)) == forward
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN: step by step, it counts less (see below)")
    assert counted(lambda: lstm(x)[0].sum().backward()) == 3 * forward


def test_an_lstm_over_packed_sequences() -> None:
    """Step by step: real positions only. The first state needs no gradient."""
    lstm = nn.LSTM(5, 6)
    x = torch.ones(3, 4, 5, requires_grad=True)
    lengths = [4, 3, 1]
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True)
    forward = sum(lengths) * LSTM_STEP
    first = len(lengths) * 2 * 4 * 6 * 6
    assert counted(lambda: lstm(packed)[0].data.sum().backward()) == 3 * forward - first


def test_an_lstm_of_cudnn_from_its_shapes() -> None:
    """Two layers, the second reads the 6 states of the first."""
    first, second = [(24, 5), (24, 6), (24,), (24,)], [(24, 6), (24, 6), (24,), (24,)]
    forward = 4 * 3 * (LSTM_STEP + 2 * 4 * 6 * 12)
    assert cudnn_recurrent((4, 3, 5), [*first, *second], 4, None) == forward
    assert cudnn_recurrent((12, 5), [*first, *second], 4, None) == forward  # packed
    for wanted, times in (((True, False, False, True), 2), ((True, False, False, False), 1)):
        backward = cudnn_recurrent_backward((4, 3, 5), [*first, *second], 4, wanted)
        assert backward == times * forward


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("wanted", [False, True])
def test_a_convolution_with_groups(groups: int, wanted: bool) -> None:
    convolution = nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=groups)
    x = torch.ones(2, 4, 6, 10, requires_grad=wanted)
    forward = 2 * 2 * (3 * 5) * 8 * (4 // groups) * 9
    flops = counted(lambda: convolution(x).sum().backward())
    assert flops == forward * (3 if wanted else 2)


def test_a_transposed_convolution() -> None:
    convolution = nn.ConvTranspose2d(4, 6, 3, groups=2)
    x = torch.ones(2, 4, 5, 5, requires_grad=True)
    forward = 2 * 2 * (5 * 5) * 4 * 3 * 9
    assert counted(lambda: convolution(x).sum().backward()) == 3 * forward


def test_a_matrix_times_a_vector() -> None:
    matrix, vector = torch.ones(3, 4), torch.ones(4)
    assert counted(lambda: matrix @ vector) == 24
    assert counted(lambda: torch.addmv(torch.ones(3), matrix, vector)) == 24


def test_what_nobody_has_a_formula_for_is_not_guessed() -> None:
    with FlopCounter() as counter:
        torch.ones(2, 3) @ torch.ones(3, 2)
        nn.Bilinear(3, 4, 5)(torch.ones(2, 3), torch.ones(2, 4))
    assert counter.flops is None
    assert counter.unknown == {"aten._trilinear"}

    @torch.library.custom_op("toolkit_test::product", mutates_args=())
    def product(x: Tensor) -> Tensor:
        return x @ x

    with FlopCounter() as counter:
        product(torch.ones(2, 2))
    assert counter.flops is None
    assert counter.unknown == {"toolkit_test.product"}


def test_a_formula_that_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **kwargs: Any) -> int:
        raise RuntimeError

    with FlopCounter() as counter:
        counter.flop_registry[torch.ops.aten.mm] = fails
        result = torch.ones(2, 3) @ torch.ones(3, 2)
    assert result.tolist() == [[3, 3], [3, 3]]
    assert counter.flops is None


# Counting changes no bit

TEXT = {"vocab_size": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def bert() -> Any:
    return transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, **TEXT
    )


def gpt2() -> Any:
    return transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=16, **TEXT)


def marian() -> Any:
    return transformers.MarianConfig(
        d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, dropout=0.1,
        attention_dropout=0.1, max_position_embeddings=16, decoder_start_token_id=0, **TEXT,
    )  # fmt: skip


def vit() -> Any:
    return transformers.ViTConfig(
        image_size=8, patch_size=4, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
    )  # fmt: skip


def text_batch() -> dict[str, Tensor]:
    ids = torch.randint(3, 20, (4, 9))
    mask = (torch.arange(9) < torch.tensor([[9], [5], [7], [1]])).long()
    return {"input_ids": ids * mask, "attention_mask": mask}


def labelled(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    return batch | {"labels": torch.tensor([0, 1, 1, 0])}


def packed_batch() -> dict[str, Tensor]:
    """Two documents in every row, as `toolkit.data.packing` lays them out."""
    ids = torch.randint(3, 20, (4, 9))
    return {
        "input_ids": ids, "labels": ids,
        "position_ids": torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]] * 4),
    }  # fmt: skip


BIDIRECTIONAL_LSTM = ScratchLSTMConfig(
    vocab_size=20, embedding_size=8, hidden_size=6, num_layers=2, dropout=0.2
)
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], dict[str, Tensor]]]] = {
    "BERT of HuggingFace": (
        lambda: transformers.BertForSequenceClassification(bert()), lambda: labelled(text_batch()),
    ),
    "BERT": (
        lambda: scratch_models.ScratchBertForSequenceClassification(bert()),
        lambda: labelled(text_batch()),
    ),
    "ViT": (
        lambda: scratch_models.ScratchViTForImageClassification(vit()),
        lambda: labelled({"pixel_values": torch.randn(4, 3, 8, 8)}),
    ),
    "GPT-2": (lambda: scratch_models.ScratchGPT2LMHeadModel(gpt2()), packed_batch),
    "Marian of HuggingFace": (
        lambda: transformers.MarianMTModel(marian()),
        lambda: text_batch() | {"labels": torch.randint(3, 20, (4, 6))},
    ),
    "LSTM": (
        lambda: ScratchLSTMForSequenceClassification(BIDIRECTIONAL_LSTM),
        lambda: labelled(text_batch()),
    ),
}  # fmt: skip


def train(name: str, counted_steps: tuple[int, ...]) -> tuple[list[float], dict[str, Tensor]]:
    build, make_batch = MODELS[name]
    torch.manual_seed(1)
    model = build().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for number in range(3):
        batch = make_batch()
        if number in counted_steps:
            with FlopCounter() as counter:
                loss = model(**batch).loss
                loss.backward()
            assert counter.unknown == set()
            assert counter.flops
        else:
            loss = model(**batch).loss
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, model.state_dict()


@pytest.mark.parametrize("name", MODELS)
def test_losses_and_weights_are_the_same_bits_with_and_without_counting(name: str) -> None:
    losses, weights = train(name, ())
    assert losses[0] != losses[2]
    again, counted_weights = train(name, (0, 2))
    assert losses == again
    for key, value in weights.items():
        assert torch.equal(value, counted_weights[key]), key


# The machine's own rate


def test_the_rate_of_products_is_that_of_a_large_one() -> None:
    cpu = torch.device("cpu")
    started = time.perf_counter()
    rate = matmul_rate(cpu, torch.float32)
    assert time.perf_counter() - started < 2  # 0.3 where nobody else computes
    matrix = torch.ones(768, 768)
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - started)
    expected = 2 * 768**3 / min(seconds)
    assert 0.3 * expected < rate < 5 * expected


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_the_quick_counter_counts_what_torchs_own_does(mode: Any) -> None:
    """Also operations made of others, which reach it whole where no gradient is wanted."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 8, 5), nn.LayerNorm(5))
    attention = nn.MultiheadAttention(6, 2, batch_first=True)
    inputs, texts = torch.randn(2, 3, 10), torch.randn(2, 7, 6)

    def compute() -> None:
        with mode():
            loss = model(inputs).sum() + attention(texts, texts, texts)[0].sum()
            loss = loss + torch.einsum("bij,bkj->bik", texts, texts @ texts.mT @ texts).sum()
        if loss.requires_grad:
            loss.backward()

    with FlopCounter() as counter:
        compute()
    with FlopCounterMode(display=False, custom_mapping=FORMULAS) as theirs:
        compute()
    assert counter.flops == theirs.get_total_flops() > 0
    assert dict(counter.flop_counts["Global"]) == dict(theirs.flop_counts["Global"])

"""Values, gradients and losses are HuggingFace's, with padding on either side and any config."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from scratch_models import ScratchGPT2Model, scratch_class
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity import compare_forward, compare_gradients

HEADS = ["model", "causal-lm", "sequence-classification", "token-classification"]
IMPLEMENTATIONS = ["sdpa", "eager", "scratch"]
DROPOUT = {"embd_pdrop": 0.2, "attn_pdrop": 0.3, "resid_pdrop": 0.4}
NO_DROPOUT = {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}


def labels_of(head: str, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    ids, mask = batch["input_ids"], batch["attention_mask"]
    if head == "model":
        return {}
    if head == "causal-lm":
        return {"labels": ids.masked_fill(mask == 0, -100)}
    if head == "token-classification":
        return {"labels": torch.randint(3, ids.shape).masked_fill(mask == 0, -100)}
    return {"labels": torch.randint(3, ids.shape[:1])}


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("head", HEADS)
def test_values_and_gradients(head: str, attn: str, gpt2_pair, texts) -> None:
    pair = gpt2_pair(head, attn, num_labels=3)
    batches = [texts([9, 4, 1, 7], side) for side in ("left", "right")]
    batches[1]["token_type_ids"] = torch.randint(61, batches[1]["input_ids"].shape)
    batches = [batch | labels_of(head, batch) for batch in batches]
    rows = compare_forward(*pair, batches) + compare_gradients(*pair, batches)
    assert {"hidden states", "attention maps", "outputs", "gradients"} <= {r.stage for r in rows}
    assert all(row.passed for row in rows), [row for row in rows if not row.passed]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("sizes", [{}, {"n_embd": 30, "n_head": 3, "n_inner": 17}])
def test_the_same_seed_gives_huggingface_s_fresh_weights(
    sizes: dict[str, int], head: str, tiny_gpt2
) -> None:
    own_class = scratch_class("gpt2", head)
    torch.manual_seed(7)
    scratch = own_class(tiny_gpt2(**sizes))
    torch.manual_seed(7)
    reference = getattr(transformers, own_class.huggingface_class)(tiny_gpt2(**sizes))
    expected, own = to_own_names(scratch, reference.state_dict()), scratch.state_dict()
    assert own.keys() == expected.keys()
    for name, tensor in own.items():
        assert torch.equal(tensor, expected[name]), name


def test_residual_layers_start_smaller(tiny_gpt2) -> None:
    """By 1 / sqrt(number of residual connections), of which eight layers have 16 (§2.3)."""
    model = ScratchGPT2Model(tiny_gpt2(n_layer=8, initializer_range=0.02))
    for layer in model.layers:
        attention, feed_forward = layer.attention, layer.feed_forward
        assert attention.query.weight.std().item() == pytest.approx(0.02, rel=0.15)
        assert attention.output.weight.std().item() == pytest.approx(0.02 / 4, rel=0.15)
        assert feed_forward.down.weight.std().item() == pytest.approx(0.02 / 4, rel=0.15)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("head", HEADS[1:])
def test_dropout_falls_where_huggingface_s_falls(head: str, attn: str, gpt2_pair, texts) -> None:
    pair = gpt2_pair(head, attn, num_labels=3, **DROPOUT)
    batch = texts([9, 4, 6])
    batch |= labels_of(head, batch)
    losses = []
    for model in (*pair, pair[0]):
        torch.manual_seed(3 if len(losses) < 2 else 4)
        losses.append(model.train()(**batch).loss)
    torch.testing.assert_close(losses[0], losses[1], atol=1e-6, rtol=1e-6)
    assert losses[2] != losses[0]  # there is dropout


@pytest.mark.parametrize("name", ["classifier_dropout", "hidden_dropout", None])
def test_dropout_before_the_token_classifier(name: str | None, gpt2_pair) -> None:
    changes = {} if name is None else {name: 0.7}
    scratch, reference = gpt2_pair("token-classification", **changes)
    assert scratch.dropout.p == reference.dropout.p == (0.1 if name is None else 0.7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("attn", ["sdpa", "eager"])
def test_upcast_scores(attn: str, dtype: torch.dtype, gpt2_pair, texts) -> None:
    """`reorder_and_upcast_attn` works under eager attention only, there in single precision."""
    pair = gpt2_pair(attn=attn, reorder_and_upcast_attn=True, scale_attn_by_inverse_layer_idx=True)
    plain = copy.deepcopy(pair[0])
    for layer in plain.transformer.layers:
        layer.attention.__class__ = layer.attention.__class__.__mro__[1]
    batch = texts([9, 4])
    with torch.no_grad():
        ours, theirs, without = (m.to(dtype)(**batch).logits for m in (*pair, plain))
    real = batch["attention_mask"].bool()
    if dtype == torch.float32:
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    else:
        torch.testing.assert_close(ours[real], theirs[real], atol=4e-2, rtol=4e-2)
        assert torch.equal(ours, without) == (attn == "sdpa")


def test_upcast_scores_draw_the_same_dropout(gpt2_pair, texts) -> None:
    losses = []
    batch = texts([9, 4])
    for model in gpt2_pair(attn="eager", reorder_and_upcast_attn=True, **DROPOUT):
        torch.manual_seed(3)
        losses.append(model.train()(**batch, labels=batch["input_ids"]).loss)
    torch.testing.assert_close(*losses, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize(("dtype", "near"), [(torch.float16, 2e-2), (torch.bfloat16, 2e-1)])
def test_half_precision_is_huggingface_s_and_near_single(
    dtype: torch.dtype, near: float, attn: str, gpt2_pair, texts
) -> None:
    pair = gpt2_pair("model", attn, initializer_range=0.05)
    batch = texts([9, 4, 1])
    batch["attention_mask"][2] = 0
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        single = pair[0](**batch).last_hidden_state
        ours, theirs = (m.to(dtype)(**batch).last_hidden_state for m in pair)
    assert torch.isfinite(ours).all()
    # A Conv1D adds its bias within the product, where a Linear's kernel may round in between.
    torch.testing.assert_close(ours[real], theirs[real], atol=near, rtol=0)
    assert (ours.float() - single)[real].abs().max() < near


@pytest.mark.parametrize("keep", [0, 1, 3, torch.tensor([0, 4])])
def test_logits_of_some_positions_only(keep: Any, gpt2_pair, texts) -> None:
    batch = texts([6, 3])
    ours, theirs = (model(**batch, logits_to_keep=keep).logits for model in gpt2_pair())
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_the_loss_is_divided_by_the_number_it_is_given(gpt2_pair, texts) -> None:
    batch = texts([6, 3])
    batch |= labels_of("causal-lm", batch)
    scratch, reference = gpt2_pair()
    ours, theirs = (m(**batch, num_items_in_batch=11).loss for m in (scratch, reference))
    torch.testing.assert_close(ours, theirs)
    # Asked for are 5 tokens of the first text and all 3 of the second, padded on the left.
    torch.testing.assert_close(ours * 11, scratch(**batch).loss * 8)


@pytest.mark.parametrize(
    ("problem", "labels"),
    [("regression", 1), ("regression", 3), ("multi_label_classification", 4), (None, 1), (None, 3)],
)
def test_problem_types(problem: str | None, labels: int, gpt2_pair, texts) -> None:
    batch = texts([6, 3, 5])
    if problem is None and labels > 1:
        batch["labels"] = torch.randint(labels, (3,))
    else:
        batch["labels"] = torch.rand((3, labels) if labels > 1 else (3,)).round(decimals=0)
    pair = gpt2_pair("sequence-classification", problem_type=problem, num_labels=labels)
    ours, theirs = (model(**batch) for model in pair)
    torch.testing.assert_close(ours.loss, theirs.loss)
    assert pair[0].config.problem_type == pair[1].config.problem_type


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("masked", [True, False])
def test_a_text_is_classified_by_its_last_token(masked: bool, side: str, gpt2_pair, texts) -> None:
    scratch, reference = gpt2_pair("sequence-classification", num_labels=3)
    batch = texts([9, 4, 1], side)
    batch["input_ids"][0, 2] = 0  # the padding token inside a text
    batch["input_ids"][2] = 0  # nothing but padding
    if not masked:
        del batch["attention_mask"]
    ours, theirs = (model(**batch).logits for model in (scratch, reference))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    last = 8 if side == "left" else 3
    states = scratch.transformer(**batch).last_hidden_state
    torch.testing.assert_close(ours[1], scratch.score(states[1, last]), atol=1e-5, rtol=1e-5)


def test_embeddings_are_classified_by_the_last_position(gpt2_pair) -> None:
    embeddings = torch.randn(3, 5, 32)
    scratch, reference = gpt2_pair("sequence-classification")
    with pytest.warns(UserWarning, match="inputs_embeds"):
        ours = scratch(inputs_embeds=embeddings).logits
    theirs = reference(inputs_embeds=embeddings).logits
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_several_texts_without_padding_token_are_refused(gpt2_pair) -> None:
    scratch, reference = gpt2_pair("sequence-classification", pad_token_id=None)
    ids = torch.randint(3, 61, (2, 5))
    with pytest.raises(ValueError, match=r"Set model\.config\.pad_token_id = "):
        scratch(ids)
    torch.testing.assert_close(scratch(ids[:1]).logits, reference(ids[:1]).logits)


@pytest.mark.parametrize("head", HEADS)
def test_arguments_in_order_and_as_a_tuple(head: str, gpt2_pair, texts) -> None:
    batch = texts([6, 3], "right")
    positions = torch.arange(6)[None].flip(1)
    arguments = (batch["input_ids"], None, batch["attention_mask"], batch["input_ids"], positions)
    flags = {"return_dict": False, "output_hidden_states": True, "use_cache": False}
    ours, theirs = (model(*arguments, **flags) for model in gpt2_pair(head))
    assert isinstance(ours, tuple)
    assert len(ours) == len(theirs) == 2
    for own, expected in zip((ours[0], *ours[1]), (theirs[0], *theirs[1]), strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=1e-5)


def test_gradient_checkpointing_changes_nothing_but_memory(gpt2_pair, texts) -> None:
    plain, _ = gpt2_pair(**NO_DROPOUT)
    checkpointed = copy.deepcopy(plain)
    checkpointed.gradient_checkpointing_enable()
    calls: list[int] = []
    up = checkpointed.transformer.layers[0].feed_forward.up
    up.register_forward_hook(lambda *_: calls.append(1))
    batch = texts([9, 4])
    losses = []
    for model in (plain, checkpointed):
        output = model.train()(**batch, labels=batch["input_ids"], use_cache=True)
        output.loss.backward()
        losses.append(output.loss)
    assert torch.equal(*losses)
    assert output.cache is None  # a layer that runs twice would fill it twice
    assert len(calls) == 2  # the layer ran again in the backward pass
    assert checkpointed.config.use_cache
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter.grad, checkpointed.get_parameter(name).grad), name
    generated = checkpointed.eval().generate(**batch, max_new_tokens=3)
    assert torch.equal(generated, plain.eval().generate(**batch, max_new_tokens=3))


def test_cross_attention_is_refused(tiny_gpt2, gpt2_pair) -> None:
    with pytest.raises(ValueError, match="add_cross_attention: set it to False"):
        ScratchGPT2Model(tiny_gpt2(add_cross_attention=True))
    with pytest.raises(ValueError, match="decoder without encoder"):
        gpt2_pair()[0](torch.ones(1, 2).long(), encoder_hidden_states=torch.zeros(1, 2, 32))


def test_exactly_one_input(tiny_gpt2) -> None:
    model = ScratchGPT2Model(tiny_gpt2())
    with pytest.raises(ValueError, match="exactly one"):
        model()
    with pytest.raises(ValueError, match="exactly one"):
        model(torch.ones(1, 2, dtype=torch.long), inputs_embeds=torch.randn(1, 2, 32))


@pytest.mark.slow
@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_one_graph_when_compiled(attn: str, gpt2_pair, texts) -> None:
    """Nothing in `forward` looks at values, with a cache of fixed size and padding too."""
    scratch, _ = gpt2_pair(attn=attn)
    options = {"max_new_tokens": 4, "cache_implementation": "static", "eos_token_id": None}
    batch = texts([6, 3])
    expected = scratch.generate(**batch, **options)
    scratch.forward = torch.compile(scratch.forward, fullgraph=True, backend="eager")
    assert torch.equal(scratch.generate(**batch, **options), expected)

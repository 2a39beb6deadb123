"""What a user meets: long inputs, odd masks, half precision, checkpointing, resizing, adapters."""

from __future__ import annotations

import copy
import json
import shutil

import pytest
import torch
from torch import Tensor

from scratch_models import ScratchBertModel

IMPLEMENTATIONS = ["sdpa", "eager", "scratch"]


def test_too_long_input_is_refused_with_both_lengths(tiny_config) -> None:
    model = ScratchBertModel(tiny_config())
    assert model(torch.full((1, 24), 5)).last_hidden_state.shape == (1, 24, 32)
    with pytest.raises(ValueError, match=r"25 tokens .* 24"):
        model(torch.full((1, 25), 5))


def test_decoder_configs_are_refused(tiny_config) -> None:
    with pytest.raises(ValueError, match="encoder"):
        ScratchBertModel(tiny_config(is_decoder=True))


def test_exactly_one_input(tiny_config) -> None:
    model = ScratchBertModel(tiny_config())
    with pytest.raises(ValueError, match="exactly one"):
        model()
    with pytest.raises(ValueError, match="exactly one"):
        model(torch.ones(1, 2, dtype=torch.long), inputs_embeds=torch.randn(1, 2, 32))


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_a_row_of_padding_only_stays_finite_and_touches_no_other(
    attn: str, tiny_config, tiny_pair
) -> None:
    scratch, _ = tiny_pair(tiny_config(), "sequence-classification", attn)
    ids = torch.tensor([[5, 6, 7], [0, 0, 0]])
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    output = scratch(ids, attention_mask=mask, labels=torch.tensor([0, 1]))
    output.loss.backward()
    assert torch.isfinite(output.logits).all()
    assert all(torch.isfinite(p.grad).all() for p in scratch.parameters() if p.grad is not None)
    alone = scratch(ids[:1], attention_mask=mask[:1])
    torch.testing.assert_close(output.logits[:1], alone.logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize(("dtype", "near"), [(torch.float16, 2e-2), (torch.bfloat16, 2e-1)])
def test_half_precision_is_huggingface_s_and_near_single(
    dtype: torch.dtype, near: float, attn: str, tiny_config, tiny_pair
) -> None:
    pair = tiny_pair(tiny_config(initializer_range=0.05), "model", attn)
    ids = torch.randint(61, (3, 9))
    mask = torch.ones(3, 9, dtype=torch.long)
    mask[1, 4:] = 0
    mask[2] = 0
    real = mask.bool()
    with torch.no_grad():
        single = pair[0](ids, attention_mask=mask).last_hidden_state
        ours, theirs = (m.to(dtype)(ids, attention_mask=mask).last_hidden_state for m in pair)
    assert torch.isfinite(ours).all()
    assert torch.equal(ours[real], theirs[real])
    assert (ours.float() - single)[real].abs().max() < near


def block_mask() -> Tensor:
    """Two texts of 4 and 5 tokens in one row that must not see each other: [1, 9, 9]."""
    text = torch.tensor([0] * 4 + [1] * 5)
    return (text[:, None] == text[None, :])[None]


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.uint8, torch.float32])
@pytest.mark.parametrize("rank", [3, 4])
def test_block_masks_separate_packed_texts(
    rank: int, dtype: torch.dtype, attn: str, tiny_config, tiny_pair
) -> None:
    scratch, _ = tiny_pair(tiny_config(), "model", attn)
    ids = torch.randint(61, (1, 9))
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    mask = block_mask().to(dtype)
    mask = mask if rank == 3 else mask[:, None]
    together = scratch(ids, attention_mask=mask, position_ids=positions).last_hidden_state
    apart = [scratch(part).last_hidden_state for part in (ids[:, :4], ids[:, 4:])]
    torch.testing.assert_close(together, torch.cat(apart, dim=1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_additive_masks_follow_huggingface(attn: str, tiny_config, tiny_pair) -> None:
    pair = tiny_pair(tiny_config(), "model", attn)
    ids = torch.randint(61, (1, 9))
    additive = torch.where(block_mask()[:, None], 0.0, torch.finfo(torch.float32).min)
    bias = torch.where(block_mask()[:, None], 0.0, -1.5)
    for mask in (additive, bias, torch.zeros(1, 1, 9, 9)):
        ours, theirs = (m(ids, attention_mask=mask).last_hidden_state for m in pair)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 8), r"\[2, 8\] but the input is \[2, 9\]"),
        (torch.ones(1, 9), r"\[1, 9\] but the input is \[2, 9\]"),
        (torch.ones(2, 9, 8), r"\[2, 9, 8\]; expected"),
        (torch.ones(3, 1, 9, 9), r"\[3, 1, 9, 9\]; expected"),
        (torch.full((2, 1, 9, 9), 0.5), "other than 0 and 1"),
        (torch.full((2, 9, 9), -1e9), "other than 0 and 1"),
        (torch.ones(9), r"\[9\]; expected"),
    ],
)
def test_masks_that_mean_nothing_are_refused(mask: Tensor, message: str, tiny_config) -> None:
    model = ScratchBertModel(tiny_config())
    with pytest.raises(ValueError, match=message):
        model(torch.randint(61, (2, 9)), attention_mask=mask)


def test_full_masks_are_refused_where_the_kernel_has_none(tiny_config) -> None:
    model = ScratchBertModel(tiny_config())
    model.config._attn_implementation = "flex_attention"
    with pytest.raises(ValueError, match="flex_attention"):
        model(torch.randint(61, (1, 9)), attention_mask=block_mask())


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("padded", [False, True])
def test_attention_maps_are_real_under_every_implementation(
    attn: str, padded: bool, tiny_config, tiny_pair
) -> None:
    scratch, reference = tiny_pair(tiny_config(), "sequence-classification", attn)
    reference.set_attn_implementation("eager")
    ids = torch.randint(61, (2, 7))
    mask = torch.ones_like(ids)
    if padded:
        mask[1, 3:] = 0
    plain = scratch(ids, attention_mask=mask)
    asked = scratch(ids, attention_mask=mask, output_attentions=True)
    expected = reference(ids, attention_mask=mask, output_attentions=True).attentions
    # Without maps the last layer computes the first token only: equal up to rounding.
    torch.testing.assert_close(plain.logits, asked.logits, atol=1e-6, rtol=0)
    assert plain.attentions is None
    assert len(asked.attentions) == 2
    for ours, theirs in zip(asked.attentions, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        torch.testing.assert_close(ours.sum(-1), torch.ones(2, 4, 7))
        assert (ours[1, :, :, 3:] == 0).all() == padded


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="flex attention needs a C++ compiler")
def test_flex_attention_equals_huggingface_and_gives_its_maps(tiny_config, tiny_pair) -> None:
    config = tiny_config(hidden_size=64)  # the kernel wants heads of at least 16
    scratch, reference = tiny_pair(config, "model", "flex_attention")
    ids = torch.randint(61, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    with torch.no_grad():
        ours = scratch(ids, attention_mask=mask, output_attentions=True)
        theirs = reference(ids, attention_mask=mask).last_hidden_state
        reference.set_attn_implementation("eager")
        maps = reference(ids, attention_mask=mask, output_attentions=True).attentions
    torch.testing.assert_close(ours.last_hidden_state, theirs, atol=1e-5, rtol=0)
    for own, expected in zip(ours.attentions, maps, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)


def test_attention_maps_asked_for_by_the_config(tiny_config) -> None:
    model = ScratchBertModel(tiny_config(output_attentions=True, attn_implementation="eager"))
    model.set_attn_implementation("sdpa")
    assert len(model(torch.ones(1, 3, dtype=torch.long)).attentions) == 2


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_dropout_falls_where_huggingface_s_falls(attn: str, tiny_config, tiny_pair) -> None:
    config = tiny_config(
        hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.4, classifier_dropout=0.5
    )
    pair = tiny_pair(config, "sequence-classification", attn)
    ids, labels = torch.randint(61, (4, 9)), torch.tensor([0, 1, 0, 1])
    losses = []
    for model in pair:
        model.train()
        torch.manual_seed(3)
        losses.append(model(ids, labels=labels).loss)
    torch.testing.assert_close(*losses, atol=1e-6, rtol=0)
    torch.manual_seed(4)
    assert pair[0](ids, labels=labels).loss != losses[0]  # there is dropout


def test_gradient_checkpointing_changes_nothing_but_memory(tiny_config, tiny_pair) -> None:
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    plain, _ = tiny_pair(tiny_config(**no_dropout), "sequence-classification")
    checkpointed = copy.deepcopy(plain)
    checkpointed.gradient_checkpointing_enable()
    assert all(layer.gradient_checkpointing for layer in checkpointed.bert.layers)
    calls = []
    up = checkpointed.bert.layers[0].feed_forward.up
    up.register_forward_hook(lambda *_: calls.append(1))
    ids, labels = torch.randint(61, (3, 9)), torch.tensor([0, 1, 0])
    losses = []
    for model in (plain, checkpointed):
        model.train()
        losses.append(model(ids, labels=labels).loss)
        losses[-1].backward()
    assert torch.equal(*losses)
    assert len(calls) == 2  # the layer ran again in the backward pass
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter.grad, checkpointed.get_parameter(name).grad), name


@pytest.mark.parametrize("head", ["masked-lm", "pretraining"])
@pytest.mark.parametrize("size", [50, 80])
def test_resizing_keeps_the_tie_and_the_bias(
    size: int, head: str, tiny_config, tiny_pair, tmp_path
) -> None:
    scratch, reference = tiny_pair(tiny_config(), head)
    kept = min(61, size)
    bias = scratch.masked_lm_head.bias.detach().clone()
    for model in (scratch, reference):
        model.resize_token_embeddings(size, mean_resizing=False)
    head_module = scratch.masked_lm_head
    assert head_module.decoder.weight is scratch.bert.embeddings.token.weight
    assert head_module.decoder.bias is head_module.bias
    assert torch.equal(head_module.bias[:kept], bias[:kept])
    ids = torch.randint(kept, (2, 6))
    ours, theirs = scratch(ids)[0], reference(ids)[0]
    assert ours.shape == (2, 6, size)
    torch.testing.assert_close(ours[..., :kept], theirs[..., :kept], atol=1e-5, rtol=1e-5)
    scratch.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == size
    again = type(scratch).from_pretrained(tmp_path)
    torch.testing.assert_close(again(ids)[0], ours)

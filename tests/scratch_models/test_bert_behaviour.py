"""What a user meets: long inputs, odd masks, half precision, dropout in its places."""

from __future__ import annotations

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

"""Who sees whom, step by step and at once: caches, padding, masks, positions, attention maps."""

from __future__ import annotations

import shutil

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, StaticCache

from scratch_models import ScratchGPT2LMHeadModel, ScratchGPT2Model

IMPLEMENTATIONS = ["sdpa", "eager", "scratch"]


def cumulative(mask: Tensor) -> Tensor:
    """Positions that padding takes no part of."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("parts", [[1] * 8, [5, 3], [3, 4, 1]])
@pytest.mark.parametrize("kind", ["growing", "fixed"])
def test_a_text_in_parts_equals_the_text_at_once(
    kind: str, parts: list[int], attn: str, gpt2_pair, texts
) -> None:
    scratch, reference = gpt2_pair(attn=attn)
    batch = texts([8, 5])
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with torch.no_grad():
        expected = scratch(ids, attention_mask=mask).logits
        theirs = reference(ids, attention_mask=mask).logits
        cache = DynamicCache() if kind == "growing" else StaticCache(scratch.config, 12)
        logits, start = [], 0
        for length in parts:
            end = start + length
            output = scratch(ids[:, start:end], cache, mask[:, :end])
            logits.append(output.logits)
            cache, start = output.cache, end
    real = mask.bool()  # padding sees nothing, and mixes whatever there is
    parts_together = torch.cat(logits, dim=1)[real]
    torch.testing.assert_close(parts_together, expected[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(expected[real], theirs[real], atol=1e-5, rtol=1e-5)


def test_the_config_decides_about_the_cache_and_the_caller_over_it(tiny_gpt2) -> None:
    ids = torch.ones(1, 3, dtype=torch.long)
    for default in (True, False):
        model = ScratchGPT2Model(tiny_gpt2(use_cache=default))
        assert (model(ids).cache is not None) == default
        assert model(ids, use_cache=True).cache.get_seq_length() == 3
        assert model(ids, use_cache=False).cache is None
        past = model(ids, use_cache=True).cache
        assert model(ids, past, use_cache=False).cache is None


def test_the_old_name_of_the_cache(tiny_gpt2) -> None:
    model = ScratchGPT2LMHeadModel(tiny_gpt2()).eval()
    ids = torch.randint(3, 61, (1, 6))
    with torch.no_grad():
        past = model(ids[:, :4]).cache
        with pytest.warns(FutureWarning, match="Use `cache` instead"):
            step = model(ids[:, 4:], past_key_values=past).logits
        torch.testing.assert_close(step, model(ids).logits[:, 4:])


def test_positions_count_padding_unless_the_caller_counts(gpt2_pair, texts) -> None:
    scratch, reference = gpt2_pair()
    batch = texts([8, 5])
    ids, mask = batch["input_ids"], batch["attention_mask"]
    alone = scratch(ids[1:, 3:]).logits
    plain, theirs = (model(ids, attention_mask=mask).logits for model in (scratch, reference))
    torch.testing.assert_close(plain, theirs, atol=1e-5, rtol=1e-5)
    counted = scratch(ids, attention_mask=mask, position_ids=cumulative(mask)).logits
    torch.testing.assert_close(counted[1:, 3:], alone, atol=1e-5, rtol=1e-5)
    assert (plain[1:, 3:] - alone).abs().max() > 1e-2


def test_more_tokens_than_positions_are_refused(tiny_gpt2) -> None:
    model = ScratchGPT2LMHeadModel(tiny_gpt2())
    ids = torch.randint(3, 61, (1, 33))
    cache = model(ids[:, :32]).cache
    with pytest.raises(ValueError, match=r"33 tokens but the model has positions for 32"):
        model(ids)
    with pytest.raises(ValueError, match=r"33 tokens \(32 of them in the cache\) .* for 32"):
        model(ids[:, 32:], cache=cache)
    with pytest.raises(ValueError, match=r"position_ids hold 32 .* must be in 0…31"):
        model(ids[:, :1], position_ids=torch.tensor([[32]]))
    with pytest.raises(ValueError, match=r"position_ids hold -1 "):
        model(ids[:, :1], position_ids=torch.tensor([[-1]]))


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int32, torch.float16, torch.float32]
)
def test_the_dtype_of_a_padding_mask_means_nothing(
    dtype: torch.dtype, attn: str, gpt2_pair, texts
) -> None:
    scratch, _ = gpt2_pair(attn=attn)
    batch = texts([8, 5])
    expected = scratch(**batch).logits
    batch["attention_mask"] = batch["attention_mask"].to(dtype)
    assert torch.equal(scratch(**batch).logits, expected)


def packed_mask() -> Tensor:
    """Two texts of 4 and 5 tokens in one row: the past within each, [1, 9, 9]."""
    text = torch.tensor([0] * 4 + [1] * 5)
    return ((text[:, None] == text[None, :]) & torch.ones(9, 9).tril().bool())[None]


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.float32])
@pytest.mark.parametrize("rank", [3, 4])
def test_full_masks_separate_packed_texts(
    rank: int, dtype: torch.dtype, attn: str, gpt2_pair
) -> None:
    scratch, _ = gpt2_pair(attn=attn)
    ids = torch.randint(3, 61, (1, 9))
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    mask = packed_mask().to(dtype)
    mask = mask if rank == 3 else mask[:, None]
    together = scratch(ids, attention_mask=mask, position_ids=positions).logits
    apart = torch.cat([scratch(part).logits for part in (ids[:, :4], ids[:, 4:])], dim=1)
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_a_full_mask_is_the_whole_truth(attn: str, gpt2_pair) -> None:
    """As in transformers: time is not put on top of it, so one of ones shows the future."""
    pair = gpt2_pair(attn=attn)
    ids = torch.randint(3, 61, (1, 9))
    everything = torch.ones(1, 1, 9, 9, dtype=torch.bool)
    additive = torch.where(packed_mask()[:, None], 0.0, torch.finfo(torch.float32).min)
    ours = pair[0](ids, attention_mask=everything).logits
    assert (ours - pair[0](ids).logits)[:, :-1].abs().max() > 1e-2
    for mask in (additive, torch.zeros(1, 1, 9, 9)):
        ours, theirs = (m(ids, attention_mask=mask).logits for m in pair)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mask", [torch.ones(2, 8), torch.ones(1, 9), torch.ones(2, 1, 9, 8)])
def test_masks_of_another_size_are_refused(mask: Tensor, tiny_gpt2) -> None:
    model = ScratchGPT2Model(tiny_gpt2())
    with pytest.raises(ValueError, match="attention_mask is "):
        model(torch.randint(3, 61, (2, 9)), attention_mask=mask)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_rows_without_any_token_stay_finite_and_touch_no_other(attn: str, gpt2_pair, texts) -> None:
    scratch, _ = gpt2_pair(attn=attn)
    batch = texts([6, 3, 4])
    batch["attention_mask"][2] = 0
    output = scratch(**batch, labels=batch["input_ids"])
    output.loss.backward()
    assert torch.isfinite(output.logits).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in scratch.parameters())
    alone = scratch(**{name: tensor[:2] for name, tensor in batch.items()})
    torch.testing.assert_close(output.logits[:2], alone.logits, atol=1e-5, rtol=1e-5)


def check_maps(maps: tuple[Tensor, ...], mask: Tensor, queries: int) -> None:
    """Rows sum to 1 and are exactly 0 for the future and for padding."""
    keys = mask.shape[1]
    visible = torch.ones(keys, keys).tril()[-queries:].bool() & mask.bool()[:, None, None, :]
    seeing = mask.bool()[:, None, -queries:]
    assert len(maps) == 2
    for weights in maps:
        assert weights.shape == (mask.shape[0], 4, queries, keys)
        assert (weights.masked_fill(visible, 0)[seeing.expand(-1, 4, -1)] == 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("lengths", [[7, 7], [7, 4]], ids=["full", "padded"])
def test_attention_maps_at_once_and_with_a_cache(
    lengths: list[int], attn: str, gpt2_pair, texts
) -> None:
    scratch, reference = gpt2_pair(attn=attn)
    reference.set_attn_implementation("eager")
    batch = texts(lengths)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    given = mask if min(lengths) < 7 else None
    with torch.no_grad():
        plain = scratch(ids, attention_mask=given)
        asked = scratch(ids, attention_mask=given, output_attentions=True)
        theirs = reference(ids, attention_mask=given, output_attentions=True)
        cache = scratch(ids[:, :4], attention_mask=mask[:, :4]).cache
        several = scratch(ids[:, 4:6], cache, mask[:, :6], output_attentions=True)
        one = scratch(ids[:, 6:], several.cache, mask, output_attentions=True)
    assert plain.attentions is None
    torch.testing.assert_close(plain.logits, asked.logits, atol=1e-6, rtol=0)
    check_maps(asked.attentions, mask, 7)
    check_maps(several.attentions, mask[:, :6], 2)
    check_maps(one.attentions, mask, 1)
    real = mask.bool()[:, None].expand(-1, 4, -1)
    for layer in range(2):
        whole = asked.attentions[layer]
        expected = theirs.attentions[layer]
        torch.testing.assert_close(whole[real], expected[real], atol=1e-5, rtol=0)
        torch.testing.assert_close(
            several.attentions[layer], whole[:, :, 4:6, :6], atol=1e-5, rtol=0
        )
        torch.testing.assert_close(one.attentions[layer], whole[:, :, 6:], atol=1e-5, rtol=0)


def test_attention_maps_while_generating(gpt2_pair, texts) -> None:
    batch = texts([5, 3])
    options = {"max_new_tokens": 4, "eos_token_id": None, "return_dict_in_generate": True}
    ours, theirs = (
        model.generate(**batch, output_attentions=True, **options).attentions
        for model in gpt2_pair(attn="eager")
    )
    assert [maps[0].shape[-1] for maps in ours] == [5, 6, 7, 8]
    for own_maps, expected_maps in zip(ours[1:], theirs[1:], strict=True):
        torch.testing.assert_close(own_maps, expected_maps, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="flex attention needs a C++ compiler")
def test_flex_attention_equals_eager_and_gives_its_maps(gpt2_pair, texts) -> None:
    scratch, reference = gpt2_pair(n_embd=64)  # the kernel wants heads of at least 16
    scratch.set_attn_implementation("flex_attention")
    reference.set_attn_implementation("eager")
    batch = texts([9, 5], "right")
    with torch.no_grad():
        ours = scratch(**batch, output_attentions=True)
        theirs = reference(**batch, output_attentions=True)
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=1e-5)
    for own, expected in zip(ours.attentions, theirs.attentions, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)

"""Who may attend to whom: what callers pass as `attention_mask` and what attention makes of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_mask
from transformers import Cache, PreTrainedConfig
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

MASK_TENSOR_IMPLEMENTATIONS = ("sdpa", "eager", "scratch")
"""Attention implementations whose mask is a tensor [batch, 1 or heads, queries, keys]."""


def bidirectional_mask(
    config: PreTrainedConfig,
    hidden_states: Tensor,
    attention_mask: Tensor | None,
    context: Tensor | None = None,
) -> Any:
    """The mask of an encoder or of cross-attention, as the configured implementation takes it.

    Args:
        config: names the attention implementation.
        hidden_states: the queries [batch, length, hidden_size]; gives sizes, dtype and device.
        context: what is attended to [batch, keys, hidden_size]; None: `hidden_states` itself.
        attention_mask: None (everything is seen) or one of

            - [batch, keys], any dtype: zero hides that position from every query (padding);
            - [batch, length, keys], any dtype: zero hides key k from query q (blocks);
            - [batch, 1 or heads, length, keys]: the same if boolean or integer. Floats follow
              transformers' convention, they are *added* to the scores (0 sees, very negative
              hides); a float mask of zeros and ones is taken for what it must have meant.

    Raises:
        ValueError: for a shape that does not belong to the input, a float mask with positive
            values that cannot be added, or a full mask under an implementation that has none.
    """
    keys = hidden_states.shape[1] if context is None else context.shape[1]
    if attention_mask is None or attention_mask.ndim == 2:
        _check_padding_mask(attention_mask, hidden_states.shape[0], keys)
        return create_bidirectional_mask(
            config=config,
            inputs_embeds=hidden_states,
            attention_mask=attention_mask,
            encoder_hidden_states=context,
        )
    return full_mask(config, attention_mask, hidden_states, keys)


def causal_mask(
    config: PreTrainedConfig,
    hidden_states: Tensor,
    attention_mask: Any,
    cache: Cache | None = None,
    position_ids: Tensor | None = None,
) -> Any:
    """The mask of a decoder: every position sees itself and those before it.

    Args:
        config: names the attention implementation.
        hidden_states: the queries [batch, length, hidden_size]: with a cache, the new tokens only.
        attention_mask: None or [batch, keys], any dtype: zero hides that position from every
            query (padding); keys are those in the cache and the new ones. A 3-D or 4-D mask as in
            `bidirectional_mask` is the whole truth, as in transformers: the order of time is not
            put on top of it. `generate` passes such masks for caches of a fixed size.
        cache: what has been seen before.
        position_ids: [1 or batch, length]; where they start again in a batch without mask and
            cache, a new text starts that does not see those before it.

    Raises:
        ValueError: as `bidirectional_mask`.
    """
    if attention_mask is None or (isinstance(attention_mask, Tensor) and attention_mask.ndim == 2):
        length, past = hidden_states.shape[1], 0 if cache is None else cache.get_seq_length()
        # A compiled model has a past that is a tensor: looking at it would break its graph.
        if not isinstance(past, Tensor):
            _check_padding_mask(attention_mask, hidden_states.shape[0], past + length)
        return create_causal_mask(
            config=config,
            inputs_embeds=hidden_states,
            attention_mask=attention_mask,
            cache=cache,
            position_ids=position_ids,
        )
    if isinstance(attention_mask, BlockMask):
        return attention_mask
    keys = hidden_states.shape[1]
    if cache is not None:
        keys, _ = cache.get_mask_sizes(hidden_states.shape[1], 0)
    return full_mask(config, attention_mask, hidden_states, keys)


def _check_padding_mask(attention_mask: Tensor | None, batch: int, keys: int) -> None:
    if attention_mask is not None and attention_mask.shape != (batch, keys):
        raise ValueError(
            f"attention_mask is {list(attention_mask.shape)} but the input is "
            f"{[batch, keys]} (batch, length): they must be equal."
        )


def full_mask(
    config: PreTrainedConfig, attention_mask: Tensor, hidden_states: Tensor, keys: int
) -> Tensor:
    """A 3-D or 4-D mask as [batch, 1 or heads, length, keys], boolean or additive.

    Raises:
        ValueError: as `bidirectional_mask`.
    """
    implementation = config._attn_implementation
    if implementation not in MASK_TENSOR_IMPLEMENTATIONS:
        raise ValueError(
            f"attn_implementation {implementation!r} takes masks of shape [batch, length] only, "
            f"not {list(attention_mask.shape)}: use one of "
            f"{', '.join(MASK_TENSOR_IMPLEMENTATIONS)}."
        )
    attention_mask = attention_mask.to(hidden_states.device)
    mask = attention_mask.unsqueeze(1) if attention_mask.ndim == 3 else attention_mask
    batch, length = hidden_states.shape[:2]
    fits = mask.ndim == 4 and mask.shape[0] in (1, batch) and mask.shape[-1] == keys
    if not fits or mask.shape[-2] not in (1, length):
        raise ValueError(
            f"attention_mask is {list(attention_mask.shape)}; expected [batch, length], "
            f"[batch, length, length] or [batch, 1 or heads, length, length] "
            f"with batch {batch} and length {length}{f' ({keys} keys)' if keys != length else ''}."
        )
    if not mask.is_floating_point():
        return mask.bool()
    # Looking at values would break a compiled model's graph: there, floats are always added.
    if attention_mask.ndim == 4 and (torch.compiler.is_compiling() or not (mask > 0).any()):
        return mask.to(hidden_states.dtype)
    if ((mask == 0) | (mask == 1)).all():
        return mask.bool()
    raise ValueError(
        "attention_mask holds floats other than 0 and 1, of which some are positive or the mask is "
        "3-D: it can neither select positions nor be added to the scores. Pass a boolean mask "
        "(True = may be attended to), or a 4-D one of 0 and large negative numbers."
    )


def hide_masked_scores(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores [batch, heads, queries, keys] with those of hidden keys made irrelevant.

    The most negative *finite* number of the dtype, as `-inf` would turn a row without any visible
    key into NaN and -1e9 does not exist in float16.
    """
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask


def to_score_mask(
    mask: Any, query: Tensor, key: Tensor | None = None, is_causal: bool = False
) -> Tensor | None:
    """Any implementation's mask as one that `hide_masked_scores` understands.

    Args:
        mask: None, a 4-D tensor, flash attention's [batch, keys] or flex attention's BlockMask.
        query: [batch, heads, queries, head_dim].
        key: [batch, heads, keys, head_dim]; needed for `is_causal`.
        is_causal: whether a kernel left to itself hides the future: it does where there is no
            mask, or one of padding only, and more than one query.
    """
    if isinstance(mask, BlockMask):
        return create_mask(mask.mask_mod, query.shape[0], 1, *mask.seq_lengths, query.device.type)
    if mask is not None and mask.ndim == 4:
        return mask
    padding = None if mask is None else mask.bool()[:, None, None, :]
    if not is_causal or key is None or query.shape[2] == 1:
        return padding
    past = key.shape[2] - query.shape[2]
    order = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
    order = order.tril(diagonal=past)[None, None]
    return order if padding is None else order & padding

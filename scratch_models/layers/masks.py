"""Who may attend to whom: what callers pass as `attention_mask` and what attention makes of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_mask
from transformers import PreTrainedConfig
from transformers.masking_utils import create_bidirectional_mask

MASK_TENSOR_IMPLEMENTATIONS = ("sdpa", "eager", "scratch")
"""Attention implementations whose mask is a tensor [batch, 1 or heads, queries, keys]."""


def bidirectional_mask(
    config: PreTrainedConfig, hidden_states: Tensor, attention_mask: Tensor | None
) -> Any:
    """The mask of an encoder, in the form the configured attention implementation takes.

    Args:
        config: names the attention implementation.
        hidden_states: [batch, length, hidden_size]; gives sizes, dtype and device.
        attention_mask: None (everything is seen) or one of

            - [batch, length], any dtype: zero hides that position from every query (padding);
            - [batch, length, length], any dtype: zero hides key k from query q (blocks);
            - [batch, 1 or heads, length, length]: the same if boolean or integer. Floats follow
              transformers' convention, they are *added* to the scores (0 sees, very negative
              hides); a float mask of zeros and ones is taken for what it must have meant.

    Raises:
        ValueError: for a shape that does not belong to the input, a float mask with positive
            values that cannot be added, or a full mask under an implementation that has none.
    """
    if attention_mask is None or attention_mask.ndim == 2:
        if attention_mask is not None and attention_mask.shape != hidden_states.shape[:2]:
            raise ValueError(
                f"attention_mask is {list(attention_mask.shape)} but the input is "
                f"{list(hidden_states.shape[:2])} (batch, length): they must be equal."
            )
        return create_bidirectional_mask(
            config=config, inputs_embeds=hidden_states, attention_mask=attention_mask
        )
    implementation = config._attn_implementation
    if implementation not in MASK_TENSOR_IMPLEMENTATIONS:
        raise ValueError(
            f"attn_implementation {implementation!r} takes masks of shape [batch, length] only, "
            f"not {list(attention_mask.shape)}: use one of "
            f"{', '.join(MASK_TENSOR_IMPLEMENTATIONS)}."
        )
    return full_mask(attention_mask.to(hidden_states.device), hidden_states)


def full_mask(attention_mask: Tensor, hidden_states: Tensor) -> Tensor:
    """A 3-D or 4-D mask as [batch, 1 or heads, length, length], boolean or additive."""
    mask = attention_mask.unsqueeze(1) if attention_mask.ndim == 3 else attention_mask
    batch, length = hidden_states.shape[:2]
    fits = mask.ndim == 4 and mask.shape[0] in (1, batch) and mask.shape[-1] == length
    if not fits or mask.shape[-2] not in (1, length):
        raise ValueError(
            f"attention_mask is {list(attention_mask.shape)}; expected [batch, length], "
            f"[batch, length, length] or [batch, 1 or heads, length, length] "
            f"with batch {batch} and length {length}."
        )
    if not mask.is_floating_point():
        return mask.bool()
    if attention_mask.ndim == 4 and not (mask > 0).any():
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


def to_score_mask(mask: Any, query: Tensor) -> Tensor | None:
    """Any implementation's mask as one that `hide_masked_scores` understands.

    Args:
        mask: None, a 4-D tensor, flash attention's [batch, keys] or flex attention's BlockMask.
        query: [batch, heads, queries, head_dim].
    """
    if isinstance(mask, BlockMask):
        return create_mask(mask.mask_mod, query.shape[0], 1, *mask.seq_lengths, query.device.type)
    if mask is not None and mask.ndim == 2:
        return mask.bool()[:, None, None, :]
    return mask

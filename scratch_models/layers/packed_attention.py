"""Attention within each of several texts that stand in one row, and never between them.

The same numbers as attention over the padded batch gives its real tokens, by one of three ways:
a loop over the texts (CPU: the fastest there, and it works with every implementation), a kernel for
sequences of different lengths (CUDA, half precision), or padding put back for the attention alone.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scratch_models.layers.masks import to_score_mask
from scratch_models.layers.packing import PackedSequences

logger = logging.getLogger(__name__)

Attention = Callable[..., tuple[Tensor, Tensor | None]]
"""An entry of transformers' attention interface."""


def packed_attention(
    attention: Attention,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: PackedSequences,
    *,
    scaling: float,
    dropout: float = 0.0,
    needs_order: bool = False,
    **kwargs: Any,
) -> Tensor:
    """Every text attends to itself; a decoder's (`module.is_causal`) to its own past.

    Args:
        attention: computes one text, called as transformers calls it.
        module: handed to it.
        query: [1, heads, queries of all texts, head_dim].
        key: [1, heads, keys of all texts, head_dim]; value likewise.
        packed: where one text ends and the next begins.
        scaling: the factor of the scores.
        dropout: on the attention weights.
        needs_order: `attention` hides the future of a decoder only where a mask tells it to.
        **kwargs: handed to `attention`.

    Returns:
        [1, queries of all texts, heads, head_dim].
    """
    if query.is_cuda:
        if dropout == 0.0 and has_varlen_kernel(query.dtype, query.shape[-1]):
            return varlen_attention(module, query, key, value, packed, scaling)
        return padded_inside(module, query, key, value, packed, scaling, dropout)
    return loop_over_texts(
        attention, module, query, key, value, packed,
        scaling=scaling, dropout=dropout, needs_order=needs_order, **kwargs,
    )  # fmt: skip


def loop_over_texts(
    attention: Attention,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: PackedSequences,
    *,
    needs_order: bool = False,
    **kwargs: Any,
) -> Tensor:
    """One text after the other; arguments and result as `packed_attention`."""
    parts = []
    for q, k, v in zip(
        query.split(packed.queries, dim=2),
        key.split(packed.keys, dim=2),
        value.split(packed.keys, dim=2),
        strict=True,
    ):
        if q.shape[2]:
            mask = to_score_mask(None, q, k, is_causal=True) if needs_order else None
            found, _ = attention(module, q, k, v, mask, **kwargs)
            parts.append(found)
    if not parts:  # a batch of empty texts
        return query.transpose(1, 2)
    return torch.cat(parts, dim=1)


def varlen_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: PackedSequences,
    scaling: float,
) -> Tensor:
    """The kernel of `torch.nn.attention.varlen`; arguments and result as `packed_attention`."""
    from torch.nn.attention.varlen import varlen_attn

    causal = getattr(module, "is_causal", False)
    query, key, value = (heads[0].transpose(0, 1).contiguous() for heads in (query, key, value))
    mixed: Any = varlen_attn(
        query,
        key,
        value,
        _boundaries(packed, packed.queries, query.device),
        _boundaries(packed, packed.keys, query.device),
        max(packed.queries),
        max(packed.keys),
        scale=scaling,
        window_size=(-1, 0) if causal else (-1, -1),
    )
    return mixed[None]


def padded_inside(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: PackedSequences,
    scaling: float,
    dropout: float,
) -> Tensor:
    """One padded SDPA for all texts; arguments and result as `packed_attention`."""
    query_places, key_places = (
        _places(packed, lengths, query.device) for lengths in (packed.queries, packed.keys)
    )
    batch, longest = len(packed.keys), max(packed.keys, default=0)
    queries = max(packed.queries, default=0)

    def padded(heads: Tensor, places: tuple[Tensor, Tensor], length: int) -> Tensor:
        filled = heads.new_zeros(batch, length, heads.shape[1], heads.shape[3])
        return filled.index_put(places, heads[0].transpose(0, 1)).transpose(1, 2)

    lengths = torch.tensor(packed.keys, device=query.device)
    visible = torch.arange(longest, device=query.device)[None] < lengths[:, None]
    mask = visible[:, None, None, :]
    if getattr(module, "is_causal", False):
        order = torch.ones(queries, longest, dtype=torch.bool, device=query.device).tril()
        mask = mask & order
    mixed = F.scaled_dot_product_attention(
        padded(query, query_places, queries),
        padded(key, key_places, longest),
        padded(value, key_places, longest),
        attn_mask=mask,
        dropout_p=dropout,
        scale=scaling,
    )
    return mixed.transpose(1, 2)[query_places][None]


def packed_weights(
    query: Tensor,
    key: Tensor,
    packed: PackedSequences,
    weigh: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """The attention weights of every text, padded: [batch, heads, queries, keys], zeros elsewhere.

    Args:
        query: [1, heads, queries of all texts, head_dim].
        key: [1, heads, keys of all texts, head_dim].
        packed: where one text ends and the next begins, and where each token stands when padded.
        weigh: (query, key) of one text -> its weights [1, heads, queries, keys].
    """
    batch, length = packed.shape
    weights = query.new_zeros(batch, query.shape[1], length, length)
    pairs = zip(query.split(packed.queries, dim=2), key.split(packed.keys, dim=2), strict=True)
    for row, ((q, k), places) in enumerate(zip(pairs, _columns(packed), strict=True)):
        if q.shape[2]:
            asked = places[: q.shape[2]].to(query.device)
            seen = places.to(query.device)
            weights[row, :, asked[:, None], seen[None]] = weigh(q, k)[0]
    return weights


def _columns(packed: PackedSequences) -> list[Tensor]:
    """For every text, the places of its tokens in its padded row."""
    if packed.places is None:
        return [torch.arange(n) for n in packed.keys]
    return [places % packed.shape[1] for places in packed.places.cpu().split(packed.keys)]


def _places(
    packed: PackedSequences, lengths: tuple[int, ...], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Row and column of every token where texts are padded on the right."""

    def find() -> tuple[Tensor, Tensor]:
        counts = torch.tensor(lengths, device=device)
        rows = torch.repeat_interleave(torch.arange(len(lengths), device=device), counts)
        starts = (counts.cumsum(0) - counts)[rows]
        return rows, torch.arange(len(rows), device=device) - starts

    return packed.keep(("places", lengths, device), find)


def _boundaries(packed: PackedSequences, lengths: tuple[int, ...], device: torch.device) -> Tensor:
    """Where each text begins, and where the last one ends."""

    def find() -> Tensor:
        return torch.tensor((0, *lengths), device=device).cumsum(0).to(torch.int32)

    return packed.keep(("boundaries", lengths, device), find)


@functools.cache
def has_varlen_kernel(dtype: torch.dtype, head_dim: int) -> bool:
    """Whether this GPU and torch have the kernel; tried once, said once where it is missing."""
    if dtype not in (torch.float16, torch.bfloat16):
        return False
    try:
        from torch.nn.attention.varlen import varlen_attn

        heads = torch.zeros(1, 1, head_dim, dtype=dtype, device="cuda")
        ends = torch.tensor([0, 1], dtype=torch.int32, device="cuda")
        varlen_attn(heads, heads, heads, ends, ends, 1, 1)
    except (ImportError, RuntimeError) as error:
        logger.warning("no kernel for packed attention here (%s): padding is used inside", error)
        return False
    return True

"""Attention alone over texts of different lengths: every way there is on this device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from scratch_models.layers.packed_attention import (
    has_varlen_kernel,
    loop_over_texts,
    padded_inside,
    varlen_attention,
)
from scratch_models.layers.packing import PackedSequences
from toolkit.bench.agreement import agree
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.settings import BenchSettings
from toolkit.bench.texts import count_tokens, random_batches

HEADS, HEAD_DIM = 12, 64
PADDED, LOOP, INSIDE, KERNEL = (
    "padded, with a mask", "loop over texts", "padded inside", "varlen kernel",
)  # fmt: skip
TOLERANCES = {"fp32": 1e-5, "bf16": 0.03}

Way = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys, values [1, heads, tokens, head_dim] -> [1, tokens, heads, head_dim]."""


def cases(settings: BenchSettings) -> list[Case]:
    """One."""
    [lengths] = random_batches(1)
    packed = PackedSequences.of_lengths(lengths.tolist(), int(lengths.sum()))
    real, padded = count_tokens([lengths])
    device, dtype = torch.device(settings.device), settings.dtype
    module: Any = SimpleNamespace(is_causal=False, training=False)
    scale = HEAD_DIM**-0.5
    ways: dict[str, Way] = {
        PADDED: partial(padded_with_a_mask, lengths=torch.from_numpy(lengths), scale=scale),
        INSIDE: lambda q, k, v: padded_inside(module, q, k, v, packed, scale, 0.0),
        LOOP: lambda q, k, v: loop_over_texts(sdpa, module, q, k, v, packed, scaling=scale),
    }
    ours = LOOP
    if device.type == "cuda":
        ours = INSIDE
        if has_varlen_kernel(dtype, HEAD_DIM):
            ours = KERNEL
            ways[KERNEL] = lambda q, k, v: varlen_attention(module, q, k, v, packed, scale)

    def program(way: Way, _: Path) -> Program:
        generator = torch.Generator().manual_seed(0)
        heads = torch.randn(3, 1, HEADS, real, HEAD_DIM, generator=generator)
        query, key, value = heads.to(device, dtype)

        def run() -> list[Tensor]:
            with torch.inference_mode():
                for _ in range(9):  # of which each takes little time
                    way(query, key, value)
                return [way(query, key, value).float().cpu()]

        return run

    return [
        Case(
            name="packed-attention",
            task=f"attention of {HEADS} heads over {len(lengths)} texts, padded/real "
            f"{padded / real:.2f}, ten times",
            sides={
                name: Side(partial(program, way), padded if name in (PADDED, INSIDE) else real)
                for name, way in ways.items()
            },
            ours=ours,
            prepare=lambda _: None,
            check=lambda results, _: agree(
                results, ours, "outputs of real tokens", TOLERANCES[settings.precision]
            ),
            rows=len(lengths),
            units=real,
            note=f"Linear layers are not in it. Models here take {ours!r}.",
        )
    ]


def sdpa(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """In the form of transformers' attention interface."""
    mixed = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=kwargs["scaling"]
    )
    return mixed.transpose(1, 2), None


def padded_with_a_mask(
    query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scale: float
) -> Tensor:
    """What a padded model does; its batch is made and taken apart outside of what it costs there.

    (Here within, on all sides but the loop's and the kernel's.)
    """
    longest = int(lengths.max())
    padded_query, padded_key, padded_value = (
        torch.nn.utils.rnn.pad_sequence(
            list(heads[0].transpose(0, 1).split(lengths.tolist())), batch_first=True
        ).transpose(1, 2)
        for heads in (query, key, value)
    )
    visible = (torch.arange(longest)[None] < lengths[:, None]).to(query.device)
    mixed = F.scaled_dot_product_attention(
        padded_query, padded_key, padded_value, attn_mask=visible[:, None, None], scale=scale
    )
    return mixed.transpose(1, 2)[visible][None]

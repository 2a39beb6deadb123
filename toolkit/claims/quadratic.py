"""Claim 6: the cost of self-attention grows with the square of the length."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import LayerNorm
from torch.nn import functional as F

from scratch_models.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.stack import EncoderLayer, post_norm
from toolkit.bench.interleaved import run_once, time_in_turn
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.claims.exponents import Exponent, fit_exponent, slope
from toolkit.claims.points import Point, verdict_of
from toolkit.compute import FlopCounter
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Cell, Figure, Paragraph, Table
from toolkit.report.wording import operations

WIDTH, HEADS = 128, 2
NEAR = 0.2
"""An exponent is called 2 where its whole interval lies nearer to 2 than this."""
ATTENTION, FUSED, FEED_FORWARD, LAYER = (
    "attention, written out", "attention, fused kernel", "feed-forward part", "whole layer",
)  # fmt: skip
_BYTES = 4  # of a float32
_LEAST_TOKENS = 2048  # in one timed run: short lengths are run several times


@dataclass(frozen=True)
class Sizes:
    """Lengths in tokens; the exponent is fitted on the `fitted` longest."""

    lengths: Sequence[int]
    fitted: int
    rounds: int


# The longest have scores of less than 32 MiB: larger blocks the C library takes from the system and
# gives back each time, and what is measured is then the making of pages.
FULL = Sizes((64, 128, 256, 512, 724, 1024, 1448, 1792), 5, 31)
QUICK = Sizes((16, 32, 64, 128), 2, 3)


def parts(length: int, generator: torch.Generator) -> dict[str, Callable[[], Tensor]]:
    """What is timed at a length, on random float32 inputs of one text, without gradients."""
    states = torch.randn(1, length, WIDTH, generator=generator)
    heads = torch.randn(3, 1, HEADS, length, WIDTH // HEADS, generator=generator)
    query, key, value = heads.unbind()
    feed_forward = FeedForward(WIDTH, 4 * WIDTH, F.relu)
    layer = EncoderLayer(
        attention=MultiHeadAttention(WIDTH, HEADS),
        attention_norm=LayerNorm(WIDTH),
        feed_forward=feed_forward,
        feed_forward_norm=LayerNorm(WIDTH),
        dropout=0.0,
        residual=post_norm,
    ).eval()
    return {
        ATTENTION: lambda: scaled_dot_product_attention(query, key, value)[0],
        FUSED: lambda: F.scaled_dot_product_attention(query, key, value),
        FEED_FORWARD: lambda: feed_forward(states),
        LAYER: lambda: layer(states),
    }


def count(program: Callable[[], Tensor]) -> int:
    """Floating point operations of products, a multiplication and an addition being two."""
    with FlopCounter() as counter:
        program()
    if counter.flops is None:
        raise RuntimeError(f"no count of operations for {', '.join(counter.unknown)}")
    return counter.flops


def crossing(
    sizes: Sequence[float], rising: Sequence[float], other: Sequence[float]
) -> float | None:
    """The first size from which `rising` costs more than `other`, by lines in logarithms.

    None where it never does, or does from the smallest size on.
    """
    gaps = [math.log(a / b) for a, b in zip(rising, other, strict=True)]
    for (left, low), (right, high) in pairwise(zip(sizes, gaps, strict=True)):
        if low < 0 <= high:
            share = -low / (high - low)
            return float(math.exp(math.log(left) + share * math.log(right / left)))
    return None


def near_two(exponent: Exponent) -> Point:
    """Whether an exponent is 2, by its interval and `NEAR`."""
    low, high = exponent.interval.low, exponent.interval.high
    if low >= 2 - NEAR and high <= 2 + NEAR:
        return Point.FOR
    return Point.AGAINST if high < 2 - NEAR or low > 2 + NEAR else Point.OPEN


def decide(counted: float, written_out: Exponent, fused: Exponent) -> Verdict:
    """By the rule of the claim, from the exponents of attention alone."""
    if abs(counted - 2) > 1e-6:
        return Verdict.FAILS
    return verdict_of([near_two(written_out), near_two(fused)])


def measure(measuring: Measuring) -> Finding:
    """Times in turn, operations counted."""
    chosen = QUICK if measuring.quick else FULL
    torch.manual_seed(measuring.seed)
    generator = torch.Generator().manual_seed(measuring.seed)
    with torch.no_grad():
        programs = {length: parts(length, generator) for length in chosen.lengths}
        flops = {
            name: [count(programs[length][name]) for length in chosen.lengths]
            for name in programs[chosen.lengths[0]]
        }
        seconds = _times(programs, chosen, measuring.advance)
    fitted = chosen.lengths[-chosen.fitted :]
    exponents = {
        name: fit_exponent(fitted, [one[-chosen.fitted :] for one in rounds], measuring.seed)
        for name, rounds in seconds.items()
    }
    counted = {name: slope(fitted, values[-chosen.fitted :]) for name, values in flops.items()}
    medians = {
        name: [statistics.median(column) for column in zip(*rounds, strict=True)]
        for name, rounds in seconds.items()
    }
    crossings = {
        "counted": crossing(chosen.lengths, flops[ATTENTION], flops[FEED_FORWARD]),
        "measured": crossing(chosen.lengths, medians[ATTENTION], medians[FEED_FORWARD]),
    }
    return Finding(
        verdict=decide(counted[ATTENTION], exponents[ATTENTION], exponents[FUSED]),
        sentence=_sentence(fitted, exponents, counted, crossings),
        setting={
            "attention": f"{HEADS} heads of {WIDTH // HEADS}, softmax(QKᵀ/√d_k)V alone, without "
            "its projections",
            "layer": f"post-norm encoder layer, width {WIDTH}, feed-forward {4 * WIDTH}, ReLU, "
            "with the written-out attention",
            "input": "one text, float32, without gradients",
            "lengths": f"{', '.join(map(str, chosen.lengths))}; exponents from {fitted[0]} on",
            "rounds": f"{chosen.rounds}, all parts and lengths in turn, medians",
        },
        blocks=_blocks(chosen.lengths, medians, flops, exponents, counted),
        data={
            "lengths": list(chosen.lengths),
            "fitted_from": fitted[0],
            "seconds": {name: [list(one) for one in rounds] for name, rounds in seconds.items()},
            "flops": flops,
            "exponent": {name: _exponent_values(one) for name, one in exponents.items()},
            "exponent_counted": counted,
            "attention_passes_feed_forward_at": crossings,
            "bytes_of_scores": [score_bytes(length) for length in chosen.lengths],
        },
        number=f"exponent of the time {exponents[ATTENTION].written()} written out, "
        f"{exponents[FUSED].written()} fused; of the operations {counted[ATTENTION]:.2f}",
    )


def score_bytes(length: int) -> int:
    """Of one matrix of scores for every head, in float32, of one text."""
    return HEADS * length**2 * _BYTES


def _times(
    programs: Mapping[int, Mapping[str, Callable[[], Tensor]]],
    chosen: Sizes,
    advance: Callable[[float, str], None],
) -> dict[str, list[list[float]]]:
    """Seconds of one run [rounds, lengths] by part."""
    repeats = {length: max(1, _LEAST_TOKENS // length) for length in programs}
    contenders = {
        f"{name} {length}": partial(_repeat, program, repeats[length])
        for length, by_name in programs.items()
        for name, program in by_name.items()
    }
    run_once(contenders)
    done, total = 0, chosen.rounds * len(contenders)

    def ran(runs: int) -> None:
        nonlocal done
        done += runs
        advance(done / total, f"round {min(done * chosen.rounds // total + 1, chosen.rounds)}")

    found = time_in_turn(contenders, chosen.rounds, ran)
    names = programs[chosen.lengths[0]]
    return {
        name: [
            [found[f"{name} {length}"][place] / repeats[length] for length in programs]
            for place in range(chosen.rounds)
        ]
        for name in names
    }


def _repeat(program: Callable[[], Tensor], times: int) -> None:
    for _ in range(times):
        program()


def _sentence(
    fitted: Sequence[int],
    exponents: Mapping[str, Exponent],
    counted: Mapping[str, float],
    crossings: Mapping[str, float | None],
) -> str:
    passes = {
        name: "at none of these lengths" if at is None else f"from {at:,.0f} tokens on"
        for name, at in crossings.items()
    }
    return (
        f"From {fitted[0]:,} to {fitted[-1]:,} tokens the time of attention alone grows with the "
        f"length to the power {exponents[ATTENTION].written()} written out and "
        f"{exponents[FUSED].written()} as a fused kernel (operations: "
        f"{counted[ATTENTION]:.2f}), that of the whole layer with {exponents[LAYER].written()} "
        f"(operations: {counted[LAYER]:.2f}): the rest of the layer is linear. Attention costs "
        f"more than the feed-forward part {passes['counted']} in operations, "
        f"{passes['measured']} in time."
    )


def _exponent_values(one: Exponent) -> dict[str, Any]:
    interval = one.interval
    return {
        "value": one.value, "low": interval.low, "high": interval.high, "method": interval.method,
    }  # fmt: skip


def _blocks(
    lengths: Sequence[int],
    medians: Mapping[str, Sequence[float]],
    flops: Mapping[str, Sequence[int]],
    exponents: Mapping[str, Exponent],
    counted: Mapping[str, float],
) -> list[Block]:
    lines = [
        Series(name, lengths, [1000 * one for one in values]) for name, values in medians.items()
    ]
    growth: list[list[Cell | str]] = [
        [name, f"{counted[name]:.2f}", exponents[name].written()] for name in medians
    ]
    by_length: list[list[Cell | str]] = [
        [
            f"{length:,}",
            *(f"{1000 * medians[name][place]:.3g}" for name in medians),
            operations(flops[ATTENTION][place]),
            operations(flops[LAYER][place]),
            f"{score_bytes(length) / 2**20:.2g} MiB",
        ]
        for place, length in enumerate(lengths)
    ]
    return [
        Figure(
            "quadratic",
            lambda: line_plot(lines, "tokens", "milliseconds", log_x=True, log_y=True),
            "Time of attention, the feed-forward part and a whole layer against the length",
            "Medians over rounds. On these axes a square is a line twice as steep as a linear "
            "growth.",
        ),
        Table(["exponent of", "operations", "time"], growth, numeric=(1, 2)),
        Table(
            ["tokens", *(f"{name} (ms)" for name in medians), "attention counted",
             "layer counted", "scores"],
            by_length,
            numeric=range(4 + len(medians)),
        ),
        Paragraph(
            "scores: memory of the matrix of scores that the written-out attention holds (counted; "
            "it holds the weights, too). The fused kernel holds none of them whole: its memory is "
            "linear, its operations are the same.",
            "caption",
        ),
    ]  # fmt: skip


CLAIM = Claim(
    number=6,
    name="quadratic",
    statement="The cost of self-attention grows with the square of the length",
    source="Vaswani et al. 2017 (arXiv:1706.03762), table 1: O(n² · d) a layer",
    test="The time of softmax(QKᵀ/√d_k)V alone is measured at growing lengths, written out and as "
    "PyTorch's fused kernel, and the exponent fitted over the longer ones (medians, bootstrap over "
    "rounds). For the claim speak intervals wholly within "
    f"2 ± {NEAR}, of both, when the counted operations grow with the exponent 2 exactly; of one: "
    "in part. Against it speak intervals wholly outside. The whole layer is measured beside it and "
    "decides nothing.",
    measure=measure,
)

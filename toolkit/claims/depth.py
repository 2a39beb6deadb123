"""Claim 8: residual connections and LayerNorm keep deep stacks trainable."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.positions import LearnedPositions
from scratch_models.layers.stack import (
    EncoderLayer,
    EncoderStack,
    ResidualOrder,
    Sublayer,
    post_norm,
    pre_norm,
)
from toolkit.claims.claim import Claim, Finding, Measuring
from toolkit.claims.points import Point, verdict_of
from toolkit.claims.short_training import Recipe, right_answers, train
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Cell, Figure, Paragraph, Table
from toolkit.report.wording import listed, percent

TOKENS, LENGTH, WIDTH, HEADS, BATCH, TEST = 10, 8, 32, 2, 16, 256
LEARNED, NOT_LEARNED = 0.9, 0.5
"""Accuracy on new sequences: at least the first is learned, less than the second not."""
RATE, SECOND_RATE = 3e-3, 1e-3
POST, PRE, RESIDUAL, NORM, NEITHER = (
    "residual, norm after", "residual, norm before", "residual only", "norm only", "neither",
)  # fmt: skip


def residual_only(x: Tensor, sublayer: Sublayer, norm: nn.Module, dropout: nn.Module) -> Tensor:
    """x + Sublayer(x)."""
    return x + dropout(sublayer(x))


def norm_only(x: Tensor, sublayer: Sublayer, norm: nn.Module, dropout: nn.Module) -> Tensor:
    """LayerNorm(Sublayer(x))."""
    return norm(dropout(sublayer(x)))


def neither(x: Tensor, sublayer: Sublayer, norm: nn.Module, dropout: nn.Module) -> Tensor:
    """Sublayer(x)."""
    return dropout(sublayer(x))


ORDERS: dict[str, ResidualOrder] = {
    POST: post_norm, PRE: pre_norm, RESIDUAL: residual_only, NORM: norm_only, NEITHER: neither,
}  # fmt: skip


class Stack(nn.Module):
    """Token and learned position embeddings, layers, and a linear output at every token.

    A stack whose layers end with a residual sum, not with a norm, has one norm more at its end (as
    GPT-2 has, §2.3) where it has norms.
    """

    def __init__(self, depth: int, order: str) -> None:
        super().__init__()
        normalised = order not in (RESIDUAL, NEITHER)
        self.token = nn.Embedding(TOKENS, WIDTH)
        self.position = LearnedPositions(LENGTH, WIDTH)
        self.layers = EncoderStack([_layer(ORDERS[order], normalised) for _ in range(depth)])
        self.norm = nn.LayerNorm(WIDTH) if order == PRE else nn.Identity()
        self.output = nn.Linear(WIDTH, TOKENS)

    def forward(self, ids: Tensor) -> Tensor:
        """[batch, length] -> logits [batch, length, tokens]."""
        states = self.token(ids) + self.position(ids.shape[1])
        logits: Tensor = self.output(self.norm(self.layers(states)))
        return logits


def _layer(order: ResidualOrder, normalised: bool) -> EncoderLayer:
    def norm() -> nn.Module:
        return nn.LayerNorm(WIDTH) if normalised else nn.Identity()

    return EncoderLayer(
        attention=MultiHeadAttention(WIDTH, HEADS),
        attention_norm=norm(),
        feed_forward=FeedForward(WIDTH, 2 * WIDTH, F.relu),
        feed_forward_norm=norm(),
        dropout=0.0,
        residual=order,
    )


@dataclass(frozen=True)
class Trained:
    """What was found for one order at one depth, by seed.

    Attributes:
        accuracy: on new sequences.
        loss: on the same, in nats.
        gradient_ratio: norm of the first layer's gradient over that of the last one's, before
            training.
        learning_rate: with which this was reached.
    """

    accuracy: Sequence[float]
    loss: Sequence[float]
    gradient_ratio: Sequence[float]
    learning_rate: float

    @property
    def learned(self) -> Point:
        """Whether every seed learned, or none did."""
        if min(self.accuracy) >= LEARNED:
            return Point.FOR
        return Point.AGAINST if max(self.accuracy) < NOT_LEARNED else Point.OPEN


@dataclass(frozen=True)
class Sizes:
    """Depths, seeds at the shallowest and deepest, seeds between, steps."""

    depths: Sequence[int]
    seeds: int
    seeds_between: int
    steps: int


FULL, QUICK = Sizes((2, 4, 8, 16, 32), 3, 1, 100), Sizes((1, 3), 2, 1, 4)


def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A batch of random tokens and the labels: at every place the first token of the sequence."""
    return first_tokens(torch.randint(TOKENS, (BATCH, LENGTH), generator=generator))


def first_tokens(ids: Tensor) -> tuple[Tensor, Tensor]:
    """[batch, length] -> the same and its labels [batch, length]."""
    return ids, ids[:, :1].expand(-1, ids.shape[1])


def gradient_ratio(model: Stack, ids: Tensor, labels: Tensor) -> float:
    """Norm of the gradient of the first layer over that of the last one."""
    loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
    norms = []
    for layer in (model.layers[0], model.layers[-1]):
        gradients = torch.autograd.grad(loss, list(layer.parameters()), retain_graph=True)
        norms.append(float(torch.cat([one.flatten() for one in gradients]).norm()))
    return norms[0] / norms[1] if norms[1] else 0.0


def run_once(depth: int, order: str, seed: int, recipe: Recipe) -> tuple[float, float, float]:
    """Accuracy and loss on new sequences after the training, and the gradients' ratio before."""
    torch.manual_seed(seed)
    model = Stack(depth, order)
    ids, labels = first_tokens(
        torch.randint(TOKENS, (TEST, LENGTH), generator=torch.Generator().manual_seed(seed + 500))
    )
    ratio = gradient_ratio(model, ids[:BATCH], labels[:BATCH])
    train(model, draw, recipe, seed)
    right = float(right_answers(model, ids, labels, TEST).mean())
    with torch.no_grad():
        loss = float(F.cross_entropy(model(ids).flatten(0, 1), labels.flatten()))
    return right, loss if math.isfinite(loss) else math.inf, ratio


def run_cell(depth: int, order: str, seeds: Sequence[int], recipe: Recipe) -> Trained:
    """All seeds of an order at a depth."""
    accuracy, loss, ratio = zip(
        *(run_once(depth, order, seed, recipe) for seed in seeds), strict=True
    )
    return Trained(accuracy, loss, ratio, recipe.learning_rate)


def better(first: Trained, second: Trained) -> Trained:
    """The one with the higher mean accuracy, the first where they are level."""
    return second if sum(second.accuracy) > sum(first.accuracy) else first


def decide(found: Mapping[str, Mapping[int, Trained]]) -> dict[str, Point]:
    """By the rule of the claim: its three points in words.

    Args:
        found: cells by order and depth.
    """
    depths = sorted(found[NEITHER])
    shallow, deep = depths[0], depths[-1]
    without = found[NEITHER]
    fails = Point.OPEN
    if without[deep].learned is Point.FOR:
        fails = Point.AGAINST
    elif without[deep].learned is Point.AGAINST and without[shallow].learned is Point.FOR:
        fails = Point.FOR
    return {
        f"with residual and norm after, {deep} layers learn": found[POST][deep].learned,
        f"with residual and norm before, {deep} layers learn": found[PRE][deep].learned,
        f"with neither, {shallow} layers learn and {deep} do not": fails,
    }


def measure(measuring: Measuring) -> Finding:
    """Every order at every depth; what did not learn gets a second chance."""
    chosen = QUICK if measuring.quick else FULL
    recipe = Recipe(steps=chosen.steps, learning_rate=RATE, weight_decay=0.0)
    ends = (chosen.depths[0], chosen.depths[-1])
    jobs = [(order, depth) for depth in reversed(chosen.depths) for order in ORDERS]
    work = [depth * (chosen.seeds if depth in ends else chosen.seeds_between) for _, depth in jobs]
    found: dict[str, dict[int, Trained]] = {order: {} for order in ORDERS}
    for place, (order, depth) in enumerate(jobs):
        measuring.advance(sum(work[:place]) / sum(work), f"{order}, {depth} layers")
        count = chosen.seeds if depth in ends else chosen.seeds_between
        seeds = [measuring.seed_of(number) for number in range(count)]
        cell = run_cell(depth, order, seeds, recipe)
        if cell.learned is not Point.FOR:
            second = replace(recipe, learning_rate=SECOND_RATE)
            cell = better(cell, run_cell(depth, order, seeds, second))
        found[order][depth] = cell
    points = decide(found)
    return Finding(
        verdict=verdict_of(list(points.values())),
        sentence=_sentence(found, points),
        setting={
            "task": f"say at each of {LENGTH} places which of {TOKENS} random tokens stood first; "
            f"chance is {percent(1 / TOKENS, 0)}",
            "model": f"encoder layers of width {WIDTH}, {HEADS} heads, feed-forward {2 * WIDTH}, "
            "learned positions, no dropout, PyTorch's initial weights",
            "training": f"{chosen.steps} steps of {BATCH} sequences, AdamW, learning rate "
            f"{RATE:g}, a tenth of the steps to warm up, then falling to 0; gradients cut at norm "
            f"1. What did not learn in every seed was trained again with {SECOND_RATE:g}; the "
            "better of the two stands",
            "seeds": f"{chosen.seeds} at {ends[0]} and {ends[1]} layers, "
            f"{chosen.seeds_between} between; accuracy on {TEST} new sequences",
        },
        blocks=_blocks(found, points),
        data=_data(found, points),
        number=f"accuracy at {ends[1]} layers: "
        + ", ".join(f"{order} {_mean_percent(cells[ends[1]])}" for order, cells in found.items()),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_percent(cell: Trained) -> str:
    return percent(_mean(cell.accuracy), 0)


def _sentence(found: Mapping[str, Mapping[int, Trained]], points: Mapping[str, Point]) -> str:
    said = "; ".join(f"{words}: {point.value}" for words, point in points.items())
    deep = max(found[NEITHER])
    alone = listed([f"{order} {_mean_percent(found[order][deep])}" for order in (RESIDUAL, NORM)])
    return (
        f"{said[0].upper()}{said[1:]}. Accuracy at {deep} layers: "
        f"{_mean_percent(found[POST][deep])} with the norm after, "
        f"{_mean_percent(found[PRE][deep])} with it before, {_mean_percent(found[NEITHER][deep])} "
        f"with neither; one of the two alone: {alone}."
    )


def _data(
    found: Mapping[str, Mapping[int, Trained]], points: Mapping[str, Point]
) -> dict[str, Any]:
    return {
        "points": {words: point.name.lower() for words, point in points.items()},
        "cells": [
            {
                "order": order, "layers": depth, "accuracy": list(cell.accuracy),
                "loss": list(cell.loss), "gradient_ratio_before": list(cell.gradient_ratio),
                "learning_rate": cell.learning_rate, "learned": cell.learned.name.lower(),
            }
            for order, cells in found.items()
            for depth, cell in cells.items()
        ],
    }  # fmt: skip


def _blocks(found: Mapping[str, Mapping[int, Trained]], points: Mapping[str, Point]) -> list[Block]:
    depths = sorted(found[NEITHER])

    def lines(values: Callable[[Trained], Sequence[float]]) -> list[Series]:
        return [
            Series(
                order, depths, [_mean(values(cells[depth])) for depth in depths],
                [min(values(cells[depth])) for depth in depths],
                [max(values(cells[depth])) for depth in depths],
            )
            for order, cells in found.items()
        ]  # fmt: skip

    rows: list[list[Cell | str]] = [
        [order, *(_cell(found[order][depth]) for depth in depths)] for order in found
    ]
    ratios: list[list[Cell | str]] = [
        [order, *(f"{_mean(found[order][depth].gradient_ratio):.2g}" for depth in depths)]
        for order in found
    ]
    header = [f"{depth} layers" for depth in depths]
    return [
        Figure(
            "depth",
            lambda: line_plot(
                lines(lambda cell: cell.accuracy), "layers", "accuracy", log_x=True, percent=True
            ),
            "Accuracy after the same training against the number of layers, with and without "
            "residual connections and norms",
            "Means over seeds; bars go from the worst to the best seed.",
        ),
        Table(
            ["point", "found"], [[words, point.value] for words, point in points.items()],
        ),
        Table(["accuracy", *header], rows, numeric=range(1, 1 + len(depths))),
        Paragraph("In brackets the loss in nats (chance: "
                  f"{math.log(TOKENS):.2f}); * with the lower learning rate.", "caption"),
        Table(
            ["gradient, first layer / last", *header], ratios, numeric=range(1, 1 + len(depths))
        ),
        Paragraph(
            "Norm of the gradient of the first layer over that of the last one, before training.",
            "caption",
        ),
    ]  # fmt: skip


def _cell(cell: Trained) -> Cell:
    mark = "*" if cell.learning_rate == SECOND_RATE else ""
    return Cell(_mean_percent(cell) + mark, detail=f"({_mean(cell.loss):.2g})")


CLAIM = Claim(
    number=8,
    name="depth",
    statement="Residual connections and LayerNorm keep deep stacks trainable",
    source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.1; He et al. 2015 (arXiv:1512.03385) "
    "on residual connections, Xiong et al. 2020 (arXiv:2002.04745) on the place of the norm",
    test="Stacks of growing depth learn a task that a shallow one learns, all with the same number "
    f"of steps. At least {LEARNED:.0%} accuracy on new sequences in every seed is learned, less "
    f"than {NOT_LEARNED:.0%} in every seed is not. Three points: with both, the deepest stack "
    "learns with the norm after the sum (as in the paper), and with the norm before the sublayer; "
    "with neither, the shallowest learns and the deepest does not. All three: the claim holds; "
    "some: in part; all against: it does not. One of the two parts alone decides nothing.",
    measure=measure,
)

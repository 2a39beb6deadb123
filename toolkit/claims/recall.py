"""Claim 4: an RNN forgets with distance, attention does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scratch_models.layers.positions import SinusoidalPositions
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.claims.points import above, verdict_of
from toolkit.claims.sequence_models import (
    LSTMTagger,
    TransformerTagger,
    trained_size,
    width_of_size,
)
from toolkit.claims.short_training import Recipe, right_answers, train
from toolkit.ignored_label import IGNORED
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Figure, Paragraph, Table

LSTM, TRANSFORMER = "LSTM", "Transformer"
KINDS = (LSTM, TRANSFORMER)
TOKENS = 8
CHANCE = 1 / TOKENS
RATES = (3e-3, 1e-2, 3e-2)
LEARNT = 0.5
"""The accuracy at near distances from which there is something that can be forgotten."""
FORGIVEN = 0.05
"""Less than this between near and far is no forgetting."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sizes:
    """How much is trained and tested."""

    distances: int
    asked: int
    hidden_size: int
    layers: int
    heads: int
    batch: int
    steps: int
    rates: Sequence[float]
    seeds: int
    test_sequences: int

    @property
    def quarter(self) -> int:
        """The nearest so many distances are near, the farthest so many are far."""
        return self.distances // 4


FULL = Sizes(16, 8, 64, 1, 4, 32, 800, RATES, 5, 1024)
QUICK = Sizes(8, 4, 8, 1, 2, 4, 3, RATES[:2], 2, 8)


def task(
    sequences: int, distances: int, asked: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Random tokens, then questions: which token stood so many places before the end?

    Args:
        distances: tokens that are told; each can be asked for.
        asked: questions of a sequence, about different tokens in random order.

    Returns:
        Inputs and labels [sequences, distances + asked] (no label, -100, where nothing is asked),
        and the distances asked for [sequences, asked]: 1 is the last token told. The question
        after distance d is the token id TOKENS + d - 1.
    """
    told = torch.randint(TOKENS, (sequences, distances), generator=generator)
    order = torch.rand(sequences, distances, generator=generator).argsort(dim=1)
    wanted = order[:, :asked] + 1
    answers = told.gather(1, distances - wanted)
    nothing = torch.full_like(told, IGNORED)
    inputs = torch.cat([told, TOKENS + wanted - 1], dim=1)
    return inputs, torch.cat([nothing, answers], dim=1), wanted


def build(kind: str, sizes: Sizes) -> nn.Module:
    """A network of a kind; the LSTM as wide as makes it as large as the Transformer."""
    vocabulary, width = TOKENS + sizes.distances, sizes.hidden_size
    transformer = TransformerTagger(
        vocabulary, TOKENS, hidden_size=width, layers=sizes.layers, heads=sizes.heads,
        position=SinusoidalPositions(sizes.distances + sizes.asked, width), sees="past",
    )  # fmt: skip
    if kind == TRANSFORMER:
        return transformer

    def lstm(hidden_size: int) -> LSTMTagger:
        return LSTMTagger(vocabulary, TOKENS, embedding_size=width, hidden_size=hidden_size)

    return lstm(width_of_size(lstm, trained_size(transformer), widest=16 * width))


def trained(
    kind: str,
    sizes: Sizes,
    rate: float,
    seed: int,
    measuring: Measuring,
    share: tuple[float, float],
) -> nn.Module:
    """A network after its training, which is this part of the whole measurement (from, to)."""
    torch.manual_seed(seed)
    model = build(kind, sizes)
    start, end = share
    train(
        model,
        lambda generator: task(sizes.batch, sizes.distances, sizes.asked, generator)[:2],
        Recipe(sizes.steps, rate),
        seed,
        lambda done: measuring.advance(start + done * (end - start), f"{kind}, rate {rate:g}"),
    )
    return model


def accuracy_by_distance(model: nn.Module, sizes: Sizes, generator: torch.Generator) -> Floats:
    """Accuracy at the distances 1, 2, … [distances]."""
    inputs, labels, wanted = task(sizes.test_sequences, sizes.distances, sizes.asked, generator)
    right = right_answers(model, inputs, labels)[:, sizes.distances :]
    return mean_by_distance(right, wanted, sizes.distances)


def mean_by_distance(right: Tensor, wanted: Tensor, distances: int) -> Floats:
    """The share of right answers [sequences, asked] at every distance; NaN where none was asked."""
    counts = torch.bincount(wanted.flatten() - 1, minlength=distances)
    sums = torch.bincount(wanted.flatten() - 1, weights=right.flatten(), minlength=distances)
    return (sums / counts).double().numpy()


def near_and_far(accuracy: Floats, quarter: int) -> tuple[float, float]:
    """Mean accuracy over the nearest and over the farthest quarter of the distances."""
    return float(accuracy[:quarter].mean()), float(accuracy[-quarter:].mean())


def decide(near: Mapping[str, float], lost: Mapping[str, Spread]) -> Verdict:
    """The verdict by the rule of `CLAIM.test`.

    Args:
        near: mean accuracy at near distances.
        lost: that at near distances minus that at far ones, over seeds.
    """
    if min(near.values()) < LEARNT:
        return Verdict.UNDECIDED
    kept = above(-lost[TRANSFORMER].high, -lost[TRANSFORMER].low, -FORGIVEN)
    return verdict_of([above(lost[LSTM].low, lost[LSTM].high, FORGIVEN), kept])


def measure(measuring: Measuring) -> Finding:
    """Choose each network's learning rate on validation, then train it with every seed."""
    sizes = QUICK if measuring.quick else FULL
    runs = len(KINDS) * (len(sizes.rates) + sizes.seeds)
    done = 0
    rates: dict[str, float] = {}
    found: dict[str, list[Floats]] = {kind: [] for kind in KINDS}
    validation = measuring.seed + 2_000_000
    for kind in KINDS:
        tried = {}
        for rate in sizes.rates:
            # A seed of its own: what is chosen by it is tested with others.
            part = (done / runs, (done + 1) / runs)
            model = trained(kind, sizes, rate, validation, measuring, part)
            tried[rate] = _overall(model, sizes, validation + 1)
            done += 1
        rates[kind] = max(tried, key=lambda rate: tried[rate])
    for seed in map(measuring.seed_of, range(sizes.seeds)):
        for kind in KINDS:
            part = (done / runs, (done + 1) / runs)
            model = trained(kind, sizes, rates[kind], seed, measuring, part)
            generator = torch.Generator().manual_seed(seed + 1_000_000)
            found[kind].append(accuracy_by_distance(model, sizes, generator))
            done += 1
    return report(sizes, rates, found)


def _overall(model: nn.Module, sizes: Sizes, seed: int) -> float:
    accuracy = accuracy_by_distance(model, sizes, torch.Generator().manual_seed(seed))
    return float(np.nanmean(accuracy))


def report(
    sizes: Sizes, rates: Mapping[str, float], found: Mapping[str, Sequence[Floats]]
) -> Finding:
    """What was found, from the accuracy at every distance [distances] of every network."""
    pairs = {kind: [near_and_far(one, sizes.quarter) for one in found[kind]] for kind in KINDS}
    near = {kind: Spread.of([one[0] for one in pairs[kind]]) for kind in KINDS}
    far = {kind: Spread.of([one[1] for one in pairs[kind]]) for kind in KINDS}
    lost = {kind: Spread.of([a - b for a, b in pairs[kind]]) for kind in KINDS}
    quarter, last = sizes.quarter, sizes.distances
    between = {
        kind: Spread.of([float(np.nanmean(one[quarter:-quarter])) for one in found[kind]])
        for kind in KINDS
    }
    words = " and ".join(
        f"the {kind} answers {near[kind].mean:.1%} right at distances 1 to {quarter} and "
        f"{far[kind].mean:.1%} at {last - quarter + 1} to {last}, a loss of "
        f"{lost[kind].written(3, 100)} points"
        for kind in KINDS
    )
    parameters = {kind: trained_size(build(kind, sizes)) for kind in KINDS}
    return Finding(
        verdict=decide({kind: one.mean for kind, one in near.items()}, lost),
        sentence=f"At equal size and steps {words} (guessing: {CHANCE:.1%}).",
        setting={
            "task": f"{last} random tokens ({TOKENS} kinds), then {sizes.asked} questions for the "
            "token that stood so many places before their end; all distances are asked for alike "
            "in training and test",
            "Transformer": f"decoder, layers: {sizes.layers}, width {sizes.hidden_size}, "
            f"{sizes.heads} heads, sinusoidal positions, {parameters[TRANSFORMER]:,} parameters",
            "LSTM": f"1 layer of width {_lstm_width(sizes)}, embeddings {sizes.hidden_size} wide, "
            f"{parameters[LSTM]:,} parameters",
            "training": f"{sizes.steps} steps of {sizes.batch} new sequences, AdamW, for both",
            "learning rate": "chosen on validation for each of the two, with a seed of its own, "
            f"from {', '.join(f'{rate:g}' for rate in sizes.rates)}: "
            + ", ".join(f"{kind} {rate:g}" for kind, rate in rates.items()),
            "test": f"{sizes.test_sequences:,} new sequences; near is the nearest quarter of the "
            "distances, far the farthest",
            "seeds": f"{sizes.seeds}: weights and sequences; intervals are t intervals over seeds",
            "what it does not tell": "an LSTM that is trained longer, or larger, remembers farther",
        },
        blocks=_blocks(sizes, found, (near, between, far, lost)),
        data={
            "chance": CHANCE,
            "distances": list(range(1, last + 1)),
            "parameters": parameters,
            "learning_rate": dict(rates),
            **{
                kind: {
                    "near": near[kind].to_dict(),
                    "between": between[kind].to_dict(),
                    "far": far[kind].to_dict(),
                    "lost": lost[kind].to_dict(),
                    "by_seed": [_json(one) for one in found[kind]],
                }
                for kind in KINDS
            },
        },
        number=", ".join(f"{kind} loses {lost[kind].written(3, 100)} points" for kind in KINDS),
    )


def _lstm_width(sizes: Sizes) -> int:
    model = build(LSTM, sizes)
    assert isinstance(model, LSTMTagger)
    return model.lstm.hidden_size


def _json(accuracy: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in accuracy]


def _blocks(
    sizes: Sizes,
    found: Mapping[str, Sequence[Floats]],
    columns: Sequence[Mapping[str, Spread]],
) -> list[Block]:
    """`columns` are accuracies near, between and far, and what is lost from near to far."""
    places = list(range(1, sizes.distances + 1))
    series = []
    for kind in KINDS:
        spreads = [_spread(values) for values in np.stack(found[kind]).T]
        series.append(
            Series(
                kind,
                places,
                [one.mean for one in spreads],
                [max(0.0, one.low) for one in spreads],
                [min(1.0, one.high) for one in spreads],
            )
        )
    rows = [[kind, *(one[kind].written(3, 100) for one in columns)] for kind in KINDS]
    return [
        Figure(
            "recall",
            lambda: line_plot(series, "distance of the token asked for", "accuracy", percent=True),
            "Accuracy against the distance of the token that is asked for, LSTM and Transformer",
            "Distance 1 is the last token told. Bars are 95% intervals over seeds; guessing gives "
            f"{CHANCE:.1%}.",
        ),
        Table(
            ["network", "near, %", "between, %", "far, %", "near minus far, points"],
            rows,
            numeric=(1, 2, 3, 4),
        ),
        Paragraph(
            "The LSTM must have carried all tokens in its state to answer, as it does not know "
            "which will be asked for; attention looks them up. The farthest tokens are also the "
            "first ones, which an LSTM may keep better than those between.",
            "caption",
        ),
    ]


def _spread(values: Floats) -> Spread:
    """Over seeds; where a distance was not asked for with one of them (tiny tests), no bounds."""
    if np.isnan(values).any():
        return Spread(float("nan"), float("nan"), float("nan"), [])
    return Spread.of([float(value) for value in values])


CLAIM = Claim(
    number=4,
    name="recall",
    statement="An RNN forgets with distance, attention does not",
    source="Vaswani et al. 2017, “Attention Is All You Need” (arXiv:1706.03762), section 4 (length "
    "of paths between distant places, table 1); Bengio, Simard and Frasconi 1994, “Learning "
    "long-term dependencies with gradient descent is difficult”",
    test="An LSTM and a Transformer of equal size (within 2%) are trained for the same steps to "
    "name the token that stood a given number of places back, each with the learning rate that is "
    "best for it on validation. For the claim speak: the LSTM's accuracy at the nearest quarter of "
    f"the distances is more than {FORGIVEN:.0%} above that at the farthest, and the Transformer's "
    f"less than {FORGIVEN:.0%}, each with its whole 95% interval over seeds. One of the two: in "
    f"part. Where one network is below {LEARNT:.0%} at near distances, nothing was there to be "
    "forgotten and nothing can be told.",
    measure=measure,
)

"""Claim 3: sinusoidal positions extrapolate to longer sequences than learned ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from scratch_models.layers.positions import LearnedPositions, SinusoidalPositions
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.claims.points import Point, above
from toolkit.claims.sequence_models import TransformerTagger, trained_size
from toolkit.claims.short_training import Recipe, right_answers, train
from toolkit.ignored_label import IGNORED
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Figure, Paragraph, Table

SINUSOIDAL, LEARNED, NONE = "sinusoidal", "learned", "none"
KINDS = (SINUSOIDAL, LEARNED, NONE)
TOKENS = 16
OFFSET = 3
LONGER = (1.25, 1.5, 2.0, 3.0, 4.0)
"""Test lengths as multiples of the length of training."""
LEARNT = 0.9
"""The accuracy at the length of training from which a network counts as having learned the task."""
KEPT = 0.5
"""The share of its accuracy above chance that must be left beyond the length of training."""
CHANCE = 1 / TOKENS


@dataclass(frozen=True)
class Sizes:
    """How much is trained and tested."""

    length: int
    hidden_size: int
    layers: int
    heads: int
    batch: int
    recipe: Recipe
    seeds: int
    test_sequences: int

    @property
    def lengths(self) -> list[int]:
        """The length of training, then the longer ones."""
        return [self.length, *(round(self.length * times) for times in LONGER)]


FULL = Sizes(32, 64, 1, 4, 32, Recipe(400, 3e-3), 5, 256)
QUICK = Sizes(8, 16, 1, 2, 8, Recipe(5, 3e-3), 2, 4)


def task(sequences: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random tokens, and at every place the token `OFFSET` places before as its label.

    Returns:
        Inputs and labels [sequences, length]; the first `OFFSET` places have none (-100).
    """
    inputs = torch.randint(TOKENS, (sequences, length), generator=generator)
    labels = torch.full_like(inputs, IGNORED)
    labels[:, OFFSET:] = inputs[:, :-OFFSET]
    return inputs, labels


def build(kind: str, sizes: Sizes) -> TransformerTagger:
    """A network with positions of a kind, with room for the longest test."""
    longest, width = max(sizes.lengths), sizes.hidden_size
    position: nn.Module | None = None
    if kind == SINUSOIDAL:
        position = SinusoidalPositions(longest, width)
    elif kind == LEARNED:
        position = LearnedPositions(longest, width)
    return TransformerTagger(
        TOKENS, TOKENS, hidden_size=width, layers=sizes.layers, heads=sizes.heads,
        position=position, sees="all",
    )  # fmt: skip


@dataclass(frozen=True)
class Accuracies:
    """Accuracy of one network by test length: over all places, and over those beyond training.

    At the length of training itself no place is beyond it: `beyond` is one shorter.
    """

    overall: Sequence[float]
    beyond: Sequence[float]

    @property
    def mean_beyond(self) -> float:
        """Every longer length counts the same."""
        return sum(self.beyond) / len(self.beyond)


def measure_lengths(model: nn.Module, sizes: Sizes, generator: torch.Generator) -> Accuracies:
    """Accuracy at the length of training and at every longer one, on new sequences."""
    overall, beyond = [], []
    for length in sizes.lengths:
        right = right_answers(model, *task(sizes.test_sequences, length, generator))
        overall.append(float(right.nanmean()))
        if length > sizes.length:
            beyond.append(float(right[:, sizes.length :].nanmean()))
    return Accuracies(overall, beyond)


def decide(within: Mapping[str, float], beyond: Mapping[str, float], further: Spread) -> Verdict:
    """The verdict by the rule of `CLAIM.test`.

    Args:
        within: mean accuracy at the length of training, sinusoidal and learned.
        beyond: mean accuracy at places beyond it.
        further: sinusoidal minus learned, beyond.
    """
    if min(within[SINUSOIDAL], within[LEARNED]) < LEARNT:
        return Verdict.UNDECIDED
    point = above(further.low, further.high)
    if point is not Point.FOR:
        return Verdict.FAILS if point is Point.AGAINST else Verdict.UNDECIDED
    kept = share_kept(within[SINUSOIDAL], beyond[SINUSOIDAL])
    return Verdict.HOLDS if kept >= KEPT else Verdict.PARTLY


def share_kept(within: float, beyond: float) -> float:
    """How much of the accuracy above chance is left beyond the length of training; not below 0."""
    return max(0.0, beyond - CHANCE) / (within - CHANCE) if within > CHANCE else 0.0


def measure(measuring: Measuring) -> Finding:
    """Train and test every kind of positions with every seed."""
    sizes = QUICK if measuring.quick else FULL
    tested: dict[str, list[Accuracies]] = {kind: [] for kind in KINDS}
    runs = [(seed, kind) for seed in range(sizes.seeds) for kind in KINDS]
    for number, (seed, kind) in enumerate(runs):

        def advance(
            share: float, number: int = number, words: str = f"{kind}, seed {seed}"
        ) -> None:
            measuring.advance((number + share) / len(runs), words)

        own = measuring.seed_of(seed)
        torch.manual_seed(own)
        model = build(kind, sizes)
        train(
            model, lambda generator: task(sizes.batch, sizes.length, generator), sizes.recipe, own,
            advance,
        )  # fmt: skip
        tested[kind].append(
            measure_lengths(model, sizes, torch.Generator().manual_seed(own + 1_000_000))
        )
    return report(sizes, tested)


def report(sizes: Sizes, tested: Mapping[str, Sequence[Accuracies]]) -> Finding:
    """What was found, from the accuracies of every network."""
    within = {kind: Spread.of([one.overall[0] for one in tested[kind]]) for kind in KINDS}
    beyond = {kind: Spread.of([one.mean_beyond for one in tested[kind]]) for kind in KINDS}
    further = Spread.of(
        [
            mine.mean_beyond - theirs.mean_beyond
            for mine, theirs in zip(tested[SINUSOIDAL], tested[LEARNED], strict=True)
        ]
    )
    kept = {
        kind: share_kept(within[kind].mean, beyond[kind].mean) for kind in (SINUSOIDAL, LEARNED)
    }
    verdict = decide(
        {kind: one.mean for kind, one in within.items()},
        {kind: one.mean for kind, one in beyond.items()},
        further,
    )
    length, longest = sizes.length, max(sizes.lengths)
    return Finding(
        verdict=verdict,
        sentence=(
            f"Trained on {length} tokens and tested on up to {longest}, at places beyond {length} "
            f"sinusoidal positions answer {beyond[SINUSOIDAL].written(3, 100)} % right, learned "
            f"ones {beyond[LEARNED].written(3, 100)} %, and a network that is told no positions "
            f"{beyond[NONE].written(3, 100)} % (guessing: {CHANCE:.1%}). Of what they know above "
            f"chance at {length} tokens the sinusoidal ones keep {kept[SINUSOIDAL]:.0%}, the "
            f"learned ones {kept[LEARNED]:.0%}. At {length} tokens they answer "
            f"{within[SINUSOIDAL].mean:.1%} and {within[LEARNED].mean:.1%} right."
        ),
        setting=_setting(sizes),
        blocks=_blocks(sizes, tested, within),
        data={
            "train_length": length,
            "test_lengths": sizes.lengths,
            "chance": CHANCE,
            "sinusoidal_minus_learned": further.to_dict(),
            "kept": kept,
            **{kind: _data(tested[kind]) for kind in KINDS},
        },
        number=(
            f"beyond training: sinusoidal {beyond[SINUSOIDAL].written(3, 100)} %, learned "
            f"{beyond[LEARNED].written(3, 100)} %"
        ),
    )


def _data(tested: Sequence[Accuracies]) -> dict[str, Any]:
    overall = zip(*(one.overall for one in tested), strict=True)
    beyond = zip(*(one.beyond for one in tested), strict=True)
    return {
        "overall": [Spread.of(values).to_dict() for values in overall],
        "beyond": [Spread.of(values).to_dict() for values in beyond],
        "mean_beyond": Spread.of([one.mean_beyond for one in tested]).to_dict(),
    }


def _setting(sizes: Sizes) -> dict[str, str]:
    parameters = {kind: trained_size(build(kind, sizes)) for kind in KINDS}
    return {
        "task": f"at every place name the token {OFFSET} places before; {TOKENS} tokens, uniform "
        f"and independent, so that only positions can tell which is meant; chance {CHANCE:.2%}",
        "network": f"encoder, layers: {sizes.layers}, width {sizes.hidden_size}, "
        f"{sizes.heads} heads, norm first, every place sees every other; "
        "tokens and learned positions start from N(0, 1)",
        "parameters": ", ".join(f"{kind} {count:,}" for kind, count in parameters.items()),
        "training": f"{sizes.recipe.steps} steps of {sizes.batch} new sequences of {sizes.length} "
        f"tokens, AdamW, highest learning rate {sizes.recipe.learning_rate:g}, the same for all",
        "test": f"{sizes.test_sequences} new sequences of each length: "
        f"{', '.join(map(str, sizes.lengths))}",
        "learned positions beyond training": f"the table has {max(sizes.lengths)} rows, of which "
        f"training touches {sizes.length}: those beyond stay as they were drawn, as the unused "
        f"rows of a checkpoint do. With a table of {sizes.length} rows longer input is refused.",
        "seeds": f"{sizes.seeds}: weights and sequences; intervals are t intervals over seeds",
    }


def _blocks(
    sizes: Sizes, tested: Mapping[str, Sequence[Accuracies]], within: Mapping[str, Spread]
) -> list[Block]:
    by_length = {
        kind: [
            within[kind],
            *(Spread.of(v) for v in zip(*(one.beyond for one in tested[kind]), strict=True)),
        ]
        for kind in KINDS
    }
    series = [
        Series(
            f"{kind} positions" if kind != NONE else "no positions",
            sizes.lengths,
            [one.mean for one in spreads],
            [max(0.0, one.low) for one in spreads],
            [min(1.0, one.high) for one in spreads],
        )
        for kind, spreads in by_length.items()
    ]
    rows = [
        [
            str(length),
            *(
                cell
                for kind in KINDS
                for cell in (
                    _percent(by_length[kind][place].mean) if place else "",
                    _percent(_mean([one.overall[place] for one in tested[kind]])),
                )
            ),
        ]
        for place, length in enumerate(sizes.lengths)
    ]
    return [
        Figure(
            "extrapolation",
            lambda: line_plot(series, "tokens of a test sequence", "accuracy", percent=True),
            "Accuracy against test length for sinusoidal, learned and no positions",
            f"At {sizes.length} tokens, the length of training, the accuracy at all places; at "
            "longer ones that at the places beyond it. Bars are 95% intervals over seeds; guessing "
            f"gives {CHANCE:.1%}.",
        ),
        Table(
            [
                "tokens",
                *(f"{kind}, {places}" for kind in KINDS for places in ("beyond", "all places")),
            ],
            rows,
            numeric=range(1, 1 + 2 * len(KINDS)),
        ),
        Paragraph(
            f"Accuracy at places beyond the {sizes.length} tokens of training, and at all places; "
            "means over seeds.",
            "caption",
        ),
    ]


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


CLAIM = Claim(
    number=3,
    name="extrapolation",
    statement="Sinusoidal positions extrapolate to longer sequences than learned ones",
    source="Vaswani et al. 2017, “Attention Is All You Need” (arXiv:1706.03762), section 3.5: the "
    "sinusoidal version “may allow the model to extrapolate to sequence lengths longer than the "
    "ones encountered during training”",
    test="The same encoder learns with sinusoidal, learned and no positions, at one length, to "
    f"name the token {OFFSET} places before; it is tested at up to {LONGER[-1]:g} times that "
    "length, at the places that lie beyond it (every length counts the same). If sinusoidal minus "
    "learned has a 95% interval over seeds above 0, the claim holds where sinusoidal positions "
    f"keep at least {KEPT:.0%} of their accuracy above chance, and in part where they keep less: "
    "further, but not far. An interval not above 0 anywhere speaks against it. Where one of the "
    f"two is below {LEARNT:.0%} at the length of training, the task was not learned and nothing "
    "can be told.",
    measure=measure,
)

"""Claim 7: the heads of a layer learn different things, and one does not do for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import torch
from torch import Tensor

from toolkit.claims.claim import Claim, Finding, Measuring
from toolkit.claims.date_reading import (
    DIGITS,
    Dates,
    Reader,
    accuracy,
    encode,
    mask_of,
    read_phrases,
    split,
)
from toolkit.claims.head_similarity import (
    attentions,
    head_cka,
    head_divergence,
    head_overlap,
    input_divergence,
    recorded_outputs,
    without_heads,
)
from toolkit.claims.over_seeds import Spread
from toolkit.claims.points import Point, above, verdict_of
from toolkit.claims.short_training import Recipe, train
from toolkit.plots import Bar, forest_plot
from toolkit.report.blocks import Block, Cell, Figure, Paragraph, Table
from toolkit.report.wording import percent
from toolkit.report.wording import points as points_of

LAYERS, WIDTH, HEADS, BATCH = 2, 64, 4, 64
SMALL = 0.01
"""What is lost without heads counts from here on: a point of accuracy."""


@dataclass(frozen=True)
class Sizes:
    """Seeds, steps, phrases to test on and to look at."""

    seeds: int
    steps: int
    test: int
    seen: int


FULL, QUICK = Sizes(5, 600, 1000, 256), Sizes(2, 3, 20, 12)


@dataclass(frozen=True)
class Alike:
    """How alike the heads of a model are; every list has one number a layer.

    Attributes:
        divergence: of the attention of two heads at the places of the answer, in bits.
        same_head: of the attention of one head on two phrases.
        cka: of what two heads say, over all characters.
        overlap: of the subspaces that two heads write to.
    """

    divergence: Sequence[float]
    same_head: Sequence[float]
    cka: Sequence[float]
    overlap: Sequence[float]


@dataclass(frozen=True)
class Pruned:
    """Accuracy with all heads and without some.

    Attributes:
        whole: with all.
        without: without one head [layers][heads].
        one_left: with one head alone in a layer, the best on phrases of the training [layers].
    """

    whole: float
    without: Sequence[Sequence[float]]
    one_left: Sequence[float]

    @property
    def least_missed(self) -> float:
        """What is lost where one head is left, in the layer that misses the others least."""
        return self.whole - max(self.one_left)


def look(model: Reader, ids: Tensor) -> Alike:
    """How alike the heads are on some phrases [phrases, length]."""
    layers = attentions(model)
    with torch.no_grad(), recorded_outputs(layers) as outputs:
        weights = (
            model.eval()
            .bert(input_ids=ids, attention_mask=mask_of(ids), output_attentions=True)
            .attentions
        )
    real = mask_of(ids).bool()
    answering = [one[:, :, :DIGITS] for one in weights]
    return Alike(
        divergence=[head_divergence(one) for one in answering],
        same_head=[input_divergence(one) for one in answering],
        cka=[head_cka(one[real]) for one in outputs],
        overlap=[head_overlap(one) for one in layers],
    )


def prune(model: Reader, test: Dates, known: Dates) -> Pruned:
    """Accuracy on test phrases; which head is left alone is chosen on known ones."""
    without, one_left = [], []
    for layer in attentions(model):
        alone, lost = [], []
        for head in range(layer.num_heads):
            with without_heads(layer, [head]):
                lost.append(accuracy(model, test))
            with without_heads(layer, _others(layer.num_heads, head)):
                alone.append(accuracy(model, known))
        best = max(range(layer.num_heads), key=alone.__getitem__)
        with without_heads(layer, _others(layer.num_heads, best)):
            one_left.append(accuracy(model, test))
        without.append(lost)
    return Pruned(accuracy(model, test), without, one_left)


def _others(heads: int, kept: int) -> list[int]:
    return [head for head in range(heads) if head != kept]


@dataclass(frozen=True)
class Run:
    """One seed."""

    before: Alike
    after: Alike
    pruned: Pruned


def run_once(dates: Dates, chosen: Sizes, seed: int, advance: Callable[[float], None]) -> Run:
    """Train a reader, look at its heads before and after, and prune them."""
    training, test = split(dates, chosen.test, seed)
    torch.manual_seed(seed)
    model = Reader(dates, LAYERS, WIDTH, HEADS)
    seen = test.ids[: chosen.seen]
    before = look(model, seen)

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(training), (BATCH,), generator=generator)
        return training.ids[rows], training.digits[rows]

    recipe = Recipe(steps=chosen.steps, learning_rate=3e-3)
    train(model, draw, recipe, seed, advance)
    known = training[slice(0, chosen.test // 2)]
    return Run(before, look(model, seen), prune(model, test, known))


def decide(runs: Sequence[Run]) -> tuple[dict[str, Point], dict[str, Spread]]:
    """The three points of the claim's rule, and the numbers they were decided by."""

    def mean_change(name: str, sign: int) -> Spread:
        return Spread.of(
            [sign * (fmean(getattr(r.after, name)) - fmean(getattr(r.before, name))) for r in runs]
        )

    spreads = {
        "they attend to different places": mean_change("divergence", 1),
        "they say different things": mean_change("cka", -1),
        "no layer can do with one head": Spread.of([run.pruned.least_missed for run in runs]),
    }
    bounds = (0.0, 0.0, SMALL)
    points = {
        words: above(spread.low, spread.high, bound)
        for (words, spread), bound in zip(spreads.items(), bounds, strict=True)
    }
    return points, spreads


def measure(measuring: Measuring) -> Finding:
    """All seeds."""
    chosen = QUICK if measuring.quick else FULL
    measuring.advance(0.0, "making the phrases")
    dates = encode(read_phrases())
    runs = []
    for number in range(chosen.seeds):

        def advance(share: float, number: int = number) -> None:
            whole = (number + 0.9 * share) / chosen.seeds
            measuring.advance(whole, f"training model {number + 1} of {chosen.seeds}")

        runs.append(run_once(dates, chosen, measuring.seed_of(number), advance))
    points, spreads = decide(runs)
    missed = spreads["no layer can do with one head"]
    divergence, cka = (
        [Spread.of([fmean(getattr(getattr(run, when), name)) for run in runs])
         for when in ("before", "after")]
        for name in ("divergence", "cka")
    )  # fmt: skip
    losses = _losses(runs)
    needless = sum(loss <= SMALL for loss in losses.values())
    return Finding(
        verdict=verdict_of(list(points.values())),
        sentence=(
            f"Attention of two heads of a layer differs by {divergence[1].written(2)} bits (before "
            f"the training {divergence[0].mean:.2g}), what they say has a CKA of "
            f"{cka[1].written(2)} (before {cka[0].mean:.2g}). Without its least needed head alone "
            f"a model loses {points_of(min(losses.values()))} of accuracy, without the most needed "
            f"{points_of(max(losses.values()))} (means over seeds); with one head in a layer it "
            f"loses {missed.written(2, 100, ' points')} at least."
        ),
        setting={
            "task": "read English dates of demo:dates as eight digits, all of them right; no day "
            "of the test is in the training in another form",
            "model": f"ScratchBertForTokenClassification, {LAYERS} layers, width {WIDTH}, {HEADS} "
            "heads, characters, no dropout",
            "training": f"{chosen.steps} steps of {BATCH} phrases, AdamW, learning rate 0.003",
            "seeds": f"{chosen.seeds}; accuracy on {chosen.test:,} phrases, "
            f"{percent(fmean(run.pruned.whole for run in runs))} with all heads; similarity on "
            f"{chosen.seen}",
        },
        blocks=_blocks(runs, points, spreads, losses),
        data={
            "points": {words: point.name.lower() for words, point in points.items()},
            "decided_by": {words: spread.to_dict() for words, spread in spreads.items()},
            "runs": [asdict(run) for run in runs],
            "heads_lost_without_more_than_a_point": needless,
        },
        number=f"divergence {divergence[1].written(2)} bits (untrained {divergence[0].mean:.2g}); "
        f"one head a layer loses {missed.written(2, 100, ' points')}",
    )


def _losses(runs: Sequence[Run]) -> dict[str, float]:
    """Accuracy lost without one head, mean over seeds; heads of a layer in order of need.

    Head 1 of one seed and head 1 of another have nothing in common but the number.
    """
    found = {}
    for layer in range(LAYERS):
        ordered = [
            sorted((run.pruned.whole - one for one in run.pruned.without[layer]), reverse=True)
            for run in runs
        ]
        for place, values in enumerate(zip(*ordered, strict=True)):
            found[f"layer {layer + 1}, head {place + 1}"] = fmean(values)
    return found


def _blocks(
    runs: Sequence[Run],
    points: Mapping[str, Point],
    spreads: Mapping[str, Spread],
    losses: Mapping[str, float],
) -> list[Block]:
    def similarity(name: str, layer: int) -> list[str]:
        return [
            Spread.of([getattr(getattr(run, when), name)[layer] for run in runs]).written(2)
            for when in ("before", "after")
        ]

    names = {
        "divergence": "divergence of two heads (bits)",
        "same_head": "of one head on two phrases (bits)",
        "cka": "CKA of two heads",
        "overlap": "overlap of output subspaces",
    }
    rows: list[list[Cell | str]] = [
        [f"{words}, layer {layer + 1}", *similarity(name, layer)]
        for name, words in names.items()
        for layer in range(LAYERS)
    ]
    decided: list[list[Cell | str]] = [
        [words, points[words].value, spread.written(2)] for words, spread in spreads.items()
    ]
    return [
        Figure(
            "heads",
            lambda: forest_plot(
                _bars(runs), "accuracy lost", lambda value: f"{100 * value:.1f}",
                interval_name="lowest to highest seed",
            ),
            "Accuracy lost without each head, and with one head left in a layer",
            "Points of accuracy; heads of a layer in order of need, because a head's number means "
            "nothing from one seed to the next.",
        ),
        Table(["point", "found", "decided by"], decided),
        Paragraph(
            "decided by: the growth of the divergence and the fall of the CKA in the training, "
            "means over layers, and the share of accuracy lost with one head in the layer that "
            "misses the others least (head chosen on phrases of the training).",
            "caption",
        ),
        Table(["similarity", "before training", "after"], rows, numeric=(1, 2)),
        Paragraph(
            f"overlap: mean squared cosine of the principal angles; {1 / HEADS:g} is expected of "
            "random subspaces of this size, 1 of equal ones.",
            "caption",
        ),
    ]  # fmt: skip


def _bars(runs: Sequence[Run]) -> list[Bar]:
    bars = []
    for layer in range(LAYERS):
        ordered = [
            sorted((run.pruned.whole - one for one in run.pruned.without[layer]), reverse=True)
            for run in runs
        ]
        for place, values in enumerate(zip(*ordered, strict=True)):
            name = f"layer {layer + 1} without head {place + 1}"
            bars.append(Bar(name, fmean(values), min(values), max(values)))
        left = [run.pruned.whole - run.pruned.one_left[layer] for run in runs]
        name = f"layer {layer + 1} with one head"
        bars.append(Bar(name, fmean(left), min(left), max(left)))
    return bars


CLAIM = Claim(
    number=7,
    name="heads",
    statement="The heads of a layer learn different things, and one of them does not do for all",
    source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2: “different representation "
    "subspaces at different positions”; against it Michel et al. 2019 (arXiv:1905.10650): most "
    "heads can be pruned",
    test="Small BERTs learn to read dates, with several seeds. Three points, each by the 95% t "
    "interval over seeds: attention of two heads of a layer differs more after the training than "
    "before (Jensen-Shannon divergence, mean over layers); what they say is less alike (CKA); with "
    "the best head of a layer alone accuracy falls by more than "
    f"{percent(SMALL, 0)} in every layer. All three: the claim holds; some: in part; all against: "
    "it does not.",
    measure=measure,
)

"""Claim 1: dividing the scores by sqrt(d_k) keeps the gradients of the softmax alive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scratch_models.layers.attention import attention_weights
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Cell, Figure, Paragraph, Table

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
KEYS = 64
KEPT, LOST = 0.8, 0.1
"""Shares of the gradient at the smallest d_k: at least so much is alive, at most so much dead."""
SCALED, PLAIN = "divided by √d_k", "not divided"


@dataclass(frozen=True)
class Sizes:
    """How much is drawn."""

    sizes: Sequence[int]
    draws: int
    queries: int


FULL, QUICK = Sizes(SIZES, 30, 64), Sizes((4, 1024), 4, 16)


def entropy(weights: Tensor) -> Tensor:
    """-sum p log p in nats: […, keys] -> […]; log(keys) where all keys get the same."""
    return torch.special.entr(weights).sum(-1)


def jacobian_norm(weights: Tensor) -> Tensor:
    """Frobenius norm of the derivative of softmax by its scores: […, keys] -> […].

    The derivative is diag(p) - p p^T; its squared norm is sum p^2 - 2 sum p^3 + (sum p^2)^2.
    """
    squares = weights.square().sum(-1)
    return (squares - 2 * weights.pow(3).sum(-1) + squares.square()).clamp(min=0).sqrt()


def query_gradient_norm(weights: Tensor, key: Tensor, scale: float) -> Tensor:
    """Frobenius norm of the derivative of the weights by the query: what reaches what is trained.

    Args:
        weights: [queries, keys].
        key: [keys, d_k].
        scale: the factor of the scores, which the derivative carries too.

    Returns:
        [queries].
    """
    # Row i of (diag(p) - p p^T) K is p_i (k_i - p K); its squared length, multiplied out.
    mean_key = weights @ key
    distances = (
        key.square().sum(-1) - 2 * mean_key @ key.T + mean_key.square().sum(-1, keepdim=True)
    )
    return scale * (weights.square() * distances.clamp(min=0)).sum(-1).sqrt()


def measure_size(size: int, scale: float, draws: int, queries: int, seed: int) -> dict[str, Spread]:
    """By draw, over its queries: mean entropy (share of log keys) and gradient norms.

    "gradient" is that of the median query, "mean_gradient" the mean; "query_gradient" the mean of
    the derivative by the query.
    """
    names = ("entropy", "gradient", "mean_gradient", "query_gradient")
    found: dict[str, list[float]] = {name: [] for name in names}
    generator = torch.Generator().manual_seed(seed)
    for _ in range(draws):
        query = torch.randn(queries, size, generator=generator, dtype=torch.float64)
        key = torch.randn(KEYS, size, generator=generator, dtype=torch.float64)
        weights = attention_weights(query[None, None], key[None, None], None, scale)[0, 0]
        found["entropy"].append(float(entropy(weights).mean()) / math.log(KEYS))
        norms = jacobian_norm(weights)
        found["gradient"].append(float(norms.quantile(0.5)))
        found["mean_gradient"].append(float(norms.mean()))
        by_query = query_gradient_norm(weights, key, scale)
        found["query_gradient"].append(float(by_query.mean()))
    return {name: Spread.of(values) for name, values in found.items()}


def decide(scaled: Sequence[Spread], plain: Sequence[Spread]) -> Verdict:
    """By the rule of the claim, from the gradient norms at growing d_k."""
    alive = scaled[-1].low >= KEPT * scaled[0].mean
    dead = plain[-1].high <= LOST * plain[0].mean
    if alive and dead:
        return Verdict.HOLDS
    if alive or dead:
        return Verdict.PARTLY
    if scaled[-1].high < KEPT * scaled[0].mean and plain[-1].low > LOST * plain[0].mean:
        return Verdict.FAILS
    return Verdict.UNDECIDED


def measure(measuring: Measuring) -> Finding:
    """Both ways, at every d_k."""
    chosen = QUICK if measuring.quick else FULL
    found: dict[str, list[dict[str, Spread]]] = {SCALED: [], PLAIN: []}
    for place, size in enumerate(chosen.sizes):
        measuring.advance(place / len(chosen.sizes), f"d_k = {size}")
        for name, scale in ((SCALED, size**-0.5), (PLAIN, 1.0)):
            found[name].append(
                measure_size(size, scale, chosen.draws, chosen.queries, measuring.seed)
            )
    gradients = {name: [one["gradient"] for one in values] for name, values in found.items()}
    last = {name: values[-1] for name, values in found.items()}
    largest = chosen.sizes[-1]
    ratio = {name: values[-1].mean / values[0].mean for name, values in gradients.items()}
    means = [one["mean_gradient"].mean for one in found[PLAIN]]
    mean_ratio = means[-1] / means[0]
    return Finding(
        verdict=decide(gradients[SCALED], gradients[PLAIN]),
        sentence=(
            f"From d_k = {chosen.sizes[0]} to {largest} the softmax's gradient at the median query "
            f"keeps {ratio[SCALED]:.0%} of its size when scores are divided by √d_k, and "
            f"{100 * ratio[PLAIN]:.2g}% when they are not. The mean over queries falls less, to "
            f"{mean_ratio:.0%}: a few queries with two keys almost level keep theirs."
        ),
        setting={
            "queries and keys": f"independent, from N(0, 1); {chosen.queries} queries on {KEYS} "
            "keys a draw, float64",
            "d_k": ", ".join(map(str, chosen.sizes)),
            "draws": f"{chosen.draws} at every d_k; intervals are over draws",
        },
        blocks=_blocks(chosen.sizes, found),
        data=_data(chosen, found),
        number=(
            f"gradient at d_k = {largest}: {last[SCALED]['gradient'].written(2)} divided, "
            f"{last[PLAIN]['gradient'].written(2)} not"
        ),
    )


def _data(chosen: Sizes, found: Mapping[str, Sequence[Mapping[str, Spread]]]) -> dict[str, Any]:
    keys = {SCALED: "scaled", PLAIN: "plain"}
    return {
        "d_k": list(chosen.sizes),
        "keys": KEYS,
        **{
            keys[name]: {
                measure: [one[measure].to_dict() for one in values] for measure in values[0]
            }
            for name, values in found.items()
        },
    }


def _blocks(
    sizes: Sequence[int], found: Mapping[str, Sequence[Mapping[str, Spread]]]
) -> list[Block]:
    def lines(measure: str) -> list[Series]:
        return [
            Series(
                name, sizes, [one[measure].mean for one in values],
                [one[measure].low for one in values], [one[measure].high for one in values],
            )
            for name, values in found.items()
        ]  # fmt: skip

    columns = {
        "gradient": "median gradient", "mean_gradient": "mean gradient", "entropy": "entropy",
        "query_gradient": "by the query",
    }  # fmt: skip
    rows: list[list[Cell | str]] = [
        [f"{size}, {word}", *(found[name][place][measure].written(2) for measure in columns)]
        for place, size in enumerate(sizes)
        for name, word in ((SCALED, "divided"), (PLAIN, "not"))
    ]
    return [
        Figure(
            "scaling_gradient",
            lambda: line_plot(
                lines("gradient"), "d_k", "norm of the softmax's gradient", log_x=True, log_y=True
            ),
            "The norm of the softmax's gradient against d_k, with and without scaling",
            "Frobenius norm of the softmax's derivative by its scores at the median query; bars "
            "are 95% intervals over draws.",
        ),
        Figure(
            "scaling_entropy",
            lambda: line_plot(
                lines("entropy"), "d_k", "entropy of the weights", log_x=True, percent=True
            ),
            "The entropy of attention weights against d_k, with and without scaling",
            f"Share of the entropy of {KEYS} equal weights; 0% is a single key.",
        ),
        Table(["d_k", *columns.values()], rows, numeric=range(1, 1 + len(columns))),
        Paragraph(
            "by the query: the mean norm of the derivative of the weights by the query's entries, "
            "which carries the factor of the scores. Without scaling this factor is √d_k times as "
            "large, so that the few queries that keep a gradient have a large one.",
            "caption",
        ),
    ]


CLAIM = Claim(
    number=1,
    name="scaling",
    statement="Dividing the scores by √d_k keeps the gradients of the softmax alive",
    source="Vaswani et al. 2017, “Attention Is All You Need” (arXiv:1706.03762), section 3.2.1 and "
    "footnote 4",
    test="Queries and keys are drawn from N(0, 1), as the footnote assumes; the norm of the "
    "softmax's derivative by its scores at the median query is measured from the smallest to the "
    "largest d_k. For the claim speak both: with scaling at least "
    f"{KEPT:.0%} of the norm at the smallest d_k is left at the largest, and without at most "
    f"{LOST:.0%}, each with its whole 95% interval over draws. One of the two: in part. Against it "
    "speak intervals that lie wholly on the other side.",
    measure=measure,
)

"""What heads attend to over many texts: shares by place, distance, entropy, with intervals.

The shares are those of Clark et al. 2019 (arXiv:1906.04341, section 3): of what the tokens of a
text attend to, how much goes to special tokens, to the token itself, to its neighbours. What
special tokens themselves attend to is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.attention.weights import AttentionMaps, Kind
from toolkit.stats import Estimate, bootstrap_interval, score_draws

Places = tuple[str, ...]
PLACES: Places = ("special", "self", "previous", "next", "elsewhere")
"""Where attention goes; a special token is special also where it is the next one."""
CROSS_PLACES: Places = ("special", "elsewhere")
"""Of cross-attention, whose queries and keys are tokens of different texts."""
DRAWS = 2000
_RATIOS = 3  # measures behind the shares: distance, entropy, relative entropy


@dataclass(frozen=True)
class Numbers:
    """What one head does, or several on average; intervals are over texts.

    Args:
        shares: by place, of all attention of the tokens of the texts; they sum to 1.
        distance: mean number of tokens between query and key, of what goes to tokens of the text.
        entropy: bits; 0 for a head that looks at one token.
        relative_entropy: of the most it could be, log2 of the keys a query can see; 1: uniform.
    """

    shares: dict[str, Estimate]
    distance: Estimate | None
    entropy: Estimate
    relative_entropy: Estimate


@dataclass(frozen=True)
class TextSums:
    """What is kept of one attention to one text: a few numbers a head, not its weights."""

    kind: Kind
    sums: NDArray[np.float64]
    """[layers, heads + mean + uniform, ratios, numerator and denominator]."""


@dataclass(frozen=True)
class Analysis:
    """One attention of a model over many texts."""

    kind: Kind
    texts: int
    queries: int
    heads: list[list[Numbers]]
    """By layer and head."""
    layers: list[Numbers]
    """Means over the heads of a layer."""
    uniform: Numbers
    """What a head would have that gives every key it can see the same."""

    @property
    def places(self) -> Places:
        """Those that this attention has."""
        return CROSS_PLACES if self.kind == "cross" else PLACES


def analyse(maps: Iterable[AttentionMaps], seed: int = 0) -> Analysis:
    """`pool` of all attention to the texts."""
    return pool([sums_of_text(each) for each in maps], seed)


def pool(texts: Sequence[TextSums], seed: int = 0) -> Analysis:
    """Pool the same attention of many texts; a text counts by its tokens.

    Intervals are percentile bootstrap ones over texts, 95 %; of a single text there are none (they
    have no width).

    Args:
        texts: of one model and kind.
        seed: of the bootstrap.

    Raises:
        ValueError: no text, or none with a token that is not special.
    """
    sums = np.stack([text.sums for text in texts])  # [texts, layers, heads + 2, ratios, 2]
    if not sums[..., 0, 1].sum() > 0:
        raise ValueError("no token of a text attends: there are special tokens only")
    kind, layers = texts[0].kind, sums.shape[1]
    flat = sums.reshape(len(texts), -1, 2)
    estimates = _estimates(flat, seed)
    per_row = sums.shape[3]
    rows = [
        _numbers(kind, estimates[start : start + per_row])
        for start in range(0, len(estimates), per_row)
    ]
    width = sums.shape[2]
    by_layer = [rows[layer * width : (layer + 1) * width] for layer in range(layers)]
    return Analysis(
        kind=kind,
        texts=len(texts),
        queries=int(sums[:, 0, 0, 0, 1].sum()),
        heads=[row[:-2] for row in by_layer],
        layers=[row[-2] for row in by_layer],
        uniform=by_layer[0][-1],
    )


def sums_of_text(maps: AttentionMaps) -> TextSums:
    """What `pool` needs of one text."""
    found = sums_of(maps, maps.weights.double().numpy())
    seen = visible(maps)
    flat = (seen / seen.sum(-1, keepdims=True))[None, None]
    uniform = np.broadcast_to(sums_of(maps, flat), (len(found), 1, *found.shape[2:]))
    sums = np.concatenate([found, found.mean(1, keepdims=True), uniform], axis=1)
    return TextSums(maps.kind, sums)


def visible(maps: AttentionMaps) -> NDArray[np.float64]:
    """1 for every key that a query can see [queries, keys]: of a decoder those up to itself."""
    seen = np.ones((len(maps.queries), len(maps.keys)))
    return np.tril(seen) if maps.kind == "decoder" else seen


def sums_of(maps: AttentionMaps, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numerators and denominators of every measure, summed over the tokens of a text.

    Args:
        weights: [layers, heads, queries, keys], those of `maps` or others for the same tokens.

    Returns:
        [layers, heads, places + 3, 2], in the order of `PLACES` (`CROSS_PLACES`), then distance,
        entropy, relative entropy.
    """
    counted = ~np.array(maps.queries.special, dtype=bool)
    weights = weights[:, :, counted]
    masks = _place_masks(maps)[:, counted]
    special = np.array(maps.keys.special, dtype=bool)
    queries = float(counted.sum())
    sums = np.zeros((*weights.shape[:2], len(masks) + _RATIOS, 2))
    sums[..., : len(masks), 0] = np.einsum("lhqk,pqk->lhp", weights, masks.astype(float))
    sums[..., : len(masks), 1] = queries
    if maps.kind != "cross":
        distances = np.abs(np.subtract.outer(np.arange(len(counted)), np.arange(len(special))))
        to_text = weights * ~special
        sums[..., -3, 0] = (to_text * distances[counted]).sum((-2, -1))
        sums[..., -3, 1] = to_text.sum((-2, -1))
    logarithms = np.log2(np.where(weights > 0, weights, 1.0))
    sums[..., -2, 0] = sums[..., -1, 0] = -(weights * logarithms).sum((-2, -1))
    sums[..., -2, 1] = queries
    sums[..., -1, 1] = np.log2(visible(maps)[counted].sum(-1)).sum()
    return sums


def _place_masks(maps: AttentionMaps) -> NDArray[np.bool_]:
    """[places, queries, keys]; every key of a query is at one place."""
    special = np.broadcast_to(
        np.array(maps.keys.special, dtype=bool), (len(maps.queries), len(maps.keys))
    )
    if maps.kind == "cross":
        return np.stack([special, ~special])
    shift = np.subtract.outer(np.arange(len(maps.queries)), np.arange(len(maps.keys)))
    near = [~special & (shift == distance) for distance in (0, 1, -1)]
    return np.stack([special, *near, ~special & (np.abs(shift) > 1)])


def _estimates(sums: NDArray[np.float64], seed: int) -> list[Estimate]:
    """Of every ratio of sums [texts, ratios, 2] its value and interval; NaN where it is 0 / 0."""
    values = _ratio(sums.sum(0))
    if len(sums) > 1:
        each = [sums[:, place] for place in range(sums.shape[1])]
        draws = score_draws(each, _ratio, draws=DRAWS, seed=seed)
    else:
        draws = np.repeat(values[:, None], 2, axis=1)
    found = []
    for value, drawn in zip(values, draws, strict=True):
        interval, error = bootstrap_interval(drawn)
        found.append(Estimate(float(value), interval, error))
    return found


def _ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: NDArray[Any] = sums[..., 0] / sums[..., 1]
    return ratio


def _numbers(kind: Kind, estimates: Sequence[Estimate]) -> Numbers:
    places = CROSS_PLACES if kind == "cross" else PLACES
    *shares, distance, entropy, relative = estimates
    return Numbers(
        dict(zip(places, shares, strict=True)),
        None if kind == "cross" else distance,
        entropy,
        relative,
    )

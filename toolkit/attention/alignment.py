"""Does cross-attention find the part of the source that a word of the translation comes from?

An output token of a slot (the year of a date) is aligned where the source token it attends to most
is of the same slot. That attention of a head can be read so, the argmax of its row, is how
alignments are taken from it elsewhere (Garg et al. 2019, arXiv:1909.02074, section 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.attention.weights import AttentionMaps
from toolkit.stats import Estimate, wilson_interval


@dataclass(frozen=True)
class Aligned:
    """Which output tokens of one text are aligned.

    Args:
        slots: of the output tokens that have one in both texts [tokens].
        heads: whether each head's largest weight is right [layers, heads, tokens].
        layers: likewise the mean of the heads of each layer [layers, tokens].
        chance: share of the source tokens that are of the slot [tokens].
        looked_at: label of the source token with each head's largest weight, likewise.
    """

    slots: list[str]
    heads: NDArray[np.bool_]
    layers: NDArray[np.bool_]
    chance: NDArray[np.float64]
    looked_at: NDArray[np.str_]


@dataclass(frozen=True)
class Alignment:
    """Accuracies over many texts, with Wilson intervals over output tokens."""

    texts: int
    tokens: int
    heads: list[list[Estimate]]
    layers: list[Estimate]
    chance: float
    by_slot: dict[str, SlotAlignment]

    @property
    def best(self) -> tuple[int, int]:
        """Layer and head, from 0, of the highest accuracy; of equal ones the first."""
        values = np.array([[head.value for head in layer] for layer in self.heads])
        layer, head = np.unravel_index(int(values.argmax()), values.shape)
        return int(layer), int(head)


Misses = list[tuple[str, int]]
"""Source tokens that were looked at instead of one of the slot, and how often, the most first."""


@dataclass(frozen=True)
class SlotAlignment:
    """The same of one slot."""

    tokens: int
    heads: list[list[Estimate]]
    layers: list[Estimate]
    chance: float
    misses: list[list[Misses]]
    """By layer and head."""


def align(
    maps: AttentionMaps, output_slots: Sequence[str | None], source_slots: Sequence[str | None]
) -> Aligned:
    """Compare the largest weight of every output token with the slots of one text.

    Args:
        maps: cross-attention; query i is the one that writes output token i.
        output_slots: of every query.
        source_slots: of every key.

    Raises:
        ValueError: slots that do not fit the maps.
    """
    if (len(output_slots), len(source_slots)) != (len(maps.queries), len(maps.keys)):
        raise ValueError(
            f"{len(output_slots)} and {len(source_slots)} slots for {len(maps.queries)} queries "
            f"and {len(maps.keys)} keys"
        )
    known = set(source_slots) - {None}
    places = [place for place, slot in enumerate(output_slots) if slot in known]
    right = np.array(
        [[slot == output_slots[place] for slot in source_slots] for place in places], dtype=bool
    ).reshape(len(places), len(source_slots))
    weights = maps.weights.numpy()[:, :, places]
    tokens = np.arange(len(places))
    largest = weights.argmax(-1)
    return Aligned(
        [str(output_slots[place]) for place in places],
        right[tokens, largest],
        right[tokens, weights.mean(1).argmax(-1)],
        right.mean(-1),
        np.array(maps.keys.labels)[largest],
    )


def pool(aligned: Sequence[Aligned]) -> Alignment | None:
    """Accuracies over all texts; None where no text has a slot on both sides."""
    used = [text for text in aligned if text.slots]
    if not used:
        return None
    slots = np.array([slot for text in used for slot in text.slots])
    heads = np.concatenate([text.heads for text in used], axis=-1)
    layers = np.concatenate([text.layers for text in used], axis=-1)
    chance = np.concatenate([text.chance for text in used])
    looked_at = np.concatenate([text.looked_at for text in used], axis=-1)

    def of(chosen: NDArray[np.bool_]) -> SlotAlignment:
        return SlotAlignment(
            int(chosen.sum()),
            [[_accuracy(head[chosen]) for head in layer] for layer in heads],
            [_accuracy(layer[chosen]) for layer in layers],
            float(chance[chosen].mean()),
            [
                [
                    Counter(labels[chosen & ~head].tolist()).most_common()
                    for head, labels in zip(*layer, strict=True)
                ]
                for layer in zip(heads, looked_at, strict=True)
            ],
        )

    everything = of(np.ones(len(slots), dtype=bool))
    return Alignment(
        len(used),
        everything.tokens,
        everything.heads,
        everything.layers,
        everything.chance,
        {str(slot): of(slots == slot) for slot in dict.fromkeys(slots.tolist())},
    )


def _accuracy(right: NDArray[np.bool_]) -> Estimate:
    return Estimate(float(right.mean()), wilson_interval(int(right.sum()), len(right)))

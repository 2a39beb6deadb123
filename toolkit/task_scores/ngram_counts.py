"""How many n-grams of texts stand in their references, for all texts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Symbols = NDArray[np.int64]
"""Characters or words of a text as numbers from 0 on; those that no reference has are -1."""


@dataclass(frozen=True)
class _Order:
    """The distinct n-grams of each reference, for one n.

    Args:
        keys: rising: number of the n-gram without its last symbol (of order 1: of the text), times
            the number of symbols, plus the last symbol. Its place is the number of the n-gram.
        rows: the reference that each is of.
        counts: how often it stands there.
    """

    keys: NDArray[np.int64]
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]


class ReferenceNgrams:
    """N-grams of one reference per text.

    An n-gram is the one before it with one symbol more, so that one table of pairs per order finds
    all of them, and only what was found needs to be looked for in the next.

    Args:
        references: all symbols are known.
        symbols: how many there are.
        orders: the longest n-grams.
    """

    def __init__(self, references: Sequence[Symbols], symbols: int, orders: int) -> None:
        self._symbols = max(1, symbols)
        self._texts = len(references)
        self._orders: list[_Order] = []
        rows, flat, ends = _flat(references)
        nodes, places = rows, np.arange(len(flat))
        for order in range(orders):
            nodes, places = _longer(nodes, places, ends, order)
            wanted = nodes * self._symbols + flat[places + order]
            keys, first, nodes, counts = np.unique(
                wanted, return_index=True, return_inverse=True, return_counts=True
            )
            self._orders.append(_Order(keys, rows[places[first]], counts))

    def matches(self, texts: Sequence[Symbols]) -> NDArray[np.int64]:
        """N-grams of each text that its reference has too, as often as both have them.

        Returns:
            By order, from 1 on [texts, orders].
        """
        found = np.zeros((self._texts, len(self._orders)), dtype=np.int64)
        nodes, flat, ends = _flat(texts)
        places = np.arange(len(flat))
        for number, order in enumerate(self._orders):
            nodes, places = _longer(nodes, places, ends, number)
            last = flat[places + number]
            known = last >= 0
            nodes, places, last = nodes[known], places[known], last[known]
            wanted = nodes * self._symbols + last
            nodes = np.searchsorted(order.keys, wanted)
            there = nodes < len(order.keys)
            there[there] = order.keys[nodes[there]] == wanted[there]
            nodes, places = nodes[there], places[there]
            both = np.minimum(np.bincount(nodes, minlength=len(order.keys)), order.counts)
            found[:, number] = np.bincount(order.rows, weights=both, minlength=self._texts)
        return found


def ngram_numbers(lengths: NDArray[np.int64], orders: int) -> NDArray[np.int64]:
    """How many n-grams texts of so many symbols have, by order from 1 on [texts, orders]."""
    numbers: NDArray[np.int64] = np.maximum(lengths[:, np.newaxis] - np.arange(orders), 0)
    return numbers


def _flat(
    texts: Sequence[Symbols],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of every symbol its text; all symbols in one row; where the text of each ends."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    flat = np.concatenate([*texts, np.empty(0, dtype=np.int64)]).astype(np.int64)
    rows = np.repeat(np.arange(len(texts)), lengths)
    return rows, flat, np.cumsum(lengths)[rows]


def _longer(
    nodes: NDArray[np.int64], places: NDArray[np.int64], ends: NDArray[np.int64], order: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Those that can grow by one symbol within their text."""
    room = places + order < ends[places]
    return nodes[room], places[room]

"""One sentence of the chapter, looked at closely: 他把书送给了她 (he gave her the book).

In one sentence some head will link any two words. So a link is set against all other pairs of
words of the sentence: a link is as strong as the head that makes it most, beyond what the other
words give the same word in that head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolkit.attention.weights import AttentionMaps

SENTENCE = "他把书送给了她"
LINKS = (("送", "书"), ("送", "她"), ("把", "书"), ("她", "送"), ("她", "他"))
"""What one would expect: the verb its objects, 把 the object that it puts before the verb, the
receiver the verb and, as the other person, the giver."""
LOOKED_AT = ("她", "送", "把")


@dataclass(frozen=True)
class Gaze:
    """What a word attends to, all layers and heads together.

    Args:
        special: share that goes to special tokens.
        itself: share that stays at the word.
        others: tokens of the sentence with their shares, the largest first.
    """

    word: str
    special: float
    itself: float
    others: list[tuple[str, float]]


@dataclass(frozen=True)
class Link:
    """How strongly one word is tied to another.

    Args:
        layer, head: from 1, where the link is strongest beyond what others give.
        share: of the query's attention there.
        by_others: what the other words give the same key there, on average.
        rank: of this link among `pairs`, 1 is the strongest.
        pairs: of words where the first can see the second.
        neighbours: the two stand side by side.
    """

    query: str
    key: str
    layer: int
    head: int
    share: float
    by_others: float
    rank: int
    pairs: int
    neighbours: bool

    @property
    def stands_out(self) -> bool:
        """Among the strongest tenth of the pairs."""
        return self.rank <= max(1, self.pairs // 10)


def unread(maps: AttentionMaps) -> list[str]:
    """The characters of the sentence that are no whole token, or part of one."""
    labels = [label for label in maps.queries.labels if "/" not in label]
    return [word for word in SENTENCE if not any(word in label for label in labels)]


def gazes(maps: AttentionMaps) -> list[Gaze]:
    """What the words of `LOOKED_AT` attend to on average; those alone that are there."""
    mean = maps.weights.double().mean((0, 1)).numpy()
    special = np.array(maps.keys.special, dtype=bool)
    found = []
    for word in LOOKED_AT:
        place = _place(maps, word)
        if place is None:
            continue
        row = mean[place]
        order = [int(k) for k in np.argsort(-row, kind="stable") if not special[k] and k != place]
        others = [(maps.keys.labels[k], float(row[k])) for k in order if row[k] > 0]
        found.append(
            Gaze(maps.queries.labels[place], float(row[special].sum()), float(row[place]), others)
        )
    return found


def links(maps: AttentionMaps) -> list[Link]:
    """The links of `LINKS` whose words are there and where the first can see the second."""
    strength, where = _strengths(maps)
    strengths = np.sort(strength[np.isfinite(strength)])[::-1]
    weights = maps.weights.double().numpy()
    inner = [place for place, special in enumerate(maps.queries.special) if not special]
    found = []
    for query, key in LINKS:
        q, k = _place(maps, query), _place(maps, key)
        if q is None or k is None or q == k or not np.isfinite(strength[q, k]):
            continue
        layer, head = divmod(int(where[q, k]), maps.heads)
        others = [weights[layer, head, other, k] for other in inner if other not in (q, k)]
        found.append(
            Link(
                query=maps.queries.labels[q],
                key=maps.keys.labels[k],
                layer=layer + 1,
                head=head + 1,
                share=float(weights[layer, head, q, k]),
                by_others=float(np.mean(others)),
                rank=int((strengths > strength[q, k]).sum()) + 1,
                pairs=len(strengths),
                neighbours=abs(q - k) == 1,
            )
        )
    return found


def _strengths(maps: AttentionMaps) -> tuple[np.ndarray, np.ndarray]:
    """Of every pair of words how strong its link is, and in which of all heads; -inf: no pair."""
    weights = maps.weights.double().numpy().reshape(-1, len(maps.queries), len(maps.keys))
    inner = [place for place, special in enumerate(maps.queries.special) if not special]
    strength = np.full(weights.shape[1:], -np.inf)
    where = np.zeros(weights.shape[1:], dtype=int)
    for k in inner:
        for q in inner:
            others = [other for other in inner if other not in (q, k)]
            if q == k or (maps.kind == "decoder" and k > q) or not others:
                continue
            beyond = weights[:, q, k] - weights[:, others, k].mean(-1)
            where[q, k] = int(beyond.argmax())
            strength[q, k] = beyond.max()
    return strength, where


def _place(maps: AttentionMaps, word: str) -> int | None:
    return next((place for place, label in enumerate(maps.queries.labels) if word in label), None)

"""Splits that are stratified, the same for the same seed, and share no text with one another."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from json.encoder import encode_basestring
from typing import overload

import numpy as np
import numpy.typing as npt

from toolkit.errors import UserError

# Characters that show nothing: zero width space and joiners, word joiner, byte order mark.
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]+")


def normalized(text: str) -> str:
    """Text as compared for repetitions: NFKC, case folded, nothing invisible, single spaces."""
    if not text.isascii():
        text = without_invisible(unicodedata.normalize("NFKC", text))
    return " ".join(text.casefold().split())


def without_invisible(text: str) -> str:
    """The text without characters that show nothing."""
    # None of them is printable, and most texts are: that is found out ten times as fast.
    return text if text.isprintable() else _INVISIBLE.sub("", text)


def normalized_pair(text: str, pair: str) -> str:
    """Both texts `normalized`, apart by a line end, which no normalized text has."""
    return f"{normalized(text)}\n{normalized(pair)}"


def is_blank(text: str) -> bool:
    """True for texts that show nothing: empty, spaces of any width, zero width characters."""
    return not without_invisible(text).strip()


def blank_kind(text: str) -> str | None:
    """Why a text `is_blank`: "empty", "spaces" (of any width) or "invisible"; None: it is not."""
    if not text:
        return "empty"
    if not text.strip():
        return "spaces"
    return "invisible" if is_blank(text) else None


@dataclass(frozen=True)
class Groups(Sequence[list[int]]):
    """Rows in groups that stay together: group i has ``rows[starts[i]:starts[i + 1]]``.

    Two arrays instead of a list a group: millions of texts are mostly groups of one.
    """

    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, groups: Sequence[Sequence[int]]) -> Groups:
        """The same from lists."""
        sizes = [len(group) for group in groups]
        rows = np.fromiter(chain.from_iterable(groups), np.int64, sum(sizes))
        return cls(rows, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> list[int]: ...
    @overload
    def __getitem__(self, index: slice) -> Groups: ...
    def __getitem__(self, index: int | slice) -> list[int] | Groups:
        if isinstance(index, slice):
            return Groups.of([self[i] for i in range(*index.indices(len(self)))])
        index = range(len(self))[index]
        found: list[int] = self.rows[self.starts[index] : self.starts[index + 1]].tolist()
        return found

    def flat(self) -> list[int]:
        """All rows, one after the other."""
        rows: list[int] = self.rows.tolist()
        return rows

    def select(self, indices: npt.NDArray[np.integer]) -> Groups:
        """These groups, in this order."""
        sizes = np.diff(self.starts)[indices]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        return Groups(self.rows[np.repeat(self.starts[:-1][indices], sizes) + within], starts)


def stratified_order(keys: Sequence[str], labels: Sequence[str], seed: int) -> Groups:
    """Row indices, shuffled so that every prefix has the classes in the proportions of the whole.

    The first rows are one of each class; only a class with less than three texts waits, so that
    what is cut off in front (a test set) does not take all of it. Rows with equal keys (the
    `normalized` texts) come as one group, so that no split can part them. The shuffle is by a hash
    of seed and key: it does not depend on the order of the rows.
    """
    if not keys:
        return Groups.of([])
    digests = bytearray()
    for key in keys:
        digests += _shuffle_key(key, seed)
    hashes = np.frombuffer(digests, ">u8").reshape(-1, 2)
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))  # stable: equal texts stand in row order
    new = np.any(hashes[order[1:]] != hashes[order[:-1]], axis=1)
    starts = np.concatenate([[0], np.flatnonzero(new) + 1, [len(keys)]])
    place = {name: number for number, name in enumerate(sorted(set(labels)))}
    classes = np.fromiter((place[label] for label in labels), np.int64, len(keys))
    # least: of two contradicting labels the same one counts in any order of the rows
    classes = np.minimum.reduceat(classes[order], starts[:-1])
    counts = np.bincount(classes, minlength=len(place))
    by_class = np.argsort(classes, kind="stable")
    ranks = np.empty(len(classes))
    ranks[by_class] = np.arange(len(classes)) - np.repeat(np.cumsum(counts) - counts, counts)
    members = counts[classes]
    places = (ranks + np.where(members >= 3, 0.0, 0.5)) / members
    return Groups(order, starts).select(np.lexsort((classes, places)))


def _shuffle_key(text: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\n{text}".encode(), digest_size=16).digest()


def take(order: Sequence[list[int]], size: int) -> tuple[list[int], Groups]:
    """The first groups of `order` that make exactly `size` rows, and the groups that remain.

    A group that would overshoot is left for the remainder. Fewer than `size` rows are taken only
    where no group fits.
    """
    groups = order if isinstance(order, Groups) else Groups.of(order)
    taken, found = np.zeros(len(groups), dtype=bool), 0
    for index, rows in enumerate(np.diff(groups.starts).tolist()):
        if found + rows <= size:
            taken[index] = True
            found += rows
    chosen, rest = (groups.select(np.flatnonzero(which)) for which in (taken, ~taken))
    return chosen.flat(), rest


def held_out_size(asked: int | None, available: int, num_classes: int) -> int:
    """Rows of a split that has to be made: as asked, else a tenth, but one for each class.

    Raises:
        UserError: more than there is, or none.
    """
    size = max(num_classes, round(available / 10)) if asked is None else asked
    if available < 2:
        raise UserError(
            f"{available} row cannot be divided into splits. Bring more rows, or give files of "
            "your own for validation and test."
        )
    if not 0 < size < available:
        raise UserError(
            f"cannot hold out {size} of {available} rows; ask for 1 to {available - 1}."
        )
    return size


# What a row says, letter for letter: its text, or both of its texts.
Content = str | tuple[str, str]


@dataclass(frozen=True)
class Labelled:
    """Texts with their `normalized` forms (keys) and labels, of equal length."""

    texts: Sequence[str]
    keys: Sequence[str]
    labels: Sequence[str]

    @property
    def contents(self) -> Sequence[Content]:
        """By which rows are told apart; `keys` are the normalized form of it."""
        return self.texts


@dataclass(frozen=True)
class Overlap:
    """How many held-out rows have their text in the training rows, and which rows those are."""

    exact: int
    normalized: int  # includes the exact ones
    opposite_label: int
    training_rows: frozenset[int]


def find_overlap(train: Labelled, held_out: Labelled) -> Overlap:
    """Compare every held-out text with all training texts."""
    # What is held out is the smaller part: only training rows that stand there too are remembered.
    wanted, wanted_exact = set(held_out.keys), set(held_out.contents)
    exact = wanted_exact.intersection(train.contents)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(train.keys):
        if key in wanted:
            rows_of[key].append(row)
    count_exact = count_normalized = count_opposite = 0
    training_rows: set[int] = set()
    for content, key, label in zip(held_out.contents, held_out.keys, held_out.labels, strict=True):
        same = rows_of.get(key, [])
        count_exact += content in exact
        count_normalized += bool(same)
        count_opposite += any(train.labels[row] != label for row in same)
        training_rows.update(same)
    return Overlap(count_exact, count_normalized, count_opposite, frozenset(training_rows))


def repetitions(rows: Labelled) -> dict[str, int]:
    """Rows that repeat an earlier text, exactly and normalised, and texts with several labels."""
    first: dict[str, str] = {}
    contradicted = {
        key
        for key, label in zip(rows.keys, rows.labels, strict=True)
        if first.setdefault(key, label) != label
    }
    return {
        "exact": len(rows.contents) - len(set(rows.contents)),
        "normalized": len(rows.texts) - len(first),
        "texts_with_several_labels": len(contradicted),
    }


def split_hash(contents: Iterable[Content], labels: Iterable[str]) -> str:
    """SHA-256 over contents and label names in order: equal exactly where the rows are equal.

    Every row counts as a line of JSON, ``[content, label]``, in UTF-8.
    """
    digest = hashlib.sha256()
    for content, label in zip(contents, labels, strict=True):
        digest.update(f"[{_as_json(content)}, {encode_basestring(label)}]\n".encode())
    return digest.hexdigest()


def _as_json(content: Content) -> str:
    """As json.dumps writes it, which takes three times as long."""
    if isinstance(content, str):
        return encode_basestring(content)
    return f"[{', '.join(map(encode_basestring, content))}]"

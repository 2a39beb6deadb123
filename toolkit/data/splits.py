"""Splits that are stratified, the same for the same seed, and share no text with one another."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolkit.errors import UserError

# Characters that show nothing: zero width space and joiners, word joiner, byte order mark.
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]+")


def normalized(text: str) -> str:
    """Text as compared for repetitions: NFKC, case folded, nothing invisible, single spaces."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(text.casefold().split())


def normalized_pair(text: str, pair: str) -> str:
    """Both texts `normalized`, apart by a line end, which no normalized text has."""
    return f"{normalized(text)}\n{normalized(pair)}"


def is_blank(text: str) -> bool:
    """True for texts that show nothing: empty, spaces of any width, zero width characters."""
    return not _INVISIBLE.sub("", text).strip()


def blank_kind(text: str) -> str | None:
    """Why a text `is_blank`: "empty", "spaces" (of any width) or "invisible"; None: it is not."""
    if not text:
        return "empty"
    if not text.strip():
        return "spaces"
    return "invisible" if is_blank(text) else None


def stratified_order(keys: Sequence[str], labels: Sequence[str], seed: int) -> list[list[int]]:
    """Row indices, shuffled so that every prefix has the classes in the proportions of the whole.

    The first rows are one of each class; only a class with less than three texts waits, so that
    what is cut off in front (a test set) does not take all of it. Rows with equal keys (the
    `normalized` texts) come as one group, so that no split can part them. The shuffle is by a hash
    of seed and key: it does not depend on the order of the rows.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        groups[key].append(row)
    by_class: dict[str, list[tuple[bytes, list[int]]]] = defaultdict(list)
    for key, rows in groups.items():
        # min: of two contradicting labels the same one counts in any order of the rows
        by_class[min(labels[row] for row in rows)].append((_shuffle_key(key, seed), rows))
    placed: list[tuple[float, str, list[int]]] = []
    for label, members in by_class.items():
        members.sort()
        first = 0.0 if len(members) >= 3 else 0.5
        for rank, (_, rows) in enumerate(members):
            placed.append(((rank + first) / len(members), label, rows))
    placed.sort(key=lambda item: item[:2])
    return [rows for _, _, rows in placed]


def _shuffle_key(text: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\n{text}".encode(), digest_size=16).digest()


def take(order: Sequence[list[int]], size: int) -> tuple[list[int], list[list[int]]]:
    """The first groups of `order` that make exactly `size` rows, and the groups that remain.

    A group that would overshoot is left for the remainder. Fewer than `size` rows are taken only
    where no group fits.
    """
    taken: list[int] = []
    remaining: list[list[int]] = []
    for rows in order:
        if len(taken) + len(rows) <= size:
            taken.extend(rows)
        else:
            remaining.append(rows)
    return taken, remaining


def held_out_size(asked: int | None, available: int, num_classes: int) -> int:
    """Rows of a split that has to be made: as asked, else a tenth, but one for each class.

    Raises:
        UserError: more than there is, or none.
    """
    size = max(num_classes, round(available / 10)) if asked is None else asked
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
    exact = set(train.contents)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(train.keys):
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
    labels_of: dict[str, set[str]] = defaultdict(set)
    for key, label in zip(rows.keys, rows.labels, strict=True):
        labels_of[key].add(label)
    return {
        "exact": len(rows.contents) - len(set(rows.contents)),
        "normalized": len(rows.texts) - len(labels_of),
        "texts_with_several_labels": sum(len(found) > 1 for found in labels_of.values()),
    }


def split_hash(contents: Iterable[Content], labels: Iterable[str]) -> str:
    """SHA-256 over contents and label names in order: equal exactly where the rows are equal."""
    digest = hashlib.sha256()
    for content, label in zip(contents, labels, strict=True):
        digest.update(json.dumps([content, label], ensure_ascii=False).encode("utf-8"))
        digest.update(b"\n")
    return digest.hexdigest()

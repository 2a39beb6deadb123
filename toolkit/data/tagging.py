"""Tagged sentences from anywhere in three splits, their tags checked and written as BIO."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import datasets

from toolkit.console import notify
from toolkit.data.partition import make_splits, remove_leaks, sizes_to_make
from toolkit.data.rows import HELD_OUT, LabelledRows
from toolkit.data.splits import normalized, split_hash
from toolkit.data.tag_schemes import (
    OUTSIDE,
    Span,
    bio_tags,
    detect_scheme,
    read_spans,
    split_tag,
)
from toolkit.data.tagged_sentences import TaggedSentences, read_tagged
from toolkit.errors import UserError

_SHOWN = 3  # broken tags of a split that are named; the others are counted


@dataclass(frozen=True)
class TaggingData:
    """Three splits with the columns id (str), tokens and tags (lists of str, tags in BIO).

    `label_names` are all tags in id order: O, then B and I of every type. `summary` is what
    data.json records.
    """

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    label_names: list[str]
    summary: dict[str, Any]


def load_tagging(
    dataset: str,
    *,
    tokens_column: str | None = None,
    tags_column: str | None = None,
    scheme: str = "auto",
    validation_file: str | None = None,
    test_file: str | None = None,
    sizes: dict[str, int | None] | None = None,
    split_seed: int = 0,
    keep_leaks: bool = False,
) -> TaggingData:
    """Read `dataset`, check its tags, and split it.

    Args:
        scheme: of the tags as written, a key of `tag_schemes.PREFIXES`, or "auto".
        sizes: sentences of "train", "validation" and "test"; None uses all, or makes a tenth.
        keep_leaks: keep training sentences that are also in validation or test.

    Raises:
        UserError: whatever is wrong with the data, with file and line; a type of entity that is
            held out but not trained.
    """
    sizes = {name: (sizes or {}).get(name) for name in ("train", *HELD_OUT)}
    read = read_tagged(
        dataset,
        tokens_column=tokens_column,
        tags_column=tags_column,
        validation_file=validation_file,
        test_file=test_file,
    )
    if scheme == "auto":
        scheme = _detect(read, dataset)
    spans, broken = {}, {}
    for name, sentences in read.items():
        spans[name], broken[name] = _spans(sentences, name, scheme)
    rows = {name: _rows(sentences, spans[name], name) for name, sentences in read.items()}
    overlap = remove_leaks(rows, keep_leaks)
    made = [name for name in HELD_OUT if name not in rows]
    made_sizes = sizes_to_make(made, sizes, len(rows["train"]), [OUTSIDE])
    splits = make_splits(rows, made_sizes, sizes | dict.fromkeys(made), split_seed)

    origin = {name: "train" if name in made else name for name in splits}
    tables = {
        name: _table(split, read[origin[name]], spans[origin[name]])
        for name, split in splits.items()
    }
    kinds = _check_types(tables)
    summary = {
        "source": dataset,
        "scheme": scheme,
        "broken_tags": broken,
        "notes": {name: sentences.notes for name, sentences in read.items() if sentences.notes},
        "sentences_read": {name: len(sentences) for name, sentences in read.items()},
        "overlap": overlap,
        "splits_made": made,
        "split_seed": split_seed,
        "sizes": {name: len(split) for name, split in splits.items()},
        "tokens": {name: sum(map(len, table["tokens"])) for name, table in tables.items()},
        "entities": {name: _count_types(table, kinds) for name, table in tables.items()},
        "sha256": {
            name: split_hash(map(" ".join, table["tokens"]), map(" ".join, table["tags"]))
            for name, table in tables.items()
        },
    }
    labels = [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")]
    return TaggingData(
        **{name: datasets.Dataset.from_dict(table) for name, table in tables.items()},
        label_names=labels,
        summary=summary,
    )


def _detect(read: dict[str, TaggedSentences], dataset: str) -> str:
    for sentences in read.values():
        for row, tags in enumerate(sentences.tags):
            for token, tag in enumerate(tags):
                try:
                    split_tag(tag)
                except ValueError as error:
                    raise UserError(f"{sentences.place(row, token)}: {error}.") from error
    try:
        return detect_scheme(tags for sentences in read.values() for tags in sentences.tags)
    except ValueError as error:
        raise UserError(f"{dataset}: {error}.") from error


def _spans(
    sentences: TaggedSentences, name: str, scheme: str
) -> tuple[list[list[Span]], dict[str, Any]]:
    """Entities of every sentence; how many tags broke the scheme's rules, and the first of them."""
    spans, count, shown = [], 0, []
    for row, tags in enumerate(sentences.tags):
        try:
            found, problems = read_spans(tags, scheme)
        except ValueError as error:
            token = next(i for i, tag in enumerate(tags) if not _is_tag(tag))
            raise UserError(f"{sentences.place(row, token)}: {error}.") from error
        spans.append(found)
        count += len(problems)
        shown += [f"{sentences.place(row, token)}: {what}" for token, what in problems]
        del shown[_SHOWN:]
    if count:
        more = f" ... {count} in all" if count > len(shown) else ""
        notify(
            f"warning: tags of {name} that break the rules of {scheme} ({'; '.join(shown)}{more}). "
            "Read as CoNLL's evaluation reads them: what continues nothing begins an entity."
        )
    return spans, {"count": count, "first": shown}


def _is_tag(tag: str) -> bool:
    try:
        split_tag(tag)
    except ValueError:
        return False
    return True


def _rows(sentences: TaggedSentences, spans: list[list[Span]], name: str) -> LabelledRows:
    """Sentences as texts, labelled by the types of their entities, so that splits have them all."""
    texts = [" ".join(tokens) for tokens in sentences.tokens]
    kept = [row for row, tokens in enumerate(sentences.tokens) if tokens]
    if not kept:
        raise UserError(f"the {name} split holds no token.")
    rows = LabelledRows(
        texts=texts,
        keys=list(map(normalized, texts)),
        labels=["+".join(sorted({span.kind for span in found})) for found in spans],
        ids=[
            f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{row + 1}"
            for row, text in enumerate(texts)
        ],
        place=lambda row: sentences.place(row, 0),
        rows=list(range(len(texts))),
        columns=("tokens", "tags"),
        class_names=None,
    )
    return rows.select(kept)


def _table(
    split: LabelledRows, sentences: TaggedSentences, spans: list[list[Span]]
) -> dict[str, list[Any]]:
    return {
        "id": list(split.ids),
        "tokens": [sentences.tokens[row] for row in split.rows],
        "tags": [bio_tags(spans[row], len(sentences.tokens[row])) for row in split.rows],
    }


def _check_types(tables: dict[str, dict[str, list[Any]]]) -> list[str]:
    """Types of entity in training, sorted.

    Raises:
        UserError: no entity in training, or one of another type held out.
    """
    tags = {name: {t for row in table["tags"] for t in row} for name, table in tables.items()}
    kinds = sorted({split_tag(tag)[1] for tag in tags["train"]} - {""})
    if not kinds:
        raise UserError("no training sentence has an entity: there is nothing to learn.")
    for name in HELD_OUT:
        new = sorted(tags[name] - tags["train"] - {OUTSIDE})
        untrained = [tag for tag in new if split_tag(tag)[1] not in kinds]
        if untrained:
            raise UserError(
                f"the {name} set has tags that no training sentence has: {', '.join(untrained)}. "
                f"Trained types: {', '.join(kinds)}. Train on sentences that have them, or remove "
                "these entities."
            )
        if new:
            notify(f"warning: the {name} set has tags that training never shows: {', '.join(new)}.")
    return kinds


def _count_types(table: dict[str, list[Any]], kinds: Sequence[str]) -> dict[str, int]:
    found = [span.kind for tags in table["tags"] for span in read_spans(tags)[0]]
    return {kind: found.count(kind) for kind in kinds}

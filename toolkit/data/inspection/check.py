"""What `toolkit data check` says of a data set, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.data.inspection.reading import Reading
from toolkit.data.inspection.tokens import SPLITS, Tokens

if TYPE_CHECKING:
    from toolkit.data.inspection.tasks import Task

_READ = ("rows_read", "sentences_read", "questions_read", "documents_read")
_COLUMNS = {
    "text-classification": ("text", "pair"),
    "token-classification": ("tokens",),
    "translation": ("source", "target"),
    "question-answering": ("question", "context"),
    "language-modeling": ("text",),
}
"""Columns whose lengths are given: characters, of lists their tokens."""
_IMBALANCED = 0.9  # share of the largest class from which accuracy says little
_SHOWN = 5  # places and names that are listed


def describe(reading: Reading) -> dict[str, Any]:
    """Everything that is known of the data, for a table or for JSON.

    A data set that is refused has what was known until then.
    """
    choice = reading.choice
    facts: dict[str, Any] = {
        "data": reading.place,
        "task": choice.task.name if choice else None,
        "task_chosen_by": choice.why if choice else None,
        "recipe": f"recipes/{choice.task.recipe}.py" if choice else None,
        "refused": reading.refused,
        "files": [asdict(file) for file in reading.files],
    }
    if choice is not None and choice.task.name == "image-classification":
        facts["images"] = _describe_images(reading)
    facts["files_not_read"] = _not_read(reading, facts.get("images", {}).pop("paths", set()))
    if choice is not None and reading.data is not None:
        facts |= _describe_data(reading, choice.task)
    facts["remarks"] = reading.remarks
    if reading.data is not None:
        facts["summary"] = reading.data.summary
    return facts


def _describe_data(reading: Reading, task: Task) -> dict[str, Any]:
    data, summary = reading.data, reading.data.summary
    names = getattr(data, "label_names", None)
    counts = summary.get("class_counts") or summary.get("entities")
    facts: dict[str, Any] = {
        "columns": summary.get("columns"),
        "label_names": names,
        "splits": {split: _describe_split(reading, task, split) for split in SPLITS},
        "repeated_in_train": summary.get("repetitions_in_train"),
        "also_in_train": summary.get("overlap")
        or summary.get("held_out_sources_found_in_training"),
    }
    warnings = []
    if counts is not None:
        for split in SPLITS:
            facts["splits"][split]["labels"] = counts[split]
    if summary.get("class_counts"):
        facts["balance"] = balance(counts["train"])
        warnings += _warn_of_balance(facts["balance"])
    if isinstance(repeated := summary.get("repetitions_in_train"), dict):
        warnings += _warn_of_contradictions(repeated)
    if task.name == "translation":
        facts["pairs"] = _describe_pairs(data)
    facts["warnings"] = warnings + _warn_of_unknown(reading)
    return facts


def _describe_split(reading: Reading, task: Task, split: str) -> dict[str, Any]:
    summary, rows = reading.data.summary, getattr(reading.data, split)
    read: dict[str, int] = next((summary[key] for key in _READ if key in summary), {})
    return {
        "given": split in read,
        "rows_read": read.get(split),
        "left_out": _left_out(summary, split),
        "blank_texts": summary.get("blank_texts", {}).get(split),
        "rows": len(rows),
        "lengths": {name: lengths(rows[name][:]) for name in _COLUMNS.get(task.name, ())
                    if name in rows.column_names},
        "tokens": {name: _describe_tokens(found)
                   for name, found in reading.tokens.get(split, {}).items()},
    }  # fmt: skip


def _left_out(summary: Mapping[str, Any], split: str) -> dict[str, int]:
    """Rows that were read and are not used, by reason."""
    found: dict[str, int] = {}
    dropped = summary.get("dropped", {})
    if isinstance(dropped.get(split), dict):
        found |= dropped[split]
    found |= {  # of images, by reason first
        reason: by_split[split]
        for reason, by_split in dropped.items()
        if reason not in SPLITS and isinstance(by_split, dict) and split in by_split
    }
    incomplete = summary.get("dropped_without_source_or_target", {})
    if split in incomplete:
        found["without_source_or_target"] = incomplete[split]
    if split == "train":
        removed = summary.get("overlap", {}).get("train", {}).get("rows_removed", 0)
        if leaks := removed or summary.get("training_pairs_removed", 0):
            found["also_held_out"] = leaks
    return found


def lengths(texts: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Least, median, mean, 95th percentile and greatest length; a row counts as far as it goes."""
    found = np.array([len(text) for text in texts])
    return {
        "least": int(found.min()),
        "median": float(np.median(found)),
        "mean": float(found.mean()),
        "95%": float(np.percentile(found, 95)),
        "greatest": int(found.max()),
    }


def _describe_tokens(tokens: Tokens) -> dict[str, Any]:
    return {
        "limit": tokens.limit,
        "longest": tokens.longest,
        "read_in_windows" if tokens.in_windows else "rows_cut": tokens.cut,
        "tokens": tokens.total,
        "unknown_tokens": tokens.unknown,
        "unknown_share": tokens.unknown_share,
    }


def balance(counts: Mapping[str, int]) -> dict[str, Any]:
    """How even the classes are, and what always saying the largest would score.

    Args:
        counts: training rows of every class.
    """
    total = sum(counts.values())
    largest = max(counts, key=lambda name: counts[name])
    smallest = min(counts, key=lambda name: counts[name])
    share = counts[largest] / total
    return {
        "largest": largest,
        "smallest": smallest,
        "largest_share": share,
        "smallest_share": counts[smallest] / total,
        "always_largest_accuracy": share,
        "always_largest_macro_f1": 2 * share / (1 + share) / len(counts),
    }


def _warn_of_balance(found: Mapping[str, Any]) -> list[str]:
    if found["largest_share"] < _IMBALANCED:
        return []
    return [
        f"{found['largest_share']:.1%} of the training rows are {found['largest']!r}: always "
        f"saying so has an accuracy of {found['always_largest_accuracy']:.1%} and a macro F1 of "
        f"{found['always_largest_macro_f1']:.4f}. Compare by macro F1; --class_weights balanced "
        "weighs rare classes up."
    ]


def _warn_of_contradictions(repeated: Mapping[str, int]) -> list[str]:
    several = repeated.get("texts_with_several_labels", 0)
    if not several:
        return []
    return [f"{several:,} training texts stand there with more than one label."]


def _warn_of_unknown(reading: Reading) -> list[str]:
    return [
        f"{tokens.unknown_share:.1%} of the tokens of {split} are unknown to the tokenizer."
        for split, columns in reading.tokens.items()
        for tokens in columns.values()
        if tokens.many_unknown and tokens.in_windows  # of the others the recipe says it
    ]


def _describe_pairs(data: Any) -> dict[str, Any]:
    """Pairs whose lengths fit badly, and those that say the same in both languages."""
    from toolkit.data.line_lengths import unusual_pairs

    found: dict[str, Any] = {}
    for split in SPLITS:
        rows = getattr(data, split)
        ids, sources, targets = (rows[name][:] for name in ("id", "source", "target"))
        unusual = unusual_pairs(list(map(len, sources)), list(map(len, targets)))
        found[split] = {
            "unusual_lengths": len(unusual),
            "first_unusual": [
                {"row": int(ids[row].rsplit("-", 1)[1]), "source": sources[row],
                 "target": targets[row]}
                for row in unusual[:_SHOWN]
            ],
            "source_equals_target": sum(a == b for a, b in zip(sources, targets, strict=True)),
        }  # fmt: skip
    return found


def _describe_images(reading: Reading) -> dict[str, Any]:
    """Modes and sizes of the files that can be read; what is wrong with the others."""
    from collections import Counter

    from toolkit.data.image_decoding import read_head
    from toolkit.data.image_sources import read_image_source
    from toolkit.data.image_store import UNREADABLE, read_content
    from toolkit.errors import UserError

    settings = reading.settings
    try:
        source = read_image_source(
            reading.dataset or "", settings.get("image_column"), settings.get("label_column")
        )
    except UserError:  # said where the loader said it
        return {}
    modes: Counter[str] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    contents = [content for table in source.tables.values() for content in table.contents]
    for content in contents:
        try:
            head = read_head(read_content(content))
        except UNREADABLE:
            continue
        modes[head.mode] += 1
        sizes[head.size] += 1
    ordered = sorted(sizes, key=lambda size: size[0] * size[1])
    return {
        "files": len(contents),
        "no_images": len(contents) - modes.total(),  # by their heads
        "modes": dict(modes.most_common()),
        "sizes": len(sizes),
        "smallest": list(ordered[0]) if ordered else None,
        "largest": list(ordered[-1]) if ordered else None,
        "most_frequent": list(sizes.most_common(1)[0][0]) if sizes else None,
        "paths": {content for content in contents if isinstance(content, Path)},
    }


def _not_read(reading: Reading, images: set[Path]) -> dict[str, Any]:
    """Files of a folder that no split has; hidden ones too."""
    folder = Path(reading.dataset or "").expanduser()
    if reading.dataset is None or not folder.is_dir():
        return {"count": 0, "first": []}
    read = {Path(file.path) for file in reading.files} | images
    left = [path for path in sorted(folder.rglob("*")) if path.is_file() and path not in read]
    return {"count": len(left), "first": [str(path.relative_to(folder)) for path in left[:_SHOWN]]}

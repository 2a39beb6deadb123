"""What was found out about a data set, as tables for the eye."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from toolkit.data.inspection.visible import visible

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MOST_CHARACTERS = 200
_MOST_PIECES = 60
_MOST_LABELS = 40


def print_check(facts: Mapping[str, Any], console: Console) -> None:
    """Tables of files, splits and labels, then what was noticed."""
    for part in _parts(facts):
        console.print(part, soft_wrap=isinstance(part, str))


def _parts(facts: Mapping[str, Any]) -> Iterator[RenderableType]:
    if facts["task"]:
        yield (
            f"[bold]{escape(facts['data'])}[/bold]: {facts['task']} (by "
            f"{escape(facts['task_chosen_by'])}), read as {facts['recipe']} does"
        )
    if facts["files"]:
        yield _files(facts["files"], facts["data"])
    if left := facts["files_not_read"]["count"]:
        first = ", ".join(map(escape, facts["files_not_read"]["first"]))
        yield f"{left:,} {'file' if left == 1 else 'files'} of the folder not read: {first}" + (
            ", …" if left > len(facts["files_not_read"]["first"]) else ""
        )
    if images := facts.get("images"):
        yield _images(images)
    if "splits" in facts:
        yield _splits(facts["splits"])
        if any("labels" in split for split in facts["splits"].values()):
            yield from _labels(facts["splits"], facts["label_names"] or [])
    notes = [*_notes(facts), *facts["remarks"]]
    warnings = [f"warning: {warning}" for warning in facts.get("warnings", [])]
    for note in [*notes, *warnings]:
        yield f"- {escape(note)}"


def _short(path: str, data: str) -> str:
    """Files of a folder by what follows it."""
    below = Path(path).is_relative_to(data) and path != data
    return str(Path(path).relative_to(data)) if below else path


def _files(files: Sequence[Mapping[str, Any]], data: str) -> Table:
    of_lines = any(file["blank"] is not None for file in files)
    numbers = ("rows", *(["blank lines"] if of_lines else []))
    table = _table("file", "format", "encoding", "delimiter", numbers=numbers)
    for file in files:
        delimiter = file["delimiter"] or ""
        table.add_row(
            escape(_short(file["path"], data)),
            file["format"] or "",
            file["encoding"] or "",
            escape(_DELIMITERS.get(delimiter, delimiter)),
            _number(file["rows"]),
            *([_number(file["blank"])] if of_lines else []),
        )
    return table


def _splits(splits: Mapping[str, Mapping[str, Any]]) -> Table:
    texts = list(splits["train"]["lengths"])
    tokens = list(splits["train"]["tokens"])
    table = _table(
        "split",
        numbers=("read", "left out", "rows", *(f"length of {name}" for name in texts),
                 *(f"tokens of {name}" for name in tokens)),
    )  # fmt: skip
    for name, split in splits.items():
        reasons = {reason: count for reason, count in split["left_out"].items() if count}
        table.add_row(
            name,
            _number(split["rows_read"]) if split["given"] else "made",
            "\n".join(f"{count:,} {_words(reason)}" for reason, count in reasons.items()),
            _number(split["rows"]),
            *(_lengths(split["lengths"][text]) for text in texts),
            *(_tokens(split["tokens"][text]) for text in tokens),
        )
    return table


def _lengths(found: Mapping[str, float]) -> str:
    return (
        f"{found['least']:,} to {found['greatest']:,}\nmedian {found['median']:,.0f}\n"
        f"95 % to {found['95%']:,.0f}"
    )


def _tokens(found: Mapping[str, Any]) -> str:
    cut = found.get("rows_cut", found.get("read_in_windows"))
    what = "cut to" if "rows_cut" in found else "longer than"
    return (
        f"longest {found['longest']:,}\n{cut:,} {what} {found['limit']:,}\n"
        f"{found['unknown_share']:.1%} unknown"
    )


def _labels(splits: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Iterator[Any]:
    """Classes in id order; of entities their types."""
    counts = {split: found["labels"] for split, found in splits.items()}
    known = list(counts["train"])
    are_classes = known == list(names)
    table = _table(*(["id", "label"] if are_classes else ["type of entity"]), numbers=(*counts,))
    totals = {split: sum(found.values()) or 1 for split, found in counts.items()}
    for number, label in enumerate(known[:_MOST_LABELS]):
        cells = [
            f"{found[label]:,} ({found[label] / totals[split]:.1%})"
            for split, found in counts.items()
        ]
        table.add_row(*([str(number)] if are_classes else []), escape(visible(label)), *cells)
    yield table
    if len(known) > _MOST_LABELS:
        yield f"… and {len(known) - _MOST_LABELS:,} more labels"


def _images(found: Mapping[str, Any]) -> str:
    modes = ", ".join(f"{mode} {count:,}" for mode, count in found["modes"].items())
    if not found["modes"]:
        return f"{found['files']:,} image files, none with a head that can be read"
    low, high = (f"{size[0]}x{size[1]}" for size in (found["smallest"], found["largest"]))
    return (
        f"{found['files']:,} image files, {found['no_images']:,} of them no images; modes: "
        f"{modes}; heights x widths from {low} to {high} ({found['sizes']:,} different)"
    )


def _notes(facts: Mapping[str, Any]) -> Iterator[str]:
    for split, found in facts.get("splits", {}).items():
        blank = {kind: count for kind, count in (found["blank_texts"] or {}).items() if count}
        if blank:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in blank.items())
            yield f"{split}: texts that show nothing: {kinds}"
    repeated = facts.get("repeated_in_train")
    if isinstance(repeated, int):
        repeated = {"exact": repeated}
    if repeated and any(repeated.values()):
        yield "train: repetitions of earlier rows: " + _listed(repeated)
    for split, overlap in (facts.get("also_in_train") or {}).items():
        if isinstance(overlap, int) and overlap:  # of the other tasks the recipe says it
            yield f"{split}: {overlap:,} sources also stand in train"
    for split, pairs in facts.get("pairs", {}).items():
        yield from _pair_notes(split, pairs)


def _pair_notes(split: str, pairs: Mapping[str, Any]) -> Iterator[str]:
    if pairs["source_equals_target"]:
        yield f"{split}: {pairs['source_equals_target']:,} pairs say the same on both sides"
    if pairs["unusual_lengths"]:
        yield (
            f"{split}: {pairs['unusual_lengths']:,} pairs whose lengths do not fit those of the "
            "others; are they translations of each other?"
        )
    for pair in pairs["first_unusual"]:
        source, target = (visible(pair[side], 60) for side in ("source", "target"))
        yield f"  row {pair['row']:,}: {source} | {target}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_words(name)} {count:,}" for name, count in counts.items() if count)


def print_preview(rows: Mapping[str, Sequence[Mapping[str, Any]]], console: Console) -> None:
    """The first rows of every split; what cannot be seen is written out."""
    for split, found in rows.items():
        console.print(f"[bold]{split}[/bold]")
        for row in found:
            for name, value in row.items():
                console.print(f"  [dim]{escape(name)}[/dim] {escape(shown(value))}", soft_wrap=True)
            console.print()


def shown(value: Any) -> str:
    """A cell in one line, long ones cut."""
    if isinstance(value, list):
        more = f" … (+{len(value) - _MOST_PIECES:,})" if len(value) > _MOST_PIECES else ""
        return " | ".join(visible(str(item)) for item in value[:_MOST_PIECES]) + more
    return visible(str(value), _MOST_CHARACTERS)


def _table(*headings: str, numbers: Iterable[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _words(name: str) -> str:
    return name.replace("_", " ")

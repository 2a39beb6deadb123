"""Pairs of texts in two languages, from parallel files, tables, the Hub or the embedded phrases."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.data.columns import choose_column
from toolkit.data.encoding import check_line_ends, decode, half_character
from toolkit.data.file_log import note_file
from toolkit.data.files import Table, read_bytes
from toolkit.data.line_lengths import first_unmatched
from toolkit.data.sources import SPLIT_NAMES, read_source
from toolkit.data.splits import is_blank
from toolkit.data.suggest import near_names
from toolkit.demo import dates
from toolkit.errors import UserError

SPLITS = ("train", "validation", "test")
COMMON_NAMES = {
    "source": ("source", "src", "source_text"),
    "target": ("target", "tgt", "target_text", "translation"),
}


@dataclass(frozen=True)
class Pairs:
    """Texts and their translations, of equal length, without spaces at their ends."""

    sources: list[str]
    targets: list[str]
    place: Callable[[int], str]  # where a row stands, for messages
    origin: str  # file or column names, for data.json
    kinds: list[str] | None = None  # where rows are of several kinds

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class ParallelSource:
    """Pairs by split name; "train" is always there."""

    pairs: dict[str, Pairs]
    held_out_sizes: dict[str, int] = field(default_factory=dict)  # of splits that are to be made
    counts: dict[str, Any] = field(default_factory=dict)  # what reading left out, and why


def read_parallel_files(files: dict[str, tuple[str | None, str | None]]) -> ParallelSource:
    """Pairs of files with one text a line.

    Args:
        files: source and target file of every split; None for both where there is none.

    Raises:
        UserError: one file of a pair is missing, they have different numbers of lines, or there is
            nothing to train on.
    """
    pairs = {}
    for split, (source, target) in files.items():
        if source is None and target is None:
            continue
        if source is None or target is None:
            prefix = "" if split == "train" else f"{split}_"
            raise UserError(
                f"--{prefix}source_file and --{prefix}target_file belong together; found only "
                f"{source or target}."
            )
        pairs[split] = read_line_pairs(Path(source).expanduser(), Path(target).expanduser())
    if "train" not in pairs:
        raise UserError("files to validate or test with, but none to train on: add --source_file.")
    return ParallelSource(pairs)


def read_parallel(
    dataset: str,
    source_language: str,
    target_language: str,
    *,
    hub_config: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    test_name: str | None = None,
) -> ParallelSource:
    """Read `demo:dates`, a folder of parallel files, a table (or a folder of them) or a Hub name.

    Args:
        source_language, target_language: codes, such as "en" and "zh": ending of parallel files,
            name of columns, keys of the Hub's translations.
        hub_config: which configuration of a data set on the Hub that has several.
        source_column, target_column: columns by name, or by number (from 1) where the first line
            of a file is a row.
        test_name: which test files, without their ending, where a folder has several.

    Raises:
        UserError: nothing of that name, or whatever is wrong with it.
    """
    if dataset == dates.NAME:
        return _read_dates(source_language, target_language)
    folder = Path(dataset).expanduser()
    if folder.is_dir():
        endings = (source_language, target_language)
        if found := _parallel_files(folder, endings, test_name):
            return ParallelSource({split: read_line_pairs(*two) for split, two in found.items()})
    source = read_source(dataset, hub_config=hub_config)
    columns = (source_column, target_column)
    languages = (source_language, target_language)
    return ParallelSource(
        {
            split: _pairs_of_table(table, languages, columns)
            for split, table in source.tables.items()
        }
    )


def read_line_pairs(source: Path, target: Path) -> Pairs:
    """One text a line in both files, line by line together.

    Raises:
        UserError: they have different numbers of lines.
    """
    sources, targets = _lines(source), _lines(target)
    if len(sources) != len(targets):
        where = _where_they_part((source, sources), (target, targets))
        raise UserError(
            f"{source} has {len(sources):,} lines but {target} has {len(targets):,}: they are no "
            f"translation of each other line by line.{where} Look for a line that is missing "
            "or broken in two; an empty line keeps its place."
        )
    return Pairs(
        sources, targets, lambda row: f"{source} and {target.name}, line {row + 1}",
        f"{source.name}, {target.name}",
    )  # fmt: skip


def _where_they_part(*files: tuple[Path, Sequence[str]]) -> str:
    """A sentence, after a space, about the first line without a counterpart; "" where unknown."""
    (_, shorter), (path, longer) = sorted(files, key=lambda file: len(file[1]))
    line = first_unmatched(list(map(len, longer)), list(map(len, shorter)))
    if line is None:
        return ""
    beside = f"; beside it stands {shorter[line]!r:.60}" if line < len(shorter) else ""
    return (
        f" By their lengths the first line without a counterpart is about line {line + 1} of "
        f"{path}: {longer[line]!r:.60}{beside}."
    )


def _lines(path: Path) -> list[str]:
    """Only a line feed ends a line; the last one needs none."""
    text = decode(read_bytes(path), path)
    check_line_ends(text, path)
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    note_file(path, format="lines", rows=len(lines), blank=sum(map(is_blank, lines)))
    return lines


def _parallel_files(
    folder: Path, endings: tuple[str, str], test_name: str | None
) -> dict[str, tuple[Path, Path]]:
    """Files such as train.en and train.de (also .gz) by split; nothing where there are none."""
    stems: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        stem, dot, ending = path.name.removesuffix(".gz").rpartition(".")
        if dot and ending in endings and path.is_file() and not stem.startswith("."):
            stems.setdefault(stem, {})[ending] = path
    by_split: dict[str, list[str]] = {}
    for stem in stems:
        if split := SPLIT_NAMES.get(re.split(r"[._-]", stem.lower())[0]):
            by_split.setdefault(split, []).append(stem)
    if not by_split:
        return {}
    if "train" not in by_split:
        raise UserError(
            f"{folder} holds no training files; expected train.{endings[0]} and train.{endings[1]} "
            f"(also .gz); found {', '.join(sorted(stems))}."
        )
    chosen = {split: _only(folder, split, names, test_name) for split, names in by_split.items()}
    found = {}
    for split, stem in chosen.items():
        for ending in endings:
            if ending not in stems[stem]:
                present = next(iter(stems[stem].values())).name
                raise UserError(f"{folder}: {present} has no counterpart {stem}.{ending}.")
        found[split] = (stems[stem][endings[0]], stems[stem][endings[1]])
    return found


def _only(folder: Path, split: str, stems: list[str], test_name: str | None) -> str:
    if split == "test" and test_name is not None:
        if test_name not in stems:
            raise UserError(
                f"--test_name {test_name}: {folder} has {', '.join(stems)}."
                f"{near_names(test_name, stems)}"
            )
        return test_name
    if len(stems) > 1:
        advice = "choose one with --test_name" if split == "test" else "keep one of them"
        raise UserError(f"{folder} has several {split} files ({', '.join(stems)}): {advice}.")
    return stems[0]


def _read_dates(source_language: str, target_language: str) -> ParallelSource:
    if source_language != dates.SOURCE:
        raise UserError(f"{dates.NAME} translates from {dates.SOURCE}, not {source_language!r}.")
    found = dates.read_dates(target_language)
    pairs = Pairs(
        found.sources, found.targets, lambda row: f"{dates.NAME}, row {row + 1}",
        f"CLDR {source_language}, {target_language}", found.kinds,
    )  # fmt: skip
    return ParallelSource({"train": pairs}, dates.HELD_OUT_SIZES, found.counts)


def _pairs_of_table(
    table: Table, languages: tuple[str, str], asked: tuple[str | None, str | None]
) -> Pairs:
    if asked == (None, None) and _holds_translations(table):
        names = languages
        cells = [_translations(table, language) for language in languages]
        positions = 0
    elif all(name is not None and name.isdigit() and name not in table.columns for name in asked):
        names = (f"column {asked[0]}", f"column {asked[1]}")
        cells = [_column_by_number(table, int(number or 0)) for number in asked]
        positions = 1  # the line that was taken for names is the first row
    else:
        names = (
            _column(table, asked[0], languages[0], "source"),
            _column(table, asked[1], languages[1], "target"),
        )
        cells = [table.columns[name] for name in names]
        positions = 0

    def place(row: int) -> str:
        return f"{table.source}, line 1" if row < positions else table.place(row - positions)

    texts = [_texts(column, name, place) for column, name in zip(cells, names, strict=True)]
    return Pairs(texts[0], texts[1], place, f"{table.source}: {names[0]}, {names[1]}")


def _holds_translations(table: Table) -> bool:
    return "translation" in table.columns and isinstance(table.columns["translation"][0], dict)


def _translations(table: Table, language: str) -> list[Any]:
    column = table.columns["translation"]
    if language not in column[0]:
        raise UserError(
            f"{table.source} has no {language!r}; its languages: {', '.join(sorted(column[0]))}."
        )
    return [(cell or {}).get(language) for cell in column]


def _column(table: Table, asked: str | None, language: str, side: str) -> str:
    """The column asked for, else one named like its language or its side."""
    advice = (
        f"Name it with --{side}_column, or give its number there if the first line is a row and "
        "not the names."
    )
    common = (language.lower(), *COMMON_NAMES[side])
    return choose_column(list(table.columns), asked, common, table.source, f"{side} texts", advice)


def _column_by_number(table: Table, number: int) -> list[Any]:
    if not 1 <= number <= len(table.columns):
        raise UserError(f"no column {number}: {table.source} has {len(table.columns)}.")
    name, cells = list(table.columns.items())[number - 1]
    return [name, *cells]


def _texts(cells: Sequence[Any], name: str, place: Callable[[int], str]) -> list[str]:
    for row, cell in enumerate(cells):
        if cell is not None and not isinstance(cell, str):
            raise UserError(f"{place(row)}: {name} is {cell!r:.60}, expected a text.")
        if wrong := half_character(cell or ""):
            raise UserError(f"{place(row)}: {name} {wrong}.")
    return [(cell or "").strip() for cell in cells]

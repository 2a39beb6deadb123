"""The texts a model is analysed on: those its run was tested on, or embedded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config_files import read_yaml
from toolkit.data.splits import is_blank
from toolkit.errors import UserError, first_line
from toolkit.prediction.source import Source

# Columns of a run's predictions that the model read, by what is found first.
_COLUMNS = (("source", "reference"), ("text", "pair"), ("text",), ("question", "context"))


@dataclass(frozen=True)
class Corpus:
    """Texts to read.

    Args:
        rows: of each what a reader takes: a text, a pair, a text with its translation.
        description: how many of which texts, in words.
        languages: of texts and translations.
    """

    rows: list[list[str]]
    description: str
    languages: tuple[str, str] | None = None


def corpus_of(source: Source, number: int, translates: bool) -> Corpus:
    """At most `number` texts: of a run's test predictions, else of the embedded data.

    They are taken at equal distances, so that they are of all kinds there are.

    Raises:
        UserError: the embedded data are not installed, or the run's file cannot be read.
    """
    run = _run_folder(source)
    for split in ("test", "validation") if run is not None else ():
        file = Path(str(run)) / "predictions" / f"{split}.parquet"
        rows = _rows_of(file) if file.is_file() else []
        if rows:
            chosen = _spread(rows, number)
            return Corpus(
                chosen,
                f"{len(chosen):,} of the {len(rows):,} {split} examples of the run",
                _languages(Path(str(run))) if translates else None,
            )
    return _embedded_pairs(number) if translates else _embedded_texts(number)


def _run_folder(source: Source) -> Path | None:
    if not source.is_run:
        return None
    folder = Path(source.adapter or source.folder).resolve()
    return folder.parent


def _rows_of(file: Path) -> list[list[str]]:
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {first_line(error)}") from error
    for names in _COLUMNS:
        if all(name in table.column_names for name in names):
            columns = [table.column(name).to_pylist() for name in names]
            rows = [list(row) for row in zip(*columns, strict=True)]
            return [row for row in rows if all(isinstance(t, str) and not is_blank(t) for t in row)]
    if "tokens" in table.column_names:
        sentences: list[Any] = table.column("tokens").to_pylist()
        return [["".join(tokens)] for tokens in sentences if tokens]
    return []


def _languages(run: Path) -> tuple[str, str] | None:
    file = run / "config.yaml"
    settings = read_yaml(file) if file.is_file() else {}
    found = settings.get("source"), settings.get("target")
    return (str(found[0]), str(found[1])) if all(found) else None


def _embedded_pairs(number: int) -> Corpus:
    from toolkit.demo.dates import NAME, SOURCE, read_dates

    pairs = read_dates("zh")
    rows = [list(pair) for pair in zip(pairs.sources, pairs.targets, strict=True)]
    chosen = _spread(rows, number)
    return Corpus(chosen, f"{len(chosen):,} of the {len(rows):,} pairs of {NAME}", (SOURCE, "zh"))


def _embedded_texts(number: int) -> Corpus:
    from toolkit.demo.reviews import NAME, read_reviews

    texts, _, _ = read_reviews()
    chosen = _spread([[text] for text in texts], number)
    return Corpus(chosen, f"{len(chosen):,} of the {len(texts):,} reviews of {NAME}")


def _spread(rows: Sequence[list[str]], number: int) -> list[list[str]]:
    if len(rows) <= number:
        return list(rows)
    return [rows[place * len(rows) // number] for place in range(number)]

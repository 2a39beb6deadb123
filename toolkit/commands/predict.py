"""`toolkit predict MODEL`: what a model says about texts, pairs, images or questions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.prediction.inputs import Inputs
    from toolkit.prediction.predictor import Options, Predictor
    from toolkit.prediction.session import Predictions
    from toolkit.prediction.source import Source

HELP = (
    "Predict with a run, a model folder, an adapter or a model of the Hub: labels of texts, pairs "
    "and images, entities, answers, translations, texts that go on. Every row is answered once, in "
    "its place, empty ones too. "
    "toolkit predict results/runs/bert_sentiment/RUN --file reviews.csv --output labelled.csv"
)

WORDS = "texts"
"""Argument whose words may also stand behind options."""

_FILES = (
    "csv, tsv, json, jsonl, parquet (also .gz), or a text file: one row a line, empty lines too "
    "(but blank lines of a csv or tsv with several columns are no rows, nor are those at the end "
    "of one with a single column); a folder of images; -: standard input, lines or JSON lines"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "model",
        metavar="RUN_OR_MODEL",
        help="run directory, model folder, adapter folder or Hub name",
    )
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="texts, or paths of images; instead of --file"
    )
    parser.add_argument("--file", metavar="FILE", help=_FILES)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="csv, tsv, json, jsonl, parquet: the columns of the input, then the new ones; or txt: "
        "a line with the prediction alone, of entities all tags with spaces between them; without "
        "it they go to standard output",
    )
    parser.add_argument("--overwrite", action="store_true", help="write over an existing --output")
    parser.add_argument(
        "--json", action="store_true", help="print every row as JSON, one object a line"
    )
    _configure_columns(parser.add_argument_group("columns of the file"))
    _configure_model(parser.add_argument_group("how to predict"))
    _configure_writing(parser.add_argument_group("for some tasks"))


def _configure_columns(group: Any) -> None:
    group.add_argument(
        "--format",
        choices=("lines", "csv", "tsv", "json", "jsonl"),
        help="how to read --file where its name does not tell (default of standard input: JSON "
        "lines if its first line is a JSON object, else one text a line)",
    )
    group.add_argument(
        "--text-column", metavar="NAME", help="texts (sources, prompts, questions, tokens)"
    )
    group.add_argument("--pair-column", metavar="NAME", help="second texts of a model of pairs")
    group.add_argument("--context-column", metavar="NAME", help="texts that questions are about")
    group.add_argument("--image-column", metavar="NAME", help="images, or their paths")
    group.add_argument(
        "--suffix",
        metavar="ENDING",
        default="",
        help="put behind the names of the new columns: prediction_2 with _2",
    )


def _configure_model(group: Any) -> None:
    group.add_argument(
        "--implementation",
        choices=("scratch", "hf"),
        default="scratch",
        help="our classes, or HuggingFace's: the same results (default: scratch)",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 (default: auto)")
    group.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="rows at once (default: 64)"
    )
    group.add_argument(
        "--batch-tokens",
        type=int,
        metavar="N",
        help="tokens at once, padding included (default: 2,048 on a CPU, 32,768 on a GPU)",
    )
    group.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="tokens of an input (default: those of the run, else all the model can read)",
    )


def _configure_writing(group: Any) -> None:
    group.add_argument(
        "--max-new-tokens",
        type=int,
        metavar="N",
        help="tokens a model writes at most (default of language models: 60)",
    )
    group.add_argument("--beams", type=int, metavar="N", help="hypotheses of a translation")
    group.add_argument("--prefix", help="put before every text to translate (T5)")
    group.add_argument("--source-language", metavar="CODE", help="for models of many languages")
    group.add_argument("--target-language", metavar="CODE", help="likewise")
    group.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="language models draw tokens; 0 takes the most probable one (default: 0)",
    )
    group.add_argument("--top-p", type=float, default=1.0, metavar="P", help="draw among these")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn")
    group.add_argument(
        "--no-answer-threshold",
        type=float,
        metavar="MARGIN",
        help="answer questions above this margin alone (default: the run's)",
    )
    group.add_argument(
        "--skip-damaged",
        action="store_true",
        help="leave files that are no images without a prediction",
    )


def run(args: argparse.Namespace) -> int:
    """Predict and write; 0."""
    _check_arguments(args)
    from toolkit.prediction.source import IMAGE, find_source

    source = find_source(args.model)
    inputs = _read(args, source.task == IMAGE)
    if args.output is None:
        _predict(args, source, inputs, None)
        return 0
    from toolkit.prediction.output_checks import check_cells
    from toolkit.prediction.outputs import output_file

    check_cells(inputs, args.output.suffix.lower())
    with output_file(args.output, args.file, args.overwrite) as partial:
        _predict(args, source, inputs, partial)
    return 0


def _check_arguments(args: argparse.Namespace) -> None:
    if args.texts and args.file is not None:
        raise UserError("give texts or --file, not both.")
    if not args.texts and args.file is None:
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError(
                "nothing to predict: give texts, --file FILE, or pipe lines into the command."
            )
        args.file = "-"
    if args.texts and args.format is not None:
        raise UserError("--format says how to read --file: leave it out.")


def _read(args: argparse.Namespace, images: bool) -> Inputs:
    from toolkit.prediction.inputs import given_images, given_texts, read_inputs

    if images and len(args.texts) == 1 and Path(args.texts[0]).is_dir():
        return read_inputs(args.texts[0])
    if args.texts:
        return given_images(args.texts) if images else given_texts(args.texts)
    return read_inputs(args.file, args.format)


def _predict(args: argparse.Namespace, source: Source, inputs: Inputs, file: Path | None) -> None:
    from toolkit.prediction.opening import open_source
    from toolkit.prediction.output_checks import check_names, line_column
    from toolkit.prediction.outputs import joined, write_records
    from toolkit.prediction.rows import Columns, choose_rows
    from toolkit.prediction.session import predict, say_notes
    from toolkit.progress import working

    with working(f"loading {source.name}"):
        predictor = open_source(source, _options(args))
    check_names(inputs, predictor, args.suffix)
    suffix = "" if file is None else args.output.suffix.lower()
    line = line_column(predictor) if suffix == ".txt" else ""
    columns = Columns(args.text_column, args.pair_column, args.context_column, args.image_column)
    rows = choose_rows(inputs, predictor.kind, columns, predictor.task)
    found = predict(predictor, rows)
    say_notes(inputs, predictor, found)
    records = joined(inputs, found.answers, args.suffix)
    if file is not None:
        write_records(records, file, suffix, args.suffix, line)
    _print(args, records)
    _say_done(args, predictor, found)


def _options(args: argparse.Namespace) -> Options:
    import dataclasses

    from toolkit.prediction.predictor import Options

    names = [field.name for field in dataclasses.fields(Options)]
    return Options(**{name: getattr(args, name) for name in names})


def _print(args: argparse.Namespace, records: list[dict[str, Any]]) -> None:
    """JSON lines where they are asked for or rows come from a file; texts typed get a table."""
    if args.json or (args.output is None and not args.texts):
        from toolkit.prediction.outputs import write_json_lines

        if hasattr(sys.stdout, "reconfigure"):  # JSON is UTF-8, whatever the terminal speaks
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        write_json_lines(records, sys.stdout)
        sys.stdout.flush()
    elif args.output is None:
        from toolkit.console import console
        from toolkit.prediction.terminal import table_of

        console.print(table_of(records, args.suffix))


def _say_done(args: argparse.Namespace, predictor: Predictor, found: Predictions) -> None:
    from toolkit.console import notify

    count = len(found.answers)
    where = "" if args.output is None else f", written to {args.output}"
    rate = count / found.seconds if found.seconds else 0
    rows = "1 row" if count == 1 else f"{count:,} rows"
    notify(f"{predictor.task}: {rows} in {found.seconds:.1f} s ({rate:,.1f} a second){where}")

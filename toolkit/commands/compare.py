"""`toolkit compare`: which of several finished runs is better, and is that certain?"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from toolkit.errors import UserError

HELP = (
    "Compare finished runs that were tested on the same examples: print a table and which method "
    "is better, and write a report where --output says so. Runs that differ by their seed only are "
    "one method. What cannot be compared fairly is refused, with the reasons."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit compare`."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="[TITLE=]RUN",
        help="directory of a finished run, such as results/runs/bert_sentiment/20260101-120000 "
        "(two or more; with --predictions one is enough); a title replaces the run's own in the "
        "report",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="folder for report.html (one file), report.md, report.json and the pictures",
    )
    parser.add_argument(
        "--predictions",
        nargs="+",
        default=[],
        metavar="[TITLE=]FILE",
        help="predictions of another system for the same test examples (csv, tsv, json, jsonl, "
        "parquet; columns id and prediction, for language models id, nll and tokens; see "
        "recipes/README.md)",
    )
    parser.add_argument(
        "--learning-curve",
        nargs="+",
        default=[],
        metavar="RUN",
        help="runs of the same methods with other numbers of training examples, for a curve of the "
        "test value against that number",
    )
    parser.add_argument(
        "--target",
        type=float,
        metavar="VALUE",
        help="report how long every method took to reach this value on validation, such as 0.8 "
        "(80%% accuracy); default: the best value that all reached and, for shares, round ones",
    )
    parser.add_argument("--title", default="Comparison", help="heading of the report")
    parser.add_argument(
        "--no-examples",
        action="store_true",
        help="leave the test examples (texts, images) out of the report, for data that may not be "
        "copied",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="compare runs that cannot be compared fairly; the report carries a warning",
    )
    parser.add_argument("--json", metavar="FILE", help="also write report.json to FILE")


def run(args: argparse.Namespace) -> int:
    """Compare the runs, print the table and the verdict, write what was asked for."""
    from toolkit.comparison.compare import compare_runs
    from toolkit.console import console
    from toolkit.report import build_report, print_report, write_json, write_report

    runs = [_title_and_folder(word) for word in args.runs]
    comparison = compare_runs(
        [folder for _, folder in runs],
        args.learning_curve,
        force=args.force,
        titles={folder: title for title, folder in runs if title is not None},
        predictions=_titled_files(args.predictions),
        target=args.target,
    )
    report = build_report(
        comparison,
        title=args.title,
        show_examples=not args.no_examples,
        command=_command(args),
    )
    print_report(report, console)
    if args.json:
        try:
            write_json(report, args.json)
        except OSError as error:
            raise UserError(f"{args.json} cannot be written: {error}") from error
    if args.output:
        path = write_report(report, args.output)
        console.print(f"Report: {path}", soft_wrap=True, markup=False)
    return 0


def _titled_files(given: list[str]) -> dict[str, Path]:
    """`TITLE=FILE` or `FILE`, whose stem is then the title.

    Raises:
        UserError: two files have the same title.
    """
    files: dict[str, Path] = {}
    for word in given:
        title, name = _title_and_file(word)
        if title in files:
            raise UserError(
                f"--predictions: two files are called {title!r}: {files[title]} and {name}. Give "
                "them titles: --predictions 'ours=a.csv' 'theirs=b.csv'."
            )
        files[title] = Path(name)
    return files


def _title_and_folder(word: str) -> tuple[str | None, Path]:
    """`TITLE=RUN`, or `RUN`, whose title is then its own."""
    title, separator, name = word.rpartition("=")
    if not separator or Path(word).is_dir() or not title.strip():
        return None, Path(word)
    return title.strip(), Path(name)


def _title_and_file(word: str) -> tuple[str, str]:
    """Where a file has a name with "=" in it, what stands after its "=" is no file."""
    if not Path(word).exists():
        places = [place for place, character in enumerate(word) if character == "="]
        there = [place for place in places if Path(word[place + 1 :]).is_file()]
        for place in there or places[:1]:
            title = word[:place].strip()
            if not title:
                raise UserError(f"--predictions {word}: the title before '=' is empty.")
            return title, word[place + 1 :]
    if Path(word).is_dir():
        raise UserError(
            f"--predictions {word}: a run directory, expected a file. Runs stand before "
            "--predictions."
        )
    return Path(word).stem, word


def _command(args: argparse.Namespace) -> str:
    """The command line that makes this report again."""
    words = ["toolkit", "compare"]
    for title, folder in map(_title_and_folder, args.runs):
        words.append(_short(str(folder)) if title is None else f"{title}={_short(str(folder))}")
    if args.predictions:
        files = _titled_files(args.predictions)
        words.append("--predictions")
        words += [
            _short(str(file)) if title == file.stem else f"{title}={_short(str(file))}"
            for title, file in files.items()
        ]
    if args.learning_curve:
        words += ["--learning-curve", *map(_short, args.learning_curve)]
    if args.target is not None:
        words += ["--target", f"{args.target:g}"]
    if args.output:
        words += ["--output", _short(args.output)]
    if args.title != "Comparison":
        words += ["--title", args.title]
    words += ["--no-examples"] * args.no_examples + ["--force"] * args.force
    return shlex.join(words)


def _short(path: str) -> str:
    """The path as seen from here, where it lies below: nobody else has our folders above."""
    absolute = Path(path).absolute()
    below = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd())) if below else path

"""`toolkit attention MODEL TEXT [TEXT2]`: what every head of a model attends to, as a page."""

from __future__ import annotations

import argparse
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.commands import attention_analysis
from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.attention.reading import Reading
    from toolkit.prediction.predictor import Options

HELP = (
    "Show what a model attends to in a text, a pair of texts, a translation or an image: one HTML "
    "file with every layer and head, to be opened in a browser, offline. "
    "toolkit attention results/runs/bert_sentiment/RUN 房间很干净. With --analyse: what every head "
    "attends to over many texts, in words and numbers."
)

_LARGE = 10  # MB, from which on it is said

WORDS = "texts"
"""Argument whose words may also stand behind options."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="run directory, model folder, adapter folder, Hub name or demo:chinese-bert; with a "
        "task or without one",
    )
    parser.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help="a text, or the two of a pair; for a model that translates a text and, if you have "
        "one, its translation (else the model's own is shown); for a model of images the path of "
        "one",
    )
    parser.add_argument(
        "--output",
        metavar="FILE.html",
        type=Path,
        help="the page (default: attention-MODEL.html in this folder; none where only --png or "
        "--json is asked for)",
    )
    parser.add_argument("--png", metavar="FILE", type=Path, help="a picture: FILE.png or FILE.svg")
    parser.add_argument("--json", metavar="FILE", help="all shares as JSON to FILE; -: only that")
    parser.add_argument("--overwrite", action="store_true", help="write over existing files")
    group = parser.add_argument_group("what the picture shows (default: all layers and heads)")
    group.add_argument("--layer", type=int, metavar="N", help="this layer, the first is 1")
    group.add_argument(
        "--head", metavar="N", help="this head of it, the first is 1; or mean, or rollout"
    )
    group.add_argument(
        "--kind",
        choices=("encoder", "decoder", "cross"),
        help="which attention of a model that has several (default: cross)",
    )
    group = parser.add_argument_group("how to read")
    group.add_argument(
        "--implementation",
        choices=("scratch", "hf"),
        default="scratch",
        help="our classes, or HuggingFace's: the same weights (default: scratch)",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 (default: auto)")
    group.add_argument(
        "--max-tokens",
        type=int,
        default=128,
        metavar="N",
        help="cut longer texts; translations too (default: 128)",
    )
    group.add_argument("--prefix", help="put before a text to translate (T5)")
    group.add_argument("--source-language", metavar="CODE", help="for models of many languages")
    group.add_argument("--target-language", metavar="CODE", help="likewise")
    attention_analysis.configure(parser.add_argument_group("over many texts"))


def run(args: argparse.Namespace) -> int:
    """Read, and write what is asked for; 0."""
    if args.analyse:
        return attention_analysis.run(args, _options(args))
    _check_arguments(args)
    from toolkit.json_values import check_writable

    check_writable(args.json)
    with ExitStack() as stack:
        page = _file(stack, _page_name(args), "--output", args.overwrite, (".html", ".htm"))
        picture = _file(stack, args.png, "--png", args.overwrite, (".png", ".svg"))
        reading = _read(args)
        if picture is not None:
            _write_picture(args, reading, picture)
        if page is not None:
            _write_page(reading, page)
        if args.json is not None:
            from toolkit.attention.numbers import write_numbers

            write_numbers(reading, args.json)
    _say_done(args, reading)
    return 0


def _check_arguments(args: argparse.Namespace) -> None:
    if args.number is not None:
        raise UserError("--texts says how many texts --analyse reads: give --analyse too.")
    if not 1 <= len(args.texts) <= 2:
        raise UserError(
            f"expected a text, or two, behind the model; {len(args.texts) or 'none'} given. A text "
            'of several words needs quotes: toolkit attention MODEL "two words".'
        )
    if args.png is None and (args.layer, args.head, args.kind) != (None, None, None):
        raise UserError("--layer, --head and --kind choose what --png shows: give --png FILE.")
    if args.head is not None and not re.fullmatch(r"[1-9]\d*|mean|rollout", args.head):
        raise UserError(f"--head {args.head}: expected a number from 1 on, mean or rollout.")
    for path in (args.output, args.png):
        if args.json not in (None, "-") and path is not None and Path(args.json) == path:
            raise UserError(f"--json {args.json}: the same file is to hold something else too.")
    if args.json not in (None, "-") and Path(args.json).exists() and not args.overwrite:
        raise UserError(f"--json {args.json} exists already. Write over it: --overwrite.")


def _page_name(args: argparse.Namespace) -> Path | None:
    if args.output is not None or args.png is not None or args.json is not None:
        return args.output
    from toolkit.attention.page import display_name

    slug = re.sub(r"[^\w.-]+", "-", display_name(args.model)).strip("-.")
    return Path(f"attention-{slug or 'model'}.html")


def _file(
    stack: ExitStack, path: Path | None, option: str, overwrite: bool, suffixes: tuple[str, ...]
) -> Path | None:
    """Where to write a file, which gets its name when it is whole."""
    if path is None:
        return None
    from toolkit.prediction.outputs import new_file

    return stack.enter_context(new_file(path, option, suffixes, overwrite))


def _read(args: argparse.Namespace) -> Reading:
    from toolkit.progress import working

    with working(f"{args.model} is loaded and reads"):
        from toolkit.attention.reading import read

        return read(args.model, args.texts, _options(args), args.max_tokens)


def _options(args: argparse.Namespace) -> Options:
    from toolkit.prediction.predictor import Options

    return Options(**{name: getattr(args, name) for name in attention_analysis.OPTIONS})


def _write_page(reading: Reading, file: Path) -> None:
    from toolkit.attention.page import render_page

    file.write_text(render_page(reading), encoding="utf-8")


def _write_picture(args: argparse.Namespace, reading: Reading, file: Path) -> None:
    from toolkit.attention.picture import draw, write_picture
    from toolkit.progress import working

    with working("drawing"):
        figure = draw(reading, args.kind, args.layer, args.head)
        write_picture(figure, file, args.png.suffix.lower())


def _say_done(args: argparse.Namespace, reading: Reading) -> None:
    from toolkit.console import notify

    for remark in reading.remarks:
        notify(f"note: {remark}.")
    if reading.made:
        notify(f"its own translation: {reading.written}")
    for path in (_page_name(args), args.png, args.json):
        if path not in (None, "-"):
            notify(f"written: {path} ({_megabytes(path):.1f} MB)")
    page = _page_name(args)
    if page is not None and _megabytes(page) > _LARGE:
        notify(f"note: browsers take their time with {page}; fewer tokens: --max-tokens 64.")


def _megabytes(path: str | Path) -> float:
    return Path(path).stat().st_size / 1e6

"""`toolkit data`: see, before training, what a recipe will make of a data set."""

from __future__ import annotations

import argparse
import dataclasses
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

if TYPE_CHECKING:
    from toolkit.data.inspection.reading import Reading
    from toolkit.data.inspection.tokens import Tokenizing

HELP = (
    "Read a data set as recipes do, without training: files and their encodings, rows that are "
    "left out, labels, repetitions, leaks, lengths, tokens, damaged images. "
    "toolkit data check reviews.csv; toolkit data preview reviews.csv --rows 3"
)
_CHECK = (
    "Say what a recipe will make of a data set. Exit status: 0 it can be trained on, 1 it is "
    "refused (with the message of the recipe), 2 wrong usage."
)
_PREVIEW = "Show the first rows of every split as a recipe sees them, blanks and all. Exit status: "


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit data`."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = commands.add_parser(
        "check", help="what a recipe will make of it", description=_CHECK, allow_abbrev=False
    )
    preview = commands.add_parser(
        "preview",
        help="its first rows as a recipe sees them",
        description=_PREVIEW + "as of check.",
        allow_abbrev=False,
    )
    preview.add_argument(
        "--rows", type=_count, default=5, metavar="N", help="of every split (default: 5)"
    )
    for command in (check, preview):
        _configure_reading(command)


def _configure_reading(parser: argparse.ArgumentParser) -> None:
    from toolkit.data.inspection.tasks import TASKS

    parser.add_argument(
        "data",
        metavar="PATH",
        nargs="?",
        help="file, folder, demo: name or Hub name, as --dataset of the recipes; without it "
        "--source-file and --target-file",
    )
    parser.add_argument("--task", choices=TASKS, help="default: told by what the files are")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--model", metavar="MODEL", help="count in the tokens of this model")
    parser.add_argument(
        "--max-length", type=_count, metavar="N", help="tokens of a row (default: the recipe's)"
    )
    group = parser.add_argument_group("settings of the data, as recipes have them")
    tasks_of: dict[str, list[str]] = {}
    for task in TASKS.values():
        for name in task.fields:
            tasks_of.setdefault(name, []).append(task.name)
    for task in TASKS.values():
        docs = _docs(task.settings)
        for field in dataclasses.fields(task.settings):
            if tasks_of.pop(field.name, None) is not None:
                _add_setting(group, field, docs[field.name])


def _add_setting(group: Any, field: dataclasses.Field[Any], doc: str) -> None:
    """An option with the name, kind and help of a setting; not there unless it is given."""
    options: dict[str, Any] = {"default": argparse.SUPPRESS, "help": doc.replace("%", "%%")}
    kind: Any = field.type
    if isinstance(kind, UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        options["choices"] = get_args(kind)
    elif kind is bool:
        options["action"] = "store_true"
    else:
        options |= {"type": kind, "metavar": "N" if kind is int else "TEXT"}
    dashed = f"--{field.name.replace('_', '-')}"
    group.add_argument(dashed, dest=field.name, **options)
    if "_" in field.name:  # as the recipes write it
        group.add_argument(
            f"--{field.name}", dest=field.name, **options | {"help": argparse.SUPPRESS}
        )


def _docs(settings: type) -> dict[str, str]:
    """What stands below every field of a class of settings, or of one that it inherits from."""
    from docstring_parser import parse_from_object  # as jsonargparse reads them for recipes

    return {
        field.arg_name: " ".join((field.description or "").split())
        for part in reversed(settings.__mro__[:-1])
        for field in parse_from_object(part).params
    }


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}: expected 1 or more")
    return number


def run(args: argparse.Namespace) -> int:
    """Check or show; 1 where the data are refused."""
    from toolkit.console import fail
    from toolkit.data.inspection.reading import read

    model = _model(args)
    reading = read(args.data, _settings(args), args.task, model)
    if args.action == "check":
        _check(reading, args.json)
    else:
        _preview(reading, args, model)
    if reading.refused is None:
        return 0
    fail(reading.refused)
    return 1


def _model(args: argparse.Namespace) -> Tokenizing | None:
    from toolkit.errors import UserError

    if args.model is None:
        if args.max_length is not None:
            raise UserError("--max-length counts the tokens of a model: add --model.")
        return None
    from toolkit.data.inspection.tokens import Tokenizing

    return Tokenizing(args.model, args.max_length)


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of the data that are given."""
    from toolkit.data.inspection.tasks import TASKS

    known = {name for task in TASKS.values() for name in task.fields}
    return {name: value for name, value in vars(args).items() if name in known}


def _check(reading: Reading, as_json: bool) -> None:
    from toolkit.console import console
    from toolkit.data.inspection.check import describe
    from toolkit.json_values import write_json

    facts = describe(reading)
    if as_json:
        write_json(facts, "-")
        return
    from toolkit.data.inspection.terminal import print_check

    print_check(facts, console)


def _preview(reading: Reading, args: argparse.Namespace, model: Tokenizing | None) -> None:
    from toolkit.console import console, notify
    from toolkit.data.inspection.preview import first_rows
    from toolkit.data.inspection.terminal import print_preview
    from toolkit.json_values import write_json

    rows = {} if reading.data is None else first_rows(reading, args.rows, model)
    if args.json:
        task = reading.choice.task.name if reading.choice else None
        write_json(
            {"task": task, "refused": reading.refused, "remarks": reading.remarks, "rows": rows},
            "-",
        )
        return
    for remark in reading.remarks:
        notify(remark)
    print_preview(rows, console)

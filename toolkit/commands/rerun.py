"""`toolkit rerun RUN`: repeat a run from what it recorded, and compare the results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.environment_changes import Change
    from toolkit.rerun import Compared

HELP = (
    "Repeat a complete run: its recipe is started again with the settings in its config.yaml, in a "
    "run directory of its own. Before, it is said what is not as it was then (code, versions, "
    "hardware, files); afterwards data, losses, weights, predictions and figures are compared. "
    "Status 0: equal to the last bit; 1: the results differ; 2: it could not be repeated."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit rerun`."""
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a complete run")
    parser.add_argument(
        "--output-dir",
        metavar="DIR",
        type=Path,
        help="the new run is made in DIR/RECIPE; default: beside the old one",
    )
    parser.add_argument(
        "--run-id", metavar="NAME", help="of the new run; default: the old one's with -rerun"
    )
    parser.add_argument(
        "--against",
        metavar="OTHER",
        type=Path,
        help="run nothing: compare with this run, which repeats it already",
    )
    parser.add_argument("--json", metavar="FILE", help="what is said as JSON to FILE; -: only that")


def run(args: argparse.Namespace) -> int:
    """Repeat and compare; 1 if the results differ."""
    from toolkit.console import console
    from toolkit.environment_changes import environment_changes
    from toolkit.errors import UserError
    from toolkit.json_values import check_writable, write_json
    from toolkit.rerun import compare_runs, read_recorded

    check_writable(args.json)
    recorded = read_recorded(args.run)
    if args.against is None:
        said = _repeat(recorded, args)
    elif args.output_dir is not None or args.run_id is not None:
        raise UserError("--against runs nothing: leave out --output-dir and --run-id")
    else:
        said = {"rerun": str(args.against)}
    other = read_recorded(Path(said["rerun"]))
    changes = environment_changes(recorded.environment, other.environment)
    compared = compare_runs(recorded.folder, other.folder)
    equal = all(one.equal for one in compared)
    said = {
        "run": str(recorded.folder),
        **said,
        "equal": equal,
        "changes": [{"what": one.name, "then": one.then, "now": one.now} for one in changes],
        "compared": [one.as_json() for one in compared],
    }
    if args.json:
        write_json(said, args.json)
    if args.json != "-":
        if args.against is not None:
            _say_changes(changes)
        _show(compared)
        verdict = "equal to the last bit" if equal else "the results differ"
        line = f"{recorded.folder} and {other.folder}: {verdict}"
        console.print(line, soft_wrap=True, markup=False)
    return 0 if equal else 1


def _repeat(recorded: Any, args: argparse.Namespace) -> dict[str, Any]:
    from toolkit.console import notify
    from toolkit.rerun import repeat

    repetition = repeat(recorded, args.output_dir, args.run_id)
    notify(f"repeating {recorded.folder}: {repetition.command}")
    _say_changes(repetition.changes)
    for remark in repetition.remarks:
        notify(f"warning: {remark}")
    repetition.start(quiet=args.json == "-")
    return {
        "rerun": str(repetition.folder),
        "command": repetition.command,
        "remarks": repetition.remarks,
    }


def _say_changes(changes: list[Change]) -> None:
    from toolkit.console import notify

    if not changes:
        notify("code, versions and hardware are those of then")
        return
    notify("not as it was then:")
    for change in changes:
        notify(f"  {change.in_words}")


def _show(compared: list[Compared]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from toolkit.console import console

    table = Table()
    table.add_column("what", no_wrap=True)
    table.add_column("result")
    for one in compared:
        table.add_row(one.what, escape(one.in_words))
    console.print(table)

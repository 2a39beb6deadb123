"""`toolkit models`: the architectures there are, and how far each was seen equal to HuggingFace's.

Listing imports neither torch nor transformers: it answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.catalogue import STATUS_FILE, Status, code_of, read_status, write_status
from toolkit.errors import UserError
from toolkit.json_values import write_json

if TYPE_CHECKING:
    from scratch_models.hub.architecture import Architecture

HELP = "list the architectures and how far each was seen equal to HuggingFace's"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit models`."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="show these in full, or check only these (bert, gpt2, …)",
    )
    parser.add_argument("--json", metavar="FILE", help="everything as JSON to FILE; -: only that")
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with HuggingFace's classes now: on random configs, and on the real weights "
        "that come with installed packages",
    )
    parser.add_argument(
        "--weights",
        nargs="+",
        action="extend",
        default=[],
        metavar="MODEL",
        help="with --check: also on these real weights (folders or names on the Hub)",
    )
    parser.add_argument(
        "--write", action="store_true", help="with --check: record what was found for the list"
    )
    parser.add_argument(
        "--status",
        metavar="FILE",
        type=Path,
        default=STATUS_FILE,
        help="where checks are recorded and read (default: in the package)",
    )


def run(args: argparse.Namespace) -> int:
    """List, show or check; 1 if a check found something that is not equal."""
    from toolkit.catalogue_tables import print_architecture, print_list, to_dict
    from toolkit.console import console

    if not args.check and (args.weights or args.write):
        raise UserError("--weights and --write say how to check: give --check too.")
    chosen = choose(args.names)
    statuses = read_status(args.status)
    equal = not args.check or _check(chosen, args, statuses)
    if args.json:
        write_json(to_dict(chosen, statuses), args.json)
    if args.json == "-":
        pass
    elif args.names and not args.check:
        for architecture in chosen.values():
            status = statuses.get(architecture.model_type, Status())
            print_architecture(architecture, status, console)
    else:
        print_list(chosen, statuses, console)
    return 0 if equal else 1


def choose(names: Iterable[str]) -> dict[str, Architecture]:
    """The architectures of these names (model type, folder or title); all without any.

    Raises:
        UserError: for a name no architecture has.
    """
    from scratch_models.hub.architecture import architectures
    from toolkit.data.suggest import near_names

    everything = architectures()
    called = {}
    for architecture in everything.values():
        folder = architecture.package.rpartition(".")[2]
        for name in (architecture.title, folder, architecture.model_type):
            called[name.lower()] = architecture
    chosen = {}
    for name in names:
        if name.lower() not in called:
            raise UserError(
                f"no architecture {name!r}: there are {', '.join(everything)}."
                f"{near_names(name.lower(), called)}"
            )
        chosen[called[name.lower()].model_type] = called[name.lower()]
    return chosen or dict(everything)


def _check(
    chosen: Mapping[str, Architecture], args: argparse.Namespace, statuses: dict[str, Status]
) -> bool:
    """Compare the chosen architectures, put what was found into `statuses`; True if all equal."""
    codes = {name: code_of(architecture) for name, architecture in chosen.items()}

    from transformers.utils import logging

    from toolkit.catalogue_check import check, facts, jobs
    from toolkit.console import console, notify
    from toolkit.progress import progress_bar

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    failures = []
    for name, architecture in chosen.items():
        status, differences = facts(architecture)
        status.seen = statuses.get(name, Status()).seen
        statuses[name] = status
        failures += differences
    todo = jobs(chosen, args.weights)
    with progress_bar("checking", total=sum(job.models for job in todo)) as display:
        for job in todo:
            name = job.architecture.model_type
            found = check(job, codes[name], display)
            statuses[name].record(found)
            outcome = f"{found.failed:,} NOT equal" if found.failed else "all equal"
            title = f"{job.architecture.title}, {job.name}"
            notify(f"{title}: {found.comparisons:,} comparisons, {outcome}")
            failures += [f"{job.architecture.title}, {line}" for line in found.failures]
            if found.failed > len(found.failures):
                failures.append(f"{title}: … and {found.failed - len(found.failures):,} more")
    for line in failures:
        console.print(f"NOT equal: {line}", style="red", soft_wrap=True, markup=False)
    if args.write:
        write_status(statuses, args.status)
    return not failures

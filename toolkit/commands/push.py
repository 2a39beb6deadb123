"""`toolkit push`: a run's model to the HuggingFace Hub, with its card, and checked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.sharing.push_options import PushOptions

HELP = (
    "Upload a run's model to the HuggingFace Hub: weights, tokenizer, model card, training "
    "summary. Before, the folder is loaded in a fresh process with plain transformers and its "
    "outputs are compared; afterwards every file on the Hub is compared with its hash. The token "
    "is that of `hf auth login` or HF_TOKEN; HF_ENDPOINT (mirrors, private Hubs) is respected."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit push`."""
    parser.add_argument("run", metavar="RUN", help="run directory, or a model folder")
    parser.add_argument("repo", metavar="USER/NAME", help="repository; made where it is not there")
    parser.add_argument(
        "--private", action="store_true", help="only you (or your organisation) can see it"
    )
    adapter = parser.add_mutually_exclusive_group()
    adapter.add_argument(
        "--merged", action="store_true", help="of a LoRA or DoRA run: the whole, merged model"
    )
    adapter.add_argument(
        "--adapter",
        action="store_true",
        help="of a LoRA or DoRA run: the adapter alone; default where its base is on the Hub",
    )
    parser.add_argument(
        "--language",
        nargs="+",
        metavar="CODE",
        help="for the card: zh, en, …; default: what the data say, else none",
    )
    parser.add_argument(
        "--license",
        metavar="NAME",
        help="for the card: apache-2.0, mit, other, …; default: the base model's, else none",
    )
    parser.add_argument(
        "--no-examples", action="store_true", help="leave texts of the test data out of the card"
    )
    parser.add_argument("--message", help="of the commit")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="write and check the folder, list its files, upload nothing",
    )
    parser.add_argument("--json", metavar="FILE", help="the result as JSON to FILE; -: only that")


def run(args: argparse.Namespace) -> int:
    """Push the run and say where it is; 1 where the Hub fails."""
    from toolkit.console import fail
    from toolkit.json_values import check_writable, write_json
    from toolkit.sharing.hub_errors import HubError
    from toolkit.sharing.push_options import failure_text, interrupted_text
    from toolkit.sharing.push_report import describe_pushed, print_pushed
    from toolkit.sharing.pushing import push

    check_writable(args.json)
    options = _options(args)
    if args.dry_run:
        return _try(options, args.json)
    try:
        pushed = push(options)
    except UserError as error:
        raise UserError(failure_text(error, options)) from None
    except HubError as error:
        fail(failure_text(error, options))
        return 1
    except KeyboardInterrupt:
        fail(interrupted_text(options))
        return 130
    if args.json != "-":
        print_pushed(pushed)
    if args.json:
        write_json(describe_pushed(pushed), args.json)
    return 0


def _try(options: PushOptions, json: str | None) -> int:
    """Write and check the folder, and upload nothing."""
    from toolkit.console import console
    from toolkit.json_values import write_json
    from toolkit.sharing.push_report import describe_staged, print_staged
    from toolkit.sharing.pushing import prepare

    staged, difference = prepare(options)
    if json != "-":
        print_staged(staged, difference)
        console.print(
            f"Nothing was uploaded. The card: {staged.folder / 'README.md'}\n"
            f"To push it: {options.command}",
            soft_wrap=True,
            markup=False,
        )
    if json:
        write_json(describe_staged(staged, difference), json)
    return 0


def _options(args: argparse.Namespace) -> PushOptions:
    from toolkit.sharing.push_options import CardOptions, PushOptions

    return PushOptions(
        run=Path(args.run),
        repo=args.repo,
        private=args.private,
        merged=True if args.merged else False if args.adapter else None,
        message=args.message,
        card=CardOptions(
            languages=tuple(args.language or ()),
            license=args.license,
            examples=not args.no_examples,
        ),
    )

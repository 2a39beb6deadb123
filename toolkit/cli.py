"""The command `toolkit`: one subcommand per job, each in its own module of `toolkit.commands`."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from toolkit.console import fail
from toolkit.errors import UserError

# Name and one line of help of every subcommand. They stand here so that `toolkit --help` need not
# import the commands.
COMMANDS = {
    "attention": "what every head attends to, as one page to look at",
    "bench": "measure speed against HuggingFace, results compared first",
    "claims": "measure what the chapter on Transformers claims, each with a verdict and a plot",
    "compare": "compare finished runs: one table, paired tests, a report",
    "data": "check a data set before training, or preview it as a recipe sees it",
    "experiment": "run every cell of an experiment file and compare them",
    "export": "a run as a folder for plain transformers, or as ONNX; checked",
    "models": "list the architectures and how far each was seen equal to HuggingFace's",
    "parity": "prove that a scratch model equals HuggingFace's on a checkpoint",
    "predict": "label texts or images, find entities, translate, write: with a run or a model",
    "push": "upload a run's model to the HuggingFace Hub, with its card, and check it there",
    "rerun": "repeat a run from what it recorded, and compare to the last bit",
    "tokens": "show how tokenizers cut a text, side by side",
}


def main(argv: list[str] | None = None) -> None:
    """Run a subcommand and exit with its status; 2 for a user's mistake, 130 when interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        sys.exit(_dispatch(arguments))
    except UserError as error:
        fail(str(error))
        sys.exit(2)
    except BrokenPipeError:  # `| head` has read enough
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        fail("interrupted")
        sys.exit(130)


def _dispatch(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="toolkit",
        description="Fine-tune, prove and compare Transformers. Recipes are started by themselves: "
        "accelerate launch recipes/bert_sentiment.py --help",
        allow_abbrev=False,
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    command: Any = None
    called = next((token for token in arguments if not token.startswith("-")), None)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, allow_abbrev=False)
        if name == called:
            command = importlib.import_module(f"toolkit.commands.{name}")
            subparser.description = command.HELP
            command.configure(subparser)
    parsed, left = parser.parse_known_args(arguments)
    options = [word for word in left if word.startswith("-") and word != "-"]
    if left and hasattr(command, "WORDS") and not options:
        # argparse takes words before the options or after them, not both.
        getattr(parsed, command.WORDS).extend(left)
    elif left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    status: int = command.run(parsed)
    return status


if __name__ == "__main__":
    main()

"""The frame around a recipe's ``main``: read the command line, turn errors into messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from toolkit.afterwards import finish, forget_afterwards
from toolkit.arguments import parse_arguments
from toolkit.config import ConfigT, Invocation
from toolkit.console import fail, notify
from toolkit.disk import is_full
from toolkit.errors import Interrupted, RecipeEnds, UserError, first_line
from toolkit.training.interruption import raise_once


def run_recipe(
    main: Callable[[Invocation[ConfigT]], None], config_class: type[ConfigT], recipe_file: str
) -> None:
    """Run a recipe from the command line.

    Exit codes: 0 done (a dry run or a search for a learning rate too), 1 the run is complete but
    could not be pushed, 2 the user's mistake or a full disk (one message, no traceback), 130
    interrupted by Ctrl-C (128 and the number of another signal). Any other exception is a bug of
    ours and keeps its traceback.
    """
    # datasets and tokenizers both fork; the tokenizers' own threads only earn a warning then.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    raise_once()
    try:
        forget_afterwards()
        main(parse_arguments(config_class, Path(recipe_file), sys.argv[1:]))
        if status := finish():
            sys.exit(status)
    except RecipeEnds:
        return
    except UserError as error:
        fail(str(error))
        sys.exit(2)
    except Interrupted as interrupted:
        notify(str(interrupted))
        sys.exit(interrupted.status)
    except KeyboardInterrupt:
        fail(
            "interrupted. Where training had begun, the --resume command printed then continues "
            "from the last checkpoint."
        )
        sys.exit(130)
    except Exception as error:
        if not is_full(error):
            raise
        fail(
            f"{first_line(error)}. The disk is full: make room and, where training had begun, go "
            "on with the --resume command printed then."
        )
        sys.exit(2)

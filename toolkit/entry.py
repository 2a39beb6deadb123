"""The frame around a recipe's ``main``: read the command line, turn errors into messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from toolkit.afterwards import finish, forget_afterwards
from toolkit.config import ConfigT, Invocation, parse_arguments
from toolkit.console import fail
from toolkit.errors import RecipeEnds, UserError


def run_recipe(
    main: Callable[[Invocation[ConfigT]], None], config_class: type[ConfigT], recipe_file: str
) -> None:
    """Run a recipe from the command line.

    Exit codes: 0 done (a dry run or a search for a learning rate too), 1 the run is complete but
    could not be pushed, 2 the user's mistake (one message, no traceback), 130 interrupted. Any
    other exception is a bug of ours and keeps its traceback.
    """
    # datasets and tokenizers both fork; the tokenizers' own threads only earn a warning then.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
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
    except KeyboardInterrupt:
        fail(
            "interrupted. Where training had begun, the --resume command printed then continues "
            "from the last checkpoint."
        )
        sys.exit(130)

"""`--push-to-hub` of a recipe: asked before anything is trained, done when the run is complete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.config import RunConfig
from toolkit.console import fail, notify
from toolkit.errors import UserError

if TYPE_CHECKING:
    from accelerate import Accelerator


def check_push(config: RunConfig, accelerator: Accelerator) -> None:
    """Make sure that the model can be uploaded, before it is trained.

    The repository is made, unless nothing will be trained. The main process asks; all learn.

    Raises:
        UserError: no token, no right to write, no such name, or the Hub cannot be reached.
    """
    if config.push_to_hub is None:
        if config.private:
            raise UserError("--private says how to push: give --push-to-hub USER/NAME too.")
        return
    from toolkit.processes import decided_by_main  # with accelerate, which takes time to import

    problem = _problem(config) if accelerator.is_main_process else None
    if problem := decided_by_main(accelerator, problem):
        raise UserError(problem)


def _problem(config: RunConfig) -> str | None:
    from toolkit.sharing.access import check_token, open_repository
    from toolkit.sharing.hub_errors import HubError

    assert config.push_to_hub is not None
    try:
        if config.dry_run or config.lr_finder:
            user = check_token(config.push_to_hub)
            notify(f"--push-to-hub {config.push_to_hub}: the token of {user} may write")
        else:
            access = open_repository(config.push_to_hub, private=config.private)
            seen = "private" if access.private else "public"
            notify(f"--push-to-hub: {access.url} ({seen}) can be written to")
    except (UserError, HubError) as error:
        return (
            f"--push-to-hub {config.push_to_hub}: {error} Nothing was trained. Without "
            "--push-to-hub the recipe trains now, and `toolkit push RUN USER/NAME` pushes later."
        )
    return None


def push_run(run: Path, config: RunConfig) -> int:
    """Push a complete run; an exit code. Whatever fails, the run stays complete."""
    from toolkit.network import go_online
    from toolkit.sharing.hub_errors import HubError
    from toolkit.sharing.push_options import PushOptions, failure_text, interrupted_text
    from toolkit.sharing.push_report import print_pushed
    from toolkit.sharing.pushing import push

    assert config.push_to_hub is not None
    options = PushOptions(run, config.push_to_hub, private=config.private)
    notify(f"pushing {run} to {config.push_to_hub}; by itself that is: {options.command}")
    # The Hub could be reached when the run began; a loader may have given it up since.
    go_online()
    try:
        pushed = push(options)
    except (UserError, HubError) as error:
        fail(f"the run is complete, but it was {failure_text(error, options)}")
        return 1
    except KeyboardInterrupt:
        fail(f"the run is complete; the push was {interrupted_text(options)}")
        return 130
    print_pushed(pushed)
    return 0

"""Experiment trackers through accelerate: TensorBoard, Weights & Biases, trackio.

What a run writes to ``metrics.jsonl`` goes to the tracker too. A tracker is an extra: what is wrong
with it is said before training, and when it breaks later, training goes on without it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from packaging.version import Version

from toolkit.config import RunConfig, leaf_types
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.processes import decided_by_main

# Oldest versions that were tried; those of the extra `trackers` in pyproject.toml.
OLDEST = {"tensorboard": "2.21", "wandb": "0.31", "trackio": "0.43"}

# Seconds that a run which is done waits for wandb to send what is left; it stays on disk anyway.
WANDB_FINISH_TIMEOUT = 120.0


def require_package(tracker: str | None) -> None:
    """Check that a tracker can be imported: accelerate would leave a missing one out in silence.

    Raises:
        UserError: its package is missing or too old; says how to install it.
    """
    if tracker is None:
        return
    install = (
        f"pip install '{tracker}>={OLDEST[tracker]}' (all trackers: pip install -e '.[trackers]'), "
        "or leave --tracker out: metrics.jsonl of the run has the same numbers."
    )
    if tracker not in [str(available) for available in get_available_trackers()]:
        raise UserError(f"--tracker {tracker}: the package {tracker} is not installed. {install}")
    try:
        found = version(tracker)
    except PackageNotFoundError:  # accelerate takes tensorboardX as well
        raise UserError(
            f"--tracker {tracker}: the package {tracker} is not installed. {install}"
        ) from None
    if Version(found) < Version(OLDEST[tracker]):
        raise UserError(f"--tracker {tracker}: version {found} is too old. {install}")


@dataclass
class Tracker:
    """Sends a run's numbers to the tracker it was started with; without one it does nothing.

    Only the main process sends: accelerate starts a tracker there and nowhere else.
    """

    name: str | None
    accelerator: Accelerator
    last_step: int = 0

    def check_account(self) -> None:
        """Ask wandb's server whether it takes this user's numbers; never prompts for a key.

        Raises:
            UserError: nobody is logged in, the key is refused, or the server cannot be reached.
        """
        if self.name == "wandb":
            self._on_main_process(_wandb_problem)

    def start(self, recipe: str, directory: Path, config: RunConfig, resumed: bool) -> None:
        """Start the tracker, or continue the curves of a resumed run.

        Raises:
            UserError: the tracker cannot be started.
        """
        if self.name is not None:
            begin = self._start_tensorboard if self.name == "tensorboard" else self._start_other
            self._on_main_process(
                lambda: self._problem_in(begin, recipe, directory, config, resumed)
            )

    def log(self, event: dict[str, Any], step: int) -> None:
        """Send the numbers of one line of ``metrics.jsonl``.

        Args:
            step: where they stand on the horizontal axis; wandb drops what goes backwards.
        """
        self.last_step = max(step, self.last_step)
        self._send(numbers(event), step)

    def forget_after(self, step: int) -> None:
        """A resumed run will log again what was logged beyond ``step``.

        TensorBoard is told to hide it, with the event that ``SummaryWriter(purge_step=...)``
        writes. wandb keeps the first value of a step, trackio both; they are equal.
        """
        self.last_step = max(step, 0)
        if self.name == "tensorboard":
            self._safely(lambda: self._restart_tensorboard(self.last_step + 1))

    def finish(self, summary: dict[str, Any]) -> None:
        """Send the results on the test set and close the tracker."""
        # wandb takes no number for the last step of a run that was resumed only to be tested.
        step = None if self.name == "wandb" else self.last_step
        self._send(numbers({"test": results_on_test(summary)}), step)
        for tracker in list(self.accelerator.trackers):
            self._safely(tracker.finish)
        self.accelerator.trackers.clear()

    def _start_tensorboard(
        self, recipe: str, directory: Path, config: RunConfig, resumed: bool
    ) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        # The run directory did not exist yet when the accelerator was made.
        self.accelerator.project_configuration.logging_dir = str(directory)
        self.accelerator.init_trackers("tensorboard")  # the name of the folder in it
        if not resumed:
            # accelerate would call `SummaryWriter.add_hparams`, which puts them in a folder apart,
            # as a run without any metrics. Here they stand beside the curves.
            writer = self.accelerator.get_tracker("tensorboard", unwrap=True)
            trial = f"{recipe}/{directory.name}"
            writer.file_writer.add_summary(hparams_pb(flat_config(config), trial_id=trial))
            writer.flush()
        notify(f"curves of all runs: tensorboard --logdir {directory.parent}")

    def _start_other(self, recipe: str, directory: Path, config: RunConfig, resumed: bool) -> None:
        common = {
            "name": directory.name,
            # A new run never goes on with the curves of another one that had the same name.
            "resume": "allow" if resumed else "never",
            "config": flat_config(config),
        }
        wandb = {
            "id": directory.name,
            "dir": str(directory.resolve()),
            "settings": {"finish_timeout": WANDB_FINISH_TIMEOUT},
        }
        self.accelerator.init_trackers(
            recipe, init_kwargs={"wandb": common | wandb, "trackio": common}
        )

    def _restart_tensorboard(self, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        writer = self.accelerator.get_tracker("tensorboard", unwrap=True)
        restart = Event(step=step, session_log=SessionLog(status=SessionLog.START))
        writer.file_writer.add_event(restart)

    def _on_main_process(self, problem_of: Callable[[], str | None]) -> None:
        """Call it on the main process; a problem there is a UserError on every process."""
        problem = problem_of() if self.accelerator.is_main_process else None
        if problem := decided_by_main(self.accelerator, problem):
            raise UserError(problem)

    def _problem_in(self, begin: Callable[..., None], *arguments: Any) -> str | None:
        try:
            begin(*arguments)
        except Exception as error:  # an account, a server or a disk: each tracker has its own kinds
            self.accelerator.trackers.clear()
            return (
                f"--tracker {self.name} could not be started ({type(error).__name__}: {error}). "
                "Mend that, or leave --tracker out."
            )
        return None

    def _send(self, values: dict[str, int | float], step: int | None) -> None:
        if values:
            self._safely(lambda: self.accelerator.log(values, step=step))

    def _safely(self, action: Callable[[], None]) -> None:
        """Hours of training must not end with a tracker."""
        if not self.accelerator.trackers:
            return
        try:
            action()
        except Exception as error:
            self.accelerator.trackers.clear()
            notify(
                f"warning: {self.name} failed ({type(error).__name__}: {error}); going on without "
                "it. metrics.jsonl has every number"
            )


def flat_config(config: RunConfig) -> dict[str, bool | int | float | str]:
    """Dotted name and value of every setting that is not null; lists as JSON."""
    values = {
        name: functools.reduce(getattr, name.split("."), config)
        for name in leaf_types(type(config))
    }
    return {
        name: value if isinstance(value, (bool, int, float, str)) else json.dumps(value)
        for name, value in values.items()
        if value is not None and name != "published"  # which is no setting
    }


def numbers(event: dict[str, Any]) -> dict[str, int | float]:
    """Numbers of a logged line without its step; those of a section as ``section/name``."""
    found: dict[str, int | float] = {}
    for name, value in event.items():
        if isinstance(value, dict):
            found |= {f"{name}/{key}": number for key, number in numbers(value).items()}
        elif name != "step" and isinstance(value, (int, float)):
            found[name] = value
    return found


def results_on_test(summary: dict[str, Any]) -> dict[str, Any]:
    """The results on the test set by name, without their intervals and signatures."""
    metrics = summary.get("test", {})
    return {name: m["value"] for name, m in metrics.items() if isinstance(m, dict) and "value" in m}


def _wandb_problem() -> str | None:
    import wandb

    # Also set by `wandb offline` and `wandb disabled`; "dryrun" is the old name of offline.
    if wandb.setup().settings.mode in ("offline", "dryrun", "disabled"):
        return None
    instead = (
        "Run `wandb login`, or set WANDB_MODE=offline to write files into the run directory that "
        "`wandb sync` sends later."
    )
    try:
        logged_in = wandb.login(prompt=False, verify=True)
    except wandb.errors.Error as error:
        return f"--tracker wandb: {str(error).rstrip('.')}. {instead}"
    return None if logged_in else f"--tracker wandb: nobody is logged in to wandb. {instead}"

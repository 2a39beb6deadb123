"""Start a recipe once more, with the settings of a run, as that one was started."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from toolkit.arguments import load_config
from toolkit.environment import describe_environment
from toolkit.environment_changes import CONTINUED, Change, environment_changes
from toolkit.errors import UserError
from toolkit.experiment.cells import short_path
from toolkit.experiment.past_runs import changed_input
from toolkit.launch import import_recipe, start_recipe
from toolkit.rerun.recorded import RecordedRun

_SHARDED = ("FSDP", "DEEPSPEED", "MEGATRON_LM")


@dataclass(frozen=True)
class Repetition:
    """A run to be made.

    Args:
        recorded: the run that it repeats.
        folder: its directory, which does not exist yet.
        changes: what is not as it was then.
        remarks: what else speaks against equal results, in sentences.
    """

    recorded: RecordedRun
    folder: Path
    changes: list[Change]
    remarks: list[str]

    @property
    def arguments(self) -> list[str]:
        """Of the recipe."""
        return _arguments(self.recorded, self.folder)

    @property
    def command(self) -> str:
        """What one types to do it by hand."""
        recipe = short_path(self.recorded.recipe)
        return shlex.join(["accelerate", "launch", recipe, *self.arguments])

    def start(self, quiet: bool = False) -> None:
        """Run it to its end.

        Args:
            quiet: what it prints as results goes where its remarks go.

        Raises:
            UserError: it did not come to its end.
            KeyboardInterrupt: it was interrupted.
        """
        recipe = self.recorded.recipe
        with _stdout_as_stderr() if quiet else nullcontext():
            status = start_recipe(import_recipe(recipe), recipe, self.arguments)
        if status != 0 or not (self.folder / "summary.json").is_file():
            raise UserError(
                f"the repetition ended with exit code {status} before it was complete; what it "
                f"said stands above. What there is of it is in {self.folder}"
            )


def repeat(run: RecordedRun, output_dir: Path | None, run_id: str | None) -> Repetition:
    """Prepare the repetition of a run; nothing is started or written.

    Args:
        output_dir: null: where the run lies.
        run_id: null: its name with -rerun.

    Raises:
        UserError: several processes made the run (says the command that repeats it), its settings
            are none of its recipe any more, or the new directory exists.
    """
    folder = _new_folder(run, output_dir, run_id)
    if run.processes > 1:
        raise UserError(_launch_yourself(run, folder))
    module = import_recipe(run.recipe)
    config = load_config(module.Config, run.config_file)
    _take_threads(run)
    remarks = []
    if run.limited_by_time:
        remarks.append(
            f"it was stopped by --train.max_seconds {run.config['train']['max_seconds']:g}: how "
            "many steps that is depends on the machine, so it cannot be repeated bit for bit"
        )
    if (file := changed_input(run.folder, config)) is not None:
        remarks.append(f"{file} was written after it began: the data may be others")
    if run.environment.get(CONTINUED):
        names = dict.fromkeys(name for part in run.environment[CONTINUED] for name in part)
        remarks.append(
            f"it was interrupted, and went on with other {', '.join(names)} than it began with: no "
            "run from the start can be expected to equal it"
        )
    changes = environment_changes(run.environment, describe_environment())
    return Repetition(run, folder, changes, remarks)


def _new_folder(run: RecordedRun, output_dir: Path | None, run_id: str | None) -> Path:
    name = run.folder.absolute().name
    recipe = run.recipe.stem
    if output_dir is None:
        parent = run.folder.absolute().parent
        # A run that was moved or copied somewhere else is repeated where its settings say.
        output_dir = parent.parent if parent.name == recipe else Path(run.config["output_dir"])
        output_dir = Path(short_path(output_dir))
    parent = output_dir / recipe
    if run_id is not None:
        if (parent / run_id).exists():
            raise UserError(f"{parent / run_id} exists already: choose another --run-id")
        return parent / run_id
    names = (f"{name}-rerun" if n == 1 else f"{name}-rerun-{n}" for n in range(1, 10_000))
    return next(parent / name for name in names if not (parent / name).exists())


def _arguments(run: RecordedRun, folder: Path) -> list[str]:
    arguments = [
        "--config", str(run.config_file), "--output-dir", str(folder.parent.parent),
        "--run-id", folder.name,
    ]  # fmt: skip
    # A repetition is a check: it replaces nothing on the Hub, and is in nobody's tracker.
    for setting in ("push_to_hub", "tracker"):
        if run.config.get(setting) is not None:
            arguments += [f"--{setting}", "null"]
    if (run.config.get("train") or {}).get("auto_batch_size"):
        # What it chose is recorded; with other memory it would choose otherwise.
        arguments += ["--train.auto_batch_size", "false"]
    asked = (run.config.get("train") or {}).get("mixed_precision")
    if asked is None and (run.precision != "no" or torch.cuda.is_available()):
        # The launcher decided it, and may decide otherwise today.
        arguments += ["--train.mixed_precision", run.precision]
    return arguments


def _launch_yourself(run: RecordedRun, folder: Path) -> str:
    count, kind = run.processes, run.environment.get("accelerate", {}).get("distributed_type")
    launcher = ["torchrun", "--nproc_per_node", str(count)]
    if kind in _SHARDED:
        launcher = ["accelerate", "launch", "--config_file", "YOUR_SETTINGS.yaml",
                    "--num_processes", str(count)]  # fmt: skip
    command = shlex.join([*launcher, short_path(run.recipe), *_arguments(run, folder)])
    if run.summary["environment"].get("device") == "cpu":
        command = f"ACCELERATE_USE_CPU=true {command}"
    check = shlex.join(["toolkit", "rerun", str(run.folder), "--against", str(folder)])
    return (
        f"{run.folder} was trained by {count} processes, which this command does not start: with "
        f"another number it would be another run. Repeat it by hand: {command}\n"
        f"and then compare: {check}"
    )


def _take_threads(run: RecordedRun) -> None:
    """As many threads as then, where there are cores for them: sums in another order differ."""
    threads = run.environment.get("threads")
    if not isinstance(threads, int) or not 0 < threads <= (os.cpu_count() or 1):
        return
    if threads != torch.get_num_threads():
        torch.set_num_threads(threads)  # a fork has it
        if torch.cuda.is_available() or sys.platform != "linux":
            os.environ["OMP_NUM_THREADS"] = str(threads)  # a process that is started reads it


@contextmanager
def _stdout_as_stderr() -> Iterator[None]:
    """For processes that are started in the block, too."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)

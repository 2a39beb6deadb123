"""A run: its directory, its processes, its seed, its log."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed

from toolkit.accelerating import start_accelerator
from toolkit.afterwards import do_afterwards
from toolkit.config import ConfigT, Invocation, save_config
from toolkit.console import notify
from toolkit.disk import write_whole
from toolkit.dry_run import end_dry_run
from toolkit.environment import command_line, describe_environment, resume_command
from toolkit.errors import UserError
from toolkit.json_values import without_nan
from toolkit.published import published_result
from toolkit.run_origin import check_recipe
from toolkit.sharing.recipe_push import check_push, push_run
from toolkit.trackers import Tracker, require_package

METRICS = "metrics.jsonl"


@dataclass
class Run(Generic[ConfigT]):
    """What a recipe carries from its first line to its last."""

    recipe: str
    config: ConfigT
    directory: Path
    accelerator: Accelerator
    resumed: bool
    tracker: Tracker
    given: frozenset[str] = frozenset()  # settings of the command line itself

    @property
    def checkpoint_folders(self) -> list[Path]:
        """Where its checkpoints lie: in its directory, or where that cannot be written."""
        folders = [self.directory / "checkpoints"]
        if (other := self.config.train.fallback_dir) is not None:
            folders.append(Path(other) / self.recipe / self.directory.name / "checkpoints")
        return folders

    def begin(self) -> None:
        """Make the run directory and record in it how the run was started.

        Raises:
            UserError: the directory exists already or cannot be made; the tracker cannot be
                started; a learning rate is to be found for a method that has none.
            RecipeEnds: the run is a dry run: it has no directory.
        """
        if self.resumed:
            self.tracker.start(self.recipe, self.directory, self.config, resumed=True)
            return
        if self.config.dry_run:  # of a recipe that trains without the engine
            end_dry_run({"recipe": self.recipe, "read and checked": "the data"})
        if self.config.lr_finder:  # likewise
            raise UserError(
                f"--lr-finder: {self.recipe} trains nothing by steps here, so there is no learning "
                "rate to find. Leave it out."
            )
        self.directory = _new_directory(
            self.directory, self.accelerator, count_up=self.config.run_id is None
        )
        try:
            self.tracker.start(self.recipe, self.directory, self.config, resumed=False)
        except UserError:  # the same command must be possible again
            if self.accelerator.is_main_process:
                shutil.rmtree(self.directory, ignore_errors=True)
            raise
        if self.accelerator.is_main_process:
            started = {"recipe": self.recipe, "command": command_line()}
            self.write_json("environment.json", describe_environment() | started)
            # The last of the two: a folder with a config.yaml is a run that can be resumed.
            save_config(self.config, self.directory / "config.yaml")
            notify(f"run directory {self.directory}")
            notify(f"if interrupted, go on with: {resume_command(self.directory)}")

    def log(self, event: dict[str, Any], tracked_as: int | None = None) -> None:
        """Append one line to ``metrics.jsonl`` and tell the tracker (main process only).

        Args:
            tracked_as: step for the tracker, where several lines have one step.
        """
        if self.accelerator.is_main_process:
            line = json.dumps(without_nan(event), ensure_ascii=False, allow_nan=False)
            with (self.directory / METRICS).open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
            self.tracker.log(event, event["step"] if tracked_as is None else tracked_as)

    def complete(self, summary: dict[str, Any]) -> None:
        """Write the summary, which makes the run complete, and clear its checkpoints away.

        Everything else must be written before: a run with a summary is not resumed.
        """
        self.accelerator.wait_for_everyone()
        self.write_json("summary.json", summary)
        if self.accelerator.is_main_process:
            for folder in self.checkpoint_folders:
                shutil.rmtree(folder, ignore_errors=True)
        self.tracker.finish(summary)
        self.accelerator.end_training()
        if self.config.push_to_hub is not None and self.accelerator.is_main_process:
            do_afterwards(partial(push_run, self.directory, self.config))

    def forget_after(self, step: int) -> None:
        """Drop logged lines beyond ``step``: the resumed run will log them again."""
        path = self.directory / METRICS
        if self.accelerator.is_main_process and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if _step_of(line) <= step]
            write_whole(path, "".join(line + "\n" for line in kept))
        if self.resumed:
            self.tracker.forget_after(step)

    def write_json(self, name: str, content: Any) -> None:
        """Write ``<run directory>/<name>`` whole or not at all (main process only)."""
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
        self.write_text(name, text + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Likewise, of a text."""
        if self.accelerator.is_main_process:
            write_whole(self.directory / name, text)


def start_run(invocation: Invocation[ConfigT], recipe: str) -> Run[ConfigT]:
    """Start what the processes do together: devices and seed.

    The run directory is made later, by ``Run.begin``: a mistake in data or model leaves nothing.

    Raises:
        UserError: what `toolkit.accelerating.start_accelerator` refuses, the run directory exists
            already, the run to resume is complete or another recipe's, the tracker's package or
            account is missing, or the model could not be pushed in the end.
    """
    config = invocation.config
    require_package(config.tracker)
    accelerator = start_accelerator(config)
    tracker = Tracker(config.tracker, accelerator)
    tracker.check_account()
    transformers.utils.logging.disable_progress_bar()  # its bars would fight with ours
    directory = invocation.resume_from
    if directory is not None:
        check_recipe(directory, recipe)
        if (directory / "summary.json").exists():
            raise UserError(
                f"--resume {directory}: this run is complete; its results are in summary.json"
            )
        check_push(config, accelerator)
        set_seed(config.seed)
        return Run(recipe, config, directory, accelerator, resumed=True, tracker=tracker)
    directory = Path(config.output_dir) / recipe / (config.run_id or time.strftime("%Y%m%d-%H%M%S"))
    if config.run_id is not None and directory.exists():
        raise UserError(_exists_already(directory))
    check_push(config, accelerator)
    set_seed(config.seed)  # the same everywhere: all processes must build the same weights
    return Run(
        recipe, config, directory, accelerator, resumed=False, tracker=tracker,
        given=invocation.given,
    )  # fmt: skip


def describe_run(run: Run[Any], title: str, task: str, data: dict[str, Any]) -> dict[str, Any]:
    """The part of a summary that every task has (schema version 1).

    Args:
        data: what data.json records. Where they are those of a published result that the preset
            repeats, it stands under ``published``.
    """
    started = json.loads((run.directory / "environment.json").read_text(encoding="utf-8"))
    accelerator, precision = run.accelerator, run.accelerator.mixed_precision
    published = published_result(run.config, data)
    return {
        "schema_version": 1,
        "recipe": run.recipe,
        "run_id": run.directory.name,
        "title": title,
        "task": task,
        "status": "complete",
        "seed": run.config.seed,
        "command": started["command"],
        "environment": {
            "device": accelerator.device.type,
            "threads": torch.get_num_threads(),
            "precision": "fp32" if precision == "no" else precision,
            "processes": accelerator.num_processes,
            **{key: started[key] for key in ("processor", "gpus", "python", "git")},
            **{key: started["packages"][key] for key in ("torch", "transformers")},
        },
        **({} if published is None else {"published": published}),
    }


def _new_directory(directory: Path, accelerator: Accelerator, count_up: bool) -> Path:
    """Make the run directory; exactly one process does, and all learn the outcome."""
    answer: list[Any] = [None, None]
    if accelerator.is_main_process:
        try:
            answer = [str(_make_exclusively(directory, count_up)), None]
        except FileExistsError:
            answer[1] = _exists_already(directory)
        except OSError as error:
            answer[1] = f"cannot make the run directory {directory}: {error.strerror}"
    if accelerator.num_processes > 1:
        answer = broadcast_object_list(answer)
    made, problem = answer
    if problem is not None:
        raise UserError(problem)
    return Path(made)


def _make_exclusively(directory: Path, count_up: bool) -> Path:
    """``mkdir`` that fails on an existing folder or, for two runs in one second, counts up."""
    for number in range(1, 1000):
        path = directory if number == 1 else directory.with_name(f"{directory.name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            if not count_up:
                raise
    raise FileExistsError(directory)


def _exists_already(directory: Path) -> str:
    return (
        f"{directory} exists already. Continue it with --resume {directory}, or choose another "
        "--run-id."
    )


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError):  # a line cut short by a kill
        return 1 << 62

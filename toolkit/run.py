"""A run: its directory, its processes, its seed, its log."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic

import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import set_seed

from toolkit.accelerating import start_accelerator
from toolkit.afterwards import do_afterwards
from toolkit.command_line import command_line, resume_command
from toolkit.config import ConfigT, Invocation
from toolkit.config_files import save_config
from toolkit.console import notify
from toolkit.data_record import DATA, TRAINING_ROWS, check_same_data, check_same_rows
from toolkit.disk import append_whole, is_full, write_whole
from toolkit.dry_run import end_dry_run
from toolkit.environment import (
    describe_environment,
    describe_processes,
)
from toolkit.environment_changes import CONTINUED, environment_changes
from toolkit.errors import UserError
from toolkit.json_values import without_nan
from toolkit.processes import decided_by_main
from toolkit.published import published_result
from toolkit.run_lock import hold, release
from toolkit.run_origin import check_recipe, recorded_environment
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
    data: dict[str, Any] | None = None  # what data.json says when training begins
    uid: str | None = None  # no other run has it; from `begin` on
    unwritten: list[str] = field(default_factory=list)  # of the log, while the disk is full

    @property
    def checkpoint_folders(self) -> list[Path]:
        """Where its checkpoints lie: in its directory, or where that cannot be written."""
        folders, other = [self.directory / "checkpoints"], self.config.train.fallback_dir
        if other is not None and self.uid is not None:  # other runs may have the same name
            name = f"{self.directory.name}-{self.uid}"
            folders.append(Path(other) / self.recipe / name / "checkpoints")
        return folders

    def record_data(self, data: dict[str, Any]) -> None:
        """Note what the run learns from: `begin` writes it to data.json.

        Args:
            data: the ``summary`` of what was read; ``sha256`` by split among it.

        Raises:
            UserError: the run is resumed, and these are not the data that it began with.
        """
        if self.resumed:
            check_same_data(self.directory, data)
        self.data = data

    def begin(self, training_rows: int | None = None) -> None:
        """Make the run directory, lock it, and record in it how the run was started.

        Args:
            training_rows: what an epoch has of them, where the run trains by steps.

        Raises:
            UserError: the directory exists already or cannot be made; the tracker cannot be
                started; a learning rate is to be found for a method that has none; the run is
                resumed with another number of rows.
            RecipeEnds: the run is a dry run: it has no directory.
        """
        if self.resumed:
            check_same_rows(self.directory, training_rows)
            self.uid = recorded_environment(self.directory).get("uid")
            self.tracker.start(self.recipe, self.directory, self.config, resumed=True)
            return
        if self.config.dry_run:  # of a recipe that trains without the engine
            end_dry_run(self, {"data": {"read_and_checked": True}})
        if self.config.lr_finder:  # likewise
            raise UserError(
                f"--lr-finder: {self.recipe} trains nothing by steps here, so there is no learning "
                "rate to find. Leave it out."
            )
        self.directory = _new_directory(
            self.directory, self.accelerator, count_up=self.config.run_id is None
        )
        self.uid = decided_by_main(self.accelerator, uuid.uuid4().hex[:12])
        if (other := self.config.train.fallback_dir) is not None:  # wherever it is resumed from
            self.config.train.fallback_dir = str(Path(other).expanduser().absolute())
        try:
            self.tracker.start(self.recipe, self.directory, self.config, resumed=False)
        except UserError:  # the same command must be possible again
            if self.accelerator.is_main_process:
                release(self.directory)
                shutil.rmtree(self.directory, ignore_errors=True)
            raise
        if self.accelerator.is_main_process:
            started = {"recipe": self.recipe, "command": command_line(), "uid": self.uid}
            processes = {"accelerate": describe_processes(self.accelerator)}
            self.write_json("environment.json", describe_environment() | processes | started)
            if self.data is not None:
                rows = {} if training_rows is None else {TRAINING_ROWS: training_rows}
                self.write_json(DATA, self.data | rows)
            # The last of them: a folder with a config.yaml is a run that can be resumed.
            save_config(self.config, self.directory / "config.yaml")
            notify(f"run directory {self.directory}")
            notify(f"if interrupted, go on with: {resume_command(self.directory)}")

    def log(self, event: dict[str, Any], tracked_as: int | None = None) -> None:
        """Append one line to ``metrics.jsonl`` and tell the tracker (main process only).

        Where the disk is full the line is kept in ``unwritten``, and written with a later one.

        Args:
            tracked_as: step for the tracker, where several lines have one step.
        """
        if self.accelerator.is_main_process:
            line = json.dumps(without_nan(event), ensure_ascii=False, allow_nan=False)
            self.unwritten.append(line + "\n")
            self.write_log()
            self.tracker.log(event, event["step"] if tracked_as is None else tracked_as)

    def write_log(self) -> None:
        """Write what of the log is not written yet, if there is room (main process only)."""
        if not self.accelerator.is_main_process or not self.unwritten:
            return
        try:
            self._write_out()
        except OSError as error:
            if not is_full(error):
                raise
            if len(self.unwritten) == 1:
                notify(
                    f"warning: {self.directory / METRICS}: {error.strerror}. Training goes on; its "
                    "log is written when there is room"
                )

    def _write_out(self) -> None:
        append_whole(self.directory / METRICS, "".join(self.unwritten))
        self.unwritten.clear()

    def complete(self, summary: dict[str, Any]) -> None:
        """Write the summary, which makes the run complete, and clear its checkpoints away.

        Everything else must be written before: a run with a summary is not resumed.
        """
        self.accelerator.wait_for_everyone()
        if self.unwritten:  # there was no room until now
            self._write_out()
        self.write_json("summary.json", summary)
        if self.accelerator.is_main_process:
            for folder in self.checkpoint_folders:
                shutil.rmtree(folder, ignore_errors=True)
        self.tracker.finish(summary)
        self.accelerator.end_training()
        if self.accelerator.is_main_process:
            release(self.directory)
        if self.config.push_to_hub is not None and self.accelerator.is_main_process:
            do_afterwards(partial(push_run, self.directory, self.config))

    def forget_after(self, step: int) -> None:
        """Drop logged lines beyond ``step``: the resumed run will log them again."""
        path = self.directory / METRICS
        if self.accelerator.is_main_process and path.exists():
            logged = path.read_text(encoding="utf-8")
            kept = "".join(f"{x}\n" for x in logged.splitlines() if _step_of(x) <= step)
            if kept != logged:
                write_whole(path, kept)
        if self.resumed:
            self.tracker.forget_after(step)

    def recall_log(self, lines: list[str]) -> None:
        """Write lines of a checkpoint that the disk had no room for, where it still lacks them."""
        if self.accelerator.is_main_process and lines:
            path = self.directory / METRICS
            there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            self.unwritten = [line for line in lines if line.rstrip("\n") not in there]
            self.write_log()

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
            already, the run to resume is complete, another recipe's or still being written, the
            tracker's package or account is missing, or the model could not be pushed in the end.
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
        _check_incomplete(directory)
        check_push(config, accelerator)
        _on_main_process(accelerator, partial(_take_over, directory))
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
    """Make the run directory and lock it."""
    return _on_main_process(accelerator, partial(_make_and_hold, directory, count_up))


def _on_main_process(accelerator: Accelerator, act: Callable[[], Path]) -> Path:
    """Exactly one process does it, and all learn the outcome: a path, or its UserError."""
    path, problem = None, None
    if accelerator.is_main_process:
        try:
            path = act()
        except UserError as error:
            problem = str(error)
    path, problem = decided_by_main(accelerator, (path, problem))
    if problem is not None:
        raise UserError(problem)
    assert path is not None
    return path


def _make_and_hold(directory: Path, count_up: bool) -> Path:
    try:
        made = _make_exclusively(directory, count_up)
    except FileExistsError:
        raise UserError(_exists_already(directory)) from None
    except OSError as error:
        raise UserError(f"cannot make the run directory {directory}: {error.strerror}") from None
    hold(made)
    return made


def _take_over(directory: Path) -> Path:
    """Lock a run that is to be resumed, and say what will not be as when it began."""
    hold(directory)
    try:
        _check_incomplete(directory)  # the process that held it may have done it
    except UserError:
        release(directory)
        raise
    _note_changes(directory)
    return directory


def _check_incomplete(directory: Path) -> None:
    if (directory / "summary.json").exists():
        raise UserError(
            f"--resume {directory}: this run is complete; its results are in summary.json"
        )


# What decides the bits of a result. A difference of the others would be said for nothing.
_DECISIVE = (
    "code", "processor", "gpus", "threads", "cuda", "cudnn", "float32_matmul_precision",
    "packages.torch", "packages.transformers", "packages.accelerate",
)  # fmt: skip


def _note_changes(directory: Path) -> None:
    """Where a resumed run goes on with other code, versions or hardware: say it and record it."""
    then = recorded_environment(directory)
    changes = environment_changes(then, describe_environment())
    changes = [change for change in changes if change.name in _DECISIVE]
    if not changes:
        return
    notify(
        f"warning: {directory} goes on otherwise than it began "
        f"({'; '.join(change.in_words for change in changes)}). Its result is not bit for bit that "
        "of a run without interruption."
    )
    now = {change.name: change.now for change in changes}
    record = then | {CONTINUED: [*then.get(CONTINUED, []), now]}
    text = json.dumps(record, ensure_ascii=False, indent=2)
    write_whole(directory / "environment.json", text + "\n")


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
    if not (directory / "config.yaml").exists():
        return (
            f"{directory} exists already, and holds no run: nothing was trained in it, or not yet. "
            "Remove it, or choose another --run-id."
        )
    return (
        f"{directory} exists already. Continue it with --resume {directory}, or choose another "
        "--run-id."
    )


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError):  # a line cut short by a kill
        return 1 << 62

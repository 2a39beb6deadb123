"""Checkpoints that are complete or absent, and a resume that continues bit for bit.

A checkpoint is written under a temporary name, flushed to disk, listed in a manifest with sizes and
hashes, and only then renamed to ``step-<n>``. Whatever else lies in the folder is not a checkpoint.
"""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch.utils._pytree import tree_leaves

from toolkit.console import notify
from toolkit.disk import cannot_write, free_space, sha256_of, sync
from toolkit.errors import UserError, first_line
from toolkit.processes import decided_by_main, first_problem
from toolkit.units import size

MANIFEST = "manifest.json"
STATE = "trainer_state.json"
OVERHEAD = 100_000
"""Bytes of a checkpoint besides its tensors: names, random states, manifest."""


class SaveError(UserError):
    """A checkpoint could not be written; says where, why, and how much room it takes."""


class CheckpointStore:
    """The checkpoints of a run.

    Args:
        folders: where they lie (`Run.checkpoint_folders`); one is saved in the first that can be
            written, and made there. Those of several are one series.
        accelerator: knows how to gather the states of model and optimizer in any distributed setup.
        keep: how many of the newest to keep; the best one is kept besides.
    """

    def __init__(self, folders: Sequence[Path], accelerator: Accelerator, keep: int = 1) -> None:
        self.folders = list(folders)
        self.accelerator = accelerator
        self.keep = keep

    def save(self, step: int, state: dict[str, Any], best_step: int | None) -> None:
        """Save everything needed to continue after ``step``; collective over all processes.

        Old checkpoints are cleared away only when the new one is complete.

        Args:
            state: the engine's own state, plain JSON values.
            best_step: checkpoint that must survive the clearing away of old ones.

        Raises:
            SaveError: it could not be written in any of the folders; nothing is left of it, and
                earlier checkpoints are as they were.
        """
        problems = []
        for folder in self.folders:
            problem = self._save_in(folder, step, state)
            if problem is None:
                break
            problems.append(problem)
        else:
            raise SaveError("; ".join(problems))
        if self.accelerator.is_main_process:
            for problem in problems:
                notify(f"warning: {problem}; saved in {folder} instead")
            self._clear_old({step, best_step}, folder / f"step-{step}")
        self.accelerator.wait_for_everyone()

    def _save_in(self, folder: Path, step: int, state: dict[str, Any]) -> str | None:
        """Write a checkpoint into a folder; what went wrong, or None."""
        partial = folder / f".step-{step}.partial"
        main = self.accelerator.is_main_process
        problem = self._prepare(partial) if main else None
        if first := first_problem(self.accelerator, problem):
            return f"checkpoint step-{step} cannot be saved in {folder}: {first}"
        # accelerate warns of tied weights, which it stores once and ties again: nothing to act on.
        logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
        try:
            self.accelerator.save_state(str(partial))
            torch.save(_random_state(), partial / _random_file(self.accelerator))
        except Exception as error:
            problem = self._reason(error, folder)
        problem = first_problem(self.accelerator, problem)
        if main and problem is None:
            try:
                _complete(partial, folder / f"step-{step}", state)
            except Exception as error:
                problem = self._reason(error, folder)
        problem = decided_by_main(self.accelerator, problem)
        if problem is None:
            return None
        if main:
            shutil.rmtree(partial, ignore_errors=True)
        return f"checkpoint step-{step} could not be saved in {folder}: {problem}"

    def _prepare(self, partial: Path) -> str | None:
        """Make an empty folder to write to, if there is room; what is in the way, or None."""
        folder = partial.parent
        try:
            if partial.exists():
                shutil.rmtree(partial)
            partial.mkdir(parents=True)
            if free_space(folder) < self.bytes_needed():
                shutil.rmtree(partial)
                return f"the disk is too full. {self._room(folder)}"
        except OSError as error:
            return f"{error.strerror}. {self._room(folder)}"
        return None

    def bytes_needed(self) -> int:
        """Room for one checkpoint: weights and optimizer as they are, of all processes."""
        accelerator = self.accelerator
        # state_dict() of a sharded model would gather it. parameters() has tied weights once.
        tensors = [value for model in accelerator._models for value in model.parameters()]
        tensors += [value for model in accelerator._models for value in model.buffers()]
        states: list[Any] = [o.state for o in accelerator._optimizers]
        states += [extra.state_dict() for extra in accelerator._custom_objects]
        leaves = tree_leaves([_plain(state) for state in states])
        tensors += [value for value in leaves if isinstance(value, torch.Tensor)]
        return sum(value.numel() * value.element_size() for value in tensors) + OVERHEAD

    def _reason(self, error: Exception, folder: Path) -> str:
        """In words; raises again what has nothing to do with the disk."""
        if not cannot_write(error):
            raise error
        return f"{first_line(error)}. {self._room(folder)}"

    def _room(self, folder: Path) -> str:
        return (
            f"It takes {size(self.bytes_needed())}, and {size(free_space(folder))} are free there"
        )

    def newest(self) -> int | None:
        """Step of the newest complete checkpoint, None where there is none.

        Broken ones are skipped with a remark that says what is wrong with them.
        """
        for step in reversed(self.steps()):
            if (problem := self.problem(step)) is None:
                return step
            notify(f"skipping checkpoint step-{step}: {problem}")
        return None

    def state(self, step: int) -> dict[str, Any]:
        """The engine's own state at ``step``."""
        file = self.path(step) / STATE
        state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return state

    def restore(self, step: int) -> None:
        """Load weights, optimizer and random states of ``step`` into the prepared objects."""
        folder = self.path(step)
        self.accelerator.load_state(str(folder))
        random_file = folder / _random_file(self.accelerator)
        _set_random_state(torch.load(random_file, weights_only=False))

    def steps(self) -> list[int]:
        """Steps that have a checkpoint under its final name, in numerical order."""
        found = (path for folder in self.folders if folder.is_dir() for path in folder.iterdir())
        names = (re.fullmatch(r"step-(\d+)", path.name) for path in found)
        return sorted({int(name[1]) for name in names if name})

    def path(self, step: int) -> Path:
        """Folder of the checkpoint of ``step``, there or not."""
        paths = [folder / f"step-{step}" for folder in self.folders]
        return next((path for path in paths if path.is_dir()), paths[0])

    def scheduled(self) -> list[int]:
        """Steps of the checkpoints that were due, complete, in numerical order.

        One that was made because the run was interrupted is not: a run that was left alone does not
        have it.
        """
        return [
            step
            for step in self.steps()
            if self.problem(step) is None and self._marked_scheduled(step)
        ]

    def _clear_old(self, protected: set[int | None], new: Path) -> None:
        """Remove all but the newest and the protected ones, and what killed saves have left.

        Args:
            new: the checkpoint that is complete now; one of the same step elsewhere is another.
        """
        numbers = {step: self._marked_scheduled(step) for step in self.steps()}
        kept = {*[step for step, due in numbers.items() if due][-self.keep :], *protected}
        for folder in self.folders:
            for path in folder.iterdir() if folder.is_dir() else ():
                name = re.fullmatch(r"step-(\d+)|\.step-\d+\.partial", path.name)
                if name is None or path == new:
                    continue
                step = int(name[1]) if name[1] else None
                if step is None or step not in kept or path.name == new.name:
                    try:
                        shutil.rmtree(path)
                    except OSError as error:
                        notify(f"warning: {path} could not be removed: {error.strerror}")

    def _marked_scheduled(self, step: int) -> bool:
        """Whether it was due, as far as it says so."""
        try:
            return bool(self.state(step).get("scheduled", True))
        except (OSError, ValueError, AttributeError):
            return True

    def problem(self, step: int) -> str | None:
        """What is wrong with a checkpoint, or None; the same answer on every process."""
        main = self.accelerator.is_main_process
        found = find_damage(self.path(step)) if main else None
        return decided_by_main(self.accelerator, found)


def find_damage(folder: Path) -> str | None:
    """Compare a checkpoint with its manifest.

    Returns:
        None when every file is there with its size and hash, else what is wrong.
    """
    if not folder.is_dir():
        return "it does not exist"
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        expected = {name: (entry["bytes"], entry["sha256"]) for name, entry in manifest.items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return f"{MANIFEST} is missing or unreadable (killed while it was saved?)"
    if STATE not in expected:
        return f"{MANIFEST} does not list {STATE}"
    for name, (bytes_, sha256) in expected.items():
        file = folder / name
        try:
            if not file.is_file():
                return f"{name} is missing"
            if (found := file.stat().st_size) != bytes_:
                return f"{name} has {found} bytes instead of {bytes_}"
            if sha256_of(file) != sha256:
                return f"{name} was changed after it was saved (its hash differs)"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None


def _plain(state: Any) -> Any:
    """Without the kinds of dictionaries that torch takes for leaves."""
    if isinstance(state, Mapping):
        return [_plain(value) for value in state.values()]
    return state


def _complete(partial: Path, final: Path, state: dict[str, Any]) -> None:
    """Add what makes a checkpoint of the files written so far, and give it its name."""
    (partial / STATE).write_text(json.dumps(state), encoding="utf-8")
    _write_manifest(partial)
    if final.exists():
        shutil.rmtree(final)
    partial.rename(final)
    sync(final.parent)


def _write_manifest(folder: Path) -> None:
    manifest = {}
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        sync(file)
        name = file.relative_to(folder).as_posix()
        manifest[name] = {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
    path = folder / MANIFEST
    path.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    sync(path)
    sync(folder)


def _random_file(accelerator: Accelerator) -> str:
    return f"random_state_{accelerator.process_index}.pt"


def _random_state() -> dict[str, Any]:
    # accelerate saves these too, but swallows any error when it loads them.
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])

"""Checkpoints that are complete or absent, and a resume that continues bit for bit.

A checkpoint is written under a temporary name, flushed to disk, listed in a manifest with sizes and
hashes, and only then renamed to ``step-<n>``. Whatever else lies in the folder is not a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from toolkit.console import notify
from toolkit.disk import sync

MANIFEST = "manifest.json"
STATE = "trainer_state.json"


class CheckpointStore:
    """The ``checkpoints/`` folder of a run.

    Args:
        folder: where the checkpoints lie; made when the first one is saved.
        accelerator: knows how to gather the states of model and optimizer in any distributed setup.
        keep: how many of the newest to keep; the best one is kept besides.
    """

    def __init__(self, folder: Path, accelerator: Accelerator, keep: int = 1) -> None:
        self.folder = folder
        self.accelerator = accelerator
        self.keep = keep

    def save(self, step: int, state: dict[str, Any], best_step: int | None) -> None:
        """Save everything needed to continue after ``step``; collective over all processes.

        Args:
            state: the engine's own state, plain JSON values.
            best_step: checkpoint that must survive the clearing away of old ones.
        """
        partial = self.folder / f".step-{step}.partial"
        main = self.accelerator.is_main_process
        if main and partial.exists():
            shutil.rmtree(partial)
        self.accelerator.wait_for_everyone()
        partial.mkdir(parents=True, exist_ok=True)
        # accelerate warns of tied weights, which it stores once and ties again: nothing to act on.
        logging.getLogger("accelerate.utils.other").setLevel(logging.ERROR)
        self.accelerator.save_state(str(partial))
        torch.save(_random_state(), partial / _random_file(self.accelerator))
        self.accelerator.wait_for_everyone()
        if main:
            (partial / STATE).write_text(json.dumps(state), encoding="utf-8")
            _write_manifest(partial)
            final = self.folder / f"step-{step}"
            if final.exists():
                shutil.rmtree(final)
            partial.rename(final)
            sync(self.folder)
            self._clear_old(protected={step, best_step})
        self.accelerator.wait_for_everyone()

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
        file = self.folder / f"step-{step}" / STATE
        state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return state

    def restore(self, step: int) -> None:
        """Load weights, optimizer and random states of ``step`` into the prepared objects."""
        folder = self.folder / f"step-{step}"
        self.accelerator.load_state(str(folder))
        random_file = folder / _random_file(self.accelerator)
        _set_random_state(torch.load(random_file, weights_only=False))

    def steps(self) -> list[int]:
        """Steps that have a checkpoint under its final name, in numerical order."""
        if not self.folder.is_dir():
            return []
        names = (re.fullmatch(r"step-(\d+)", path.name) for path in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def _clear_old(self, protected: set[int | None]) -> None:
        kept = set(self.steps()[-self.keep :]) | protected
        for step in self.steps():
            if step not in kept:
                shutil.rmtree(self.folder / f"step-{step}")

    def problem(self, step: int) -> str | None:
        """What is wrong with a checkpoint, or None; the same answer on every process."""
        answer: list[str | None] = [None]
        if self.accelerator.is_main_process:
            answer = [find_damage(self.folder / f"step-{step}")]
        if self.accelerator.num_processes > 1:
            from accelerate.utils import broadcast_object_list

            answer = broadcast_object_list(answer)
        return answer[0]


def find_damage(folder: Path) -> str | None:
    """Compare a checkpoint with its manifest.

    Returns:
        None when every file is there with its size and hash, else what is wrong.
    """
    if not folder.is_dir():
        return "it does not exist"
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{MANIFEST} is missing or unreadable (killed while it was saved?)"
    for name, expected in manifest.items():
        file = folder / name
        if not file.is_file():
            return f"{name} is missing"
        if (size := file.stat().st_size) != expected["bytes"]:
            return f"{name} has {size} bytes instead of {expected['bytes']}"
        if _hash(file) != expected["sha256"]:
            return f"{name} was changed after it was saved (its hash differs)"
    return None


def _write_manifest(folder: Path) -> None:
    manifest = {}
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        sync(file)
        name = file.relative_to(folder).as_posix()
        manifest[name] = {"bytes": file.stat().st_size, "sha256": _hash(file)}
    path = folder / MANIFEST
    path.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    sync(path)
    sync(folder)


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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

"""Start a recipe from Python, as its own process."""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import torch

from toolkit.entry import run_recipe


def import_recipe(file: Path) -> ModuleType:
    """The module of a recipe file, with its ``Config`` and ``main``; imported once."""
    name = f"recipe_{file.stem}"
    if (known := sys.modules.get(name)) is not None and known.__file__ == str(file):
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def start_recipe(module: ModuleType, file: Path, arguments: list[str]) -> int:
    """Run a recipe in a process of its own and wait for it.

    On a machine with GPUs `accelerate launch` decides how many processes there are. Without one it
    would start a single process that imports everything again; on Linux a fork has it already.

    Returns:
        Its exit status.

    Raises:
        KeyboardInterrupt: when the process, which is interrupted too, has saved its work and ended.
    """
    if torch.cuda.is_available():
        command = [sys.executable, "-m", "accelerate.commands.launch", "-q", str(file), *arguments]
        return _wait_for(subprocess.Popen(command))
    if sys.platform != "linux":
        on_cpu = os.environ | {"ACCELERATE_USE_CPU": "true"}
        return _wait_for(subprocess.Popen([sys.executable, str(file), *arguments], env=on_cpu))
    process = multiprocessing.get_context("fork").Process(
        target=_in_child, args=(module, file, arguments)
    )
    process.start()
    assert process.pid is not None
    _wait(process.join, process.pid)
    assert process.exitcode is not None
    return process.exitcode


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    _wait(process.wait, process.pid)
    return process.returncode


def _wait(end: Callable[[], object], pid: int) -> None:
    """Wait for a process; every Ctrl-C is passed on to it.

    A terminal sends it one as well, which it takes for the same (`toolkit.training.interruption`);
    where the signal was for this process alone, it gets none other.
    """
    interrupted = False
    while True:
        try:
            end()
            break
        except KeyboardInterrupt:
            interrupted = True
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
    if interrupted:
        raise KeyboardInterrupt


def _in_child(module: ModuleType, file: Path, arguments: list[str]) -> None:
    # What this process has inherited is not its to clear away: an object with threads, which a fork
    # does not copy, would wait for them for ever.
    gc.freeze()
    sys.argv = [str(file), *arguments]
    run_recipe(module.main, module.Config, str(file))

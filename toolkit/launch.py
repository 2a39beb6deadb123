"""Start a recipe from Python, as its own process."""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import torch

from toolkit.entry import run_recipe

# Seconds for a recipe to end after Ctrl-C, which a terminal sends to it as well. Then it is sent
# one: the signal may have been for this process alone.
_GRACE = 5.0


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
        KeyboardInterrupt: when the process, which is interrupted too, has ended.
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
    try:
        process.join()
    except KeyboardInterrupt:
        process.join(_GRACE)
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGINT)
        process.join()
        raise
    assert process.exitcode is not None
    return process.exitcode


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
        raise


def _in_child(module: ModuleType, file: Path, arguments: list[str]) -> None:
    # What this process has inherited is not its to clear away: an object with threads, which a fork
    # does not copy, would wait for them for ever.
    gc.freeze()
    sys.argv = [str(file), *arguments]
    run_recipe(module.main, module.Config, str(file))

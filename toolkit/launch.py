"""Start a recipe from Python, as its own process."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import subprocess
import sys
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
    """
    if torch.cuda.is_available():
        command = [sys.executable, "-m", "accelerate.commands.launch", "-q", str(file), *arguments]
        return subprocess.run(command).returncode
    if sys.platform != "linux":
        on_cpu = os.environ | {"ACCELERATE_USE_CPU": "true"}
        return subprocess.run([sys.executable, str(file), *arguments], env=on_cpu).returncode
    process = multiprocessing.get_context("fork").Process(
        target=_in_child, args=(module, file, arguments)
    )
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _in_child(module: ModuleType, file: Path, arguments: list[str]) -> None:
    sys.argv = [str(file), *arguments]
    run_recipe(module.main, module.Config, str(file))

"""The command that started this process, and the one that goes on with its run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

_LAUNCHERS = {
    "accelerate": ["accelerate"],  # its "launch" is the next word
    "accelerate-launch": ["accelerate", "launch"],
    "accelerate.commands.launch": ["accelerate", "launch"],
    "torchrun": ["torchrun"],
    "torch.distributed.run": ["torchrun"],
    "torch.distributed.launch": ["torchrun"],
}
"""What a launcher's program or module is called, and how one types it."""
_ANCESTORS = 4  # processes above this one; DeepSpeed's launcher starts a second one


def command_line() -> str:
    """The command that started this process, as one would type it."""
    return shlex.join([*_launched(), *sys.argv[1:]])


def resume_command(run: Path) -> str:
    """The command that goes on with a run that this process has started, by the same launcher."""
    command = shlex.join([*_launched(), "--resume", str(run)])
    connected = int(os.environ.get("WORLD_SIZE", "1")) > 1
    on_cpu = connected and os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("true", "1")
    return f"ACCELERATE_USE_CPU=true {command}" if on_cpu else command


def _launched() -> list[str]:
    """Launcher, its options, and script of this process."""
    script = os.path.relpath(sys.argv[0])
    script = sys.argv[0] if script.startswith("..") else script
    return [*(_launcher() or _launcher_by_variables()), script]


def _launcher() -> list[str] | None:
    """The launcher among the processes above this one, as it was called; None: there is none."""
    try:
        for process in psutil.Process().parents()[:_ANCESTORS]:
            found = launcher_words(process.cmdline(), sys.argv[0], process.cwd())
            if found is not None:
                return found
    except psutil.Error:  # ended meanwhile, or another user's
        return None
    return None


def launcher_words(command: Sequence[str], script: str, folder: str) -> list[str] | None:
    """Launcher and options from the command line of a process that started a script.

    Args:
        command: the words of the process.
        script: path of the script that was started; relative ones are relative to this process.
        folder: working directory of the launching process.

    Returns:
        For example ["accelerate", "launch", "--config_file", "ddp.yaml"]; None where the process
        is no launcher, or one of something else.
    """
    names = [Path(word).name for word in command]
    place = next((i for i, name in enumerate(names) if name in _LAUNCHERS), None)
    if place is None:
        return None
    wanted = os.path.realpath(script)
    for end in range(place + 1, len(command)):
        if os.path.realpath(os.path.join(folder, command[end])) == wanted:
            return [*_LAUNCHERS[names[place]], *command[place + 1 : end]]
    return None


def _launcher_by_variables() -> list[str]:
    """What the launcher's variables tell, where its process cannot be seen."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if "ACCELERATE_MIXED_PRECISION" in os.environ:
        precision = os.environ["ACCELERATE_MIXED_PRECISION"]
        options = [] if processes == 1 else ["--num_processes", str(processes)]
        options += [] if precision == "no" else ["--mixed_precision", precision]
        return ["accelerate", "launch", *options]
    if processes > 1:
        return ["torchrun", "--nproc_per_node", str(processes)]
    return ["python"]

"""What a complete run recorded of how it was made."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.comparison.saved_run import load_summary
from toolkit.config_files import read_yaml
from toolkit.errors import UserError
from toolkit.recipe_files import find_recipe
from toolkit.run_origin import recorded_environment


@dataclass(frozen=True)
class RecordedRun:
    """A complete run and what it says of itself.

    Args:
        folder: its directory.
        recipe: file of its recipe, as it is now.
        config, environment, summary: its config.yaml, environment.json and summary.json.
    """

    folder: Path
    recipe: Path
    config: dict[str, Any]
    environment: dict[str, Any]
    summary: dict[str, Any]

    @property
    def config_file(self) -> Path:
        """Its settings, as a recipe takes them."""
        return self.folder / "config.yaml"

    @property
    def processes(self) -> int:
        """How many trained it together."""
        return int(self.summary["environment"].get("processes", 1))

    @property
    def precision(self) -> str:
        """In which it computed, as --train.mixed_precision has it: no, bf16 or fp16."""
        said = self.summary["environment"].get("precision", "fp32")
        return "no" if said == "fp32" else str(said)

    @property
    def limited_by_time(self) -> bool:
        """It stopped by the clock: how far it came depends on the machine."""
        train = self.config.get("train") or {}
        return train.get("max_seconds") is not None


def read_recorded(folder: Path) -> RecordedRun:
    """Read a run that is to be repeated.

    Raises:
        UserError: no run directory, not complete, a file is damaged, or its recipe is not here.
    """
    if not (folder / "config.yaml").is_file():
        raise UserError(f"{folder}: not a run directory (it has no config.yaml)")
    environment = recorded_environment(folder)
    name = environment.get("recipe") or folder.absolute().parent.name
    if not (folder / "summary.json").is_file():
        command = shlex.join(
            ["accelerate", "launch", f"recipes/{name}.py", "--resume", str(folder)]
        )
        raise UserError(
            f"{folder}: this run was interrupted (it has no summary.json), so there is no result "
            f"to compare with. Finish it first: {command}"
        )
    if not environment:
        raise UserError(f"{folder}/environment.json is missing or damaged: how it ran is not known")
    summary = load_summary(folder / "summary.json")
    recipe = find_recipe(f"{name}.py", *_folder_of_script(environment))
    return RecordedRun(folder, recipe, read_yaml(folder / "config.yaml"), environment, summary)


def _folder_of_script(environment: dict[str, Any]) -> list[Path]:
    """Where the command that started the run names its recipe: it may be the user's own."""
    words = shlex.split(str(environment.get("command", "")))
    return [Path(word).parent.absolute() for word in words if word.endswith(".py")][:1]

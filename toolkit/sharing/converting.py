"""Models that transformers does not load as they lie in a run, brought into a form it loads.

Each function writes weights and config.json into a folder; tokenizer and image processor are copied
by the caller.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from toolkit.errors import UserError
from toolkit.json_values import read_object
from toolkit.modeling import load_pretrained
from toolkit.sharing.files import WEIGHTS, check_safetensors, copy_files, write_json
from toolkit.sharing.remote_code import RemoteCode, cifar_resnet_code, frozen_code, lstm_code
from toolkit.sharing.source import CLASSIFIER, Source


def write_lstm(source: Source, folder: Path) -> None:
    """The LSTM with its source beside it; its weights as they are."""
    copy_files(source.model, folder, WEIGHTS)
    _write_code(lstm_code(), source.config, folder)


def write_cifar_resnet(source: Source, folder: Path) -> None:
    """The ResNet for small images: HuggingFace's class with another stem, in its weight names."""
    _save_as_huggingface(load_file(source.model / "model.safetensors"), folder, prefix="resnet.")
    _write_code(cifar_resnet_code(), source.config, folder)


def _save_as_huggingface(weights: dict[str, Tensor], folder: Path, prefix: str) -> None:
    renamed = {resnet_name(name, prefix): tensor for name, tensor in weights.items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})


def resnet_name(ours: str, prefix: str = "resnet.") -> str:
    """The name that HuggingFace's ResNet has for a weight of ours.

    Args:
        prefix: of the weights of the body; empty for a body alone.
    """
    from scratch_models.baselines.resnet.mapping import BODY, CLASSIFIER

    rows = [(f"{prefix}{row.ours}", f"{prefix}{row.hub}") for row in BODY]
    rows += [(row.ours, row.hub) for row in CLASSIFIER]
    for own, theirs in rows:
        pattern = re.escape(own).replace(r"\*", r"(\d+)") + r"\.(\w+)"
        found = re.fullmatch(pattern, ours)
        if found:
            *numbers, weight = found.groups()
            for number in numbers:
                theirs = theirs.replace("*", number, 1)
            return f"{theirs}.{weight}"
    raise ValueError(f"HuggingFace's ResNet has no weight for {ours}")


def write_frozen(source: Source, folder: Path) -> None:
    """An encoder and the linear classifier beside it, as one model with its source.

    Raises:
        UserError: the classifier is damaged, of another encoder, or the labels are not known.
    """
    from toolkit.sharing.remote import frozen_classifier as remote

    check_safetensors(source.model / CLASSIFIER)
    classifier, names = load_file(source.model / CLASSIFIER), source.label_names
    if names is None or len(names) != len(classifier["bias"]) or not source.summary:
        raise UserError(
            f"{source.folder}: which labels {CLASSIFIER} chooses between is recorded in the run: "
            "give the run directory."
        )
    if source.model_type == "scratch_cifar_resnet":
        encoder = {
            resnet_name(name, prefix=""): tensor
            for name, tensor in load_file(source.model / "model.safetensors").items()
        }
    else:
        loaded: Any = load_pretrained(str(source.model), "model", implementation="hf").model
        encoder = loaded.state_dict()
    weights = {
        f"encoder.{name}": tensor.contiguous()
        for name, tensor in encoder.items()
        if not name.startswith("pooler.")  # no feature comes from it
    }
    weights |= {f"classifier.{name}": classifier[name] for name in ("weight", "bias")}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": remote.FrozenClassifierConfig.model_type,
        "encoder": _portable(source.config),
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
        "pad_token_id": source.config.get("pad_token_id"),
        "dtype": "float32",
        "transformers_version": source.config.get("transformers_version"),
    }
    _write_code(frozen_code(str(source.model_type), source.reads_images), config, folder)


def _portable(encoder: dict[str, Any]) -> dict[str, Any]:
    """Config of an encoder inside another one: without what it was loaded from and as."""
    left_out = ("architectures", "_name_or_path", "auto_map", "id2label", "label2id")
    return {key: value for key, value in encoder.items() if key not in left_out}


def _write_code(code: RemoteCode, config: dict[str, Any], folder: Path) -> None:
    code.write(folder)
    write_json(folder / "config.json", code.added_to(config))


def write_marian(source: Source, folder: Path) -> None:
    """A Transformer in the paper's layout as the Marian model that computes the same.

    Raises:
        UserError: weights are missing.
    """
    from scratch_models.models.paper_transformer.modeling import to_marian

    loaded: Any = load_pretrained(str(source.model), "seq2seq-lm").model
    with torch.no_grad():
        to_marian(loaded.eval()).save_pretrained(folder)
    for name in ("config.json", "generation_config.json"):
        if (folder / name).is_file():
            write_json(folder / name, read_object(folder / name))

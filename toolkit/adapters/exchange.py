"""Save adapters so that HuggingFace's classes take them, and load theirs into ours."""

from __future__ import annotations

import copy
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from scratch_models import ScratchPreTrainedModel
from scratch_models.hub.adapters import Adapter, has_own_names, to_huggingface, to_ours
from toolkit.adapters.merging import merge
from toolkit.console import notify
from toolkit.errors import UserError, first_line
from toolkit.run import Run
from toolkit.training.sharding import gather_whole

_PREFIX = "base_model.model."  # peft's, before every name in an adapter's file
_WEIGHTS, _SETTINGS = "adapter_model.safetensors", "adapter_config.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def save_adapter(run: Run[Any], model: Any, tokenizer: Any) -> None:
    """Save an adapter, the modules trained with it and the tokenizer in ``adapter/`` of the run.

    That of one of our models becomes an adapter of HuggingFace's class, in its names and layout:
    plain peft puts it on that class, and `load_adapter` on ours. Where no adapter of that class
    does the same, the merged model is saved instead, in ``merged/``. Which is said in one line.

    Collective over all processes: weights that are divided among them are gathered.
    """
    model = gather_whole(run.accelerator, model)
    if model is None:
        return
    folder, base = run.directory / "adapter", model.get_base_model()
    model.save_pretrained(folder)
    saved = f"an adapter for {type(base).__name__}"
    theirs = getattr(base, "huggingface_class", None)
    if theirs is not None:
        try:
            _convert_for_huggingface(base, folder)
            saved = f"an adapter for {theirs}, which {type(base).__name__} reads too"
        except ValueError as reason:
            shutil.rmtree(folder)
            folder = run.directory / "merged"
            merged: Any = merge(copy.deepcopy(model))
            merged.save_pretrained(folder)
            saved = f"the merged model, as no adapter for {theirs} does the same: {reason}"
    notify(f"{folder.name}/: {saved}")
    tokenizer.save_pretrained(folder)


def _convert_for_huggingface(base: ScratchPreTrainedModel, folder: Path) -> None:
    settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
    weights = _without_prefix(load_file(folder / _WEIGHTS))
    converted = to_huggingface(base, Adapter(settings, weights))
    prefixed = {_PREFIX + key: tensor.contiguous() for key, tensor in converted.weights.items()}
    save_file(prefixed, folder / _WEIGHTS, metadata={"format": "pt"})
    content = json.dumps(converted.settings, indent=2, sort_keys=True)
    (folder / _SETTINGS).write_text(content, encoding="utf-8")


def load_adapter(model: nn.Module, folder: str | Path, trainable: bool = False) -> Any:
    """Put a saved LoRA or DoRA adapter on a model; says where it was trained.

    One of HuggingFace's class is converted for ours (`scratch_models.hub.adapters`); layers are
    found by the weights in the file, however the settings name them. Other models get it as peft
    would put it.

    Args:
        folder: of the adapter, or its name on the Hub.
        trainable: go on training it. A layer of HuggingFace's class that is several of ours then
            trains all of them.

    Raises:
        UserError: no adapter there, one of another kind or for other layers, or weights of other
            sizes than the model's (a vocabulary that was resized).
    """
    adapter = _read(str(folder))
    _compare_base(adapter.settings, model, str(folder))
    converted, trained_on = adapter, type(model).__name__
    if isinstance(model, ScratchPreTrainedModel) and not has_own_names(model, adapter):
        trained_on = str(model.huggingface_class)
        try:
            converted = to_ours(model, adapter)
        except ValueError as error:
            raise UserError(f"{folder}: {error}") from error
    _check_sizes(model, converted, str(folder))
    adapted = _put_on(model, converted, str(folder), trainable)
    layers = sum(key.endswith(("lora_A.weight", "lora_embedding_A")) for key in converted.weights)
    notify(f"{folder}: an adapter in the layout of {trained_on}, put on {layers} layers")
    return adapted


def _read(folder: str) -> Adapter:
    from peft import PeftConfig
    from peft.utils.save_and_load import load_peft_weights

    try:
        config = PeftConfig.from_pretrained(folder)
        weights = load_peft_weights(folder, device="cpu")
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: no adapter can be read there: {first_line(error)}") from error
    kind = str(getattr(config.peft_type, "value", config.peft_type))
    if kind != "LORA":
        raise UserError(f"{folder}: a {kind} adapter; expected LoRA or DoRA")
    return Adapter(config.to_dict(), _without_prefix(weights))


def _without_prefix(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(_PREFIX): tensor for key, tensor in weights.items()}


def _compare_base(settings: dict[str, Any], model: nn.Module, folder: str) -> None:
    """Warn of an adapter that was trained on another model than it is put on."""
    config = getattr(model, "config", None)
    trained_on = settings.get("base_model_name_or_path")
    name = getattr(config, "_name_or_path", "")
    if trained_on and name and not _same_place(trained_on, name):
        notify(f"warning: {folder} was trained on {trained_on}, but the model is {name}")
    revision, commit = settings.get("revision") or "", getattr(config, "_commit_hash", None)
    if commit and _COMMIT.fullmatch(revision) and revision != commit:
        notify(
            f"warning: {folder} was trained on revision {revision} of {trained_on}, but the model "
            f"is of revision {commit}"
        )


def _same_place(one: str, other: str) -> bool:
    return one == other or Path(one).resolve() == Path(other).resolve()


def _check_sizes(model: nn.Module, adapter: Adapter, folder: str) -> None:
    """Updates fit the layers they are for, and whole weights those they replace."""
    own = dict(model.state_dict())
    for key, tensor in adapter.weights.items():
        layer, _, kind = key.partition(".lora_")
        if not kind and key in own:
            found, expected = tuple(tensor.shape), tuple(own[key].shape)
        elif kind in ("A.weight", "B.weight", "embedding_A") and f"{layer}.weight" in own:
            outputs, inputs = own[f"{layer}.weight"].shape[:2]
            if isinstance(model.get_submodule(layer), Conv1D):
                outputs, inputs = inputs, outputs
            place, size = {
                "A.weight": (1, inputs),
                "B.weight": (0, outputs),
                "embedding_A": (1, outputs),
            }[kind]
            found, expected = (tensor.shape[place],), (size,)
        else:
            continue
        if found != expected:
            raise UserError(
                f"{folder}: {key} is made for a size of {_times(found)}, the model has "
                f"{_times(expected)}. Load the model it was trained on; if that had a resized "
                "vocabulary (resize_token_embeddings) or other labels, give the model the same "
                "before the adapter."
            )


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _put_on(model: nn.Module, adapter: Adapter, folder: str, trainable: bool) -> Any:
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

    known = {key: value for key, value in adapter.settings.items()
             if key not in ("peft_type", "auto_mapping", "inference_mode")}  # fmt: skip
    config = LoraConfig(**known, inference_mode=not trainable)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="(?s)fan_in_fan_out|.*base_model_name_or_path"
            )
            adapted = get_peft_model(model, config)
    except ValueError as error:
        raise UserError(f"{folder}: {first_line(error)}") from error
    weights = {_PREFIX + key: tensor for key, tensor in adapter.weights.items()}
    result = set_peft_model_state_dict(adapted, weights)
    updates = [key for key in result.missing_keys if ".lora_" in key or ".modules_to_save." in key]
    lost = sorted({*updates, *result.unexpected_keys})
    if lost:
        raise UserError(
            f"{folder}: {len(lost)} of its weights and those of {type(model).__name__} do not "
            f"match: {', '.join(lost[:4])}. Is it an adapter of another model?"
        )
    return adapted if trainable else adapted.eval()

"""The weights of a source on a device, complete or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from scratch_models.hub.auto import scratch_class
from scratch_models.inference import optimize_for_inference
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.modeling import Implementation, load_pretrained, read_config
from toolkit.prediction.batches import BatchLimits
from toolkit.prediction.predictor import Options
from toolkit.prediction.source import Source


def load_model(source: Source, head: str, options: Options, tokenizer: Any = None) -> Any:
    """The model with the head of its task, in eval mode, on the device.

    Args:
        head: a key of `scratch_models.hub.auto.HEADS`.
        tokenizer: its padding token is given to a model that has none.

    Raises:
        UserError: weights cannot be read or are missing, or there is no such device.
    """
    implementation = choose_implementation(source, head, options.implementation)
    labels = _adapter_labels(source) if source.adapter else None
    loaded = load_pretrained(
        source.folder,
        head,
        implementation=implementation,
        tokenizer=tokenizer,
        label_names=labels,
    )
    model: Any = loaded.model
    if source.adapter is not None:
        from toolkit.adapters import load_adapter, merge  # and with it peft

        _check_covered(source, loaded.new_modules)
        model = merge(load_adapter(model, source.adapter))
    elif loaded.new_modules:
        raise UserError(
            f"{source.name}: its weights have nothing for {', '.join(loaded.new_modules)}, which "
            "the task needs: random ones would predict at random. Fine-tune the model first."
        )
    return place(model, options.device)


def place(model: nn.Module, device: str) -> nn.Module:
    """The model on a device and in eval mode; on a CPU with reordered weights (twice the memory).

    Raises:
        UserError: there is no such device.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        placed = model.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise UserError(f"--device {device}: not available here. Use auto or cpu.") from error
    return optimize_for_inference(placed) if device == "cpu" else placed


def limits_of(options: Options) -> BatchLimits:
    """How much is computed at once."""
    return BatchLimits(options.batch_size, options.batch_tokens)


def choose_implementation(source: Source, head: str, asked: str) -> Implementation:
    """Ours where it is asked for and there is one; says where HuggingFace's takes its place."""
    if asked == "hf":
        return "hf"
    model_type = read_config(source.folder).model_type
    try:
        scratch_class(model_type, head)
    except ValueError:
        notify(f"{source.name}: no from-scratch {model_type} for this task; HuggingFace's is used.")
        return "hf"
    return "scratch"


def _adapter_weights(source: Source) -> dict[str, tuple[int, ...]]:
    """Names and shapes in an adapter's file."""
    file = Path(str(source.adapter)) / "adapter_model.safetensors"
    try:
        with safe_open(file, "pt") as opened:
            return {key: tuple(opened.get_slice(key).get_shape()) for key in opened.keys()}  # noqa: SIM118
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def _adapter_labels(source: Source) -> list[str] | None:
    """Label names of the run the adapter lies in, or as many as the adapter's classifier has."""
    if source.label_names is not None:
        return source.label_names
    for key, shape in _adapter_weights(source).items():
        if len(shape) == 2 and any(f".{part}." in key for part in ("classifier", "score")):
            if "lora_" in key or key.endswith(("dense.weight", "lora_A", "lora_B")):
                continue
            notify(f"{source.name}: an adapter does not name its labels: LABEL_0, LABEL_1, ...")
            return [f"LABEL_{number}" for number in range(shape[0])]
    return None


def _check_covered(source: Source, new_modules: list[str]) -> None:
    keys = _adapter_weights(source)
    lacking = [name for name in new_modules if not any(f".{name}." in key for key in keys)]
    if lacking:
        raise UserError(
            f"{source.name}: neither the adapter nor its base has weights for "
            f"{', '.join(lacking)}, so its predictions would be random."
        )

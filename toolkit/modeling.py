"""Load a tokenizer and a model for a task, and refuse weights that would stay random unnoticed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from transformers import CONFIG_MAPPING, AutoConfig, AutoTokenizer, BertConfig, PreTrainedConfig

from scratch_models.hub.architecture import Architecture, architectures
from scratch_models.hub.auto import HEADS, scratch_class
from toolkit.config import check_range
from toolkit.console import notify
from toolkit.errors import UserError, first_line
from toolkit.sources import resolve_model

Implementation = Literal["scratch", "hf"]

# Weights that belong to one task. They may be absent from a checkpoint (they are what fine-tuning
# learns) or be left over from another task. The pooler belongs to them: a checkpoint trained
# without next-sentence prediction never had one. The first line has the names of BERT and of our
# classes; the others those of DistilBERT, ELECTRA, ALBERT, DeBERTa, XLNet, XLM, BART and T5,
# ModernBERT.
TASK_WEIGHTS = re.compile(
    r"(^|\.)(pooler|cls|classifier|qa_outputs|lm_head|score|masked_lm_head|next_sentence_head"
    r"|pre_classifier|vocab_transform|vocab_layer_norm|vocab_projector"
    r"|discriminator_predictions|generator_predictions|generator_lm_head"
    r"|predictions|sop_classifier|lm_predictions|mask_predictions"
    r"|lm_loss|sequence_summary|logits_proj|pred_layer|classification_head|final_logits_bias"
    r"|head(?=\.(dense|norm)\.)|decoder(?=\.(weight|bias)$))(\.|$)"
)


class LoadedModel(NamedTuple):
    """A model and the names of its modules that no checkpoint has filled."""

    model: nn.Module
    new_modules: list[str]


@dataclass
class BertShape:
    """A BERT that is small enough to be trained from random weights on a few thousand texts."""

    layers: int = 3
    """Encoder layers."""
    hidden_size: int = 192
    """Width; the feed-forward part is four times as wide."""
    heads: int = 3
    """Attention heads; they divide the width."""
    vocabulary: int = 8000
    """Word pieces, learned from the training texts."""
    dropout: float = 0.1
    """Dropout of hidden states and attention."""
    initializer_range: float = 0.02
    """Standard deviation of the first weights. BERT's 0.02 suits a width of 768; narrow models
    learn sooner from larger ones, up to 1 / sqrt(width)."""


def load_tokenizer(name: str) -> Any:
    """Tokenizer of a model folder, ``demo:`` name or Hub name.

    Raises:
        UserError: the folder holds no tokenizer.
    """
    source = resolve_model(name)
    if Path(source).is_dir() and not _has_tokenizer(Path(source)):
        # transformers would make a tokenizer that knows five tokens.
        raise UserError(
            f"{name}: the folder has no tokenizer (expected tokenizer.json or vocab.txt). Copy "
            "these files from the model it was made from."
        )
    try:
        # Of an architecture that only we have AutoTokenizer would warn that it does not know it.
        config = read_config(name) if _own_architecture(source) else None
        tokenizer = AutoTokenizer.from_pretrained(source, config=config)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: its tokenizer cannot be read: {first_line(error)}") from error
    if tokenizer.pad_token is None:  # GPT-2's: what stands behind a text is not looked at
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def read_config(name: str) -> Any:
    """Config of a model folder, ``demo:`` name or Hub name.

    It is of any architecture of transformers, or of one that only we have.

    Raises:
        UserError: no model there, or no config.json that can be read.
    """
    source = resolve_model(name)
    try:
        own = _own_architecture(source)
        if own is not None:
            return own.load(next(iter(own.classes))).config_class.from_pretrained(source)
        return AutoConfig.from_pretrained(source)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: no usable config.json: {first_line(error)}") from error


def load_pretrained(
    name: str,
    head: str,
    *,
    implementation: Implementation = "scratch",
    label_names: list[str] | None = None,
    dropout: float | None = None,
    allow_missing_weights: bool = False,
    tokenizer: Any = None,
) -> LoadedModel:
    """Load a checkpoint into the class of its architecture with the head of a task.

    Args:
        name: model folder, ``demo:`` name or Hub name.
        head: a key of ``scratch_models.hub.auto.HEADS``, e.g. ``sequence-classification``.
        implementation: our class, or HuggingFace's own.
        label_names: names in id order; they become the model's ``id2label``.
        dropout: of hidden states and attention; None keeps the checkpoint's own.
        allow_missing_weights: go on although weights outside the task head are missing.
        tokenizer: its padding token is given to a model that has none: one that classifies a text
            by its last token (GPT-2) has to know where the text ends.

    Raises:
        UserError: no model there, an architecture or head we have not, hidden states of an
            encoder-decoder, or weights that are missing or left over outside the task head.
    """
    source = resolve_model(name)
    config = read_config(name)
    if head == "model" and config.is_encoder_decoder:
        raise UserError(
            f"{name}: {config.model_type} is an encoder with a decoder. Features are taken from "
            "models of one part, such as BERT, GPT-2 or ViT: choose one with --model, or another "
            "--method."
        )
    if head == "question-answering":
        config.num_labels = 2  # start and end, whatever the checkpoint was trained for
    if label_names is not None:
        _set_labels(config, label_names)
    if dropout is not None:
        check_range("dropout", dropout, 0, 1)
        _set_dropout(config, dropout)
    if tokenizer is not None and config.pad_token_id is None:
        config.pad_token_id = tokenizer.pad_token_id
    model_class = _model_class(name, config, head, implementation)
    try:
        with _quiet_loading():
            # Always float32: a folder saved in half precision would otherwise be trained in it.
            model, info = model_class.from_pretrained(
                source,
                config=config,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{name}: its weights cannot be read: {first_line(error)}") from error
    if head == "model" and getattr(model, "pooler", None) is not None:
        _drop_new_pooler(model, info)
    new = _check_loading(name, model, info, allow_missing_weights)
    return LoadedModel(model, new)


def new_bert(
    shape: BertShape,
    tokenizer: Any,
    head: str,
    implementation: Implementation,
    label_names: list[str] | None = None,
) -> nn.Module:
    """A BERT with random weights and the head of a task.

    Args:
        head: a key of ``scratch_models.hub.auto.HEADS``.

    Raises:
        UserError: the heads do not divide the width.
    """
    for key, number in (("layers", shape.layers), ("heads", shape.heads)):
        if number < 1:
            raise UserError(f"--shape.{key} {number}: expected at least 1")
    check_range("shape.dropout", shape.dropout, 0, 1)
    check_range("shape.initializer_range", shape.initializer_range, 0, 1)
    if shape.hidden_size < 1 or shape.hidden_size % shape.heads:
        raise UserError(
            f"--shape.heads {shape.heads} does not divide --shape.hidden_size {shape.hidden_size}"
        )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden_size,
        hidden_dropout_prob=shape.dropout,
        attention_probs_dropout_prob=shape.dropout,
        initializer_range=shape.initializer_range,
        pad_token_id=tokenizer.pad_token_id,
    )
    return new_model("a new BERT", config, head, implementation, label_names)


def new_model(
    name: str,
    config: Any,
    head: str,
    implementation: Implementation,
    label_names: list[str] | None = None,
) -> nn.Module:
    """A model of any architecture with random weights and the head of a task.

    Args:
        name: what messages call it.
        config: of transformers, or of one of our own architectures.
        head: a key of ``scratch_models.hub.auto.HEADS``.
        label_names: names in id order; they become the model's ``id2label``.

    Raises:
        UserError: no class for this architecture and head.
    """
    if label_names is not None:
        _set_labels(config, label_names)
    model_class = _model_class(name, config, head, implementation)
    build = model_class.from_config if implementation == "hf" else model_class
    model: nn.Module = build(config)
    return model


def count_parameters(model: nn.Module) -> dict[str, int]:
    """``parameters_total`` and ``parameters_trained``; shared weights count once.

    peft keeps the untrained original of every module that it trains a copy of; it is not counted.
    """
    counted = [p for name, p in model.named_parameters() if ".original_module." not in name]
    # DeepSpeed ZeRO-3 leaves empty tensors that know their size.
    sizes = [(getattr(p, "ds_numel", p.numel()), p.requires_grad) for p in counted]
    return {
        "parameters_total": sum(size for size, _ in sizes),
        "parameters_trained": sum(size for size, trained in sizes if trained),
    }


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """transformers prints a table of missing weights; `_check_loading` says it in a line."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _own_architecture(source: str) -> Architecture | None:
    """The architecture of a checkpoint where transformers has no such model."""
    described, _ = PreTrainedConfig.get_config_dict(source)
    model_type = described.get("model_type")
    return None if model_type in CONFIG_MAPPING else architectures().get(model_type)


def _set_labels(config: Any, label_names: list[str]) -> None:
    config.id2label = dict(enumerate(label_names))
    config.label2id = {label: index for index, label in enumerate(label_names)}


def _drop_new_pooler(model: Any, info: Any) -> None:
    """A body is asked for its hidden states: a pooler without weights would be so much noise."""
    pooler = {key for key in info["missing_keys"] if _module_of(key) == "pooler"}
    if pooler:
        model.pooler = None
        info["missing_keys"] = set(info["missing_keys"]) - pooler


def _set_dropout(config: Any, dropout: float) -> None:
    """Set it under every name that HuggingFace's configs have for it."""
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout",
             "attn_pdrop", "resid_pdrop", "embd_pdrop")  # fmt: skip
    for name in names:
        if hasattr(config, name):
            setattr(config, name, dropout)


def _model_class(name: str, config: Any, head: str, implementation: Implementation) -> Any:
    if type(config).__module__.startswith("scratch_models."):
        return _own_class(name, config.model_type, head, implementation)
    auto_class = getattr(transformers, HEADS[head])
    theirs = type(config) in auto_class._model_mapping
    if implementation == "hf":
        if not theirs:
            raise UserError(f"{name}: HuggingFace has no {config.model_type!r} model for {head!r}.")
        return auto_class
    try:
        return scratch_class(config.model_type, head)
    except ValueError as error:
        hint = " Use --implementation hf for it." if theirs else ""
        raise UserError(f"{name}: {error}{hint}") from None


def _own_class(name: str, model_type: str, head: str, implementation: Implementation) -> Any:
    """The class of an architecture that HuggingFace has not."""
    try:
        found = scratch_class(model_type, head)
    except ValueError as error:
        raise UserError(f"{name}: {error} Choose another --method, or another model.") from None
    if implementation == "hf":
        raise UserError(
            f"{name}: HuggingFace has no {model_type}. Use --implementation scratch for it."
        )
    return found


def _check_loading(name: str, model: nn.Module, info: Any, allow_missing: bool) -> list[str]:
    """Compare the checkpoint's weights with the model's; returns the modules left new."""
    mismatched = {key: shapes for key, *shapes in info["mismatched_keys"]}
    missing = set(info["missing_keys"]) | set(mismatched)
    wrong_missing = sorted(key for key in missing if not _is_of_task(model, key))
    wrong_extra = sorted(key for key in info["unexpected_keys"] if not TASK_WEIGHTS.search(key))
    if wrong_missing or wrong_extra:
        problem = _describe_mismatch(name, wrong_missing, wrong_extra, mismatched)
        if not allow_missing:
            raise UserError(
                f"{problem} Is the checkpoint of another architecture? To go on with random "
                "weights in their place, add --allow-missing-weights."
            )
        notify(f"warning: {problem}")
    new = sorted({_module_of(key) for key in missing})
    if new:
        notify(f"{name}: new, to be trained: {', '.join(new)}")
    dropped = sorted({_module_of(key) for key in info["unexpected_keys"]})
    if dropped:
        notify(f"{name}: left out, of another task: {', '.join(dropped)}")
    return new


def _is_of_task(model: nn.Module, key: str) -> bool:
    """By its name, or because it lies outside the body that all tasks share."""
    body = getattr(model, "base_model_prefix", "")
    outside = hasattr(model, body) and not key.startswith(f"{body}.")
    return outside or TASK_WEIGHTS.search(key) is not None


def _describe_mismatch(
    name: str, missing: list[str], extra: list[str], mismatched: dict[str, Any]
) -> str:
    parts = []
    if missing:
        shown = [f"{key} {mismatched[key]}" if key in mismatched else key for key in missing]
        parts.append(f"{len(missing)} weights of the model are not in it: {_some(shown)}.")
    if extra:
        parts.append(f"{len(extra)} of its weights have no place in the model: {_some(extra)}.")
    return f"{name}: {' '.join(parts)}"


def _module_of(key: str) -> str:
    """``bert.pooler.dense.weight -> pooler``: the task module, else the path of the module."""
    found = TASK_WEIGHTS.search(key)
    return found[2] if found else key.rpartition(".")[0]


def _some(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _has_tokenizer(folder: Path) -> bool:
    names = (
        "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "tokenizer.model",
        "spiece.model", "sentencepiece.bpe.model",
    )  # fmt: skip
    return any((folder / name).is_file() for name in names)

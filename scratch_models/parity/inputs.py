"""The small random batches that two models are compared on: texts, pairs of texts, images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig

Batch = dict[str, Any]
"""Keyword arguments of `forward`."""

IMAGE_SIZE = 32
"""Height and width of images where the config names none, in pixels."""


def example_batches(config: PreTrainedConfig, head: str, seed: int = 0) -> list[Batch]:
    """Batches with labels, of the kind that the config and the head ask for.

    - Texts: padded right, with segments where there are some; padded left, with an empty row and
      with positions that count the real tokens; and without padding, mask or segments.
    - Source and target: the same paddings in the source; the target as labels, from which the model
      makes the input of its decoder, then as that input with a mask of its own.
    - Images: of the config's size, and smaller ones that are not square where the model takes any
      size (or can stretch its positions).

    Args:
        config: gives vocabulary, segments, positions, image size and labels.
        head: a key of `scratch_models.hub.auto.HEADS`.
        seed: of the random numbers; the same seed gives the same batches.
    """
    generator = torch.Generator().manual_seed(seed)
    if has_images(config):
        inputs = _images(config, generator)
    elif config.is_encoder_decoder:
        return _source_and_target(config, head, generator)
    else:
        inputs = _texts(config, generator)
    batches = [batch | _labels(config, head, batch, generator) for batch in inputs]
    if head == "sequence-classification" and config.pad_token_id is None:
        # A decoder reads its answer off the last token, which is not known among padding.
        batches = [{name: tensor[:1] for name, tensor in batch.items()} for batch in batches]
    return batches


def example_prompts(config: PreTrainedConfig, seed: int = 0) -> Batch:
    """What to generate from: texts padded left, or sources padded right for a model with a decoder.

    Returns:
        `input_ids` and `attention_mask` [3, 6], or as long as there are positions.
    """
    generator = torch.Generator().manual_seed(seed)
    batch = _tokens(config, [min(n, _most_tokens(config)) for n in (6, 4, 1)], generator)
    return batch if config.is_encoder_decoder else _padded_left(batch)


def real_positions(attention_mask: Tensor) -> Tensor:
    """Positions [batch, length] that count the real tokens of every row; padding is not counted."""
    return (attention_mask.cumsum(dim=1) - 1).clamp(min=0)


def has_images(config: PreTrainedConfig) -> bool:
    """Whether a model of this config reads images."""
    return hasattr(config, "num_channels")


def _texts(config: PreTrainedConfig, generator: torch.Generator) -> list[Batch]:
    limit = _most_tokens(config)
    right = _tokens(config, [min(n, limit) for n in (16, 11, 3, 16)], generator)
    if hasattr(config, "type_vocab_size"):
        shape = right["input_ids"].shape
        right["token_type_ids"] = torch.randint(config.type_vocab_size, shape, generator=generator)
    left = _padded_left(_tokens(config, [min(n, limit) for n in (9, 5, 0, 7)], generator))
    left["position_ids"] = real_positions(left["attention_mask"])
    whole = _tokens(config, [min(12, limit)] * 2, generator)
    return [right, left, {"input_ids": whole["input_ids"]}]


def _source_and_target(
    config: PreTrainedConfig, head: str, generator: torch.Generator
) -> list[Batch]:
    sources = _texts(config, generator)
    batches = []
    for number, (source, lengths) in enumerate(zip(sources, _TARGETS, strict=True)):
        source.pop("position_ids", None)
        target = _tokens(config, lengths, generator, config.decoder_vocab_size)
        labels = target["input_ids"].masked_fill(target["attention_mask"] == 0, -100)
        batch = source if head == "model" else source | {"labels": labels}
        if number == 1:
            batch["decoder_attention_mask"] = target["attention_mask"]
        if number == 1 or head == "model":
            batch["decoder_input_ids"] = target["input_ids"].roll(1, dims=1)
        batches.append(batch)
    return batches


_TARGETS = ([7, 9, 2, 4], [5, 1, 3, 8], [6, 6])
"""Tokens in the targets of the three batches."""


def _images(config: PreTrainedConfig, generator: torch.Generator) -> list[Batch]:
    height, width = _pair(getattr(config, "image_size", IMAGE_SIZE))
    rows = 4 if height * width <= 64**2 else 2  # pretrained models read large images
    shapes = [(rows, config.num_channels, height, width)] * 2
    flags: Batch = {}
    patch = getattr(config, "patch_size", None)
    if patch is None:
        shapes[1] = (rows, config.num_channels, height + 8, width + 1)
    elif height == width and isinstance(patch, int):
        # HuggingFace stretches the positions of square images and patches only.
        shapes[1] = (rows, config.num_channels, 3 * patch, 2 * patch)
        flags = {"interpolate_pos_encoding": True}
    first, second = (torch.randn(shape, generator=generator) for shape in shapes)
    return [{"pixel_values": first}, {"pixel_values": second} | flags]


def _pair(size: int | list[int] | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _most_tokens(config: PreTrainedConfig) -> int:
    positions: int = config.max_position_embeddings
    # RoBERTa's first positions belong to padding.
    return (
        positions - (config.pad_token_id or 0) - 1 if config.model_type == "roberta" else positions
    )


def _padded_left(batch: Batch) -> Batch:
    return {name: tensor.flip(1) for name, tensor in batch.items()}


def _tokens(
    config: PreTrainedConfig,
    lengths: list[int],
    generator: torch.Generator,
    vocab_size: int | None = None,
) -> Batch:
    """Rows of random tokens, padded right: `input_ids` and `attention_mask` [rows, longest]."""
    shape = (len(lengths), max(lengths))
    input_ids = torch.randint(vocab_size or config.vocab_size, shape, generator=generator)
    attention_mask = (torch.arange(shape[1])[None] < torch.tensor(lengths)[:, None]).long()
    pad = config.pad_token_id or 0
    return {
        "input_ids": torch.where(attention_mask.bool(), input_ids, pad),
        "attention_mask": attention_mask,
    }


def _labels(config: PreTrainedConfig, head: str, batch: Batch, generator: torch.Generator) -> Batch:
    if head == "image-classification":
        return {"labels": _class_labels(config, len(batch["pixel_values"]), generator)}
    if head == "model":
        return {}
    ids = batch["input_ids"]
    rows, length = ids.shape
    real = batch.get("attention_mask", torch.ones_like(ids)).bool()

    def draw(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator)

    if head == "causal-lm":
        return {"labels": ids.masked_fill(~real, -100)}
    if head == "masked-lm":
        return {"labels": _keep_some(draw(config.vocab_size, rows, length), real)}
    if head == "pretraining":
        token_labels = _keep_some(draw(config.vocab_size, rows, length), real)
        return {"labels": token_labels, "next_sentence_label": draw(2, rows)}
    if head == "token-classification":
        return {"labels": draw(config.num_labels, rows, length).masked_fill(~real, -100)}
    if head == "question-answering":
        return {"start_positions": draw(length, rows), "end_positions": draw(length, rows)}
    if head == "sequence-classification":
        return {"labels": _class_labels(config, rows, generator)}
    raise ValueError(f"no labels are known for the head {head!r}.")


def _keep_some(labels: Tensor, real: Tensor) -> Tensor:
    """Ask for every third real token only, as masked language modelling does."""
    asked = real & (torch.arange(labels.shape[1]) % 3 == 1)
    return labels.masked_fill(~asked, -100)


def _class_labels(config: PreTrainedConfig, rows: int, generator: torch.Generator) -> Tensor:
    if config.num_labels == 1 or config.problem_type == "regression":
        shape = (rows,) if config.num_labels == 1 else (rows, config.num_labels)
        return torch.randn(shape, generator=generator)
    if config.problem_type == "multi_label_classification":
        return torch.randint(2, (rows, config.num_labels), generator=generator).float()
    return torch.randint(config.num_labels, (rows,), generator=generator)

"""The small random batches that two models are compared on."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedConfig

Batch = dict[str, Tensor]


def example_batches(config: PreTrainedConfig, head: str, seed: int = 0) -> list[Batch]:
    """Two batches with labels: padded right with segments, padded left without and an empty row.

    Args:
        config: gives vocabulary, number of segments, positions and labels.
        head: a key of `scratch_models.hub.auto.HEADS`.
        seed: of the random tokens; the same seed gives the same batches.

    Returns:
        Keyword arguments of `forward`: tensors [4, length] and the labels of the head.
    """
    generator = torch.Generator().manual_seed(seed)
    limit = config.max_position_embeddings
    right = _tokens(config, [min(n, limit) for n in (16, 11, 3, 16)], generator)
    segments = torch.randint(config.type_vocab_size, right["input_ids"].shape, generator=generator)
    right["token_type_ids"] = segments
    left = _tokens(config, [min(n, limit) for n in (9, 5, 0, 7)], generator)
    left = {name: tensor.flip(1) for name, tensor in left.items()}
    return [batch | _labels(config, head, batch, generator) for batch in (right, left)]


def _tokens(config: PreTrainedConfig, lengths: list[int], generator: torch.Generator) -> Batch:
    shape = (len(lengths), max(lengths))
    input_ids = torch.randint(config.vocab_size, shape, generator=generator)
    attention_mask = (torch.arange(shape[1])[None] < torch.tensor(lengths)[:, None]).long()
    pad = config.pad_token_id or 0
    return {
        "input_ids": torch.where(attention_mask.bool(), input_ids, pad),
        "attention_mask": attention_mask,
    }


def _labels(config: PreTrainedConfig, head: str, batch: Batch, generator: torch.Generator) -> Batch:
    rows, length = batch["input_ids"].shape
    real = batch["attention_mask"].bool()

    def draw(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator)

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
        return {"labels": _sequence_labels(config, rows, generator)}
    return {}


def _keep_some(labels: Tensor, real: Tensor) -> Tensor:
    """Ask for every third real token only, as masked language modelling does."""
    asked = real & (torch.arange(labels.shape[1]) % 3 == 1)
    return labels.masked_fill(~asked, -100)


def _sequence_labels(config: PreTrainedConfig, rows: int, generator: torch.Generator) -> Tensor:
    if config.num_labels == 1 or config.problem_type == "regression":
        shape = (rows,) if config.num_labels == 1 else (rows, config.num_labels)
        return torch.randn(shape, generator=generator)
    if config.problem_type == "multi_label_classification":
        return torch.randint(2, (rows, config.num_labels), generator=generator).float()
    return torch.randint(config.num_labels, (rows,), generator=generator)

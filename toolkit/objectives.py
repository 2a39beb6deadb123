"""What a training step minimises, as *sums* over loss terms and their numbers.

The engine divides each sum by the number of terms of the whole optimizer step. A mean per forward
pass would weigh the few tokens of a short batch like the many of a long one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from toolkit.ignored_label import IGNORED

Batch = dict[str, Tensor]
NOT_INPUTS = ("labels", "next_sentence_label", "index")
"""Parts of a batch that the loss needs and the model's ``forward`` is not given."""


class Objective(Protocol):
    """One task's loss and per-example results.

    A loss may have several parts, each a mean over its own terms (BERT's pretraining has two).
    """

    def count(self, batch: Batch) -> list[int]:
        """Number of terms of every part in a batch, from its labels alone."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Sum of the terms of every part, float32 [parts]."""

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Per-example results, each of shape [batch, ...]; called without gradients."""


def model_inputs(batch: Batch) -> Batch:
    """The part of a batch that the model's ``forward`` takes."""
    return {name: value for name, value in batch.items() if name not in NOT_INPUTS}


class Classification:
    """Cross entropy over the class logits of each example.

    Labels are class ids [batch], or probabilities [batch, classes] where examples are mixed.

    Args:
        label_smoothing: share of every label that is spread over all classes, in training (Szegedy
            et al. 2016, arXiv:1512.00567, section 7).
        class_weights: what an example counts in training by its class, in id order [classes]; a
            mixed one by its shares. The sum of the weighted losses is divided by the number of
            examples, so that an example counts the same whatever stands beside it in a batch; with
            balanced weights that is the weighted mean over the training data.
    """

    def __init__(
        self, label_smoothing: float = 0.0, class_weights: Sequence[float] | None = None
    ) -> None:
        self.label_smoothing = label_smoothing
        self.class_weights = None if class_weights is None else torch.tensor(class_weights).float()

    def count(self, batch: Batch) -> list[int]:
        """Every example is one loss term."""
        return [len(batch["labels"])]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Summed cross entropy; logits in float32, because bf16 sums lose small terms."""
        logits = model(**model_inputs(batch)).logits.float()
        labels = batch["labels"]
        losses = F.cross_entropy(
            logits, labels, reduction="none", label_smoothing=self.label_smoothing
        )
        if self.class_weights is not None:
            # Not cross_entropy's own weights: they weigh the share that smoothing gives to another
            # class by that class, so that a rare one becomes the best answer to everything.
            weights = self.class_weights.to(logits.device)
            losses = losses * (weights[labels] if labels.ndim == 1 else labels @ weights)
        return losses.sum().view(1)

    def describe(self) -> dict[str, Any]:
        """What a summary records of it, where it is not the plain mean."""
        described: dict[str, Any] = {}
        if self.label_smoothing:
            described["label_smoothing"] = self.label_smoothing
        if self.class_weights is not None:
            described["class_weights"] = self.class_weights.tolist()
        return described

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """``logits`` [batch, classes], unweighted ``loss`` [batch] and ``labels`` [batch]."""
        logits = model(**model_inputs(batch)).logits.float()
        loss = F.cross_entropy(logits, batch["labels"], reduction="none")
        return {"logits": logits, "loss": loss, "labels": batch["labels"]}


class Pretraining:
    """BERT's two tasks (Devlin et al. 2019, section 3.1 and appendix A.2).

    The loss is the mean over masked tokens plus the mean over sentence pairs.
    """

    def count(self, batch: Batch) -> list[int]:
        """Masked tokens; sentence pairs."""
        return [int((batch["labels"] != IGNORED).sum()), len(batch["next_sentence_label"])]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Summed cross entropy of the masked tokens and of the next-sentence decision."""
        masked, pair_logits = self._masked(model, batch)
        labels = batch["labels"][batch["labels"] != IGNORED]
        masked_loss = F.cross_entropy(masked.float(), labels, reduction="sum")
        pairs = F.cross_entropy(pair_logits.float(), batch["next_sentence_label"], reduction="sum")
        return torch.stack([masked_loss, pairs])

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Per example: summed masked ``loss``; ``masked``, ``correct`` tokens; ``next_correct``."""
        logits, pair_logits = self._masked(model, batch)
        asked = batch["labels"] != IGNORED
        labels = batch["labels"][asked]
        losses = F.cross_entropy(logits.float(), labels, reduction="none")
        empty = torch.zeros(asked.shape, device=losses.device)
        hits = (logits.argmax(-1) == labels).float()
        return {
            "loss": empty.masked_scatter(asked, losses).sum(-1),
            "masked": asked.sum(-1),
            "correct": empty.masked_scatter(asked, hits).sum(-1).long(),
            "next_correct": (pair_logits.argmax(-1) == batch["next_sentence_label"]).long(),
        }

    @staticmethod
    def _masked(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits of the masked tokens [masked, vocabulary], and of the pairs [batch, 2]."""
        asked = batch["labels"] != IGNORED
        if takes(model, "logits_at"):
            output = model(**model_inputs(batch), logits_at=asked)
            return output.prediction_logits, output.seq_relationship_logits
        output = model(**model_inputs(batch))
        return output.prediction_logits[asked], output.seq_relationship_logits


def takes(model: nn.Module, argument: str) -> bool:
    """Whether a model's `forward` knows an argument that only ours have, under any wrapper."""
    inner: Any = getattr(model, "module", model)  # of a model on several processes
    inner = inner.get_base_model() if hasattr(inner, "get_base_model") else inner  # of an adapter
    return argument in inspect.signature(inner.forward).parameters

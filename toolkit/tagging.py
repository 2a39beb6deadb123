"""Token classification as a task: its loss, and the metric that chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from toolkit.config import check_range
from toolkit.entity_metrics import count_entities, entities, scores
from toolkit.evaluation import Outputs
from toolkit.ignored_label import IGNORED
from toolkit.objectives import Batch, model_inputs


class TokenClassification:
    """Cross entropy over the tags of every word; a label of -100 is none.

    Args:
        width: tokens of the longest window of any split.
        label_smoothing: share of every label that is spread over all tags, in training.

    Raises:
        UserError: a smoothing outside 0 to 1.
    """

    def __init__(self, width: int, label_smoothing: float = 0.0) -> None:
        check_range("label_smoothing", label_smoothing, 0, 1)
        self.width = width
        self.label_smoothing = label_smoothing

    def count(self, batch: Batch) -> list[int]:
        """Words whose label counts."""
        return [int((batch["labels"] != IGNORED).sum())]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Summed cross entropy over these words."""
        logits = model(**model_inputs(batch)).logits.float()
        return F.cross_entropy(
            logits.flatten(0, 1),
            batch["labels"].flatten(),
            ignore_index=IGNORED,
            reduction="sum",
            label_smoothing=self.label_smoothing,
        ).view(1)

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Per window: `predictions` [batch, width], the words that count first; summed `loss`.

        What is behind the last word is -100.
        """
        labels = batch["labels"]
        logits = model(**model_inputs(batch)).logits.float()
        losses = F.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
        )
        counts = labels != IGNORED
        found = logits.argmax(-1).masked_fill(~counts, IGNORED)
        order = counts.int().argsort(dim=1, descending=True, stable=True)
        found = found.gather(1, order)
        padded = F.pad(found, (0, self.width - found.shape[1]), value=IGNORED)
        return {"predictions": padded, "loss": losses.sum(-1)}


class SentenceTags:
    """Puts the predictions for windows together again: one tag for every token of a split.

    Args:
        rows: of the split, with tags.
        windows: of the same split (`toolkit.data.word_windows.tokenize_words`).
        label_names: in id order.
    """

    def __init__(self, rows: Any, windows: Any, label_names: Sequence[str]) -> None:
        self.gold: list[list[str]] = rows["tags"][:]
        self.sentences: list[int] = windows["sentence"][:]
        self.words: list[list[int]] = windows["words"][:]
        self.label_names = label_names

    def __call__(self, outputs: Outputs) -> list[list[str]]:
        """The predicted tags of every sentence.

        Raises:
            RuntimeError: a token got no prediction, or two.
        """
        tags: list[list[str | None]] = [[None] * len(sentence) for sentence in self.gold]
        for window, predictions in enumerate(outputs["predictions"]):
            sentence = tags[self.sentences[window]]
            found = predictions[predictions != IGNORED]
            for word, label in zip(self.words[window], found, strict=True):
                if sentence[word] is not None:
                    raise RuntimeError(f"token {word} of a sentence was predicted twice")
                sentence[word] = self.label_names[label]
        complete = [[tag for tag in sentence if tag is not None] for sentence in tags]
        if list(map(len, complete)) != list(map(len, self.gold)):
            raise RuntimeError("not every token of a sentence has a prediction")
        return complete


class EntityMetric:
    """Entity F1, precision, recall and loss per word; chosen by F1.

    Args:
        tags: puts the predictions of the validation windows together.
    """

    selection = "entity_f1"
    higher_is_better = True

    def __init__(self, tags: SentenceTags) -> None:
        self.tags = tags
        self.gold = entities(tags.gold)

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Compute from the outputs of `TokenClassification`."""
        predicted = entities(self.tags(outputs))
        found = scores(count_entities(self.gold, predicted).sum(0))
        words = sum(map(len, self.tags.gold))
        return {
            "entity_f1": found["f1"],
            "precision": found["precision"],
            "recall": found["recall"],
            "loss": float(outputs["loss"].sum() / words),
        }

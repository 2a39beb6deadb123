"""Labels of texts and of pairs: fine-tuned models, frozen encoders with a linear layer, TF-IDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from toolkit.data.collate import ClassificationCollator
from toolkit.data.splits import is_blank
from toolkit.data.tokenization import check_tokenizer, encode_batch, length_limit
from toolkit.errors import UserError, first_line
from toolkit.modeling import load_tokenizer
from toolkit.objectives import Batch, model_inputs
from toolkit.prediction.batches import Advance, BatchLimits, predict_sorted
from toolkit.prediction.loading import limits_of, load_model
from toolkit.prediction.predictor import NO_TEXT, NOTE, Answer, Options
from toolkit.prediction.source import TEXT, Source

Compute = Callable[[nn.Module, Batch], Mapping[str, Any]]
_LONGEST = 1 << 30
LABEL_NAMES = ("prediction", "probability", "probabilities")


class TextClassifier:
    """Labels texts, or pairs of texts given as (first, second).

    Args:
        compute: `probabilities` [batch, classes] of a batch.
        labels: names in id order.
        limit: tokens of a text, special tokens included.
    """

    task, kind, names = TEXT, "text", LABEL_NAMES

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        compute: Compute,
        labels: Sequence[str],
        limit: int,
        limits: BatchLimits,
    ) -> None:
        self.model, self.tokenizer, self.compute = model, tokenizer, compute
        self.labels, self.limit, self.limits = list(labels), limit, limits
        self.collate = ClassificationCollator(tokenizer)

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """`prediction`, its `probability`, and `probabilities` by label name."""
        encoded = encode_batch(columns_of(rows), self.tokenizer, self.limit)
        names = [name for name in ("input_ids", "token_type_ids") if name in encoded]
        examples = [
            dict(zip(names, values, strict=True))
            for values in zip(*(encoded[name] for name in names), strict=True)
        ]
        found = predict_sorted(
            self.model, examples, lengths=encoded["length"], collate=self._collate,
            compute=self.compute, limits=self.limits, advance=advance,
        )  # fmt: skip
        answers = label_answers(found, self.labels)
        for row, answer, full in zip(rows, answers, encoded["full_length"], strict=True):
            add_note(answer, row, full, self.limit)
        return answers

    def _collate(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        return {k: v for k, v in self.collate(examples).items() if k != "index"}


class TfidfClassifier:
    """Labels texts by what scikit-learn's pipeline says.

    Args:
        pipeline: with `predict_proba`.
        labels: names in id order.
    """

    task, kind, names = TEXT, "text", LABEL_NAMES

    def __init__(self, pipeline: Any, labels: Sequence[str]) -> None:
        self.pipeline, self.labels = pipeline, list(labels)

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """As `TextClassifier`; nothing is cut."""
        if any(isinstance(row, tuple) for row in rows):
            raise UserError(
                "this TF-IDF model was trained on single texts: leave out --pair-column."
            )
        probabilities = self.pipeline.predict_proba(list(rows))
        answers = label_answers({"probabilities": list(probabilities)}, self.labels)
        for row, answer in zip(rows, answers, strict=True):
            add_note(answer, row, 0, _LONGEST)
        advance(len(rows))
        return answers


def open_text_classifier(source: Source, options: Options) -> TextClassifier | TfidfClassifier:
    """The classifier of a run or checkpoint.

    Raises:
        UserError: whatever is wrong with its files.
    """
    folder = Path(source.folder)
    if source.is_tfidf:
        return _open_tfidf(source, folder / "tfidf.joblib")
    tokenizer = load_tokenizer(source.folder)
    frozen = (folder / "classifier.safetensors").is_file() and source.is_run
    model = load_model(source, "model" if frozen else "sequence-classification", options, tokenizer)
    check_tokenizer(tokenizer, model.config.vocab_size)
    asked = options.max_length or source.tokenization("max_length") or _LONGEST
    limit = length_limit(asked, tokenizer, model.config)
    if frozen:
        from toolkit.frozen import mean_pooled_features

        compute = linear_probabilities(folder, mean_pooled_features, model)
        labels = source.label_names or []
    else:
        compute = probabilities_of(model.config)
        labels = names_of_labels(model.config)
    return TextClassifier(model, tokenizer, compute, labels, limit, limits_of(options))


def _open_tfidf(source: Source, file: Path) -> TfidfClassifier:
    import joblib

    try:
        pipeline = joblib.load(file)
    except Exception as error:  # unpickling raises anything
        raise UserError(f"{file} cannot be read: {first_line(error)}") from error
    return TfidfClassifier(pipeline, source.label_names or [])


def names_of_labels(config: Any) -> list[str]:
    """Names in id order."""
    return [str(config.id2label[number]) for number in range(config.num_labels)]


def probabilities_of(config: Any) -> Compute:
    """How logits become probabilities, by the rule of transformers' text-classification pipeline.

    Sigmoid where the labels exclude nothing (`multi_label_classification`, or one label alone),
    softmax otherwise; a model of regression gives its `value` [batch].
    """
    problem = getattr(config, "problem_type", None)
    if problem == "regression" and config.num_labels == 1:
        return lambda model, batch: {"value": _logits(model, batch)[:, 0]}
    if problem == "multi_label_classification" or config.num_labels == 1:
        return lambda model, batch: {"probabilities": _logits(model, batch).double().sigmoid()}
    return lambda model, batch: {"probabilities": _logits(model, batch).double().softmax(-1)}


def _logits(model: nn.Module, batch: Batch) -> Tensor:
    logits: Tensor = model(**model_inputs(batch)).logits
    return logits


def linear_probabilities(folder: Path, features: Compute, model: nn.Module) -> Compute:
    """What the linear layer in ``classifier.safetensors`` says of a frozen model's features.

    See `toolkit.frozen.FrozenResult.save` for the file.

    Raises:
        UserError: the file cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / "classifier.safetensors"
    try:
        weights = load_file(file)
        device = next(model.parameters()).device
        weight, bias = weights["weight"].to(device).double(), weights["bias"].to(device).double()
    except (OSError, KeyError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read: {first_line(error)}") from error

    def compute(model: nn.Module, batch: Batch) -> Mapping[str, Any]:
        normed = F.normalize(features(model, batch)["features"].double(), dim=-1)
        return {"probabilities": (normed @ weight.T + bias).softmax(-1)}

    return compute


def columns_of(rows: Sequence[Any]) -> dict[str, list[str]]:
    """The columns text and, of pairs, pair."""
    if rows and isinstance(rows[0], tuple):
        return {"text": [row[0] for row in rows], "pair": [row[1] for row in rows]}
    return {"text": list(rows)}


def label_answers(found: Mapping[str, Sequence[Any]], labels: Sequence[str]) -> list[Answer]:
    """Answers from `probabilities`, or from the `value` of a regression."""
    if "value" in found:
        return [{"prediction": float(value)} for value in found["value"]]
    answers = []
    for row in found["probabilities"]:
        best = int(np.argmax(row))
        by_label = {label: float(p) for label, p in zip(labels, row, strict=True)}
        answers.append(
            {"prediction": labels[best], "probability": float(row[best]), "probabilities": by_label}
        )
    return answers


def add_note(answer: Answer, row: Any, full: int, limit: int) -> None:
    """Note a row that shows nothing, or of which a part was not read."""
    if any(map(is_blank, row)) if isinstance(row, tuple) else is_blank(row):
        answer[NOTE] = NO_TEXT
    elif full > limit:
        answer[NOTE] = f"cut from {full} to {limit} tokens"

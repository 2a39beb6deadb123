"""Use a pretrained encoder as it is: features once per example, logistic regression on them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save_file
from torch import Tensor, nn

from toolkit.batching import Collate
from toolkit.clock import start_clock
from toolkit.dry_run import end_dry_run
from toolkit.evaluation import Compute
from toolkit.linear import LinearResult, describe_linear_training, fit_linear
from toolkit.modeling import count_parameters
from toolkit.objectives import Batch, model_inputs
from toolkit.outcome import LabelledSplits, Scores
from toolkit.run import Run
from toolkit.run_predictions import predict_rows
from toolkit.training.forecast import forecast_evaluation
from toolkit.training.sharding import prepare_evaluation

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

# Inverse strength of the L2 penalty on features of length 1.
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SPLITS = ["train", "validation", "test"]
"""In the order in which features are computed."""


@dataclass(frozen=True)
class FrozenResult:
    """A classifier over frozen features."""

    linear: LinearResult
    training: dict[str, Any]

    @property
    def scores(self) -> dict[str, Scores]:
        """What it said about validation and test."""
        return self.linear.scores

    def parameters(self, encoder: nn.Module) -> dict[str, int]:
        """``parameters_total`` with the encoder, ``parameters_trained`` without it."""
        trained = self.linear.parameters
        total = count_parameters(encoder)["parameters_total"] + trained
        return {"parameters_total": total, "parameters_trained": trained}

    def save(self, run: Run[Any], encoder: Any, tokenizer: Any) -> None:
        """Save encoder and tokenizer as a HuggingFace folder, and the linear classifier beside.

        ``classifier.safetensors`` holds ``weight`` [classes, hidden] and ``bias`` [classes]:
        logits = features / |features| @ weight.T + bias.
        """
        if run.accelerator.is_main_process:
            folder = run.directory / "model"
            encoder.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            weight, bias = linear_weights(self.linear.classifier)
            save_file({"weight": weight, "bias": bias}, folder / "classifier.safetensors")


def fit_frozen(
    run: Run[Any],
    encoder: nn.Module,
    data: LabelledSplits,
    collate: Collate,
    compute: Compute,
) -> FrozenResult:
    """Compute features once, choose the penalty on validation, fit on train.

    Its seconds and joules count the features of the training rows and the fit with the chosen
    penalty: what it takes to get this classifier, as ``fit`` counts its training steps.

    Args:
        compute: ``features`` [batch, hidden] of a batch.
    """
    if run.config.dry_run:
        end_dry_run(run, forecast_evaluation(run, encoder, data, SPLITS, compute, collate))
    run.begin()
    encoder = prepare_evaluation(run.accelerator, encoder)
    clock, features = start_clock(run.accelerator), {}
    for split in SPLITS:
        with clock.running() if split == "train" else nullcontext():
            rows = getattr(data, split)
            outputs = predict_rows(run, f"features of {split}", encoder, rows, compute, collate)
        features[split] = outputs["features"]
    result = fit_linear(run, build_classifier, PENALTIES, features, data, clock)
    texts = "length" in data.train.column_names
    training = describe_linear_training(
        result,
        PENALTIES,
        clock,
        rows=len(data.train),
        tokens=sum(data.train["length"][:]) if texts else None,
        padding="sorted by length" if texts else "images",
    )
    return FrozenResult(result, training)


def mean_pooled_features(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """``features`` [batch, hidden]: mean of a text's token vectors without padding, float32."""
    hidden = model(**model_inputs(batch)).last_hidden_state.float()
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return {"features": (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)}


def image_features(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """``features`` [batch, hidden] of images: a ViT's class token, else the mean over places."""
    hidden = model(**model_inputs(batch)).last_hidden_state.float()
    return {"features": hidden[:, 0] if hidden.ndim == 3 else hidden.mean((2, 3))}


def build_classifier(penalty: float) -> Pipeline:
    """Features scaled to length 1 each, then L2-penalised multinomial logistic regression."""
    # Not above: it takes a second, for which nobody should wait who trains the encoder.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    return make_pipeline(Normalizer(), LogisticRegression(C=penalty, max_iter=5000))


def linear_weights(classifier: Pipeline) -> tuple[np.ndarray, np.ndarray]:
    """Weight [classes, hidden] and bias [classes] that act on features of length 1."""
    weight, bias = classifier[-1].coef_, classifier[-1].intercept_
    if len(weight) == 1:  # two classes: scikit-learn keeps the logit of the second one only
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    # In rows: safetensors writes the memory of an array as it is, and scikit-learn's is in columns.
    return np.ascontiguousarray(weight, np.float32), np.ascontiguousarray(bias, np.float32)

"""From a model and data with labels to a saved classifier and its outcome, for texts and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from toolkit.batching import Collate
from toolkit.evaluation import Compute, Metric
from toolkit.fine_tuning import save_trained
from toolkit.frozen import fit_frozen, mean_pooled_features
from toolkit.objectives import Classification
from toolkit.outcome import LabelledSplits, Outcome, describe_training, score_splits
from toolkit.run import Run
from toolkit.training.engine import FitResult, fit


def train_classifier(
    run: Run[Any],
    model: nn.Module,
    data: LabelledSplits,
    described: dict[str, Any],
    processor: Any,
    *,
    objective: Classification,
    metric: Metric,
    collate: Collate,
    collate_plain: Collate | None = None,
    describe: Callable[[Run[Any], FitResult], dict[str, Any]] = describe_training,
) -> Outcome:
    """Train with `toolkit.training.engine.fit`, score and save the best weights.

    Args:
        described: the ``model`` section of the summary, from `describe_model`.
        processor: tokenizer or image processor, saved beside the weights.
        metric: decides which evaluation was the best.
        collate_plain: for validation and test rows, where they need another collator.
        describe: gives the ``training`` section of the summary; what the objective says of itself
            is added.

    Raises:
        UserError: as ``fit`` does.
        RecipeEnds: likewise.
    """
    collate_plain = collate_plain or collate
    result = fit(
        run, model, data, objective=objective, collate=collate, collate_validation=collate_plain,
        metric=metric,
    )  # fmt: skip
    training = describe(run, result) | objective.describe()
    scores = score_splits(run, result, data, objective, collate_plain)
    save_trained(run, result.model, processor)
    return Outcome(_title(run, described), described, training, scores)


def fit_classifier_on_features(
    run: Run[Any],
    encoder: nn.Module,
    data: LabelledSplits,
    described: dict[str, Any],
    processor: Any,
    *,
    collate: Collate,
    features: Compute = mean_pooled_features,
) -> Outcome:
    """Keep the encoder as it is: `toolkit.frozen.fit_frozen` on its features, scored and saved.

    Args:
        described: the ``model`` section of the summary, from `describe_model` of the encoder; the
            parameters of the classifier are added.
        processor: tokenizer or image processor, saved beside the encoder.
        features: ``features`` [batch, hidden] of a batch.

    Raises:
        UserError: as ``Run.begin`` does.
        RecipeEnds: the run is a dry run.
    """
    frozen = fit_frozen(run, encoder, data, collate, features)
    frozen.save(run, encoder, processor)
    described = described | frozen.parameters(encoder)
    return Outcome(_title(run, described), described, frozen.training, frozen.scores)


def _title(run: Run[Any], described: dict[str, Any]) -> str:
    """The user's, or the model's name and the method."""
    return run.config.title or f"{described['name']}, {described['method']}"

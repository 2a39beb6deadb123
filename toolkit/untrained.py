"""A pretrained model as it is: what fine-tuning is compared with."""

from __future__ import annotations

from typing import Any

from torch import nn

from toolkit.batching import Collate
from toolkit.dry_run import end_dry_run
from toolkit.evaluation import Metric
from toolkit.objectives import Objective
from toolkit.run import Run
from toolkit.run_predictions import predict_rows
from toolkit.training.engine import FitResult
from toolkit.training.forecast import forecast_evaluation
from toolkit.training.sharding import prepare_evaluation
from toolkit.training.train_state import TrainState
from toolkit.training.training_steps import Splits


def evaluate_untrained(
    run: Run[Any],
    model: nn.Module,
    data: Splits,
    *,
    objective: Objective,
    collate: Collate,
    metric: Metric,
) -> FitResult:
    """The result of no training at all, in the form of `toolkit.training.engine.fit`'s.

    Validation is measured, for comparison; there is nothing to choose by it.
    """
    if run.config.dry_run:
        end_dry_run(
            run,
            forecast_evaluation(run, model, data, ["validation"], objective.outputs, collate),
        )
    run.begin()
    if run.resumed:
        run.forget_after(-1)  # it begins anew
    model = prepare_evaluation(run.accelerator, model)
    outputs = predict_rows(
        run, "evaluating on validation", model, data.validation, objective.outputs, collate
    )
    metrics = metric(outputs)
    run.log({"step": 0, "epoch": 0, "seconds": 0.0, "validation": metrics})
    state = TrainState(best_step=0, best_metrics=metrics, processes=run.accelerator.num_processes)
    model = run.accelerator.unwrap_model(model)
    return FitResult(model, state, 0, "nothing: it was not trained", outputs)

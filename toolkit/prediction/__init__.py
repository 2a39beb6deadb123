"""Predict with whatever was trained: runs, model folders, adapters, models of the Hub.

    from toolkit.prediction import open_model, predict

    model = open_model("results/runs/bert_sentiment/20250101-120000")
    for answer in predict(model, ["房间很干净", "太差了", ""]).answers:
        print(answer["prediction"], answer["probability"])

Texts are computed in batches of similar length; answers come in the order of the rows. What rows
are and what an answer holds depends on the task, see `toolkit.prediction.predictor.Predictor` and
the modules of the tasks.
"""

from toolkit.prediction.opening import open_model
from toolkit.prediction.predictor import Answer, Options, Predictor
from toolkit.prediction.session import Predictions, predict

__all__ = ["Answer", "Options", "Predictions", "Predictor", "open_model", "predict"]

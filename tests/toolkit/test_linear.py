"""Linear classifiers on frozen features: the penalty is chosen on validation alone."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from toolkit.clock import Clock
from toolkit.config import Invocation, RunConfig
from toolkit.frozen import build_classifier, linear_weights, mean_pooled_features
from toolkit.linear import describe_linear_training, fit_linear
from toolkit.run import start_run


def make_data(classes: int) -> tuple[Any, dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    features, labels = {}, {}
    for split, rows in (("train", 60), ("validation", 40), ("test", 30)):
        labels[split] = generator.integers(0, classes, rows)
        noise = generator.normal(size=(rows, 30))
        features[split] = 2 + noise * np.arange(1, 31)
        features[split][:, 0] += 1.5 * labels[split]
    splits = {name: datasets.Dataset.from_dict({"label": y.tolist()}) for name, y in labels.items()}
    return SimpleNamespace(**splits), features


@pytest.mark.usefixtures("fresh_accelerator")
def test_the_penalty_best_on_validation_is_taken_and_every_one_is_logged(tmp_path: Path) -> None:
    data, features = make_data(2)
    run = start_run(Invocation(RunConfig(output_dir=str(tmp_path), run_id="a"), None), "linear")
    run.begin()
    penalties = (1e-4, 0.01, 1.0, 100.0)
    expected = {}
    for penalty in penalties:
        model = make_pipeline(Normalizer(), LogisticRegression(C=penalty, max_iter=5000))
        model.fit(features["train"], data.train["label"][:])
        expected[penalty] = model.score(features["validation"], data.validation["label"][:])
    best = max(penalties, key=lambda penalty: expected[penalty])
    assert sorted(expected.values())[-1] > sorted(expected.values())[0]  # the choice matters
    clock = Clock()
    result = fit_linear(run, build_classifier, penalties, features, data, clock)
    assert clock.seconds > 0
    lines = (run.directory / "metrics.jsonl").read_text().splitlines()
    logged = {e["C"]: e["validation"]["accuracy"] for e in map(json.loads, lines)}
    assert logged == expected
    assert result.penalty == best
    assert result.parameters == 31
    # the same without the test split's labels: they decide nothing
    silent = SimpleNamespace(**{**vars(data), "test": data.validation.select(range(30))})
    again = fit_linear(run, build_classifier, penalties, features, silent, Clock())
    assert again.penalty == result.penalty
    assert np.array_equal(again.scores["test"].probabilities, result.scores["test"].probabilities)
    assert len((run.directory / "metrics.jsonl").read_text().splitlines()) == 4  # not twice
    probabilities = result.classifier.predict_proba(features["test"])
    assert np.array_equal(result.scores["test"].probabilities, probabilities)
    clock.seconds = 2.0
    described = describe_linear_training(
        result, penalties, clock, rows=60, tokens=300, padding="sorted by length"
    )
    assert described["examples_per_second"] == 30
    assert described["tokens_per_second"] == 150
    assert described["padding"] == "sorted by length"
    assert described["tokens"] == 300
    assert described["energy_joules"] is None
    assert described["flops"] is None
    assert described["penalty"] == best
    assert described["penalties_tried"] == list(penalties)


@pytest.mark.parametrize("classes", [2, 3])
def test_saved_weights_act_on_features_of_length_one(classes: int, tmp_path: Path) -> None:
    data, features = make_data(classes)
    classifier = build_classifier(0.1).fit(features["train"], data.train["label"][:])
    weight, bias = linear_weights(classifier)
    save_file({"weight": weight, "bias": bias}, tmp_path / "classifier.safetensors")
    saved = load_file(tmp_path / "classifier.safetensors")
    weight, bias = saved["weight"], saved["bias"]
    assert weight.shape == (classes, 30)
    unit = features["test"] / np.linalg.norm(features["test"], axis=1, keepdims=True)
    logits = unit @ weight.T.astype(np.float64) + bias
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    softmax = exponentials / exponentials.sum(1, keepdims=True)
    assert np.allclose(softmax, classifier.predict_proba(features["test"]), atol=1e-4)


def test_mean_pooling_leaves_padding_out() -> None:
    hidden = torch.arange(24.0).view(2, 3, 4)

    def model(**inputs: torch.Tensor) -> SimpleNamespace:
        assert set(inputs) == {"attention_mask"}
        return SimpleNamespace(last_hidden_state=hidden.half())

    mask = torch.tensor([[1, 1, 0], [0, 0, 1]])
    batch = {"attention_mask": mask, "labels": torch.ones(2), "index": torch.ones(2)}
    features = mean_pooled_features(model, batch)["features"]  # type: ignore[arg-type]
    assert features.dtype == torch.float32
    assert torch.equal(features, torch.stack([hidden[0, :2].mean(0), hidden[1, 2]]))

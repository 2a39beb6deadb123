"""The metrics equal scikit-learn's and hand-computed values, and stay off the network and disk."""

import json
import math
import socket
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from statsmodels.stats.proportion import proportion_confint

from toolkit.evaluate_metrics import Accuracy, MacroF1, MaskedTokenAccuracy
from toolkit.metrics import (
    classification_metrics,
    describe_metrics,
    masked_token_accuracy,
    per_class_metrics,
)

THREE_CLASSES = ([0, 0, 1, 1, 2, 2, 2, 0], [0, 1, 1, 1, 2, 0, 2, 0])


def test_three_classes_by_hand():
    # Label 0: precision 2/3, recall 2/3; label 1: 2/3, 1; label 2: 1, 2/3 -> F1 2/3, 4/5, 4/5.
    scores = classification_metrics(*THREE_CLASSES, num_labels=3)
    assert scores == pytest.approx({"accuracy": 0.75, "macro_f1": (2 / 3 + 4 / 5 + 4 / 5) / 3})
    assert scores["macro_f1"] == pytest.approx(0.755556, abs=1e-6)


def test_macro_f1_averages_over_labels_the_test_set_lacks():
    assert classification_metrics([0] * 4, [0] * 4, num_labels=2)["macro_f1"] == 0.5
    assert classification_metrics([0] * 4, [0] * 4, num_labels=1)["macro_f1"] == 1.0


def test_macro_f1_shows_what_accuracy_hides_on_an_imbalanced_set():
    labels, predictions = [1] * 95 + [0] * 5, [1] * 100
    scores = classification_metrics(labels, predictions, num_labels=2)
    assert scores["accuracy"] == 0.95
    assert scores["macro_f1"] == pytest.approx(0.487179, abs=1e-6)
    minority, majority = per_class_metrics(labels, predictions, ["bad", "good"])
    assert minority == {
        "label": "bad",
        "precision": 0.0,
        "recall": 0.0,
        "f1": 0.0,
        "support": 5,
        "predicted": 0,
    }
    assert (majority["support"], majority["predicted"], majority["recall"]) == (95, 100, 1.0)


@given(
    st.integers(1, 5).flatmap(
        lambda k: st.tuples(
            st.just(k),
            st.lists(
                st.tuples(st.integers(0, k - 1), st.integers(0, k - 1)), min_size=1, max_size=40
            ),
        )
    )
)
def test_equals_scikit_learn(case):
    num_labels, pairs = case
    labels, predictions = (np.array(column) for column in zip(*pairs, strict=True))
    scores = classification_metrics(labels, predictions, num_labels)
    assert scores["accuracy"] == pytest.approx(accuracy_score(labels, predictions))
    expected = f1_score(
        labels, predictions, labels=range(num_labels), average="macro", zero_division=0
    )
    assert scores["macro_f1"] == pytest.approx(expected)
    rows = per_class_metrics(labels, predictions, [str(i) for i in range(num_labels)])
    assert np.mean([row["f1"] for row in rows]) == pytest.approx(scores["macro_f1"])
    assert sum(row["support"] for row in rows) == sum(row["predicted"] for row in rows)


def test_without_examples_everything_is_undefined_and_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = classification_metrics([], [], num_labels=2)
        described = describe_metrics([], [], num_labels=2)
        rows = per_class_metrics([], [], ["a", "b"])
        masked = masked_token_accuracy([-100, -100], [3, 4])
    assert all(math.isnan(value) for value in scores.values())
    assert math.isnan(masked)
    assert [row["f1"] for row in rows] == [0.0, 0.0]
    assert described["accuracy"]["value"] is None
    assert described["macro_f1"]["interval"] is None
    json.dumps(described, allow_nan=False)


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([0, 1], [0], "shapes"),
        ([[0, 1]], [[0, 1]], "shapes"),
        ([0, -100], [0, 1], "label in row 1 is -100"),
        ([0, 1], [2, 1], "prediction in row 0 is 2"),
        ([0, 1], [0, math.nan], "prediction in row 1 is nan"),
        ([0, 1], [0, 0.5], "prediction in row 1 is 0.5"),
    ],
)
def test_values_that_are_not_labels_are_refused(labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        classification_metrics(labels, predictions, num_labels=2)


def test_masked_token_accuracy_counts_masked_tokens_only():
    labels = np.array([[-100, 5, -100], [7, -100, 9]])
    predictions = np.array([[1, 5, 1], [7, 7, 7]])
    assert masked_token_accuracy(labels, predictions) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="shape"):
        masked_token_accuracy([1, 2], [1])


def test_metrics_are_evaluate_metrics_that_collect_batches():
    metric = Accuracy()
    metric.add_batch(predictions=[0, 1], references=[0, 0])
    metric.add_batch(predictions=[1], references=[1])
    assert metric.compute() == {"accuracy": pytest.approx(2 / 3)}


def test_no_network_no_files(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a metric opened a network connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "cache"
    for metric in (Accuracy, MaskedTokenAccuracy):
        metric(cache_dir=str(cache)).compute(predictions=[1, 0], references=[1, 1])
    MacroF1(cache_dir=str(cache)).compute(predictions=[1, 0], references=[1, 1], num_labels=2)
    assert list(tmp_path.iterdir()) == []


def test_metrics_leave_the_random_state_alone():
    np.random.seed(3)
    expected = np.random.random(4)
    np.random.seed(3)
    classification_metrics([0, 1], [0, 1], 2)
    describe_metrics([0, 1], [0, 1], 2)
    assert np.array_equal(np.random.random(4), expected)


def test_description_holds_value_interval_method_and_signature():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    predictions = np.where(rng.random(400) < 0.8, labels, 1 - labels)
    described = describe_metrics(labels, predictions, 2, draws=2000)
    json.dumps(described, allow_nan=False)

    accuracy = described["accuracy"]
    right = int((labels == predictions).sum())
    assert accuracy["value"] == right / 400
    assert accuracy["n"] == 400
    assert accuracy["interval"] == pytest.approx(proportion_confint(right, 400, method="wilson"))
    assert accuracy["interval_method"] == "wilson 95%"

    macro_f1 = described["macro_f1"]
    assert macro_f1["interval_method"] == "percentile bootstrap 95%"
    assert macro_f1["interval"][0] < macro_f1["value"] < macro_f1["interval"][1]
    assert "average:macro over all labels" in macro_f1["signature"]
    assert described == describe_metrics(labels, predictions, 2, draws=2000)
    assert described["macro_f1"] != describe_metrics(labels, predictions, 2, seed=1)["macro_f1"]


def test_signatures_differ_when_numbers_may_not_be_compared():
    two = describe_metrics([0, 1], [0, 1], 2)["macro_f1"]["signature"]
    assert two != describe_metrics([0, 1], [0, 1], 3)["macro_f1"]["signature"]
    assert two != describe_metrics([0, 1, 1], [0, 1, 1], 2)["macro_f1"]["signature"]
    assert two == describe_metrics([0, 1], [1, 1], 2)["macro_f1"]["signature"]

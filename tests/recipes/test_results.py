"""What the recipes leave behind: complete, right, and usable without this project."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
import yaml
from safetensors.numpy import load_file
from sklearn.metrics import accuracy_score, f1_score
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

NAMES = ["full", "hf", "lora", "frozen", "from_scratch", "lstm", "tfidf"]


def summary_of(run: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return summary


def predictions_of(run: Path, split: str = "test") -> pandas.DataFrame:
    return pandas.read_parquet(run / "predictions" / f"{split}.parquet")


def log_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_the_run_directory_is_complete(runs: dict[str, Path], name: str) -> None:
    run = runs[name]
    for file in (
        "config.yaml", "environment.json", "data.json", "metrics.jsonl", "summary.json",
        "predictions/test.parquet", "predictions/validation.parquet",
    ):  # fmt: skip
        assert (run / file).stat().st_size > 0, file
    assert any((run / "model").iterdir())
    assert not (run / "checkpoints").exists()
    assert not list(run.rglob("*.partial"))
    assert not (run / "run.lock").exists()
    environment = json.loads((run / "environment.json").read_text())
    assert environment["packages"]["torch"] == torch.__version__.split("+")[0]
    assert f"--run-id {name}" in environment["command"]
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["run_id"] == name


@pytest.mark.parametrize("name", NAMES)
def test_summary_says_what_happened(runs: dict[str, Path], name: str) -> None:
    summary = summary_of(runs[name])
    assert summary["schema_version"] == 1
    assert summary["status"] == "complete"
    assert summary["run_id"] == name
    assert summary["data"]["label_names"] == ["正面", "负面"]
    sizes = [summary["data"][f"{split}_examples"] for split in ("train", "validation", "test")]
    assert sum(sizes) == 185
    training, model = summary["training"], summary["model"]
    assert training["seconds"] > 0
    assert training["examples_per_second"] > 0
    assert training["peak_memory_bytes"] > 10**7
    assert (training["tokens_per_second"] is None) == (name == "tfidf")
    assert (training["energy_joules"] is None) == (training["energy_source"] is None)
    trained = ("full", "hf", "lora", "from_scratch", "lstm")
    policies = dict.fromkeys(trained, "grouped by length")
    policies |= {"frozen": "sorted by length", "tfidf": "none"}
    assert training["padding"] == policies[name]
    assert (training["tokens"] is None) == (name == "tfidf")
    if name in trained:
        assert training["tokens"] < training["padded_tokens"] < 2 * training["tokens"]
        per_second = training["flops"] / training["seconds"]  # which are rounded
        assert training["flops_per_second"] == pytest.approx(per_second, rel=0.01)
        utilisation = training["flops_per_second"] / training["machine_flops_per_second"]
        assert training["utilisation"] == pytest.approx(utilisation)
        assert 0 < utilisation < 1  # such small products are far from it
    else:
        assert training["padded_tokens"] is training["flops"] is training["utilisation"] is None
    if name in trained:
        epochs = 12 if name == "lora" else 4
        assert training["steps"] == epochs * -(-sizes[0] // 8)
        assert training["epochs"] == epochs
    full = summary_of(runs["full"])["model"]
    if name in ("full", "hf"):
        assert model["parameters_total"] == model["parameters_trained"] == 5394
    if name in ("lora", "frozen"):
        assert model["parameters_trained"] < model["parameters_total"] / 2
        assert model["parameters_total"] >= full["parameters_total"] - 34  # the classifier
    assert summary["data"]["hashes"] == summary_of(runs["full"])["data"]["hashes"]


def test_a_run_is_titled_by_its_model_and_method(runs: dict[str, Path], exact_bert: Path) -> None:
    titles = {name: summary_of(runs[name])["title"] for name in NAMES}
    assert titles == {
        **{name: f"{exact_bert}, {name}" for name in ("full", "lora", "frozen")},
        "hf": f"{exact_bert}, full",
        "from_scratch": "small BERT, from_scratch",
        "lstm": "LSTM, from_scratch",
        "tfidf": "TF-IDF + logistic regression",
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["validation", "test"])
def test_predictions_are_the_rows_of_the_source_and_the_metrics_theirs(
    runs: dict[str, Path], reviews: Path, name: str, split: str
) -> None:
    with reviews.open(encoding="utf-8") as stream:
        labels = {row["text"]: row["label"] for row in csv.DictReader(stream)}
    table, summary = predictions_of(runs[name], split), summary_of(runs[name])
    assert list(table.columns) == ["id", "text", "label", "prediction", "probabilities", "loss"]
    assert table["id"].is_unique
    assert [["正面", "负面"][i] for i in table["label"]] == [labels[text] for text in table["text"]]
    probabilities = np.stack(table["probabilities"])
    assert np.allclose(probabilities.sum(1), 1)
    assert (probabilities.argmax(1) == table["prediction"]).all()
    chosen = probabilities[np.arange(len(table)), table["label"]]
    assert np.allclose(table["loss"], -np.log(chosen))
    metrics = summary[split]
    assert metrics["accuracy"]["value"] == accuracy_score(table["label"], table["prediction"])
    expected_f1 = f1_score(table["label"], table["prediction"], average="macro", labels=[0, 1])
    assert metrics["macro_f1"]["value"] == pytest.approx(expected_f1)
    assert metrics["accuracy"]["n"] == len(table) == summary["data"][f"{split}_examples"]


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_shows_the_result_and_its_code_gives_it_again(
    runs: dict[str, Path], name: str, use_run: Callable[..., str]
) -> None:
    readme = (runs[name] / "README.md").read_text(encoding="utf-8")
    summary = summary_of(runs[name])
    accuracy = summary["test"]["accuracy"]
    low, high = accuracy["interval"]
    assert f"| test | {accuracy['n']} | {accuracy['value']:.4f} | {low:.4f}-{high:.4f} |" in readme
    assert f"\n    {summary['command']}\n" in readme
    for row in predictions_of(runs[name]).iloc[:3].itertuples():
        printed = use_run(runs[name], ("房间很干净，服务也好。", row.text))
        numbers = [float(number) for number in re.findall(r"\d\.\d+(?:e-\d+)?", printed)]
        assert min(abs(number - max(row.probabilities)) for number in numbers) < 1e-3


def test_all_runs_are_tested_on_the_same_rows(runs: dict[str, Path]) -> None:
    tables = [predictions_of(run) for run in runs.values()]
    assert all(list(table["id"]) == list(tables[0]["id"]) for table in tables)


@pytest.mark.parametrize("name", NAMES)
def test_an_easy_task_is_learned(runs: dict[str, Path], name: str) -> None:
    summary = summary_of(runs[name])
    right = [
        summary[split]["accuracy"]["value"] * summary[split]["accuracy"]["n"]
        for split in ("validation", "test")
    ]
    # Guessing reaches 29 of 36 once in 5,000 times. A random encoder, kept, has less to say.
    assert sum(right) >= (26 if name in ("lora", "frozen") else 29)


def test_scratch_and_huggingface_train_alike(runs: dict[str, Path]) -> None:
    losses = {
        name: np.array([line["loss"] for line in log_of(runs[name]) if "loss" in line])
        for name in ("full", "hf")
    }
    assert len(losses["full"]) == summary_of(runs["full"])["training"]["steps"]
    assert np.abs(losses["full"] - losses["hf"]).max() < 1e-3
    ours, theirs = predictions_of(runs["full"]), predictions_of(runs["hf"])
    assert (ours["prediction"] == theirs["prediction"]).all()
    assert summary_of(runs["hf"])["model"]["architecture"] == "BertForSequenceClassification"


def test_the_best_evaluation_is_the_one_in_the_summary(runs: dict[str, Path]) -> None:
    for name in ("full", "lora", "from_scratch", "lstm"):
        evaluations = {e["step"]: e["validation"] for e in log_of(runs[name]) if "validation" in e}
        best = max(evaluations, key=lambda step: (evaluations[step]["accuracy"], -step))
        summary = summary_of(runs[name])
        assert summary["training"]["best_step"] == best
        # what the saved model says about validation is what it said at that step
        assert summary["validation"]["accuracy"]["value"] == evaluations[best]["accuracy"]
        loss = predictions_of(runs[name], "validation")["loss"].mean()
        assert loss == pytest.approx(evaluations[best]["loss"], abs=1e-5)


PLAIN = """
import json, sys
for blocked in ("scratch_models", "toolkit"):
    sys.modules[blocked] = None
import pandas, torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
answers = {}
for run in sys.argv[1:]:
    tokenizer = AutoTokenizer.from_pretrained(run + "/model")
    model, info = AutoModelForSequenceClassification.from_pretrained(
        run + "/model", output_loading_info=True
    )
    table = pandas.read_parquet(run + "/predictions/test.parquet")
    batch = tokenizer(list(table["text"]), padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        probabilities = model.eval()(**batch).logits.double().softmax(-1)
    expected = torch.tensor([list(row) for row in table["probabilities"]])
    answers[run] = {
        "off": float((probabilities - expected).abs().max()),
        "incomplete": [list(info[k + "_keys"]) for k in ("missing", "unexpected", "mismatched")],
        "id2label": model.config.id2label,
        "label2id": model.config.label2id,
        "architectures": model.config.architectures,
        "dtype": str(model.dtype),
    }
print(json.dumps(answers))
"""


def test_plain_transformers_gives_the_same_answers_without_this_project(
    runs: dict[str, Path],
) -> None:
    folders = [str(runs[name]) for name in ("full", "hf", "lora", "from_scratch")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PLAIN, *folders], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert list(answers) == folders
    for folder, answer in answers.items():
        assert answer["off"] < 1e-5, folder
        assert answer["incomplete"] == [[], [], []]
        assert answer["id2label"] == {"0": "正面", "1": "负面"}
        assert answer["label2id"] == {"正面": 0, "负面": 1}
        assert answer["architectures"] == ["BertForSequenceClassification"]
        assert answer["dtype"] == "torch.float32"


def test_the_adapter_on_its_base_equals_the_merged_model(
    runs: dict[str, Path], exact_bert: Path
) -> None:
    from peft import PeftModel

    run = runs["lora"]
    base = AutoModelForSequenceClassification.from_pretrained(exact_bert, num_labels=2)
    untouched = base.bert.encoder.layer[0].attention.self.query.weight.clone()
    adapted = PeftModel.from_pretrained(base, str(run / "adapter")).eval()
    merged = AutoModelForSequenceClassification.from_pretrained(run / "model").eval()
    table = predictions_of(run)
    tokenizer = AutoTokenizer.from_pretrained(run / "adapter")
    batch = tokenizer(list(table["text"]), padding=True, return_tensors="pt")
    with torch.no_grad():
        one, other = adapted(**batch).logits, merged(**batch).logits
    assert (one - other).abs().max() < 1e-5
    assert np.allclose(one.softmax(-1), np.stack(table["probabilities"]), atol=1e-5)
    now = merged.bert.encoder.layer[0].attention.self.query.weight
    assert (now - untouched).abs().max() > 1e-3  # the updates are in it


def test_frozen_features_and_classifier_give_the_predictions(
    runs: dict[str, Path], exact_bert: Path
) -> None:
    run = runs["frozen"]
    table = predictions_of(run)
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    encoder = AutoModel.from_pretrained(run / "model").eval()
    given = AutoModel.from_pretrained(exact_bert)
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, given.state_dict()[name]), name
    classifier = load_file(run / "model" / "classifier.safetensors")
    features = []
    for text in table["text"]:  # one at a time: without padding
        with torch.no_grad():
            hidden = encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        feature = hidden.mean(0).numpy()
        features.append(feature / np.linalg.norm(feature))
    logits = np.stack(features) @ classifier["weight"].T + classifier["bias"]
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    assert np.allclose(probabilities, np.stack(table["probabilities"]), atol=1e-4)


def test_saved_tfidf_gives_the_predictions(runs: dict[str, Path]) -> None:
    import joblib

    classifier = joblib.load(runs["tfidf"] / "model" / "tfidf.joblib")
    table = predictions_of(runs["tfidf"])
    expected = classifier.predict_proba(list(table["text"]))
    assert np.allclose(expected, np.stack(table["probabilities"]))
    accuracies = [line["validation"]["accuracy"] for line in log_of(runs["tfidf"])]
    chosen = summary_of(runs["tfidf"])["validation"]["accuracy"]["value"]
    assert chosen == max(accuracies)  # of the penalties tried

"""Question answering, end to end on questions that can be learned."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

Recipe = Callable[..., Any]
KINDS = {"数": "一二三四五六七八", "色": "红黄蓝绿白黑紫灰", "物": "桌椅床灯笔书杯门"}
OTHER = "今天去了又从来的很好"
SMALL = (
    "--method", "from_scratch", "--shape.layers", "2", "--shape.hidden-size", "32",
    "--shape.heads", "2", "--shape.dropout", "0", "--train.batch-size", "32",
    "--train.learning-rate", "0.002", "--shape.initializer_range", "0.15",
    "--train.log-every", "20", "--max-question", "8",
    "--max-answer", "4",
)  # fmt: skip


def squad(paragraphs: int, seed: int = 0) -> dict[str, Any]:
    """A paragraph shows two characters of some kinds; a question asks for those of one."""
    generator = random.Random(seed)
    articles = []
    for number in range(paragraphs):
        shown = generator.sample(sorted(KINDS), 2)
        text, starts = "", {}
        for kind in shown:
            text += "".join(generator.choices(OTHER, k=generator.randint(1, 5)))
            starts[kind] = len(text)
            text += "".join(generator.choices(KINDS[kind], k=2))
        text += "".join(generator.choices(OTHER, k=2)) + "。"
        entries = []
        for kind in KINDS:
            start = starts.get(kind)
            answers = [] if start is None else [{"text": text[start : start + 2],
                                                 "answer_start": start}]  # fmt: skip
            entries.append({"id": f"{number}{kind}", "question": f"什么{kind}？",
                            "answers": answers})  # fmt: skip
        articles.append({"paragraphs": [{"context": text, "qas": entries}]})
    return {"version": "x", "data": articles}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(squad(300)), encoding="utf-8")
    return file


def test_answers_are_found_in_windows_and_the_model_is_huggingfaces(
    run_recipe: Recipe, use_run: Callable[..., str], questions: Path, tmp_path: Path
) -> None:
    finished = run_recipe(
        "question_answering", "--dataset", questions, "--run-id", "a", "--max-length", "18",
        "--overlap", "4", "--train.epochs", "12", "--train.evaluate-every", "150", *SMALL,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    assert "overlapping windows of 18 tokens" in finished.err
    run = tmp_path / "results/runs/question_answering/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["task"] == "question-answering"
    assert summary["data"]["language"] == "zh"
    test = summary["test"]
    assert test["exact_match"]["value"] > 0.9
    assert test["unanswerable"]["exact_match"] > 0.8
    assert test["answerable"]["exact_match"] > 0.8
    assert test["no_answer_threshold"] == summary["validation"]["no_answer_threshold"] is not None

    table = pandas.read_parquet(run / "predictions/test.parquet")
    paragraphs = [article["paragraphs"][0] for article in squad(300)["data"]]
    right = {
        e["id"]: [answer["text"] for answer in e["answers"]] for p in paragraphs for e in p["qas"]
    }
    assert [list(answers) for answers in table["answers"]] == [right[name] for name in table["id"]]
    exact = [
        float(prediction == (right[name] or [""])[0])
        for name, prediction in zip(table["id"], table["prediction"], strict=True)
    ]
    assert exact == list(table["exact_match"])
    assert test["exact_match"]["value"] == pytest.approx(sum(exact) / len(exact))

    model, info = AutoModelForQuestionAnswering.from_pretrained(
        run / "model", output_loading_info=True
    )
    assert type(model).__name__ == "BertForQuestionAnswering"
    assert not info["missing_keys"] | info["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    asked = {e["id"]: (e["question"], p["context"]) for p in paragraphs for e in p["qas"]}
    texts = [asked[name][1] for name in table["id"]]
    assert len(set(zip(texts, table["context_hash"], strict=True))) == len(set(texts)) < len(texts)
    assert table["context_hash"].nunique() == len(set(texts))
    assert list(table["context"]) == texts
    compared = 0
    for name, prediction in zip(table["id"], table["prediction"], strict=True):
        batch = tokenizer(*asked[name], return_tensors="pt")
        if batch["input_ids"].shape[1] <= 18 and prediction:  # one window
            with torch.no_grad():
                output = model(**batch)
            context = batch["token_type_ids"][0].bool()
            start, end = (
                int(logits[0].masked_fill(~context, -torch.inf).argmax())
                for logits in (output.start_logits, output.end_logits)
            )
            found = tokenizer.decode(batch["input_ids"][0, start : end + 1]).replace(" ", "")
            compared += 1
            assert found == prediction
    assert compared > 5

    readme = (run / "README.md").read_text(encoding="utf-8")
    low, high = test["f1"]["interval"]
    assert (
        f"| test | {len(table)} | F1 | {test['f1']['value']:.4f} | {low:.4f}-{high:.4f} |" in readme
    )
    assert f"`{test['exact_match']['signature']}`" in readme
    assert f"scores[0, 0] > {test['no_answer_threshold']} else" in readme
    assert (run / "plots/training.svg").stat().st_size > 0
    shown = '"展览在哪里举行？", "据介绍，展览在上海举行，从六月一日开始。"'
    fit = [row for row in table.itertuples() if len("".join(asked[row.id])) + 3 <= 18]
    for some in (
        [row for row in fit if row.prediction],
        [row for row in fit if not row.prediction],
    ):
        assert len(some) >= 3
        for row in some[:3]:
            printed = use_run(run, (shown, repr(asked[row.id])))
            assert printed == f"{row.prediction or '(not in this text)'}\n"


@pytest.mark.parametrize("method", ["full", "lora", "frozen"])
@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_pretrained_models_take_every_method(
    run_recipe: Recipe, questions: Path, exact_bert: Path, tmp_path: Path, method: str,
    implementation: str,
) -> None:  # fmt: skip
    finished = run_recipe(
        "question_answering", "--dataset", questions, "--run-id", "a", "--model", exact_bert,
        "--method", method, "--implementation", implementation, "--max-length", "32", "--overlap",
        "8", "--max-question", "8", "--train.max-steps", "6", "--train.learning-rate", "0.02",
        "--train.log-every", "1", "--train_size", "64", "--validation_size", "15", "--test_size",
        "15",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/question_answering/a"
    model = json.loads((run / "summary.json").read_text(encoding="utf-8"))["model"]
    assert (model["parameters_trained"] < model["parameters_total"]) == (method != "full")
    if method == "frozen":
        assert model["parameters_trained"] == 16 * 2 + 2
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert min(losses[1:]) < losses[0]  # six different batches: not every one is easier
    AutoModelForQuestionAnswering.from_pretrained(run / "model")


@pytest.mark.slow
def test_a_dry_run_of_the_demo(run_recipe: Recipe, tmp_path: Path) -> None:
    finished = run_recipe("question_answering", "--preset", "demo", "--dry-run")
    assert finished.status == 0, finished.err
    assert not (tmp_path / "results").exists()


def test_an_overlap_without_room_is_refused(
    run_recipe: Recipe, questions: Path, tmp_path: Path
) -> None:
    finished = run_recipe("question_answering", "--dataset", questions, "--max-length", "64",
                          "--overlap", "60", *SMALL)  # fmt: skip
    assert finished.status == 2
    assert "--overlap 60" in finished.error
    assert not (tmp_path / "results").exists()

"""BERT pretraining, end to end on texts that can be learned."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from transformers import AutoModelForPreTraining, AutoTokenizer

Recipe = Callable[..., Any]
SMALL = (
    "--shape.layers", "1", "--shape.hidden-size", "32", "--shape.heads", "2",
    "--shape.dropout", "0",
    "--max-length", "48", "--train.batch-size", "16", "--train.learning-rate", "0.01",
    "--train.log-every", "5",
)  # fmt: skip


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Every document speaks of one thing only, so that its masked characters can be inferred."""
    generator = random.Random(0)
    things = ["酒店房间服务早餐", "书本作者故事文字", "电脑屏幕键盘硬盘"]
    lines = []
    for _ in range(160):
        thing = generator.choice(things)
        sentences = ("".join(generator.choice(thing) for _ in range(6)) for _ in range(4))
        lines.append("。".join(sentences) + "。")
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")
    return file


def test_masked_accuracy_rises_above_the_guess_and_the_model_is_huggingfaces(
    run_recipe: Recipe, use_run: Callable[..., str], texts: Path, tmp_path: Path
) -> None:
    finished = run_recipe(
        "bert_pretraining", "--dataset", texts, "--run-id", "a", "--train.epochs", "10", *SMALL
    )
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/bert_pretraining/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["task"] == "pretraining"
    validation = summary["validation"]
    masked, guess = validation["masked_accuracy"], validation["unigram_guess"]
    assert masked["n"] == guess["n"]
    assert guess["value"] < 0.2 < masked["value"]  # one of 24 characters; one of 8
    assert masked["interval"][0] > guess["value"]
    evaluations = [
        line["validation"]
        for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        if "validation" in line
    ]
    losses = [e["masked_loss"] for e in evaluations]
    assert min(losses) < 0.9 * losses[0]
    assert validation["masked_loss"]["value"] == pytest.approx(min(losses), rel=1e-4)
    assert not (run / "checkpoints").exists()

    # One row for every validation text: the numbers of the summary are sums over them.
    rows = pandas.read_parquet(run / "predictions" / "validation.parquet")
    assert [path.name for path in (run / "predictions").iterdir()] == ["validation.parquet"]
    lines = texts.read_text(encoding="utf-8").splitlines()
    assert len(rows) == summary["data"]["validation_examples"] == len(set(rows["id"])) == 16
    assert set(rows["text"]) <= set(lines)
    for number, (key, text) in enumerate(zip(rows["id"], rows["text"], strict=True), start=1):
        assert key == f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{number}"
    assert rows["masked"].sum() == masked["n"]
    assert rows["correct"].sum() == round(masked["value"] * masked["n"])
    assert (rows["correct"] <= rows["masked"]).all()
    loss = validation["masked_loss"]["value"]
    assert rows["loss_sum"].sum() / masked["n"] == pytest.approx(loss)
    assert rows["next_correct"].mean() == validation["next_sentence_accuracy"]["value"]
    masking = summary["data"]["masking"]
    assert (masking["seed"], masking["share"], masking["max_length"]) == (0, 0.15, 48)
    assert re.fullmatch("[0-9a-f]{64}", masking["validation_sha256"])
    assert summary["training"]["padding"] == "grouped by length"

    model, info = AutoModelForPreTraining.from_pretrained(run / "model", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert type(model).__name__ == "BertForPreTraining"
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    assert len(tokenizer) == model.config.vocab_size
    assert tokenizer.tokenize("酒店") == ["酒", "店"]

    readme = (run / "README.md").read_text(encoding="utf-8")
    assert f"| masked tokens guessed right | {masked['value']:.1%} | " in readme
    # One character of a document that speaks of books is missing.
    sentence = ("房间很干{guess.tokenizer.mask_token}，服务也好。",
                "书本作者故事。书本作{guess.tokenizer.mask_token}故事文字。")  # fmt: skip
    guesses = ast.literal_eval(use_run(run, sentence))
    assert guesses[0]["token_str"] in "书本作者故事文字"

    # and it is what the sentiment recipe starts from, with nothing but the classifier new
    reviews = tmp_path / "reviews.csv"
    lines = [f"{'酒店' if i % 2 else '书本'}房间{'早' * i},{i % 2}" for i in range(40)]
    reviews.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    tuned = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", run / "model", "--train.max-steps", "1"
    )
    assert tuned.status == 0, tuned.err
    assert "new, to be trained: classifier\n" in tuned.err


def test_texts_of_one_sentence_are_refused(run_recipe: Recipe, tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("".join(f"酒店{i}\n" for i in range(30)), encoding="utf-8")
    finished = run_recipe("bert_pretraining", "--dataset", file, *SMALL)
    assert finished.status == 2
    assert "two or more sentences" in finished.error
    assert not (tmp_path / "results").exists()


def test_the_encoding_that_a_refusal_names_is_taken(run_recipe: Recipe, tmp_path: Path) -> None:
    file = tmp_path / "traditional.txt"
    lines = [f"這個房間很大我們下次還要來住{'住' * i}" for i in range(30)]
    file.write_text("\n".join(lines), encoding="big5")
    refused = run_recipe("bert_pretraining", "--dataset", file, *SMALL)
    assert "--encoding big5" in refused.error
    read = run_recipe("bert_pretraining", "--dataset", file, "--encoding", "big5", *SMALL)
    assert "two or more sentences; 0 of 27 texts are such" in read.error

"""Translation, end to end: dates that were never seen come out exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from pyarrow import parquet
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from toolkit.data.joint_bpe import train_joint_bpe
from toolkit.demo.dates import read_dates

Recipe = Callable[..., Any]
SMALL = (
    "--shape.encoder_layers", "1", "--shape.decoder_layers", "1", "--shape.d_model", "64",
    "--shape.feed_forward", "128", "--shape.heads", "4", "--shape.vocabulary", "320",
    "--shape.dropout", "0", "--max_length", "32", "--train.weight_decay", "0",
)  # fmt: skip


def write_dates(folder: Path, count: int) -> Path:
    """Parallel files of one style: "April 22, 1997" and "1997年4月22日"."""
    pairs = read_dates("zh")
    rows = [
        (source, target)
        for source, target, kind in zip(pairs.sources, pairs.targets, pairs.kinds, strict=True)
        if kind == "date-long"
    ]
    folder.mkdir()
    for ending, side in (("en", 0), ("zh", 1)):
        lines = "".join(row[side] + "\n" for row in rows[:count])
        (folder / f"train.{ending}").write_text(lines, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_unseen_dates_are_translated_exactly_and_the_model_is_huggingfaces(
    run_recipe: Recipe, use_run: Callable[..., str], tmp_path: Path
) -> None:
    finished = run_recipe(
        "translation", "--dataset", write_dates(tmp_path / "dates", 4000), "--run-id", "a",
        "--validation_size", "100", "--test_size", "150", "--generation.beams", "2",
        "--train.batch_tokens", "1600", "--train.learning_rate", "0.005", "--train.max_steps",
        "390", "--train.evaluate_every", "30", "--translate_validation", "20", "--average", "3",
        "--samples", "2", *SMALL,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    assert finished.out.count("reference") == 2
    run = tmp_path / "results/runs/translation/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["task"] == "translation"
    test, average = summary["test"], summary["training"]["average"]
    assert test["exact_match"]["value"] > 0.85
    assert test["exact_match"]["n"] == 150
    assert test["bleu"]["value"] > 90
    assert "tok:zh" in test["bleu"]["signature"]
    assert average["steps"] == [330, 360, 390]
    better = average["average"]["loss"] < average["best_single"]["loss"]
    assert average["taken"] == better
    validation = {name: metric["value"] for name, metric in summary["validation"].items()}
    assert validation == average["average" if better else "best_single"]
    events = list(map(json.loads, (run / "metrics.jsonl").read_text().splitlines()))
    evaluations = [event["validation"] for event in events if "validation" in event]
    assert set(evaluations[0]) == {"loss", "token_accuracy", "bleu", "exact_match"}
    assert evaluations[-1]["loss"] < 0.3 * evaluations[0]["loss"]
    assert average["best_single"]["loss"] == min(e["loss"] for e in evaluations)

    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    assert data["held_out_sources_left_in_training"] == {"validation": 0, "test": 0}
    rows = parquet.read_table(run / "predictions/test.parquet").to_pylist()
    assert len({row["id"] for row in rows}) == 150
    exact = [row["hypothesis"] == row["reference"] for row in rows]
    assert [row["exact_match"] for row in rows] == exact
    assert sum(exact) / 150 == test["exact_match"]["value"]
    for row, right in zip(rows, exact, strict=True):
        assert (row["bleu"] > 99.99) == right

    # what was saved is an ordinary Marian: HuggingFace's own classes translate as was tested
    model = AutoModelForSeq2SeqLM.from_pretrained(run / "model")
    assert type(model).__name__ == "MarianMTModel"
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    batch = tokenizer([row["source"] for row in rows[:20]], return_tensors="pt", padding=True)
    with torch.no_grad():
        made = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
    assert made == [row["hypothesis"] for row in rows[:20]]
    readme = (run / "README.md").read_text(encoding="utf-8")
    low, high = test["exact_match"]["interval"]
    shown = f"{test['exact_match']['value']:.1%} | {low:.1%}-{high:.1%} | `exact"
    assert f"| exact match | {shown}" in readme
    for row in rows[:3]:
        assert use_run(run, ("'...'", repr(row["source"]))) == f"{[row['hypothesis']]}\n"
    assert not (run / "checkpoints").exists()

    # and it can be fine-tuned, from where it stands
    tuned = run_recipe(
        "translation", "--dataset", tmp_path / "dates", "--model", run / "model", "--run-id", "b",
        "--validation_size", "50", "--test_size", "50", "--generation.beams", "1",
        "--train.max_steps", "5", "--train.learning_rate", "0.0001", "--max_length", "32",
    )  # fmt: skip
    assert tuned.status == 0, tuned.err
    second = json.loads((run.parent / "b/summary.json").read_text(encoding="utf-8"))
    assert second["model"]["architecture"] == "ScratchTransformerForConditionalGeneration"
    assert second["test"]["exact_match"]["value"] > 0.8

    # by an adapter; and, as it is, it translates as it did
    common = (
        "translation", "--dataset", tmp_path / "dates", "--model", run / "model", "--test_size",
        "50", "--validation_size", "50", "--generation.beams", "1", "--max_length", "32",
    )  # fmt: skip
    adapted = run_recipe(
        *common, "--run-id", "lora", "--method", "lora", "--train.max_steps", "2",
        "--train.learning_rate", "0.0001",
    )  # fmt: skip
    assert adapted.status == 0, adapted.err
    third = json.loads((run.parent / "lora/summary.json").read_text(encoding="utf-8"))
    # Query and value of three attentions, A and B of rank 8 each.
    assert third["model"]["parameters_trained"] == 3 * 2 * 8 * (64 + 64)
    assert third["test"]["exact_match"]["value"] > 0.8
    frozen = run_recipe(*common, "--run-id", "frozen", "--method", "frozen")
    assert frozen.status == 0, frozen.err
    fourth = json.loads((run.parent / "frozen/summary.json").read_text(encoding="utf-8"))
    assert fourth["model"]["parameters_trained"] == fourth["training"]["steps"] == 0
    assert fourth["title"] == f"{run / 'model'}, frozen"
    kept = AutoModelForSeq2SeqLM.from_pretrained(run.parent / "frozen/model").state_dict()
    assert all(value.equal(model.state_dict()[key]) for key, value in kept.items())


def test_t5_is_fine_tuned_by_bleu_with_its_prefix(run_recipe: Recipe, tmp_path: Path) -> None:
    dates = write_dates(tmp_path / "dates", 60)
    texts = [text for side in dates.iterdir() for text in side.read_text("utf-8").splitlines()]
    tokenizer = train_joint_bpe([*texts, "translate English to Chinese: "], 320)
    tokenizer.save_pretrained(tmp_path / "t5")
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    finished = run_recipe(
        "translation", "--dataset", dates, "--model", tmp_path / "t5", "--run-id", "a",
        "--prefix", "translate English to Chinese: ", "--generation.beams", "2",
        "--train.max_steps", "4", "--train.evaluate_every", "2", "--max_length", "32",
        "--select_by", "bleu", "--train.batch-size", "16", "--implementation", "scratch",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    assert "no from-scratch t5; HuggingFace's class is used" in finished.err
    run = tmp_path / "results/runs/translation/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["model"]["implementation"] == "hf"
    assert summary["model"]["prefix"] == "translate English to Chinese: "
    assert summary["training"]["selection"] == "highest validation bleu"
    assert summary["training"]["steps"] == 4
    assert len(parquet.read_table(run / "predictions/test.parquet")) == 6


def test_a_dry_run_writes_nothing(run_recipe: Recipe, tmp_path: Path) -> None:
    dates = write_dates(tmp_path / "dates", 60)
    finished = run_recipe("translation", "--dataset", dates, "--dry-run", *SMALL)
    assert finished.status == 0, finished.err
    assert "nothing was trained or written" in finished.out
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "demo:dates", "--target", "ja"), "not into 'ja'"),
        (("--source_file", "a.en"), "belong together"),
        (("--dataset", "demo:dates", "--average", "1"), "--average 1"),
        (("--dataset", "demo:dates", "--method", "lora"), "needs a pretrained model"),
        (("--dataset", "demo:dates", "--shape.vocabulary", "100"), "no room"),
    ],
)
def test_mistakes_end_before_training(
    run_recipe: Recipe, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    finished = run_recipe("translation", *arguments)
    assert finished.status == 2
    assert message in finished.error
    assert not (tmp_path / "results").exists()

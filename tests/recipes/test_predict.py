"""`toolkit predict RUN` says what the run itself recorded about its test rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import toolkit.cli
from toolkit.errors import UserError
from toolkit.prediction import Options, open_model, predict

from .conftest import RUNS, Finished

Tiny = Callable[..., tuple[object, ...]]


def recorded(run: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / "predictions" / "test.parquet").to_pylist()
    return rows


def summary_of(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", RUNS)
def test_classifiers(runs: dict[str, Path], name: str) -> None:
    rows, labels = recorded(runs[name]), summary_of(runs[name])["data"]["label_names"]
    answers = predict(open_model(str(runs[name])), [row["text"] for row in rows]).answers
    for row, answer in zip(rows, answers, strict=True):
        assert answer["prediction"] == labels[row["prediction"]]
        assert list(answer["probabilities"]) == labels
        found = list(answer["probabilities"].values())
        assert found == pytest.approx(row["probabilities"], abs=1e-5)


def test_parts_of_a_run(runs: dict[str, Path]) -> None:
    rows = recorded(runs["lora"])
    texts = [row["text"] for row in rows]
    for part in ("model", "adapter"):
        answers = predict(open_model(str(runs["lora"] / part)), texts).answers
        for row, answer in zip(rows, answers, strict=True):
            found = list(answer["probabilities"].values())
            assert found == pytest.approx(row["probabilities"], abs=1e-5), part
    names = summary_of(runs["frozen"])["data"]["label_names"]
    frozen = predict(open_model(str(runs["frozen"] / "model")), texts).answers
    assert [list(a["probabilities"]) for a in frozen] == [names] * len(texts)


def test_an_adapter_by_itself(runs: dict[str, Path], tmp_path: Path) -> None:
    """Copied away from its run it does not know the names of its labels."""
    folder = tmp_path / "copied"
    folder.mkdir()
    for file in (runs["lora"] / "adapter").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    row = recorded(runs["lora"])[0]
    [answer] = predict(open_model(str(folder)), [row["text"]]).answers
    assert list(answer["probabilities"]) == ["LABEL_0", "LABEL_1"]
    assert list(answer["probabilities"].values()) == pytest.approx(row["probabilities"], abs=1e-5)

    settings = json.loads((folder / "adapter_config.json").read_text())
    settings["base_model_name_or_path"] = "nobody/nothing"
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="the model it is an adapter for cannot be loaded"):
        open_model(str(folder))


def test_broken_runs(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match=r"not complete .*--resume"):
        open_model(str(run))
    (run / "summary.json").write_text('{"task": "text-cl')
    with pytest.raises(UserError, match=r"summary\.json cannot be read"):
        open_model(str(run))
    (run / "summary.json").write_text('{"task": "text-classification", "data": {}}')
    with pytest.raises(UserError, match="no folder model/"):
        open_model(str(run))
    (run / "model").mkdir()
    (run / "summary.json").write_text('{"task": "pretraining"}')
    with pytest.raises(UserError, match="no task to predict"):
        open_model(str(run))
    (run / "summary.json").write_text('{"task": "text-classification", "data": {}}')
    (run / "model" / "tfidf.joblib").write_bytes(b"not a pickle")
    with pytest.raises(UserError, match=r"tfidf\.joblib cannot be read"):
        open_model(str(run))
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "tfidf.joblib").write_bytes(b"anything")
    with pytest.raises(UserError, match="from its run alone"):
        open_model(str(tmp_path / "alone"))
    shutil.copytree(runs["frozen"] / "model", tmp_path / "frozen")
    with pytest.raises(UserError, match=r"in its run\. Give the run directory"):
        open_model(str(tmp_path / "frozen"))
    with pytest.raises(UserError, match="HuggingFace has no scratch_lstm"):
        open_model(str(runs["lstm"]), Options(implementation="hf"))
    with pytest.raises(UserError, match="trained on single texts"):
        predict(open_model(str(runs["tfidf"])), [("好", "坏")])


@pytest.fixture
def finished(
    run_recipe: Callable[..., Finished], tiny: Tiny, tmp_path: Path, tiny_data: Path
) -> Callable[[str], Path]:
    """Run a tiny recipe; gives its run directory."""

    def run(recipe: str, *options: object) -> Path:
        done = run_recipe(recipe, *tiny(recipe, 0.0), *options)
        assert done.status == 0, done.err
        return tmp_path / "results" / "runs" / recipe / "a"

    return run


def test_translations(finished: Callable[..., Path]) -> None:
    run = finished("translation", "--train.epochs", "2", "--generation.length_ratio", "1.5")
    rows = recorded(run)
    for size in (1, 64):
        model = open_model(str(run), Options(batch_size=size))
        answers = predict(model, [row["source"] for row in rows]).answers
        assert [a["prediction"] for a in answers] == [row["hypothesis"] for row in rows]


def test_answers(finished: Callable[..., Path], tiny_data: Path) -> None:
    run = finished("question_answering")
    rows = recorded(run)
    contexts = {
        paragraph["qas"][0]["id"]: paragraph["context"]
        for article in json.loads((tiny_data / "questions.json").read_text("utf-8"))["data"]
        for paragraph in article["paragraphs"]
    }
    pairs = [(row["question"], contexts[row["id"]]) for row in rows]
    answers = predict(open_model(str(run)), [*pairs, ("", ""), ("什么数？", "")]).answers
    assert [a["prediction"] for a in answers[:-2]] == [row["prediction"] for row in rows]
    found = [a["margin"] for a in answers[:-2]]
    assert found == pytest.approx([row["margin"] for row in rows], abs=1e-4)
    assert [a["prediction"] for a in answers[-2:]] == ["", ""]
    always = open_model(str(run), Options(no_answer_threshold=-1e9))
    best = [a["prediction"] for a in predict(always, pairs).answers]
    assert best == [row["best_answer"] for row in rows]


def test_tags(finished: Callable[..., Path]) -> None:
    run = finished("token_classification", "--train.epochs", "2")
    rows = recorded(run)
    model = open_model(str(run))
    answers = predict(model, [row["tokens"] for row in rows]).answers
    assert [a["tags"] for a in answers] == [row["predicted"] for row in rows]
    # The run has learnt from characters: a text is divided into them.
    texts = ["".join(row["tokens"]) for row in rows]
    assert [a["tags"] for a in predict(model, texts).answers] == [r["predicted"] for r in rows]


def test_images(finished: Callable[..., Path], tmp_path: Path) -> None:
    from toolkit.data.image_sources import read_image_source

    run = finished("image_classification")
    rows, labels = recorded(run), summary_of(run)["data"]["label_names"]
    contents = read_image_source("demo:digits").tables["train"].contents
    numbers = [int(row["image"].rsplit(" ", 1)[1]) - 1 for row in rows]
    answers = predict(open_model(str(run)), [contents[number] for number in numbers]).answers
    for row, answer in zip(rows, answers, strict=True):
        assert answer["prediction"] == labels[row["prediction"]]
        found = list(answer["probabilities"].values())
        assert found == pytest.approx(row["probabilities"], abs=1e-5)
    check_image_files(run, contents, numbers, answers, tmp_path)


def check_image_files(
    run: Path, contents: Any, numbers: list[int], answers: list[Any], folder: Path
) -> None:
    """The same as files in a folder, and in a table with a cell that is empty."""
    (folder / "pictures" / "deep").mkdir(parents=True)
    for place, number in enumerate(numbers[:3]):
        (folder / "pictures" / "deep" / f"{place}.bmp").write_bytes(contents[number])
    (folder / "pictures" / "notes.txt").write_text("no image")
    output = folder / "out.jsonl"
    command = ["predict", str(run), "--file", str(folder / "pictures"), "--output", str(output)]
    assert status_of(*command) == 0
    made = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [row["image"] for row in made] == [f"deep/{place}.bmp" for place in range(3)]
    picture = str(folder / "pictures" / "deep" / "0.bmp")
    for words in ([picture], ["--file", picture], [str(folder / "pictures")]):
        again = ["predict", str(run), *words, "--output", str(output), "--overwrite"]
        assert status_of(*again) == 0
        first = json.loads(output.read_text("utf-8").splitlines()[0])
        assert first["prediction"] == answers[0]["prediction"]
    assert [row["prediction"] for row in made] == [a["prediction"] for a in answers[:3]]

    (folder / "bad.bmp").write_bytes(b"<html>")
    table = folder / "table.csv"
    table.write_text("image,n\npictures/deep/2.bmp,1\n,2\nbad.bmp,3\nnone.bmp,4\n", "utf-8")
    again = [*command[:3], str(table), *command[4:], "--overwrite"]
    assert status_of(*again) == 2
    assert status_of(*again, "--skip-damaged") == 0
    made = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert made[0]["prediction"] == answers[2]["prediction"]
    assert [row["prediction"] for row in made[1:]] == [None] * 3
    assert [row["prediction_note"] for row in made[1:]] == [
        "no image", "not an image that can be read", "there is no such file",
    ]  # fmt: skip


def status_of(*argv: str) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(list(argv))
    return int(caught.value.code or 0)


def test_a_language_model_goes_on(finished: Callable[..., Path]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run = finished("gpt2_generation")
    model = AutoModelForCausalLM.from_pretrained(run / "model")
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    options = Options(max_new_tokens=5)
    [answer] = predict(open_model(str(run), options), ["房间"]).answers
    ids = tokenizer("房间", return_tensors="pt")
    with torch.no_grad():
        made = model.generate(**ids, do_sample=False, max_new_tokens=5)[0].tolist()
    start = ids["input_ids"].shape[1]
    if tokenizer.eos_token_id in made[start:]:
        made = made[: start + made[start:].index(tokenizer.eos_token_id)]
    assert answer["prediction"] == tokenizer.decode(made)[2:]


def test_frozen_images(
    run_recipe: Callable[..., Finished], tiny: Tiny, finished: Callable[..., Path], tmp_path: Path
) -> None:
    first = finished("image_classification")
    done = run_recipe(
        "image_classification", "--dataset", "demo:digits", "--train-size", "60",
        "--validation-size", "17", "--test-size", "15", "--model", first / "model", "--method",
        "frozen", "--run-id", "b",
    )  # fmt: skip
    assert done.status == 0, done.err
    from toolkit.data.image_sources import read_image_source

    rows = recorded(first.with_name("b"))
    contents = read_image_source("demo:digits").tables["train"].contents
    images = [contents[int(row["image"].rsplit(" ", 1)[1]) - 1] for row in rows]
    answers = predict(open_model(str(first.with_name("b"))), images).answers
    found = np.array([list(a["probabilities"].values()) for a in answers])
    assert found == pytest.approx(np.array([row["probabilities"] for row in rows]), abs=1e-5)

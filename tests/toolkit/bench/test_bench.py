"""Benchmarks: turns, ratios, and no ratio without equal results. Speed itself is not asserted."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import toolkit.bench.predict as bench_predict
import toolkit.cli
from toolkit.bench import BenchSettings, ResultsDiffer
from toolkit.bench.interleaved import ratios, time_in_turn
from toolkit.bench.runner import measure

OURS, PIPELINE, SORTED = bench_predict.OURS, bench_predict.PIPELINE, bench_predict.SORTED


def texts(count: int = 70) -> list[str]:
    generator = random.Random(1)
    return ["".join(generator.choices("好坏今天酒店", k=generator.randint(1, 40)))
            for _ in range(count)]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]) -> Path:
    root = tmp_path_factory.mktemp("bench")
    write_tiny_bert(root / "body", "BertModel")
    bench_predict.write_classifier(root / "classifier", str(root / "body"))
    return root / "classifier"


def test_programs_take_turns_and_the_order_is_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(
        "toolkit.bench.interleaved.time", SimpleNamespace(perf_counter=lambda: next(clock))
    )
    called: list[str] = []

    def program(name: str, ticks: int) -> Callable[[], None]:
        def run() -> None:
            called.append(name)
            for _ in range(ticks):
                next(clock)

        return run

    seconds = time_in_turn({"a": program("a", 5), "b": program("b", 2)}, rounds=3)
    assert called == ["a", "b", "b", "a", "a", "b"]
    assert seconds == {"a": [6, 6, 6], "b": [3, 3, 3]}


def test_a_ratio_is_taken_round_by_round() -> None:
    found = ratios({"theirs": [4.0, 9.0, 2.0], "ours": [2.0, 3.0, 2.0]}, "ours")
    assert {name: vars(spread) for name, spread in found.items()} == {
        "theirs": {"median": 2.0, "lowest": 1.0, "highest": 3.0}
    }


def test_both_sides_read_the_same_and_say_the_same(folder: Path) -> None:
    rows = texts()
    case = bench_predict.case_of(rows, str(folder.parent / "body"))
    result = measure(case, "predict", 0, BenchSettings(rounds=2, memory=False))
    assert 0 < result.agreement["largest_difference"] < 1e-5
    tokenizer = AutoTokenizer.from_pretrained(folder)
    lengths = [min(len(tokenizer(text)["input_ids"]), 32) for text in rows]
    assert result.units == sum(lengths)
    by_hand = sum(len(b) * max(b) for b in (lengths[:32], lengths[32:64], lengths[64:]))
    assert result.positions[PIPELINE] == by_hand
    lengths.sort(reverse=True)
    assert result.positions[SORTED] == 32 * lengths[0] + 32 * lengths[32] + 6 * lengths[64]
    assert result.positions[OURS] == sum(lengths)
    assert {name: len(times) for name, times in result.seconds.items()} == {
        PIPELINE: 2, SORTED: 2, OURS: 2,
    }  # fmt: skip


def test_the_random_classifier_is_the_same_every_time_and_says_both(
    folder: Path, tmp_path: Path
) -> None:
    bench_predict.write_classifier(tmp_path / "again", str(folder.parent / "body"))
    one, other = (
        AutoModelForSequenceClassification.from_pretrained(f) for f in (folder, tmp_path / "again")
    )
    assert torch.equal(one.classifier.weight, other.classifier.weight)
    assert one.config.id2label == {0: "negative", 1: "positive"}


def test_results_that_differ_have_no_ratio() -> None:
    own = [[0.2, 0.8], [0.6, 0.4]]
    close = [[0.2, 0.8], [0.600009, 0.399991]]
    found = bench_predict.check_agreement({OURS: own, PIPELINE: own, SORTED: close})
    assert found["largest_difference"] == pytest.approx(9e-6)
    assert found["other_labels"] == 0
    even = [[0.2, 0.8], [0.5 + 1e-6, 0.5 - 1e-6]]
    odd = [[0.2, 0.8], [0.5 - 1e-6, 0.5 + 1e-6]]
    found = bench_predict.check_agreement({OURS: even, PIPELINE: even, SORTED: odd})
    assert found["other_labels"] == 1
    for wrong in ([[0.2, 0.8], [0.60002, 0.39998]], [[0.2, 0.8], [np.nan, np.nan]]):
        with pytest.raises(ResultsDiffer, match=r"in number [34] of 4 \(probabilities"):
            bench_predict.check_agreement({OURS: own, PIPELINE: own, SORTED: wrong})


def status_of(*argv: str) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(list(argv))
    return int(caught.value.code or 0)


@pytest.fixture
def no_demo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model and short texts in place of the demo's."""
    monkeypatch.setattr(bench_predict, "MODEL", str(folder.parent / "body"))
    monkeypatch.setattr(bench_predict, "some_reviews", lambda count: texts(60))


@pytest.mark.usefixtures("no_demo")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    threads = torch.get_num_threads()
    argv = ("bench", "predict", "--rounds", "1", "--no-memory", "--json", str(file))
    assert status_of(*argv) == 0
    shown = capsys.readouterr()
    assert OURS in shown.out
    [found] = json.loads(file.read_text(encoding="utf-8"))
    assert found["rows"] == 60
    assert found["environment"]["threads"] == threads
    assert set(found["contenders"]) == {PIPELINE, SORTED, OURS}
    [one] = found["contenders"][PIPELINE]["seconds"]
    [own] = found["contenders"][OURS]["seconds"]
    assert found["times_as_fast"][PIPELINE]["median"] == pytest.approx(one / own)
    assert found["contenders"][OURS]["rows_per_second"] == pytest.approx(60 / own)


@pytest.mark.usefixtures("no_demo")
def test_a_difference_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = bench_predict._ours

    def wrong(*arguments: Any) -> Any:
        found = real(*arguments)
        found[3] = found[3][::-1]
        return found

    monkeypatch.setattr(bench_predict, "_ours", wrong)
    assert status_of("bench", "predict", "--json", "-") == 1
    shown = capsys.readouterr()
    assert "no ratio of speeds is given" in shown.err.replace("\n", " ")
    [found] = json.loads(shown.out)
    assert re.search("number [78] of 120", found["error"])
    assert "contenders" not in found


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("predic",), "Did you mean predict or"),
        (("--rounds", "0"), "--rounds 0"),
        (("--threads", "-1"), "--threads -1"),
        (("--json", "no/such/file.json"), "--json no/such/file.json"),
        (("startup", "--precision", "bf16"), "startup run in fp32 only"),
        (("--output", "/dev/null/x"), "--output /dev/null/x: cannot make the folder"),
        (("--device", "cuda"), "--device cuda: PyTorch sees no GPU"),
    ],
)
def test_mistakes(argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("bench", *argv) == 2
    assert message in capsys.readouterr().err

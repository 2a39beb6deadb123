"""Every benchmark in a small shape: both sides agree, and what is counted is counted right."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import toolkit.bench.bert
import toolkit.bench.engine
import toolkit.bench.engine_loop
import toolkit.bench.gpt2
import toolkit.bench.gpt2_generate
import toolkit.bench.gpt2_train
import toolkit.bench.random_texts
import toolkit.bench.runner
import toolkit.bench.texts
import toolkit.bench.vit_predict
import toolkit.bench.vit_train
from toolkit.bench import BENCHMARKS, BenchSettings, ResultsDiffer, cases_of, suite
from toolkit.bench.agreement import agree
from toolkit.bench.ddp import measure_processes
from toolkit.bench.memory import MemoryNotMeasured, peak_memory
from toolkit.bench.record import BenchResult
from toolkit.bench.report import as_document, goal_lines, verdict
from toolkit.bench.runner import measure
from toolkit.bench.suite import Found
from toolkit.bench.table import result_table
from toolkit.bench.texts import count_tokens, full_batches, random_batches, sorted_batches
from toolkit.errors import UserError
from toolkit.report.blocks import figures_of

SETTINGS = BenchSettings(rounds=1, memory=False)
QUICK = ("bert-predict", "gpt2-train", "vit-train")
NAMES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in BENCHMARKS
    if name not in ("startup", "predict")
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow models and short texts."""
    narrow = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 32}
    monkeypatch.setattr(toolkit.bench.bert, "SHAPE", narrow)
    monkeypatch.setattr(toolkit.bench.gpt2, "SHAPE", {"n_embd": 24, "n_head": 2})
    monkeypatch.setattr(toolkit.bench.gpt2_train, "BLOCK", 24)
    monkeypatch.setattr(toolkit.bench.gpt2_generate, "LAYERS", 2)
    for module in (toolkit.bench.gpt2, toolkit.bench.gpt2_train, toolkit.bench.gpt2_generate):
        monkeypatch.setattr(module, "END_OF_TEXT", 599)
    monkeypatch.setattr(toolkit.bench.gpt2, "VOCABULARY", 600)
    for module in (toolkit.bench.bert, toolkit.bench.texts):
        monkeypatch.setattr(module, "VOCABULARY", 1200)
    monkeypatch.setattr(toolkit.bench.runner, "matmul_rate", lambda device, dtype: 1e9)
    monkeypatch.setattr(toolkit.bench.texts, "MEAN", 9)
    monkeypatch.setattr(toolkit.bench.texts, "LONGEST", 32)
    monkeypatch.setattr(toolkit.bench.vit_predict, "SIZE", 32)
    monkeypatch.setattr(toolkit.bench.vit_predict, "BATCH", 2)
    shape = {**toolkit.bench.vit_train.SHAPE, "hidden_size": 24, "num_attention_heads": 2}
    monkeypatch.setattr(toolkit.bench.vit_train, "SHAPE", {**shape, "intermediate_size": 32})
    for module in (toolkit.bench.engine, toolkit.bench.engine_loop, toolkit.bench.random_texts):
        monkeypatch.setattr(module, "BATCH", 256)
    monkeypatch.setattr(toolkit.bench.engine_loop, "LAYERS", 1)
    monkeypatch.setattr(toolkit.bench.engine_loop, "WIDTH", 32)
    monkeypatch.setattr(toolkit.bench.engine_loop, "STEPS", 2)


@pytest.mark.usefixtures("small", "fresh_accelerator")
@pytest.mark.parametrize("name", NAMES)
def test_both_sides_agree_and_are_timed(name: str) -> None:
    for number, case in enumerate(cases_of(name, SETTINGS)):
        result = measure(case, name, number, SETTINGS)
        assert set(result.seconds) == set(case.sides)
        assert result.agreement["largest_difference"] <= result.agreement["tolerance"]
        assert result.ours in result.seconds
        assert result.units <= min(result.positions.values())
        assert result.positions[result.ours] == result.units or name == "engine"
        assert sum(share for _, share in result.profile) == pytest.approx(1)
        again = BenchResult.from_dict(result.to_dict())
        assert dataclasses.asdict(again) == dataclasses.asdict(result)
        assert result_table(result).row_count == len(case.sides)


@pytest.mark.usefixtures("small")
def test_operations_are_those_of_real_tokens(tmp_path: Path) -> None:
    """A model that computes no padding needs as many as the formula says, by hand."""
    [case, _, _] = cases_of("bert-predict", SETTINGS)
    case.prepare(tmp_path)
    lengths, layers, width, inner = random_batches(case.rows // 32), 4, 24, 32
    found = case.flops(tmp_path)
    linear = attention = 0
    for batch in lengths:
        for n in batch:
            for layer in range(layers):
                asked = int(n) if layer < layers - 1 else 1  # the last one: the class token's
                attention += 2 * 2 * asked * int(n) * width
                linear += 2 * (2 * asked * width * width + asked * 2 * width * inner)
                # keys and values of all tokens, or, for one query, what takes their place
                linear += 2 * 2 * int(n) * width * width if layer < layers - 1 else 0
    assert found is not None
    assert 0.9 * (linear + attention) < found < 1.15 * (linear + attention)


def test_batches_have_the_padding_of_the_pool() -> None:
    pool = toolkit.bench.texts.review_lengths(toolkit.bench.texts.POOL)
    assert pool.mean() == pytest.approx(toolkit.bench.texts.MEAN, rel=0.1)
    real, padded = count_tokens(random_batches(2))
    assert 2.4 < padded / real < 2.6
    real, padded = count_tokens(sorted_batches(2))
    assert 1.0 <= padded / real < 1.06
    real, padded = count_tokens(full_batches(3))
    assert padded == real
    assert all((np.diff(batch) >= 0).all() for batch in sorted_batches(3))


def test_the_small_bert_answers_otherwise_where_texts_or_labels_are_others(tmp_path: Path) -> None:
    """Else the comparison of losses, which engine and startup begin with, could not fail."""
    toolkit.bench.bert.write_small_bert(tmp_path, vocab_size=1000)
    model = toolkit.bench.bert.LOADERS["transformers"](tmp_path).eval()
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 1000, (32, 20), generator=generator)
    labels = torch.randint(0, 2, (32,), generator=generator)

    def loss(ids: torch.Tensor, labels: torch.Tensor) -> float:
        with torch.no_grad():
            return float(model(ids, labels=labels).loss)

    right = loss(ids, labels)
    assert abs(loss(ids[:, :10], labels) - right) > 1e-2
    assert abs(loss(ids, 1 - labels) - right) > 1e-2
    assert abs(loss(ids[:-1], labels[:-1]) - right) > 1e-3


def test_a_benchmark_that_fails_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cases(name: str, settings: BenchSettings) -> list[Any]:
        if name == "predict":
            raise UserError("no reviews")
        return [SimpleNamespace(name=name)]

    def measured(case: Any, name: str, number: int, settings: BenchSettings) -> BenchResult:
        if name == "vit-train":
            raise KeyboardInterrupt
        if name == "vit-predict":
            raise RuntimeError("no memory left")
        return result(name=name)

    monkeypatch.setattr(suite, "cases_of", cases)
    monkeypatch.setattr(suite, "measure", measured)
    names = ["predict", "vit-predict", "bert-predict", "vit-train", "bert-train"]
    found = suite.measure_all(names, SETTINGS)
    assert found.problems == {"predict": "no reviews", "vit-predict": "no memory left"}
    assert [one.name for one in found.results] == ["bert-predict"]
    assert found.interrupted
    assert "interrupted" in capsys.readouterr().err


def test_what_differs_is_found_wherever_it_is() -> None:
    same = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]
    other = [torch.tensor([1.0, 2.0]), torch.tensor([3.01])]
    assert agree({"a": same, "b": same}, "b", "x", 0.0)["largest_difference"] == 0
    with pytest.raises(ResultsDiffer, match="number 3 of 3"):
        agree({"a": other, "b": same}, "b", "x", 1e-3)
    with pytest.raises(ResultsDiffer, match="3 and 2 numbers"):
        agree({"a": same[:1], "b": same}, "b", "x", 1e-3)
    with pytest.raises(ResultsDiffer):
        agree({"a": [], "b": []}, "b", "x", 1e9)
    with pytest.raises(ResultsDiffer):
        agree({"a": [torch.tensor([np.nan])], "b": [torch.tensor([1.0])]}, "b", "x", 1e9)


def result(**changes: Any) -> BenchResult:
    sides = {"theirs": [4.0, 6.0, 5.0], "ours": [2.0, 2.0, 2.0]}
    values: dict[str, Any] = {
        "name": "x", "task": "t", "ours": "ours", "settings": SETTINGS, "seconds": sides,
        "rows": 4, "units": 100, "unit": "tokens", "positions": {"theirs": 250, "ours": 100},
        "agreement": {"compared": "c", "largest_difference": 0.0, "tolerance": 1e-4},
        "goals": {"theirs": 2.6}, "flops": 50, "machine_flops_per_second": 100.0,
        "memory": {"theirs": 10, "ours": 7}, "memory_goal": 0.6, "profile": [("mm", 1.0)],
    }  # fmt: skip
    return BenchResult(**{**values, **changes})


def test_ratios_limits_and_goals() -> None:
    found = result()
    assert vars(found.times_as_fast["theirs"]) == {"median": 2.5, "lowest": 2.0, "highest": 3.0}
    assert found.limit_share("ours") == pytest.approx(0.25)
    assert found.limit_share("theirs") == pytest.approx(0.1)
    assert found.memory_share == pytest.approx(0.7)
    assert found.missed == [
        "2.500 times as fast as theirs; the goal is 2.6", "70% of the memory; the goal is 60%",
    ]  # fmt: skip
    assert result(goals={"theirs": 2.5}, memory_goal=0.7).missed == []
    lines = goal_lines([found])
    assert lines[0].endswith("2.5 (goal 2.6), missed. Where ours spends its time: mm 100%.")
    assert lines[1] == "x: 70% of the memory (goal 60%), missed"
    assert verdict([found]).endswith("0 of 2 goals are reached.")


def test_the_report_holds_every_case_and_every_problem() -> None:
    found = Found([result(), result(name="y", note="a note")], {"z": "no ratio"})
    document = as_document(found, SETTINGS, "toolkit bench")
    assert [figure.name for figure in figures_of(document.blocks)] == ["speed"]
    titles = [block.title for block in document.blocks if hasattr(block, "title")]
    assert titles == ["Goals", "x", "y", "Not measured", "Again"]


@pytest.mark.slow
def test_peak_memory_is_that_of_another_process(tmp_path: Path) -> None:
    case, _ = cases_of("engine", SETTINGS)
    case.prepare(tmp_path)
    ballast = torch.ones(400_000_000)  # 1.6 GB here, none of it there
    peak = peak_memory("engine", 0, "bare loop", tmp_path, SETTINGS)
    assert 1e8 < peak < 1.4e9 < ballast.nbytes
    with pytest.raises(MemoryNotMeasured, match="engine, nobody"):
        peak_memory("engine", 0, "nobody", tmp_path, SETTINGS)


@pytest.mark.slow
def test_start_up() -> None:
    [case] = cases_of("startup", SETTINGS)
    found = measure(case, "startup", 0, SETTINGS)
    assert set(found.seconds) == {
        "Trainer script", "python recipe", "accelerate launch", "imports alone",
    }  # fmt: skip


@pytest.mark.slow
def test_two_processes_train_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 32}
    monkeypatch.setattr(toolkit.bench.bert, "SHAPE", narrow)
    found = measure_processes(2, SETTINGS, layers=1, steps=2)
    assert found["processes"] == 2
    assert found["largest_difference_between_processes"] == 0
    assert found["tokens_per_second"] > 0

"""`toolkit models`: the list, one architecture in full, JSON, and checks that can fail."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit.catalogue_check
import toolkit.console
from scratch_models.hub.architecture import architectures
from scratch_models.parity import ParityReport, ParityRow
from toolkit.catalogue import Comparison, StageResult, Status, code_of, read_status, write_status
from toolkit.catalogue_check import Job
from toolkit.catalogue_tables import description
from toolkit.commands import models
from toolkit.errors import UserError


def run(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    models.configure(parser)
    return models.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit.console.console, "_width", 200)


def seen(model_type: str, weights: str, name: str, **changes) -> Comparison:
    given = {
        "date": "2026-01-31",
        "code": code_of(architectures()[model_type]),
        "versions": {"torch": "2.8.0", "transformers": "5.24.0"},
        "models": 3,
        "heads": {"model": {"forward": StageResult(7, 0, 8.6e-7, 1e-5)}},
        **changes,
    }
    return Comparison(weights, name, **given)  # type: ignore[arg-type]


@pytest.fixture
def status(tmp_path: Path) -> Path:
    """What a check may have recorded: one of every kind."""
    bert = Status("Bert", {"model": "BertModel"}, {"model": 102_267_648})
    bert.record(seen("bert", "random", "random configs"))
    missing = ["pooler.dense.bias"]
    bert.record(seen("bert", "checkpoint", "all-MiniLM-L6-v2", missing=missing))
    vit = Status("ViT", {"model": "ViTModel"}, {"image-classification": 86_567_656})
    vit.record(seen("vit", "random", "random configs", code="of last year"))
    lstm = Status("", {"sequence-classification": None}, {"sequence-classification": 4_171_522})
    write_status({"bert": bert, "vit": vit, "scratch_lstm": lstm}, tmp_path / "status.json")
    return tmp_path / "status.json"


def row_of(title: str, printed: str) -> str:
    """The text of one architecture's row, column by column."""
    _, heading, *rows, _ = re.split(r"─+ *\n", printed)
    starts = [heading.index(word) for word in ("architecture", "paper", "equal")]
    (row,) = [row for row in rows if row.lstrip().startswith(f"{title} (")]
    columns = zip(starts, [*starts[1:], None], strict=True)
    cells = [line[start:end] for start, end in columns for line in row.splitlines()]
    return " ".join(" ".join(cells).split())


def test_the_list_tells_what_was_seen_on_which_weights(status: Path, wide, capsys) -> None:
    assert run("--status", status) == 0
    printed = capsys.readouterr().out
    for architecture in architectures().values():
        assert architecture.title in printed
        for head in architecture.classes:
            assert head in printed
    bert, vit = row_of("BERT", printed), row_of("ViT", printed)
    assert "102,267,648 parameters: google-bert/" not in vit
    assert "102,267,648 parameters" in bert
    assert "real weights: all-MiniLM-L6-v2; random configs" in bert
    assert "largest difference 8.6e-07" in bert
    assert "last change" not in bert
    assert "random configs only" in vit
    assert "checked before the last change of the code" in vit
    assert "no counterpart to equal" in row_of("LSTM classifier", printed)
    assert "not checked yet" in row_of("GPT-2", printed)


STAGES = ["loading", "forward", "gradients", "training", "generation", "saving", "half precision"]


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("arguments", [(), ("bert",), ("lstm", "vit")])
def test_nothing_is_cut_off_on_narrow_terminals(
    columns: int, arguments: tuple[str, ...], status: Path, capsys, monkeypatch
) -> None:
    statuses = read_status(status)
    heads = {
        head: {stage: StageResult(14_000, 0, 8.6e-7, 1e-5) for stage in STAGES}
        for head in architectures()["bert"].classes
    }
    statuses["bert"].record(seen("bert", "random", "random configs", heads=heads))
    write_status(statuses, status)
    monkeypatch.setattr(toolkit.console.console, "_width", columns)
    assert run(*arguments, "--status", status) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    assert "…" not in printed
    if arguments == ("bert",):
        words = "head values forward gradients training generation saving precision"
        assert re.search(words.replace(" ", " +"), printed)
        assert re.search(r"sequence- +98,000 .*\n classification", printed)


def test_listing_imports_no_large_library(status: Path) -> None:
    code = (
        "import sys, toolkit.cli\n"
        "try: toolkit.cli.main(sys.argv[1:])\n"
        "except SystemExit as end: print('status', end.code)\n"
        "print('large', sorted({'torch', 'transformers', 'datasets', 'numpy'} & set(sys.modules)))"
    )
    for arguments in [["models"], ["models", "bert", "gpt2"], ["models", "--json", "-"]]:
        command = [sys.executable, "-c", code, *arguments, "--status", str(status)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout.endswith("status 0\nlarge []\n"), done.stderr


def test_one_architecture_in_full(status: Path, wide, capsys) -> None:
    assert run("BERT", "--status", status) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "next sentence prediction §3.1, task #2" in printed
    assert "Where the checkpoints differ from the paper" in printed
    assert "sequence-classification ScratchBertForSequenceClassification" in printed
    assert "model ScratchBertModel 102,267,648 BertModel" in printed
    said = "7 comparisons of 3 models (2026-01-31, torch 2.8.0, transformers 5.24.0)"
    assert f"random configs: {said}" in printed
    assert f"real weights of all-MiniLM-L6-v2: {said}" in printed
    assert "not in the checkpoint, so random: pooler.dense.bias" in printed
    assert "model 7 9e-07" in printed


@pytest.mark.parametrize("name", architectures())
def test_every_architecture_says_where_its_parts_are_from(name: str) -> None:
    text = description(architectures()[name])
    assert "§" in text
    assert "differ" in text


def test_failures_are_shown_in_full(tmp_path: Path, wide, capsys) -> None:
    heads = {"model": {"forward": StageResult(7, 1, 0.5, 1e-5)}}
    vit = Status("ViT", {"model": "ViTModel"})
    vit.record(seen("vit", "random", "random configs", heads=heads, failures=["model, relu: x"]))
    write_status({"vit": vit}, tmp_path / "status.json")
    assert run("vit", "--status", tmp_path / "status.json") == 0
    assert "NOT equal: model, relu: x" in capsys.readouterr().out
    run("--status", tmp_path / "status.json")
    assert "NOT equal on 2026-01-31" in row_of("ViT", capsys.readouterr().out)


def test_everything_as_json(status: Path, tmp_path: Path, capsys) -> None:
    assert run("--status", status, "--json", "-") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == 1
    entries = {entry["model_type"]: entry for entry in content["architectures"]}
    assert entries.keys() == architectures().keys()
    for entry in entries.values():
        architecture = architectures()[entry["model_type"]]
        assert entry["title"] == architecture.title
        assert entry["paper"] == architecture.paper
        assert {h: v["class"] for h, v in entry["heads"].items()} == dict(architecture.classes)
    bert = entries["bert"]
    assert bert["huggingface_family"] == "Bert"
    assert bert["reference_parameters"] == 102_267_648
    assert bert["heads"]["model"]["huggingface_class"] == "BertModel"
    parity = bert["parity"]
    assert [s["weights"] for s in parity.pop("seen")] == ["random", "checkpoint"]
    assert parity == {
        "equal": True,
        "seen_on": "real weights: all-MiniLM-L6-v2; random configs",
        "comparisons": 14,
        "failed": 0,
        "largest_difference": 8.6e-7,
        "before_last_change_of_code": False,
    }
    assert entries["vit"]["parity"]["before_last_change_of_code"] is True
    assert entries["gpt2"]["parity"]["equal"] is None
    assert entries["scratch_lstm"]["huggingface_family"] is None
    assert run("vit", "--status", status, "--json", tmp_path / "x.json") == 0
    (only,) = json.loads((tmp_path / "x.json").read_text())["architectures"]
    assert only == entries["vit"]
    assert "Dosovitskiy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["brt"], "no architecture 'brt'.* Did you mean bert"),
        (["transfomer"], "Did you mean transformer"),
        (["--write"], "give --check too"),
        (["--weights", "x"], "give --check too"),
        (["--json", "/no/such/folder/x.json"], "cannot be written"),
    ],
)
def test_mistakes_are_told(arguments: list[str], said: str, status: Path) -> None:
    with pytest.raises(UserError, match=said):
        run(*arguments, "--status", status)


@pytest.mark.parametrize("name", ["marian", "transformer", "Transformer"])
def test_an_architecture_answers_to_type_folder_and_title(name: str) -> None:
    assert list(models.choose([name])) == ["marian"]


@pytest.fixture
def grid(monkeypatch: pytest.MonkeyPatch) -> list[ParityRow]:
    """The rows that the check of ViT finds."""
    rows = [ParityRow("outputs", "logits", 2e-7, 1e-5)]

    def reports() -> Iterator[tuple[str, ParityReport]]:
        for model in ("relu", "gelu"):
            yield "model", ParityReport(model, "ScratchViTModel", "ViTModel", "sdpa", 9, rows=rows)

    job = Job(architectures()["vit"], "random configs", "random", 2, reports)
    monkeypatch.setattr(toolkit.catalogue_check, "jobs", lambda chosen, weights: [job])
    return rows


def test_a_check_is_shown_and_recorded_only_if_asked(
    grid: list[ParityRow], status: Path, wide, capsys
) -> None:
    before, bert = status.read_bytes(), read_status(status)["bert"]
    assert run("vit", "--check", "--status", status) == 0
    assert "largest difference 2.0e-07" in row_of("ViT", capsys.readouterr().out)
    assert status.read_bytes() == before
    assert run("vit", "--check", "--write", "--status", status) == 0
    after = read_status(status)
    assert after["bert"] == bert
    (found,) = after["vit"].seen
    assert found.code == code_of(architectures()["vit"])
    assert found.heads == {"model": {"forward": StageResult(2, 0, 2e-7, 1e-5)}}
    assert after["vit"].parameters == {"model": 86_389_248, "image-classification": 86_567_656}
    capsys.readouterr()
    run("--status", status)
    assert "last change" not in row_of("ViT", capsys.readouterr().out)


def test_a_check_that_finds_a_difference_says_so_and_exits_1(
    grid: list[ParityRow], status: Path, wide, capsys
) -> None:
    grid.append(ParityRow("gradients", "layers.0.norm.bias", 0.25, 1e-5))
    assert run("vit", "--check", "--write", "--status", status) == 1
    printed = capsys.readouterr().out
    for model in ("relu", "gelu"):
        line = f"NOT equal: ViT, model, {model}: gradients: layers.0.norm.bias, off by 0.25"
        assert line in printed
    assert read_status(status)["vit"].failed == 2
    assert run("--status", status) == 0
    assert "NOT equal" in row_of("ViT", capsys.readouterr().out)


def test_sizes_that_differ_are_a_failure_too(grid, status: Path, wide, capsys, monkeypatch) -> None:
    from scratch_models import ScratchViTForImageClassification

    monkeypatch.setattr(ScratchViTForImageClassification, "huggingface_class", "ViTModel")
    assert run("vit", "--check", "--status", status) == 1
    assert "ViTModel 86,389,248" in capsys.readouterr().out


@pytest.fixture
def small_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tiny config of ViT, and no real weights."""
    from scratch_models.models.vit import parity_grid

    monkeypatch.setattr(parity_grid, "VARIANTS", {})
    monkeypatch.setattr(toolkit.catalogue_check, "weights_at_hand", dict)


def test_a_real_check_compares_every_head_on_every_config(
    small_grid, tmp_path: Path, wide, capsys
) -> None:
    file = tmp_path / "status.json"
    assert run("vit", "--check", "--write", "--status", file) == 0
    assert "random configs only" in row_of("ViT", capsys.readouterr().out)
    (found,) = read_status(file)["vit"].seen
    assert found.models == 2
    assert found.heads.keys() == architectures()["vit"].classes.keys()
    stages = {"loading", "forward", "gradients", "training", "saving", "half precision"}
    assert found.code == code_of(architectures()["vit"])
    for results in found.heads.values():
        assert results.keys() == stages
        assert 0 <= results["training"].difference < 1e-5
    assert found.versions == {
        package: importlib.metadata.version(package) for package in ("torch", "transformers")
    }


def test_a_fault_in_the_code_is_found(
    small_grid, tmp_path: Path, wide, capsys, monkeypatch
) -> None:
    from scratch_models.layers.feed_forward import FeedForward

    right = FeedForward.forward
    monkeypatch.setattr(FeedForward, "forward", lambda self, x: right(self, x) * 1.01)
    assert run("vit", "--check", "--status", tmp_path / "status.json") == 1
    printed = capsys.readouterr().out
    assert "NOT equal: ViT, model, random weights, default: hidden states: layer 1" in printed
    assert re.search(r"NOT equal: ViT, random configs: … and \d+ more", printed)


@pytest.fixture
def tiny_vit(tmp_path: Path) -> Path:
    from transformers import ViTConfig, ViTForImageClassification

    from scratch_models.models.vit.parity_grid import TINY

    folder = tmp_path / "my-vit"
    ViTForImageClassification(ViTConfig(**TINY)).save_pretrained(folder)
    return folder


def test_weights_go_to_the_architecture_their_config_names(
    tiny_vit: Path, tmp_path: Path, monkeypatch, wide, capsys
) -> None:
    monkeypatch.setattr(toolkit.catalogue_check, "weights_at_hand", dict)
    monkeypatch.setattr(toolkit.catalogue_check, "_random_jobs", lambda architecture: [])
    file = tmp_path / "status.json"
    assert run("vit", "--check", "--write", "--status", file, "--weights", tiny_vit) == 0
    (found,) = read_status(file)["vit"].seen
    assert (found.weights, found.name, found.models) == ("checkpoint", "my-vit", 1)
    assert found.heads.keys() == {"image-classification"}
    assert "real weights: my-vit" in row_of("ViT", capsys.readouterr().out)


def test_weights_of_no_chosen_architecture_are_refused(tiny_vit: Path, monkeypatch) -> None:
    monkeypatch.setattr(toolkit.catalogue_check, "weights_at_hand", dict)
    with pytest.raises(UserError, match=r"my-vit is of type 'vit' .* none of those to check: bert"):
        run("bert", "--check", "--weights", tiny_vit)
    (tiny_vit / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"my-vit: its config.json cannot be read"):
        run("vit", "--check", "--weights", tiny_vit)


@pytest.mark.slow
def test_every_architecture_is_equal_on_its_whole_grid(tmp_path: Path, wide, capsys) -> None:
    assert run("--check", "--status", tmp_path / "status.json") == 0, capsys.readouterr().out

"""What the catalogue records and says: sizes as HuggingFace's, random never called real."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest

from scratch_models.hub.architecture import Architecture, architectures
from scratch_models.parity import ParityReport, ParityRow
from toolkit import catalogue_check
from toolkit.catalogue import (
    STATUS_FILE,
    Comparison,
    StageResult,
    Status,
    code_of,
    read_status,
    reference_head,
    write_status,
)
from toolkit.errors import UserError

# Parameters of the checkpoints on the Hub, as transformers and torchvision (ResNet) tell them.
PUBLISHED = {
    "bert": 102_267_648,
    "gpt2": 124_439_808,
    "marian": 77_943_296,
    "resnet": 25_557_032,
    "roberta": 124_645_632,
    "vit": 86_567_656,
}


def comparison(weights: str, name: str, **changes) -> Comparison:
    given = {"date": "2026-01-31", "code": "c", "versions": {"torch": "2.8.0"}, **changes}
    return Comparison(weights, name, **given)  # type: ignore[arg-type]


@cache
def facts(name: str) -> tuple[Status, list[str]]:
    return catalogue_check.facts(architectures()[name])


@pytest.mark.parametrize("name", architectures())
def test_both_sides_have_as_many_parameters_at_the_reference_size(name: str) -> None:
    architecture = architectures()[name]
    status, differences = facts(name)
    assert differences == []
    assert status.parameters.keys() == status.huggingface.keys() == architecture.classes.keys()
    assert bool(architecture.reference) == status.has_counterpart
    if name in PUBLISHED:  # another architecture need not be known here
        assert status.parameters[reference_head(architecture)] == PUBLISHED[name]


@pytest.mark.parametrize("name", read_status())
def test_the_committed_status_is_of_these_classes(name: str) -> None:
    architecture, status = architectures()[name], read_status()[name]
    assert status.parameters == facts(name)[0].parameters
    assert status.huggingface.keys() == architecture.classes.keys()
    assert len([line for seen in status.seen for line in seen.failures]) >= min(status.failed, 1)
    assert bool(status.seen) == status.has_counterpart
    for seen in status.seen:
        assert (seen.weights == "random") == (seen.name == "random configs")
        assert seen.comparisons > 0


def test_real_weights_stand_in_the_committed_status_for_bert_only() -> None:
    """The others' checkpoints are on the Hub: to be checked where it can be reached."""
    real = {
        name: [seen.name for seen in status.seen if seen.weights == "checkpoint"]
        for name, status in read_status().items()
    }
    assert {name: names for name, names in real.items() if names} == {
        "bert": ["all-MiniLM-L6-v2", "demo:chinese-bert"]
    }


SEEN = {
    (): "not checked yet",
    ("random",): "random configs only",
    ("checkpoint",): "real weights: a/c, b",
    ("checkpoint", "random"): "real weights: a/c, b; random configs",
}


@pytest.mark.parametrize("kinds", SEEN)
def test_random_configs_are_never_called_real(kinds: tuple[str, ...]) -> None:
    status = Status(huggingface={"model": "BertModel"})
    for kind in kinds:
        for name in ["random configs"] if kind == "random" else ["b", "a/c"]:
            status.record(comparison(kind, name))
    assert status.seen_in_words() == SEEN[kinds]
    assert ("real" in status.seen_in_words()) == ("checkpoint" in kinds)


def test_without_counterpart_there_is_nothing_to_equal() -> None:
    assert Status(huggingface={"model": None}).seen_in_words() == "no counterpart to equal"
    assert Status().seen_in_words() == "not checked yet"


def test_a_newer_check_replaces_the_one_on_the_same_weights_only() -> None:
    status = Status()
    status.record(comparison("checkpoint", "a"))
    status.record(comparison("random", "random configs"))
    status.record(comparison("checkpoint", "a", date="2026-02-01"))
    assert [(seen.name, seen.date) for seen in status.seen] == [
        ("random configs", "2026-01-31"),
        ("a", "2026-02-01"),
    ]


def report(*rows: ParityRow) -> ParityReport:
    return ParityReport("relu", "ScratchX", "X", "sdpa", 1, rows=list(rows))


def test_reports_are_summed_up_by_head_and_stage() -> None:
    found = comparison("random", "random configs")
    hidden, loss = (
        ParityRow("hidden states", "layer 1", 3e-7, 1e-5),
        ParityRow("outputs", "loss", 9e-6, 4e-5),
    )
    catalogue_check.add_report(
        found, "model", report(hidden, loss, ParityRow("saving", "names", 0.0, 0.0))
    )
    catalogue_check.add_report(
        found, "model", report(ParityRow("after 10 SGD steps", "losses", 2e-6, 1e-5))
    )
    catalogue_check.add_report(found, "model", report(ParityRow("half precision", "x", 4e-3, 3e-2)))
    catalogue_check.add_report(
        found, "causal-lm", report(ParityRow("attention maps", "layer 1", 1e-8, 1e-5))
    )
    assert found.heads == {
        "model": {
            "forward": StageResult(2, 0, 9e-6, 4e-5),
            "saving": StageResult(1, 0, 0.0, 0.0),
            "training": StageResult(1, 0, 2e-6, 1e-5),
            "half precision": StageResult(1, 0, 4e-3, 3e-2),
        },
        "causal-lm": {"forward": StageResult(1, 0, 1e-8, 1e-5)},
    }
    assert (found.models, found.comparisons, found.failed) == (4, 6, 0)
    # Of single precision:
    assert found.largest == StageResult(2, 0, 9e-6, 4e-5)


@pytest.mark.parametrize("difference", [2e-5, math.inf, math.nan])
def test_what_is_too_far_apart_is_counted_and_named(difference: float) -> None:
    found = comparison("random", "random configs")
    rows = [ParityRow("outputs", "logits", difference, 1e-5), ParityRow("outputs", "x", 0.0, 1e-5)]
    catalogue_check.add_report(found, "model", report(*rows))
    assert found.failed == 1
    assert found.largest.difference == (2e-5 if difference == 2e-5 else math.inf)
    (failure,) = found.failures
    assert failure.startswith("model, relu: outputs: logits, off by ")


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = comparison("checkpoint", "a", failures=["x"], models=2)
    found.heads["model"] = {
        "forward": StageResult(3, 1, math.inf, 1e-5),
        "saving": StageResult(2, 0, 0.0, 0.0),
    }
    status = Status("Bert", {"model": "BertModel"}, {"model": 5}, [found])
    write_status({"bert": status}, tmp_path / "status.json")
    assert read_status(tmp_path / "status.json") == {"bert": status}
    written = json.loads((tmp_path / "status.json").read_text(), parse_constant=pytest.fail)
    assert written["schema"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "holds no parity status"),
        ("[]", "holds no parity status"),
        ('{"schema": 1, "architectures": {"bert": {"seen": [], "colour": 1}}}', "colour"),
        ('{"schema": 7}', "layout 7 where 1 is read"),
    ],
)
def test_a_file_that_is_no_status_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=said):
        read_status(tmp_path / "x.json")


def test_a_file_that_cannot_be_written_is_the_user_s_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_status({}, tmp_path / "no" / "such" / "folder.json")
    assert read_status(tmp_path / "nothing.json") == {}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The code of two architectures, where the first is built on the second."""
    for name, text in {
        "models/big/modeling.py": "from scratch_models.models.small.modeling import Layer",
        "models/small/modeling.py": "import torch",
        "models/other/modeling.py": "",
        "layers/attention.py": "",
        "hub/mapping.py": "",
        "parity/check.py": "",
    }.items():
        file = tmp_path / "scratch_models" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("models/big/modeling.py", True),
        ("models/small/modeling.py", True),
        ("layers/attention.py", True),
        ("hub/mapping.py", True),
        ("models/other/modeling.py", False),
        ("parity/check.py", False),
    ],
)
def test_the_code_of_an_architecture_is_what_it_is_built_from(
    file: str, changes: bool, code: Path
) -> None:
    big = Architecture("big", "Big", "", {}, package="scratch_models.models.big")
    before = code_of(big, code)
    assert code_of(big, code) == before
    with (code / "scratch_models" / file).open("a") as stream:
        stream.write("\n# changed")
    assert (code_of(big, code) != before) == changes


def test_the_status_comes_with_the_package() -> None:
    import tomllib

    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["toolkit"]
    package = STATUS_FILE.parent
    assert STATUS_FILE in [file for pattern in patterns for file in package.glob(pattern)]

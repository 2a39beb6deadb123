"""`toolkit claims`: what it keeps, merges, refuses and says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolkit.cli
from toolkit.claims import registry
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Cell, Figure, Paragraph, Table

Command = Callable[..., int]


def made_up(number: int, name: str) -> Claim:
    """A claim whose finding is the seed."""

    def measure(measuring: Measuring) -> Finding:
        measuring.advance(0.5, "half")
        seed = measuring.seed
        if seed == 14:
            raise KeyboardInterrupt
        verdict = Verdict.FAILS if seed == 7 else Verdict.HOLDS
        figure = Figure(
            "curve", lambda: line_plot([Series("a", [1, 2], [seed, 3])], "x", "y"),
            f"a line of claim {number}", "Read it.",
        )  # fmt: skip
        table = Table(["seed", "squared"], [[str(seed), Cell(str(seed**2), detail="exact")]])
        return Finding(
            verdict, f"The seed is {seed}.", {"size": "tiny"},
            [figure, table, Paragraph("small print", "caption")], {"seed": seed}, f"seed {seed}",
        )  # fmt: skip

    return Claim(number, name, f"Claim {name} is true", "A paper", "By its seed.", measure)


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Two made up claims, and the command in an empty folder; returns its status."""
    monkeypatch.setattr(registry, "MODULES", {1: "first", 2: "second"})
    monkeypatch.setattr("toolkit.claims.report.MODULES", {1: "first", 2: "second"})
    for number, name in registry.MODULES.items():
        module = ModuleType(f"toolkit.claims.{name}")
        module.CLAIM = made_up(number, name)  # type: ignore[attr-defined]
        monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        with pytest.raises(SystemExit) as caught:
            toolkit.cli.main(["claims", *words])
        return int(caught.value.code or 0)

    return run


def report(folder: str = "results/claims") -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(folder, "report.json").read_text("utf-8"))
    return content


def test_the_report_of_all_claims(claims: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert claims("--seed", "3") == 0
    said = capsys.readouterr().out
    assert "Claim first is true" in said
    assert "Holds here" in said
    assert "The seed is 3." in said
    found = report()
    assert [one["number"] for one in found["claims"]] == [1, 2]
    assert found["pictures"] == ["first_curve.svg", "second_curve.svg"]
    one = found["claims"][0]
    assert one["finding"]["data"] == {"seed": 3}
    assert one["finding"]["verdict"] == "holds"
    assert one["seed"] == 3
    assert one["command"] == "toolkit claims 1 --seed 3"
    assert found["command"] == "toolkit claims --seed 3"
    assert {"packages", "processor", "git", "threads"} <= set(one["environment"])
    page = Path("results/claims/report.html").read_text("utf-8")
    assert page.count("<svg") == 2
    text = Path("results/claims/report.md").read_text("utf-8")
    assert "2 claims were measured: 2 hold here." in text
    assert "not measured yet" not in text
    assert text.index("**holds here**") < text.index("## 1")


def test_a_claim_measured_alone_keeps_the_others(claims: Command) -> None:
    assert claims("--seed", "3") == 0
    before = report()
    picture = Path("results/claims/first_curve.svg").read_bytes()
    assert claims("2", "--seed", "7") == 0  # a claim that does not hold is no error
    after = report()
    assert after["claims"][0] == before["claims"][0]
    assert Path("results/claims/first_curve.svg").read_bytes() == picture
    assert after["claims"][1]["seed"] == 7
    # no single command makes both again
    assert after["command"] == "toolkit claims 1 --seed 3\ntoolkit claims 2 --seed 7"
    text = Path("results/claims/report.md").read_text("utf-8")
    assert "1 holds here and 1 does not hold here" in text
    assert "| 3 | 9 *exact*" in text or "| 3 | 9" in text  # the table of the claim that was kept
    assert "![a line of claim 1](first_curve.svg)" in text


def test_what_is_missing_is_said(claims: Command) -> None:
    assert claims("2") == 0
    text = Path("results/claims/report.md").read_text("utf-8")
    assert "Claim 1 not measured yet." in text


def test_a_claim_that_fails_costs_no_other(
    claims: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = registry.load(1)

    def broken(measuring: Measuring) -> Finding:
        raise MemoryError("no room\nfor this")

    module = ModuleType("toolkit.claims.first")
    module.CLAIM = Claim(  # type: ignore[attr-defined]
        1, first.name, first.statement, first.source, first.test, broken
    )
    monkeypatch.setitem(__import__("sys").modules, "toolkit.claims.first", module)
    assert claims() == 1
    captured = capsys.readouterr()
    assert "error: claim 1: MemoryError: no room\n" in captured.err
    assert "Traceback" in captured.err  # a fault of ours is not hidden
    one, other = report()["claims"]
    assert one["finding"] is None
    assert one["error"] == "MemoryError: no room"
    assert other["finding"]["verdict"] == "holds"
    text = Path("results/claims/report.md").read_text("utf-8")
    assert "not measured: error" in text
    assert "claim 1 was not measured: MemoryError: no room" in text
    assert claims("2") == 0  # the error stays in the report, and is none of this run's


def test_ctrl_c_keeps_what_was_measured(
    claims: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert claims("1") == 0
    assert claims("2", "--seed", "14") == 130
    assert [one["number"] for one in report()["claims"]] == [1]
    assert "Traceback" not in capsys.readouterr().err


def test_quick_findings_have_a_folder_of_their_own(claims: Command) -> None:
    assert claims("--quick") == 0
    found = report("results/runs/claims-quick")
    assert all(one["quick"] for one in found["claims"])
    assert not Path("results/claims").exists()
    text = Path("results/runs/claims-quick/report.md").read_text("utf-8")
    assert "worth nothing" in text
    assert found["claims"][1]["command"] == "toolkit claims 2 --seed 1 --quick"


@pytest.mark.parametrize(("first", "then"), [((), ("--quick",)), (("--quick",), ())])
def test_quick_and_real_findings_are_not_mixed(
    claims: Command,
    first: tuple[str, ...],
    then: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert claims("1", *first, "--output", "mine") == 0
    before = report("mine")
    assert claims("2", *then, "--output", "mine") == 2
    assert "do not go into one report" in capsys.readouterr().err
    assert report("mine") == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("3",), "no claim '3': they are numbered 1 to 2"),
        (("0",), "no claim '0'"),
        (("first",), "no claim 'first'"),
        (("1", "²"), "no claim '²'"),
        (("--threads", "0"), "--threads 0: expected at least 1."),
        (("--seed", "-1"), "--seed -1: expected 0 to"),
        (("--json", "no/such/folder/x.json"), "expected a file in a folder that exists"),
        (("--output", "file"), "--output file: cannot make the folder"),
        (("--output", "other"), "other/report.json was not written by toolkit claims"),
        (("--output", "cut"), "cut/report.json cannot be read"),
        (("--output", "odd"), "odd/report.json is damaged"),
    ],
)
def test_mistakes(
    claims: Command, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("no folder")
    odd = {"schema_version": 1, "report": "claims", "claims": [{"number": 1}]}
    for name, content in (
        ("other", '{"schema_version": 1}'),
        ("cut", "{"),
        ("odd", json.dumps(odd)),
    ):
        Path(name).mkdir()
        Path(name, "report.json").write_text(content)
    assert claims(*words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not Path("results").exists()


def test_a_picture_that_is_gone(claims: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert claims("1") == 0
    Path("results/claims/first_curve.svg").unlink()
    assert claims("2") == 2
    assert "first_curve.svg, a picture of an earlier finding" in capsys.readouterr().err


def test_json_alone(claims: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert claims("1", "--json", "-") == 0
    [one] = json.loads(capsys.readouterr().out)
    assert one["finding"]["sentence"] == "The seed is 1."  # rules were settled with 0


def test_list_measures_nothing(claims: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert claims("--list") == 0
    said = capsys.readouterr().out
    assert "1. Claim first is true" in said
    assert "Decided by: By its seed." in said
    assert not Path("results").exists()
    assert claims("--list", "2", "--json", "-") == 0
    [one] = json.loads(capsys.readouterr().out)
    assert one == {
        "number": 2, "name": "second", "statement": "Claim second is true", "source": "A paper",
        "test": "By its seed.",
    }  # fmt: skip

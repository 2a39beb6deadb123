"""How a recipe ends: 0, a message and 2, 130, or the traceback of a bug."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from toolkit.config import Invocation, RunConfig
from toolkit.entry import run_recipe
from toolkit.errors import RecipeEnds, UserError


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    def run(outcome: BaseException | None, *argv: str) -> tuple[int, str, list[Any]]:
        monkeypatch.setattr(sys, "argv", ["recipe.py", *argv])
        seen: list[Invocation[RunConfig]] = []

        def main(invocation: Invocation[RunConfig]) -> None:
            seen.append(invocation)
            if outcome is not None:
                raise outcome

        status = 0
        try:
            run_recipe(main, RunConfig, str(tmp_path / "recipe.py"))
        except SystemExit as end:
            status = int(end.code or 0)
        return status, capsys.readouterr().err, seen

    return run


def test_done(end: Any) -> None:
    status, said, seen = end(None, "--seed", "3")
    assert (status, said) == (0, "")
    assert seen[0].config.seed == 3
    assert seen[0].resume_from is None


def test_a_users_mistake(end: Any) -> None:
    assert end(UserError("data.csv, row 3: no [label]"))[:2] == (
        2, "error: data.csv, row 3: no [label]\n",
    )  # fmt: skip


def test_a_mistake_on_the_command_line_does_not_start_the_recipe(end: Any) -> None:
    status, said, seen = end(None, "--sed", "3")
    assert status == 2
    assert said == "error: unknown option '--sed'. Did you mean '--seed'?\n"
    assert seen == []


def test_interrupted(end: Any) -> None:
    status, said, _ = end(KeyboardInterrupt())
    assert status == 130
    assert said.startswith("error: interrupted")


def test_a_bug_keeps_its_traceback(end: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        end(ZeroDivisionError())


def test_which_process_speaks_is_said(end: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert end(UserError("x"))[1] == "error (process 1): x\n"


def test_a_dry_run_ends_well(end: Any) -> None:
    status, said, seen = end(RecipeEnds(), "--dry-run")
    assert (status, said) == (0, "")
    assert seen[0].config.dry_run

"""The command `toolkit`: help without waiting, mistakes in one line."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import toolkit.cli
from toolkit.errors import UserError


def status_of(*argv: str) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(list(argv))
    return int(caught.value.code or 0)


def test_help_lists_the_commands_and_imports_no_large_library() -> None:
    code = (
        "import sys, toolkit.cli\n"
        "try: toolkit.cli.main(['--help'])\n"
        "except SystemExit as end: print('status', end.code)\n"
        "print('large', sorted({'torch', 'transformers', 'datasets', 'sklearn', 'matplotlib'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, summary in toolkit.cli.COMMANDS.items():
        assert name in done.stdout
        assert summary.split(":")[0] in " ".join(done.stdout.split())
    assert "status 0" in done.stdout
    assert "large []" in done.stdout


@pytest.mark.parametrize("name", toolkit.cli.COMMANDS)
def test_every_command_has_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(name, "--help") == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: toolkit {name}")
    assert len(said.splitlines()) > 5


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("comparre",),
        ("--verbose", "compare"),
        ("experiment",),
        ("experiment", "x.yaml", "--fre"),
    ],
)
def test_what_is_not_a_command_is_refused(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(*argv) == 2
    assert "usage: toolkit" in capsys.readouterr().err


def fake_command(monkeypatch: pytest.MonkeyPatch, error: BaseException | int) -> None:
    command = ModuleType("toolkit.commands.fake")
    command.HELP = "A fake."  # type: ignore[attr-defined]
    command.configure = lambda parser: None  # type: ignore[attr-defined]

    def run(args: object) -> int:
        if isinstance(error, BaseException):
            raise error
        return error

    command.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toolkit.commands.fake", command)
    monkeypatch.setitem(toolkit.cli.COMMANDS, "fake", "a fake")


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(0, 0), (1, 1), (UserError("no [such] file"), 2), (KeyboardInterrupt(), 130)],
)
def test_statuses(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: BaseException | int,
    status: int,
) -> None:
    fake_command(monkeypatch, outcome)
    assert status_of("fake") == status
    said = capsys.readouterr().err
    assert "Traceback" not in said
    if status == 2:
        assert said == "error: no [such] file\n"


def test_our_own_bugs_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_command(monkeypatch, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        toolkit.cli.main(["fake"])


def test_a_missing_experiment_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("experiment", "no/such.yaml") == 2
    assert capsys.readouterr().err.startswith("error: no/such.yaml: no such file")

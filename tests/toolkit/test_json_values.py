"""Values and places of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolkit.errors import UserError
from toolkit.json_values import check_writable, write_json


def test_places_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (None, "-", "new.json", str(tmp_path / "new.json")):
        check_writable(path)
    assert list(tmp_path.iterdir()) == []  # nothing is written by looking


@pytest.mark.parametrize("path", ["", ".", "no/such.json"])
def test_places_that_cannot(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="expected a file in a folder that exists"):
        check_writable(path)


def test_a_file_without_the_right_to_write(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    file = tmp_path / "a.json"
    file.touch(mode=0o444)
    with pytest.raises(UserError, match="no right to write"):
        check_writable(str(file))


def test_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": [float("nan"), 1.5], "文": "文"}, "-")
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": [None, 1.5], "文": "文"}
    assert "文" in out

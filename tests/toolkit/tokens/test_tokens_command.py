"""`toolkit tokens`: tables, JSON, where texts come from, exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import toolkit.cli
from toolkit.commands import tokens as command


def status_of(*argv: str) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(["tokens", *argv])
    return int(caught.value.code or 0)


@pytest.fixture
def bpe_folder(byte_bpe: Any, tmp_path: Path) -> str:
    byte_bpe.save_pretrained(tmp_path / "bpe")
    return str(tmp_path / "bpe")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")


def test_side_by_side(
    wordpiece_folder: Path, bpe_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(str(wordpiece_folder), "unhappiness", "他書", "--against", bpe_folder) == 0
    said = capsys.readouterr().out
    assert "WordPiece, 12 tokens" in said
    assert "byte-level BPE, 259 tokens" in " ".join(said.split())  # wherever lines are broken
    assert "un | ##happi | ##ness" in said
    assert "⟨E6⟩" in said  # 書 is E6 9B B8
    assert "書 (unknown)" in said
    assert "unknown: 書." in said
    lines = said[said.index("“他書”") :].splitlines()[1:]
    assert lines[0].startswith("┏")
    end = next(place for place, line in enumerate(lines) if line.startswith("└"))
    table = lines[: end + 1]  # a Chinese character is two cells wide
    assert len(table) >= 11
    assert len({cell_len(line) for line in table}) == 1


def test_everything_as_json(
    wordpiece_folder: Path, bpe_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(str(wordpiece_folder), "--json", "--against", bpe_folder, "他 把") == 0
    found = json.loads(capsys.readouterr().out)
    assert [t["kind"] for t in found["tokenizers"]] == ["WordPiece", "byte-level BPE"]
    [text] = found["texts"]
    first, second = text["cuts"]
    assert (text["text"], first["tokens_of_text"], second["tokens_of_text"]) == ("他 把", 2, 7)
    assert first["tokens"][1] == {
        "token": "他", "shown": "他", "id": 8, "role": "text", "start": 0, "end": 1, "text": "他",
        "split": False,
    }  # fmt: skip
    assert (first["given_back"], second["given_back"]) == (True, True)
    assert first["tokens_a_character"] == 1.0


def test_texts_from_a_file_and_from_standard_input(
    wordpiece_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "texts.txt"
    file.write_bytes("\ufeffun\r\n\n他把\n".encode())

    def texts(*argv: str) -> list[str]:
        assert status_of(str(wordpiece_folder), "--alone", "--json", *argv) == 0
        return [text["text"] for text in json.loads(capsys.readouterr().out)["texts"]]

    assert texts("--file", str(file)) == ["un", "他把"]
    file.write_bytes("un\u2028happy\r\n他\x0c把\n".encode())  # a line ends where a line ends
    assert texts("--file", str(file)) == ["un\u2028happy", "他\x0c把"]
    for argv in (["-"], ["--file", "-"]):
        stream = io.TextIOWrapper(io.BytesIO("书\n".encode()), encoding="ascii")
        monkeypatch.setattr(sys, "stdin", stream)
        assert texts(*argv) == ["书"]
    assert texts() == list(command.EXAMPLES)


def test_a_tokenizer_alone_is_shown_beside_those_of_another_kind(
    wordpiece: Any, byte_bpe: Any, unigram: Any
) -> None:
    from toolkit.tokens.cutting import Cutter

    others = [command._of_another_kind(Cutter("x", t)) for t in (wordpiece, byte_bpe, unigram)]
    assert others == [["demo:byte-bpe"], ["demo:wordpiece"], ["demo:wordpiece", "demo:byte-bpe"]]


def test_wrong_input(
    wordpiece_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(said: str, *argv: str) -> None:
        assert status_of(str(wordpiece_folder), "--alone", *argv) == 2
        assert said in capsys.readouterr().err

    refused("the text is empty", "")
    refused("not both", "a", "--file", "b")
    refused("cannot be read: No such file", "--file", str(tmp_path / "no"))
    (tmp_path / "empty").write_text("\n \n")
    refused("holds no text", "--file", str(tmp_path / "empty"))
    (tmp_path / "gbk").write_bytes("他".encode("gbk"))
    refused("is no UTF-8 (byte 1)", "--file", str(tmp_path / "gbk"))


def test_long_texts_are_cut_short_on_the_terminal(
    wordpiece_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(str(wordpiece_folder), "--alone", "他" * 200) == 0
    said = capsys.readouterr().out
    assert "the first 60 of 202 tokens are shown" in said
    rows = [line for line in said.splitlines() if line.startswith("│ 他")]
    assert len(rows) == 59  # and [CLS]

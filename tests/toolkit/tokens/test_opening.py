"""Tokenizers of runs, models, folders and files, and what is said where there is none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import UserError
from toolkit.tokens.opening import open_tokenizer


def test_a_vocabulary_file_alone_is_enough(
    wordpiece_folder: Path, byte_bpe: Any, tmp_path: Path
) -> None:
    assert open_tokenizer(str(wordpiece_folder)).tokenize("unhappiness 他") == [
        "un", "##happi", "##ness", "他",
    ]  # fmt: skip
    byte_bpe.save_pretrained(tmp_path / "saved")
    model = byte_bpe.backend_tokenizer.model
    (tmp_path / "files").mkdir()
    model.save(str(tmp_path / "files"))  # vocab.json, merges.txt
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(tmp_path / "saved" / "tokenizer.json", alone)
    for name in ("saved", "files", "alone", "alone/tokenizer.json"):
        assert open_tokenizer(str(tmp_path / name)).tokenize("un a") == ["un", "Ġa"]


def test_the_tokenizer_of_a_run(bert_run: Path) -> None:
    model = open_tokenizer(str(bert_run / "model"))
    assert open_tokenizer(str(bert_run)).get_vocab() == model.get_vocab()


def test_what_holds_no_tokenizer(tmp_path: Path, wordpiece_folder: Path) -> None:
    def refused(name: str | Path, said: str) -> None:
        with pytest.raises(UserError, match=said):
            open_tokenizer(str(name))

    refused(tmp_path, "holds no tokenizer: expected one of tokenizer.json")
    shutil.copytree(wordpiece_folder, tmp_path / "inside")
    refused(tmp_path, r"Did you mean .*inside\?")
    refused(tmp_path / "insid", r"no such folder: .* Did you mean inside\?")
    refused("", "no such folder")
    refused("someone/something", "the Hub cannot be asked")
    refused("demo:byte-bp", r"Did you mean demo:byte-bpe\?")
    note = tmp_path / "note.txt"
    note.write_text("a")
    refused(note, "is a file; give a tokenizer.json")
    for content in ("", "{}", "[1]"):
        (tmp_path / "tokenizer.json").write_text(content)
        refused(tmp_path / "tokenizer.json", "is no tokenizer.json that can be read")
        refused(tmp_path, "its tokenizer cannot be read")


def test_runs_without_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text("{}")
    with pytest.raises(UserError, match=r"not complete.*--resume"):
        open_tokenizer(str(tmp_path))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tfidf.joblib").touch()
    with pytest.raises(UserError, match="TF-IDF counts pieces"):
        open_tokenizer(str(tmp_path))

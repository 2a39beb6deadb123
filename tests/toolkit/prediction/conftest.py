"""Tiny models with heads, and the command called as the command line does."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

LETTERS = "好棒佳妙赞美喜优坏差烂糟臭慢脏劣今天酒店房间服务早餐书本电脑东西"


@pytest.fixture(scope="session")
def classifier(
    tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]
) -> Path:
    """A BERT that labels texts 差, 中 or 好, by chance."""
    return write_tiny_bert(
        tmp_path_factory.mktemp("models") / "classifier",
        "BertForSequenceClassification",
        id2label={0: "差", 1: "中", 2: "好"},
        label2id={"差": 0, "中": 1, "好": 2},
    )


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]) -> Path:
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    return write_tiny_bert(
        tmp_path_factory.mktemp("models") / "tagger",
        "BertForTokenClassification",
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
    )


@dataclass(frozen=True)
class Finished:
    """How the command ended."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Its only error message."""
        errors = [line for line in self.err.splitlines() if line.startswith("error")]
        assert self.status == 2, self.err
        assert len(errors) == 1, self.err
        return self.err[self.err.index("error") :]


@pytest.fixture
def toolkit_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Finished]:
    """Call `toolkit` in this process: `toolkit_command("predict", model, ..., stdin=b"...")`."""

    def run(*argv: object, stdin: bytes | None = None) -> Finished:
        import toolkit.cli

        if stdin is not None:
            stream: Any = SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False)
            monkeypatch.setattr(sys, "stdin", stream)
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            toolkit.cli.main([str(word) for word in argv])
        captured = capsys.readouterr()
        return Finished(int(caught.value.code or 0), captured.out, captured.err)

    return run

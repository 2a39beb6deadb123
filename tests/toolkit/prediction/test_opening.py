"""Options that a model cannot use are refused, whatever the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import UserError
from toolkit.prediction import Options
from toolkit.prediction.opening import open_source
from toolkit.prediction.source import GENERATION, IMAGE, QUESTIONS, TAGS, TEXT, TRANSLATION, Source

GIVEN: dict[str, Any] = {
    "implementation": "hf", "device": "cpu", "batch_size": 3, "batch_tokens": 99, "max_length": 9,
    "max_new_tokens": 9, "beams": 2, "prefix": "x", "source_language": "en",
    "target_language": "zh", "temperature": 0.5, "top_p": 0.5, "seed": 1,
    "no_answer_threshold": 0.5, "skip_damaged": True,
}  # fmt: skip
ALL = {"implementation", "device", "batch_size"}
READ = ALL | {"batch_tokens", "max_length"}
WRITTEN = {"max_new_tokens", "beams", "prefix", "source_language", "target_language"}
USED = {
    TEXT: READ,
    TAGS: READ,
    QUESTIONS: READ | {"no_answer_threshold"},
    IMAGE: ALL | {"skip_damaged"},
    TRANSLATION: READ | WRITTEN,
    GENERATION: ALL | {"batch_tokens", "max_new_tokens", "temperature"},
}


class Opened(Exception):  # noqa: N818
    """The options were taken."""


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise Opened

    monkeypatch.setattr("toolkit.prediction.opening.import_module", fail)


@pytest.mark.usefixtures("stop")
@pytest.mark.parametrize("task", USED)
def test_options_of_every_task(task: str) -> None:
    assert set(GIVEN) == set(Options.__dataclass_fields__)
    source = Source("it", "nowhere", task)
    for name, value in GIVEN.items():
        flag = "--" + name.replace("_", "-")
        expected: type[Exception] = Opened if name in USED[task] else UserError
        with pytest.raises(expected, match=None if expected is Opened else f"^{flag} is for .*out"):
            open_source(source, Options(**{name: value}))


@pytest.mark.usefixtures("stop")
def test_options_of_draws() -> None:
    source = Source("it", "nowhere", GENERATION)
    for name in ("top_p", "seed"):
        with pytest.raises(UserError, match="tokens that are drawn; at --temperature 0 none are"):
            open_source(source, Options(**{name: GIVEN[name]}))
    with pytest.raises(Opened):
        open_source(source, Options(temperature=0.5, top_p=0.5, seed=1))


@pytest.mark.usefixtures("stop")
def test_options_of_tfidf(tmp_path: Path) -> None:
    (tmp_path / "tfidf.joblib").write_bytes(b"")
    source = Source("it", str(tmp_path), TEXT)
    for name in READ - {"device"}:
        with pytest.raises(UserError, match=f"--{name.replace('_', '-')} is for neural networks"):
            open_source(source, Options(**{name: GIVEN[name]}))
    with pytest.raises(UserError, match="--device is for neural"):
        open_source(source, Options(device="cuda"))
    for options in (Options(), Options(device="cpu")):
        with pytest.raises(Opened):
            open_source(source, options)

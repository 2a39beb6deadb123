"""`toolkit data`: exit codes, options that are the recipes' settings, what is printed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

import toolkit.cli
from toolkit.commands import data as command
from toolkit.data.inspection.tasks import TASKS


def status_of(*argv: str) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(["data", *argv])
    return int(caught.value.code or 0)


@pytest.fixture
def reviews(tmp_path: Path, write_reviews: Callable[..., Path]) -> Path:
    return write_reviews(tmp_path / "reviews.csv", 40)


def test_every_setting_of_a_recipes_data_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("check", "--help") == 0
    said = capsys.readouterr().out
    parser = argparse.ArgumentParser()
    command.configure(parser)
    for task in TASKS.values():
        for field in fields(task.settings):
            if field.name != "dataset":
                assert f"--{field.name.replace('_', '-')} " in f"{said} ".replace("\n", " ")
    parsed = parser.parse_args(
        ["preview", "x", "--text_column", "a", "--label-column", "b", "--split-seed", "3",
         "--keep-leaks", "--scheme", "bmes"]
    )  # fmt: skip
    assert command._settings(parsed) == {
        "text_column": "a", "label_column": "b", "split_seed": 3, "keep_leaks": True,
        "scheme": "bmes",
    }  # fmt: skip


def test_good_data(reviews: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("check", str(reviews)) == 0
    said = capsys.readouterr().out
    assert "text-classification (by columns text, label)" in said.replace("\n", " ")
    for word in ("csv", "utf-8", "comma", "负面", "正面", "made"):
        assert word in said
    assert status_of("check", str(reviews), "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["summary"]["sizes"] == {"train": 32, "validation": 4, "test": 4}
    assert facts["label_names"] == ["正面", "负面"]


def test_refused_data_have_the_recipes_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n好,早餐,1\n", encoding="utf-8")
    assert status_of("check", str(path)) == 1
    said = capsys.readouterr()
    assert f"error: {path}, line 2: 3 fields, expected 2" in said.err
    assert "utf-8" in said.out
    assert status_of("check", str(path), "--json") == 1
    assert json.loads(capsys.readouterr().out)["refused"] in said.err
    assert status_of("preview", str(path)) == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("check", "nowhere.csv"), "no such file or folder: nowhere.csv"),
        (("check",), "name a data set, or --source_file and --target_file"),
        (("check", "REVIEWS", "--max-length", "9"), "add --model"),
        (("check", "REVIEWS", "--encoding", "none"), "no such encoding"),
        (("check", "REVIEWS", "--model", "no/where/at/all"), "no/where/at/all"),
        (("check", "REVIEWS", "--task", "translation", "--image-size", "4"), "no setting of"),
        (("check", "REVIEWS", "--lable-column", "x"), "unrecognized arguments"),
        (("preview", "REVIEWS", "--rows", "0"), "expected 1 or more"),
        (("look", "REVIEWS"), "invalid choice"),
    ],
)
def test_wrong_usage(
    argv: tuple[str, ...], message: str, reviews: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(reviews) if word == "REVIEWS" else word for word in argv]
    assert status_of(*words) == 2
    assert message in capsys.readouterr().err


def test_preview_shows_what_cannot_be_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    rows = [f'"第{n}\u3000条\n好 ",{n % 2}' for n in range(12)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert status_of("preview", str(path), "--rows", "1") == 0
    said = capsys.readouterr().out
    assert said.count("⟨U+3000⟩条⏎好␣") == 3
    assert status_of("preview", str(path), "--rows", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(rows) for rows in found["rows"].values()] == [2, 2, 2]
    assert all(row["text"].endswith("\u3000条\n好 ") for row in found["rows"]["train"])

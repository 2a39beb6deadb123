"""Parallel texts: read line by line together, split without shared sources, refused by place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

import toolkit.data.sources
from toolkit.data.translation_config import TranslationDataConfig
from toolkit.errors import UserError

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, *lines: str, end: str = "\n") -> Path:
        content = ("\n".join(lines) + end).encode()
        file = tmp_path / name
        file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return file

    return write


def numbered(word: str, count: int, first: int = 0) -> list[str]:
    return [f"{word} {i}" for i in range(first, first + count)]


def test_a_folder_of_parallel_files(write: Write, tmp_path: Path) -> None:
    for split, first, count in (("train", 0, 30), ("val", 30, 4), ("test_2016_flickr", 40, 5)):
        write(f"{split}.en.gz", *numbered("cat", count, first))
        write(f"{split}.de", *numbered("Katze", count, first))
    write("notes.txt", "not a pair")
    data = TranslationDataConfig(dataset=str(tmp_path), target="de").load_data()
    assert [len(data.train), len(data.validation), len(data.test)] == [30, 4, 5]
    assert data.test["source"][:] == numbered("cat", 5, 40)
    assert data.test["target"][:] == numbered("Katze", 5, 40)
    for row in data.train:
        assert row["source"].split()[1] == row["target"].split()[1]
    assert len(set(data.train["id"])) == 30
    assert data.summary["sizes"] == {"train": 30, "validation": 4, "test": 5}


def test_several_test_files_need_a_choice(write: Write, tmp_path: Path) -> None:
    for split in ("train", "dev", "test_2016", "test_2017"):
        for language in ("en", "zh"):
            write(f"{split}.{language}", *numbered(f"{split} {language}", 12))
    settings = TranslationDataConfig(dataset=str(tmp_path))
    with pytest.raises(UserError, match=r"several test files \(test_2016, test_2017\).*test_name"):
        settings.load_data()
    settings.test_name = "test_2017"
    assert settings.load_data().test["source"][0] == "test_2017 en 0"
    settings.test_name = "test_2018"
    with pytest.raises(UserError, match="test_2018"):
        settings.load_data()
    (tmp_path / "dev.zh").unlink()
    settings.test_name = "test_2016"
    with pytest.raises(UserError, match=r"dev\.en has no counterpart dev\.zh"):
        settings.load_data()


def test_files_of_different_lengths_are_refused_with_both_counts(write: Write) -> None:
    files = {"source_file": write("a.zh", *"一二三四五六"), "target_file": write("a.en", *"12345")}
    with pytest.raises(UserError, match=r"a\.zh has 6 lines but .*a\.en has 5"):
        TranslationDataConfig(**{k: str(v) for k, v in files.items()}).load_data()


def test_the_place_where_files_part_is_told_by_their_lengths(write: Write) -> None:
    sources = ["好" * (3 + 7 * number % 40) for number in range(60)]
    targets = ["good " * len(source) for source in sources]
    del targets[23]
    files = {"source_file": write("a.zh", *sources), "target_file": write("a.en", *targets)}
    with pytest.raises(UserError, match=r"counterpart is about line 24 of .*a\.zh: '好"):
        TranslationDataConfig(**{k: str(v) for k, v in files.items()}).load_data()


def test_a_last_line_without_an_end_and_windows_ends_count(write: Write) -> None:
    source = write("a.en", *numbered("cat", 20), end="")
    target = write("a.zh", *(f"猫 {i}\r" for i in range(20)))
    data = TranslationDataConfig(source_file=str(source), target_file=str(target)).load_data()
    assert data.summary["rows_read"] == {"train": 20}
    assert all(text.startswith("猫") and text == text.strip() for text in data.train["target"][:])


def test_pairs_without_a_side_are_dropped_from_training_together(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    sources, targets = numbered("cat", 23), numbered("猫", 23)
    sources[1], targets[2], sources[4] = "", "\u3000", "  "
    files = {"source_file": write("a.en", *sources), "target_file": write("a.zh", *targets)}
    data = TranslationDataConfig(**{k: str(v) for k, v in files.items()}).load_data()
    said = capsys.readouterr().err
    assert "left out: 3 pairs without source or target" in said
    assert "line 2" in said
    assert sum(data.summary["sizes"].values()) == 20
    assert data.summary["dropped_without_source_or_target"] == {"train": 3}
    for split in (data.train, data.validation, data.test):
        for row in split:
            assert row["source"].split()[1] == row["target"].split()[1]


def test_a_held_out_pair_without_a_side_is_refused(write: Write) -> None:
    settings = TranslationDataConfig(
        source_file=str(write("a.en", *numbered("cat", 9))),
        target_file=str(write("a.zh", *numbered("猫", 9))),
        test_source_file=str(write("t.en", "one", "two", "three")),
        test_target_file=str(write("t.zh", "一", "", "三")),
    )
    with pytest.raises(UserError, match=r"t\.en and t\.zh, line 2: no target text. 1 of 3 test"):
        settings.load_data()
    settings.test_target_file = None
    with pytest.raises(UserError, match=r"--test_source_file and --test_target_file belong"):
        settings.load_data()


def test_no_source_is_on_both_sides(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [*numbered("cat", 30), "Cat  3", "CAT 4"]
    files = {
        "source_file": str(write("a.en", *sources)),
        "target_file": str(write("a.zh", *map(str, range(32)))),
        "test_source_file": str(write("t.en", "cat 3", "dog 1")),
        "test_target_file": str(write("t.zh", "猫三", "狗一")),
    }
    data = TranslationDataConfig(**files).load_data()
    assert "2 training pairs removed" in capsys.readouterr().err
    assert data.summary["held_out_sources_found_in_training"] == {"test": 1}
    assert data.summary["held_out_sources_left_in_training"] == {"validation": 0, "test": 0}
    split_of = {}
    for name in ("train", "validation", "test"):
        for text in getattr(data, name)["source"][:]:
            assert split_of.setdefault(text.lower(), name) == name
    kept = TranslationDataConfig(**files, keep_leaks=True).load_data()
    assert kept.summary["held_out_sources_left_in_training"]["test"] == 1


@pytest.mark.slow
def test_demo_dates_never_train_on_a_test_source() -> None:
    data = TranslationDataConfig().load_data()
    assert [len(data.validation), len(data.test)] == [1000, 2000]
    assert len(data.train) > 20_000
    assert not set(data.train["source"][:]) & set(data.test["source"][:])
    assert data.summary["held_out_sources_left_in_training"] == {"validation": 0, "test": 0}
    again = TranslationDataConfig(train_size=500, validation_size=50, test_size=60).load_data()
    assert [len(again.train), len(again.validation), len(again.test)] == [500, 50, 60]
    with pytest.raises(UserError, match="not into 'ja'"):
        TranslationDataConfig(target="ja").load_data()


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        (["en\tzh", *(f"cat {i}\t猫 {i}" for i in range(20))], {}),
        (["Source\tTarget", *(f"cat {i}\t猫 {i}" for i in range(20))], {}),
        (["id\tEnglisch\tChinesisch", *(f"{i}\tcat {i}\t猫 {i}" for i in range(20))],
         {"source_column": "Englisch", "target_column": "Chinesisch"}),
        ([f"cat {i}\t猫 {i}\tsomeone" for i in range(20)],
         {"source_column": "1", "target_column": "2"}),
    ],
)  # fmt: skip
def test_tables(write: Write, content: list[str], settings: dict[str, Any]) -> None:
    file = write("pairs.tsv.gz", *content)
    data = TranslationDataConfig(dataset=str(file), **settings).load_data()
    rows = [row for split in (data.train, data.validation, data.test) for row in split]
    assert sorted(row["source"] for row in rows) == sorted(f"cat {i}" for i in range(20))
    assert all(row["target"] == row["source"].replace("cat", "猫") for row in rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"which column holds the source texts.*--source_column"),
        ({"source_column": "one", "target_column": "too"}, "no column 'too'.*one, two"),
        ({"source_column": "1", "target_column": "3"}, "no column 3"),
    ],
)
def test_tables_whose_columns_are_not_known(
    write: Write, settings: dict[str, Any], message: str
) -> None:
    file = write("pairs.csv", "one,two", "a,b", "c,d", "e,f")
    with pytest.raises(UserError, match=message):
        TranslationDataConfig(dataset=str(file), **settings).load_data()


def test_translations_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"en": f"cat {i}", "de": f"Katze {i}"} for i in range(12)]
    splits = {
        "train": datasets.Dataset.from_dict({"translation": rows[:8]}),
        "validation": datasets.Dataset.from_dict({"translation": rows[8:10]}),
        "test": datasets.Dataset.from_dict({"translation": rows[10:]}),
    }
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *name: asked.append(name) or splits)
    monkeypatch.setattr(toolkit.data.sources, "hub_failure", lambda: None)
    settings = TranslationDataConfig(dataset="someone/pairs", target="de", hub_config="de-en")
    data = settings.load_data()
    assert asked == [("someone/pairs", "de-en")]
    assert data.test["target"][:] == ["Katze 10", "Katze 11"]
    with pytest.raises(UserError, match="no 'fr'; its languages: de, en"):
        TranslationDataConfig(dataset="someone/pairs", target="fr").load_data()


def test_cells_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(json.dumps({"en": "cat", "zh": v}) for v in ("猫", 3)))
    with pytest.raises(UserError, match=r"pairs\.jsonl, line 2: zh is 3, expected a text"):
        TranslationDataConfig(dataset=str(file)).load_data()

"""What is said of a data set before training is what a recipe makes of it."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from toolkit.data.inspection.check import balance, describe, lengths
from toolkit.data.inspection.preview import first_rows
from toolkit.data.inspection.reading import read
from toolkit.data.inspection.tasks import TASKS, UsageError, choose_task
from toolkit.data.inspection.terminal import print_check
from toolkit.data.inspection.tokens import Tokenizing
from toolkit.data.inspection.visible import visible
from toolkit.data.text_classification import load_text_classification

Write = Callable[[str, str], Path]
REVIEWS = [f"{word}第{number}条" for number in range(10) for word in ("好", "坏")]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


def write_csv(path: Path, rows: list[tuple[Any, ...]], header: tuple[str, ...]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def labelled(*extra: tuple[str, str]) -> list[tuple[str, str]]:
    return [*((text, text[0]) for text in REVIEWS), *extra]


CONLL = "北 B-LOC\n京 I-LOC\n\n我 O\n在 O\n"
FILES = {
    "text-classification": [
        {"a.csv": "text,label\n好,1\n"},
        {"a.jsonl": '{"review": "好", "stars": 5}\n'},
        {"train.tsv.gz": "sentence\tlabel\n好\t1\n", "dev.tsv": "sentence\tlabel\n坏\t0\n"},
        {"a.xlsx": "PK"},
    ],
    "token-classification": [
        {"a.txt": CONLL},
        {"a.bmes": "北\tB-LOC\n京\tE-LOC\n\n哈\tS-LOC\n"},
        {"train.txt": CONLL, "dev.txt": CONLL},
        {"a.json": '[{"tokens": ["北"], "ner_tags": ["B-LOC"]}]'},
        {"a.csv": "words,tags\n北 京,B-LOC I-LOC\n"},
    ],
    "translation": [
        {"train.en": "a\n", "train.zh": "一\n"},
        {"train.en.gz": "a\n", "train.zh.gz": "一\n", "stats.json": "[]"},
        {"a.tsv": "en\tzh\na\t一\n"},
        {"a.jsonl": '{"translation": {"en": "a", "zh": "一"}}\n'},
        {"a.csv": "source,target\na,一\n"},
    ],
    "image-classification": [
        {"cat/1.png": "", "dog/2.jpg": ""},
        {"train/cat/1.png": "", "test/cat/2.png": ""},
        {"a.csv": "image,label\nx/1.jpg,cat\n"},
    ],
    "question-answering": [
        {"a.json": '{"data": [{"paragraphs": []}]}'},
        {"a.csv": "question,context,answers\n谁,我,我\n"},
    ],
    "language-modeling": [
        {"a.txt": "今天天气很好\n明天也好\n"},
        {"one.md": "# 题\n", "two.md": "文\n"},
        {"a.csv": "text\n好\n"},
    ],
}


@pytest.mark.parametrize(
    ("task", "files"), [(task, files) for task, sets in FILES.items() for files in sets]
)
def test_the_task_is_told_by_the_files(
    task: str, files: dict[str, str], write: Write, tmp_path: Path
) -> None:
    paths = [write(f"data/{name}", text) for name, text in files.items()]
    dataset = paths[0] if len(paths) == 1 else tmp_path / "data"
    assert choose_task(str(dataset), {}, None).task.name == task


@pytest.mark.parametrize("task", [task for task in TASKS.values() if task.demo])
def test_embedded_data_have_their_task(task: Any) -> None:
    assert choose_task(task.demo, {}, None).task is task


def test_settings_tell_the_task_and_must_fit_it(write: Write, tmp_path: Path) -> None:
    path = str(write("a.csv", "text,label\n好,1\n"))
    assert choose_task(path, {"pair_column": "b"}, None).task.name == "text-classification"
    assert choose_task(None, {"source_file": "a", "target_file": "b"}, None).task.name == (
        "translation"
    )
    with pytest.raises(UsageError, match="no task has all of --pair_column, --scheme"):
        choose_task(path, {"pair_column": "b", "scheme": "bio"}, None)
    with pytest.raises(UsageError, match="--scheme is no setting of translation"):
        choose_task(path, {"scheme": "bio"}, "translation")
    with pytest.raises(UsageError, match="name a data set, or --source_file"):
        choose_task(None, {}, None)
    for name in ("train.de", "train.fr"):
        write(f"languages/{name}", "a\n")
    with pytest.raises(UsageError, match="for example: --source de --target fr"):
        choose_task(str(tmp_path / "languages"), {}, None)


@pytest.mark.parametrize("task", TASKS.values())
def test_lengths_are_those_of_the_recipes(task: Any) -> None:
    recipe = importlib.import_module(f"recipes.{task.recipe}")
    assert issubclass(recipe.Config, task.settings)
    config = recipe.Config()
    if task.max_length is not None:
        name = "block_size" if task.name == "language-modeling" else "max_length"
        assert task.max_length == getattr(config, name)
    if task.overlap is not None:
        assert task.overlap == config.overlap


def test_what_is_said_is_what_the_loader_does(tmp_path: Path) -> None:
    blank = [("", "好"), ("\u3000 ", "坏"), ("\u200b", "坏"), ("没有标签", "")]
    repeated = [REVIEWS[0], f"{REVIEWS[2]} "]
    train = write_csv(
        tmp_path / "train.csv",
        labelled(*blank, *((text, "好") for text in repeated)),
        ("text", "label"),
    )
    write_csv(
        tmp_path / "test.csv",
        [(REVIEWS[4], "坏"), (REVIEWS[1], "坏"), ("新的", "好")],
        ("text", "label"),
    )
    write_csv(tmp_path / "other.csv", [], ("text", "label"))
    (tmp_path / "notes.txt").write_text("x")
    facts = describe(read(str(tmp_path), {"split_seed": 3}, None, None))
    assert facts["refused"] is None
    assert facts["summary"] == load_text_classification(str(tmp_path), split_seed=3).summary
    assert {file["path"]: (file["encoding"], file["rows"]) for file in facts["files"]} == {
        str(train): ("utf-8", 26),
        str(tmp_path / "test.csv"): ("utf-8", 3),
    }
    assert facts["files_not_read"] == {"count": 2, "first": ["notes.txt", "other.csv"]}
    split = facts["splits"]["train"]
    assert split["left_out"] == {"without_text": 3, "without_label": 1, "also_held_out": 2}
    assert split["blank_texts"] == {"empty": 1, "spaces": 1, "invisible": 1}
    assert facts["repeated_in_train"] == {
        "exact": 1,
        "normalized": 2,
        "texts_with_several_labels": 0,
    }
    assert facts["also_in_train"]["test"]["with_opposite_label"] == 1
    assert facts["label_names"] == ["坏", "好"]
    assert list(facts["splits"]["test"]["labels"].items()) == [("坏", 2), ("好", 1)]
    assert not facts["splits"]["validation"]["given"]
    assert split["lengths"]["text"]["greatest"] == 5  # with the space behind it


def test_a_row_that_leaks_into_both_is_left_out_once(write: Write, tmp_path: Path) -> None:
    lines = [f"{text}\t{text}" for text in REVIEWS]
    write("train.tsv", "\n".join(["text\tlabel", *(f"{t}\t{t[0]}" for t in REVIEWS)]))
    write("dev.tsv", f"text\tlabel\n{REVIEWS[0]}\t好\n{REVIEWS[1]}\t坏\n")
    write("test.tsv", f"text\tlabel\n{REVIEWS[1]}\t坏\n{REVIEWS[2]}\t好\n")
    facts = describe(read(str(tmp_path), {}, None, None))
    assert facts["splits"]["train"]["left_out"]["also_held_out"] == 3
    assert facts["splits"]["train"]["rows"] == len(REVIEWS) - 3
    pairs = tmp_path / "pairs"
    for name, chosen in (("train", lines), ("dev", lines[:2]), ("test", lines[1:3])):
        write(f"pairs/{name}.tsv", "\n".join(["en\tzh", *chosen]))
    facts = describe(read(str(pairs), {}, None, None))
    assert facts["splits"]["train"]["left_out"]["also_held_out"] == 3
    assert facts["also_in_train"] == {"validation": 2, "test": 2}


def test_a_refusal_keeps_what_was_known_until_then(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text;label\n好;1\n坏;0;2\n".encode("gbk"))
    facts = describe(read(str(path), {}, None, None))
    assert "a.csv, line 3: 3 fields, expected 2" in facts["refused"]
    assert facts["task"] is None  # it could not be told
    (file,) = facts["files"]
    assert (file["encoding"], file["delimiter"], file["rows"]) == ("gb18030", ";", None)
    assert facts["remarks"] == [f"{path} is not UTF-8; read as GB18030."]
    with_task = describe(read(str(path), {}, "text-classification", None))
    assert with_task["refused"] == facts["refused"]


def test_one_class_is_refused_for_training_and_said_of_a_test_set(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "train.csv", labelled(), ("text", "label"))
    test = write_csv(tmp_path / "test.csv", [("新的", "好"), ("更新", "好")], ("text", "label"))
    facts = describe(read(str(train), {"test_file": str(test)}, None, None))
    assert facts["splits"]["test"]["labels"] == {"坏": 0, "好": 2}
    assert "warning: the test set has no row of 坏." in facts["remarks"]
    assert "has 1 class only ('好' in all 2 rows)" in str(
        describe(read(str(test), {}, None, None))["refused"]
    )


def test_balance_and_lengths_by_hand() -> None:
    found = balance({"0": 5, "1": 95})
    assert (found["largest"], found["smallest"]) == ("1", "0")
    assert found["always_largest_accuracy"] == 0.95
    assert found["always_largest_macro_f1"] == pytest.approx(0.487179, abs=1e-6)
    assert lengths(["", "ab", "abcd"]) == {
        "least": 0, "median": 2.0, "mean": 2.0, "95%": pytest.approx(3.8), "greatest": 4
    }  # fmt: skip


def test_imbalance_and_contradictions_are_warned_of(tmp_path: Path) -> None:
    rows = [(f"好的第{number}条", "1") for number in range(95)]
    rows += [(f"坏的第{number}条", "0") for number in range(5)] + [("好的第1条", "0")]
    facts = describe(
        read(str(write_csv(tmp_path / "a.csv", rows, ("text", "label"))), {}, None, None)
    )
    assert any("of the training rows are '1'" in warning for warning in facts["warnings"])
    assert any("1 training texts stand there with" in warning for warning in facts["warnings"])


def test_damaged_images_are_named_and_junk_is_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    photos = tmp_path / "photos"
    for number in range(12):
        folder = photos / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        mode = "L" if number < 2 else "RGB"
        Image.new(mode, (6, 4), number).save(folder / f"{number}.png")
    (photos / "cat" / "page.jpg").write_text("<html>")
    (photos / "cat" / "Thumbs.db").write_bytes(b"x")
    refused = describe(read(str(photos), {}, None, None))
    assert "1 of 13 files cannot be read as images" in refused["refused"]
    assert "page.jpg" in refused["refused"]
    facts = describe(read(str(photos), {"skip_damaged": True}, None, None))
    for found in (refused, facts):
        assert found["files_not_read"] == {"count": 1, "first": ["cat/Thumbs.db"]}
        assert found["images"]["modes"] == {"RGB": 10, "L": 2}
        assert found["images"]["no_images"] == 1
        assert found["images"]["smallest"] == found["images"]["largest"] == [4, 6]
    assert facts["splits"]["train"]["left_out"] == {"without_label": 0, "not_readable": 1}
    json.dumps(facts)


def test_parallel_files_have_their_lines_and_odd_pairs(write: Write, tmp_path: Path) -> None:
    sources = [f"sentence number {number:02}" for number in range(30)]
    targets = [f"第{number}句话到了" for number in range(30)]
    targets[4], targets[7] = "好" * 60, ""
    write("train.en", "\n".join(sources) + "\n")
    write("train.zh", "\n".join(targets))
    facts = describe(read(str(tmp_path), {}, None, None))
    assert [(file["rows"], file["blank"]) for file in facts["files"]] == [(30, 0), (30, 1)]
    assert facts["splits"]["train"]["left_out"] == {"without_source_or_target": 1}
    odd = [pair["row"] for found in facts["pairs"].values() for pair in found["first_unusual"]]
    assert odd == [5]


def test_tokens_are_those_of_the_recipe(
    tmp_path: Path, write_tiny_bert: Callable[..., Path]
) -> None:
    model = Tokenizing(str(write_tiny_bert(tmp_path / "bert")), None)
    rows = [(f"今天房间好{'好' * number}", "好") for number in range(40)]
    rows += [(f"今天房间坏坏{'魑' * number}", "坏") for number in range(40)]
    path = write_csv(tmp_path / "a.csv", rows, ("text", "label"))
    reading = read(str(path), {}, None, model)
    facts = describe(reading)
    found = [split["tokens"]["text"] for split in facts["splits"].values()]
    assert {one["limit"] for one in found} == {32}  # of the model's positions
    # 5 + n or 6 + n characters and two special tokens
    lengths = [5 + n + 2 for n in range(40)] + [6 + n + 2 for n in range(40)]
    assert sum(one["rows_cut"] for one in found) == sum(length > 32 for length in lengths)
    assert sum(one["unknown_tokens"] for one in found) == sum(min(n, 24) for n in range(40))
    assert any("unknown to the tokenizer" in remark for remark in facts["remarks"])
    row = first_rows(reading, 1, model)["train"][0]
    assert row["pieces"][0] == "[CLS]"
    assert row["pieces"][-1] == "[SEP]"
    assert row["label"] == row["text"][5 if row["label"] == "坏" else 4]


@pytest.mark.parametrize("task", [task for task in TASKS.values() if task.max_length])
def test_every_task_is_counted_in_tokens_and_printed(
    task: Any, tmp_path: Path, write_tiny_bert: Callable[..., Path], write: Write,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from rich.console import Console

    contents = {
        "text-classification": "text,label\n" + "".join(f"{t},{t[0]}\n" for t in REVIEWS),
        "token-classification": "\n\n".join(f"{t[0]}\tB-X\n{t[-2]}\tO" for t in REVIEWS),
        "translation": "en,zh\n" + "".join(f"good {n},{t}\n" for n, t in enumerate(REVIEWS)),
        "question-answering": "question,context,answers\n"
        + "".join(f"今{n},{t},{t[0]}\n" for n, t in enumerate(REVIEWS)),
        "language-modeling": "text\n" + "\n".join(REVIEWS),
    }
    name = "a.conll" if task.name == "token-classification" else "a.csv"
    path = write(name, contents[task.name])
    model = Tokenizing(str(write_tiny_bert(tmp_path / "bert")), None)
    reading = read(str(path), {}, None, model)
    facts = describe(reading)
    assert facts["refused"] is None
    assert facts["task"] == task.name
    for split in facts["splits"].values():
        assert all(tokens["tokens"] > 0 for tokens in split["tokens"].values())
        assert split["tokens"]
        assert split["lengths"]
    rows = first_rows(reading, 2, model)
    assert [len(found) for found in rows.values()] == [2, 2, 2]
    assert all("[UNK]" in str(row) for found in rows.values() for row in found)
    print_check(json.loads(json.dumps(facts)), Console(width=150))
    assert f": {task.name} (by " in capsys.readouterr().out


@pytest.mark.parametrize("delimiter", ["|", "[", "，"])
def test_any_delimiter_is_shown(
    delimiter: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    lines = ["text,label", *(f"{t},{t[0]}" for t in REVIEWS)]
    text = "\n".join(line.replace(",", delimiter) for line in lines)
    path = write("a.csv", f"sep={delimiter}\n{text}\n")
    print_check(describe(read(str(path), {}, None, None)), Console(width=150))
    assert f" {delimiter} " in capsys.readouterr().out


HALVES: list[tuple[str, dict[str, Any]]] = [
    ("label", {"text": "好", "label": "1\ud83d"}),
    ("text", {"text": "好\ud83d", "label": "1"}),
    ("en", {"en": "a\ud83d", "zh": "一"}),
    ("zh", {"en": "a", "zh": "一\ud83d"}),
    ("tokens", {"tokens": ["北\ud83d"], "ner_tags": ["B-LOC"]}),
    ("tokens", {"tokens": "北\ud83d 京", "ner_tags": "B-LOC I-LOC"}),
    ("ner_tags", {"tokens": ["北"], "ner_tags": ["B-LOC\ud83d"]}),
    ("its question", {"question": "谁\ud83d", "context": "我", "answers": "我"}),
    ("its context", {"question": "谁", "context": "我\ud83d", "answers": "我"}),
    ("the answer", {"question": "谁", "context": "我", "answers": "我\ud83d"}),
    ("text", {"text": "好\ud83d"}),
]


@pytest.mark.parametrize(("what", "row"), HALVES)
def test_half_a_character_is_refused_with_its_row(
    what: str, row: dict[str, Any], write: Write
) -> None:
    whole = json.loads(json.dumps(row).replace("\\ud83d", ""))
    rows = [json.dumps(one) for one in (whole, row, whole)]  # as programs cut texts with emoji
    refused = read(str(write("a.jsonl", "\n".join(rows) + "\n")), {}, None, None).refused
    assert refused is not None
    assert f"a.jsonl, line 2: {what} holds half a character" in refused


def test_what_cannot_be_seen_is_written_out() -> None:
    assert visible(" a  b\n\t\r\u3000\u200b\ue000 ") == "␣a ␣b⏎⇥␍⟨U+3000⟩⟨U+200B⟩⟨U+E000⟩␣"
    assert visible("  ") == "␣␣"
    assert visible("好" * 9, 4) == "好好好好… (+5 characters)"


@given(st.text(max_size=30), st.integers(1, 40))
def test_shown_texts_are_printable(text: str, most: int) -> None:
    assert visible(text).isprintable()
    if text.isprintable() and " " not in text:
        assert visible(text) == text
        assert visible(text, most).startswith(text[:most])

"""Tagged sentences from files and tables, their tags checked, in three splits."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.tagged_sentences import read_conll, read_tagged
from toolkit.data.tagging import load_tagging
from toolkit.errors import UserError

SENTENCES = [(list("我在北京"), ["O", "O", "B-LOC", "I-LOC"]), (["王芳", "来"], ["B-PER", "O"])]


def conll(sentences: list[tuple[list[str], list[str]]], separator: str = "\t") -> str:
    return "".join(
        "".join(f"{token}{separator}{tag}\n" for token, tag in zip(tokens, tags, strict=True))
        + "\n"
        for tokens, tags in sentences
    )


def many(count: int) -> list[tuple[list[str], list[str]]]:
    """Different sentences, every third with two types."""
    return [
        ([*str(i), "人", "在", "京"], [*["O"] * len(str(i)), "B-PER" if i % 3 == 0 else "O", "O",
                                       "B-LOC"])
        for i in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("separator", ["\t", " ", " NN I-NP "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_conll_lines_of_any_separator(tmp_path: Path, separator: str, end: str) -> None:
    file = tmp_path / "a.txt"
    text = "-DOCSTART- -X- O\n\n" + conll(SENTENCES, separator) + "\n\n"
    file.write_bytes(text.replace("\n", end).encode())
    read = read_conll(file)
    assert (read.tokens, read.tags) == tuple(map(list, zip(*SENTENCES, strict=True)))
    assert read.place(1, 1) == f"{file}, line 9"


TOKENS = st.text(
    st.one_of(
        st.sampled_from("好，\u2028\u0085\u3000\u200b\ufeff \r\x0b𠮷😀'\""),
        st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\0"),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("name", ["a.conll", "a.txt.gz"])
@given(sentences=st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_tokens_are_read_letter_for_letter_and_only_a_line_feed_ends_a_line(
    tmp_path_factory: pytest.TempPathFactory, name: str, sentences: list[list[str]]
) -> None:
    sentences = [["北", *tokens] for tokens in sentences]
    content = conll([(tokens, ["O"] * len(tokens)) for tokens in sentences]).encode()
    file = tmp_path_factory.getbasetemp() / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read_conll(file).tokens == sentences


def test_tokens_that_show_nothing_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    file.write_text("王 B-PER\n\u200b I-PER\n\u3000 O\n\n", encoding="utf-8")
    assert read_conll(file).tokens == [["王", "\u200b", "\u3000"]]


def test_digits_of_segmentation_are_left_out_only_where_all_tokens_have_one(tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    file.write_text("酒0 O\n店1 O\n30 O\n", encoding="utf-8")
    read = read_conll(file)
    assert read.tokens == [["酒", "店", "3"]]
    assert read.notes == {"digits_left_out_of_tokens": 3}
    file.write_text("酒0 O\n店 O\n", encoding="utf-8")
    assert read_conll(file).tokens == [["酒0", "店"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("我 O\n在\n", "line 2: found '在'"),
        ("我 O\n O\n", "line 2: found ' O'"),
        ("我 O\n京 LOC\n", "line 2: 'LOC' is no tag"),
        ("我 O\n京 O\n", "every tag is O"),
    ],
)
def test_lines_that_are_wrong_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.conll"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        load_tagging(str(file))
    assert message in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet", "csv", "hub"])
def test_tables_of_lists(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"tokens": tokens, "ner_tags": tags} for tokens, tags in SENTENCES]
    name = str(tmp_path / f"a.{form}")
    if form == "json":
        Path(name).write_text(json.dumps(rows), encoding="utf-8")
    elif form == "jsonl":
        Path(name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    elif form == "csv":
        lines = [f"{' '.join(r['tokens'])},{' '.join(r['ner_tags'])}" for r in rows]
        Path(name).write_text("\n".join(["tokens,ner_tags", *lines]), encoding="utf-8")
    else:
        names = ["O", "B-LOC", "I-LOC", "B-PER"]
        features = datasets.Features(
            {
                "tokens": datasets.List(datasets.Value("string")),
                "ner_tags": datasets.List(datasets.ClassLabel(names=names)),
            }
        )
        table = datasets.Dataset.from_list(rows, features=features)
        table.to_parquet(name)
        if form == "hub":
            name = "somebody/entities"
            monkeypatch.chdir(tmp_path)
            found = datasets.DatasetDict({"train": table})
            monkeypatch.setattr(datasets, "load_dataset", lambda *_: found)
    read = read_tagged(name)["train"]
    assert list(zip(read.tokens, read.tags, strict=True)) == SENTENCES


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "2 tokens but 1 tags"),
        ({"tokens": ["a"], "tags": [3]}, "Numbers need names"),
        ({"tokens": [None], "tags": ["O"]}, "tokens holds None"),
        ({"tokens": ["a"], "classes": ["O"]}, "cannot tell which column holds the tags"),
    ],
)
def test_rows_that_are_wrong_are_named(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_tagged(str(file))


def test_folders_of_any_file_names(tmp_path: Path) -> None:
    for split, name in (
        ("train", "ner_2nd.train"),
        ("validation", "dev.conll"),
        ("test", "x_test"),
    ):
        (tmp_path / name).write_text(conll([([split], ["B-A"])]), encoding="utf-8")
    (tmp_path / "README.md").write_text("nothing\n")
    splits = read_tagged(str(tmp_path))
    assert {split: read.tokens for split, read in splits.items()} == {
        split: [[split]] for split in ("train", "validation", "test")
    }


def test_splits_are_made_with_every_sentence_once_and_bmes_becomes_bio(tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    sentences = [(t, [tag.replace("B-", "S-") for tag in tags]) for t, tags in many(90)]
    sentences.append((list("北京市里"), ["B-LOC", "M-LOC", "E-LOC", "O"]))
    file.write_text(conll(sentences), encoding="utf-8")
    data = load_tagging(str(file))
    assert data.summary["scheme"] == "bmes"
    assert data.label_names == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    found = {"".join(tokens): tags for split in (data.train, data.validation, data.test)
             for tokens, tags in zip(split["tokens"], split["tags"], strict=True)}  # fmt: skip
    assert len(found) == len(data.train) + len(data.validation) + len(data.test) == 91
    assert found["北京市里"] == ["B-LOC", "I-LOC", "I-LOC", "O"]
    assert found["12人在京"] == ["O", "O", "B-PER", "O", "B-LOC"]
    assert data.summary["entities"]["train"]["LOC"] >= 70
    smaller = load_tagging(str(file), sizes={"train": 20})
    assert smaller.train["id"][:] == data.train["id"][:20]
    assert smaller.test["id"][:] == data.test["id"][:]


def test_broken_tags_are_counted_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.conll"
    file.write_text(conll([(["x"], ["I-PER"]), *many(30)]), encoding="utf-8")
    data = load_tagging(str(file))
    assert data.summary["broken_tags"]["train"]["count"] == 1
    assert f"{file}, line 1: I-PER continues nothing" in capsys.readouterr().err


def test_types_that_are_tested_but_not_trained_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, sentences in (("train", many(30)), ("dev", [(["y"], ["B-PER"])]),
                            ("test", [(["z", "z"], ["B-PER", "I-PER"])])):  # fmt: skip
        (tmp_path / f"{name}.conll").write_text(conll(sentences), encoding="utf-8")
    assert load_tagging(str(tmp_path)).label_names[-1] == "I-PER"
    assert "training never shows: I-PER" in capsys.readouterr().err
    (tmp_path / "test.conll").write_text(conll([(["z"], ["B-ORG"])]), encoding="utf-8")
    with pytest.raises(UserError, match=r"no training sentence has: B-ORG\. Trained types: LOC"):
        load_tagging(str(tmp_path))


def test_sentences_of_the_test_set_leave_training(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text(conll(many(30)), encoding="utf-8")
    (tmp_path / "test.conll").write_text(conll(many(4)), encoding="utf-8")
    data = load_tagging(str(tmp_path), sizes={"validation": 5})
    tested = set(map("".join, data.test["tokens"]))
    assert len(tested) == 4
    assert len(data.train) + len(data.validation) == 26
    assert not tested & set(map("".join, data.train["tokens"]))

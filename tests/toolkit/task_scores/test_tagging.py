"""Entity scores of predictions files, against seqeval, the runs' own summary, and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report

from toolkit.entity_metrics import describe_entities
from toolkit.errors import UserError
from toolkit.task_scores.predictions import Predictions, objects
from toolkit.task_scores.tagging import read, view

SUMMARY: dict[str, Any] = {"data": {"tokens": "characters"}}
WORDS: dict[str, Any] = {"data": {"tokens": "words"}}
TAG = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
# Gold, and what two systems say, of every token.
SENTENCES = st.lists(
    st.lists(st.tuples(TAG, TAG, TAG), min_size=1, max_size=9), min_size=1, max_size=6
)


def predictions(gold: list[list[str]], predicted: list[list[str]]) -> Predictions:
    tokens = [[f"w{place}" for place in range(len(tags))] for tags in gold]
    return Predictions(
        ids=[f"{row}" for row in range(len(gold))],
        inputs=[" ".join(sentence) for sentence in tokens],
        images=None,
        truth=[tuple(tags) for tags in gold],
        fields={"tokens": objects(tokens), "predicted": objects([tuple(t) for t in predicted])},
    )


@given(SENTENCES)
def test_sums_give_the_scores_of_seqeval_and_of_the_summary(
    sentences: list[list[tuple[str, str, str]]],
) -> None:
    gold, *systems = (
        [[tags[which] for tags in sentence] for sentence in sentences] for which in range(3)
    )
    shown = view("t", [predictions(gold, tags) for tags in systems], [WORDS, WORDS])
    for place, tags in enumerate(systems):
        values = {
            measure.key: float(measure.score(shown.statistics(measure.key, place).sum(0)))
            for measure in shown.measures
        }
        tokens = [["x"] * len(sentence) for sentence in gold]
        described = describe_entities(tokens, gold, tags, set())
        assert values["entity_f1"] == pytest.approx(described["entity_f1"]["value"], rel=1e-12)
        assert values["precision"] == pytest.approx(described["precision"], rel=1e-12)
        assert values["recall"] == pytest.approx(described["recall"], rel=1e-12)
        if not described["types"]:
            continue
        expected = classification_report(gold, tags, output_dict=True, zero_division=0)
        assert values["entity_f1"] == pytest.approx(expected["micro avg"]["f1-score"])
        assert values["precision"] == pytest.approx(expected["micro avg"]["precision"])
        assert values["recall"] == pytest.approx(expected["micro avg"]["recall"])
        by_type = shown.breakdowns[0]
        for name, count, row in zip(by_type.names, by_type.examples, by_type.values, strict=True):
            f1 = expected[name]["f1-score"] if name in expected else 0.0
            assert row[place] == pytest.approx(f1)
            assert count == (expected[name]["support"] if name in expected else 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Four sentences: right; one of two found and a wrong one; missed; nothing there, and found."""
    path = tmp_path / "run" / "predictions" / "test.parquet"
    path.parent.mkdir(parents=True)
    table = {
        "id": ["a", "b", "c", "d"],
        "tokens": [list("在上海"), list("王明在上海"), list("李四"), list("很好")],
        "gold": [
            ["O", "B-LOC", "I-LOC"],
            ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"],
            ["B-PER", "I-PER"],
            ["O", "O"],
        ],
        "predicted": [
            ["O", "B-LOC", "I-LOC"],
            ["B-PER", "I-PER", "O", "O", "B-LOC"],
            ["O", "O"],
            ["B-PER", "O"],
        ],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path


def test_sentences_by_hand(file: Path) -> None:
    found = read(file, SUMMARY)
    assert found.inputs == ["在上海", "王明在上海", "李四", "很好"]
    truth: list[Any] = found.truth
    silent = predictions(truth, [["O"] * len(tags) for tags in truth])
    shown = view("token-classification", [found, silent], [SUMMARY, SUMMARY])
    # Right, predicted, gold: 1 1 1, 1 2 2, 0 0 1, 0 1 0.
    sums = {key: shown.statistics(key, 0).sum(0).tolist() for key in ("entity_f1", "precision")}
    assert sums == {"entity_f1": [2, 4, 4], "precision": [2, 4]}
    assert shown.statistics("recall", 0).tolist() == [[1, 1], [1, 2], [0, 1], [0, 0]]
    assert shown.quality.tolist() == [[1, 0.5, 0, 0], [0, 0, 0, 1]]
    assert shown.right is not None
    assert shown.right.tolist() == [[True, False, False, False], [False, False, False, True]]
    assert shown.truth == ["上海 LOC", "王明 PER; 上海 LOC", "李四 PER", "(no entity)"]
    assert shown.answers[0] == ["上海 LOC", "王明 PER; 海 LOC", "(no entity)", "很 PER"]
    by_type, by_length = shown.breakdowns
    assert (by_type.names, by_type.examples) == (["LOC", "PER"], [2, 2])
    assert by_type.values.tolist() == [[0.5, 0], [0.5, 0]]
    assert by_length.title == "By length of the sentence in characters"
    assert dict(zip(by_length.names, by_length.values[:, 0], strict=True)) == {
        "2": 0, "3": 1, "5": 0.5,
    }  # fmt: skip
    assert shown.facts == ["Entities in the test set: LOC 2, PER 2; 1 of 4 sentences have none."]
    assert shown.single_answers == {1: "(no entity)"}


def test_words_stand_apart(file: Path) -> None:
    found = read(file, WORDS)
    assert found.inputs is not None
    assert found.inputs[1] == "王 明 在 上 海"
    shown = view("token-classification", [found], [WORDS])
    assert shown.truth[1] == "王 明 PER; 上 海 LOC"
    assert shown.breakdowns[1].title == "By length of the sentence in tokens"


def test_rows_are_taken_in_any_order(file: Path) -> None:
    found = read(file, SUMMARY)
    shown = view("token-classification", [found.take([3, 0])], [SUMMARY])
    assert shown.truth == ["(no entity)", "上海 LOC"]
    assert np.array_equal(shown.statistics("entity_f1", 0), [[0, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("predicted", [["O"], ["O"] * 5, ["O"] * 2, ["O"] * 2], "row 0: 1 tags in 'predicted'"),
        ("gold", [["O"] * 3, ["O"] * 5, ["O", "X-PER"], ["O"] * 2], "row 2: in 'gold' 'X-PER'"),
        ("predicted", ["O O O"] * 4, "'predicted' holds string, expected lists of texts"),
        ("tokens", [["在", None, "海"], *[["好"]] * 3], "row 0: 'tokens' has an empty place"),
        ("gold", [["O"] * 3, None, ["O"] * 2, ["O"] * 2], "row 1: 'gold' is empty"),
        ("id", ["a", "b", "a", "d"], "holds the id 'a' 2 times (rows 0 and 2)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(file: Path, column: str, value: Any, expected: str) -> None:
    table = pyarrow.parquet.read_table(file)
    place = table.column_names.index(column)
    pyarrow.parquet.write_table(table.set_column(place, column, pyarrow.array(value)), file)
    with pytest.raises(UserError) as raised:
        read(file, SUMMARY)
    assert str(file) in str(raised.value)
    assert expected in str(raised.value)

"""Question answering scores of predictions files, against the rules of SQuAD written again."""

from __future__ import annotations

import re
import string
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.answer_metrics import describe_answers
from toolkit.errors import UserError
from toolkit.task_scores.predictions import Predictions, objects
from toolkit.task_scores.questions import excerpt, read, view

ENGLISH: dict[str, Any] = {"data": {"language": "en"}}
CHINESE: dict[str, Any] = {"data": {"language": "zh"}}
TEXT = st.lists(st.sampled_from(["the", "The", "cat", "sat", "down.", "cat,"]), max_size=4).map(
    " ".join
)
QUESTIONS = st.lists(
    st.tuples(TEXT, TEXT, st.lists(TEXT.filter(bool), max_size=2)), min_size=1, max_size=6
)


def squad(prediction: str, answers: list[str]) -> tuple[float, float]:
    """Exact match and F1 as SQuAD 2.0 defines them: tokens in common, the best answer counts."""

    def words(text: str) -> list[str]:
        text = re.sub(f"[{re.escape(string.punctuation)}]", "", text.lower())
        return [word for word in text.split() if word not in ("a", "an", "the")]

    def f1(right: list[str], given: list[str]) -> float:
        common = sum((Counter(right) & Counter(given)).values())
        if not right or not given:
            return float(right == given)
        precision, recall = common / len(given), common / len(right)
        return 2 * precision * recall / (precision + recall) if common else 0.0

    right = [words(answer) for answer in answers if words(answer)] or [[]]
    given = words(prediction)
    return max(float(given == r) for r in right), max(f1(r, given) for r in right)


def predictions(
    rows: list[tuple[str, list[str]]], contexts: list[str] | None = None
) -> Predictions:
    fields = {"prediction": objects([text for text, _ in rows])}
    if contexts is not None:
        fields["context_hash"] = objects(contexts)
    return Predictions(
        ids=[f"{row}" for row in range(len(rows))],
        inputs=["who?" * (1 + row % 3) for row in range(len(rows))],
        images=None,
        truth=[tuple(answers) for _, answers in rows],
        fields=fields,
    )


@given(QUESTIONS)
def test_sums_give_the_scores_of_squad_and_of_the_summary(
    rows: list[tuple[str, str, list[str]]],
) -> None:
    systems = [[(row[which], row[2]) for row in rows] for which in (0, 1)]
    shown = view("t", list(map(predictions, systems)), [ENGLISH, ENGLISH])
    for place, system in enumerate(systems):
        expected = np.mean([squad(*row) for row in system], axis=0)
        described = describe_answers(
            [text for text, _ in system], [right for _, right in system], "en", 0
        )
        for key, column in (("exact_match", 0), ("f1", 1)):
            [measure] = [measure for measure in shown.measures if measure.key == key]
            value = float(measure.score(shown.statistics(key, place).sum(0)))
            assert value == pytest.approx(expected[column], rel=1e-12)
            assert value == pytest.approx(described[key]["value"], rel=1e-12)
    assert shown.right is not None
    assert np.array_equal(shown.right.sum(1), [shown.statistics("exact_match", i).sum(0)[0]
                                               for i in (0, 1)])  # fmt: skip


def test_questions_by_hand() -> None:
    rows = [
        ("上海市", ["上海"]),  # two of three and two of two characters: F1 4/5
        ("", []),
        ("北京", []),
        ("六月一日", ["六月一日。", "一日"]),
        ("", ["王明先生"]),
    ]
    contexts = ["c", "a", "a", "c", "b"]
    shown = view(
        "question-answering",
        [predictions(rows), predictions([("", right) for _, right in rows], contexts)],
        [CHINESE, CHINESE],
    )
    assert [measure.key for measure in shown.measures] == ["f1", "exact_match"]
    assert [measure.counts_right for measure in shown.measures] == [False, True]
    assert shown.quality.tolist() == [[pytest.approx(0.8), 1, 0, 1, 0], [0, 1, 1, 0, 0]]
    assert shown.right is not None
    assert shown.right[0].tolist() == [False, True, False, True, False]
    assert shown.truth == ["上海", "(no answer)", "(no answer)", "六月一日。 / 一日", "王明先生"]
    assert shown.answers[0][:2] == ["上海市", "(no answer)"]
    # The second run recorded the texts; of the first no answer is the same.
    assert shown.clusters is not None
    assert shown.clusters.tolist() == [2, 0, 0, 2, 1]
    assert shown.facts == ["Questions: 5, of them 2 without answer; they are about 3 texts."]
    assert shown.single_answers == {1: "(no answer)"}
    assert shown.chance == ("never giving an answer", pytest.approx(0.4))
    by_answerable, by_answer, by_question = shown.breakdowns
    assert by_answerable.examples == [3, 2]
    assert by_answerable.values == pytest.approx(np.array([[0.6, 0], [0.5, 1]]))
    # Lengths 2, 5, 4 of the answers there are.
    assert (by_answer.names, by_answer.examples) == (["2", "4", "5"], [1, 1, 1])
    assert by_answer.values[:, 0].tolist() == [pytest.approx(0.8), 0, 1]
    assert by_question.names == ["4", "8", "12"]
    assert by_question.values[:, 0].tolist() == [pytest.approx(0.9), 0.5, 0]


def test_runs_that_recorded_no_texts_say_so() -> None:
    shown = view("question-answering", [predictions([("x", ["x"])])], [ENGLISH])
    assert shown.clusters is None
    assert shown.cluster_noun is None
    assert any("take every question by itself" in fact for fact in shown.facts)
    assert shown.chance is None
    assert [breakdown.title for breakdown in shown.breakdowns] == [
        "By length of the answer in characters",
        "By length of the question in characters",
    ]


def write(folder: Path, **columns: Any) -> Path:
    path = folder / "run" / "predictions" / "test.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table: dict[str, Any] = {
        "id": ["a", "b"],
        "question": ["哪里？", "谁？"],
        "answers": pyarrow.array([["上海"], []], pyarrow.list_(pyarrow.string())),
        "prediction": ["上海", ""],
    }
    kept = {name: value for name, value in (table | columns).items() if value is not None}
    pyarrow.parquet.write_table(pyarrow.table(kept), path)
    return path


def test_files_with_and_without_texts_are_read(tmp_path: Path) -> None:
    old = read(write(tmp_path), CHINESE)
    assert (old.ids, old.inputs) == (["a", "b"], ["哪里？", "谁？"])
    assert old.truth == [("上海",), ()]
    assert old.fields["prediction"].tolist() == ["上海", ""]
    assert "context_hash" not in old.fields
    new = read(write(tmp_path, context_hash=["x", "x"]), CHINESE)
    assert new.fields["context_hash"].tolist() == ["x", "x"]


@pytest.mark.parametrize(
    ("columns", "language", "expected"),
    [
        ({"answers": ["上海", "北京"]}, "zh", "'answers' holds string, expected lists of texts"),
        ({"prediction": [1, 2]}, "zh", "'prediction' holds int64, expected texts"),
        ({"prediction": ["上海", None]}, "zh", "row 1: 'prediction' is empty"),
        ({"prediction": None}, "zh", "has no column 'prediction'"),
        ({}, "fr", "'data.language' is 'fr', expected en or zh"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, columns: dict[str, Any], language: str, expected: str
) -> None:
    path = write(tmp_path, **columns)
    with pytest.raises(UserError) as raised:
        read(path, {"data": {"language": language}})
    assert str(path.parent.parent) in str(raised.value)
    assert expected in str(raised.value)


def test_the_text_is_shown_around_the_answer():
    text = "".join(f"第{number}句话没有什么。" for number in range(100))
    found = excerpt(text, ["不在", "第70句话"], limit=60)
    assert len(found) == 60
    assert found[0] == found[-1] == "…"
    assert "第70句话" in found
    assert abs(found.index("第70句话") - 28) <= 2  # in the middle
    assert found.strip("…") in text
    assert excerpt(text, ["第0句话"], limit=60) == text[:59] + "…"
    assert excerpt(text, ["第99句话"], limit=60) == "…" + text[-59:]
    assert excerpt(text, ["", "nowhere"], limit=60) == text[:59] + "…"
    assert excerpt("短。\n很短。", ["短"], limit=60) == "短。 很短。"


def test_the_text_is_read_where_the_run_wrote_it(tmp_path):
    old = read(write(tmp_path), CHINESE)
    assert view("question-answering", [old], [CHINESE]).passages is None
    new = read(write(tmp_path, context=["展览在上海开幕。", "没有人。"]), CHINESE)
    assert view("question-answering", [old, new], [CHINESE] * 2).passages == [
        "展览在上海开幕。", "没有人。",
    ]  # fmt: skip

"""Questions of every form, answers that are not where they should be, and splits by context."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from toolkit.data.question_answering import load_questions
from toolkit.data.questions import Answer, Question, locate, read_questions
from toolkit.errors import UserError

CONTEXT = "鲁迅一八八一年生于绍兴，一九三六年病逝于上海。绍兴有他的故居。"


@pytest.mark.parametrize(
    ("text", "start", "found"),
    [
        ("上海", 20, 20),  # where it is said to be
        ("上海", 18, 20),  # two characters off
        ("上海", None, 20),  # not said
        ("上海", -1, 20),
        ("绍兴", 9, 9),
        ("绍兴", 7, None),  # stands twice within reach of 7
        ("绍兴", None, None),
        ("北京", 3, None),
        ("鲁迅", 29, None),  # once, but far from there
    ],
)
def test_answers_are_mended_only_where_there_is_no_doubt(
    text: str, start: int | None, found: int | None
) -> None:
    assert locate(CONTEXT, Answer(text, start)) == found


def squad(*questions: dict[str, Any], context: str = CONTEXT) -> dict[str, Any]:
    return {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(questions)}]}]}


ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "在哪里病逝？", "answers": [{"text": "上海", "answer_start": 20},
                                                    {"text": "于上海", "answer_start": 19}]},
    {"id": "b", "question": "他写了什么？", "answers": [], "is_impossible": True},
]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "json.gz", "jsonl", "parquet", "hub", "csv"])
def test_every_form_says_the_same(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / f"a.{form}"
    flat = [{"id": r["id"], "question": r["question"], "context": CONTEXT,
             "answers": {"text": [a["text"] for a in r["answers"]],
                         "answer_start": [a["answer_start"] for a in r["answers"]]}}
            for r in ROWS]  # fmt: skip
    name, several = str(file), True
    if form == "json":
        file.write_text(json.dumps(squad(*ROWS)), encoding="utf-8")
    elif form == "json.gz":
        file.write_bytes(gzip.compress(json.dumps(squad(*ROWS)).encode()))
    elif form == "jsonl":
        file.write_text("\n".join(map(json.dumps, flat)), encoding="utf-8")
    elif form == "csv":
        several = False
        lines = ["id,question,context,answer,answer_start",
                 f"a,在哪里病逝？,{CONTEXT},上海,20", f"b,他写了什么？,{CONTEXT},,"]  # fmt: skip
        file.write_text("\n".join(lines), encoding="utf-8")
    else:
        table = datasets.Dataset.from_list(flat)
        table.to_parquet(name)
        if form == "hub":
            name = "somebody/squad_v2"
            monkeypatch.chdir(tmp_path)
            found = datasets.DatasetDict({"train": table})
            monkeypatch.setattr(datasets, "load_dataset", lambda *_: found)
    first, second = read_questions(name)["train"]
    expected = [Answer("上海", 20), Answer("于上海", 19)][: 2 if several else 1]
    assert (first.id, first.question, first.context) == ("a", "在哪里病逝？", CONTEXT)
    assert list(first.answers) == expected
    assert (second.id, second.answers) == ("b", ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (squad({"question": "谁？", "answers": "x"}, context=" "), "its context is ' '"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "found qas, expected 'context'"),
        ({"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "7"}]}]}]},
         "question 7: found id, expected 'question'|found id, expected 'question'"),
        ({"data": [{"question": "谁？", "context": "x"}]}, "no column 'answers'"),
        ([{"question": "谁？", "context": "x", "answer": 3}], "the answer is 3, expected a text"),
        ([{"question": "谁？", "context": "x", "answer": "x", "answer_start": "?"}],
         "answer_start is '\\?', expected a number"),
        (squad(ROWS[0], ROWS[0]), "the id 'a' stands there a second time"),
        (squad({"question": "谁？", "answers": [{"text": "北京", "answer_start": 0}]}),
         "no training answer was found"),
        (squad({"question": "谁？", "answers": []}, {"question": "谁的？"}),
         r"train: none of the 2 questions has an answer \(the first: .*answer_start"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, content: Any, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        load_questions(str(file))
    assert str(file) in str(error.value)


def paragraphs(count: int, questions: int = 3) -> dict[str, Any]:
    return {
        "data": [
            {"paragraphs": [{
                "context": f"第{i}段的城市是城{i}，河是河{i}，山是山{i}。",
                "qas": [{"id": f"{i}-{j}", "question": f"{thing}叫什么？",
                         "answers": [{"text": f"{thing[0]}{i}",
                                      "answer_start": len(f"第{i}段的城市是") if j == 0 else -1}]}
                        for j, thing in enumerate(["城", "河", "山"][:questions])],
            }]}
            for i in range(count)
        ]
    }  # fmt: skip


def test_made_splits_share_no_context(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(paragraphs(40)), encoding="utf-8")
    data = load_questions(str(file))
    contexts = [set(split["context"]) for split in (data.train, data.validation, data.test)]
    assert sum(map(len, contexts)) == len(set().union(*contexts)) == 40
    assert len(data.train) + len(data.validation) + len(data.test) == 120
    assert len(data.test) == 12
    for split in (data.train, data.test):
        for row in split:
            assert row["context"][row["start"] : row["end"]] == row["answers"][0]
    assert data.language == "zh"


def test_lost_answers_leave_training_and_stay_in_the_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = squad(
        {"id": "x", "question": "谁？", "answers": [{"text": "39764.0", "answer_start": -1}]},
        {"id": "y", "question": "", "answers": []},
        {"id": "z", "question": "在哪里？", "answers": [{"text": "上海", "answer_start": 19}]},
    )
    for name, content in (("train", {"data": [*paragraphs(30)["data"], *lost["data"]]}),
                          ("test", squad(*lost["data"][0]["paragraphs"][0]["qas"][:2],
                                         context=CONTEXT + "。"))):  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    data = load_questions(str(tmp_path), sizes={"validation": 9})
    ids = {*data.train["id"], *data.validation["id"]}
    assert "z" in ids
    assert not ids & {"x", "y"}
    assert data.summary["answers"]["train"]["mended"] == 61  # z, and 60 without an offset
    assert data.summary["answers"]["train"]["not_found"] == 1
    said = capsys.readouterr().err
    assert "1 questions without one are left out of training" in said
    assert "1 without a question" in said
    assert list(data.test["id"]) == ["x", "y"]
    assert data.test[0]["answers"] == ["39764.0"]
    assert (data.test[0]["start"], data.test[0]["end"]) == (-1, -1)


def test_texts_of_answers_come_once() -> None:
    answers = (Answer("a", 0), Answer("b", 1), Answer("a", 2))
    assert Question("1", "?", "ab a", answers, "").texts == ["a", "b"]

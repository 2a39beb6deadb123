"""Files of somebody else's answers: every format, every task, and what can be wrong with them."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from toolkit.errors import UserError
from toolkit.task_scores.outside import read_outside
from toolkit.task_scores.predictions import Predictions, objects
from toolkit.task_scores.tasks import TASKS

Rows = list[dict[str, Any]]
FORMATS = ["csv", "tsv", "json", "jsonl", "parquet", "csv.gz"]


@dataclass(frozen=True)
class Run:
    """What is needed of a run that has been read."""

    folder: Path
    summary: dict[str, Any]
    test: Predictions


def run(task: str, data: dict[str, Any], test: dict[str, Any], **columns: Any) -> Run:
    summary = {
        "schema_version": 1,
        "title": "ours",
        "task": task,
        "data": data | {"train_examples": 9, "hashes": {"train": "t" * 64, "test": "c" * 64}},
        "test": test,
    }
    return Run(Path("results/runs/x/a"), summary, Predictions(**({"images": None} | columns)))


def described(*keys: str) -> dict[str, Any]:
    return {key: {"value": 0.5, "n": 4, "signature": f"{key}|n:4|by rule"} for key in keys}


TEXTS = ["房间很干净", "太旧了，不推荐", '很,好"的"', "一般"]


def texts_run(names: Sequence[str] = ("good", "bad"), task: str = "text-classification") -> Run:
    return run(
        task,
        {"label_names": list(names), "pairs": False},
        described("accuracy", "macro_f1"),
        ids=["a", "b", "c", "d"],
        inputs=list(TEXTS),
        truth=[names[label] for label in (0, 1, 0, 1)],
        fields={"prediction": objects([names[0]] * 4)},
    )


def write(path: Path, rows: Rows) -> Path:
    """A file in the format that its name ends in."""
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[1]
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    if kind == "json":
        text = json.dumps(rows, ensure_ascii=False)
    elif kind == "jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif kind == "tsv":
        lines = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
        text = "".join("\t".join(line) + "\n" for line in lines)
    else:
        with path.with_suffix(".plain").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        text = path.with_suffix(".plain").read_text(encoding="utf-8")
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def columns(**values: Sequence[Any]) -> Rows:
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


ANSWERS = columns(id=["c", "a", "d", "b"], prediction=["good", "bad", "bad", "bad"])


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_says_the_same(tmp_path: Path, kind: str) -> None:
    like = texts_run()
    found, summary = read_outside(write(tmp_path / f"theirs.{kind}", ANSWERS), like)
    assert found.ids == like.test.ids
    assert found.inputs == TEXTS
    assert found.truth == like.test.truth
    assert found.fields["prediction"].tolist() == ["bad", "bad", "good", "bad"]
    assert summary == {
        "schema_version": 1,
        "title": "theirs",
        "task": "text-classification",
        "status": "complete",
        "model": {"name": f"theirs.{kind}", "method": "outside predictions"},
        "data": {
            "label_names": ["good", "bad"], "test_examples": 4, "hashes": {"test": "c" * 64},
        },
        "training": {},
        "environment": {},
        "test": {
            "accuracy": {"value": 0.75, "n": 4, "signature": "accuracy|n:4|by rule"},
            # good: 1 right, 1 predicted, 2 true; bad: 2 right, 3 predicted, 2 true
            "macro_f1": {
                "value": pytest.approx((2 / 3 + 4 / 5) / 2),
                "n": 4,
                "signature": "macro_f1|n:4|by rule",
            },
        },
    }  # fmt: skip
    _, summary = read_outside(tmp_path / f"theirs.{kind}", like, title="Their system")
    assert summary["title"] == "Their system"


@pytest.mark.parametrize("kind", FORMATS)
def test_without_ids_texts_say_which_row_is_which(tmp_path: Path, kind: str) -> None:
    order = [2, 0, 3, 1]
    rows = columns(text=[TEXTS[row] for row in order], prediction=["good", "bad", "bad", "bad"])
    found, _ = read_outside(write(tmp_path / f"x.{kind}", rows), texts_run())
    assert found.fields["prediction"].tolist() == ["bad", "bad", "good", "bad"]


def test_pairs_images_and_tokens_say_it_too(tmp_path: Path) -> None:
    like = texts_run()
    pairs = Run(
        like.folder, like.summary,
        Predictions(["a", "b"], ["x | y", "x | z"], None, ["good", "bad"], like.test.fields),
    )  # fmt: skip
    rows = columns(text=["x", "x"], pair=["z", "y"], prediction=["bad", "good"])
    found, _ = read_outside(write(tmp_path / "a.csv", rows), pairs)
    assert found.fields["prediction"].tolist() == ["good", "bad"]

    image = texts_run(task="image-classification")
    images = Predictions(["a", "b"], None, ["f.zip, 1", "f.zip, 2"], ["good", "bad"], {})
    rows = columns(image=["f.zip, 2", "f.zip, 1"], prediction=["bad", "good"])
    found, _ = read_outside(
        write(tmp_path / "b.jsonl", rows), Run(image.folder, image.summary, images)
    )
    assert found.fields["prediction"].tolist() == ["good", "bad"]

    for tokens in ([["王", "明"], ["在", "上", "海"]], ["王 明", "在 上 海"]):
        rows = columns(tokens=tokens[::-1], prediction=["O B-LOC I-LOC", "B-PER I-PER"])
        found, _ = read_outside(write(tmp_path / "c.json", rows), tags_run().pop())
        assert found.fields["predicted"].tolist() == [
            ("B-PER", "I-PER"), ("O", "B-LOC", "I-LOC"),
        ]  # fmt: skip


def test_texts_that_repeat_need_their_order_or_ids(tmp_path: Path) -> None:
    like = texts_run()
    repeated = [*TEXTS[:3], TEXTS[0]]
    test = Predictions(like.test.ids, repeated, None, like.test.truth, like.test.fields)
    like = Run(like.folder, like.summary, test)
    answers = ["bad", "bad", "good", "good"]
    rows = columns(text=repeated, prediction=answers)
    found, _ = read_outside(write(tmp_path / "a.csv", rows), like)
    assert found.fields["prediction"].tolist() == answers
    with pytest.raises(UserError, match=r"a\.csv has no column 'id'.*share theirs.*房间很干净"):
        read_outside(write(tmp_path / "a.csv", rows[::-1]), like)
    # Where nearly all are equal, their order proves nothing.
    test = Predictions(like.test.ids, ["谁？"] * 4, None, like.test.truth, like.test.fields)
    rows = columns(text=["谁？"] * 4, prediction=answers)
    with pytest.raises(UserError, match=r"share theirs.*predictions/test\.parquet"):
        read_outside(write(tmp_path / "a.csv", rows), Run(like.folder, like.summary, test))


def test_numbers_name_labels_where_labels_are_numbers(tmp_path: Path) -> None:
    like = texts_run(("0", "1"))
    for kind, values in (
        ("csv", [0, "1", "1.0", " 0"]), ("json", [0, 1, 1.0, "0"]), ("parquet", [0, 1, 1, 0]),
    ):  # fmt: skip
        rows = columns(id="abcd", prediction=values)
        found, _ = read_outside(write(tmp_path / f"x.{kind}", rows), like)
        assert found.fields["prediction"].tolist() == ["0", "1", "1", "0"]
    rows = columns(id=[1, 2], prediction=["a", "b"])
    numbered = Predictions(["2", "1"], None, None, ["a", "b"], {})
    named = texts_run(("a", "b"))
    found, _ = read_outside(
        write(tmp_path / "x.json", rows), Run(named.folder, named.summary, numbered)
    )
    assert found.fields["prediction"].tolist() == ["b", "a"]


def test_probabilities_of_the_answer(tmp_path: Path) -> None:
    rows = columns(id="abcd", prediction=["good", "good", "bad", "bad"],
                   confidence=[0.9, 0.6, "0.75", 1])  # fmt: skip
    found, _ = read_outside(write(tmp_path / "x.csv", rows), texts_run())
    assert found.fields["confidence"].tolist() == [0.9, 0.6, 0.75, 1]
    assert found.fields["truth_probability"] == pytest.approx([0.9, 0.4, 0.25, 1])
    empty = columns(id="abcd", prediction=["good", "good", "bad", "bad"], confidence=[""] * 4)
    without, _ = read_outside(write(tmp_path / "y.csv", empty), texts_run())
    assert "confidence" not in without.fields
    three = texts_run(("good", "bad", "so so"))
    found, summary = read_outside(tmp_path / "x.csv", three)
    assert "truth_probability" not in found.fields  # the rest has two labels to be shared by
    shown = TASKS["text-classification"].view(
        "text-classification", [three.test, found], [three.summary, summary]
    )
    assert shown.confidence is not None
    assert shown.confidence[1].tolist() == [0.9, 0.6, 0.75, 1]


def test_a_truth_that_was_not_known_says_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", classes(label=[""] * 4))
    _, summary = read_outside(path, texts_run())
    assert summary["test"]["accuracy"]["value"] == 1


def tags_run() -> list[Run]:
    gold = [("B-PER", "I-PER"), ("O", "B-LOC", "I-LOC")]
    return [
        run(
            "token-classification",
            {"label_names": ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"], "tokens": tokens},
            described("entity_f1") | {"precision": 0.1, "recall": 0.2},
            ids=["a", "b"],
            inputs=[space.join("王明"), space.join("在上海")],
            truth=gold,
            fields={"tokens": objects([list("王明"), list("在上海")]), "predicted": objects(gold)},
        )
        for tokens, space in (("words", " "), ("characters", ""))
    ]


@pytest.mark.parametrize(
    ("kind", "tags"),
    [
        ("csv", ["B-PER I-PER", "O O B-LOC"]),
        ("csv", ['["B-PER", "I-PER"]', '["O", "O", "B-LOC"]']),
        ("csv", ["['B-PER', 'I-PER']", "['O', 'O', 'B-LOC']"]),
        ("jsonl", [["B-PER", "I-PER"], ["O", "O", "B-LOC"]]),
        ("parquet", [["B-PER", "I-PER"], ["O", "O", "B-LOC"]]),
        ("tsv", ["B-PER E-PER", "O O S-LOC"]),
        ("json", [["B-PER", "L-PER"], ["O", "O", "U-LOC"]]),
    ],
)
def test_tags_in_every_form(tmp_path: Path, kind: str, tags: list[Any]) -> None:
    for like in tags_run():
        path = write(tmp_path / f"x.{kind}", columns(id="ab", prediction=tags))
        found, summary = read_outside(path, like)
        assert found.fields["predicted"].tolist() == [("B-PER", "I-PER"), ("O", "O", "B-LOC")]
        assert summary["test"] == {
            "entity_f1": {"value": 0.5, "n": 4, "signature": "entity_f1|n:4|by rule"},
            "precision": 0.5,
            "recall": 0.5,
        }
        assert summary["data"]["tokens"] == like.summary["data"]["tokens"]


def test_no_entity_at_all(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", columns(id="ab", prediction=["O O", "O O O"]))
    _, summary = read_outside(path, tags_run()[0])
    assert summary["test"]["entity_f1"]["value"] == 0


def questions_run() -> Run:
    return run(
        "question-answering",
        {"language": "zh"},
        described("f1", "exact_match"),
        ids=["a", "b", "c"],
        inputs=["哪里？", "谁？", "几点？"],
        truth=[("上海", "上海市"), (), ("[1]",)],
        fields={
            "prediction": objects(["", "", ""]),
            "context_hash": objects(["x", "x", "y"]),
        },
    )


@pytest.mark.parametrize(
    ("kind", "truth"),
    [
        ("csv", ["上海市", "", "[1]"]),
        ("csv", ['["上海", "上海市"]', "[]", '["[1]"]']),
        ("json", [["上海市", "上海"], [], ["[1]"]]),
        ("json", [{"text": ["上海", "上海市"], "answer_start": [0, 0]}, {"text": []}, "[1]"]),
        ("jsonl", [["上海市", "上海"], None, "[1]"]),
    ],
)
def test_answers_in_every_form(tmp_path: Path, kind: str, truth: list[Any]) -> None:
    given = ["上海市", "", "二点"] if kind == "csv" else ["上海市", None, "二点"]
    rows = columns(question=["哪里？", "谁？", "几点？"], prediction=given, answers=truth)
    found, summary = read_outside(write(tmp_path / f"x.{kind}", rows), questions_run())
    assert found.fields["prediction"].tolist() == ["上海市", "", "二点"]
    assert found.fields["context_hash"].tolist() == ["x", "x", "y"]
    assert summary["test"]["exact_match"]["value"] == pytest.approx(2 / 3)


def test_squads_own_form_of_predictions(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps({"b": "", "c": "x", "a": "上海"}), encoding="utf-8")
    found, _ = read_outside(path, questions_run())
    assert found.fields["prediction"].tolist() == ["上海", "", "x"]
    path.write_text(json.dumps({"b": "", "c": "x", "z": "上海"}), encoding="utf-8")
    with pytest.raises(UserError, match=r"1 of the 3 test examples are missing \('a'\) and 1 rows"):
        read_outside(path, questions_run())
    path.write_text(json.dumps({"b": "", "c": 7, "a": "上海"}), encoding="utf-8")
    with pytest.raises(UserError, match=r"predictions\.json, entry 2: prediction is 7, expected a"):
        read_outside(path, questions_run())


def translation_run() -> Run:
    return run(
        "translation",
        {"source_language": "en", "target_language": "zh"},
        described("bleu", "chrf", "exact_match", "bleu_lowercase"),
        ids=["a", "b"],
        inputs=["five o'clock sharp", "today is Monday"],
        truth=["五点整了", "今天星期一"],
        fields={"hypothesis": objects(["", ""])},
    )


def test_translations(tmp_path: Path) -> None:
    rows = columns(
        source=["today is Monday", "five o'clock sharp"],
        hypothesis=["今天星期一", "五点"],
        reference=["今天星期一", "五点整了"],
    )
    found, summary = read_outside(write(tmp_path / "x.tsv", rows), translation_run())
    assert found.fields["hypothesis"].tolist() == ["五点", "今天星期一"]
    # All that was written is right, and two of nine characters are not there.
    assert summary["test"]["bleu"]["value"] == pytest.approx(100 * math.exp(1 - 9 / 7))
    assert summary["test"]["exact_match"]["value"] == 0.5
    assert summary["data"]["target_language"] == "zh"


def losses_run() -> Run:
    fields = {"nll": [3.0, 8.0], "tokens": [2, 4], "words": [2, 3], "bytes": [6, 9]}
    return run(
        "language-modeling",
        {"word": "character"},
        described("perplexity", "word_perplexity", "bits_per_byte"),
        ids=["a", "b"],
        inputs=["今天", "今天好"],
        truth=["今天", "今天好"],
        fields={name: np.array(values, dtype=float) for name, values in fields.items()},
    )


def test_losses(tmp_path: Path) -> None:
    rows = columns(text=["今天好", "今天"], nll=["7.5", "2.5"], tokens=[5, 1])
    like = losses_run()
    found, summary = read_outside(write(tmp_path / "x.csv", rows), like)
    assert found.fields["nll"].tolist() == [2.5, 7.5]
    assert found.fields["tokens"].tolist() == [1, 5]
    assert found.fields["bytes"].tolist() == [6, 9]
    values = {key: score["value"] for key, score in summary["test"].items()}
    assert values == pytest.approx(
        {
            "perplexity": math.exp(10 / 6),
            "word_perplexity": math.exp(2),
            "bits_per_byte": 10 / math.log(2) / 15,
        }
    )
    shown = TASKS["language-modeling"].view(
        "language-modeling", [like.test, found], [like.summary, summary]
    )
    assert shown.primary.key == "word_perplexity"  # other tokens
    own = columns(id="ab", nll=[2.5, 7.5], tokens=[1, 5], bytes=[5, 5])
    _, summary = read_outside(write(tmp_path / "x.csv", own), like)
    assert summary["test"]["bits_per_byte"]["value"] == pytest.approx(1 / math.log(2))


CLASSES = {"id": list("abcd"), "prediction": ["good", "bad", "good", "bad"]}


def classes(**changes: Any) -> Rows:
    kept = {name: value for name, value in (CLASSES | changes).items() if value is not None}
    return columns(**kept)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (classes(prediction=["good", "bad", "god", "bad"]),
         "line 4: prediction is 'god', expected a label of the run: good, bad. Did you mean good?"),
        (classes(prediction=["good", "1", "good", "bad"]),
         "line 3: prediction is '1', expected a label of the run: good, bad."),
        (classes(prediction=["good", "", "good", "bad"]), "line 3: prediction is ''"),
        (classes(prediction=None, answer=["good"] * 4),
         "has no column 'prediction'. Columns found: id, answer."),
        (classes(id=None), "has no column 'id', nor one of text, pair with what was asked. "
         "Columns found: prediction. Nothing says which row is about which example: take the ids "
         "from results/runs/x/a/predictions/test.parquet."),
        (classes(id=["a", "b", "b", "b"]), "line 4: the id 'b' stands there a second time"),
        (classes(id=["a", "b", "", "d"]), "line 4: id is '', expected the id of an example."),
        (classes()[:2], "2 of the 4 test examples are missing ('c', 'd'). Expected every example"),
        (classes(id=["a", "b", "x", "d"]),
         "1 of the 4 test examples are missing ('c') and 1 rows are about no test example ('x')."),
        (classes(id=list("wxyz")), "4 of the 4 test examples are missing ('a', 'b', 'c', …)"),
        (classes(id=list("0123"), text=TEXTS), "Without the column 'id', rows are matched by what"),
        ([*classes(), {"id": "e", "prediction": "bad"}], "1 rows are about no test example ('e')"),
        (classes(label=["good", "bad", "bad", "bad"]),
         "line 4: label is 'bad', but results/runs/x/a has 'good' for this example (1 of 4 "),
        (classes(label=["good", "bad", "x", "bad"]), "line 4: label is 'x', expected a label"),
        (classes(prediction=["good", "GOOD ", "good", "bad"]), "good, bad. Did you mean good?"),
        (classes(confidence=[0.5, 50, 0.5, 0.5]),
         "line 3: confidence is '50', expected a number from 0 to 1."),
        (classes(probability=[0.5, 0.5, "high", 0.5]), "line 4: probability is 'high', expected a"),
        (classes(id=None, text=[*TEXTS[:3], "别的"]),
         "1 of the 4 test examples are missing ('一般') and 1 rows are about no test example"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_labels_is_named(tmp_path: Path, rows: Rows, expected: str) -> None:
    path = write(tmp_path / "x.csv", rows)
    with pytest.raises(UserError) as raised:
        read_outside(path, texts_run())
    assert str(path) in str(raised.value)
    assert expected in str(raised.value)


def tags(*cells: Any) -> Rows:
    return columns(id="ab", prediction=cells)


@pytest.mark.parametrize(
    ("like", "rows", "expected"),
    [
        (tags_run()[0], tags("B-PER I-PER", "O O"),
         "row 2: 2 tags in prediction for 3 tokens (在 上 海); each needs its own."),
        (tags_run()[0], tags("B-PER I-PER", "O O B-ORG"),
         "row 2: prediction holds 'B-ORG', expected a type of the run: LOC, PER."),
        (tags_run()[0], tags("B-PER I-PER", "O O LOC"), "row 2: prediction: 'LOC' is no tag"),
        (tags_run()[0], tags("B-PER E-PER", "M-LOC U-LOC L-LOC"), "prediction: no scheme has"),
        (tags_run()[0], tags(["B-PER", 1], "O O O"), "row 1: prediction is ['B-PER', 1], expected"),
        (tags_run()[0], tags("[B-PER, I-PER]", "O O O"), "row 1: prediction is '[B-PER, I-PER]'"),
        (tags_run()[0], columns(id="ab", prediction=["O O", "O O O"], gold=["O O", "O O O"]),
         "row 1: gold is ('O', 'O'), but results/runs/x/a has ('B-PER', 'I-PER')"),
        (questions_run(), columns(id="abc", prediction=["x", 3, "y"]), "row 2: prediction is 3"),
        (questions_run(), columns(id="abc", prediction=["x"] * 3, answers=["上海", "y", "[1]"]),
         "row 2: answers is ('y',), but results/runs/x/a has () for this example (1 of 3 differ)"),
        (questions_run(), columns(id="abc", prediction=["x"] * 3, answers=[["上海"], [], ["[1]"]]),
         "row 1: answers is ('上海',), but results/runs/x/a has ('上海', '上海市')"),
        (translation_run(), columns(id="ab", prediction=["x", None]),
         "row 2: prediction is None, expected a text."),
        (translation_run(), columns(id="ab", prediction=["x", "y"], target=["五点整了", "今天"]),
         "row 2: target is '今天', but results/runs/x/a has '今天星期一'"),
        (losses_run(), columns(id="ab", nll=[1.5, -2.5], tokens=[1, 2]),
         "row 2: nll is -2.5, expected a number from 0 on."),
        (losses_run(), columns(id="ab", nll=[1.5, math.nan], tokens=[1, 2]), "row 2: nll is nan"),
        (losses_run(), columns(id="ab", nll=[1.5, math.inf], tokens=[1, 2]), "row 2: nll is inf"),
        (losses_run(), columns(id="ab", nll=[1.5, 2.5], tokens=[1, 2.5]),
         "row 2: tokens is 2.5, expected a whole number from 0 on."),
        (losses_run(), columns(id="ab", nll=[1.5, 2.5]), "has no column 'tokens'"),
        (losses_run(), columns(id="ab", tokens=[1, 2]), "has no column 'nll'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_other_answers_is_named(
    tmp_path: Path, like: Run, rows: Rows, expected: str
) -> None:
    path = write(tmp_path / "x.json", rows)
    with pytest.raises(UserError) as raised:
        read_outside(path, like)
    assert str(path) in str(raised.value)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.csv", "id,prediction\na,good,\n", "line 2: 3 fields, expected 2"),
        ("x.jsonl", '{"id": "a"}\n{"id"\n', "line 2: not JSON"),
        ("x.parquet", "PAR1", "is not a readable parquet file"),
        ("x.xlsx", "x", "is of an unknown kind"),
        ("x.csv", "", "is empty"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=expected):
        read_outside(tmp_path / name, texts_run())


def test_no_file_and_no_such_task(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_outside(tmp_path / "x.csv", texts_run())
    like = texts_run()
    other = Run(like.folder, like.summary | {"task": "pretraining"}, like.test)
    path = write(tmp_path / "x.csv", ANSWERS)
    with pytest.raises(UserError, match=r"x\.csv: .*cannot be compared in the task 'pretraining'"):
        read_outside(path, other)


def test_any_order_of_rows_gives_the_same(tmp_path: Path) -> None:
    rows = classes(label=["good", "bad"] * 2)
    expected, summary = read_outside(write(tmp_path / "x.csv", rows), texts_run())
    generator = random.Random(0)
    for _ in range(5):
        shuffled = generator.sample(rows, len(rows))
        found, again = read_outside(write(tmp_path / "x.csv", shuffled), texts_run())
        assert found.ids == expected.ids
        assert found.fields["prediction"].tolist() == expected.fields["prediction"].tolist()
        assert again == summary


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_csv_as_excel_writes_it_where_the_comma_stands_in_numbers(
    tmp_path: Path, encoding: str
) -> None:
    names = ["好", "差"]
    rows = ["text;prediction", "房间很干净;好", "太旧了，不推荐;差", '"很,好""的""";好', "一般;差"]
    file = tmp_path / "theirs.csv"
    file.write_bytes("\r\n".join(rows).encode(encoding))
    found, _ = read_outside(file, texts_run(names))
    assert found.fields["prediction"].tolist() == ["好", "差", "好", "差"]
    torn = tmp_path / "torn.csv"
    torn.write_text("id;prediction\na;好\nb;差;x\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"line 3: 3 fields, expected 2 .* holds a semicolon must"):
        read_outside(torn, texts_run(names))


@pytest.mark.parametrize("one", [1, 1.0, "1", "1.0", " 1"])
def test_label_ids_are_read_in_the_order_of_the_run_and_it_is_said(
    tmp_path: Path, one: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    zero = str(one).replace("1", "0", 1) if isinstance(one, str) else type(one)(0)
    rows = columns(id=["a", "b", "c", "d"], prediction=[zero, one, one, zero])
    found, summary = read_outside(write(tmp_path / "theirs.jsonl", rows), texts_run())
    assert found.fields["prediction"].tolist() == ["good", "bad", "bad", "good"]
    assert summary["data"]["label_ids"] == {"0": "good", "1": "bad"}
    assert "label ids, read in the run's order: 0 = good, 1 = bad" in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_truth_shows_that_label_ids_mean_something_else(tmp_path: Path) -> None:
    rows = columns(id=["a", "b", "c", "d"], prediction=[1, 0, 1, 0], label=[1, 0, 1, 0])
    with pytest.raises(UserError, match=r"label is 'bad', but .* has 'good' for this example"):
        read_outside(write(tmp_path / "theirs.csv", rows), texts_run())


def test_numbers_are_no_label_ids_where_not_all_are_or_a_label_is_a_number(tmp_path: Path) -> None:
    for cells in ([0, 1, 2, 0], [0, 1, "bad", 0], [0.5, 1, 0, 0], [-1, 1, 0, 0]):
        rows = columns(id=["a", "b", "c", "d"], prediction=cells)
        with pytest.raises(UserError, match="expected a label of the run: good, bad") as refused:
            read_outside(write(tmp_path / "theirs.jsonl", rows), texts_run())
        hint = "Numbers are read as label ids only where all of them are, from 0 to 1"
        assert hint in str(refused.value)
    # Stars: 1 is a label's name, not the second label's id.
    rows = columns(id=["a", "b", "c", "d"], prediction=[1, 2, 1, 2])
    found, summary = read_outside(write(tmp_path / "stars.csv", rows), texts_run(("1", "2")))
    assert found.fields["prediction"].tolist() == ["1", "2", "1", "2"]
    assert "label_ids" not in summary["data"]
    rows = columns(id=["a", "b", "c", "d"], prediction=[0, 1, 1, 1])
    with pytest.raises(UserError, match="prediction is '0', expected a label of the run: 1, 2"):
        read_outside(write(tmp_path / "ids.csv", rows), texts_run(("1", "2")))

"""Pairs of texts: told apart by both, refused with the row; single texts as they ever were."""

import csv
import hashlib
import json

import datasets
import pytest

from toolkit.data.config import TextDataConfig
from toolkit.data.text_classification import load_text_classification
from toolkit.errors import UserError

HEADER = ("premise", "hypothesis", "label")
PAIRS = [(f"第{i}位客人到了", f"有{i % 7}个人来过", ("是", "否")[i % 2]) for i in range(24)]
COLUMNS = {"text_column": "premise", "pair_column": "hypothesis"}


def write(path, rows, header=HEADER):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def rows_of(data):
    return [row for split in (data.train, data.validation, data.test) for row in split]


def sha256(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def test_both_texts_arrive_and_the_id_is_a_hash_of_both(tmp_path):
    data = load_text_classification(write(tmp_path / "a.csv", PAIRS), **COLUMNS)
    assert data.train.column_names == ["id", "text", "pair", "label"]
    assert data.summary["columns"]["train"] == ["premise", "hypothesis", "label"]
    found = {
        row["id"]: (row["text"], row["pair"], data.label_names[row["label"]])
        for row in rows_of(data)
    }
    assert found == {
        f"{sha256(json.dumps([text, pair], ensure_ascii=False))[:12]}-{number}": (text, pair, label)
        for number, (text, pair, label) in enumerate(PAIRS, start=1)
    }
    assert sorted(data.training_texts()) == sorted(
        [row["text"] for row in data.train] + [row["pair"] for row in data.train]
    )


def test_single_texts_have_the_ids_hashes_and_columns_they_always_had(tmp_path):
    rows = [(text, label) for text, _, label in PAIRS]
    write(tmp_path / "train.csv", rows, ("text", "label"))
    write(tmp_path / "dev.csv", [("甲", "是"), ("乙", "否")], ("text", "label"))
    write(tmp_path / "test.csv", [("丙", "是"), ("丁", "否")], ("text", "label"))
    data = load_text_classification(str(tmp_path))
    assert data.test.column_names == ["id", "text", "label"]
    assert data.test["id"][:] == [f"{sha256('丙')[:12]}-1", f"{sha256('丁')[:12]}-2"]
    assert data.summary["sha256"]["test"] == sha256('["丙", "是"]\n["丁", "否"]\n')
    assert data.summary["columns"]["test"] == ["text", "label"]
    assert sorted(data.training_texts()) == sorted(text for text, _ in rows)


def test_the_hash_of_a_split_covers_the_second_texts(tmp_path):
    data = []
    for name, second in (("a", "有人来过"), ("b", "没人来过")):
        folder = tmp_path / name
        folder.mkdir()
        write(folder / "train.csv", PAIRS)
        write(folder / "test.csv", [("客人", "来了", "是"), ("客人", second, "否")])
        data.append(load_text_classification(str(folder), **COLUMNS).summary["sha256"])
    assert data[0]["test"] != data[1]["test"]
    assert data[0]["train"] == data[1]["train"]


def test_a_leak_is_the_same_pair_and_nothing_else(tmp_path, capsys):
    text, pair, _ = PAIRS[0]
    train = [
        *PAIRS,
        (f"{text} ", f"{pair}\u3000", "是"),  # the same, but for what normalisation removes
        (text, "另一句", "是"),  # the same first text
        ("另一句", pair, "否"),  # the same second text
        (pair, text, "否"),  # the other way round
        ("前 中", "后", "是"),  # the same characters, divided elsewhere
    ]
    write(tmp_path / "train.csv", train)
    write(tmp_path / "test.csv", [(text, pair, "否"), ("前", "中 后", "否"), ("新", "新", "是")])
    data = load_text_classification(str(tmp_path), **COLUMNS)
    assert data.summary["overlap"]["test"] == {
        "in_train_exact": 1,
        "in_train_normalized": 1,
        "with_opposite_label": 1,
        "training_rows": 2,
        "training_rows_removed": 2,
    }
    assert "1 of 3 test pairs also stand in the training rows" in capsys.readouterr().err
    assert len(data.train) + len(data.validation) == len(train) - 2


def test_equal_pairs_stay_on_one_side_of_a_made_split(tmp_path):
    repeated = [*PAIRS, *((f" {text}", pair, label) for text, pair, label in PAIRS)]
    data = load_text_classification(write(tmp_path / "a.csv", repeated), **COLUMNS)
    sides = [
        {(row["text"].strip(), row["pair"]) for row in split}
        for split in (data.train, data.validation, data.test)
    ]
    assert sum(map(len, sides)) == len(set.union(*sides)) == 24
    assert data.summary["repetitions_in_train"]["normalized"] == 24
    assert data.summary["repetitions_in_train"]["exact"] == 0


@pytest.mark.parametrize("blank", [("", "有人"), ("有人", ""), ("有人", "\u3000\u200b")])
def test_a_pair_without_either_text_is_dropped_from_training_and_refused_in_test(
    tmp_path, capsys, blank
):
    train = write(tmp_path / "train.csv", [*PAIRS, (*blank, "是")])
    data = load_text_classification(train, **COLUMNS)
    assert data.summary["dropped"]["train"] == {"without_text": 1, "without_label": 0}
    assert sum(data.summary["sizes"].values()) == 24
    assert "1 row without text in premise or hypothesis (the first: " in capsys.readouterr().err
    test = write(tmp_path / "test.csv", [("好", "好", "是"), (*blank, "否")])
    with pytest.raises(UserError, match=r"test\.csv, line 3: no text in premise or hypothesis"):
        load_text_classification(train, test_file=test, **COLUMNS)


def test_columns_that_cannot_hold_second_texts(tmp_path):
    file = write(tmp_path / "a.csv", PAIRS)
    with pytest.raises(UserError, match=r"no column 'hypotesis'.*Did you mean hypothesis\?"):
        load_text_classification(file, text_column="premise", pair_column="hypotesis")
    with pytest.raises(UserError, match=r"--pair_column premise: .*--text_column"):
        load_text_classification(file, text_column="premise", pair_column="premise")
    records = [{"text": a, "other": b, "label": c} for a, b, c in PAIRS]
    records[2]["other"] = 7
    numbers = tmp_path / "numbers.jsonl"
    numbers.write_text("\n".join(map(json.dumps, records)), "utf-8")
    with pytest.raises(UserError, match=r"numbers\.jsonl, line 3: other is 7, expected a text"):
        load_text_classification(str(numbers), pair_column="other")
    records[2]["other"] = "a\ud800"
    numbers.write_text("\n".join(map(json.dumps, records)), "utf-8")
    with pytest.raises(UserError, match=r"line 3: other holds half a character .*character 2\)"):
        load_text_classification(str(numbers), pair_column="other")


def test_who_reads_single_texts_refuses_pairs(tmp_path):
    file = write(tmp_path / "a.csv", PAIRS)
    config = TextDataConfig(dataset=file, **COLUMNS)
    assert "pair" in config.load_data().train.column_names
    with pytest.raises(UserError, match="--pair_column hypothesis: this recipe reads one text"):
        config.load_single_texts()
    single = TextDataConfig(dataset=file, text_column="premise").load_single_texts()
    assert "pair" not in single.train.column_names


def hub(monkeypatch, **splits):
    """A data set on the Hub with the configuration `nli`."""
    features = datasets.Features(
        {
            "sentence1": datasets.Value("string"),
            "sentence2": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["是", "否"]),
        }
    )
    loaded = {
        name: datasets.Dataset.from_dict(
            dict(zip(features, map(list, zip(*rows, strict=True)), strict=True)), features=features
        )
        for name, rows in splits.items()
    }

    def load(name, config):
        assert (name, config) == ("owner/name", "nli")
        return datasets.DatasetDict(loaded)

    monkeypatch.setattr("toolkit.data.sources.hub_failure", lambda: None)
    monkeypatch.setattr(datasets, "load_dataset", load)


def test_a_test_set_whose_labels_are_kept_back_is_replaced_and_said(monkeypatch, capsys):
    train = [(text, pair, ("是", "否").index(label)) for text, pair, label in PAIRS]
    hub(monkeypatch, train=train, validation=[("甲", "乙", 0)], test=[("丙", "丁", -1)] * 3)
    data = load_text_classification("owner/name", hub_config="nli", pair_column="sentence2")
    assert data.summary["splits_made"] == ["test"]
    assert data.summary["dropped"]["test"] == {"without_label": 3}
    assert {row["text"] for row in data.test} < {text for text, _, _ in PAIRS}
    assert data.validation["pair"][:] == ["乙"]
    assert "the test set has no published labels (3 rows)" in capsys.readouterr().err
    hub(monkeypatch, train=train, test=[("丙", "丁", -1), ("丙", "戊", 0)])
    with pytest.raises(UserError, match=r"owner/name \(test\), row 1: no label"):
        load_text_classification("owner/name", hub_config="nli", pair_column="sentence2")


def test_a_file_of_ones_own_without_labels_stays_a_mistake(tmp_path):
    train = write(tmp_path / "train.csv", PAIRS)
    test = write(tmp_path / "test.csv", [("好", "好", ""), ("坏", "坏", "")])
    with pytest.raises(UserError, match=r"test\.csv, line 2: no label"):
        load_text_classification(train, test_file=test, **COLUMNS)

"""Loading labelled texts: what a user brings is read right, or refused with the row."""

import csv
import json
from pathlib import Path

import datasets
import pytest

from toolkit.data.text_classification import load_text_classification
from toolkit.errors import UserError

NEGATIVE = [
    "空调坏了没人修",
    "排队两小时，体验差",
    "按键松动，声音发闷",
    "菜是凉的，还多收钱",
    "隔音太差，一夜没睡",
    "退款拖了半个月",
]
POSITIVE = [
    "房间很干净，早餐也不错",
    "店员耐心，取车很快",
    "电池耐用，屏幕清楚",
    "汤很鲜，下次还来",
    "位置好找，性价比高",
    "包装结实，送货准时",
]
TEXTS = [text for pair in zip(NEGATIVE, POSITIVE, strict=True) for text in pair]


def write_csv(path, rows, header=("text", "label")):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def alternating(first, second):
    return list(zip(TEXTS, [first, second] * 6, strict=True))


def labels_by_text(data):
    splits = (data.train, data.validation, data.test)
    return {row["text"]: data.label_names[row["label"]] for split in splits for row in split}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ((1, 2, 3, 5), ["1", "2", "3", "5"]),
        ((-1, 1), ["-1", "1"]),
        ((-100, 1), ["-100", "1"]),
        ((10, 9), ["9", "10"]),
        ((0.0, 1.0), ["0", "1"]),
        (("negative", "positive"), ["negative", "positive"]),
        ((" 负面", "正面 ", "负面", "正面"), ["正面", "负面"]),
        (("True", "false"), ["false", "true"]),
    ],
)
def test_labels_of_any_writing_become_ids_in_one_order(tmp_path, values, names):
    rows = [(text, values[i % len(values)]) for i, text in enumerate(TEXTS)]
    data = load_text_classification(write_csv(tmp_path / "a.csv", rows))
    assert data.label_names == names
    reordered = load_text_classification(write_csv(tmp_path / "b.csv", rows[::-1]))
    assert reordered.label_names == names
    assert labels_by_text(reordered) == labels_by_text(data)


def test_json_booleans_and_mixed_types_are_two_classes(tmp_path):
    booleans, mixed = tmp_path / "bool.jsonl", tmp_path / "mixed.jsonl"
    values = [i % 2 if i < 6 else str(i % 2) for i in range(12)]
    for path, labels in ((booleans, [bool(i % 2) for i in range(12)]), (mixed, values)):
        records = [{"text": t, "label": v} for t, v in zip(TEXTS, labels, strict=True)]
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), "utf-8")
    assert load_text_classification(str(booleans)).label_names == ["false", "true"]
    assert load_text_classification(str(mixed)).label_names == ["0", "1"]


def test_ids_come_from_the_training_rows_though_test_lacks_a_class(tmp_path):
    rows = [(text, ["ant", "bee", "cat"][i % 3]) for i, text in enumerate(TEXTS)]
    write_csv(tmp_path / "train.csv", rows)
    write_csv(
        tmp_path / "test.csv", [("蜂一", "bee"), ("蜂二", "bee"), ("猫一", "cat"), ("猫二", "cat")]
    )
    data = load_text_classification(str(tmp_path))
    assert data.label_names == ["ant", "bee", "cat"]
    assert data.test["label"][:] == [1, 1, 2, 2]
    assert data.summary["class_counts"]["test"] == {"ant": 0, "bee": 2, "cat": 2}


def test_unknown_test_label_is_refused_by_name_file_and_row(tmp_path):
    train = write_csv(tmp_path / "train.csv", alternating("negative", "positive"))
    test = write_csv(tmp_path / "test.csv", [("还可以", "positive"), ("一般般吧", "neutral")])
    with pytest.raises(UserError, match=r"test\.csv, line 3: .*'neutral'.*negative, positive"):
        load_text_classification(train, test_file=test)


def test_one_class_is_refused(tmp_path):
    with pytest.raises(UserError, match="1 class only"):
        load_text_classification(write_csv(tmp_path / "a.csv", alternating(1, 1)))


def test_rows_without_label_or_text_are_dropped_from_training_and_counted(tmp_path, capsys):
    rows = [*alternating(0, 1), ("没有标签", ""), ("", 1), ("\u3000\u200b ", 0)]
    data = load_text_classification(write_csv(tmp_path / "a.csv", rows))
    assert sum(data.summary["sizes"].values()) == 12
    assert data.summary["dropped"]["train"] == {"without_text": 2, "without_label": 1}
    assert "2 rows without text and 1 row without label" in capsys.readouterr().err


@pytest.mark.parametrize(("row", "what"), [(("没有标签", ""), "no label"), (("", 1), "no text")])
def test_test_rows_without_label_or_text_are_refused(tmp_path, row, what):
    train = write_csv(tmp_path / "train.csv", alternating(0, 1))
    test = write_csv(tmp_path / "test.csv", [("好", 1), row])
    with pytest.raises(UserError, match=rf"test\.csv, line 3: {what}"):
        load_text_classification(train, test_file=test)


def test_words_for_nothing_are_words(tmp_path):
    words = ["null", "NA", "N/A", "nan", "None", "<NA>", "#N/A"]
    rows = [*alternating(0, 1), *((word, i % 2) for i, word in enumerate(words))]
    data = load_text_classification(write_csv(tmp_path / "a.csv", rows))
    texts = set(data.train["text"]) | set(data.validation["text"]) | set(data.test["text"])
    assert set(words) < texts


def test_texts_that_show_nothing_are_counted_by_what_they_hold(tmp_path):
    blank = [("", 1), ("\u3000 ", 1), (" ", 0), ("\u200b\ufeff", 0)]
    data = load_text_classification(
        write_csv(tmp_path / "a.csv", [*alternating(0, 1), *((f"{t}", v) for t, v in blank)])
    )
    assert data.summary["dropped"]["train"] == {"without_text": 4, "without_label": 0}
    assert data.summary["blank_texts"] == {"train": {"empty": 1, "spaces": 2, "invisible": 1}}


def test_training_rows_that_stand_in_test_are_counted_and_removed(tmp_path, capsys):
    rows = alternating(0, 1)
    write_csv(tmp_path / "train.csv", [*rows, *rows[:2]])
    test = [
        rows[0],
        rows[3],
        (rows[5][0] + " ", 1),
        (rows[7][0], 0),
        ("全新的一条评论", 1),
        ("另一条新的差评", 0),
    ]
    write_csv(tmp_path / "test.csv", test)
    data = load_text_classification(str(tmp_path))
    assert data.summary["overlap"]["test"] == {
        "in_train_exact": 3,
        "in_train_normalized": 4,
        "with_opposite_label": 1,
        "training_rows": 5,
        "training_rows_removed": 5,
    }
    assert "4 of 6 test texts also stand in the training rows (3 letter" in capsys.readouterr().err
    assert len(data.train) + len(data.validation) == 9
    # Of the rows as they are read: those that leak repeat one another, too.
    assert data.summary["repetitions_in_train"]["exact"] == 2
    kept = load_text_classification(str(tmp_path), keep_leaks=True)
    assert len(kept.train) + len(kept.validation) == 14
    assert kept.summary["repetitions_in_train"]["exact"] == 2


def test_nothing_left_to_train_on_is_refused(tmp_path):
    rows = alternating(0, 1)
    write_csv(tmp_path / "train.csv", rows)
    write_csv(tmp_path / "test.csv", rows)
    with pytest.raises(UserError, match="every training text also stands in"):
        load_text_classification(str(tmp_path))


def test_test_rows_in_validation_are_counted_and_kept(tmp_path, capsys):
    write_csv(tmp_path / "train.csv", alternating(0, 1))
    write_csv(tmp_path / "dev.csv", [("一", 0), ("二", 1)])
    write_csv(tmp_path / "test.csv", [("二", 1), ("三", 0)])
    data = load_text_classification(str(tmp_path))
    assert data.summary["overlap"]["test"]["in_validation_normalized"] == 1
    assert data.summary["sizes"] == {"train": 12, "validation": 2, "test": 2}
    assert "1 test texts also stand in the validation rows" in capsys.readouterr().err


def test_equal_texts_stay_on_one_side_of_a_made_split(tmp_path):
    rows = [(f"{text}{n}", label) for n in range(10) for text, label in alternating(0, 1)]
    repeated = [*rows, *((text + " ", label) for text, label in rows)]
    data = load_text_classification(write_csv(tmp_path / "a.csv", repeated))
    sides = [{t.strip() for t in s["text"]} for s in (data.train, data.validation, data.test)]
    assert sum(map(len, sides)) == len(set.union(*sides)) == 120
    assert data.summary["sizes"] == {"train": 192, "validation": 24, "test": 24}


def test_equal_texts_that_leave_a_split_empty_are_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", [("好", 1), ("坏", 0)] * 9)
    with pytest.raises(UserError, match=r"test split of 2 rows: .* each of the 2 different ones"):
        load_text_classification(path)


def test_the_same_seed_gives_the_same_split_in_any_order_of_rows(tmp_path):
    rows = [(f"{text}{n}", label) for n in range(5) for text, label in alternating(0, 1)]
    first = load_text_classification(write_csv(tmp_path / "a.csv", rows), split_seed=3)
    again = load_text_classification(write_csv(tmp_path / "b.csv", rows[::-1]), split_seed=3)
    other = load_text_classification(write_csv(tmp_path / "a.csv", rows), split_seed=4)
    assert set(first.test["text"]) == set(again.test["text"]) != set(other.test["text"])
    assert first.summary["sha256"]["train"] == again.summary["sha256"]["train"]


def test_training_sizes_are_nested_and_stratified(tmp_path):
    rows = [(f"{text}{n}", label) for n in range(20) for text, label in alternating(0, 1)]
    path = write_csv(tmp_path / "a.csv", rows)
    small, large = (load_text_classification(path, train_size=size) for size in (50, 100))
    assert large.train["id"][:50] == small.train["id"][:]
    assert abs(sum(small.train["label"]) - 25) <= 1
    assert small.summary["sha256"]["test"] == large.summary["sha256"]["test"]
    assert small.summary["sha256"]["validation"] == large.summary["sha256"]["validation"]


def test_ids_are_stable_and_name_the_source_row(tmp_path):
    path = write_csv(tmp_path / "a.csv", alternating(0, 1))
    first, again = load_text_classification(path), load_text_classification(path, split_seed=9)
    ids = {row["text"]: row["id"] for s in (first.train, first.validation, first.test) for row in s}
    assert ids == {
        row["text"]: row["id"] for s in (again.train, again.validation, again.test) for row in s
    }
    assert {int(identity.split("-")[1]) for identity in ids.values()} == set(range(1, 13))


def test_column_of_many_values_is_no_label(tmp_path):
    rows = [
        (f"{text}{n}", i) for i, (n, text) in enumerate((n, t) for n in range(3) for t in TEXTS)
    ]
    with pytest.raises(UserError, match=r"36 different values in 36 rows.*--label_column"):
        load_text_classification(write_csv(tmp_path / "a.csv", rows))


def test_columns_are_guessed_or_asked_for(tmp_path):
    rows = alternating("差", "好")
    chinese = write_csv(tmp_path / "a.csv", rows, header=("内容", "标签"))
    assert load_text_classification(chinese).summary["columns"]["train"] == ["内容", "标签"]
    odd = write_csv(tmp_path / "b.csv", rows, header=("remark", "verdict"))
    with pytest.raises(UserError, match=r"remark, verdict.*--text_column"):
        load_text_classification(odd)
    semicolons = tmp_path / "c.csv"
    lines = "".join(f"{text};{label}\n" for text, label in rows)
    semicolons.write_text(f"text;label\n{lines}", "utf-8")
    assert labels_by_text(load_text_classification(str(semicolons))) == dict(rows)
    bars = tmp_path / "d.csv"
    bars.write_text("text|label\n好|1\n", "utf-8")
    with pytest.raises(UserError, match=r"Columns of .*: text\|label\. If \| separates .* sep=\|"):
        load_text_classification(str(bars))
    with pytest.raises(UserError, match=r"no column 'remarks'.*Did you mean remark\?"):
        load_text_classification(odd, text_column="remarks")
    data = load_text_classification(odd, text_column="remark", label_column="verdict")
    assert labels_by_text(data) == dict(rows)


@pytest.mark.parametrize("size", [0, 10, 12, 13])
def test_impossible_sizes_are_refused(tmp_path, size):
    path = write_csv(tmp_path / "a.csv", alternating(0, 1))
    with pytest.raises(UserError, match=rf"\b{size}\b.* rows"):
        load_text_classification(path, test_size=size)


def test_imbalance_is_visible_in_the_class_counts(tmp_path):
    rows = [(f"不错{i}", 1) for i in range(95)] + [(f"很差{i}", 0) for i in range(5)]
    counts = load_text_classification(write_csv(tmp_path / "a.csv", rows)).summary["class_counts"]
    assert sum(split["0"] for split in counts.values()) == 5
    assert sum(split["1"] for split in counts.values()) == 95
    assert [counts[name]["0"] for name in ("train", "validation", "test")] == [3, 1, 1]


def test_rare_classes_stay_in_training(tmp_path, capsys):
    rows = [(f"不错{i}", "a") for i in range(60)] + [(f"很差{i}", "b") for i in range(2)]
    data = load_text_classification(write_csv(tmp_path / "a.csv", rows))
    assert data.summary["class_counts"]["train"]["b"] == 2
    assert "the test set has no row of b" in capsys.readouterr().err


def test_too_few_rows_to_split_are_refused(tmp_path):
    with pytest.raises(UserError, match="4 rows cannot give 2 validation rows and 2 test rows"):
        load_text_classification(write_csv(tmp_path / "a.csv", alternating(0, 1)[:4]))


def test_classes_that_the_hub_names_keep_its_order_and_unpublished_labels_are_missing(monkeypatch):
    features = datasets.Features(
        {
            "idx": datasets.ClassLabel(names=["x", "y"]),
            "sentence": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["positive", "negative", "neutral"]),
        }
    )

    def split(texts, labels):
        columns = {"idx": [0] * len(texts), "sentence": texts, "label": labels}
        return datasets.Dataset.from_dict(columns, features=features)

    loaded = {"train": split(TEXTS, [1, 0] * 6), "validation": split(["好"], [0])}
    monkeypatch.setattr("toolkit.data.sources.hub_failure", lambda: None)
    monkeypatch.setattr(datasets, "load_dataset", lambda name: datasets.DatasetDict(loaded))
    data = load_text_classification("owner/name")
    assert data.label_names == ["positive", "negative", "neutral"]
    assert data.summary["class_counts"]["validation"] == {
        "positive": 1,
        "negative": 0,
        "neutral": 0,
    }
    assert labels_by_text(data)[NEGATIVE[0]] == "negative"
    loaded["test"] = split(["好", "坏"], [0, -1])
    with pytest.raises(UserError, match=r"owner/name \(test\), row 2: no label"):
        load_text_classification("owner/name")


def test_revision_and_the_only_split_of_a_data_set_on_the_hub(monkeypatch, capsys):
    asked = []
    rows = datasets.Dataset.from_dict({"text": TEXTS, "label": [1, 0] * 6})
    loaded = {"full": rows}

    def load(*name, **options):
        asked.append((*name, options))
        return datasets.DatasetDict(loaded)

    monkeypatch.setattr("toolkit.data.sources.hub_failure", lambda: None)
    monkeypatch.setattr(datasets, "load_dataset", load)
    data = load_text_classification("owner/name@refs/pr/1")
    assert data.summary["splits_made"] == ["validation", "test"]
    assert "owner/name@refs/pr/1 has one split only, full" in capsys.readouterr().err
    load_text_classification("owner/name@v1.0", hub_config="zh")
    assert asked == [
        ("owner/name", {"revision": "refs/pr/1"}),
        ("owner/name", "zh", {"revision": "v1.0"}),
    ]
    loaded |= {"extra": rows}
    with pytest.raises(UserError, match="no train split, only full, extra"):
        load_text_classification("owner/name")
    loaded |= {"train": rows, "dev": rows, "validation": rows}
    with pytest.raises(UserError, match="more than one validation split"):
        load_text_classification("owner/name")


def test_hub_out_of_reach_is_said_in_one_line(monkeypatch):
    def fail(name):
        raise ConnectionError("no such data set in the cache\nand more lines")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    monkeypatch.setattr("toolkit.data.sources.hub_failure", lambda: "the Hub is away")
    with pytest.raises(UserError) as error:
        load_text_classification("nobody/no-such-data-set")
    assert "'nobody/no-such-data-set': the Hub is away. Works offline: `accel" in str(error.value)
    assert "\n" not in str(error.value)
    monkeypatch.setattr("toolkit.data.sources.hub_failure", lambda: None)
    with pytest.raises(UserError, match="no such data set in the cache Works offline"):
        load_text_classification("nobody/no-such-data-set")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("demo:review", "unknown embedded data set 'demo:review'; there is demo:reviews"),
        ("./nowhere", "no such file|unknown kind"),
        ("nowhere.csv", "no such file"),
        ("评论/数据", "no such file|unknown kind"),
    ],
)
def test_names_of_nothing_are_refused(name, message):
    with pytest.raises(UserError, match=message):
        load_text_classification(name)


def test_folder_of_splits_takes_each_name_and_joins_numbered_parts(tmp_path, capsys):
    rows = alternating(0, 1)
    write_csv(tmp_path / "train-00000-of-00002.csv", rows[:6])
    write_csv(tmp_path / "train-00001-of-00002.csv", rows[6:])
    write_csv(tmp_path / "dev.csv", [("开发", 0)])
    write_csv(tmp_path / "test.csv", [("测试", 1)])
    (tmp_path / "README.md").write_text("about")
    data = load_text_classification(str(tmp_path))
    assert set(data.train["text"]) == set(TEXTS)
    assert data.validation["text"][:] == ["开发"]
    assert data.test["text"][:] == ["测试"]
    assert data.summary["splits_made"] == []
    write_csv(tmp_path / "train-00001-of-00002.csv", [*rows[6:], (" ", 1)])
    write_csv(tmp_path / "test.csv", [("测试", 2)])
    with pytest.raises(UserError, match="no training row has"):
        load_text_classification(str(tmp_path))
    assert (
        "the first: " + str(tmp_path / "train-00001-of-00002.csv, line 8")
        in capsys.readouterr().err
    )
    write_csv(tmp_path / "val.csv", rows)
    with pytest.raises(UserError, match=r"more than one validation file: dev\.csv, val\.csv"):
        load_text_classification(str(tmp_path))


def test_a_split_is_not_given_twice(tmp_path):
    write_csv(tmp_path / "train.csv", alternating(0, 1))
    test = write_csv(tmp_path / "test.csv", [("测试", 1)])
    with pytest.raises(UserError, match="already has a test split"):
        load_text_classification(str(tmp_path), test_file=test)
    (tmp_path / "train.csv").unlink()
    with pytest.raises(UserError, match="holds no training file"):
        load_text_classification(str(tmp_path))


def test_texts_that_stand_twice_stay_in_one_split(tmp_path: Path) -> None:
    """Pairs of rows cannot make 5 and 3 rows: 4 and 2 are taken, which is no mistake."""
    rows = [f"text {i},{i % 2}" for i in range(20) for _ in range(2)]
    file = tmp_path / "twice.csv"
    file.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    data = load_text_classification(str(file), validation_size=5, test_size=3)
    assert data.summary["sizes"] == {"train": 34, "validation": 4, "test": 2}
    splits = [set(getattr(data, name)["text"]) for name in ("train", "validation", "test")]
    assert sum(map(len, splits)) == len(set.union(*splits)) == 20

"""What counts as a document, and that no document stands in two splits."""

import json

import datasets
import pytest

import toolkit.data.sources
from toolkit.data.documents import join_lines, load_documents
from toolkit.data.text_classification import load_text_classification
from toolkit.errors import UserError

LINES = [f"第{n}段，写得很长。" for n in range(40)]
WIKI = [
    "",
    " = Robert = ",
    "",
    " Robert acts .",
    " = not a title =",
    " He did .",
    "",
    " = = Life = = ",
    "",
    " x = y = z",
    "",
    " = Du Fu = ",
    "",
    " A poet .",
    "",
]


def test_lines_paragraphs_articles_and_files():
    lines = ["a", "b", "", " ", "c", ""]
    assert join_lines(lines, "line") == list(enumerate(lines))
    assert join_lines(lines, "paragraph") == [(0, "a\nb\n\n "), (4, "c")]
    assert join_lines(lines, "file") == [(0, "a\nb\n\n \nc")]
    # rows of a data set may carry their line ends
    assert join_lines(["a\n", "b\r\n", "", "c\n"], "paragraph") == [(0, "a\nb"), (3, "c")]


def test_articles_begin_at_titles_alone_and_nothing_is_lost():
    articles = join_lines(WIKI, "article")
    assert [text.strip().split("\n")[0].strip() for _, text in articles] == [
        "= Robert =",
        "= Du Fu =",
    ]
    assert "= = Life = =" in articles[0][1]
    assert [first for first, _ in articles if "Du Fu" in WIKI[first]] == [11]
    words = " ".join(text for _, text in articles).split()
    assert words == " ".join(WIKI).split()


def texts_of(data):
    return {name: getattr(data, name)["text"][:] for name in ("train", "validation", "test")}


def test_splits_of_a_text_file_share_nothing_and_are_the_same_again(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("\n".join([*LINES, LINES[3] + " ", "", "\u3000"]), "utf-8")
    data = load_documents(str(file))
    texts = texts_of(data)
    assert {name: len(rows) for name, rows in texts.items()} == data.summary["sizes"]
    assert data.summary["sizes"]["test"] == data.summary["sizes"]["validation"] == 4
    stripped = {name: {text.strip() for text in rows} for name, rows in texts.items()}
    assert not stripped["train"] & (stripped["validation"] | stripped["test"])
    assert not stripped["validation"] & stripped["test"]
    assert set().union(*stripped.values()) == set(LINES)
    assert data.summary["dropped"]["train"] == {"without_text": 2}
    assert data.summary["repetitions_in_train"] == {"exact": 0, "normalized": 1}
    assert load_documents(str(file)).summary == data.summary
    assert texts_of(load_documents(str(file), split_seed=1)) != texts
    small = load_documents(str(file), sizes={"train": 5, "test": 6})
    assert (len(small.train), len(small.test)) == (5, 6)


def test_a_folder_of_splits_is_used_and_its_leaks_are_removed_from_training(tmp_path, capsys):
    for split, lines in (("train", LINES), ("valid", LINES[:3]), ("test", ["新的", LINES[5]])):
        (tmp_path / f"{split}.txt").write_text("\n".join(lines), "utf-8")
    data = load_documents(str(tmp_path))
    assert data.summary["sizes"] == {"train": 36, "validation": 3, "test": 2}
    assert data.summary["overlap"]["test"]["training_rows_removed"] == 1
    assert not set(data.train["text"][:]) & {*LINES[:3], LINES[5]}
    assert "3 of 3 validation texts also stand in the training rows (3 letter for letter);" in (
        capsys.readouterr().err
    )
    assert len(load_documents(str(tmp_path), keep_leaks=True).train) == 40


def test_files_can_be_documents_in_folders_of_splits_or_without(tmp_path):
    for name in ("train/a.txt", "train/b.txt", "test/c.txt", "validation/sub/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n\nzwei", "utf-8")
    data = load_documents(str(tmp_path), unit="file")
    assert sorted(data.train["text"][:]) == ["train/a.txt\n\nzwei", "train/b.txt\n\nzwei"]
    assert data.validation["text"][:] == ["validation/sub/d.md\n\nzwei"]
    with pytest.raises(UserError, match=r"2 documents .* too few to hold some out for validation"):
        load_documents(str(tmp_path / "train"), unit="file")
    assert len(load_documents(str(tmp_path / "train"), unit="paragraph").train) == 2
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "test.txt").write_text("x")
    with pytest.raises(UserError, match="none to train on"):
        load_documents(str(tmp_path / "val"))


def test_tables_and_files_given_beside(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps({"n": i, "story": line}) for i, line in enumerate(LINES)), "utf-8"
    )
    (tmp_path / "v.txt").write_text("另一段\n第三段\n", "utf-8")
    data = load_documents(
        str(tmp_path / "a.jsonl"),
        text_column="story",
        held_out_files={"validation": str(tmp_path / "v.txt"), "test": None},
    )
    assert data.validation["text"][:] == ["另一段", "第三段"]
    assert data.summary["sizes"] == {"train": 36, "validation": 2, "test": 4}
    (tmp_path / "b.jsonl").write_text('{"text": "a"}\n{"text": 5}\n')
    with pytest.raises(UserError, match=r"b.jsonl, line 2: text is 5, expected a text"):
        load_documents(str(tmp_path / "b.jsonl"))


def test_a_configuration_on_the_hub(monkeypatch):
    asked = []

    def load_dataset(*names):
        asked.append(names)
        wiki = {"text": [f"{line}\n" if line.strip() else "" for line in WIKI]}
        other = {"text": [" = Li Bai = \n", "", " Drank . \n"]}
        return datasets.DatasetDict(
            train=datasets.Dataset.from_dict(wiki),
            validation=datasets.Dataset.from_dict(other),
            test=datasets.Dataset.from_dict({"text": [" = Wang Wei = \n"]}),
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(toolkit.data.sources, "hub_failure", lambda: None)
    data = load_documents("wikitext", hub_config="wikitext-2-raw-v1", unit="article")
    assert asked == [("wikitext", "wikitext-2-raw-v1")]
    assert data.summary["sizes"] == {"train": 2, "validation": 1, "test": 1}
    assert data.validation["text"][0] == " = Li Bai = \n\n Drank . "
    with pytest.raises(UserError, match=r"--hub_config x: demo:reviews is not on the Hub"):
        load_documents("demo:reviews", hub_config="x")


def test_reviews_are_held_out_as_for_classification(monkeypatch):
    demo = toolkit.data.sources.reviews
    labels = ["negative" if n % 3 else "positive" for n in range(len(LINES))]
    counts = {"rows_read": len(LINES), "repeated": 0, "with_both_labels": 0}
    monkeypatch.setattr(demo, "read_reviews", lambda: (LINES, labels, dict(counts)))
    monkeypatch.setattr(demo, "HELD_OUT_SIZES", {"validation": 9, "test": 9})
    data = load_documents("demo:reviews", sizes={"train": 12})
    classified = load_text_classification("demo:reviews", train_size=12)
    for split in ("train", "validation", "test"):
        assert getattr(data, split)["text"][:] == getattr(classified, split)["text"][:]

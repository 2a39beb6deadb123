"""Large data sets are prepared once: found again by content, never half-written, never twice."""

import csv
import dataclasses
import gzip
import json
import multiprocessing
import os
import shutil
import signal
import time

import datasets
import pytest
from transformers import AutoTokenizer

from toolkit.console import keep_remarks
from toolkit.data import arrow_files, prepared, token_store
from toolkit.data.encoding import text_encoding
from toolkit.data.file_log import files_read
from toolkit.data.text_classification import load_text_classification, tokenize
from toolkit.errors import UserError

FORK = multiprocessing.get_context("fork")
ROWS = [(f"第{i}条评论，{'很好' if i % 2 else '太差'}", i % 2) for i in range(60)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, and files of any size are large."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(prepared, "LARGE", 1)
    monkeypatch.setattr(token_store, "LARGE", 1)
    return tmp_path / "cache" / "scratch-models-toolkit"


@pytest.fixture
def prepared_times(monkeypatch, tmp_path):
    """How often data were prepared, by any process."""
    log, save = tmp_path / "times", prepared._save

    def counted(*args):
        with log.open("a") as file:
            file.write("x")
        save(*args)

    monkeypatch.setattr(prepared, "_save", counted)
    return lambda: len(log.read_text()) if log.exists() else 0


def write_csv(path, rows=ROWS):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


def plain(data):
    splits = {name: getattr(data, name).to_dict() for name in ("train", "validation", "test")}
    return splits, data.label_names, data.summary


def test_what_is_kept_is_what_is_read(tmp_path, monkeypatch, bert_tokenizer):
    path = write_csv(tmp_path / "a.csv", [*ROWS, ROWS[0], ("", 1), ("没有标签", "")])
    found = []
    for large in (1 << 40, 1, 1):  # not kept; kept; found
        monkeypatch.setattr(prepared, "LARGE", large)
        monkeypatch.setattr(token_store, "LARGE", large)
        with keep_remarks() as remarks, files_read() as log:
            data = load_text_classification(str(path), train_size=30)
            data = tokenize(data, bert_tokenizer, 8)
        said = [remark for remark in remarks if "kept in" not in remark]
        found.append((plain(data), said, dict(log), data.train.features))
    assert found[0] == found[1] == found[2]
    assert f"the first: {path}, line 63" in found[0][1][0]


def test_pairs_are_kept_too(tmp_path, monkeypatch, bert_tokenizer):
    path = tmp_path / "a.jsonl"
    rows = [{"text": a, "second": f"{a}吗", "label": b} for a, b in ROWS]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = []
    for large in (1 << 40, 1):
        monkeypatch.setattr(prepared, "LARGE", large)
        monkeypatch.setattr(token_store, "LARGE", large)
        data = load_text_classification(str(path), pair_column="second")
        found.append(plain(tokenize(data, bert_tokenizer, 16)))
    assert found[0] == found[1]
    assert "token_type_ids" in found[0][0]["train"]


def test_a_renamed_or_touched_file_is_the_same_and_is_called_by_its_new_name(
    tmp_path, prepared_times
):
    path = write_csv(tmp_path / "a.csv", [*ROWS, ("", 1)])
    load_text_classification(str(path))
    (tmp_path / "b").mkdir()
    renamed = path.rename(tmp_path / "b" / "new.name.csv")
    os.utime(renamed, (0, 0))
    with keep_remarks() as remarks, files_read() as log:
        data = load_text_classification(str(renamed))
    assert prepared_times() == 1
    assert data.summary["source"] == str(renamed)
    assert [*log] == [log[str(renamed)].path] == [str(renamed)]
    assert str(renamed) in remarks[0]
    assert str(path) not in "".join(remarks)


def test_a_copied_folder_of_splits_is_the_same(tmp_path, prepared_times):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    for split, rows in (("train", ROWS[:40]), ("dev", ROWS[40:50]), ("test", ROWS[50:])):
        write_csv(first / f"{split}.csv", rows)
    shutil.copytree(first, second)
    data = [load_text_classification(str(folder)) for folder in (first, second)]
    assert prepared_times() == 1
    assert [d.summary.pop("source") for d in data] == [str(first), str(second)]
    assert plain(data[0]) == plain(data[1])
    (second / "test.csv").rename(second / "train-2.csv")  # no split has this name
    assert len(load_text_classification(str(second)).test) != 10
    assert prepared_times() == 2


def test_content_settings_and_kind_make_it_another(tmp_path, prepared_times):
    path = write_csv(tmp_path / "a.csv")
    load_text_classification(str(path))
    load_text_classification(str(path), split_seed=1)
    load_text_classification(str(path), train_size=10)
    load_text_classification(str(path), keep_leaks=True)
    with text_encoding("utf-8"):
        load_text_classification(str(path))
    with text_encoding("gb18030"), pytest.raises(UserError):
        load_text_classification(str(path))
    other = write_csv(tmp_path / "b.csv", ROWS[:10])
    as_test = load_text_classification(str(path), test_file=str(other))
    as_validation = load_text_classification(str(path), validation_file=str(other))
    assert (len(as_test.test), len(as_validation.validation)) == (10, 10)
    assert prepared_times() == 8
    write_csv(path, [*ROWS[:-1], ("改了", 1)])  # of the same date or not
    assert "改了" in str(plain(load_text_classification(str(path))))
    assert prepared_times() == 9


def test_tokens_are_of_this_tokenizer_length_and_text(tmp_path, bert_tokenizer, monkeypatch):
    data = load_text_classification(str(write_csv(tmp_path / "a.csv")))
    first = tokenize(data, bert_tokenizer, 16)
    monkeypatch.setattr(token_store, "_encoded", lambda *_: pytest.fail("encoded again"))
    again = tokenize(data, bert_tokenizer, 16)
    assert plain(first) == plain(again)
    bert_tokenizer.save_pretrained(tmp_path / "copy")
    copy = AutoTokenizer.from_pretrained(tmp_path / "copy")  # of another name, used before
    copy("好", truncation=True, max_length=3, padding="max_length")
    assert plain(tokenize(data, copy, 16)) == plain(first)
    monkeypatch.undo()

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(token_store, "LARGE", 1)
    assert max(tokenize(data, bert_tokenizer, 5).train["length"]) == 5
    copy.add_tokens(["评论"])
    new = tokenize(data, copy, 16)
    assert new.train["input_ids"][0] == copy(new.train["text"][0])["input_ids"]
    assert new.train["input_ids"][0] != first.train["input_ids"][0]


def test_cores_are_left_as_they_were(tmp_path, bert_tokenizer, monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    seen = []
    monkeypatch.setattr(token_store, "ROWS_A_BATCH", 7)
    encoded = token_store._encoded

    def watched(*args):
        seen.append(os.environ["TOKENIZERS_PARALLELISM"])
        return encoded(*args)

    monkeypatch.setattr(token_store, "_encoded", watched)
    data = load_text_classification(str(write_csv(tmp_path / "a.csv")))
    assert len(tokenize(data, bert_tokenizer, 16).train) == len(data.train)
    assert seen == ["true"] * 3
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"


@pytest.mark.parametrize("bad", [("好", 1, "zu viel"), ("只有一个",)])
def test_bad_input_leaves_nothing_and_says_what_was_noticed(tmp_path, cache, bad):
    path = write_csv(tmp_path / "a.csv", [*ROWS, bad])
    for _ in range(2):
        with pytest.raises(UserError, match=r"a\.csv, line 62: . fields, expected 2"):
            load_text_classification(str(path))
    assert not [found for found in cache.rglob("*") if found.suffix != ".lock" and found.is_file()]
    one_class = write_csv(tmp_path / "b.csv", [("", 1), *((text, 1) for text, _ in ROWS)])
    with keep_remarks() as remarks, pytest.raises(UserError, match="1 class only"):
        load_text_classification(str(one_class))
    assert any("1 row without text" in remark for remark in remarks)


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path, cache, monkeypatch):
    path, save = write_csv(tmp_path / "a.csv"), prepared._save

    def changing(*args):
        save(*args)
        write_csv(path, [*ROWS, ("还在写", 1)])

    monkeypatch.setattr(prepared, "_save", changing)
    with pytest.raises(UserError, match=r"a\.csv changed while it was read"):
        load_text_classification(str(path))
    assert not [*cache.glob("texts/[!.]*/*")]


def test_a_file_that_cannot_be_read_is_refused_by_its_reader(tmp_path, monkeypatch):
    def forbidden(_):
        raise PermissionError(13, "Permission denied")

    path = write_csv(tmp_path / "a.csv")
    monkeypatch.setattr(prepared, "sha256_of", forbidden)
    monkeypatch.setattr("pathlib.Path.read_bytes", forbidden)
    with pytest.raises(UserError, match=r"cannot read .*a\.csv: .*Permission denied"):
        load_text_classification(str(path))


def load_slowly(path, log, results, entered):
    """In another process: prepares as slowly as a large file."""
    save = prepared._save

    def slow(*args):
        with log.open("a") as file:
            file.write("prepared\n")
        save(*args)
        entered.set()
        time.sleep(60 if results is None else 0.5)

    prepared._save = slow
    data = load_text_classification(str(path))
    if results is not None:
        results.put(plain(data))


def test_two_processes_prepare_once(tmp_path):
    path, log, results = write_csv(tmp_path / "a.csv"), tmp_path / "log", FORK.Queue()
    arguments = (path, log, results, FORK.Event())
    processes = [FORK.Process(target=load_slowly, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert found[0] == found[1]
    assert log.read_text() == "prepared\n"


def test_a_process_killed_while_it_writes_leaves_nothing_that_counts(
    tmp_path, cache, prepared_times
):
    path, entered = write_csv(tmp_path / "a.csv"), FORK.Event()
    process = FORK.Process(target=load_slowly, args=(path, tmp_path / "log", None, entered))
    process.start()
    assert entered.wait(timeout=60)  # all files are written, but not yet named
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert [*cache.glob("texts/.*/train.arrow")]
    assert not [*cache.glob("texts/[!.]*/*")]
    data = load_text_classification(str(path))
    assert prepared_times() == 2  # by the killed process, and now
    assert not [*cache.glob("texts/.*")]
    assert len(data.train) == 48


def test_what_nobody_has_used_for_a_month_is_removed(tmp_path, cache):
    first = write_csv(tmp_path / "a.csv")
    load_text_classification(str(first))
    [old] = [path for path in (cache / "texts").iterdir() if path.is_dir()]
    os.utime(old, (0, time.time() - 29 * 24 * 3600))
    load_text_classification(str(write_csv(tmp_path / "b.csv", ROWS[:20])))
    assert old.is_dir()
    os.utime(old, (0, 0))
    load_text_classification(str(first))  # used again
    load_text_classification(str(write_csv(tmp_path / "c.csv", ROWS[:30])))
    assert old.is_dir()
    os.utime(old, (0, 0))
    load_text_classification(str(write_csv(tmp_path / "d.csv", ROWS[:40])))
    assert not old.exists()


def said_of(folder):
    """What is said of the data in a folder, and the files that are read."""
    with keep_remarks() as remarks, files_read() as log:
        load_text_classification(folder)
    return [remark for remark in remarks if "kept in" not in remark], [*log]


@pytest.mark.parametrize("name", ["1", "training", "row", "."])
def test_words_are_no_names_of_folders(tmp_path, monkeypatch, prepared_times, name):
    first, second = tmp_path / "first" / name, tmp_path / "other"
    first.mkdir(parents=True, exist_ok=True)
    write_csv(first / "train.csv", [*ROWS, ("", 1)])
    shutil.copytree(first, second)
    monkeypatch.chdir(tmp_path / "first")
    said = "left out of the data: 1 row without text (the first: {}train.csv, line 62)."
    prefix = "" if name == "." else f"{name}/"
    for _ in range(2):
        assert said_of(name) == ([said.format(prefix)], [f"{prefix}train.csv"])
    for _ in range(2):
        assert said_of(str(second)) == ([said.format(f"{second}/")], [f"{second}/train.csv"])
    assert said_of(name) == ([said.format(prefix)], [f"{prefix}train.csv"])
    assert prepared_times() == (2 if name == "." else 1)


@pytest.mark.parametrize("damage", ["train.arrow", "about.json", "gone", "cut"])
def test_what_is_damaged_is_made_anew(tmp_path, cache, prepared_times, damage, bert_tokenizer):
    path = write_csv(tmp_path / "a.csv")
    first = plain(tokenize(load_text_classification(str(path)), bert_tokenizer, 16))
    [texts] = cache.glob("texts/*/")
    if damage == "cut":  # at the end of a batch Arrow takes it for the end of the file
        schema = arrow_files.open_rows(texts / "train.arrow").data.table.schema
        arrow_files.write_rows(texts / "train.arrow", schema, [])
    elif damage == "gone":
        (texts / "test.arrow").unlink()
    else:
        whole = (texts / damage).read_bytes()
        (texts / damage).write_bytes(whole[: len(whole) // 2])
    for tokens in cache.glob("tokens/*/tokens.arrow"):
        tokens.unlink() if damage == "gone" else tokens.write_bytes(tokens.read_bytes()[:-300])
    with keep_remarks() as remarks:
        again = tokenize(load_text_classification(str(path)), bert_tokenizer, 16)
    assert plain(again) == first
    assert f"{texts} is damaged: made anew." in remarks
    assert prepared_times() == 2
    load_text_classification(str(path))
    assert prepared_times() == 2


def test_tokens_are_of_the_rows_as_they_are(tmp_path, bert_tokenizer):
    data = load_text_classification(str(write_csv(tmp_path / "a.csv")))
    changed = datasets.Dataset.from_dict(
        {**data.train.to_dict(), "text": [f"头{text}" for text in data.train["text"]]}
    )
    first = tokenize(dataclasses.replace(data, train=changed), bert_tokenizer, 16)
    fewer = tokenize(dataclasses.replace(data, train=data.train.select([5, 3])), bert_tokenizer, 16)
    for found in (tokenize(data, bert_tokenizer, 16), first, fewer):
        encoded = [bert_tokenizer(text)["input_ids"] for text in found.train["text"]]
        assert found.train["input_ids"][:] == encoded


def test_other_code_makes_other_tokens(tmp_path, bert_tokenizer, monkeypatch):
    data = load_text_classification(str(write_csv(tmp_path / "a.csv")))
    tokenize(data, bert_tokenizer, 16)
    encoded, times = token_store._encoded, []
    monkeypatch.setattr(token_store, "_encoded", lambda *a: times.append(1) or encoded(*a))
    tokenize(data, bert_tokenizer, 16)
    assert not times
    monkeypatch.setattr(token_store, "code_of_data", lambda: "another")
    tokenize(data, bert_tokenizer, 16)
    assert len(times) == 3


def test_the_kind_of_file_makes_it_another(tmp_path, prepared_times):
    content = "text\tlabel\n" + "".join(f'"{text}"\t{label}\n' for text, label in ROWS)
    (tmp_path / "a.tsv").write_text(content)
    (tmp_path / "a.csv").write_text("sep=\t\n" + content)
    tsv, as_csv = (load_text_classification(str(tmp_path / f"a.{kind}")) for kind in ("tsv", "csv"))
    assert all(text.startswith('"') for text in tsv.train["text"])
    assert not any(text.startswith('"') for text in as_csv.train["text"])
    (tmp_path / "b.csv").write_text(content)
    with pytest.raises(UserError, match="not well-formed CSV"):
        load_text_classification(str(tmp_path / "b.csv"))
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(content.encode()))
    assert plain(load_text_classification(str(tmp_path / "a.tsv.gz")))[0] == plain(tsv)[0]


def test_what_a_killed_process_left_is_removed_after_a_month(tmp_path, cache):
    left = cache / "texts" / ".0123.incomplete-xyz"
    left.mkdir(parents=True)
    (left / "train.arrow").write_bytes(b"x")
    load_text_classification(str(write_csv(tmp_path / "a.csv")))
    assert left.is_dir()  # somebody may be writing it
    os.utime(left, (0, 0))
    load_text_classification(str(write_csv(tmp_path / "b.csv", ROWS[:20])))
    assert not left.exists()


def test_held_out_files_may_stand_below_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_csv(tmp_path / "a.csv")
    write_csv(tmp_path / "b.csv", [("另一条", 1), ("再一条", 0)])
    data = load_text_classification("~/a.csv", test_file="~/b.csv")
    assert data.test["text"][:] == ["另一条", "再一条"]


@pytest.mark.parametrize("where", ["texts", "tokens"])
def test_data_are_read_where_nothing_can_be_kept(tmp_path, cache, bert_tokenizer, where):
    path = write_csv(tmp_path / "a.csv", [*ROWS, ("", 1)])
    first = plain(tokenize(load_text_classification(str(path)), bert_tokenizer, 16))
    shutil.rmtree(cache / where)
    (cache / where).write_text("a file where the folder should be")
    with keep_remarks() as remarks, files_read() as log:
        again = tokenize(load_text_classification(str(path)), bert_tokenizer, 16)
    assert plain(again) == first
    assert any(f"cannot write {cache / where}" in remark for remark in remarks)
    assert sum("1 row without text" in remark for remark in remarks) == 1
    assert log[str(path)].rows == 61


def test_a_disk_that_is_full_leaves_nothing(tmp_path, cache, monkeypatch):
    def full(path, *_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    path = write_csv(tmp_path / "a.csv", [*ROWS, ("", 1)])
    monkeypatch.setattr(prepared, "write_dataset", full)
    with keep_remarks() as remarks:
        data = load_text_classification(str(path))
    assert len(data.train) == 48
    assert "No space left on device" in "".join(remarks)
    assert sum("1 row without text" in remark for remark in remarks) == 1
    assert not [found for found in cache.rglob("*") if found.suffix != ".lock" and found.is_file()]


def test_data_are_read_where_what_is_damaged_cannot_be_removed(tmp_path, cache, monkeypatch):
    path = write_csv(tmp_path / "a.csv")
    first = plain(load_text_classification(str(path)))
    [texts] = cache.glob("texts/*/")
    (texts / "test.arrow").unlink()
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    with keep_remarks() as remarks:
        assert plain(load_text_classification(str(path))) == first
    assert any(f"{texts} is damaged (" in remark and "Remove it." in remark for remark in remarks)

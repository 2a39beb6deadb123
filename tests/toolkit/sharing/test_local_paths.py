"""Paths of a machine are cut; words that only hold slashes are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.sharing.local_paths import (
    path_of_a_machine,
    without_logins,
    without_paths,
    without_paths_in_command,
)


@pytest.mark.parametrize(
    "text",
    [
        "BERT/LoRA/r=8", "en/de/fr", "text </s> end", "</s>", "a and/or b", "好/坏/中", "4 /5",
        "F1 w/ LoRA", "owner/name", "a/b/c.csv", "https://a.b/c/d.csv", "s3://bucket/lin/x.csv",
        r".*\.(query|value)", r"a\tb", "a (b)/c/d", "~5/10", "文/件", "see https://x.y/home/lin/a.",
    ],
)  # fmt: skip
def test_words_with_slashes_stay(text: str) -> None:
    assert without_paths(text) == text
    assert without_paths({"title": [text]}) == {"title": [text]}


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/home/lin/x.csv", "x.csv"),
        ("~/x.csv", "x.csv"),
        ("/home/lin/my data/reviews.csv", "reviews.csv"),
        ("see /home/lin/my data/reviews.csv please", "see reviews.csv please"),
        ("see /home/lin/x.csv and en/de", "see x.csv and en/de"),
        ("see /home/lin/x for en/de", "see x for en/de"),
        ("/home/lin/x for en/de", "x for en/de"),
        ("of /srv/lin/a and /srv/lin/b.", "of a and b."),
        ("见/home/lin/数据/评论.csv，谢谢", "见评论.csv，谢谢"),
        ('"/home/lin/x.csv" (~/y/z)', '"x.csv" (z)'),
        (r"C:\Users\lin\my data\x.csv", "x.csv"),
        (r"see C:\Users\lin\x.csv, D:/y/z", "see x.csv, z"),
        (r"\\server\share\x.csv", "x.csv"),
        ("file:///home/lin/x.csv", "x.csv"),
        ("of file:///home/lin/x.csv now", "of x.csv now"),
        ("file:/home/lin/x.csv", "x.csv"),
        ("https://lin:pw@a.b/c.csv", "https://a.b/c.csv"),
        ("git https://lin:p@ss@a.b:8/c d", "git https://a.b:8/c d"),
        ("s3://key:secret@bucket/x", "s3://bucket/x"),
        ("https://ghp_x@a.b", "https://a.b"),
    ],
)  # fmt: skip
def test_paths_are_cut(text: str, short: str) -> None:
    assert without_paths(text) == short
    assert without_paths(short) == short


def test_what_exists_here_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en" / "de").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert without_paths({"title": "en/de"}) == {"title": "de"}
    assert without_paths({"title": "en/fr"}) == {"title": "en/fr"}


def test_places_lose_relative_paths_too() -> None:
    settings = {
        "dataset": "data/reviews.csv", "test_file": "../x", "title": "data/reviews.csv",
        "model": {"name": "models/lin/bert"}, "lora": {"targets": ["a/b/c"]},
    }  # fmt: skip
    assert without_paths(settings) == {
        "dataset": "reviews.csv", "test_file": "x", "title": "data/reviews.csv",
        "model": {"name": "bert"}, "lora": {"targets": ["a/b/c"]},
    }  # fmt: skip
    assert without_paths({"model": "google-bert/bert-base"}) == {"model": "google-bert/bert-base"}


@pytest.mark.parametrize(
    ("command", "short"),
    [
        ("python recipes/x.py --title a/b/c", "python recipes/x.py --title a/b/c"),
        ("python recipes/x.py --title=a/b/c", "python recipes/x.py --title=a/b/c"),
        ("python x.py --title '</s> a /b'", "python x.py --title '</s> a /b'"),
        ("python /home/lin/y/x.py --dataset a/b/c", "python x.py --dataset c"),
        ("p --dataset=../a/x --a.test_file d/x.csv", "p --dataset=x --a.test_file x.csv"),
        ("p --title '/home/lin/a b'", "p --title 'a b'"),
        ("p --model https://u:p@h/m/n --title x", "p --model https://h/m/n --title x"),
        ("p 'unbalanced /home/lin/x", "p 'unbalanced x"),
    ],
)  # fmt: skip
def test_commands(command: str, short: str) -> None:
    assert without_paths_in_command(command) == short


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a /home/lin/x.csv", "/home/lin/x.csv"), ("`/Users/lin/x`", "/Users/lin/x"),
        ("(/data/reviews/a)", "/data/reviews/a"), ("/root/x", "/root/x"),
        (r"at C:\\Users\\lin\\x.csv", r"C:\\Users\\lin\\x.csv"), ("file:///data/x", "file:///data/x"),
        ("在/home/lin/x", "/home/lin/x"),
        ("https://a.b/home/lin/x", None), ("train/data/x", None), ("home/lin/x", None),
        ("the /data/ folder", None), ("</data/x", None), ("./data/x", None), ("/usr/lib/x", None),
    ],
)  # fmt: skip
def test_what_looks_like_a_machine(text: str, found: str | None) -> None:
    assert path_of_a_machine(text) == found


def test_logins() -> None:
    assert without_logins("see https://lin:pw@a.b/c, lin@a.b") == "see https://a.b/c, lin@a.b"

"""A report's files: all of them, whole, and no other touched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure as Picture

from toolkit import plots
from toolkit.errors import UserError
from toolkit.report import files
from toolkit.report.blocks import Document, Figure, Paragraph
from toolkit.report.files import write_document


def _figure(name: str, drawn: list[str] | None = None) -> Figure:
    def draw() -> Picture:
        if drawn is not None:
            drawn.append(name)
        return plots.forest_plot([plots.Bar("中文 A", 0.8, 0.7, 0.9)])

    return Figure(name, draw, alt=f"alt of {name}", caption="")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_all_files_are_written_and_every_figure_drawn_once(tmp_path: Path, read_page: Any) -> None:
    drawn: list[str] = []
    document = Document("标题", blocks=[_figure("a", drawn), _figure("b", drawn)])
    path = write_document(document, tmp_path / "new" / "out", {"schema_version": 2, "名": [1.5]})

    assert path == tmp_path / "new" / "out" / "report.md"
    assert _names(path.parent) == ["a.svg", "b.svg", "report.html", "report.json", "report.md"]
    assert drawn == ["a", "b"]
    assert "![alt of a](a.svg)" in path.read_text(encoding="utf-8")
    page = read_page((path.parent / "report.html").read_text(encoding="utf-8"))
    assert [v["aria-label"] for tag, v, _ in page.elements if tag == "svg"] == [
        "alt of a", "alt of b"
    ]  # fmt: skip
    assert "中文 A" in page.texts("text")
    assert "中文 A" in (path.parent / "a.svg").read_text(encoding="utf-8")
    data = json.loads((path.parent / "report.json").read_text(encoding="utf-8"))
    assert data == {"schema_version": 2, "名": [1.5], "pictures": ["a.svg", "b.svg"]}


def test_the_same_report_gives_the_same_files(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_document(Document("T", blocks=[_figure("a")]), tmp_path / folder, {"a": 1})
    for name in _names(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_pictures_of_the_last_report_go_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_document(Document("T", blocks=[_figure("a"), _figure("b"), _figure("c")]), folder, {})
    for name in ("mine.svg", "notes.md", "old.html"):
        (folder / name).write_text("mine", encoding="utf-8")
    (folder / "c.svg").unlink()  # somebody was faster

    write_document(Document("T", blocks=[_figure("b")]), folder, {})

    assert _names(folder) == [
        *("b.svg", "mine.svg", "notes.md", "old.html"),
        *("report.html", "report.json", "report.md"),
    ]


@pytest.mark.parametrize(
    "pictures",
    [
        ["../outside.svg", "/etc/passwd", "sub/a.svg", "mine.txt", ".svg", "a.svg\n", 3, None],
        "mine.txt",
        {"mine.txt": 1},
    ],
)
def test_a_report_json_that_somebody_changed_deletes_nothing(
    tmp_path: Path, pictures: object
) -> None:
    folder = tmp_path / "out"
    (folder / "sub").mkdir(parents=True)
    others = [tmp_path / "outside.svg", folder / "mine.txt", folder / "sub" / "a.svg"]
    for path in others:
        path.write_text("mine", encoding="utf-8")
    (folder / "report.json").write_text(json.dumps({"pictures": pictures}), encoding="utf-8")

    write_document(Document("T"), folder, {})

    assert all(path.exists() for path in others)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"schema_version": 1}', "\ufffd"])
def test_an_unreadable_report_json_is_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    write_document(Document("T"), tmp_path, {"a": 1})
    assert json.loads((tmp_path / "report.json").read_text()) == {"a": 1, "pictures": []}


def test_bytes_that_are_no_text_in_report_json(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"\xff\xfe{")
    write_document(Document("T"), tmp_path, {})
    assert json.loads((tmp_path / "report.json").read_text()) == {"pictures": []}


def test_what_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        write_document(Document("T"), tmp_path / "out", {"a": float("nan")})
    with pytest.raises(ValueError, match="'pictures' of report"):
        write_document(Document("T"), tmp_path / "out", {"pictures": []})
    assert not (tmp_path / "out").exists()


def test_half_of_a_surrogate_pair_is_written_everywhere(tmp_path: Path) -> None:
    write_document(Document("a\ud83db", blocks=[Paragraph("c\udc80")]), tmp_path, {"d": "\ud83d"})
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["d"] == "\ud83d"
    assert "a\ufffdb" in (tmp_path / "report.html").read_text("utf-8")
    assert "c\ufffd" in (tmp_path / "report.md").read_text("utf-8")


def test_a_figure_that_cannot_be_drawn_leaves_the_last_report(tmp_path: Path) -> None:
    write_document(Document("old"), tmp_path, {})
    before = {name: (tmp_path / name).read_bytes() for name in _names(tmp_path)}

    def fail() -> Picture:
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        write_document(
            Document("new", blocks=[_figure("a"), Figure("b", fail, "", "")]), tmp_path, {}
        )
    assert {name: (tmp_path / name).read_bytes() for name in _names(tmp_path)} == before


def test_a_folder_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot be written to .*file.*Name another folder"):
        write_document(Document("T"), tmp_path / "file", {})
    with pytest.raises(UserError, match="cannot be written to"):
        write_document(Document("T"), tmp_path / "file" / "below", {})
    (tmp_path / "out" / "report.md").mkdir(parents=True)
    with pytest.raises(UserError, match="cannot be written to"):
        write_document(Document("T"), tmp_path / "out", {})


def test_no_file_is_ever_seen_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops the writing of one file leaves the old one of that name."""
    write_document(Document("old"), tmp_path, {})
    old = (tmp_path / "report.md").read_bytes()

    def stop(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(UserError, match="No space left on device"):
        files.write_document(Document("new"), tmp_path, {})
    assert (tmp_path / "report.md").read_bytes() == old

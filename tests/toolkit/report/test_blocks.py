"""Blocks refuse what no renderer could lay out."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure as Picture

from toolkit.report.blocks import (
    Cell,
    Details,
    Document,
    Figure,
    Link,
    Paragraph,
    Quote,
    Section,
    Table,
    figures_of,
    plain,
)


def _figure(name: str) -> Figure:
    return Figure(name, Picture, alt="", caption="")


@pytest.mark.parametrize(
    "href",
    [
        *("https://example.org/a?b=c#d", "HTTP://example.org", "mailto:a@b.c", "#results"),
        *("report.json", "../data/report.md", "./a", "runs/1", "a_b-c.csv"),
    ],
)
def test_links_lead_to_pages_and_files(href: str) -> None:
    assert Link("text", href).href == href


@pytest.mark.parametrize(
    "href",
    [
        *("javascript:alert(1)", "JavaScript:alert(1)", " javascript:x", "java\nscript:x"),
        *("data:,x", "vbscript:x", "//example.org", "/etc/passwd", "", "file:///etc/passwd"),
    ],
)
def test_links_run_no_script_and_leave_no_folder(href: str) -> None:
    with pytest.raises(ValueError, match="a link goes to"):
        Link("text", href)


def test_a_table_is_a_rectangle() -> None:
    with pytest.raises(ValueError, match="row 1 of the table has 1 cells, its header 2"):
        Table(["a", "b"], [["1", "2"], ["3"]])
    with pytest.raises(ValueError, match=r"numeric names columns \[2\] of a table with 2"):
        Table(["a", "b"], [["1", "2"]], numeric=[0, 2])


def test_values_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"shade is between 0 and 1, not 1\.01"):
        Cell("1", shade=1.01)
    with pytest.raises(ValueError, match="shade"):
        Cell("1", shade=float("nan"))
    with pytest.raises(ValueError, match="level is 2 to 6, not 1"):
        Section("a", [], level=1)
    with pytest.raises(ValueError, match="not 'loud'"):
        Paragraph("a", tone="loud")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a language is a tag"):
        Quote("a", lang='zh" onload="x')
    with pytest.raises(ValueError, match="a language is a tag"):
        Document("a", language="")


@pytest.mark.parametrize("name", ["", "a b", "../a", "a/b", "a.svg", "-a", "图"])
def test_a_figure_is_named_like_a_file(name: str) -> None:
    with pytest.raises(ValueError, match="a figure's name is a file's"):
        _figure(name)


def test_figures_are_found_in_reading_order_and_have_names_of_their_own() -> None:
    blocks = [
        _figure("a"),
        Section("s", [_figure("b"), Details("d", [_figure("c"), Section("t", [_figure("d")])])]),
        _figure("e"),
    ]
    assert [figure.name for figure in figures_of(blocks)] == list("abcde")
    with pytest.raises(ValueError, match="several figures are called A, a"):
        Document("t", blocks=[*blocks, _figure("A")])


def test_plain_text_of_parts() -> None:
    assert plain(("see ", Link("the paper", "#a"), ".")) == "see the paper."

"""Pictures inside a page: ids of their own, references that follow, fonts to fall back on."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from toolkit import plots
from toolkit.report.svg import inline_svg, portable_svg

XLINK = "{http://www.w3.org/1999/xlink}href"
SMALL = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
     width="72pt" height="36pt" viewBox="0 0 72 36">
 <metadata><about>https://example.org</about></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round}</style>
  <path id="m1" d="M 0 0"/><clipPath id="p1"><rect/></clipPath></defs>
 <g id="figure_1"><use xlink:href="#m1"/><use href="#m1"/>
  <g clip-path="url(#p1)" id="figure_1" style="fill: none; clip-path: url('#p1')"/>
  <text style="font-size: 10px; font-family: 'DejaVu Sans'; text-anchor: end">url(#p1) \x1b</text>
 </g>
</svg>"""


def _drawn(tmp_path: Path) -> str:
    figure = plots.learning_curve(
        [plots.Series("中文 <b> & BERT", [500, 1000], [0.8, 0.9], [0.7, 0.8], [0.9, 0.95])]
    )
    return plots.save_figure(figure, tmp_path / "a.svg").read_text(encoding="utf-8")


def _ids_and_references(root: ElementTree.Element) -> tuple[list[str], set[str]]:
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    values = [value for element in root.iter() for value in element.attrib.values()]
    targets = {value[1:] for value in values if re.fullmatch("#[a-zA-Z].*", value)}
    targets |= set(re.findall(r"url\(#([^)]*)\)", " ".join(values)))
    return ids, targets


def test_ids_and_what_refers_to_them() -> None:
    root = ElementTree.fromstring(inline_svg(SMALL, "acc", "It grows"))
    ids, targets = _ids_and_references(root)
    assert ids == ["acc:m1", "acc:p1"]  # `figure_1` is nobody's target, and there twice
    assert targets == {"acc:m1", "acc:p1"}
    uses = [element.attrib for element in root.iter("{http://www.w3.org/2000/svg}use")]
    assert uses == [{XLINK: "#acc:m1"}, {"href": "#acc:m1"}]
    group = next(element for element in root.iter() if "clip-path" in element.attrib)
    assert group.attrib["clip-path"] == "url(#acc:p1)"
    assert group.attrib["style"] == "fill: none; clip-path: url(#acc:p1)"


def test_two_pictures_share_no_id_and_every_reference_has_its_target(tmp_path: Path) -> None:
    """matplotlib gives the same ids to both."""
    svg, seen = _drawn(tmp_path), set()
    for name in ("a", "b"):
        ids, targets = _ids_and_references(ElementTree.fromstring(inline_svg(svg, name, "")))
        assert targets == set(ids)
        assert targets
        assert len(set(ids)) == len(ids)
        assert not seen & targets
        seen |= targets


def test_what_a_reader_who_does_not_see_is_told() -> None:
    root = ElementTree.fromstring(inline_svg(SMALL, "acc", 'A "leads" & wins <b>'))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'A "leads" & wins <b>'


def test_the_size_follows_the_page() -> None:
    root = ElementTree.fromstring(inline_svg(SMALL, "acc", ""))
    assert "width" not in root.attrib
    assert "height" not in root.attrib
    assert root.attrib["viewBox"] == "0 0 72 36"
    assert root.attrib["style"] == "--width: 96px; --ratio: 2.000"  # an inch
    without_box = SMALL.replace('viewBox="0 0 72 36"', "")
    assert 'viewBox="0 0 96 48"' in inline_svg(without_box, "acc", "")
    with pytest.raises(ValueError, match="needs its width and height"):
        inline_svg(SMALL.replace('width="72pt"', 'width="100%"'), "acc", "")


def test_rules_hold_for_their_picture_alone() -> None:
    root = ElementTree.fromstring(inline_svg(SMALL, "acc", ""))
    style = next(root.iter("{http://www.w3.org/2000/svg}style"))
    assert style.text == 'svg[data-picture="acc"]{*{stroke-linejoin: round}}'
    assert root.attrib["data-picture"] == "acc"


def test_texts_fall_back_on_chinese_fonts(tmp_path: Path) -> None:
    once = portable_svg(_drawn(tmp_path))
    texts = re.findall(r'<text [^>]*style="([^"]*)"', once)
    assert texts
    for style in texts:
        families = re.search(r"font(?:-family)?: ([^;]*)", style)
        assert families is not None
        assert "DejaVu Sans" in families[1]
        for family in ("PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC"):
            assert families[1].count(f"'{family}', ") >= 1
        assert families[1].endswith(", sans-serif")
    assert "中文 &lt;b&gt; &amp; BERT" in once
    assert portable_svg(once) == once  # not twice


def test_the_file_is_small_and_whole() -> None:
    svg = portable_svg(SMALL)
    root = ElementTree.fromstring(svg.encode("utf-8"))
    assert "metadata" not in svg
    assert "DOCTYPE" not in svg
    assert root.attrib["width"] == "72pt"
    text = next(root.iter("{http://www.w3.org/2000/svg}text"))
    assert (
        text.text == "url(#p1) ␛"
    )  # a text is not taken for a reference, a control character seen

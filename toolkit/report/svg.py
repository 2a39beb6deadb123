"""Pictures as SVG that shows the same everywhere: as a file, and several inside one page."""

from __future__ import annotations

import re
from xml.dom import minidom

from toolkit.report.plain_text import without_controls

# Families with Chinese characters on Apple's systems, Windows, and Linux or Android.
CJK_FONTS = (
    '"PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", '
    '"Source Han Sans SC", "WenQuanYi Micro Hei"'
)
# Verdana is as wide as matplotlib's DejaVu Sans, by which the places of the texts were computed.
_FALLBACK = f"Verdana, {CJK_FONTS}, sans-serif".replace('"', "'")
_FONT = re.compile(r"\b(font(?:-family)?)\s*:\s*([^;]+)")
_REFERENCE = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")
_LENGTH = re.compile(r"\s*([\d.]+)\s*(pt|px|in|)\s*")
_PIXELS = {"pt": 4 / 3, "px": 1.0, "in": 96.0, "": 1.0}


def portable_svg(svg: str) -> str:
    """The picture as a file: with fonts for readers who lack the writer's, without metadata."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _parsed(svg).toxml() + "\n"


def inline_svg(svg: str, name: str, alt: str) -> str:
    """The picture as an element of a page, which may hold others.

    Its ids begin with `name` and a colon, and all that refers to them follows; ids that nothing
    refers to are left out. It has no fixed size; for the page's style sheet the property `--width`
    holds its width in CSS pixels and `--ratio` its width over its height. `alt` is what is read out
    in its place.
    """
    root = _parsed(svg)
    _prefix_ids(root, f"{name}:")
    for style in root.getElementsByTagName("style"):
        # Left as they are, the rules would hold for the whole page.
        for rules in style.childNodes:
            if isinstance(rules, minidom.Text):
                rules.data = f'svg[data-picture="{name}"]{{{rules.data}}}'
    _follow_the_page(root)
    root.setAttribute("data-picture", name)
    root.setAttribute("role", "img")
    root.setAttribute("aria-label", alt)
    return root.toxml()


def _parsed(svg: str) -> minidom.Element:
    """The root element without metadata, every text with fonts to fall back on."""
    # A title with a control character would make the file no XML.
    root = minidom.parseString(without_controls(svg).encode("utf-8")).documentElement
    assert root is not None  # the parser would have raised
    for child in list(root.childNodes):
        if child.nodeName == "metadata":
            root.removeChild(child)
    for element in _elements(root):
        if element.hasAttribute("style"):
            element.setAttribute("style", _FONT.sub(_with_fallback, element.getAttribute("style")))
    return root


def _with_fallback(font: re.Match[str]) -> str:
    families = font[2].strip()
    if families.endswith(_FALLBACK):
        return font[0]
    return f"{font[1]}: {families}, {_FALLBACK}"


def _prefix_ids(root: minidom.Element, prefix: str) -> None:
    targets = set()
    for element in _elements(root):
        for attribute, value in list(element.attributes.items()):
            if attribute in ("href", "xlink:href") and value.startswith("#"):
                targets.add(value[1:])
                element.setAttribute(attribute, f"#{prefix}{value[1:]}")
            elif "url(" in value:
                targets.update(_REFERENCE.findall(value))
                element.setAttribute(attribute, _REFERENCE.sub(rf"url(#{prefix}\1)", value))
    seen = set()
    for element in _elements(root):
        if not element.hasAttribute("id"):
            continue
        name = element.getAttribute("id")
        if name in targets and name not in seen:
            seen.add(name)
            element.setAttribute("id", prefix + name)
        else:
            element.removeAttribute("id")


def _follow_the_page(root: minidom.Element) -> None:
    """Replace the fixed size by a view box and properties that the style sheet reads."""
    width, height = (_in_pixels(root.getAttribute(side)) for side in ("width", "height"))
    if not width or not height:
        raise ValueError("an SVG picture needs its width and height in pt, px or in")
    if not root.hasAttribute("viewBox"):
        root.setAttribute("viewBox", f"0 0 {width:g} {height:g}")
    root.removeAttribute("width")
    root.removeAttribute("height")
    root.setAttribute("style", f"--width: {width:.0f}px; --ratio: {width / height:.3f}")


def _in_pixels(length: str) -> float | None:
    match = _LENGTH.fullmatch(length)
    return float(match[1]) * _PIXELS[match[2]] if match else None


def _elements(root: minidom.Element) -> list[minidom.Element]:
    return [root, *root.getElementsByTagName("*")]

"""Chinese characters in pictures: which font has them, and how wide text is without one."""

from __future__ import annotations

import os
import unicodedata
from functools import cache

from matplotlib.font_manager import findSystemFonts, fontManager

_CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "Heiti TC",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
# Advances in DejaVu Sans, in ems, rounded up to four classes.
_SLIM = frozenset(" fijlrtI.,:;'|!()[]/-")
_SLIM_EMS, _LETTER_EMS, _CAPITAL_EMS, _BROAD_EMS = 0.39, 0.64, 0.77, 1.0


@cache
def cjk_font() -> str | None:
    """Name of an installed font with Chinese characters, if there is one."""
    return _known_cjk_font() or _newly_installed_cjk_font()


def _known_cjk_font() -> str | None:
    known = {font.name for font in fontManager.ttflist}
    return next((name for name in _CJK_FONTS if name in known), None)


def _newly_installed_cjk_font() -> str | None:
    """Matplotlib keeps its list of fonts on disk and never looks again: look for what came since.

    Without this, who installs the font that we ask for would still be told to install it.
    """
    known = {os.path.normcase(font.fname) for font in fontManager.ttflist}
    for path in sorted(findSystemFonts()):
        if os.path.normcase(path) not in known:
            try:
                fontManager.addfont(path)
            except (OSError, RuntimeError):  # FreeType cannot read every file that looks like one
                continue
    return _known_cjk_font()


def is_wide(character: str) -> bool:
    """Whether a character is a full em wide, as Chinese ones are."""
    return unicodedata.east_asian_width(character) in "WF"


def has_wide(text: str) -> bool:
    """Whether there is any Chinese (or Japanese, or full-width) character in a text."""
    return any(map(is_wide, text))


def width_in_ems(text: str) -> float:
    """About how wide a line of text is, in multiples of its size; needs no font."""
    return sum(map(_advance, text))


@cache
def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if is_wide(character) or character in "mwMW%@—":
        return _BROAD_EMS
    if character in _SLIM:
        return _SLIM_EMS
    return _CAPITAL_EMS if character.isupper() else _LETTER_EMS

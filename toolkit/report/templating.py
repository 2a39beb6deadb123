"""Templates of pages."""

from __future__ import annotations

import jinja2
from markupsafe import Markup

from toolkit.report.plain_text import visible
from toolkit.report.svg import CJK_FONTS


def template_environment(package: str) -> jinja2.Environment:
    """The templates of a package, for pages: texts are escaped, their control characters shown."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_visible,
    )
    environment.globals["cjk_fonts"] = Markup(CJK_FONTS)
    return environment


def _visible(value: object) -> object:
    """What a template prints: control characters of a text as signs, markup as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

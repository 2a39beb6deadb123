"""A matrix of an experiment file: every combination of what varies becomes a cell."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

from toolkit.errors import UserError
from toolkit.experiment.keys import check_keys

KEYS = {
    "recipe": "a text", "preset": "a text", "options": "keys and values", "seeds": "a list",
    "vary": "keys and values", "title": "a text", "name": "a text", "exclude": "a list",
}  # fmt: skip
_CHOICE_KEYS = ("label", "value", "options")


@dataclass(frozen=True)
class Choice:
    """One value on an axis: what it is called, and the options it stands for."""

    label: str
    options: dict[str, Any]


def expand_matrix(content: Any, where: str) -> dict[str, dict[str, Any]]:
    """The cells of a matrix, by name, as if they stood in the file one by one.

    ``vary`` holds axes: an option and the list of its values, the last axis varying fastest. A
    value may be a mapping: ``{label: short name, value: ...}``, or ``{label: LoRA, options:
    {...}}`` where it takes more than one option. ``name`` and ``title`` are templates with the
    axes' names in braces, which stand for the labels. ``exclude`` lists combinations by label; one
    that does not mention an axis means all of it.

    Args:
        where: file and key, for messages.

    Raises:
        UserError: what is wrong with it, and where.
    """
    if not isinstance(content, dict):
        raise UserError(f"{where}: expected recipe, options, vary; found {content!r}")
    check_keys(content, KEYS, required=("recipe", "vary"), where=where)
    axes = {str(name): _read_axis(f"{where}: vary: {name}", str(name), values)
            for name, values in content["vary"].items()}  # fmt: skip
    if not axes:
        raise UserError(f"{where}: vary: expected at least one option with its values")
    _check_templates(content, axes, where)
    excluded = [_read_exclusion(f"{where}: exclude", e, axes) for e in content.get("exclude", [])]
    cells: dict[str, dict[str, Any]] = {}
    for choices in itertools.product(*axes.values()):
        chosen = dict(zip(axes, choices, strict=True))
        labels = {axis: choice.label for axis, choice in chosen.items()}
        if any(all(labels[axis] == label for axis, label in e.items()) for e in excluded):
            continue
        name = _fill(content.get("name"), labels)
        if name in cells:
            raise UserError(f"{where}: name: two combinations are called '{name}'; name all axes")
        cells[name] = _cell(content, chosen, labels, name, where)
    if not cells:
        raise UserError(f"{where}: exclude: no combination is left")
    return cells


def _cell(
    content: dict[str, Any],
    chosen: dict[str, Choice],
    labels: dict[str, str],
    name: str,
    where: str,
) -> dict[str, Any]:
    options, set_by = dict(content.get("options", {})), dict[str, str]()
    for axis, choice in chosen.items():
        for key, value in choice.options.items():
            plain = key.replace("-", "_")
            if plain in set_by:
                raise UserError(
                    f"{where}: cell '{name}': '{key}' is set by {set_by[plain]} and by {axis}"
                )
            set_by[plain] = axis
            # The combination says it more closely than the options of the whole matrix.
            options = {k: v for k, v in options.items() if k.replace("-", "_") != plain}
            options[key] = value
    title = _fill(content["title"], labels) if "title" in content else name
    shared: dict[str, Any] = {
        key: content[key] for key in ("recipe", "preset", "seeds") if key in content
    }
    return {**shared, "options": options, "title": title}


def _read_axis(where: str, name: str, values: Any) -> list[Choice]:
    if name.replace("-", "_") == "seed":
        raise UserError(f"{where}: seeds are no methods to be compared; list them under 'seeds'")
    if not isinstance(values, list) or not values:
        raise UserError(f"{where}: expected a list of values, found {values!r}")
    choices = [_read_choice(where, name, value) for value in values]
    labels = [choice.label for choice in choices]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"{where}: '{label}' stands there {labels.count(label)} times")
    return choices


def _read_choice(where: str, name: str, value: Any) -> Choice:
    if not isinstance(value, dict):
        return Choice(_as_text(value), {name: value})
    for key in value:
        if key not in _CHOICE_KEYS:
            raise UserError(f"{where}: unknown key '{key}'; known: {', '.join(_CHOICE_KEYS)}")
    options = value.get("options", {})
    if not isinstance(options, dict):
        raise UserError(f"{where}: options: expected keys and values, found {options!r}")
    if "value" not in value and ("label" not in value or not options):
        raise UserError(
            f"{where}: expected a value, {{label: ..., value: ...}} or {{label: ..., options: "
            f"...}}; found {value!r}"
        )
    own = {name: value["value"]} if "value" in value else {}
    label = value["label"] if "label" in value else value["value"]
    return Choice(_as_text(label), {**own, **{str(key): options[key] for key in options}})


def _read_exclusion(where: str, content: Any, axes: dict[str, list[Choice]]) -> dict[str, str]:
    if not isinstance(content, dict) or not content:
        raise UserError(f"{where}: expected axes and their labels, found {content!r}")
    for axis, label in content.items():
        if axis not in axes:
            raise UserError(f"{where}: nothing varies '{axis}'; there are {', '.join(axes)}")
        known = [choice.label for choice in axes[axis]]
        if _as_text(label) not in known:
            raise UserError(f"{where}: {axis} is never '{_as_text(label)}'; it is {known}")
    return {axis: _as_text(label) for axis, label in content.items()}


def _check_templates(content: dict[str, Any], axes: dict[str, Any], where: str) -> None:
    for key in ("name", "title"):
        for axis in re.findall(r"\{([^{}]*)\}", content.get(key, "")):
            if axis not in axes:
                raise UserError(
                    f"{where}: {key}: nothing varies '{axis}'; there are {', '.join(axes)}"
                )


def _fill(template: str | None, labels: dict[str, str]) -> str:
    """The template with labels in place of ``{axis}``; without one, all labels."""
    if template is None:
        return ", ".join(labels.values())
    return re.sub(r"\{([^{}]*)\}", lambda found: labels[found[1]], template)


def _as_text(value: Any) -> str:
    """As YAML writes it: null and true, not None and True."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

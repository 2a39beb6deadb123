"""Settings in YAML files: read with every key checked, and written whole."""

from __future__ import annotations

import dataclasses
import difflib
import re
from pathlib import Path
from typing import Any

import yaml

from toolkit.config import RunConfig, leaf_types
from toolkit.disk import write_whole
from toolkit.errors import UserError


def read_yaml(file: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        UserError: missing file, invalid YAML (with line and column), or no mapping.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file (expected a YAML configuration)")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not valid YAML: {one_line(str(error))}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text (byte {error.start + 1})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        found = type(content).__name__
        raise UserError(f"{file}: expected keys and values (key: value), found a {found}")
    return content


def check_keys(content: dict[str, Any], config_class: type, where: str, prefix: str = "") -> None:
    """Raise a UserError for the first key that ``config_class`` does not have."""
    known = leaf_types(config_class)
    groups = {name.rsplit(".", 1)[0] for name in known if "." in name}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if name in groups and value is None:
            raise UserError(f"{where}: the section '{name}' is empty; give it keys or remove it")
        if name in groups and isinstance(value, dict):
            check_keys(value, config_class, where, prefix=f"{name}.")
        elif name in groups:
            raise UserError(
                f"{where}: '{name}' is a section, expected keys under it, not {value!r}"
            )
        elif name not in known:
            raise UserError(f"{where}: unknown key '{name}'. {nearest_key(name, known)}")


def save_config(config: RunConfig, file: Path) -> None:
    """Write the whole configuration as YAML, so that ``--config FILE`` repeats the run."""
    text = yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)
    # Whole or not at all: half of it would be valid YAML that means another run.
    write_whole(file, text)


def preset_file(recipe_file: Path, name: str) -> Path:
    """Path of a recipe's preset.

    Raises:
        UserError: no such preset; lists those that exist.
    """
    folder = recipe_file.parent / "presets" / recipe_file.stem
    file = folder / f"{name}.yaml"
    if not file.is_file():
        names = ", ".join(sorted(p.stem for p in folder.glob("*.yaml"))) or "none"
        raise UserError(
            f"--preset {name}: {recipe_file.name} has no such preset; it has: {names}. "
            "For a file of your own use --config FILE."
        )
    return file


def nearest_key(name: str, known: dict[str, Any], flag: bool = False) -> str:
    """A sentence that names the known key most like ``name`` (its last part counts most)."""
    leaf = name.rsplit(".", 1)[-1]
    by_leaf = {key.rsplit(".", 1)[-1]: key for key in known}
    # `batch` is 0.67 like `batch_size`; `class_weights` 0.65 like `allow_missing_weights`.
    close = difflib.get_close_matches(leaf, by_leaf, n=1, cutoff=0.66)
    dashes = "--" if flag else ""
    if close:
        return f"Did you mean '{dashes}{by_leaf[close[0]]}'?"
    return f"Known: {', '.join(dashes + key for key in known)}."


def one_line(message: str) -> str:
    """A message of another library without its line breaks."""
    return re.sub(r"\s*\n\s*", " ", message.strip())

"""Where the recipes are."""

from __future__ import annotations

from pathlib import Path

from toolkit.errors import UserError

_OWN = Path(__file__).resolve().parents[1] / "recipes"


def find_recipe(name: str, *folders: Path) -> Path:
    """A recipe's file: in one of the folders, else in `recipes/` here, or in this project's.

    Args:
        name: of the file, such as bert_sentiment.py.

    Raises:
        UserError: it is in none of them.
    """
    places = [*folders, Path.cwd() / "recipes", _OWN]
    for folder in places:
        if (folder / name).is_file():
            return folder / name
    listed = ", ".join(dict.fromkeys(map(str, places)))
    raise UserError(f"no such recipe: {name} (looked in {listed})")

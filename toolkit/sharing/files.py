"""The files of a shared folder: whole weights, JSON without traces of this machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from toolkit.errors import UserError, first_line
from toolkit.json_values import read_object

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "model-*.safetensors")
PROCESSORS = (
    "tokenizer*.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.*",
    "merges.txt", "spiece.model", "sentencepiece*.model", "source.spm", "target.spm",
    "target_vocab.json", "chat_template.*", "preprocessor_config.json", "processor_config.json",
)  # fmt: skip
"""Tokenizers and image processors. What else lies in a folder is left behind."""

# Where a model was loaded from says nothing to anybody else, and may be a path of this machine.
_TRACES = (
    "_name_or_path", "name_or_path", "_commit_hash", "is_local", "local_files_only",
    "tokenizer_file", "special_tokens_map_file",
)  # fmt: skip


def new_folder(folder: Path) -> None:
    """Make the folder that is written to.

    Raises:
        UserError: it holds something, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty: give a new folder, or empty this one.")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}.") from error


@contextmanager
def whole_folder(folder: Path) -> Iterator[None]:
    """As `new_folder`; what the block had written is cleared away again where it fails."""
    made = [place for place in (folder, *folder.absolute().parents) if not place.exists()]
    new_folder(folder)
    try:
        yield
    except BaseException:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for place in made:  # the innermost first
            with suppress(OSError):  # somebody else has put something there
                place.rmdir()
        raise


def copy_files(source: Path, target: Path, patterns: Iterable[str]) -> list[str]:
    """Copy the files that match, JSON of tokenizers and processors cleaned; gives their names."""
    names = sorted({file.name for pattern in patterns for file in source.glob(pattern)})
    for name in names:
        if name.endswith("_config.json"):
            write_json(target / name, read_object(source / name))
        else:
            shutil.copyfile(source / name, target / name)
    return names


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write an object as UTF-8, without where it was loaded from."""
    kept = {key: value for key, value in content.items() if key not in _TRACES}
    text = json.dumps(kept, ensure_ascii=False, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


def check_weights(model: Path) -> None:
    """See that a model folder has its weights whole.

    Raises:
        UserError: none there, in another format, or a file cut off.
    """
    files = sorted(model.glob("*.safetensors"))
    named = _shards(model)
    lacking = sorted(named - {file.name for file in files})
    if lacking:
        raise UserError(f"{model}: weights are missing: {', '.join(lacking[:4])}.")
    if not named and not (model / "model.safetensors").is_file():
        hint = ""
        if any(model.glob("*.bin")):
            hint = (
                " It has weights in the old format .bin, which can run any program when they are "
                "loaded. Save them anew: load the model with transformers and call "
                "save_pretrained(FOLDER)."
            )
        raise UserError(f"{model}: no weights (model.safetensors).{hint}")
    for file in files:
        check_safetensors(file)


def check_safetensors(file: Path) -> None:
    """Raise a UserError for a file that is damaged or cut off."""
    try:
        with safe_open(file, "pt") as opened:
            opened.keys()
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{file} is damaged ({first_line(error)}): copy it again, or start the run again."
        ) from error


def _shards(model: Path) -> set[str]:
    index = model / "model.safetensors.index.json"
    return set(read_object(index).get("weight_map", {}).values()) if index.is_file() else set()

"""Which task a data set is for, told by what its files are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from toolkit.data.config import TextDataConfig
from toolkit.data.document_config import DocumentDataConfig
from toolkit.data.image_config import ImageDataConfig
from toolkit.data.inspection.visible import visible
from toolkit.data.question_config import QuestionDataConfig
from toolkit.data.tagging_config import TaggingDataConfig
from toolkit.data.translation_config import TranslationDataConfig
from toolkit.errors import UserError


class UsageError(UserError):
    """What is wrong is the command, not the data."""


@dataclass(frozen=True)
class Task:
    """A kind of recipe: the settings of its data, and how it cuts texts by default."""

    name: str
    settings: type
    recipe: str
    demo: str
    max_length: int | None  # tokens; None: not cut into tokens
    overlap: int | None = None  # tokens that neighbouring windows share

    @property
    def fields(self) -> list[str]:
        """Names of its settings, but for the data set itself."""
        return [field.name for field in fields(self.settings) if field.name != "dataset"]


TASKS = {
    task.name: task
    for task in (
        Task("text-classification", TextDataConfig, "text_classification", "demo:reviews", 256),
        Task("token-classification", TaggingDataConfig, "token_classification", "demo:entities",
             256, 64),
        Task("translation", TranslationDataConfig, "translation", "demo:dates", 128),
        Task("image-classification", ImageDataConfig, "image_classification", "demo:digits", None),
        Task("question-answering", QuestionDataConfig, "question_answering", "demo:questions",
             384, 128),
        Task("language-modeling", DocumentDataConfig, "gpt2_generation", "", 512),
    )
}  # fmt: skip

_TAGGED_LINE = re.compile(r"\S.*?[ \t](?:O|[BIMESLU][-_]\S+)\s*")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]+)?")
_LINES_LOOKED_AT = 200
_MOSTLY = 0.8  # of the lines: one of them may be the one that is wrong


@dataclass(frozen=True)
class Choice:
    """A task, and why it was chosen."""

    task: Task
    why: str


def choose_task(dataset: str | None, given: Mapping[str, Any], asked: str | None) -> Choice:
    """The task to read a data set for.

    Args:
        dataset: as for recipes; None: files are given by settings alone.
        given: settings of the data.
        asked: name of the task, where the user says it.

    Raises:
        UsageError: settings that the task does not have, or that no task has together.
        UserError: files that cannot be read.
    """
    if asked is not None:
        choice = Choice(TASKS[asked], "--task")
    else:
        choice = _by_settings(given) or _by_files(dataset, given)
    if unfit := [name for name in given if name not in choice.task.fields]:
        raise UsageError(
            f"--{unfit[0]} is no setting of {choice.task.name} (chosen by {choice.why}). It has "
            f"{', '.join(f'--{name}' for name in choice.task.fields)}. --task chooses another task."
        )
    return choice


def _by_settings(given: Collection[str]) -> Choice | None:
    """The only task that has all settings given."""
    fitting = [task for task in TASKS.values() if set(given) <= set(task.fields)]
    if not fitting:
        raise UsageError(f"no task has all of {', '.join(f'--{name}' for name in given)}.")
    if len(fitting) > 1:
        return None
    return Choice(fitting[0], ", ".join(f"--{name}" for name in given))


def _by_files(dataset: str | None, given: Mapping[str, Any]) -> Choice:
    if dataset is None:
        raise UsageError("name a data set, or --source_file and --target_file.")
    for task in TASKS.values():
        if task.demo == dataset:
            return Choice(task, dataset)
    path = Path(dataset).expanduser()
    name, why = _of_path(path, given) if path.exists() else _of_source(dataset)
    return Choice(TASKS[name], why)


def _of_path(path: Path, given: Mapping[str, Any]) -> tuple[str, str]:
    from toolkit.data.files import SPREADSHEETS, data_suffix

    if path.is_dir():
        return _of_folder(path, given)
    if data_suffix(path) is not None:
        return _of_source(str(path))
    if path.suffix.lower() in SPREADSHEETS:  # whose refusal says what to do
        return "text-classification", path.name
    return _of_lines(path)


def _of_folder(folder: Path, given: Mapping[str, Any]) -> tuple[str, str]:
    from toolkit.data.files import data_suffix
    from toolkit.data.image_sources import images_below
    from toolkit.data.sources import SPLIT_NAMES

    if endings := _parallel_endings(folder):
        _check_languages(endings, given)
        return "translation", f"parallel files train.{', train.'.join(endings)}"
    visible = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    files = [path for path in visible if path.is_file()]
    if any(data_suffix(path) is not None for path in files):
        return _of_source(str(folder))
    if next(images_below(folder), None) is not None:
        return "image-classification", "images in folders"
    splits = [path for path in files if set(re.split(r"[._-]", path.name.lower())) & {*SPLIT_NAMES}]
    if splits or files:
        return _of_lines((splits or files)[-1])
    return "language-modeling", "a folder without tables and images"


def _parallel_endings(folder: Path) -> list[str]:
    """Endings of training files that differ in nothing else: en and zh of train.en, train.zh."""
    from toolkit.data.documents import TEXT_SUFFIXES
    from toolkit.data.files import data_suffix
    from toolkit.data.sources import SPLIT_NAMES

    endings: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()):
        stem, _, ending = path.name.removesuffix(".gz").rpartition(".")
        known = data_suffix(path) is not None or f".{ending}" in TEXT_SUFFIXES
        of_training = SPLIT_NAMES.get(re.split(r"[._-]", stem.lower())[0]) == "train"
        if path.is_file() and not known and of_training and _LANGUAGE.fullmatch(ending):
            endings.setdefault(stem, []).append(ending)
    return next((found for found in endings.values() if len(found) > 1), [])


def _check_languages(endings: list[str], given: Mapping[str, Any]) -> None:
    """Files of other languages than those to be translated.

    Raises:
        UsageError: says how to name them.
    """
    default = TranslationDataConfig()
    languages = [given.get(side, getattr(default, side)) for side in ("source", "target")]
    if not set(languages) <= set(endings):
        raise UsageError(
            f"found parallel files ending in {', '.join(endings)}, but the languages are "
            f"{' and '.join(languages)}. Say which is translated into which, for example: --source "
            f"{endings[0]} --target {endings[1]}"
        )


def _of_lines(path: Path) -> tuple[str, str]:
    """A text file: tokens with tags, or texts."""
    from toolkit.data.encoding import decode
    from toolkit.data.files import read_bytes

    lines = [line for line in decode(read_bytes(path), path).split("\n") if line.strip()]
    lines = [line for line in lines[:_LINES_LOOKED_AT] if not line.startswith("-DOCSTART-")]
    tagged = sum(_TAGGED_LINE.fullmatch(line) is not None for line in lines)
    if tagged > _MOSTLY * len(lines):
        return "token-classification", f"lines of {path.name} that end in a tag"
    return "language-modeling", f"lines of {path.name} without tags"


def _of_source(dataset: str) -> tuple[str, str]:
    from toolkit.data.sources import read_source

    table = read_source(dataset).tables["train"]
    cells = {
        name: next((cell for cell in column if cell is not None), None)
        for name, column in table.columns.items()
    }
    return _of_columns(cells), f"columns {', '.join(map(visible, cells))}"


def _of_columns(cells: Mapping[str, Any]) -> str:
    """By the names of columns and a cell of each."""
    from toolkit.data.columns import LABEL_NAMES, TEXT_NAMES
    from toolkit.data.image_sources import IMAGE_NAMES, IMAGE_SUFFIXES
    from toolkit.data.questions import ANSWER_NAMES, CONTEXT_NAMES, QUESTION_NAMES

    names = {name.lower() for name in cells}

    def has(*kinds: Collection[str]) -> bool:
        return all(names & set(kind) for kind in kinds)

    def is_image(cell: Any) -> bool:
        if isinstance(cell, dict):
            return "bytes" in cell
        return isinstance(cell, bytes) or str(cell).lower().endswith(IMAGE_SUFFIXES)

    if "paragraphs" in names or has(QUESTION_NAMES, CONTEXT_NAMES, ANSWER_NAMES):
        return "question-answering"
    if _holds_tags(cells):
        return "token-classification"
    if isinstance(cells.get("translation"), dict) or _holds_sides(names):
        return "translation"
    if any(is_image(cell) for name, cell in cells.items() if name.lower() in IMAGE_NAMES):
        return "image-classification"
    if has(TEXT_NAMES) and not has(LABEL_NAMES):
        return "language-modeling"
    return "text-classification"


def _holds_tags(cells: Mapping[str, Any]) -> bool:
    """Lists of tokens beside tags, or columns of words with spaces between them."""
    from toolkit.data.tagged_sentences import TAG_NAMES, TOKEN_NAMES

    tokens = [cell for name, cell in cells.items() if name in TOKEN_NAMES]
    tags = [cell for name, cell in cells.items() if name in TAG_NAMES]
    if any(isinstance(cell, list) for cell in tokens) and tags:
        return True
    return bool({"tokens", "words"} & set(cells)) and bool(tags)


def _holds_sides(names: Collection[str]) -> bool:
    from toolkit.data.parallel import COMMON_NAMES

    default = TranslationDataConfig()
    sides = {"source": default.source, "target": default.target}
    return all({language, *COMMON_NAMES[side]} & set(names) for side, language in sides.items())

"""A data set read by a recipe's own loader; what was read, said and refused is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.console import keep_remarks
from toolkit.data.encoding import text_encoding
from toolkit.data.file_log import FileRead, files_read
from toolkit.data.inspection.tasks import Choice, UsageError, choose_task
from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.data.inspection.tokens import Tokenizing, TokensOf

_IMAGE_SIZE = (224, 224)  # of most pretrained models; images of one smaller size keep theirs


@dataclass
class Reading:
    """A data set as the recipes of its task see it.

    `data` is what the loader gives: splits, and a summary. None where it is refused.
    """

    dataset: str | None
    settings: dict[str, Any]  # those given
    choice: Choice | None = None  # None: refused before the task was known
    files: list[FileRead] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    data: Any = None
    tokens: TokensOf = field(default_factory=dict)  # where a model was given
    refused: str | None = None

    @property
    def place(self) -> str:
        """What was read, in words."""
        if self.dataset is not None:
            return self.dataset
        return ", ".join(str(self.settings[name]) for name in self.settings if "file" in name)


def read(
    dataset: str | None, settings: dict[str, Any], task: str | None, model: Tokenizing | None
) -> Reading:
    """Read a data set as a recipe does.

    Args:
        dataset: as for recipes; None: files are given by settings alone.
        settings: of the data, those that are given.
        task: its name; None: told by what the files are.
        model: whose tokens, or image size, it is read for.

    Raises:
        UserError: no such data set, or settings that do not fit; what is wrong with the data itself
            stands in `Reading.refused`.
    """
    _check_exists(dataset)
    reading = Reading(dataset, settings)
    with text_encoding(settings.get("encoding")), _refusal_kept(reading):
        reading.choice = choose_task(dataset, settings, task)
    if reading.choice is None:
        return reading
    chosen = reading.choice.task
    named = {} if dataset is None else {"dataset": dataset}
    config = chosen.settings(**named, **settings)
    if model is not None:
        model.prepare(chosen)
    with _refusal_kept(reading):
        if chosen.name == "image-classification":
            size = model.image_size if model is not None else _IMAGE_SIZE
            reading.data = config.load_data(size)
        else:
            reading.data = config.load_data()
            if model is not None:
                reading.data, reading.tokens = model.tokenize(reading.data, chosen)
    return reading


@contextmanager
def _refusal_kept(reading: Reading) -> Iterator[None]:
    """Keep in `reading` what is read, said and refused inside the block."""
    with files_read() as files, keep_remarks() as remarks:
        try:
            yield
        except UsageError:
            raise
        except UserError as error:
            reading.refused = str(error)
        finally:
            reading.files = list(files.values())
            reading.remarks = list(remarks)


def _check_exists(dataset: str | None) -> None:
    """A path that leads nowhere is a mistake on the command line, not in the data.

    Raises:
        UserError: names near files.
    """
    from toolkit.data.sources import looks_like_a_path

    if dataset is None or dataset.startswith("demo:"):
        return
    path = Path(dataset).expanduser()
    if not path.exists() and looks_like_a_path(dataset):
        from toolkit.data.files import check_exists

        check_exists(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UserError(
            f"{path} is a pipe or a device, and its data are read twice here. Write them into a "
            "file."
        )

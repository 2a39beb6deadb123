"""The folder that is uploaded: a shareable model, its card, its plot and its training summary."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.json_values import without_nan
from toolkit.sharing.card import PLOT, write_card, write_card_of_folder
from toolkit.sharing.licences import licence_of
from toolkit.sharing.local_paths import path_of_a_machine, without_logins, without_paths
from toolkit.sharing.metadata import base_model_of
from toolkit.sharing.push_options import CardOptions, staging_folder
from toolkit.sharing.run_record import RunRecord, read_record
from toolkit.sharing.shareable import Shareable, write_shareable
from toolkit.sharing.source import read_source

SUMMARY = "training_summary.json"
# Validation metric of the plot, by task: the first that was logged.
_PLOTTED = {
    "token-classification": ("entity_f1",),
    "question-answering": ("f1",),
    "translation": ("bleu", "token_accuracy"),
    "language-modeling": ("loss",),
    "pretraining": ("masked_accuracy",),
}
_VOCABULARIES = re.compile(r"(tokenizer|vocab|merges)\.\w+")
_TEXTS = (".json", ".md", ".py", ".txt", ".jinja")
_LABELS = ("label_names", "id2label", "label2id")  # cut, they would be other labels
_TAKE_OUT = (
    "Take it out of the run (its title, labels or data), or leave examples out with --no-examples."
)
_MARKDOWN_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")  # before any punctuation of ASCII


@dataclass(frozen=True)
class Staged:
    """A folder that is ready.

    Args:
        title: of the run.
        files: every file, as the repository will have it, and its size in bytes.
    """

    folder: Path
    shareable: Shareable
    title: str
    files: dict[str, int]


def stage(run: Path, repo: str, *, merged: bool | None, options: CardOptions) -> Staged:
    """Write the folder, in place of an older one; whole or not at all.

    Raises:
        UserError: there is no complete run or model, or something secret would be published.
    """
    run = read_source(run).folder  # for the folder `model` of a run, the run
    folder = staging_folder(run)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        shareable, title = _write(run, partial, repo, merged=merged, options=options)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise UserError(f"{folder} cannot be written: {error}") from error
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    files = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return Staged(folder, replace(shareable, folder=folder), title, files)


def _write(
    run: Path, partial: Path, repo: str, *, merged: bool | None, options: CardOptions
) -> tuple[Shareable, str]:
    """Write everything into `partial`; the model and the title."""
    shareable = write_shareable(run, partial, merged=merged)
    record = read_record(run) if (run / "summary.json").is_file() else None
    base = base_model_of(shareable, {} if record is None else record.summary)
    licence = options.license or licence_of(base)
    if licence is None:
        notify("the card names no licence: none is known. --license says one.")
    if record is not None:
        title = str(record.summary["title"])
        plotted = _draw(record, partial / PLOT)
        _write_json(partial / SUMMARY, record.training_summary)
        card = write_card(record, shareable, repo, options, license=licence, plot=plotted)
    else:
        title = repo
        config = _read_json(partial / "config.json")
        card = write_card_of_folder(title, config, shareable, options, license=licence)
    (partial / "README.md").write_text(card, encoding="utf-8")
    _forget_this_machine(partial, run)
    return shareable, title


def remove_staged(staged: Staged) -> None:
    """Clear the folder away: all of it is on the Hub, and its weights in the run."""
    shutil.rmtree(staged.folder, ignore_errors=True)


def _draw(record: RunRecord, file: Path) -> bool:
    """Draw the training as PNG, which the Hub shows everywhere; False where no step was logged."""
    from toolkit.outcome import logged_curves
    from toolkit.plots import save_figure
    from toolkit.run import METRICS

    log = record.folder / METRICS
    if not log.is_file():
        return False
    text = log.read_text(encoding="utf-8")
    metrics = _PLOTTED.get(record.summary["task"], ("accuracy",))
    metric = next((name for name in metrics if f'"{name}"' in text), metrics[-1])
    figure = logged_curves(log, record.summary["training"].get("best_step"), metric)
    if figure is None:
        return False
    save_figure(figure, file)
    return True


def _forget_this_machine(folder: Path, run: Path) -> None:
    """Cut local paths and logins out of JSON files, and refuse what cannot be cut.

    Raises:
        UserError: a file holds a token, or a path of a machine; names the file, not the token.
    """
    places = [f"{place}/" for place in {run.resolve(), Path.cwd(), Path.home()} if place.parts[1:]]
    for file in sorted(path for path in folder.rglob("*") if path.suffix in _TEXTS):
        text = file.read_text(encoding="utf-8", errors="replace")
        if _holds_token(text):
            raise UserError(
                f"{file.name} would publish what looks like a token of the Hub. {_TAKE_OUT}"
            )
        if _VOCABULARIES.fullmatch(file.name):
            continue
        if file.suffix == ".json":
            content = _read_json(file)
            cut = _without_places(content, places)
            if cut != content:
                _write_json(file, cut)
                text = file.read_text(encoding="utf-8")
        if trace := _trace(text, places, markdown=file.suffix == ".md"):
            raise UserError(f"{file.name} would publish {trace}. {_TAKE_OUT}")


def _trace(text: str, places: list[str], *, markdown: bool) -> str | None:
    """What is left of a machine in a text; in Markdown, where nothing was cut, whosever it is."""
    if markdown:
        text = _MARKDOWN_ESCAPE.sub("", text)
    found = next((place for place in places if place in text), None)
    if markdown and found is None:
        found = path_of_a_machine(text)
    if found is not None:
        return f"a path of this machine, {found}"
    if markdown and without_logins(text) != text:
        return "an address with a login in it"
    return None


def _without_places(value: Any, places: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: part if name in _LABELS else _without_places(part, places)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_without_places(part, places) for part in value]
    if not isinstance(value, str):
        return value
    held = any(place in value for place in places) or path_of_a_machine(value) is not None
    return without_paths(value) if held else without_logins(value)


def _holds_token(text: str) -> bool:
    from toolkit.sharing.hub_errors import redacted

    text = text.replace("\\_", "_")  # as Markdown writes it
    return redacted(text) != text


def _read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _write_json(file: Path, content: Any) -> None:
    text = json.dumps(without_nan(content), ensure_ascii=False, indent=2, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8")

"""What is to be shared: a run that is complete, or a model folder without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.comparison.saved_run import load_summary
from toolkit.errors import UserError
from toolkit.json_values import read_object_if_there

CLASSIFIER = "classifier.safetensors"
TFIDF = "tfidf.joblib"


@dataclass(frozen=True)
class Source:
    """A model with what is known of it.

    Args:
        folder: run directory, or the model folder itself.
        model: folder of the weights; a run with an adapter has the merged model there.
        config: fields of its config.json; empty for a model of scikit-learn.
        adapter: folder of an adapter for HuggingFace's class; None without one.
        summary: of the run; empty for a model folder.
    """

    folder: Path
    model: Path
    config: dict[str, Any]
    adapter: Path | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str | None:
        """Of the run, such as "translation"; None for a model folder."""
        return self.summary.get("task")

    @property
    def model_type(self) -> str | None:
        """As config.json has it."""
        return self.config.get("model_type")

    @property
    def is_frozen(self) -> bool:
        """A linear classifier lies beside its encoder."""
        return (self.model / CLASSIFIER).is_file()

    @property
    def is_tfidf(self) -> bool:
        """A pipeline of scikit-learn."""
        return (self.model / TFIDF).is_file()

    @property
    def reads_images(self) -> bool:
        """It has an image processor, so its inputs are images."""
        return (self.model / "preprocessor_config.json").is_file()

    @property
    def label_names(self) -> list[str] | None:
        """In id order: as the run recorded them, else as config.json has them; None without."""
        names = self.summary.get("data", {}).get("label_names")
        if names is None and "id2label" in self.config:
            by_id = {int(index): name for index, name in self.config["id2label"].items()}
            names = [by_id[index] for index in sorted(by_id)]
        return None if names is None else [str(name) for name in names]

    @property
    def pairs(self) -> bool:
        """Its inputs are two texts."""
        return bool(self.summary.get("data", {}).get("pairs"))


def read_source(path: Path) -> Source:
    """Find the model of a run, or take a model folder as it is.

    Args:
        path: run directory, its folder `model`, or any model folder.

    Raises:
        UserError: nothing there, a run that did not finish or has lost its model, or an adapter
            alone.
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise UserError(
            f"{path} {what}; expected a run directory such as results/runs/bert_sentiment/<run>, "
            "or a model folder (config.json and model.safetensors)."
        )
    inside = path.resolve()
    if inside.name == "model" and (inside.parent / "summary.json").is_file():
        path = inside.parent
    if any((path / name).is_file() for name in ("summary.json", "config.yaml", "metrics.jsonl")):
        return _run(path)
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        raise UserError(
            f"{path} holds an adapter alone. Give the run directory it lies in; or merge it with "
            f"its base, with peft: PeftModel.from_pretrained(base, {str(path)!r})"
            ".merge_and_unload().save_pretrained(FOLDER), save the tokenizer there too, and give "
            "that folder."
        )
    if not (path / "config.json").is_file() and not (path / TFIDF).is_file():
        raise UserError(
            f"{path} is neither a run directory (no summary.json) nor a model folder (no "
            "config.json)."
        )
    return Source(path, path, read_object_if_there(path / "config.json"))


def _run(folder: Path) -> Source:
    if not (folder / "summary.json").is_file():
        raise UserError(
            f"{folder}: this run did not finish (it has no summary.json). Finish it first: start "
            f"its recipe with --resume {folder}."
        )
    summary, model = load_summary(folder / "summary.json"), folder / "model"
    if not (model / "config.json").is_file() and not (model / TFIDF).is_file():
        lost = "no config.json in its folder model" if model.is_dir() else "no folder model"
        raise UserError(
            f"{folder}: the run has {lost}: its model was deleted or moved. Put it back, or start "
            "the run again."
        )
    adapter = folder / "adapter"
    has_adapter = (adapter / "adapter_config.json").is_file()
    return Source(
        folder,
        model,
        read_object_if_there(model / "config.json"),
        adapter if has_adapter else None,
        summary,
    )

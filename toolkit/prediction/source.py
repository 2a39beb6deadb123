"""What a user names to predict with: a run, a model folder, an adapter or a Hub name; its task."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.config_files import read_yaml
from toolkit.errors import UserError
from toolkit.json_values import read_object, read_object_if_there
from toolkit.sources import resolve_model

NO_TASK = "none"  # a body without a head, or one that fills masked tokens
TEXT, IMAGE, TAGS = "text-classification", "image-classification", "token-classification"
QUESTIONS, TRANSLATION, GENERATION = "question-answering", "translation", "text-generation"

_RUN_TASKS = {
    **{task: task for task in (TEXT, IMAGE, TAGS, QUESTIONS, TRANSLATION)},
    "language-modeling": GENERATION,
    "pretraining": NO_TASK,
}
_HEADS = {
    "ForSequenceClassification": TEXT,
    "ForImageClassification": IMAGE,
    "ForTokenClassification": TAGS,
    "ForQuestionAnswering": QUESTIONS,
    "ForCausalLM": GENERATION,
    "LMHeadModel": GENERATION,
}
_ADAPTER_TASKS = {
    "SEQ_CLS": TEXT,
    "TOKEN_CLS": TAGS,
    "QUESTION_ANS": QUESTIONS,
    "SEQ_2_SEQ_LM": TRANSLATION,
    "CAUSAL_LM": GENERATION,
}
_OFFERED = (
    "Predictions are made by models that classify texts or images, tag tokens, answer questions, "
    "translate or write."
)


@dataclass(frozen=True)
class Source:
    """A model that can predict.

    `summary`, `config` and `data` are a run's own files (summary.json, config.yaml, data.json);
    empty for a model without a run.
    """

    name: str  # as the user named it
    folder: str  # of the weights, or a Hub name
    task: str
    adapter: str | None = None
    """Folder of an adapter to put on the model in `folder`."""
    summary: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """True for the model of a run."""
        return bool(self.summary)

    @property
    def is_tfidf(self) -> bool:
        """True for scikit-learn's pipeline of a run."""
        folder = Path(self.folder)
        return (folder / "tfidf.joblib").is_file() and not (folder / "config.json").is_file()

    @property
    def label_names(self) -> list[str] | None:
        """Labels in id order, as the run recorded them."""
        names = self.summary.get("data", {}).get("label_names")
        return None if names is None else [str(name) for name in names]

    @property
    def method(self) -> str | None:
        """How the run trained its model."""
        method: str | None = self.summary.get("model", {}).get("method")
        return method

    def tokenization(self, name: str) -> Any:
        """What the run recorded of its tokenization, such as `max_length`; None: nothing."""
        return self.data.get("tokenization", {}).get(name)


def find_source(name: str) -> Source:
    """Find the model and its task.

    Args:
        name: run directory (or its `model` or `adapter`), model folder, adapter folder, Hub name.

    Raises:
        UserError: nothing of that name, a run that is not complete, or a model that predicts
            nothing.
    """
    source = find_model(name)
    if source.task == NO_TASK:
        raise UserError(_pretraining_run(source) if source.is_run else _predicts_nothing(name))
    return source


def find_model(name: str) -> Source:
    """As `find_source`, and models that predict nothing, whose task is `NO_TASK`.

    Raises:
        UserError: nothing of that name, or a run that is not complete.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        if (path / "summary.json").is_file():
            return _run(name, path)
        if (path / "metrics.jsonl").is_file() or (path / "environment.json").is_file():
            raise UserError(
                f"{name}: this run is not complete (it has no summary.json). Finish it first: run "
                f"its recipe with --resume {name}."
            )
        if path.resolve().name == "model" and (path.resolve().parent / "summary.json").is_file():
            return _run(name, path.resolve().parent)
        if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
            return _adapter(name, path)
        if (path / "classifier.safetensors").is_file():
            raise UserError(
                f"{name}: the classifier of a frozen model; the names of its labels are in its "
                "run. Give the run directory."
            )
        if not (path / "config.json").is_file() and (path / "tfidf.joblib").is_file():
            raise UserError(
                f"{name}: a TF-IDF model is read from its run alone, as its file could hold any "
                "program: give the run directory, of a run of your own."
            )
    return Source(name, resolve_model(name), _task_of_checkpoint(name))


def _run(name: str, folder: Path) -> Source:
    summary = read_object(folder / "summary.json")
    task = str(summary.get("task"))
    if task not in _RUN_TASKS:
        known = ", ".join(_RUN_TASKS)
        raise UserError(f"{folder / 'summary.json'}: task {task!r}, expected one of {known}.")
    model = folder / "model"
    if not model.is_dir():
        raise UserError(
            f"{name}: the run has no folder model/ with its weights. Were they deleted? Run its "
            "recipe again."
        )
    settings = folder / "config.yaml"
    return Source(
        name,
        str(model),
        _RUN_TASKS[task],
        summary=summary,
        config=read_yaml(settings) if settings.is_file() else {},
        data=read_object_if_there(folder / "data.json"),
    )


def _adapter(name: str, path: Path) -> Source:
    """The adapter's base model; labels and settings are those of the run it lies in, if any."""
    settings = read_object(path / "adapter_config.json")
    base, kind = settings.get("base_model_name_or_path"), settings.get("task_type")
    if kind not in _ADAPTER_TASKS:
        raise UserError(
            f"{name}: an adapter for the task type {kind!r}; expected one of "
            f"{', '.join(_ADAPTER_TASKS)}."
        )
    if not base:
        raise UserError(
            f"{name}: adapter_config.json does not say which model the adapter is for "
            "(base_model_name_or_path). Merge the two first and give the merged folder."
        )
    run = path.resolve().parent
    files = {}
    if path.resolve().name == "adapter" and (run / "summary.json").is_file():
        found = _run(name, run) if (run / "model").is_dir() else None
        if found is not None:
            files = {"summary": found.summary, "config": found.config, "data": found.data}
    try:
        folder = resolve_model(str(base))
    except UserError as error:
        raise UserError(
            f"{name}: the model it is an adapter for cannot be loaded: {error}"
        ) from error
    return Source(name, folder, _ADAPTER_TASKS[kind], adapter=str(path), **files)


def _task_of_checkpoint(name: str) -> str:
    """By `architectures` in its config.json; `NO_TASK` where it names none that predicts."""
    from transformers import AutoModelForSeq2SeqLM

    from toolkit.modeling import read_config

    config = read_config(name)
    for architecture in _saved_as(config):
        for ending, task in _HEADS.items():
            if architecture.endswith(ending):
                return task
        if config.is_encoder_decoder and (
            type(config) in AutoModelForSeq2SeqLM._model_mapping
            and architecture.endswith(("ForConditionalGeneration", "MTModel"))
        ):
            return TRANSLATION
    return NO_TASK


def _saved_as(config: Any) -> list[str]:
    """Names of classes."""
    return list(getattr(config, "architectures", None) or [])


def _pretraining_run(source: Source) -> str:
    return (
        f"{source.name}: a pretraining run fills masked tokens; it has no task to predict. "
        "Fine-tune its model first: accelerate launch recipes/bert_sentiment.py --model "
        f"{source.folder}."
    )


def _predicts_nothing(name: str) -> str:
    from toolkit.modeling import read_config

    what = ", ".join(_saved_as(read_config(name)))
    what = what or "no class at all (no `architectures` in config.json)"
    return (
        f"{name} was saved as {what}: no classifier, nor anything else that predicts. {_OFFERED} "
        "Fine-tune it first, for example: accelerate launch recipes/bert_sentiment.py "
        f"--model {name}, and give the run directory."
    )

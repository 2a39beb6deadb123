"""From the name of a model to what predicts with it."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module

from toolkit.config import check_range
from toolkit.errors import UserError
from toolkit.prediction.predictor import Options, Predictor
from toolkit.prediction.source import (
    GENERATION,
    IMAGE,
    NO_TASK,
    QUESTIONS,
    TAGS,
    TEXT,
    TRANSLATION,
    Source,
    find_source,
)

# Imported only for the task at hand: image libraries are not needed to label texts.
_OPENERS = {
    TEXT: ("classification", "open_text_classifier"),
    IMAGE: ("images", "open_image_classifier"),
    TAGS: ("tagging", "open_tagger"),
    QUESTIONS: ("questions", "open_answerer"),
    TRANSLATION: ("translation", "open_translator"),
    GENERATION: ("generation", "open_continuer"),
}

_TASKS = {
    "batch_tokens": (TEXT, TAGS, QUESTIONS, TRANSLATION, GENERATION),
    "max_length": (TEXT, TAGS, QUESTIONS, TRANSLATION),
    "max_new_tokens": (TRANSLATION, GENERATION),
    "beams": (TRANSLATION,),
    "prefix": (TRANSLATION,),
    "source_language": (TRANSLATION,),
    "target_language": (TRANSLATION,),
    "temperature": (GENERATION,),
    "top_p": (GENERATION,),
    "seed": (GENERATION,),
    "no_answer_threshold": (QUESTIONS,),
    "skip_damaged": (IMAGE,),
}
"""Tasks of the options that not all tasks have."""


def open_source(source: Source, options: Options) -> Predictor:
    """Load what predicts for a source that was found.

    Raises:
        UserError: whatever is wrong with its files, or an option out of its range, or one that the
            model cannot use.
    """
    check_range("batch-size", options.batch_size, 1, 1 << 20)
    for name in ("batch_tokens", "max_length", "max_new_tokens", "beams"):
        if getattr(options, name) is not None:
            check_range(name.replace("_", "-"), getattr(options, name), 1, 1 << 30)
    check_options(source, options)
    module, function = _OPENERS[source.task]
    opened: Predictor = getattr(import_module(f"toolkit.prediction.{module}"), function)(
        source, options
    )
    return opened


def open_model(name: str, options: Options | None = None) -> Predictor:
    """Load a run, a model folder, an adapter or a Hub name, to predict with it.

    Raises:
        UserError: as `toolkit.prediction.source.find_source` and `open_source`.
    """
    return open_source(find_source(name), options or Options())


def check_options(source: Source, options: Options) -> None:
    """Refuse options that mean nothing to the model.

    Raises:
        UserError: names the first of them.
    """
    default = Options()
    given = [
        field.name
        for field in fields(Options)
        if getattr(options, field.name) != getattr(default, field.name)
    ]
    for name in given:
        flag, tasks = f"--{name.replace('_', '-')}", _TASKS.get(name)
        if tasks is not None and source.task not in tasks:
            does = "has no task" if source.task == NO_TASK else f"does {source.task}"
            raise UserError(
                f"{flag} is for {', '.join(tasks)}; {source.name} {does}. Leave it out."
            )
        if source.is_tfidf and not (name == "device" and options.device == "cpu"):
            raise UserError(
                f"{flag} is for neural networks; {source.name} is a TF-IDF model, which "
                "scikit-learn computes on the CPU from whole texts. Leave it out."
            )
        if name in ("top_p", "seed") and options.temperature == 0:
            raise UserError(
                f"{flag} is for tokens that are drawn; at --temperature 0 none are. Give another "
                "temperature, such as --temperature 0.8, or leave it out."
            )

"""From the name of a model to what predicts with it."""

from __future__ import annotations

from importlib import import_module

from toolkit.config import check_range
from toolkit.errors import UserError
from toolkit.prediction.predictor import Options, Predictor
from toolkit.prediction.source import (
    GENERATION,
    IMAGE,
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


def open_source(source: Source, options: Options) -> Predictor:
    """Load what predicts for a source that was found.

    Raises:
        UserError: whatever is wrong with its files, or an option out of its range.
    """
    check_range("batch-size", options.batch_size, 1, 1 << 20)
    for name in ("batch_tokens", "max_length", "max_new_tokens", "beams"):
        if getattr(options, name) is not None:
            check_range(name.replace("_", "-"), getattr(options, name), 1, 1 << 30)
    _check_special(source, options)
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


def _check_special(source: Source, options: Options) -> None:
    """Refuse options that mean nothing to the task."""
    given = {
        "--beams": (options.beams is not None, (TRANSLATION,)),
        "--prefix": (options.prefix is not None, (TRANSLATION,)),
        "--source-language": (options.source_language is not None, (TRANSLATION,)),
        "--target-language": (options.target_language is not None, (TRANSLATION,)),
        "--max-new-tokens": (options.max_new_tokens is not None, (TRANSLATION, GENERATION)),
        "--temperature": (options.temperature != 0, (GENERATION,)),
        "--top-p": (options.top_p != 1, (GENERATION,)),
        "--no-answer-threshold": (options.no_answer_threshold is not None, (QUESTIONS,)),
        "--skip-bad-images": (options.skip_bad_images, (IMAGE,)),
    }
    for flag, (used, tasks) in given.items():
        if used and source.task not in tasks:
            raise UserError(
                f"{flag} is for {' and '.join(tasks)}; {source.name} does {source.task}. Leave it "
                "out."
            )

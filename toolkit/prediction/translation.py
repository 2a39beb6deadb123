"""Translations (and whatever else an encoder-decoder writes for a text)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from torch import Tensor

from toolkit.data.splits import is_blank
from toolkit.data.tokenization import input_limit, usable_positions
from toolkit.errors import UserError
from toolkit.fine_tuning import FineTuningConfig
from toolkit.modeling import load_tokenizer
from toolkit.objectives import Batch
from toolkit.prediction.batches import Advance, BatchLimits, predict_sorted
from toolkit.prediction.classification import add_note
from toolkit.prediction.loading import choose_implementation, limits_of, load_model, place
from toolkit.prediction.predictor import NO_TEXT, NOTE, Answer, Options
from toolkit.prediction.source import TRANSLATION, Source
from toolkit.translation import GenerationSettings, decode, translate
from toolkit.translation_models import HEAD, load_translator

_LONGEST = 1 << 30
_MOST = 512  # new tokens, where nothing says


class Writer:
    """Writes the translation of texts. A text that shows nothing has an empty one.

    Args:
        generate: token ids [batch, longest] of a batch.
        limit: tokens of a source, special tokens included.
        prefix: put before every source.
    """

    task, kind, names = TRANSLATION, "text", ("prediction",)
    labels: Sequence[str] = ()

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        generate: Callable[[Any, Batch], Tensor],
        limit: int,
        prefix: str,
        limits: BatchLimits,
    ) -> None:
        self.model, self.tokenizer, self.generate = model, tokenizer, generate
        self.limit, self.prefix, self.limits = limit, prefix, limits

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """`prediction`: the text."""
        answers: list[Answer] = [{"prediction": "", NOTE: NO_TEXT} for _ in rows]
        written = [number for number, row in enumerate(rows) if not is_blank(row)]
        advance(len(rows) - len(written))
        if not written:
            return answers
        sources = [self.prefix + rows[number] for number in written]
        how = {"return_attention_mask": False, "verbose": False}
        full = self.tokenizer(sources, **how)["input_ids"]
        ids = self.tokenizer(sources, **how, truncation=True, max_length=self.limit)["input_ids"]
        examples = [{"input_ids": row} for row in ids]
        found = predict_sorted(
            self.model, examples, lengths=list(map(len, ids)), collate=self._collate,
            compute=self._compute, limits=self.limits, advance=advance,
        )  # fmt: skip
        for number, text, whole in zip(written, found["text"], full, strict=True):
            answers[number] = {"prediction": text}
            add_note(answers[number], rows[number], len(whole), self.limit)
        return answers

    def _collate(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        batch = self.tokenizer.pad(
            {"input_ids": [row["input_ids"] for row in examples]},
            padding=True,
            return_attention_mask=True,
            return_tensors="pt",
        )
        return dict(batch)

    def _compute(self, model: Any, batch: Batch) -> Mapping[str, Any]:
        ids: np.ndarray = self.generate(model, batch).cpu().numpy()
        return {"text": decode(self.tokenizer, ids)}


def open_translator(source: Source, options: Options) -> Writer:
    """The translator of a run, which searches as the run was tested; or of a checkpoint.

    Raises:
        UserError: whatever is wrong with its files, or languages it does not know.
    """
    languages = _languages(source, options)
    if (options.source_language or options.target_language) and (
        languages is None or source.adapter is not None
    ):
        _refuse_languages(source)
    asked = options.prefix
    if asked is None:
        asked = source.tokenization("prefix")
    if languages is None or source.adapter is not None:
        tokenizer = load_tokenizer(source.folder)
        model = load_model(source, HEAD, options)
        prefix = asked or ""
    else:
        settings = FineTuningConfig(
            implementation=choose_implementation(source, HEAD, options.implementation)
        )
        codes = (source.config.get("source_code"), source.config.get("target_code"))
        found = load_translator(source.folder, settings, languages, codes=codes, prefix=asked)
        model, tokenizer, prefix = found.model, found.tokenizer, found.prefix
        model = place(model, options.device)
    longest = options.max_length or source.tokenization("max_length") or _LONGEST
    limit = input_limit(min(longest, _LONGEST), tokenizer, model.config)
    generate = _search(source, model, options, limit)
    return Writer(model, tokenizer, generate, limit, prefix, limits_of(options))


def _languages(source: Source, options: Options) -> tuple[str, str] | None:
    """Codes of source and target language: asked for, or those of the run."""
    data = source.summary.get("data", {})
    first = options.source_language or data.get("source_language")
    second = options.target_language or data.get("target_language")
    return (first, second) if first and second else None


def _refuse_languages(source: Source) -> NoReturn:
    if source.adapter is not None:
        raise UserError(
            f"{source.name}: an adapter translates between the languages it was trained for. Leave "
            "out --source-language and --target-language."
        )
    raise UserError(
        f"{source.name}: one language says nothing without the other. Give both --source-language "
        "and --target-language."
    )


def _search(
    source: Source, model: Any, options: Options, limit: int
) -> Callable[[Any, Batch], Tensor]:
    """A run's own search; else HuggingFace's `generate` with the checkpoint's settings."""
    recorded = source.config.get("generation")
    if recorded:
        settings = GenerationSettings(**recorded)
        if options.beams is not None:
            settings.beams = options.beams
        settings.check()
        most = min(settings.longest(limit), usable_positions(model.config) or _LONGEST)
        most = min(most, options.max_new_tokens or most)
        return lambda model, batch: translate(model, batch, settings, most)
    how: dict[str, Any] = {}
    generation = model.generation_config
    if options.beams is not None:
        how["num_beams"] = options.beams
    if options.max_new_tokens is not None:
        how["max_new_tokens"] = options.max_new_tokens
    elif generation.max_new_tokens is None and generation.max_length in (None, 20):
        # transformers would stop after 20 tokens where the checkpoint says nothing.
        how["max_new_tokens"] = usable_positions(model.config) or _MOST

    def generate(model: Any, batch: Batch) -> Tensor:
        made: Tensor = model.generate(**batch, do_sample=False, **how)
        return made[:, 1:]

    return generate

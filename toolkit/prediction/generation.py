"""Texts that a language model goes on with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from toolkit.config import check_range
from toolkit.data.splits import is_blank
from toolkit.data.tokenization import check_tokenizer, usable_positions
from toolkit.errors import UserError
from toolkit.gpt2 import HEAD
from toolkit.modeling import load_tokenizer
from toolkit.objectives import Batch
from toolkit.prediction.batches import Advance, BatchLimits, predict_sorted
from toolkit.prediction.loading import limits_of, load_model
from toolkit.prediction.predictor import NO_TEXT, NOTE, Answer, Options
from toolkit.prediction.source import GENERATION, Source
from toolkit.text_samples import SamplingSettings, read_sample

NEW_TOKENS = 60


class Continuer:
    """Goes on with prompts until the end of text or `max_new_tokens`.

    A prompt that shows nothing is answered with nothing. Where prompt and new tokens exceed the
    model's positions, the start of the prompt is not read.

    Args:
        settings: how tokens are chosen; its prompts are not used.
        seed: of what is drawn; equal rows in equal order give equal texts.
    """

    task, kind, names = GENERATION, "text", ("prediction", "ended")
    labels: Sequence[str] = ()

    def __init__(
        self, model: Any, tokenizer: Any, settings: SamplingSettings, limits: BatchLimits, seed: int
    ) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self.limits, self.seed = limits, seed
        positions = usable_positions(model.config)
        if positions is not None and settings.max_new_tokens > positions:
            raise UserError(
                f"--max-new-tokens {settings.max_new_tokens}: the model has {positions} positions "
                "for the prompt and what it adds."
            )
        # The token that is added last is not read again and needs no position.
        self.limit = None if positions is None else positions + 1 - settings.max_new_tokens

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """`prediction`: what was added to the prompt; `ended`: whether the model ended the text."""
        answers: list[Answer] = [{"prediction": "", "ended": None, NOTE: NO_TEXT} for _ in rows]
        written = [number for number, row in enumerate(rows) if not is_blank(row)]
        advance(len(rows) - len(written))
        if not written:
            return answers
        encoded = self.tokenizer([rows[n] for n in written], verbose=False)["input_ids"]
        full = [ids[:-1] if self._ends(ids) else ids for ids in encoded]
        read = [ids[-self.limit :] if self.limit else ids for ids in full]
        torch.manual_seed(self.seed)
        found = predict_sorted(
            self.model, [{"input_ids": ids} for ids in read], lengths=list(map(len, read)),
            collate=self._collate, compute=self._compute, limits=self.limits,
            advance=advance,
        )  # fmt: skip
        for number, ids, whole, new in zip(written, read, full, found["new"], strict=True):
            sample = read_sample(ids, new, self.tokenizer)
            answers[number] = {"prediction": sample.text, "ended": sample.ended}
            if len(whole) > len(ids):
                answers[number][NOTE] = f"read the last {len(ids)} of {len(whole)} tokens"
        return answers

    def _ends(self, ids: list[int]) -> bool:
        """Some tokenizers end every text; a prompt is not to be ended."""
        return len(ids) > 1 and ids[-1] == self.tokenizer.eos_token_id

    def _collate(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        return dict(
            self.tokenizer.pad(
                {"input_ids": [row["input_ids"] for row in examples]},
                padding_side="left",
                return_tensors="pt",
            )
        )

    def _compute(self, model: Any, batch: Batch) -> Mapping[str, Any]:
        with warnings.catch_warnings():
            made = model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                pad_token_id=self.tokenizer.pad_token_id,
                **self.settings.for_generate(),
            )
        return {"new": made[:, batch["input_ids"].shape[1] :].tolist()}


def open_continuer(source: Source, options: Options) -> Continuer:
    """The language model of a run or checkpoint.

    Raises:
        UserError: whatever is wrong with its files or the settings.
    """
    check_range("temperature", options.temperature, 0, 100)
    check_range("top-p", options.top_p, 0.001, 1)
    tokenizer = load_tokenizer(source.folder)
    model = load_model(source, HEAD, options, tokenizer)
    check_tokenizer(tokenizer, model.config.vocab_size)
    settings = SamplingSettings(
        max_new_tokens=options.max_new_tokens or NEW_TOKENS,
        temperature=options.temperature,
        top_p=options.top_p,
    )
    return Continuer(model, tokenizer, settings, limits_of(options), options.seed)

"""Translation as a task: its loss, what it writes, and the metrics that choose a checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import LogitsProcessor, LogitsProcessorList

from toolkit.config import check_range
from toolkit.data.tokenization import usable_positions
from toolkit.errors import UserError
from toolkit.evaluation import Outputs
from toolkit.ignored_label import IGNORED
from toolkit.objectives import Batch, model_inputs
from toolkit.text_metrics import bleu, exact_match
from toolkit.training.sharding import is_divided, prepare_generation

Selection = Literal["loss", "bleu", "exact_match"]


@dataclass
class GenerationSettings:
    """How translations are searched for."""

    beams: int = 4
    """Hypotheses kept in beam search; 1 takes the most probable token every time."""
    length_penalty: float = 1.0
    """Scores are divided by length to this power: above 0 favours longer translations."""
    length_ratio: float = 2.0
    """A translation ends after so many tokens for each of its source's, and 10 more."""

    def check(self) -> None:
        """Raise a UserError for a number that cannot be searched with."""
        check_range("generation.beams", self.beams, 1, 1000)
        check_range("generation.length_penalty", self.length_penalty, -100, 100)
        check_range("generation.length_ratio", self.length_ratio, 0, 1000)

    def longest(self, source_tokens: int) -> int:
        """Most tokens of the translation of a source with so many."""
        return int(self.length_ratio * source_tokens) + 10


class EndAtOwnLimit(LogitsProcessor):
    """Forces the end on every row at a limit of its own, whatever it is batched with.

    Args:
        limits: [batch] most new tokens of a row, the end included.
        end: id of the end token.
        started: tokens the decoder was given to start from.
    """

    def __init__(self, limits: Tensor, end: int, started: int = 1) -> None:
        self.limits = limits
        self.end = end
        self.started = started

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """[batch x beams, vocabulary] scores of the next token."""
        beams = len(scores) // len(self.limits)
        made = input_ids.shape[1] - self.started + 1  # with the token that comes now
        at_limit = self.limits.repeat_interleave(beams) <= made
        if not at_limit.any():
            return scores
        scores = scores.masked_fill(at_limit[:, None], -torch.inf)
        scores[at_limit, self.end] = 0.0
        return scores


def translate(model: Any, batch: Batch, settings: GenerationSettings, most: int) -> Tensor:
    """Token ids of the translations, [batch, longest], without the token the decoder starts from.

    A row's translation does not depend on the rows beside it.

    Args:
        model: with HuggingFace's `generate`; its `generation_config` names the special tokens.
        batch: input_ids and attention_mask [batch, source length].
        most: tokens of any translation.
    """
    ends = model.generation_config.eos_token_id
    source_tokens = batch["attention_mask"].sum(1)
    limits = torch.tensor(
        [min(settings.longest(count), most) for count in source_tokens.tolist()],
        device=source_tokens.device,
    )
    made = model.generate(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        num_beams=settings.beams,
        do_sample=False,
        length_penalty=settings.length_penalty,
        max_new_tokens=int(limits.max()),
        logits_processor=LogitsProcessorList(
            [EndAtOwnLimit(limits, ends[0] if isinstance(ends, list) else ends)]
        ),
        synced_gpus=prepare_generation(model),
    )
    ids: Tensor = made[:, 1:]
    return ids


class Translation:
    """Cross entropy per target token, smoothed in training, and translations in evaluation.

    Args:
        model: before it is prepared for training; it knows how labels become decoder inputs.
        label_smoothing: share of the probability that a label gives to the whole vocabulary, in
            training alone (Vaswani et al. 2017, §5.4).
        generation: how to translate.
        limit: longest source in tokens; the model's positions are a limit of translations too.
        translated_rows: the first so many rows of a data set are translated in evaluation.

    Raises:
        UserError: a setting out of its range.
    """

    def __init__(
        self,
        model: Any,
        label_smoothing: float,
        generation: GenerationSettings,
        limit: int,
        translated_rows: int,
    ) -> None:
        check_range("label_smoothing", label_smoothing, 0, 0.99)
        check_range("translate_validation", translated_rows, 0, 1 << 30)
        generation.check()
        self.shift: Callable[[Tensor], Tensor] = model.prepare_decoder_input_ids_from_labels
        self.label_smoothing = label_smoothing
        self.generation = generation
        most = usable_positions(model.config)
        self.width = min(generation.longest(limit), most or 1 << 30)
        self.translated_rows = translated_rows

    def translating(self, rows: int) -> Translation:
        """The same, for a data set whose first so many rows are to be translated."""
        other = copy.copy(self)
        other.translated_rows = rows
        return other

    def count(self, batch: Batch) -> list[int]:
        """Target tokens, the end of a sentence included."""
        return [int((batch["labels"] != IGNORED).sum())]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Summed smoothed cross entropy over the target tokens."""
        return F.cross_entropy(
            self._logits(model, batch).flatten(0, 1),
            batch["labels"].flatten(),
            ignore_index=IGNORED,
            reduction="sum",
            label_smoothing=self.label_smoothing,
        ).view(1)

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Per example: summed `loss` (not smoothed), `tokens`, `correct` ones, and `translation`.

        `translation` [batch, width] is there where rows are to be translated; -100 fills it up.
        """
        logits, labels = self._logits(model, batch), batch["labels"]
        losses = F.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
        )
        hits = (logits.argmax(-1) == labels) & (labels != IGNORED)
        outputs = {
            "loss": losses.sum(-1),
            "tokens": (labels != IGNORED).sum(-1),
            "correct": hits.sum(-1),
        }
        if self.translated_rows:
            outputs["translation"] = self._translations(model, batch)
        return outputs

    def _logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """[batch, length, vocabulary], float32: sums in bf16 lose small terms."""
        inputs = model_inputs(batch)
        decoder_input_ids = self.shift(batch["labels"])
        logits: Tensor = model(
            **inputs, decoder_input_ids=decoder_input_ids, use_cache=False
        ).logits.float()
        return logits

    def _translations(self, model: nn.Module, batch: Batch) -> Tensor:
        rows = (batch["index"] < self.translated_rows).nonzero().flatten()
        asked = len(rows)
        if not asked and is_divided(model):  # other processes cannot translate without this one
            rows = batch["index"].new_zeros(1)
        translations = torch.full(
            (len(batch["labels"]), self.width), IGNORED, device=batch["labels"].device
        )
        if len(rows):
            some = {name: batch[name][rows] for name in ("input_ids", "attention_mask")}
            bare_model = extract_model_from_parallel(model)
            made = translate(bare_model, some, self.generation, self.width)
            translations[rows[:asked], : made.shape[1]] = made[:asked]
        return translations


def decode(tokenizer: Any, ids: np.ndarray) -> list[str]:
    """Texts of token ids [rows, length]; -100 is read as padding."""
    padded = np.where(ids == IGNORED, tokenizer.pad_token_id, ids)
    return [text.strip() for text in tokenizer.batch_decode(padded, skip_special_tokens=True)]


class TranslationMetric:
    """Loss and accuracy per target token; BLEU and exact matches of what was translated.

    BLEU does not look at case where the tokenizer writes lower case alone.

    Args:
        references: of the rows that are translated, the first ones of the data set.
        language: code of the target language.
        selection: which value chooses the best checkpoint.

    Raises:
        UserError: translations are to choose, but none are made.
    """

    def __init__(
        self, tokenizer: Any, references: Sequence[str], language: str, selection: Selection
    ) -> None:
        if selection != "loss" and not references:
            raise UserError(f"--select_by {selection} needs --translate_validation of at least 1")
        self.tokenizer = tokenizer
        self.references = list(references)
        self.language = language
        self.selection: str = selection
        self.higher_is_better = selection != "loss"
        self.lowercase = decode(tokenizer, np.array([tokenizer("A")["input_ids"]])) == ["a"]

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Compute from the sums of `Translation.outputs`."""
        tokens = max(int(outputs["tokens"].sum()), 1)
        values = {
            "loss": float(outputs["loss"].sum() / tokens),
            "token_accuracy": float(outputs["correct"].sum() / tokens),
        }
        if self.references:
            made = decode(self.tokenizer, outputs["translation"][: len(self.references)])
            values["bleu"] = bleu(
                made, self.references, self.language, lowercase=self.lowercase, draws=1
            )["value"]
            values["exact_match"] = exact_match(made, self.references)["value"]
        return values

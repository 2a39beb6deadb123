"""A model reads a text, a pair, a text to translate or an image: what attends to what."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from scratch_models.parity.inputs import has_images
from toolkit.attention.tokens import tokens_of
from toolkit.attention.weights import AttentionMaps, Kind, collect
from toolkit.config import check_range
from toolkit.data.image_sources import IMAGE_SUFFIXES
from toolkit.data.splits import is_blank
from toolkit.data.tokenization import check_tokenizer, encode_batch, length_limit
from toolkit.errors import UserError
from toolkit.modeling import load_tokenizer, read_config
from toolkit.prediction.loading import load_model
from toolkit.prediction.opening import check_options
from toolkit.prediction.predictor import Options
from toolkit.prediction.source import (
    GENERATION,
    NO_TASK,
    QUESTIONS,
    TAGS,
    TEXT,
    TRANSLATION,
    Source,
    find_model,
)

if TYPE_CHECKING:
    from toolkit.attention.images import SeenImage

MAX_TOKENS = 128
_HEADS = {
    TEXT: "sequence-classification",
    TAGS: "token-classification",
    QUESTIONS: "question-answering",
    GENERATION: "causal-lm",
    NO_TASK: "model",
}


@dataclass(frozen=True)
class Reading:
    """A model's attention to one input.

    Args:
        model: as the user named it.
        model_class: name of the class that computed it.
        texts: what it read: a text, a pair, or the path of an image.
        maps: by kind.
        written: the translation that the decoder was given, or made.
        made: the model itself made it.
        image: what a model of images saw.
        remarks: what a reader has to know, such as that a text was cut.
    """

    model: str
    model_class: str
    texts: tuple[str, ...]
    maps: dict[Kind, AttentionMaps]
    written: str | None = None
    made: bool = False
    image: SeenImage | None = None
    remarks: tuple[str, ...] = ()


def read(
    name: str, texts: list[str], options: Options | None = None, max_tokens: int = MAX_TOKENS
) -> Reading:
    """Open a model as `toolkit predict` does, or one without a task, and let it read.

    Args:
        name: run directory, model folder, adapter, Hub name or `demo:` name.
        texts: a text, or two: a pair, or for a model that translates its source and a translation
            (without one, it makes its own, always taking the most probable token); or the path of
            an image.
        options: implementation and device; for a translation its prefix and languages.
        max_tokens: longer texts are cut.

    Raises:
        UserError: the model cannot be opened, has no attention, or cannot read what is given.
    """
    options = options or Options()
    source = find_reader(name, options, max_tokens)
    if has_images(read_config(source.folder)):
        from toolkit.attention.images import read_image

        return read_image(source, options, _only(texts, "a model of images reads one image"))
    for text in texts:
        _check_text(name, text)
    return open_reader(source, options, max_tokens)(texts)


def find_reader(name: str, options: Options, max_tokens: int) -> Source:
    """What a name stands for, if it may have attention.

    Raises:
        UserError: nothing of that name, a TF-IDF model, options that mean nothing to it, or no
            number of tokens.
    """
    check_range("max-tokens", max_tokens, 1, 1 << 20)
    source = find_model(name)
    if source.is_tfidf:
        raise UserError(f"{name}: a TF-IDF model has no attention. Give a Transformer.")
    check_options(source, options)
    return source


def open_reader(source: Source, options: Options, most: int) -> TextReader | TranslationReader:
    """The model, loaded once to read any number of texts.

    Raises:
        UserError: its files cannot be read, or it is of a kind whose attention cannot be shown.
    """
    if read_config(source.folder).is_encoder_decoder:
        return TranslationReader(source, options, most)
    return TextReader(source, options, most)


class TextReader:
    """Reads texts or pairs with a model that is an encoder or a decoder.

    Args:
        most: tokens of an input; what is longer is cut.
    """

    def __init__(self, source: Source, options: Options, most: int) -> None:
        self.source = source
        frozen = (Path(source.folder) / "classifier.safetensors").is_file()
        self.tokenizer = load_tokenizer(source.folder)
        head = "model" if frozen else _HEADS[source.task]
        self.model = load_model(source, head, options, self.tokenizer)
        check_tokenizer(self.tokenizer, self.model.config.vocab_size)
        self.asked, self.most = most, min(most, source.tokenization("max_length") or most)

    def __call__(self, texts: list[str]) -> Reading:
        """Read one text, or the two of a pair."""
        if self.source.task == GENERATION:
            _only(texts, "a language model reads one text")
        model, tokenizer = self.model, self.tokenizer
        limit = length_limit(
            self.most, tokenizer, model.config, pairs=len(texts) > 1, option="--max-tokens"
        )
        columns = dict(zip(("text", "pair"), [[text] for text in texts], strict=False))
        encoded = encode_batch(columns, tokenizer, limit)
        inputs: dict[str, Tensor] = {
            name: torch.tensor(encoded[name])
            for name in ("input_ids", "token_type_ids")
            if name in encoded
        }
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        maps = collect(model, inputs, tokens_of(encoded["input_ids"][0], tokenizer))
        remarks = _cut("the text", encoded["full_length"][0], limit, self.asked)
        return Reading(self.source.name, type(model).__name__, tuple(texts), maps, remarks=remarks)


class TranslationReader:
    """Reads texts with their translations, given or its own, with an encoder and a decoder.

    Args:
        most: tokens of either side; what is longer is cut.
    """

    def __init__(self, source: Source, options: Options, most: int) -> None:
        if source.task not in (TRANSLATION, NO_TASK):
            raise UserError(
                f"{source.name}: an encoder with a decoder that does {source.task}. Of encoders "
                "with a decoder, the attention of those that write (Marian, BART, T5) can be shown."
            )
        from toolkit.prediction.translation import open_translator

        asked = min(most, source.tokenization("max_length") or most)
        self.source, self.asked = source, most
        self.writer = open_translator(
            source, dataclasses.replace(options, beams=1, max_length=asked, max_new_tokens=most)
        )
        self.tokenizer = self.writer.tokenizer

    def __call__(self, texts: list[str]) -> Reading:
        """Read a text, or a text and its translation."""
        writer, model, tokenizer = self.writer, self.writer.model, self.tokenizer
        how: dict[str, Any] = {"verbose": False, "truncation": True}
        full = tokenizer(writer.prefix + texts[0], verbose=False)["input_ids"]
        ids = tokenizer(writer.prefix + texts[0], max_length=writer.limit, **how)["input_ids"]
        remarks = _cut("the text", len(full), writer.limit, self.asked)
        inputs = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids)).long(),
        }
        if len(texts) > 1:
            whole = tokenizer(text_target=texts[1], verbose=False)["input_ids"]
            given = tokenizer(text_target=texts[1], max_length=writer.limit, **how)["input_ids"]
            remarks += _cut("the translation", len(whole), writer.limit, self.asked)
            written = torch.tensor([given])
            decoder_ids = model.prepare_decoder_input_ids_from_labels(labels=written)
        else:
            device = next(model.parameters()).device
            with torch.inference_mode():
                written = writer.generate(model, {k: v.to(device) for k, v in inputs.items()}).cpu()
            decoder_ids = torch.cat([_start(model), written[:, :-1]], dim=1)
            remarks += _unfinished(model, written)
        maps = collect(
            model,
            {**inputs, "decoder_input_ids": decoder_ids},
            tokens_of(ids, tokenizer),
            tokens_of(decoder_ids[0].tolist(), tokenizer),
            tokens_of(written[0].tolist(), tokenizer),
        )
        text = tokenizer.decode(written[0], skip_special_tokens=True).strip()
        return Reading(
            self.source.name, type(model).__name__, (texts[0],), maps,
            written=texts[1] if len(texts) > 1 else text, made=len(texts) == 1, remarks=remarks,
        )  # fmt: skip


def _unfinished(model: Any, written: Tensor) -> tuple[str, ...]:
    ends = model.generation_config.eos_token_id
    if int(written[0, -1]) in (ends if isinstance(ends, list) else [ends]):
        return ()
    return (f"its translation was stopped after {written.shape[1]:,} tokens",)


def _start(model: Any) -> Tensor:
    """What the decoder starts from [1, 1]."""
    start = getattr(model.generation_config, "decoder_start_token_id", None)
    start = model.config.decoder_start_token_id if start is None else start
    return torch.tensor([[start]])


def _check_text(name: str, text: str) -> None:
    if is_blank(text):
        raise UserError("the text is empty: there is nothing to attend to. Give a text.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError("the text is no valid UTF-8: give it in this encoding.") from error
    path = Path(text)
    if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
        raise UserError(f"{text} is an image, but {name} reads texts. Give a model of images.")


def _only(texts: list[str], what: str) -> str:
    if len(texts) > 1:
        raise UserError(f"{what}, {len(texts)} are given. Leave the second out.")
    return texts[0]


def _cut(what: str, full: int, limit: int, asked: int) -> tuple[str, ...]:
    if full <= limit:
        return ()
    why = "--max-tokens allows more, up to what the model can read"
    if limit < asked:
        why = "the model reads no more, or was trained to read no more"
    return (f"{what} was cut from {full:,} to {limit:,} tokens; {why}",)

"""A model is analysed: it reads many texts, and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scratch_models.parity.inputs import has_images
from toolkit.attention.alignment import Aligned, Alignment, align, pool
from toolkit.attention.analysis import Analysis, analyse
from toolkit.attention.corpus import Corpus, corpus_of
from toolkit.attention.reading import (
    MAX_TOKENS,
    Reading,
    TextReader,
    TranslationReader,
    find_reader,
    open_reader,
)
from toolkit.attention.sentence import SENTENCE
from toolkit.attention.slots import LANGUAGES, slots_of, slots_of_tokens
from toolkit.attention.weights import AttentionMaps, Kind
from toolkit.errors import UserError
from toolkit.modeling import read_config
from toolkit.prediction.predictor import Options
from toolkit.progress import progress_bar, working

Reader = TextReader | TranslationReader


@dataclass(frozen=True)
class ModelAnalysis:
    """What was found out about a model's heads.

    Args:
        model: as the user named it.
        model_class: name of the class that computed the weights.
        corpus: what it read.
        cut: texts that were longer than what it reads.
        kinds: by attention.
        alignment: of cross-attention with the slots of dates; None where there is nothing to align.
        no_alignment: then why.
        sentence: its self-attention while it reads the sentence of the chapter.
    """

    model: str
    model_class: str
    corpus: Corpus
    cut: int
    kinds: dict[Kind, Analysis]
    alignment: Alignment | None
    no_alignment: str
    sentence: AttentionMaps


def analyse_model(
    name: str, number: int = 200, options: Options | None = None, max_tokens: int = MAX_TOKENS
) -> ModelAnalysis:
    """Let a model read texts of its own test set, or embedded ones, and count what its heads do.

    Translations are given, not made: heads are compared on the right ones.

    Args:
        name: run directory, model folder, adapter, Hub name or `demo:` name.
        number: texts to read at most.
        options: implementation and device; of a translator its prefix and languages.
        max_tokens: longer texts are cut.

    Raises:
        UserError: the model cannot be opened, has no attention or reads no texts.
    """
    if number < 2:
        raise UserError(f"--texts {number}: expected 2 or more, as intervals are over texts.")
    options = options or Options()
    source = find_reader(name, options, max_tokens)
    if has_images(read_config(source.folder)):
        raise UserError(
            f"{name}: a model of images. --analyse asks which words heads attend to: give a model "
            "of texts, or show one image: toolkit attention MODEL IMAGE."
        )
    with working(f"loading {name}"):
        reader = open_reader(source, options, max_tokens)
    corpus = corpus_of(source, number, isinstance(reader, TranslationReader))
    readings = []
    with progress_bar("reading", total=len(corpus.rows)) as display:
        for row in corpus.rows:
            readings.append(reader(row))
            display.advance()
    with working("drawing bootstrap samples"):
        kinds = {kind: analyse([r.maps[kind] for r in readings]) for kind in readings[0].maps}
    alignment, why_not = _alignment(reader, corpus, readings)
    # The encoder alone is looked at: with a translation given, none need be made.
    given = [SENTENCE] * (2 if isinstance(reader, TranslationReader) else 1)
    maps = reader(given).maps
    return ModelAnalysis(
        name,
        readings[0].model_class,
        corpus,
        sum(bool(reading.remarks) for reading in readings),
        kinds,
        alignment,
        why_not,
        maps["encoder"] if "encoder" in maps else maps["decoder"],
    )


def _alignment(
    reader: Reader, corpus: Corpus, readings: Sequence[Reading]
) -> tuple[Alignment | None, str]:
    """Accuracies of cross-attention on dates, or why there are none."""
    if not isinstance(reader, TranslationReader):
        return None, "the model has no cross-attention"
    if not getattr(reader.tokenizer, "is_fast", False):
        return None, "the tokenizer does not say where in a text its tokens are"
    if corpus.languages is None or not set(corpus.languages) <= set(LANGUAGES):
        return None, f"slots of dates are known in {', '.join(LANGUAGES)} alone"
    found = []
    for row, reading in zip(corpus.rows, readings, strict=True):
        if (one := _align_one(reader, row, reading, corpus.languages)) is not None:
            found.append(one)
    pooled = pool(found)
    return pooled, "" if pooled else "no text was read at full length that is a date or a time"


def _align_one(
    reader: TranslationReader, row: Sequence[str], reading: Reading, languages: tuple[str, str]
) -> Aligned | None:
    maps = reading.maps["cross"]
    sides: list[list[str | None]] = []
    prefix = reader.writer.prefix
    for text, language, side, length in (
        (prefix + row[0], languages[0], "text", len(maps.keys)),
        (row[1], languages[1], "text_target", len(maps.queries)),
    ):
        how: dict[str, Any] = {side: text}
        encoded = reader.tokenizer(**how, return_offsets_mapping=True, verbose=False)
        names = reader.tokenizer.convert_ids_to_tokens(encoded["input_ids"])
        # A space that SentencePiece puts before a text gets the place of the letter behind it.
        offsets = [
            (start, end) if name.strip("▁") else (start, start)
            for name, (start, end) in zip(names, encoded["offset_mapping"], strict=True)
        ]
        if len(offsets) != length:  # cut: what is left has no slots that can be trusted
            return None
        sides.append(slots_of_tokens(text, offsets, slots_of(text, language)))
    return align(maps, sides[1], sides[0])

"""A model is analysed: it reads many texts, and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scratch_models.parity.inputs import has_images
from toolkit.attention import alignment, analysis
from toolkit.attention.alignment import Aligned, Alignment, align
from toolkit.attention.analysis import Analysis, TextSums, sums_of_text
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
        sentence_cut: it could not read all of it.
    """

    model: str
    model_class: str
    corpus: Corpus
    cut: int
    kinds: dict[Kind, Analysis]
    alignment: Alignment | None
    no_alignment: str
    sentence: AttentionMaps
    sentence_cut: bool


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
    why_not = _no_alignment(reader, corpus)
    sums: dict[Kind, list[TextSums]] = {}
    aligned: list[Aligned] = []
    cut = 0
    # Weights are let go with their text: those of hundreds of texts do not fit into memory.
    with progress_bar("reading", total=len(corpus.rows)) as display:
        for row in corpus.rows:
            reading = reader(row)
            cut += bool(reading.remarks)
            for kind, maps in reading.maps.items():
                sums.setdefault(kind, []).append(sums_of_text(maps))
            if not why_not and (one := _align_one(reader, row, reading, corpus)) is not None:
                aligned.append(one)
            display.advance()
    with working("drawing bootstrap samples"):
        kinds = {kind: analysis.pool(texts) for kind, texts in sums.items()}
    found = alignment.pool(aligned)
    if found is None and not why_not:
        why_not = "no text was read at full length that is a date or a time"
    # The encoder alone is looked at: with a translation given, none need be made.
    given = [SENTENCE] * (2 if isinstance(reader, TranslationReader) else 1)
    reading = reader(given)
    maps = reading.maps["encoder"] if "encoder" in reading.maps else reading.maps["decoder"]
    return ModelAnalysis(
        name, reading.model_class, corpus, cut, kinds, found, why_not, maps, bool(reading.remarks)
    )


def _no_alignment(reader: Reader, corpus: Corpus) -> str:
    """Why cross-attention cannot be compared with dates; empty where it can."""
    if not isinstance(reader, TranslationReader):
        return "the model has no cross-attention"
    if not getattr(reader.tokenizer, "is_fast", False):
        return "the tokenizer does not say where in a text its tokens are"
    if corpus.languages is None or not set(corpus.languages) <= set(LANGUAGES):
        return f"slots of dates are known in {', '.join(LANGUAGES)} alone"
    return ""


def _align_one(
    reader: Reader, row: Sequence[str], reading: Reading, corpus: Corpus
) -> Aligned | None:
    assert isinstance(reader, TranslationReader)  # `_no_alignment` has looked
    assert corpus.languages is not None
    languages, maps = corpus.languages, reading.maps["cross"]
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

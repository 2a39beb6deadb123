"""Entities in texts: a tag for every token, and where each entity stands in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from toolkit.config import check_range
from toolkit.data.splits import is_blank
from toolkit.data.tag_schemes import OUTSIDE, read_spans, scheme_of_labels
from toolkit.data.tokenization import input_limit
from toolkit.data.word_windows import special_tokens, word_pieces, word_windows
from toolkit.errors import UserError
from toolkit.modeling import load_tokenizer
from toolkit.objectives import Batch, model_inputs
from toolkit.prediction.batches import Advance, BatchLimits, predict_sorted
from toolkit.prediction.classification import names_of_labels
from toolkit.prediction.loading import limits_of, load_model
from toolkit.prediction.predictor import NO_TEXT, NOTE, Answer, Options
from toolkit.prediction.source import TAGS, Source

MAX_LENGTH, OVERLAP = 512, 64
_CHINESE = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")


class Token(NamedTuple):
    """A token that gets a tag: its characters `start` to `end` (exclusive), and its pieces."""

    start: int
    end: int
    ids: list[int]


class Tagger:
    """Tags texts, or lists of tokens.

    A text is divided as the run's training data was: into characters, or at spaces. Without a run
    it is divided as the tokenizer does, Chinese characters apart; the tag of a word is that of its
    first piece.

    Args:
        labels: tags in id order.
        limit: tokens of a window, special tokens included.
        overlap: tokens that neighbouring windows share.
        unit: `characters`, `words`, or None: the tokenizer's.
    """

    task, kind, names = TAGS, "tokens", ("entities", "tagged_tokens", "tags")

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        labels: Sequence[str],
        *,
        limit: int,
        overlap: int,
        unit: str | None,
        limits: BatchLimits,
    ) -> None:
        self.model, self.tokenizer, self.tags = model, tokenizer, list(labels)
        self.labels: Sequence[str] = ()
        self.unit, self.limits = unit, limits
        self.room = limit - tokenizer.num_special_tokens_to_add()
        check_range("max_length", limit, tokenizer.num_special_tokens_to_add() + 1, 1 << 30)
        self.overlap = min(overlap, self.room - 1)
        # "a" is a token of every vocabulary, be it the unknown one.
        self.before, self.after = special_tokens(tokenizer, "a")
        self.scheme = scheme_of_labels(self.tags)

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """`entities` (text, type, start, end in characters, score), `tagged_tokens` and their
        `tags`.

        Where a row is a list of tokens, its text is these tokens with spaces between them (with
        nothing between characters).
        """
        texts = [self._text(row) for row in rows]
        tokens = self._tokens(rows, texts)
        windows, owners = [], []
        for number, sentence in enumerate(tokens):
            if not sentence:
                continue
            for window in word_windows([len(t.ids) for t in sentence], self.room, self.overlap):
                windows.append(self._window(sentence, window.start, window.stop, window.counted))
                owners.append((number, window.counted))
        advance(len(rows) - len({number for number, _ in owners}))  # rows without a token
        found = predict_sorted(
            self.model, windows, lengths=[len(window["input_ids"]) for window in windows],
            collate=self._collate, compute=self._compute, limits=self.limits,
            advance=advance, owners=[number for number, _ in owners],
        )  # fmt: skip
        tags: list[list[str]] = [[OUTSIDE] * len(sentence) for sentence in tokens]
        scores = [[0.0] * len(sentence) for sentence in tokens]
        for which, (number, counted) in enumerate(owners):
            for place, token in enumerate(counted):
                tags[number][token] = self.tags[int(found["tag"][which][place])]
                scores[number][token] = float(found["score"][which][place])
        return [self._answer(*parts) for parts in zip(texts, tokens, tags, scores, strict=True)]

    def _text(self, row: Any) -> str:
        if isinstance(row, str):
            return row
        return ("" if self.unit == "characters" else " ").join(row)

    def _tokens(self, rows: Sequence[Any], texts: Sequence[str]) -> list[list[Token]]:
        whole = [n for n, row in enumerate(rows) if isinstance(row, str) and self.unit is None]
        by_tokenizer = dict(zip(whole, self._encoded([texts[n] for n in whole]), strict=True))
        bounds = {n: self._bounds(rows[n]) for n in range(len(rows)) if n not in by_tokenizer}
        words = (texts[n][a:b] for n, spans in bounds.items() for a, b in spans)
        pieces = word_pieces(words, self.tokenizer) if any(bounds.values()) else {}
        return [
            by_tokenizer[n]
            if n in by_tokenizer
            else [Token(a, b, pieces[texts[n][a:b]][: self.room]) for a, b in bounds[n]]
            for n in range(len(rows))
        ]

    def _bounds(self, row: Any) -> list[tuple[int, int]]:
        """Where the tokens of a row begin and end in its text."""
        if isinstance(row, str):
            pattern = r"\S" if self.unit == "characters" else r"\S+"
            return [match.span() for match in re.finditer(pattern, row)]
        bounds, place = [], 0
        for token in row:
            bounds.append((place, place + len(token)))
            place += len(token) + (self.unit != "characters")
        return bounds

    def _encoded(self, texts: list[str]) -> list[list[Token]]:
        """Words of the tokenizer with the pieces they have where they stand."""
        if not texts:
            return []
        encoded = self.tokenizer(
            texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        found = []
        for number, text in enumerate(texts):
            tokens: list[Token] = []
            last = None
            parts = zip(
                encoded["input_ids"][number], encoded["offset_mapping"][number],
                encoded.word_ids(number), strict=True,
            )  # fmt: skip
            for piece, (start, end), word in parts:
                start += len(text[start:end]) - len(text[start:end].lstrip())
                if word != last or not tokens or _CHINESE.match(text, start):
                    tokens.append(Token(start, end, [piece]))
                elif len(tokens[-1].ids) < self.room:
                    tokens[-1] = Token(tokens[-1].start, end, [*tokens[-1].ids, piece])
                last = word
            found.append(tokens)
        return found

    def _window(
        self, sentence: list[Token], start: int, stop: int, counted: list[int]
    ) -> dict[str, Any]:
        ids, places = list(self.before), []
        wanted = set(counted)
        for number in range(start, stop):
            if number in wanted:
                places.append(len(ids))
            ids += sentence[number].ids
        return {"input_ids": [*ids, *self.after], "places": places}

    def _collate(self, examples: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Windows padded as the tokenizer pads, and the places [batch, most] of their tokens."""
        features: dict[str, Any] = {"input_ids": [row["input_ids"] for row in examples]}
        if "token_type_ids" in self.tokenizer.model_input_names:
            features["token_type_ids"] = [[0] * len(ids) for ids in features["input_ids"]]
        batch = self.tokenizer.pad(
            features, padding=True, return_attention_mask=True, return_tensors="pt"
        )
        most = max(len(row["places"]) for row in examples)
        first = batch["attention_mask"].argmax(1).tolist()  # padding may stand on the left
        places = [
            [place + shift for place in row["places"]] + [0] * (most - len(row["places"]))
            for row, shift in zip(examples, first, strict=True)
        ]
        return {**batch, "places": torch.tensor(places)}

    @staticmethod
    def _compute(model: nn.Module, batch: Batch) -> Mapping[str, Any]:
        places = batch.pop("places")
        logits = model(**model_inputs(batch)).logits.float()
        chosen = logits.gather(1, places.unsqueeze(-1).expand(-1, -1, logits.shape[-1]))
        score, tag = chosen.softmax(-1).max(-1)
        return {"tag": list(tag.cpu().numpy()), "score": list(score.cpu().numpy())}

    def _answer(
        self, text: str, tokens: list[Token], tags: list[str], scores: list[float]
    ) -> Answer:
        plain = [tag if self.scheme else _as_inside(tag) for tag in tags]
        entities = [
            {
                "text": text[tokens[span.start].start : tokens[span.stop - 1].end],
                "type": span.kind,
                "start": tokens[span.start].start,
                "end": tokens[span.stop - 1].end,
                "score": float(np.mean(scores[span.start : span.stop])),
            }
            for span in read_spans(plain, self.scheme or "iob1")[0]
        ]
        answer: Answer = {
            "entities": entities,
            "tagged_tokens": [text[token.start : token.end] for token in tokens],
            "tags": tags,
        }
        if is_blank(text):
            answer[NOTE] = NO_TEXT
        return answer


def open_tagger(source: Source, options: Options) -> Tagger:
    """The tagger of a run or checkpoint.

    Raises:
        UserError: whatever is wrong with its files.
    """
    tokenizer = load_tokenizer(source.folder)
    unit = source.summary.get("data", {}).get("tokens")
    if unit is None and not tokenizer.is_fast:
        raise UserError(
            f"{source.name}: {type(tokenizer).__name__} does not tell which characters its tokens "
            "are; a tokenizer with a tokenizer.json (a fast one) is needed."
        )
    model = load_model(source, "token-classification", options)
    asked = options.max_length or source.tokenization("max_length") or MAX_LENGTH
    overlap = source.tokenization("overlap")
    return Tagger(
        model,
        tokenizer,
        names_of_labels(model.config),
        limit=input_limit(asked, tokenizer, model.config),
        overlap=OVERLAP if overlap is None else overlap,
        unit=unit,
        limits=limits_of(options),
    )


def _as_inside(tag: str) -> str:
    """A tag without a prefix goes on with the same tag before it."""
    return tag if tag == OUTSIDE else f"I-{tag}"

"""Words with labels to token ids: the label on a word's first piece, long sentences in windows.

Windows overlap, so that every word is read with words on both sides; its label counts in one of
them alone, the one where it has the most context.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import datasets
import torch

from toolkit.config import check_range
from toolkit.console import notify
from toolkit.data.quiet import quiet_datasets
from toolkit.data.randomness import uniforms
from toolkit.data.windows import Windows
from toolkit.errors import UserError
from toolkit.ignored_label import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from toolkit.data.tagging import TaggingData

_HIDE = 16  # what random numbers are for, apart from the other purposes
_BOUNDARY_MARKS = {"▁", "Ġ"}  # pieces that say no more than that a word begins


class Window(NamedTuple):
    """Words `start` to `stop` (exclusive) of a sentence, and the words whose labels count here."""

    start: int
    stop: int
    counted: list[int]


def word_windows(lengths: Sequence[int], room: int, overlap: int) -> list[Window]:
    """Windows of whole words over a sentence; every word counts in exactly one of them.

    Args:
        lengths: pieces of every word, at least 1 each.
        room: pieces of a window; a word of more is cut to so many and has a window of its own.
        overlap: pieces that neighbouring windows share, at most.
    """
    ends = list(accumulate(min(length, room) for length in lengths))
    bounds: list[tuple[int, int]] = []
    start = 0
    while True:
        before = ends[start - 1] if start else 0
        stop = start + 1
        while stop < len(ends) and ends[stop] - before <= room:
            stop += 1
        bounds.append((start, stop))
        if stop >= len(ends):
            break
        # The next one reads back as far as allowed, but must have room for a word that is new.
        shared = min(overlap, room - (ends[stop] - ends[stop - 1]))
        start += 1
        while start < stop and ends[stop - 1] - ends[start - 1] > shared:
            start += 1
    counted: list[list[int]] = [[] for _ in bounds]
    first = 0
    for word in range(len(ends)):
        while bounds[first][1] <= word:
            first += 1
        best, most = first, -1.0
        for number in range(first, len(bounds)):
            if bounds[number][0] > word:
                break
            context = _context(ends, bounds[number], word)
            if context > most:
                best, most = number, context
        counted[best].append(word)
    return [Window(*bound, words) for bound, words in zip(bounds, counted, strict=True)]


def _context(ends: Sequence[int], bounds: tuple[int, int], word: int) -> float:
    """Pieces between a word and the nearer end of its window, where the sentence goes on there."""
    start, stop = bounds
    left = ends[word - 1] - ends[start - 1] if start else float("inf")
    right = ends[stop - 1] - ends[word] if stop < len(ends) else float("inf")
    return min(left, right)


def word_pieces(words: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, list[int]]:
    """Token ids of every distinct word, at least one each.

    A word stands after a space, as in running text; one that begins with a Chinese character does
    not. What a tokenizer drops (invisible characters) becomes its unknown token: a word without a
    piece could not be given a label.

    Raises:
        UserError: such a word, and a tokenizer without an unknown token.
    """
    distinct = list(dict.fromkeys(words))
    spaced = [word if _is_chinese(word) else f" {word}" for word in distinct]
    encoded = tokenizer(
        spaced,
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    pieces = {}
    for word, ids in zip(distinct, encoded, strict=True):
        if len(ids) > 1 and _is_chinese(word):
            mark = tokenizer.convert_ids_to_tokens(ids[0])
            ids = ids[1:] if mark in _BOUNDARY_MARKS else ids
        if not ids and tokenizer.unk_token_id is None:
            raise UserError(
                f"the tokenizer has no piece for the token {word!r} and no unknown token; remove "
                "the token or choose another tokenizer."
            )
        pieces[word] = list(ids) or [tokenizer.unk_token_id]
    return pieces


def leaves_out_space_piece(tokenizer: PreTrainedTokenizerBase) -> bool:
    """True where a Chinese character by itself would begin with a piece that stands for a space.

    SentencePiece models do so; `word_pieces` leaves that piece out, the pipelines of transformers
    do not when they are given words.
    """
    ids = tokenizer("中", add_special_tokens=False, verbose=False)["input_ids"]
    return tokenizer.convert_ids_to_tokens(ids)[0] in _BOUNDARY_MARKS


def _is_chinese(word: str) -> bool:
    return "\u3400" <= word[:1] <= "\u9fff" or "\U00020000" <= word[:1] <= "\U0003ffff"


def tokenize_words(
    data: TaggingData, tokenizer: PreTrainedTokenizerBase, limit: int, overlap: int
) -> tuple[TaggingData, Windows]:
    """The windows of every split; the data with what was done added to its summary.

    Windows have the columns input_ids and labels (lists of int; -100 where nothing counts), length,
    sentence (row of the split) and words (numbers of the words that count, in order).

    Args:
        limit: tokens of a window, special tokens included.
        overlap: tokens that neighbouring windows share.

    Raises:
        UserError: the overlap leaves no room.
    """
    room = limit - tokenizer.num_special_tokens_to_add()
    if not 0 <= overlap < room:
        raise UserError(
            f"--overlap {overlap}: expected a number from 0 to {room - 1}; a window has room for "
            f"{room} tokens of text."
        )
    label_ids = {name: index for index, name in enumerate(data.label_names)}
    windows, counts = {}, {}
    for split in ("train", "validation", "test"):
        rows = getattr(data, split)
        windows[split], counts[split] = _split_windows(
            rows["tokens"][:], rows["tags"][:], label_ids, tokenizer, room, overlap
        )
    if several := {name: c["sentences_in_windows"] for name, c in counts.items()
                   if c["sentences_in_windows"]}:  # fmt: skip
        shown = ", ".join(f"{number:,} in {name}" for name, number in several.items())
        notify(f"sentences read in overlapping windows of {limit} tokens: {shown}.")
    summary = data.summary | {
        "tokenization": {
            "max_length": limit,
            "overlap": overlap,
            "space_piece_left_out": leaves_out_space_piece(tokenizer),
            "splits": counts,
        }
    }
    return dataclasses.replace(data, summary=summary), Windows(**windows, summary=summary)


def _split_windows(
    sentences: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    label_ids: dict[str, int],
    tokenizer: PreTrainedTokenizerBase,
    room: int,
    overlap: int,
) -> tuple[datasets.Dataset, dict[str, Any]]:
    pieces = word_pieces((word for sentence in sentences for word in sentence), tokenizer)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("input_ids", "labels", "length", "sentence", "words")
    }
    before, after = special_tokens(tokenizer, sentences[0][0])
    several = 0
    for number, (sentence, names) in enumerate(zip(sentences, tags, strict=True)):
        ids = [pieces[word][:room] for word in sentence]
        windows = word_windows(list(map(len, ids)), room, overlap)
        several += len(windows) > 1
        for window in windows:
            counted = set(window.counted)
            window_ids: list[int] = []
            labels: list[int] = []
            for word in range(window.start, window.stop):
                window_ids += ids[word]
                label = label_ids[names[word]] if word in counted else IGNORED
                labels += [label] + [IGNORED] * (len(ids[word]) - 1)
            rows["input_ids"].append(before + window_ids + after)
            rows["labels"].append([IGNORED] * len(before) + labels + [IGNORED] * len(after))
            rows["length"].append(len(rows["input_ids"][-1]))
            rows["sentence"].append(number)
            rows["words"].append(window.counted)
    unknown = sum(ids.count(tokenizer.unk_token_id) for ids in rows["input_ids"])
    with quiet_datasets():
        found = datasets.Dataset.from_dict(rows)
    return found, {
        "windows": len(found),
        "sentences_in_windows": several,
        "labels": sum(map(len, rows["words"])),
        "tokens": sum(rows["length"]),
        "unknown_tokens": unknown,
    }


def special_tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[list[int], list[int]]:
    """What a tokenizer puts before and after a text, read off what it makes of one."""
    alone = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    whole = list(tokenizer(text)["input_ids"])
    before = next(i for i in range(len(whole)) if whole[i : i + len(alone)] == alone)
    return whole[:before], whole[before + len(alone) :]


class TaggingCollator:
    """Windows as one batch, padded on the tokenizer's own side.

    Gives int64 tensors [batch, length] input_ids, attention_mask, labels (-100 where nothing
    counts), token_type_ids (zeros) where the tokenizer's model takes them, and index [batch].

    Args:
        unknown_share: share of the pieces with a label that are shown as the unknown token, other
            ones in every epoch; for training.
        seed: of the run.

    Raises:
        UserError: the tokenizer has no padding token, or no unknown token where it is needed.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, unknown_share: float = 0.0, seed: int = 0
    ) -> None:
        check_range("unknown_share", unknown_share, 0, 1)
        if tokenizer.pad_token_id is None:
            raise UserError("the tokenizer has no padding token; set one (GPT-2: its end of text).")
        if unknown_share and tokenizer.unk_token_id is None:
            raise UserError(f"--unknown_share {unknown_share}: the tokenizer has no unknown token.")
        self.tokenizer = tokenizer
        self.unknown_share = unknown_share
        self.seed = seed
        self.with_types = "token_type_ids" in tokenizer.model_input_names

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One padded batch."""
        features = {"input_ids": [row["input_ids"] for row in examples]}
        if self.with_types:
            features["token_type_ids"] = [[0] * len(ids) for ids in features["input_ids"]]
        padded = self.tokenizer.pad(
            features, padding=True, return_attention_mask=True, return_tensors="pt"
        )
        labels = torch.full_like(padded["input_ids"], IGNORED)
        # The real positions, whichever side is padded.
        labels[padded["attention_mask"].bool()] = torch.tensor(
            [label for row in examples for label in row["labels"]]
        )
        batch = {**padded, "labels": labels}
        batch["index"] = torch.tensor([row["index"] for row in examples])
        if self.unknown_share:
            self._hide(batch, examples[0].get("epoch", 0))
        return batch

    def _hide(self, batch: dict[str, torch.Tensor], epoch: int) -> None:
        rows = batch["index"].numpy()
        draws = uniforms(self.seed, epoch, rows, _HIDE, batch["labels"].shape[1])
        hidden = torch.from_numpy(draws < self.unknown_share) & (batch["labels"] != IGNORED)
        batch["input_ids"][hidden] = self.tokenizer.unk_token_id

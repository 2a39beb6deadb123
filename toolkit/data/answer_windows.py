"""Questions and contexts to token ids: long contexts in windows that overlap, answers as positions.

A window is [CLS] question [SEP] part of the context [SEP], or what the tokenizer has for it. An
answer that a window does not hold whole is no answer there: both its positions are 0, the place of
[CLS].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import datasets
import torch

from toolkit.console import notify
from toolkit.data.pair_layout import PairLayout, pair_layout
from toolkit.data.quiet import quiet_datasets
from toolkit.data.windows import Windows
from toolkit.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from toolkit.data.question_answering import QuestionData

NO_ANSWER = 0
"""Position of the first special token, which stands for "not in this text"."""


class Tokens(NamedTuple):
    """Token ids of a text, and the characters `begins` to `ends` (exclusive) that each is."""

    ids: list[int]
    begins: list[int]
    ends: list[int]


def context_windows(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """First and last (exclusive) token of every window over a context; together they cover it.

    Args:
        length: tokens of the context.
        room: tokens of a window.
        overlap: tokens that neighbouring windows share; less than `room`.
    """
    starts = range(0, max(length - overlap, 1), room - overlap)
    return [(start, min(start + room, length)) for start in starts]


def answer_tokens(tokens: Tokens, start: int, end: int) -> tuple[int, int] | None:
    """First and last token of the characters `start` to `end`; None where no token shows them."""
    inside = [
        place
        for place, (begin, stop) in enumerate(zip(tokens.begins, tokens.ends, strict=True))
        if begin < stop and begin < end and stop > start
    ]
    return (inside[0], inside[-1]) if inside else None


def tokenize_questions(
    data: QuestionData,
    tokenizer: PreTrainedTokenizerBase,
    limit: int,
    *,
    overlap: int,
    max_question: int = 64,
) -> tuple[QuestionData, Windows]:
    """The windows of every split; the data with what was done added to its summary.

    Windows have the columns input_ids, length, question (row of the split), context_start (position
    of the first token of the context), context_length (its tokens in this window), start and end
    (positions of the answer, 0 where it is not here whole). Those of validation and test also have
    begins and ends: the characters of the context that each of its tokens is.

    Args:
        limit: tokens of a window, question and special tokens included.
        overlap: tokens of the context that neighbouring windows share.
        max_question: longer questions are cut to this many tokens.

    Raises:
        UserError: a tokenizer that does not tell the characters of its tokens or puts nothing
            before the question, or no room for contexts.
    """
    if not tokenizer.is_fast:
        raise UserError(
            f"{type(tokenizer).__name__} does not tell which characters its tokens are; question "
            "answering needs a tokenizer with a tokenizer.json (a fast one)."
        )
    layout = pair_layout(tokenizer, data.train[0]["question"])
    if not layout.before:
        raise UserError(
            "the tokenizer puts no token before a question that could stand for 'no answer' "
            "(BERT: [CLS]); choose a model of BERT's kind."
        )
    room = limit - layout.special_tokens - max_question
    if not 0 <= overlap < room:
        raise UserError(
            f"--overlap {overlap}: with {limit} tokens in all, {max_question} for the question and "
            f"{layout.special_tokens} special ones there is room for {max(room, 0)} of the "
            "context; the overlap must be smaller. Raise --max_length or lower --overlap."
        )
    windows, counts = {}, {}
    for split in ("train", "validation", "test"):
        rows = getattr(data, split)
        windows[split], counts[split] = question_windows(
            rows, tokenizer, layout, limit, overlap, max_question, keep_offsets=split != "train"
        )
    if cut := sum(count["questions_cut"] for count in counts.values()):
        notify(f"{cut} questions cut to {max_question} tokens.")
    if several := sum(count["questions_in_windows"] for count in counts.values()):
        notify(f"contexts read in overlapping windows of {limit} tokens: those of {several:,} "
               "questions.")  # fmt: skip
    summary = data.summary | {
        "tokenization": {"max_length": limit, "overlap": overlap, "splits": counts}
    }
    return dataclasses.replace(data, summary=summary), Windows(**windows, summary=summary)


def question_windows(
    rows: Any,
    tokenizer: PreTrainedTokenizerBase,
    layout: PairLayout,
    limit: int,
    overlap: int,
    max_question: int,
    keep_offsets: bool,
) -> tuple[datasets.Dataset, dict[str, Any]]:
    """The windows of one split as `tokenize_questions` describes them, and counts of what was done.

    Args:
        rows: with the columns context, question, start and end (-1 where there is no answer).
        layout: of the tokenizer's pairs.
        keep_offsets: add begins and ends.
    """
    contexts = _encode(rows["context"][:], tokenizer)
    questions = _encode(rows["question"][:], tokenizer)
    found: dict[str, list[Any]] = {
        name: [] for name in ("input_ids", "length", "question", "context_start", "context_length",
                              "start", "end", *(("begins", "ends") if keep_offsets else ()))
    }  # fmt: skip
    several = without_answer = 0
    spans = zip(rows["start"][:], rows["end"][:], strict=True)
    for number, (start, end) in enumerate(spans):
        context = contexts[rows[number]["context"]]
        question = questions[rows[number]["question"]].ids[:max_question]
        answer = answer_tokens(context, start, end) if start >= 0 else None
        room = limit - layout.special_tokens - len(question)
        windows = context_windows(len(context.ids), room, overlap)
        several += len(windows) > 1
        for first, last in windows:
            ids = layout.join(question, context.ids[first:last])
            offset = layout.starts(question)[1] - first
            here = answer is not None and first <= answer[0] and answer[1] < last
            without_answer += not here
            found["input_ids"].append(ids)
            found["length"].append(len(ids))
            found["question"].append(number)
            found["context_start"].append(offset + first)
            found["context_length"].append(last - first)
            found["start"].append(answer[0] + offset if here and answer else NO_ANSWER)
            found["end"].append(answer[1] + offset if here and answer else NO_ANSWER)
            if keep_offsets:
                found["begins"].append(context.begins[first:last])
                found["ends"].append(context.ends[first:last])
    with quiet_datasets():
        made = datasets.Dataset.from_dict(found)
    return made, {
        "windows": len(made),
        "windows_without_answer": without_answer,
        "questions_in_windows": several,
        "questions_cut": sum(len(questions[q].ids) > max_question for q in rows["question"]),
        "tokens": sum(found["length"]),
        "unknown_tokens": sum(ids.count(tokenizer.unk_token_id) for ids in found["input_ids"]),
    }


def _encode(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, Tokens]:
    """Every distinct text, without special tokens."""
    distinct = list(dict.fromkeys(texts))
    encoded = tokenizer(
        distinct,
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        return_offsets_mapping=True,
        verbose=False,  # longer than the model's positions: read in windows
    )
    return {
        text: Tokens(list(ids), [begin for begin, _ in offsets], [end for _, end in offsets])
        for text, ids, offsets in zip(
            distinct, encoded["input_ids"], encoded["offset_mapping"], strict=True
        )
    }


class AnswerCollator:
    """Windows as one batch, padded on the right.

    Gives int64 tensors [batch, length] input_ids, attention_mask, token_type_ids (1 from the
    context on) where the tokenizer's model takes them, and context_mask (1 at the tokens of the
    context); labels [batch, 2], the positions of the answer; context_start and index [batch].

    Raises:
        UserError: the tokenizer has no padding token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if tokenizer.pad_token_id is None:
            raise UserError("the tokenizer has no padding token; choose a model of BERT's kind.")
        self.pad_token_id = tokenizer.pad_token_id
        self.with_types = "token_type_ids" in tokenizer.model_input_names

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One padded batch."""
        shape = (len(examples), max(len(row["input_ids"]) for row in examples))
        input_ids = torch.full(shape, self.pad_token_id)
        attention_mask = torch.zeros(shape, dtype=torch.long)
        token_type_ids, context_mask = attention_mask.clone(), attention_mask.clone()
        for number, row in enumerate(examples):
            length, start = len(row["input_ids"]), row["context_start"]
            input_ids[number, :length] = torch.tensor(row["input_ids"])
            attention_mask[number, :length] = 1
            token_type_ids[number, start:length] = 1
            context_mask[number, start : start + row["context_length"]] = 1
        batch = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.with_types:
            batch["token_type_ids"] = token_type_ids
        return batch | {
            "context_mask": context_mask,
            "context_start": torch.tensor([row["context_start"] for row in examples]),
            "labels": torch.tensor([[row["start"], row["end"]] for row in examples]),
            "index": torch.tensor([row["index"] for row in examples]),
        }

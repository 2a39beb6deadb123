"""Documents as token ids: packed into blocks to train on, and cut into windows to be measured by.

A document ends with the end-of-text token, which is predicted like any other: a model that never
sees a text end does not stop. Documents that share a block do not see each other: positions start
again with each of them, and models that are given `position_ids` without an attention mask and
without a cache keep them apart (`transformers.masking_utils.create_causal_mask`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import torch

from toolkit.data.quiet import quiet_datasets
from toolkit.errors import UserError
from toolkit.ignored_label import IGNORED


@dataclass(frozen=True)
class Piece:
    """Tokens `start` to `stop` of a document."""

    document: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def tokenize_documents(texts: Sequence[str], tokenizer: Any) -> list[list[int]]:
    """Token ids of every document, the end of text behind each.

    A text that spells out a special token does not become one.

    Raises:
        UserError: the tokenizer has no end of text.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise UserError(
            "the tokenizer has no end-of-text token (eos_token): a model trained with it could not "
            "stop. Use the tokenizer of a model that generates text, such as GPT-2."
        )
    encoded = tokenizer(
        list(texts),
        add_special_tokens=False,
        split_special_tokens=True,
        return_attention_mask=False,
        verbose=False,  # longer than the model's positions: cut into blocks later
    )
    return [[*ids, end] for ids in encoded["input_ids"]]


def cut(length: int, block_size: int, document: int = 0) -> list[Piece]:
    """Pieces of at most `block_size` tokens.

    A piece begins with the last token of the one before, which it sees but does not predict: so
    every token of a document but its first is predicted exactly once.
    """
    step = max(block_size - 1, 1)
    return [
        Piece(document, start, min(start + block_size, length))
        for start in range(0, max(length - 1, 1), step)
    ]


def pack(pieces: Sequence[Piece], block_size: int) -> list[list[Piece]]:
    """Put pieces into as few blocks as best-fit decreasing finds, cutting none.

    The longest piece first, each into the fullest block that still has room for it (Ding et al.
    2024, arXiv:2404.10830). The order within a block is that of the documents.
    """
    blocks: list[list[Piece]] = []
    room: list[tuple[int, int]] = []  # free tokens of every block, ascending, and its number
    for piece in sorted(pieces, key=lambda piece: -len(piece)):
        place = bisect_left(room, (len(piece), -1))
        if place < len(room):
            free, block = room.pop(place)
        else:
            free, block = block_size, len(blocks)
            blocks.append([])
        blocks[block].append(piece)
        insort(room, (free - len(piece), block))
    return [sorted(block, key=lambda piece: (piece.document, piece.start)) for block in blocks]


def pack_documents(
    documents: Sequence[Sequence[int]], block_size: int
) -> tuple[datasets.Dataset, dict[str, Any]]:
    """Blocks to train on, and what was done to the documents, for data.json.

    Returns:
        Rows with `input_ids` (list of int), `lengths` (tokens of every piece, in order) and
        `length` (their sum); documents of one token, which predict nothing, are left out.

    Raises:
        UserError: a block of less than two tokens; no document has two.
    """
    if block_size < 2:
        raise UserError(f"--block_size {block_size}: expected at least 2 tokens")
    pieces = [
        piece
        for number, ids in enumerate(documents)
        if len(ids) > 1
        for piece in cut(len(ids), block_size, number)
    ]
    if not pieces:
        raise UserError("no training document has two tokens: there is nothing to predict.")
    blocks = pack(pieces, block_size)
    input_ids = [[i for p in block for i in documents[p.document][p.start : p.stop]]
                 for block in blocks]  # fmt: skip
    cut_up = {piece.document for piece in pieces if piece.start > 0}
    summary = {
        "block_size": block_size,
        "blocks": len(blocks),
        "documents": len({piece.document for piece in pieces}),
        "tokens": sum(map(len, input_ids)),
        "predicted_tokens": sum(len(piece) - 1 for piece in pieces),
        "documents_cut": len(cut_up),
        "pieces_of_cut_documents": sum(piece.document in cut_up for piece in pieces),
        "filled": sum(map(len, input_ids)) / (len(blocks) * block_size),
    }
    with quiet_datasets():
        rows = datasets.Dataset.from_dict(
            {
                "input_ids": input_ids,
                "lengths": [[len(piece) for piece in block] for block in blocks],
                "length": list(map(len, input_ids)),
            }
        )
    return rows, summary


def evaluation_windows(
    documents: Sequence[Sequence[int]], window: int, stride: int
) -> datasets.Dataset:
    """Windows that slide over every document: each token but the first is a target exactly once.

    The first window of a document predicts all its tokens; every further one predicts the next
    `stride` tokens and reads as many before them as still fit. A stride of 1 gives every token all
    the context the model can take, at the price of a forward pass each.

    Args:
        window: tokens a model reads at once.
        stride: tokens by which the window moves on; at most `window - 1`, so that the first of the
            new tokens has one before it.

    Returns:
        Rows with `input_ids`, `first_target` (position in the window), `document` and `length`.

    Raises:
        UserError: for a stride or a window that cannot be.
    """
    if window < 2 or not 0 < stride < window:
        raise UserError(
            f"--stride {stride}: expected a number from 1 to {window - 1}, one less than the "
            f"{window} tokens of a window"
        )
    rows: dict[str, list[Any]] = {"input_ids": [], "first_target": [], "document": [], "length": []}
    for number, ids in enumerate(documents):
        scored = 1  # the first token has nothing before it that could predict it
        while scored < len(ids):
            stop = min(window if scored == 1 else scored + stride, len(ids))
            start = max(0, stop - window)
            rows["input_ids"].append(list(ids[start:stop]))
            rows["first_target"].append(scored - start)
            rows["document"].append(number)
            rows["length"].append(stop - start)
            scored = stop
    if not rows["document"]:
        raise UserError("no held-out document has two tokens: there is nothing to predict.")
    with quiet_datasets():
        return datasets.Dataset.from_dict(rows)


class PackedCollator:
    """Rows of `pack_documents` or `evaluation_windows` as one batch.

    Gives int64 tensors [batch, length]: input_ids, position_ids that start again with every
    document, and labels, which are input_ids where a token is predicted and -100 elsewhere (the
    first token of a document, context that was scored before, padding). They are not shifted.
    Padding follows the tokens; every padded place counts as a document of its own.

    Args:
        pad_token_id: any id of the vocabulary; what stands there is neither seen nor predicted.
    """

    def __init__(self, pad_token_id: int) -> None:
        self.pad_token_id = pad_token_id

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One padded batch."""
        shape = (len(examples), max(len(row["input_ids"]) for row in examples))
        input_ids = torch.full(shape, self.pad_token_id)
        position_ids = torch.zeros(shape, dtype=torch.long)
        labels = torch.full(shape, IGNORED)
        for number, row in enumerate(examples):
            ids = torch.tensor(row["input_ids"])
            lengths = row.get("lengths", [len(ids)])
            positions = torch.cat([torch.arange(length) for length in lengths])
            predicted = positions >= row.get("first_target", 1)
            input_ids[number, : len(ids)] = ids
            position_ids[number, : len(ids)] = positions
            labels[number, : len(ids)] = torch.where(predicted, ids, IGNORED)
        return {"input_ids": input_ids, "position_ids": position_ids, "labels": labels}

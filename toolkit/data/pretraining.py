"""BERT's two pretraining tasks (Devlin et al. 2019, section 3.1 and appendix A): the data side.

Every pair and every mask is a function of seed, epoch and row alone: the same for any batch size,
number of processes or data loader workers, and new in every epoch (RoBERTa's dynamic masking).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import torch

from toolkit.console import notify
from toolkit.data.pair_layout import pair_layout
from toolkit.data.sentences import split_clauses, split_sentences
from toolkit.errors import UserError
from toolkit.ignored_label import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MASK_SHARE = 0.15
IS_NEXT, NOT_NEXT = 0, 1  # HuggingFace's next_sentence_label


def tokenize_documents(
    texts: Iterable[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Documents of at least two sentences, as token ids.

    A text of one sentence is taken apart at its commas: BERT's "sentence" is any span of text.

    Returns:
        A data set with the columns sentences (list of lists of ids, without special tokens), length
        (tokens of a pair made of the whole document, at most max_length; an estimate, as half of
        the pairs end in another document's rest) and text (its place among the texts).

    Raises:
        UserError: fewer than two such documents: nothing to draw a wrong next sentence from.
    """
    documents = [_spans(text) for text in texts]
    flat = [span for spans in documents for span in spans]
    ids = iter(
        tokenizer(flat, add_special_tokens=False, verbose=False)["input_ids"] if flat else []
    )
    encoded = [[tokens for _ in spans if (tokens := next(ids))] for spans in documents]
    places = [place for place, spans in enumerate(encoded) if len(spans) > 1]
    kept = [encoded[place] for place in places]
    if len(kept) < 2:
        raise UserError(
            f"next sentence prediction needs texts of two or more sentences; {len(kept)} of "
            f"{len(documents)} texts are such."
        )
    if len(kept) < len(documents):
        notify(f"{len(documents) - len(kept):,} texts of one sentence left out: no next sentence.")
    special = tokenizer.num_special_tokens_to_add(pair=True)
    lengths = [min(sum(map(len, spans)) + special, max_length) for spans in kept]
    features = datasets.Features(
        {
            "sentences": datasets.List(datasets.List(datasets.Value("int32"))),
            "length": datasets.Value("int32"),
            "text": datasets.Value("int32"),
        }
    )
    columns = {"sentences": kept, "length": lengths, "text": places}
    return datasets.Dataset.from_dict(columns, features=features)


def _spans(text: str) -> list[str]:
    sentences = split_sentences(text)
    return sentences if len(sentences) > 1 else split_clauses(text)


class PretrainingCollator:
    """Rows of `tokenize_documents` to a batch of masked sentence pairs.

    Takes rows {sentences, index, epoch}; gives int64 tensors input_ids, attention_mask,
    token_type_ids and labels [batch, length] (-100 where nothing is to be predicted),
    next_sentence_label and index [batch].

    Args:
        tokenizer: gives the layout of a pair, [CLS] A [SEP] B [SEP] for BERT's.
        documents: from `tokenize_documents`; wrong next sentences are drawn from them.
        max_length: tokens of a pair, special tokens included.
        seed: of pairs and masks, together with the epoch and the row.
        mask_share: share of the tokens to predict, above 0 and below 1.

    Raises:
        UserError: a tokenizer without mask or padding, no room for a pair, or no share.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        documents: datasets.Dataset,
        max_length: int,
        seed: int = 0,
        mask_share: float = MASK_SHARE,
    ) -> None:
        _check_settings(tokenizer, max_length, mask_share)
        self.tokenizer = tokenizer
        self.layout = pair_layout(tokenizer, tokenizer.decode(documents[0]["sentences"][0]))
        self.documents = documents
        self.max_length = max_length
        self.seed = seed
        self.mask_share = mask_share
        special = set(tokenizer.all_special_ids)
        ordinary = [token for token in range(len(tokenizer)) if token not in special]
        self.ordinary_tokens = np.asarray(ordinary)

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One padded batch."""
        rows = [self._example(row) for row in examples]
        padded = self.tokenizer.pad(
            {name: [row[name] for row in rows] for name in ("input_ids", "token_type_ids")},
            padding=True,
            return_attention_mask=True,
            return_tensors="pt",
        )
        labels = torch.full_like(padded["input_ids"], IGNORED)
        # The real positions, whichever side the tokenizer pads.
        labels[padded["attention_mask"].bool()] = torch.tensor(
            [label for row in rows for label in row["labels"]]
        )
        return {
            **padded,
            "labels": labels,
            "next_sentence_label": torch.tensor([row["next_sentence_label"] for row in rows]),
            "index": torch.tensor([row["index"] for row in examples]),
        }

    def _example(self, row: dict[str, Any]) -> dict[str, Any]:
        rng = np.random.default_rng([self.seed, row.get("epoch", 0), row["index"]])
        first, second, label = self._pair(row, rng)
        room = self.max_length - self.layout.special_tokens
        first, second = truncate_pair(first, second, room, rng)
        ids = self.layout.join(first, second)
        place, next_place = self.layout.starts(first)
        maskable = [
            *range(place, place + len(first)),
            *range(next_place, next_place + len(second)),
        ]
        masked, labels = self._mask(np.asarray(ids), np.asarray(maskable), rng)
        return {
            "input_ids": masked.tolist(),
            "token_type_ids": [0] * next_place + [1] * (len(ids) - next_place),
            "labels": labels.tolist(),
            "next_sentence_label": label,
        }

    def _pair(
        self, row: dict[str, Any], rng: np.random.Generator
    ) -> tuple[list[int], list[int], int]:
        """The beginning of a document and, half of the time each, its own or another one's rest.

        A wrong rest begins inside its document like a right one: the place gives nothing away.
        """
        sentences = row["sentences"]
        cut = int(rng.integers(1, len(sentences)))
        first = _join(sentences[:cut])
        if rng.random() < 0.5:
            return first, _join(sentences[cut:]), IS_NEXT
        # Any row but this one: skip over it in the numbering.
        other = int(rng.integers(len(self.documents) - 1))
        other += other >= row["index"]
        wrong = self.documents[other]["sentences"]
        return first, _join(wrong[int(rng.integers(1, len(wrong))) :]), NOT_NEXT

    def _mask(
        self, ids: np.ndarray, maskable: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """`mask_share` to predict: 80 % become [MASK], 10 % a random token, 10 % stay."""
        count = max(1, round(self.mask_share * len(maskable)))
        chosen = rng.choice(maskable, size=count, replace=False)
        labels = np.full(len(ids), IGNORED)
        labels[chosen] = ids[chosen]
        masked = ids.copy()
        fate = rng.random(count)
        masked[chosen[fate < 0.8]] = self.tokenizer.mask_token_id
        random = chosen[(fate >= 0.8) & (fate < 0.9)]
        masked[random] = rng.choice(self.ordinary_tokens, size=len(random))
        return masked, labels


def _check_settings(tokenizer: PreTrainedTokenizerBase, max_length: int, mask_share: float) -> None:
    for token in ("mask_token", "pad_token"):
        if token not in tokenizer.special_tokens_map:
            raise UserError(
                f"{tokenizer.name_or_path or 'the tokenizer'} has no {token}, which BERT's "
                "pretraining needs. Choose a tokenizer that has one (--tokenizer)."
            )
    special = tokenizer.num_special_tokens_to_add(pair=True)
    if max_length < special + 2:
        raise UserError(
            f"a length of {max_length} tokens leaves no room for a pair of sentences: {special} "
            f"are special tokens and each sentence needs one. Raise --max_length."
        )
    if not 0 < mask_share < 1:
        raise UserError(
            f"--mask_share {mask_share}: expected a share above 0 and below 1, such as {MASK_SHARE}"
        )


def truncate_pair(
    first: list[int], second: list[int], room: int, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Drop tokens from the longer of the two, at either end, until both fit (BERT's own rule)."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if rng.random() < 0.5 else -1)
    return first, second


def _join(sentences: Sequence[Sequence[int]]) -> list[int]:
    return [token for sentence in sentences for token in sentence]

"""Pairs of texts to token ids and to padded batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import datasets
import torch

from toolkit.console import notify
from toolkit.data.tokenization import UNKNOWN_SHARE_TO_WARN
from toolkit.data.translation import TranslationData
from toolkit.ignored_label import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SPLITS = ("train", "validation", "test")


def tokenize_pairs(
    data: TranslationData, tokenizer: PreTrainedTokenizerBase, limit: int, prefix: str = ""
) -> TranslationData:
    """Add the columns input_ids, labels (lists of int) and their lengths to every split.

    source_length and target_length count the tokens of a side, length both together. Sides are cut
    to `limit` tokens, special tokens included; what was cut, and unknown tokens above 1 %, are said
    and stand in the summary under "tokenization". References stay whole: scores use the texts.

    Args:
        prefix: put before every source, such as T5's "translate English to German: ".
    """
    tokenized, counts = {}, {}
    for split in SPLITS:
        rows = getattr(data, split)
        sources = [prefix + text for text in rows["source"][:]]
        source_ids, source_counts = _encode(tokenizer, limit, text=sources)
        target_ids, target_counts = _encode(tokenizer, limit, text_target=rows["target"][:])
        counts[split] = {"source": source_counts, "target": target_counts}
        tokenized[split] = _with_columns(rows, source_ids, target_ids)
    _report(counts, limit)
    summary = data.summary | {
        "tokenization": {"max_length": limit, "prefix": prefix, "splits": counts}
    }
    return dataclasses.replace(data, **tokenized, summary=summary)


def _encode(
    tokenizer: PreTrainedTokenizerBase, limit: int, **texts: list[str]
) -> tuple[list[list[int]], dict[str, Any]]:
    """Ids of `text` or `text_target`, and what was cut or unknown."""
    encode = {"return_attention_mask": False, "verbose": False}
    full = tokenizer(**texts, **encode)["input_ids"]
    ids = tokenizer(**texts, **encode, truncation=True, max_length=limit)["input_ids"]
    tokens = sum(map(len, ids))
    unknown = tokenizer.unk_token_id
    unknown_tokens = 0 if unknown is None else sum(row.count(unknown) for row in ids)
    return list(ids), {
        "rows_cut": sum(len(a) > len(b) for a, b in zip(full, ids, strict=True)),
        "tokens": tokens,
        "longest_text": max(map(len, full)),
        "unknown_share": unknown_tokens / tokens,
    }


def _with_columns(
    rows: datasets.Dataset, source_ids: list[list[int]], target_ids: list[list[int]]
) -> datasets.Dataset:
    lengths = [list(map(len, ids)) for ids in (source_ids, target_ids)]
    columns = {
        **{name: rows[name][:] for name in rows.column_names},
        "input_ids": source_ids,
        "labels": target_ids,
        "source_length": lengths[0],
        "target_length": lengths[1],
        "length": [sum(two) for two in zip(*lengths, strict=True)],
    }
    return datasets.Dataset.from_dict(columns)


def _report(counts: dict[str, dict[str, Any]], limit: int) -> None:
    sides = [(f"{split} {side}", c) for split, two in counts.items() for side, c in two.items()]
    if cut := [f"{c['rows_cut']:,} {where} texts" for where, c in sides if c["rows_cut"]]:
        notify(f"cut to {limit} tokens: {', '.join(cut)}.")
    for where, count in sides:
        if count["unknown_share"] > UNKNOWN_SHARE_TO_WARN:
            notify(
                f"warning: {count['unknown_share']:.1%} of the {where} tokens are unknown to the "
                "tokenizer; does it belong to these languages and the model?"
            )


class TranslationCollator:
    """Pad pairs to the longest source and the longest target of a batch.

    Takes rows {input_ids, labels, index}; gives int64 tensors input_ids, attention_mask [batch,
    source length], labels [batch, target length] (-100 where padded) and index [batch].
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One padded batch."""
        batch = dict(
            self.tokenizer.pad(
                {"input_ids": [row["input_ids"] for row in examples]},
                padding=True,
                return_attention_mask=True,
                return_tensors="pt",
            )
        )
        longest = max(len(row["labels"]) for row in examples)
        batch["labels"] = torch.tensor(
            [row["labels"] + [IGNORED] * (longest - len(row["labels"])) for row in examples]
        )
        if "index" in examples[0]:
            batch["index"] = torch.tensor([row["index"] for row in examples])
        return batch

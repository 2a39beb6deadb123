"""Texts to token ids, with lengths, truncation and unknown tokens counted, the limit known."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import datasets

from toolkit.console import notify
from toolkit.data.token_store import with_tokens, worth_keeping
from toolkit.errors import UserError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from toolkit.data.text_classification import TextClassificationData

# transformers writes "no limit known" as 1e30.
_NO_LIMIT = 1_000_000
# Position ids of these begin at pad_token_id + 1, so that many positions are never used.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "longformer", "mpnet"}
UNKNOWN_SHARE_TO_WARN = 0.01


def tokenize(
    data: TextClassificationData, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> TextClassificationData:
    """Add the columns input_ids (list of int) and length (int) to every split.

    Texts are cut to min(max_length, tokenizer.model_max_length) tokens, special tokens included.
    Pairs become one sequence, as the tokenizer joins them; of a long pair the longer text is cut
    first. They get token_type_ids (list of int) besides, where the tokenizer's model takes them.
    The summary gains "tokenization": limit, rows cut, tokens lost, longest text and share of
    unknown tokens per split; what was cut and unknown tokens above 1 % are also said to the user.
    """
    pairs = "pair" in data.train.column_names
    limit = length_limit(max_length, tokenizer, pairs=pairs)
    if pairs:
        _warn_of_joined_pairs(tokenizer)
    encode = partial(encode_batch, tokenizer=tokenizer, limit=limit)
    splits = {name: getattr(data, name) for name in ("train", "validation", "test")}
    keep = worth_keeping(splits.values())
    counts: dict[str, dict[str, Any]] = {}
    tokenized = {}
    for name in splits:
        split = with_tokens(splits[name], encode, tokenizer, limit, keep=keep)
        counts[name] = _count(split, tokenizer)
        tokenized[name] = split.remove_columns(["full_length"])
    _report(counts, limit)
    summary = data.summary | {"tokenization": {"max_length": limit, "splits": counts}}
    return dataclasses.replace(data, **tokenized, summary=summary)


def length_limit(
    max_length: int,
    tokenizer: PreTrainedTokenizerBase,
    config: PretrainedConfig | None = None,
    *,
    pairs: bool = False,
    option: str = "--max_length",
) -> int:
    """The most tokens a text may have: the least of what is asked, the tokenizer's and the model's.

    Args:
        pairs: two texts share them.
        option: what a user raises, in the message.

    Raises:
        UserError: nothing is left for the text (for either text) beside the special tokens.
    """
    limits = [max_length]
    if tokenizer.model_max_length < _NO_LIMIT:
        limits.append(int(tokenizer.model_max_length))
    positions = usable_positions(config) if config is not None else None
    if positions is not None:
        limits.append(positions)
    special = tokenizer.num_special_tokens_to_add(pair=pairs)
    if min(limits) < special + 1 + pairs:
        raise UserError(
            f"a length of {min(limits)} tokens leaves no room for "
            f"{'two texts' if pairs else 'text'}: {special} of them are "
            f"special tokens. Raise {option}."
        )
    return min(limits)


def input_limit(
    max_length: int, tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig
) -> int:
    """`length_limit` of a tokenizer and a model, once it is certain that they belong together.

    Raises:
        UserError: as `length_limit` and `check_tokenizer`.
    """
    check_tokenizer(tokenizer, config.vocab_size)
    return length_limit(max_length, tokenizer, config)


def usable_positions(config: PretrainedConfig) -> int | None:
    """Longest input a model takes: RoBERTa's 514 positions are 512 usable ones. None: no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return None
    if config.model_type in _OFFSET_POSITIONS:
        return int(positions) - (config.pad_token_id or 0) - 1
    return int(positions)


def check_tokenizer(tokenizer: PreTrainedTokenizerBase, vocab_size: int) -> None:
    """Refuse a tokenizer that cannot belong to a model with `vocab_size` embeddings.

    Raises:
        UserError: it has ids beyond the embeddings, or knows less than half of them (a tokenizer
            without its vocabulary file knows five tokens: every Chinese character is [UNK]).
    """
    size = len(tokenizer)
    if size > vocab_size:
        raise UserError(
            f"the tokenizer has {size:,} tokens but the model only {vocab_size:,} embeddings: "
            "they do not belong together. Use the tokenizer from the model's own folder."
        )
    if size < vocab_size / 2:
        raise UserError(
            f"the tokenizer knows only {size:,} tokens while the model has {vocab_size:,} "
            "embeddings: its vocabulary file is missing or belongs to another model. Put "
            "tokenizer.json (or vocab.txt) into the model folder."
        )


def encode_batch(
    batch: dict[str, list[Any]], tokenizer: PreTrainedTokenizerBase, limit: int
) -> dict[str, list[Any]]:
    """Token ids of texts or pairs, cut to `limit`, with the lengths after and before cutting."""
    columns = [batch[name] for name in ("text", "pair") if name in batch]
    encoded = _encode(tokenizer, columns, truncation=False)
    full_length = [len(row) for row in encoded["input_ids"]]
    long = [index for index, length in enumerate(full_length) if length > limit]
    if long:  # the tokenizer cuts, because it knows where its special tokens belong
        cut = _encode(
            tokenizer,
            [[column[index] for index in long] for column in columns],
            truncation="longest_first",
            max_length=limit,
        )
        for name, rows in cut.items():
            for index, row in zip(long, rows, strict=True):
                encoded[name][index] = row
    length = [len(row) for row in encoded["input_ids"]]
    return {**encoded, "length": length, "full_length": full_length}


def _encode(
    tokenizer: PreTrainedTokenizerBase, columns: list[list[str]], **options: Any
) -> dict[str, list[list[int]]]:
    """input_ids; for pairs token_type_ids too, where the tokenizer's model takes them."""
    with_types = len(columns) > 1 and "token_type_ids" in tokenizer.model_input_names
    encoded = tokenizer(
        *columns,
        return_attention_mask=False,
        return_token_type_ids=with_types,
        verbose=False,  # the lengths are reported by us
        **options,
    )
    names = ("input_ids", "token_type_ids") if with_types else ("input_ids",)
    return {name: list(encoded[name]) for name in names}


def _warn_of_joined_pairs(tokenizer: PreTrainedTokenizerBase) -> None:
    """GPT-2's tokenizer puts nothing between two texts."""
    alone, joined = (tokenizer.num_special_tokens_to_add(pair=pair) for pair in (False, True))
    if alone == joined:
        notify(
            "warning: this tokenizer puts nothing between the two texts of a pair, so the model "
            "cannot see where the second begins, unless your texts themselves show it."
        )


def _count(split: datasets.Dataset, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    import pyarrow.compute as pc

    full, kept = split.data.column("full_length"), split.data.column("length")
    total = pc.sum(kept).as_py() or 0
    unknown = 0
    if tokenizer.unk_token_id is not None:
        flat = pc.list_flatten(split.data.column("input_ids"))
        unknown = pc.sum(pc.equal(flat, tokenizer.unk_token_id)).as_py() or 0
    return {
        "rows_cut": pc.sum(pc.greater(full, kept)).as_py() or 0,
        "tokens": total,
        "tokens_lost": (pc.sum(full).as_py() or 0) - total,
        "longest_text": pc.max(full).as_py() or 0,
        "unknown_tokens": unknown,
        "unknown_share": unknown / total if total else 0.0,
    }


def _report(counts: dict[str, dict[str, Any]], limit: int) -> None:
    cut = {name: count["rows_cut"] for name, count in counts.items() if count["rows_cut"]}
    if cut:
        longest = max(count["longest_text"] for count in counts.values())
        rows = ", ".join(f"{number:,} in {name}" for name, number in cut.items())
        notify(f"texts cut to {limit} tokens: {rows} (the longest has {longest:,} tokens).")
    for name, count in counts.items():
        if count["unknown_share"] > UNKNOWN_SHARE_TO_WARN:
            notify(
                f"warning: {count['unknown_share']:.1%} of the tokens in {name} are unknown to the "
                "tokenizer; does it belong to this language and model?"
            )

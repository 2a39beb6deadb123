"""BERT equals HuggingFace's over every kind of mask and input; over configs: the parity grid."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from scratch_models.parity import ParityRow, compare_forward, compare_gradients


def assert_equal(rows: list[ParityRow]) -> None:
    """Every row within its tolerance, and what `forward` gives within 1e-5 however large it is."""
    assert rows
    forward = ("hidden states", "attention maps", "outputs")
    limits = [min(row.tolerance, 1e-5) if row.stage in forward else row.tolerance for row in rows]
    missed = [row for row, most in zip(rows, limits, strict=True) if not row.difference <= most]
    assert not missed, missed


def right_padding(length: int) -> Tensor:
    mask = torch.ones(3, length, dtype=torch.long)
    mask[1, length // 2 :] = 0
    mask[2, 1:] = 0
    return mask


def with_an_empty_row(length: int) -> Tensor:
    mask = right_padding(length)
    mask[2] = 0
    return mask


MASKS: dict[str, Any] = {
    "none": lambda length: None,
    "right": right_padding,
    "left": lambda length: right_padding(length).flip(1),
    "in the middle": lambda length: right_padding(length).roll(length // 3, dims=1),
    "bool": lambda length: right_padding(length).bool(),
    "float": lambda length: right_padding(length).float(),
    "half": lambda length: right_padding(length).half(),
    "int32": lambda length: right_padding(length).int(),
    "uint8": lambda length: right_padding(length).byte(),
    "empty row": with_an_empty_row,
    "all ones": lambda length: torch.ones(3, length, dtype=torch.long),
}


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
@pytest.mark.parametrize("mask", MASKS)
def test_every_kind_of_padding(mask: str, attn: str, tiny_config, tiny_pair) -> None:
    config = tiny_config()
    batch = {"input_ids": torch.randint(61, (3, 9)), "attention_mask": MASKS[mask](9)}
    pair = tiny_pair(config, "model", attn)
    assert_equal(compare_forward(*pair, [batch]) + compare_gradients(*pair, [batch]))


def input_variants(config, model) -> dict[str, dict[str, Tensor]]:
    ids = torch.randint(61, (2, 9))
    return {
        "token types": {"input_ids": ids, "token_type_ids": torch.randint(2, (2, 9))},
        "no token types": {"input_ids": ids},
        "maximum length": {"input_ids": torch.randint(61, (2, config.max_position_embeddings))},
        "one token": {"input_ids": ids[:, :1]},
        "one row": {"input_ids": ids[:1]},
        "embeddings for tokens": {"inputs_embeds": torch.randn(2, 9, 32)},
        "chosen positions": {"input_ids": ids, "position_ids": torch.arange(9).flip(0)[None]},
        "positions of each row": {"input_ids": ids, "position_ids": torch.randint(24, (2, 9))},
    }


@pytest.mark.parametrize(
    "name",
    [
        "token types",
        "no token types",
        "maximum length",
        "one token",
        "one row",
        "embeddings for tokens",
        "chosen positions",
        "positions of each row",
    ],
)
def test_every_kind_of_input(name: str, tiny_config, tiny_pair) -> None:
    config = tiny_config()
    pair = tiny_pair(config, "model")
    batch = input_variants(config, pair[0])[name]
    assert_equal(compare_forward(*pair, [batch]) + compare_gradients(*pair, [batch]))


def test_return_dict_false_gives_huggingface_s_tuple(tiny_config, tiny_pair) -> None:
    scratch, reference = tiny_pair(tiny_config(), "sequence-classification")
    ids, labels = torch.randint(61, (2, 5)), torch.tensor([0, 1])
    flags = {"return_dict": False, "output_hidden_states": True}
    ours, theirs = scratch(ids, labels=labels, **flags), reference(ids, labels=labels, **flags)
    assert isinstance(ours, tuple)
    assert len(ours) == len(theirs)
    torch.testing.assert_close(ours[1], theirs[1])
    for own, expected in zip(ours[2], theirs[2], strict=True):
        torch.testing.assert_close(own, expected)

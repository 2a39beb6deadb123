"""What two models write to disk."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import torch
from safetensors import safe_open
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.differences import count
from scratch_models.parity.report import ParityRow


def compare_saving(scratch: ScratchPreTrainedModel, reference: PreTrainedModel) -> list[ParityRow]:
    """What both sides write: names, bits (with type and shape) and the entries of config.json."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        scratch.save_pretrained(ours)
        reference.save_pretrained(theirs)
        own, expected = _saved_tensors(ours), _saved_tensors(theirs)
        different = {
            key for key in own.keys() & expected.keys() if not _same_bits(own, expected, key)
        }
        config, expected_config = _saved_config(ours), _saved_config(theirs)
        entries = config.keys() | expected_config.keys()
        changed = {key for key in entries if config.get(key) != expected_config.get(key)}
    return [
        count("saving", "names only one writes", own.keys() ^ expected.keys()),
        count("saving", "weights not equal in bits", different),
        count("saving", "config.json entries", changed),
    ]


def _saved_tensors(folder: str) -> dict[str, str]:
    """Every weight name in a folder and the file that holds it."""
    files = [os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".safetensors")]
    return {key: file for file in files for key in _keys(file)}


def _keys(file: str) -> Iterator[str]:
    with safe_open(file, framework="pt") as weights:
        yield from weights.keys()


def _same_bits(own: dict[str, str], expected: dict[str, str], key: str) -> bool:
    with safe_open(own[key], framework="pt") as a, safe_open(expected[key], framework="pt") as b:
        x, y = a.get_tensor(key), b.get_tensor(key)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return torch.equal(*(tensor.reshape(-1).view(torch.uint8) for tensor in (x, y)))


def _saved_config(folder: str) -> dict[str, Any]:
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)

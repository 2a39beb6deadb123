"""Another vocabulary: ties and biases stay, the saved folder is right, HuggingFace reads it."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor


def values(model, batch) -> dict[str, Tensor]:
    with torch.no_grad():
        output = model(**batch)
    return {key: value for key, value in output.items() if isinstance(value, Tensor)}


@pytest.mark.parametrize("size", [55, 80])
def test_another_vocabulary(size: int, text, tmp_path) -> None:
    model = text.fresh(**padding_within(size, text))
    old = model.config.vocab_size
    tied = tied_pairs(model)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.resize_token_embeddings(size, mean_resizing=False)

    assert model.config.vocab_size == model.get_input_embeddings().num_embeddings == size
    assert tied_pairs(model) == tied
    kept = min(old, size)
    for name, tensor in model.state_dict().items():
        for dimension, length in enumerate(tensor.shape):
            if length != before[name].shape[dimension]:
                assert (before[name].shape[dimension], length) == (old, size), name
        shared = tuple(slice(min(kept, n)) if n == size else slice(None) for n in tensor.shape)
        assert torch.equal(tensor[shared], before[name][shared]), name

    batch = text.batch(model.config)
    model.set_packing("off")
    expected = values(model, batch)
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == size
    for reader in filter(None, (text.own_class, text.reference_class)):
        loaded, info = reader.from_pretrained(tmp_path, output_loading_info=True)
        assert not info["missing_keys"]
        assert not info["unexpected_keys"]
        if reader is text.own_class:
            loaded.set_packing("off")
        found = values(loaded.eval(), batch)
        for key, value in expected.items():
            torch.testing.assert_close(found[key], value, atol=1e-5, rtol=1e-5)


def padding_within(size: int, text) -> dict[str, int]:
    """Changes to a config whose padding the smaller vocabulary does not hold."""
    if (text.config().pad_token_id or 0) < size:
        return {}
    return {"pad_token_id": 0, "decoder_start_token_id": 0}


def tied_pairs(model) -> set[frozenset[str]]:
    """Names of parameters that are one."""
    named = list(model.named_parameters(remove_duplicate=False))
    return {
        frozenset((name, other))
        for name, parameter in named
        for other, same in named
        if name < other and same is parameter
    }


@pytest.mark.parametrize("size", [80, pytest.param(55, marks=pytest.mark.slow)])
def test_it_resizes_as_huggingface_s_class_does(size: int, text_twin) -> None:
    pair = text_twin.pair(attn="sdpa", **padding_within(size, text_twin))
    for model in pair:
        torch.manual_seed(3)
        model.resize_token_embeddings(size)
    batch = text_twin.batch(pair[0].config)
    ours, theirs = (values(model, batch) for model in pair)
    for key, value in theirs.items():
        torch.testing.assert_close(ours[key], value, atol=1e-5, rtol=1e-5)

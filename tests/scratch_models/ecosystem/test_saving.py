"""What we save is what HuggingFace's class saves, wherever the weights came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor

from scratch_models.parity import compare_saving


def assert_same_saves(scratch, reference) -> None:
    rows = compare_saving(scratch, reference)
    assert all(row.passed for row in rows), rows


def load_both(case, folder: Path, **options: Any):
    """The folder in both classes, weights it lacks drawn from the same seed."""
    models = []
    for reader in (case.own_class, case.reference_class):
        torch.manual_seed(1)
        model, info = reader.from_pretrained(folder, output_loading_info=True, **options)
        models.append((model.eval(), info))
    (scratch, info), (reference, reference_info) = models
    assert len(info["missing_keys"]) == len(reference_info["missing_keys"])
    assert info["unexpected_keys"] == reference_info["unexpected_keys"]
    scratch.set_packing("off")  # what is computed for padding is compared, too
    return scratch, reference


def assert_same_values(case, scratch, reference) -> None:
    batch = case.batch(reference.config)
    with torch.no_grad():
        ours, theirs = scratch.float()(**batch), reference.float()(**batch)
    for key, expected in theirs.items():
        if isinstance(expected, Tensor):
            torch.testing.assert_close(ours[key], expected, atol=1e-5, rtol=1e-5)


def store(form: str, model, folder: Path) -> None:
    """Write a checkpoint in one of the forms the Hub has."""
    if form == "half precision":
        model = model.half()
    model.save_pretrained(folder, max_shard_size="20KB" if form == "shards" else "5GB")
    if form == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")


@pytest.mark.parametrize(
    "form",
    [
        "shards",
        pytest.param("pytorch_model.bin", marks=pytest.mark.slow),
        pytest.param("half precision", marks=pytest.mark.slow),
    ],
)
def test_every_form_of_a_checkpoint_is_read_and_saved_like_huggingface_s(
    form: str, twin, tmp_path
) -> None:
    store(form, twin.reference(), tmp_path)
    scratch, reference = load_both(twin, tmp_path)
    half = form == "half precision"
    assert scratch.dtype == reference.dtype == (torch.float16 if half else torch.float32)
    assert_same_saves(scratch, reference)
    assert_same_values(twin, scratch, reference)


def test_a_head_on_a_body_s_checkpoint_is_saved_like_huggingface_s(twin, tmp_path) -> None:
    body = type(twin)(twin.architecture, "model")
    body.reference().save_pretrained(tmp_path)
    scratch, reference = load_both(twin, tmp_path)
    scratch.load_state_dict(reference.state_dict())  # a fresh head has no reason to be equal
    assert_same_saves(scratch, reference)


def test_a_fresh_model_is_saved_like_huggingface_s(twin) -> None:
    models = []
    for model_class in (twin.own_class, twin.reference_class):
        torch.manual_seed(4)
        models.append(model_class(twin.config()))
    assert_same_saves(*models)


@pytest.mark.parametrize("shards", ["5GB", "20KB"])
def test_architectures_of_our_own_come_back_bit_for_bit(shards: str, own, tmp_path) -> None:
    model = own.fresh()
    model.save_pretrained(tmp_path, max_shard_size=shards)
    loaded, info = own.own_class.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_safetensors_own_save_and_load_keep_ties(case, tmp_path) -> None:
    """As accelerate's save_state and load_state use them."""
    saved, loaded = case.fresh(seed=1), case.fresh(seed=2)
    save_model(saved, str(tmp_path / "model.safetensors"))
    assert load_model(loaded, tmp_path / "model.safetensors") == (set(), [])
    assert loaded.num_parameters() == saved.num_parameters()
    for _ in range(2):
        for name, tensor in saved.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], tensor), name
        loaded.tie_weights()


def test_a_loaded_model_s_weights_are_its_own(case, tmp_path) -> None:
    """Pieces of one stored weight must not share memory: safetensors would keep one of them."""
    case.fresh(seed=1).save_pretrained(tmp_path / "stored")
    model = case.own_class.from_pretrained(tmp_path / "stored")
    save_model(model, str(tmp_path / "model.safetensors"))
    loaded = case.fresh(seed=2)
    assert load_model(loaded, tmp_path / "model.safetensors") == (set(), [])
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_what_is_trained_is_the_same_after_loading(case, tmp_path) -> None:
    fresh = case.fresh()
    fresh.save_pretrained(tmp_path)
    loaded = case.own_class.from_pretrained(tmp_path)
    trained = [
        {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        for model in (fresh, loaded)
    ]
    assert trained[0] == trained[1]


def test_weights_given_by_position_are_saved(case, tmp_path) -> None:
    model = case.fresh(seed=1)
    given = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    model.save_pretrained(tmp_path / "by_position", True, given)
    model.save_pretrained(tmp_path / "by_name", state_dict=given)
    files = [tmp_path / folder / "model.safetensors" for folder in ("by_position", "by_name")]
    assert files[0].read_bytes() == files[1].read_bytes()
    model.save_pretrained(tmp_path / "plain")
    assert files[0].read_bytes() != (tmp_path / "plain" / "model.safetensors").read_bytes()

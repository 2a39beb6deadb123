"""Every form a ViT checkpoint comes in loads fully, and what is saved is HuggingFace's own."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest
import torch
import transformers
from huggingface_hub import save_torch_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForImageClassification, ViTForMaskedImageModeling, ViTModel

from scratch_models import disable, enable, scratch_class
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity import compare_saving

HEADS = ["model", "image-classification"]
LAYOUTS = ["hub", "in memory"]


def huggingface_class(head: str):
    return getattr(transformers, str(scratch_class("vit", head).huggingface_class))


def load_both(folder: Path, head: str, **kwargs):
    """Both classes from one folder, with equal random values for what it does not hold."""
    loaded = []
    for model_class in (scratch_class("vit", head), huggingface_class(head)):
        torch.manual_seed(1)
        loaded.append(model_class.from_pretrained(folder, output_loading_info=True, **kwargs))
    (scratch, info), (reference, expected) = loaded
    assert info["unexpected_keys"] == expected["unexpected_keys"]
    missing = {key: torch.empty(0) for key in expected["missing_keys"]}
    assert info["missing_keys"] == set(to_own_names(scratch, missing))
    return scratch.eval(), reference.eval()


def assert_same_values_and_saves(scratch, reference, size: int = 16) -> None:
    expected = to_own_names(scratch, reference.state_dict())
    assert scratch.state_dict().keys() == expected.keys()
    for name, tensor in scratch.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    pixels = torch.randn(2, 3, size, size)
    with torch.no_grad():
        ours, theirs = scratch(pixels), reference(pixels)
    for key, tensor in theirs.items():
        torch.testing.assert_close(ours[key], tensor, atol=1e-5, rtol=0)
    rows = compare_saving(scratch, reference)
    assert rows
    assert all(row.passed for row in rows), rows


def write(model, layout: str, form: str, folder: Path) -> None:
    """Write a model of HuggingFace's in one of the layouts and forms checkpoints come in."""
    model.save_pretrained(folder)
    file = folder / "model.safetensors"
    state = load_file(file) if layout == "hub" else model.state_dict()
    file.unlink()
    if form == "without prefix":
        state = {key.removeprefix("vit."): tensor for key, tensor in state.items()}
    if form == "half precision":
        state = {key: tensor.half() for key, tensor in state.items()}
    if form == "bin":
        torch.save(state, folder / "pytorch_model.bin")
    else:
        save_torch_state_dict(state, folder, max_shard_size="20KB" if form == "sharded" else "5GB")
    assert file.exists() == (form not in ("bin", "sharded"))


FORMS = [
    *product(["safetensors"], LAYOUTS, HEADS, HEADS),
    *product(["without prefix"], LAYOUTS, ["image-classification"], HEADS),
    *product(["bin", "sharded", "half precision"], LAYOUTS, *[["image-classification"]] * 2),
]


@pytest.mark.parametrize(("form", "layout", "source", "head"), FORMS)
def test_every_form_loads_into_every_head_and_is_saved_like_huggingface_s(
    form: str, layout: str, source: str, head: str, tiny_vit, vit_reference, tmp_path
) -> None:
    write(vit_reference(tiny_vit(num_labels=5), source), layout, form, tmp_path)
    dtype = torch.float16 if form == "half precision" else torch.float32
    scratch, reference = load_both(tmp_path, head, dtype=dtype)
    assert_same_values_and_saves(scratch, reference)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("changes", [{}, {"qkv_bias": False}, {"pooler_output_size": 12}])
def test_the_same_seed_gives_huggingface_s_fresh_model_and_save(
    changes, head: str, tiny_vit
) -> None:
    models = []
    for model_class in (scratch_class("vit", head), huggingface_class(head)):
        torch.manual_seed(7)
        models.append(model_class(tiny_vit(**changes)).eval())
    assert_same_values_and_saves(*models)


@pytest.mark.parametrize("head", HEADS)
def test_checkpoints_of_masked_image_modelling(head: str, tiny_vit, tmp_path) -> None:
    ViTForMaskedImageModeling(tiny_vit(encoder_stride=8)).save_pretrained(tmp_path)
    assert "vit.embeddings.mask_token" in load_file(tmp_path / "model.safetensors")
    assert_same_values_and_saves(*load_both(tmp_path, head))


def test_another_number_of_labels_leaves_the_classifier_fresh(
    tiny_vit, vit_reference, tmp_path
) -> None:
    vit_reference(tiny_vit(num_labels=5), "image-classification").save_pretrained(tmp_path)
    how = {"num_labels": 3, "ignore_mismatched_sizes": True}
    scratch, reference = load_both(tmp_path, "image-classification", **how)
    assert scratch.classifier.out_features == 3
    assert_same_values_and_saves(scratch, reference)


def test_a_save_of_dropped_pixels_is_huggingface_s(tiny_vit, vit_reference, tmp_path) -> None:
    vit_reference(tiny_vit(image_size=30)).save_pretrained(tmp_path)
    assert_same_values_and_saves(*load_both(tmp_path, "model"), size=30)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("source", HEADS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_plain_state_dict_loads_in_both_layouts(
    layout: str, source: str, head: str, tiny_vit, vit_reference, tmp_path
) -> None:
    model = vit_reference(tiny_vit(), source)
    model.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors") if layout == "hub" else model.state_dict()
    scratch = scratch_class("vit", head)(tiny_vit())
    before = {name: tensor.clone() for name, tensor in scratch.state_dict().items()}
    outcome = scratch.load_state_dict(state, strict=source == head)
    only = {"model": "pooler.dense", "image-classification": "classifier"}
    absent = set() if source == head else {f"{only[head]}.weight", f"{only[head]}.bias"}
    assert set(outcome.missing_keys) == absent
    expected = to_own_names(scratch, model.state_dict())
    for name, tensor in scratch.state_dict().items():
        assert torch.equal(tensor, before[name] if name in absent else expected[name]), name
    if source == head:
        rows = compare_saving(scratch, model)
        assert all(row.passed for row in rows), rows


def test_unknown_weights_are_told_by_a_plain_load(tiny_vit) -> None:
    scratch = scratch_class("vit")(tiny_vit())
    state = scratch.state_dict() | {"encoder.layer.0.made.up": torch.zeros(1)}
    with pytest.raises(RuntimeError, match=r"encoder\.layer\.0\.made\.up"):
        scratch.load_state_dict(state)


def test_names_in_memory_are_written_back_where_they_were_read_however_often(
    tiny_vit, vit_reference, tmp_path
) -> None:
    write(vit_reference(tiny_vit()), "in memory", "safetensors", tmp_path / "0")
    stored = load_file(tmp_path / "0" / "model.safetensors")
    for generation in range(2):
        scratch = scratch_class("vit").from_pretrained(tmp_path / str(generation))
        scratch.save_pretrained(tmp_path / str(generation + 1))
    again = load_file(tmp_path / "2" / "model.safetensors")
    assert "layers.0.attention.q_proj.weight" in stored
    assert again.keys() == stored.keys()
    assert all(torch.equal(again[name], stored[name]) for name in stored)


def test_huggingface_reads_what_we_saved(tiny_vit, tmp_path) -> None:
    scratch = scratch_class("vit", "image-classification")(tiny_vit(num_labels=4)).eval()
    scratch.save_pretrained(tmp_path)
    reference = AutoModelForImageClassification.from_pretrained(tmp_path)
    assert type(reference) is transformers.ViTForImageClassification
    pixels = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(scratch(pixels).logits, reference(pixels).logits)


def test_auto_classes_give_our_model_on_request(tiny_vit, vit_reference, tmp_path) -> None:
    vit_reference(tiny_vit(), "image-classification").save_pretrained(tmp_path)
    enable()
    try:
        model = AutoModelForImageClassification.from_pretrained(tmp_path)
    finally:
        disable()
    assert type(model) is scratch_class("vit", "image-classification")


def test_saving_over_a_sharded_save_leaves_no_stale_weights(
    tiny_vit, vit_reference, tmp_path
) -> None:
    scratch = scratch_class("vit")(tiny_vit()).eval()
    scratch.save_pretrained(tmp_path / "model", max_shard_size="20KB")
    scratch.save_pretrained(tmp_path / "model")
    shutil.copytree(tmp_path / "model", tmp_path / "copy")
    reference = ViTModel.from_pretrained(tmp_path / "copy").eval()
    pixels = torch.randn(1, 3, 16, 16)
    torch.testing.assert_close(scratch(pixels).pooler_output, reference(pixels).pooler_output)

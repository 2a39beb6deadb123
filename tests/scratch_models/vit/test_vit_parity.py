"""ViT equals HuggingFace's in values, gradients, losses, dropout and precision."""

from __future__ import annotations

import copy
import shutil

import pytest
import torch
import transformers
from torch import Tensor

from scratch_models import scratch_class
from scratch_models.hub.mapping import to_own_names

HEADS = ["model", "image-classification"]
IMPLEMENTATIONS = ["sdpa", "eager", "scratch"]


def objective(output) -> Tensor:
    """A number that depends on everything a model gives."""
    generator = torch.Generator().manual_seed(0)
    tensors = [tensor for tensor in output.to_tuple() if isinstance(tensor, Tensor)]
    return sum((t * torch.randn(t.shape, generator=generator).to(t)).sum() for t in tensors)


def assert_same_gradients(scratch, reference) -> None:
    gradients = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    expected = to_own_names(scratch, gradients)
    own = {n: p.grad for n, p in scratch.named_parameters() if p.grad is not None}
    assert own.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in own.items():
        torch.testing.assert_close(
            gradient, expected[name], atol=1e-5 * max(1.0, largest), rtol=1e-4, msg=name
        )


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("head", HEADS)
def test_values_and_gradients(head: str, attn: str, tiny_vit, vit_pair) -> None:
    scratch, reference = vit_pair(tiny_vit(num_labels=5), head, attn)
    pixels = torch.randn(3, 3, 16, 16)
    for model in (scratch, reference):
        objective(model(pixels)).backward()
    for key, tensor in reference(pixels).items():
        torch.testing.assert_close(scratch(pixels)[key], tensor, atol=1e-5, rtol=0)
    assert_same_gradients(scratch, reference)


@pytest.mark.parametrize("head", HEADS)
def test_hidden_states_end_before_the_final_norm(head: str, tiny_vit, vit_pair) -> None:
    scratch, reference = vit_pair(tiny_vit(), head)
    pixels = torch.randn(2, 3, 16, 16)
    ours, theirs = (m(pixels, output_hidden_states=True) for m in (scratch, reference))
    assert len(ours.hidden_states) == 3
    for own, expected in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)
    normed = scratch.base_model.norm(ours.hidden_states[-1])
    if head == "model":
        assert torch.equal(normed, ours.last_hidden_state)
    else:
        assert torch.equal(scratch.classifier(normed[:, 0]), ours.logits)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize("masked", [False, True])
def test_attention_maps_and_masks(masked: bool, attn: str, tiny_vit, vit_pair) -> None:
    scratch, reference = vit_pair(tiny_vit(), "image-classification", attn)
    pixels = torch.randn(2, 3, 16, 16)
    mask = torch.ones(2, 5, dtype=torch.long)
    mask[1, 3:] = 0
    inputs = {"pixel_values": pixels, "attention_mask": mask if masked else None}
    asked = scratch(**inputs, output_attentions=True)
    torch.testing.assert_close(scratch(**inputs).logits, asked.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(asked.logits, reference(**inputs).logits, atol=1e-5, rtol=0)
    reference.set_attn_implementation("eager")
    expected = reference(**inputs, output_attentions=True).attentions
    assert len(asked.attentions) == 2
    for own, theirs in zip(asked.attentions, expected, strict=True):
        torch.testing.assert_close(own, theirs, atol=1e-5, rtol=0)
        assert bool((own[1, :, :, 3:] == 0).all()) == masked


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="flex attention needs a C++ compiler")
def test_flex_attention_and_its_maps(tiny_vit, vit_pair) -> None:
    # The kernel wants heads of at least 16.
    scratch, reference = vit_pair(tiny_vit(hidden_size=64), "model", "flex_attention")
    pixels = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        ours = scratch(pixels, output_attentions=True)
        theirs = reference(pixels).last_hidden_state
        reference.set_attn_implementation("eager")
        maps = reference(pixels, output_attentions=True).attentions
    torch.testing.assert_close(ours.last_hidden_state, theirs, atol=1e-5, rtol=0)
    for own, expected in zip(ours.attentions, maps, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)


def test_the_last_layer_computes_the_class_token_only_where_nothing_else_is_asked(
    tiny_vit, vit_pair
) -> None:
    scratch, _ = vit_pair(tiny_vit(), "image-classification")
    lengths = []
    scratch.vit.layers[-1].feed_forward.register_forward_hook(
        lambda module, args, output: lengths.append(output.shape[1])
    )
    pixels = torch.randn(2, 3, 16, 16)
    scratch(pixels)
    scratch(pixels, output_hidden_states=True)
    scratch(pixels, output_attentions=True)
    scratch.vit(pixels)
    scratch.train()(pixels)  # without dropout
    assert lengths == [1, 5, 5, 5, 1]


@pytest.mark.parametrize(
    ("problem", "labels", "targets"),
    [
        (None, 4, torch.tensor([3, 0, 1])),
        ("single_label_classification", 4, torch.tensor([3, 0, 1])),
        ("multi_label_classification", 4, torch.tensor([[1.0, 0, 0, 1]] * 3)),
        (None, 1, torch.tensor([0.5, -1.0, 2.0])),
        ("regression", 2, torch.tensor([[0.5, -1.0]] * 3)),
    ],
)
def test_losses(problem, labels: int, targets: Tensor, tiny_vit, vit_pair) -> None:
    pair = vit_pair(tiny_vit(problem_type=problem, num_labels=labels), "image-classification")
    pixels = torch.randn(3, 3, 16, 16)
    losses = [model(pixels, labels=targets).loss for model in pair]
    torch.testing.assert_close(*losses, atol=1e-5, rtol=0)
    for loss in losses:
        loss.backward()
    assert_same_gradients(*pair)


def test_the_loss_is_divided_by_the_number_of_items_a_caller_gives(tiny_vit, vit_pair) -> None:
    pair = vit_pair(tiny_vit(num_labels=4), "image-classification")
    pixels, labels = torch.randn(3, 3, 16, 16), torch.tensor([3, 0, 1])
    ours, theirs = (model(pixels, labels=labels, num_items_in_batch=12).loss for model in pair)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours * 4, pair[0](pixels, labels=labels).loss)


def test_without_labels_the_classifier_gives_the_class_token(tiny_vit, vit_pair) -> None:
    scratch, reference = vit_pair(tiny_vit(num_labels=0), "image-classification")
    pixels = torch.randn(2, 3, 16, 16)
    ours = scratch(pixels).logits
    assert ours.shape == (2, 32)
    torch.testing.assert_close(ours, reference(pixels).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
def test_dropout_falls_where_huggingface_s_falls(attn: str, tiny_vit, vit_pair) -> None:
    config = tiny_vit(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.4)
    pair = vit_pair(config, "image-classification", attn)
    pixels, labels = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 0, 1])
    losses = []
    for model in pair:
        model.train()
        torch.manual_seed(3)
        losses.append(model(pixels, labels=labels).loss)
    torch.testing.assert_close(*losses, atol=1e-6, rtol=0)
    torch.manual_seed(4)
    assert pair[0](pixels, labels=labels).loss != losses[0]


@pytest.mark.parametrize("attn", IMPLEMENTATIONS)
@pytest.mark.parametrize(("dtype", "near"), [(torch.float16, 2e-2), (torch.bfloat16, 2e-1)])
def test_half_precision_is_huggingface_s_and_near_single(
    dtype: torch.dtype, near: float, attn: str, tiny_vit, vit_pair
) -> None:
    """Pixels stay in single precision: the model casts them."""
    pair = vit_pair(tiny_vit(initializer_range=0.05), "image-classification", attn)
    pixels = torch.randn(3, 3, 24, 40)
    with torch.no_grad():
        single = pair[0](pixels, interpolate_pos_encoding=True).logits
        ours, theirs = (m.to(dtype)(pixels, interpolate_pos_encoding=True).logits for m in pair)
    assert ours.dtype == dtype
    assert torch.isfinite(ours).all()
    assert torch.equal(ours, theirs)
    assert (ours.float() - single).abs().max() < near


@pytest.mark.parametrize("dtype", [torch.float64, torch.uint8, torch.float16])
def test_pixels_of_other_types_are_cast_as_huggingface_does(
    dtype: torch.dtype, tiny_vit, vit_pair
) -> None:
    scratch, reference = vit_pair(tiny_vit())
    pixels = (torch.rand(2, 3, 16, 16) * 3).to(dtype)
    ours, theirs = (m(pixels).pooler_output for m in (scratch, reference))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_gradient_checkpointing_changes_nothing_but_memory(tiny_vit, vit_pair) -> None:
    plain, _ = vit_pair(tiny_vit(), "image-classification")
    checkpointed = copy.deepcopy(plain)
    checkpointed.gradient_checkpointing_enable()
    calls = []
    checkpointed.vit.layers[0].feed_forward.up.register_forward_hook(lambda *_: calls.append(1))
    pixels, labels = torch.randn(3, 3, 16, 16), torch.tensor([0, 1, 0])
    losses = []
    for model in (plain, checkpointed):
        model.train()
        losses.append(model(pixels, labels=labels).loss)
        losses[-1].backward()
    assert torch.equal(*losses)
    assert len(calls) == 2  # the layer ran again in the backward pass
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter.grad, checkpointed.get_parameter(name).grad), name


def test_return_dict_false_gives_huggingface_s_tuple(tiny_vit, vit_pair) -> None:
    scratch, reference = vit_pair(tiny_vit(), "image-classification")
    pixels, labels = torch.randn(2, 3, 16, 16), torch.tensor([0, 1])
    flags = {"labels": labels, "return_dict": False, "output_hidden_states": True}
    ours, theirs = scratch(pixels, **flags), reference(pixels, **flags)
    assert isinstance(ours, tuple)
    assert len(ours) == len(theirs)
    torch.testing.assert_close(ours[1], theirs[1])
    for own, expected in zip(ours[2], theirs[2], strict=True):
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("head", HEADS)
def test_what_transformers_and_its_tools_read_of_a_class(head: str) -> None:
    own = scratch_class("vit", head)
    reference = getattr(transformers, own.huggingface_class)
    for name in (
        "main_input_name",
        "input_modalities",
        "supports_gradient_checkpointing",
        "_supports_sdpa",
        "_supports_flash_attn",
        "_supports_flex_attn",
        "_supports_attention_backend",
        "_can_compile_fullgraph",
    ):
        assert getattr(own, name) == getattr(reference, name), name


def test_the_input_embedding_is_the_projection_of_the_patches(tiny_vit, vit_pair) -> None:
    scratch, reference = vit_pair(tiny_vit(), "image-classification")
    ours = scratch.get_input_embeddings()
    assert torch.equal(ours.weight, reference.get_input_embeddings().projection.weight)
    scratch.enable_input_require_grads()  # peft with gradient checkpointing
    scratch.requires_grad_(False)
    assert scratch(torch.randn(1, 3, 16, 16)).logits.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_is_huggingface_s_and_finite(dtype: torch.dtype, tiny_vit, vit_pair) -> None:
    pair = vit_pair(tiny_vit(), "image-classification")
    pixels = torch.randn(3, 3, 24, 40)
    with torch.autocast("cpu", dtype):
        ours, theirs = (model(pixels, interpolate_pos_encoding=True).logits for model in pair)
    assert torch.isfinite(ours).all()
    assert torch.equal(ours, theirs)


@pytest.mark.slow
def test_the_graph_compiles_in_one_piece(tiny_vit, vit_pair) -> None:
    """Also where pixels are dropped, of which nothing is said then."""
    scratch, reference = vit_pair(tiny_vit(), "image-classification")
    compiled = torch.compile(scratch, backend="eager", fullgraph=True)
    pixels = torch.randn(2, 3, 25, 40)
    with torch.no_grad():
        ours = compiled(pixels, interpolate_pos_encoding=True).logits
        theirs = reference(pixels, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)

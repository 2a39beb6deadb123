"""Models for images: new ones from random weights, and how pretrained ones see them."""

# No `from __future__ import annotations` here: recipes hold these dataclasses in their configs.
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from transformers import AutoImageProcessor, ViTConfig

from scratch_models import ScratchCifarResNetConfig
from toolkit.config import check_range
from toolkit.data.image_collate import Preprocessing
from toolkit.data.image_decoding import Size
from toolkit.errors import UserError, first_line
from toolkit.modeling import Implementation, new_model
from toolkit.sources import resolve_model

NEW_MODELS = ("vit", "resnet")
"""What ``--model`` can say instead of a folder or a name: a new model, from random weights."""


@dataclass
class ViTShape:
    """Size of a new Vision Transformer."""

    patch_size: int = 4
    """Height and width of a patch in pixels; it divides those of the image."""
    layers: int = 7
    """Encoder layers."""
    hidden_size: int = 256
    """Width."""
    heads: int = 4
    """Attention heads; they divide the width."""
    feed_forward: float = 4.0
    """The feed-forward part is so many times as wide."""
    dropout: float = 0.0
    """Dropout of hidden states."""


@dataclass
class ResNetShape:
    """Size of a new residual network with the stem for small images (ResNet-18 for CIFAR)."""

    widths: list[int] = field(default_factory=lambda: [64, 128, 256, 512])
    """Channels of every stage; each stage after the first halves the image."""
    depths: list[int] = field(default_factory=lambda: [2, 2, 2, 2])
    """Blocks of two convolutions in every stage."""


def new_image_model(
    name: str,
    vit: ViTShape,
    resnet: ResNetShape,
    size: Size,
    label_names: list[str],
    implementation: Implementation,
) -> nn.Module:
    """The new model that ``--model`` asks for: ``vit`` or ``resnet`` (`NEW_MODELS`).

    Raises:
        UserError: a shape that cannot be.
    """
    if name == "vit":
        return new_vit(vit, size, label_names, implementation)
    return new_resnet(resnet, label_names, implementation)


def new_vit(
    shape: ViTShape, size: Size, label_names: list[str], implementation: Implementation
) -> nn.Module:
    """A ViT with random weights that labels images.

    Raises:
        UserError: the patches do not divide the image or the heads the width.
    """
    for key in ("patch_size", "layers", "hidden_size", "heads"):
        if getattr(shape, key) < 1:
            raise UserError(f"--vit.{key} {getattr(shape, key)}: expected at least 1")
    check_range("vit.dropout", shape.dropout, 0, 1)
    if size[0] % shape.patch_size or size[1] % shape.patch_size:
        raise UserError(
            f"--vit.patch_size {shape.patch_size} does not divide the images, which are "
            f"{size[0]}x{size[1]} pixels (height x width): pixels at the border would never be "
            "seen. Choose another patch size, or another --image-size."
        )
    if shape.hidden_size % shape.heads:
        raise UserError(
            f"--vit.heads {shape.heads} does not divide --vit.hidden_size {shape.hidden_size}"
        )
    config = ViTConfig(
        image_size=size[0] if size[0] == size[1] else size,
        patch_size=shape.patch_size,
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=round(shape.feed_forward * shape.hidden_size),
        hidden_dropout_prob=shape.dropout,
    )
    return new_model("a new ViT", config, "image-classification", implementation, label_names)


def new_resnet(
    shape: ResNetShape, label_names: list[str], implementation: Implementation
) -> nn.Module:
    """A ResNet for small images with random weights that labels them.

    Raises:
        UserError: HuggingFace's class is asked for, or widths and depths that cannot be.
    """
    if implementation == "hf":
        raise UserError(
            "--implementation hf: HuggingFace's ResNet has the stem for large images only, which "
            "shrinks them to a quarter at once. Use --implementation scratch, or --model vit."
        )
    if len(shape.widths) != len(shape.depths) or min([*shape.widths, *shape.depths, 1]) < 1:
        raise UserError(
            f"--resnet.widths {shape.widths} and --resnet.depths {shape.depths}: expected one of "
            "each for every stage, all at least 1"
        )
    config = ScratchCifarResNetConfig(
        embedding_size=shape.widths[0],
        hidden_sizes=list(shape.widths),
        depths=list(shape.depths),
        layer_type="basic",
    )
    return new_model("a new ResNet", config, "image-classification", implementation, label_names)


def load_preprocessing(name: str) -> Preprocessing:
    """Size and normalisation that a pretrained model was trained with.

    Images are brought to its height and width as they are, without cutting a centre out.

    Raises:
        UserError: no such model, or its folder does not say.
    """
    source = resolve_model(name)
    try:
        processor = AutoImageProcessor.from_pretrained(source)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{name}: no image processor that can be read ({first_line(error)}). Copy "
            "preprocessor_config.json from the model it was made from: it says which size and "
            f"colours the model expects. For a new model use --model {' or '.join(NEW_MODELS)}."
        ) from error
    mean, std = processor.image_mean, processor.image_std
    if not processor.do_normalize:
        mean, std = [0.0] * 3, [1.0] * 3
    return Preprocessing(_size_of(processor, name), list(mean), list(std))


def _size_of(processor: Any, name: str) -> Size:
    """`size` of a processor: height and width, or the edge that a centre of it is cut to."""
    size = processor.size
    if getattr(processor, "do_center_crop", False) and getattr(processor, "crop_size", None):
        size = processor.crop_size
    found = dict(size)
    if found.get("height") and found.get("width"):
        return int(found["height"]), int(found["width"])
    if found.get("shortest_edge"):
        return int(found["shortest_edge"]), int(found["shortest_edge"])
    raise UserError(f"{name}: its image processor has the size {found}; expected height and width.")


def check_method(model: str, method: str) -> None:
    """Refuse a new model that is to be fine-tuned, and a pretrained one to be made anew.

    Raises:
        UserError: says which of the two to change.
    """
    new = " or ".join(NEW_MODELS)
    if method == "from_scratch" and model not in NEW_MODELS:
        raise UserError(
            f"--method from_scratch makes a new model: --model {new}, not {model!r}. For the "
            "pretrained one use --method full, lora or frozen."
        )
    if method != "from_scratch" and model in NEW_MODELS:
        raise UserError(
            f"--model {model} is a new model with random weights: train it with --method "
            f"from_scratch. --method {method} is for a pretrained model: give its folder or Hub "
            "name."
        )

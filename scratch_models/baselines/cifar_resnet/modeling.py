"""A ResNet whose stem keeps every pixel, for images of 32x32 (arXiv:1512.03385, §4.2)."""

from __future__ import annotations

from transformers import ResNetConfig
from transformers.activations import ACT2FN

from scratch_models.baselines.resnet.modeling import (
    ConvolutionLayer,
    ScratchResNetForImageClassification,
    ScratchResNetModel,
)


class ScratchCifarResNetConfig(ResNetConfig):
    """Sizes of a `ScratchCifarResNetForImageClassification`; the fields are `ResNetConfig`'s.

    The defaults make ResNet-18: 11.17 million parameters with 10 labels.
    """

    model_type = "scratch_cifar_resnet"

    hidden_sizes: list[int] | tuple[int, ...] | None = (64, 128, 256, 512)
    depths: list[int] | tuple[int, ...] | None = (2, 2, 2, 2)
    layer_type: str = "basic"


class CifarStem(ConvolutionLayer):
    """A 3x3 convolution that keeps the size of the image: the first layer of §4.2."""

    def __init__(self, config: ResNetConfig) -> None:
        activation = ACT2FN[config.hidden_act]
        super().__init__(config.num_channels, config.embedding_size, 3, 1, activation)


class ScratchCifarResNetModel(ScratchResNetModel):
    """`ScratchResNetModel` with the other stem."""

    config_class = ScratchCifarResNetConfig
    huggingface_class = None
    stem_class = CifarStem


class ScratchCifarResNetForImageClassification(ScratchResNetForImageClassification):
    """`ScratchResNetForImageClassification` with the other stem."""

    config_class = ScratchCifarResNetConfig
    huggingface_class = None
    body_class = ScratchCifarResNetModel

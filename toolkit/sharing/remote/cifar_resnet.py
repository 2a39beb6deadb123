"""A ResNet whose stem keeps every pixel, for small images (arXiv:1512.03385, §4.2).

HuggingFace's ResNet with its first layer replaced: a 3x3 convolution of stride 1, no pooling.
"""

from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification, ResNetModel
from transformers.models.resnet.modeling_resnet import ResNetConvLayer


class CifarResNetConfig(ResNetConfig):
    """`ResNetConfig` under another name; every field is the same."""

    model_type = "scratch_cifar_resnet"


def small_stem(config: ResNetConfig) -> ResNetConvLayer:
    """[batch, num_channels, height, width] -> [batch, embedding_size, height, width]."""
    return ResNetConvLayer(
        config.num_channels,
        config.embedding_size,
        kernel_size=3,
        stride=1,
        activation=config.hidden_act,
    )


class CifarResNetModel(ResNetModel):
    """The convolutions: features of every place and their mean."""

    config_class = CifarResNetConfig

    def __init__(self, config: CifarResNetConfig) -> None:
        super().__init__(config)
        self.embedder.embedder = small_stem(config)
        self.embedder.pooler = nn.Identity()
        self.post_init()


class CifarResNetForImageClassification(ResNetForImageClassification):
    """One linear layer over the mean of the features."""

    config_class = CifarResNetConfig

    def __init__(self, config: CifarResNetConfig) -> None:
        super().__init__(config)
        self.resnet.embedder.embedder = small_stem(config)
        self.resnet.embedder.pooler = nn.Identity()
        self.post_init()

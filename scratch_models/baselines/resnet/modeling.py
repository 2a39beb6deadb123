"""ResNet: convolutions with shortcuts, what images were classified with before Transformers.

Built after HuggingFace's `ResNetConfig`; equal to HuggingFace's classes of the same names without
`Scratch` in every value and gradient. Sections are those of arXiv:1512.03385.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import ResNetConfig
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.modeling_outputs import (
    BaseModelOutputWithPoolingAndNoAttention,
    ImageClassifierOutputWithNoAttention,
)
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from scratch_models.baselines.resnet import mapping  # noqa: F401  (registers the name table)
from scratch_models.hub.base import ScratchPreTrainedModel

BOTTLENECK_REDUCTION = 4
"""How many times narrower the inside of a bottleneck is than its outside (table 1)."""


class ConvolutionLayer(nn.Module):
    """Convolution, batch norm, activation (§3.4); keeps the size of the image at stride 1.

    Args:
        in_channels: of the input.
        out_channels: of the output.
        kernel_size: height and width of the kernel, odd.
        stride: how many times smaller the output is.
        activation: after the norm; None is none.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, padding=kernel_size // 2, bias=False
        )
        self.norm = nn.BatchNorm2d(out_channels)
        self.activation = activation if activation is not None else nn.Identity()

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, in_channels, height, width] -> [batch, out_channels, height', width'].

        height' and width' are height and width divided by the stride and rounded up.

        Raises:
            ValueError: in training, if one value a channel is left: it has no variance.
        """
        hidden_states = self.convolution(hidden_states)
        batch, _, height, width = hidden_states.shape
        if self.norm.training and batch * height * width == 1:
            raise ValueError(
                "a batch of one image that has shrunk to 1x1 pixels cannot be trained on: batch "
                "normalisation needs more than one value a channel. Use more images a batch or "
                "larger images."
            )
        return self.activation(self.norm(hidden_states))


class ResidualBlock(nn.Module):
    """activation(F(x) + shortcut(x)): equations 1 and 2 of §3.2.

    Args:
        layers: F.
        shortcut: the identity, or a projection where F changes the size.
        activation: after the addition.
    """

    def __init__(self, layers: nn.Module, shortcut: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.shortcut = shortcut
        self.layers = layers
        self.activation = activation

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, channels, height, width] -> the same, or fewer pixels with more channels."""
        return self.activation(self.layers(hidden_states) + self.shortcut(hidden_states))


def build_block(
    config: ResNetConfig, in_channels: int, out_channels: int, stride: int
) -> ResidualBlock:
    """One block of the kind `config.layer_type` names."""
    # First, as in HuggingFace's class: the order in which weights draw their random numbers.
    shortcut: nn.Module = nn.Identity()
    if in_channels != out_channels or stride != 1:
        shortcut = ConvolutionLayer(in_channels, out_channels, 1, stride)
    if config.layer_type == "bottleneck":
        strides = (stride, 1) if config.downsample_in_bottleneck else (1, stride)
        layers = bottleneck(in_channels, out_channels, *strides)
    else:
        layers = two_convolutions(in_channels, out_channels, stride)
    return ResidualBlock(layers, shortcut, ACT2FN[config.hidden_act])


def two_convolutions(in_channels: int, out_channels: int, stride: int) -> nn.Sequential:
    """The inside of a basic block (figure 5, left)."""
    return nn.Sequential(
        ConvolutionLayer(in_channels, out_channels, 3, stride, nn.ReLU()),
        ConvolutionLayer(out_channels, out_channels, 3),
    )


def bottleneck(
    in_channels: int, out_channels: int, first_stride: int, middle_stride: int
) -> nn.Sequential:
    """The inside of a bottleneck block (figure 5, right): narrow, convolve, widen.

    The paper's models have their stride in the first convolution, later ones in the middle one.
    """
    narrow = out_channels // BOTTLENECK_REDUCTION
    return nn.Sequential(
        ConvolutionLayer(in_channels, narrow, 1, first_stride, nn.ReLU()),
        ConvolutionLayer(narrow, narrow, 3, middle_stride, nn.ReLU()),
        ConvolutionLayer(narrow, out_channels, 1),
    )


class ResidualStage(nn.Module):
    """Blocks of one width, the first of which may shrink the image (a row of table 1)."""

    def __init__(
        self, config: ResNetConfig, in_channels: int, out_channels: int, stride: int, depth: int
    ) -> None:
        super().__init__()
        first = build_block(config, in_channels, out_channels, stride)
        others = (build_block(config, out_channels, out_channels, 1) for _ in range(depth - 1))
        self.blocks = nn.Sequential(first, *others)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, in_channels, height, width] -> [batch, out_channels, height', width']."""
        return self.blocks(hidden_states)


def build_stages(config: ResNetConfig) -> Iterator[ResidualStage]:
    """All stages; each but perhaps the first halves the image.

    Raises:
        ValueError: if the config does not give every stage a width and a depth.
    """
    if len(config.hidden_sizes) != len(config.depths):
        raise ValueError(
            f"the config has {len(config.hidden_sizes)} hidden_sizes and {len(config.depths)} "
            "depths: give one of each for every stage."
        )
    in_channels = config.embedding_size
    stride = 2 if config.downsample_in_first_stage else 1
    for out_channels, depth in zip(config.hidden_sizes, config.depths, strict=True):
        yield ResidualStage(config, in_channels, out_channels, stride, depth)
        in_channels, stride = out_channels, 2


class ImageNetStem(ConvolutionLayer):
    """A 7x7 convolution and a max pooling (table 1): a quarter of the height and width."""

    def __init__(self, config: ResNetConfig) -> None:
        activation = ACT2FN[config.hidden_act]
        super().__init__(config.num_channels, config.embedding_size, 7, 2, activation)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """[batch, num_channels, height, width] -> [batch, embedding_size, height/4, width/4]."""
        return self.pool(super().forward(pixel_values))


class ScratchResNetPreTrainedModel(ScratchPreTrainedModel):
    """What all ResNet classes share."""

    config: ResNetConfig
    config_class = ResNetConfig
    base_model_prefix = "resnet"
    main_input_name = "pixel_values"
    input_modalities = ("image",)
    _no_split_modules: ClassVar[list[str]] = ["ResidualBlock"]
    _can_record_outputs: ClassVar[dict[str, Any]] = {"hidden_states": ResidualStage}

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, nn.Conv2d):
            init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            # As torch initialises linear layers.
            init.kaiming_uniform_(module.weight, a=math.sqrt(5))
            bound = 1 / math.sqrt(module.in_features)
            init.uniform_(module.bias, -bound, bound)


class ScratchResNetModel(ScratchResNetPreTrainedModel):
    """The convolutions: a map of features and their mean over the image.

    Raises:
        ValueError: for a config with stages of unknown width or depth.
    """

    huggingface_class: ClassVar[str | None] = "ResNetModel"
    stem_class: ClassVar[type[nn.Module]] = ImageNetStem

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.stem = self.stem_class(config)
        self.stages = nn.ModuleList(build_stages(config))
        self.pooler = nn.AdaptiveAvgPool2d(1)
        self.post_init()

    @capture_outputs
    def forward(
        self, pixel_values: Tensor, **kwargs: Any
    ) -> BaseModelOutputWithPoolingAndNoAttention:
        """Look at a batch of images of any size.

        Args:
            pixel_values: [batch, num_channels, height, width].
            **kwargs: `output_hidden_states` (of the stem and of every stage), `return_dict`.

        Returns:
            `last_hidden_state` [batch, hidden_sizes[-1], height', width'] and `pooler_output`
            [batch, hidden_sizes[-1], 1, 1]; height' and width' are smaller by all strides.

        Raises:
            ValueError: for tensors of another shape, empty images, another number of channels.
        """
        self._check_images(pixel_values)
        hidden_states = self.stem(pixel_values)
        for stage in self.stages:
            hidden_states = stage(hidden_states)
        return BaseModelOutputWithPoolingAndNoAttention(
            last_hidden_state=hidden_states, pooler_output=self.pooler(hidden_states)
        )

    def _check_images(self, pixel_values: Tensor) -> None:
        shape, channels = list(pixel_values.shape), self.config.num_channels
        if len(shape) != 4 or min(shape[2:]) == 0:
            raise ValueError(
                f"pixel_values have the shape {shape}; "
                f"expected [batch, {channels} channels, height, width] with at least one pixel."
            )
        if shape[1] != channels:
            raise ValueError(
                f"pixel_values have {shape[1]} channels (shape {shape}) but the model reads "
                f"{channels} (num_channels of its config): convert the images or build the model "
                f"with num_channels={shape[1]}."
            )


class ScratchResNetForImageClassification(ScratchResNetPreTrainedModel):
    """ResNet that labels images by one linear layer over the mean of its features (§3.3)."""

    huggingface_class: ClassVar[str | None] = "ResNetForImageClassification"
    body_class: ClassVar[type[ScratchResNetModel]] = ScratchResNetModel

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.resnet = self.body_class(config)
        self.classifier: nn.Module = nn.Identity()
        if config.num_labels > 0:
            self.classifier = nn.Linear(config.hidden_sizes[-1], config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self, pixel_values: Tensor, labels: Tensor | None = None, **kwargs: Any
    ) -> ImageClassifierOutputWithNoAttention:
        """Arguments as `ScratchResNetModel`; labels [batch], or [batch, labels] for several.

        `config.problem_type` chooses the loss (regression, single_label_classification,
        multi_label_classification); unset, it follows from the labels as in transformers.

        Returns `logits` [batch, labels] and, with labels, the mean `loss`.
        """
        outputs = self.resnet(pixel_values, return_dict=True, **kwargs)
        logits = self.classifier(outputs.pooler_output.flatten(1))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config)
        return ImageClassifierOutputWithNoAttention(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states
        )

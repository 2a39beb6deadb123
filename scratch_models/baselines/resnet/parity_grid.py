"""Configs on which ResNet is compared with HuggingFace's."""

from typing import Any

# Width of every stage: a multiple of 4, the reduction of a bottleneck.
TINY: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24],
    "depths": [1, 2, 1],
    "layer_type": "basic",
}

VARIANTS: dict[str, dict[str, Any]] = {
    "bottleneck": {"layer_type": "bottleneck"},
    "bottleneck, stride in the first convolution": {
        "layer_type": "bottleneck",
        "downsample_in_bottleneck": True,
    },
    "first stage downsamples": {"downsample_in_first_stage": True},
    "bottleneck, first stage downsamples": {
        "layer_type": "bottleneck",
        "downsample_in_bottleneck": True,
        "downsample_in_first_stage": True,
    },
    "first stage projects": {"embedding_size": 12},
    "one stage": {"hidden_sizes": [16], "depths": [2]},
    "five stages": {"hidden_sizes": [8, 8, 12, 12, 16], "depths": [1, 2, 1, 1, 1]},
    "deep stages": {"hidden_sizes": [8, 12], "depths": [3, 4]},
    "gelu": {"hidden_act": "gelu"},
    "silu, bottleneck": {"hidden_act": "silu", "layer_type": "bottleneck"},
    "one channel": {"num_channels": 1},
    "four channels": {"num_channels": 4},
}

"""ResNet for images of 32x32 pixels: that of He et al. 2015 with a stem that keeps every pixel.

The ImageNet stem leaves of 32x32 pixels 8x8. Here it is one 3x3 convolution of stride 1 without
max pooling, as in §4.2 of arXiv:1512.03385 ("the first layer is 3x3 convolutions"); all else is
`scratch_models.baselines.resnet`. The defaults are what is commonly called ResNet-18 for CIFAR: the
stages of the ImageNet ResNet-18 behind that stem.

Where it differs from the networks of §4.2: those have three stages of 16, 32 and 64 channels and
shortcuts without weights (option A: new channels are zero). `embedding_size=16`,
`hidden_sizes=[16, 32, 64]` and `depths=[n, n, n]` give their shape, with projections (option B).

HuggingFace's config has no field for the stem, so that these models are not of its type "resnet".
"""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="scratch_cifar_resnet",
    title="ResNet for 32x32 images",
    paper="He et al. 2015, arXiv:1512.03385, §4.2",
    classes={
        "model": "ScratchCifarResNetModel",
        "image-classification": "ScratchCifarResNetForImageClassification",
    },
    exports=("CifarStem", "ScratchCifarResNetConfig"),
)

"""ResNet: the convolutional network of He et al. 2015 (arXiv:1512.03385).

Where each part stands in the paper:

- the stem, a 7x7 convolution and a max pooling that halve the image each: table 1;
- convolutions with a shortcut around them: §3.2; identities (equation 1) and, where the size
  changes, projections (equation 2): option B of §4.1;
- basic block: figure 5, left; bottleneck block: figure 5, right;
- batch norm after every convolution and before the activation, no dropout: §3.4;
- the mean over the image and one linear layer: §3.3.

Where HuggingFace's checkpoints and classes differ from the paper:

- `microsoft/resnet-50` and the deeper ones halve the image in the 3x3 convolution of a bottleneck
  ("v1.5"), the paper's own models in the 1x1 before it: `downsample_in_bottleneck=True`;
- `hidden_act` is the activation after the stem and after the additions; between the convolutions
  of a block there is a ReLU whatever it says;
- fresh weights: convolutions by the paper's reference 13 (arXiv:1502.01852) in the form that keeps
  the variance of gradients (`fan_out`, its equation 14), the classifier as torch initialises one.
"""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="resnet",
    title="ResNet",
    paper="He et al. 2015, arXiv:1512.03385",
    classes={
        "model": "ScratchResNetModel",
        "image-classification": "ScratchResNetForImageClassification",
    },
    exports=(
        "ConvolutionLayer",
        "ImageNetStem",
        "ResidualBlock",
        "ResidualStage",
        "ScratchResNetPreTrainedModel",
    ),
    reference="microsoft/resnet-50",
    reference_config={"num_labels": 1000},
)

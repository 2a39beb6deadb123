"""ViT: a Transformer encoder that reads an image as a sequence of patches (arXiv:2010.11929).

Built from `scratch_models.layers` after HuggingFace's `ViTConfig`; equal to HuggingFace's classes
of the same names without `Scratch` in every value and gradient. Parts and the paper:

- patches, class token, positions: equation 1 of §3.1 (`layers.patch_embeddings`); positions of
  other image sizes: §3.2;
- layers: equations 2 and 3, the norm before each sublayer; final norm: equation 4;
- classification head: one linear layer, as for fine-tuning (§3.1).

Where HuggingFace's checkpoints differ from the paper: queries, keys and values have a bias
(appendix A has none); the hidden layer of the paper's head for pretraining is a pooler with tanh
that bodies hold and classifiers leave out; the dropout of training (0.1, table 3) is 0 in the
config; norms have an epsilon of 1e-12, in the original code 1e-6.
"""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="vit",
    title="ViT",
    paper="Dosovitskiy et al. 2020, arXiv:2010.11929",
    classes={
        "model": "ScratchViTModel",
        "image-classification": "ScratchViTForImageClassification",
    },
    exports=("ClassTokenPooler", "ScratchViTPreTrainedModel"),
    reference="google/vit-base-patch16-224",
    reference_config={"num_labels": 1000},
)

"""ViT: the Vision Transformer of Dosovitskiy et al. 2020."""

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

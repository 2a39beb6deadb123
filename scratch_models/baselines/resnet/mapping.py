"""The weights of ResNet: HuggingFace's names and ours. Paths not listed are the same."""

from scratch_models.hub.mapping import register_names, rename

STAGES = [
    rename(f"encoder.stages.*.layers.*.{hub}", f"stages.*.blocks.*.{ours}")
    for hub, ours in [
        ("layer.*.convolution", "layers.*.convolution"),
        ("layer.*.normalization", "layers.*.norm"),
        ("shortcut.convolution", "shortcut.convolution"),
        ("shortcut.normalization", "shortcut.norm"),
    ]
]

BODY = [
    rename("embedder.embedder.convolution", "stem.convolution"),
    rename("embedder.embedder.normalization", "stem.norm"),
    *STAGES,
]

CLASSIFIER = [rename("classifier.1", "classifier")]

register_names("ScratchResNetModel", BODY, base_model_prefix="resnet")
register_names("ScratchResNetForImageClassification", CLASSIFIER)

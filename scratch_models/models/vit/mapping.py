"""The weights of ViT: HuggingFace's names and ours. Paths not listed are the same.

transformers 5 has names of its own for the layers in memory; a state dict of a built model holds
those, the checkpoints on the Hub hold the older ones.
"""

from scratch_models.hub.mapping import also_named, register_names, rename

HUB = [
    rename("embeddings.cls_token", "embeddings.class_token"),
    rename("embeddings.position_embeddings", "embeddings.position"),
    rename("embeddings.patch_embeddings.projection", "embeddings.projection"),
    rename("encoder.layer.*.layernorm_before", "layers.*.attention_norm"),
    rename("encoder.layer.*.attention.attention.query", "layers.*.attention.query"),
    rename("encoder.layer.*.attention.attention.key", "layers.*.attention.key"),
    rename("encoder.layer.*.attention.attention.value", "layers.*.attention.value"),
    rename("encoder.layer.*.attention.output.dense", "layers.*.attention.output"),
    rename("encoder.layer.*.layernorm_after", "layers.*.feed_forward_norm"),
    rename("encoder.layer.*.intermediate.dense", "layers.*.feed_forward.up"),
    rename("encoder.layer.*.output.dense", "layers.*.feed_forward.down"),
    rename("layernorm", "norm"),
]

IN_MEMORY = [
    also_named("layers.*.layernorm_before", "layers.*.attention_norm"),
    also_named("layers.*.attention.q_proj", "layers.*.attention.query"),
    also_named("layers.*.attention.k_proj", "layers.*.attention.key"),
    also_named("layers.*.attention.v_proj", "layers.*.attention.value"),
    also_named("layers.*.attention.o_proj", "layers.*.attention.output"),
    also_named("layers.*.layernorm_after", "layers.*.feed_forward_norm"),
    also_named("layers.*.mlp.fc1", "layers.*.feed_forward.up"),
    also_named("layers.*.mlp.fc2", "layers.*.feed_forward.down"),
]

register_names("ScratchViTModel", [*HUB, *IN_MEMORY], base_model_prefix="vit")

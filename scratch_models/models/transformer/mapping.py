"""The weights of the Transformer: HuggingFace's (Marian's) names and ours."""

from scratch_models.hub.mapping import register_names, rename


def _stack(name: str) -> list:
    """What encoder and decoder have in common."""
    hub, ours = name, name
    return [
        rename(f"{hub}.embed_tokens", f"{ours}.embeddings.token"),
        rename(f"{hub}.embed_positions", f"{ours}.embeddings.position"),
        *_attention(f"{hub}.layers.*.self_attn", f"{ours}.layers.*.attention"),
        rename(f"{hub}.layers.*.fc1", f"{ours}.layers.*.feed_forward.up"),
        rename(f"{hub}.layers.*.fc2", f"{ours}.layers.*.feed_forward.down"),
        rename(f"{hub}.layers.*.final_layer_norm", f"{ours}.layers.*.feed_forward_norm"),
    ]


def _attention(hub: str, ours: str) -> list:
    return [
        rename(f"{hub}.q_proj", f"{ours}.query"),
        rename(f"{hub}.k_proj", f"{ours}.key"),
        rename(f"{hub}.v_proj", f"{ours}.value"),
        rename(f"{hub}.out_proj", f"{ours}.output"),
        rename(f"{hub}_layer_norm", f"{ours}_norm"),
    ]


BODY = [
    rename("shared", "embedding"),
    *_stack("encoder"),
    *_stack("decoder"),
    *_attention("decoder.layers.*.encoder_attn", "decoder.layers.*.cross_attention"),
]

register_names("ScratchTransformerModel", BODY, base_model_prefix="model")

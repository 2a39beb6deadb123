"""The weights of GPT-2: HuggingFace's names and ours. Paths not listed are the same."""

from scratch_models.hub.mapping import Row, register_names, rename, transpose, transpose_and_split

ATTENTION = "layers.*.attention"

BODY: list[Row] = [
    rename("wte", "token"),
    rename("wpe", "position"),
    rename("h.*.ln_1", "layers.*.attention_norm"),
    transpose_and_split(
        "h.*.attn.c_attn", [f"{ATTENTION}.{name}" for name in ("query", "key", "value")]
    ),
    transpose("h.*.attn.c_proj", f"{ATTENTION}.output"),
    rename("h.*.ln_2", "layers.*.feed_forward_norm"),
    transpose("h.*.mlp.c_fc", "layers.*.feed_forward.up"),
    transpose("h.*.mlp.c_proj", "layers.*.feed_forward.down"),
    rename("ln_f", "norm"),
]

register_names("ScratchGPT2Model", BODY, base_model_prefix="transformer")

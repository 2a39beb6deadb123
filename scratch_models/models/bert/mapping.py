"""The weights of BERT: HuggingFace's names and ours. Paths not listed are the same."""

from scratch_models.hub.mapping import register_names, rename

BODY = [
    rename("embeddings.word_embeddings", "embeddings.token"),
    rename("embeddings.position_embeddings", "embeddings.position"),
    rename("embeddings.token_type_embeddings", "embeddings.segment"),
    rename("embeddings.LayerNorm", "embeddings.norm"),
    rename("encoder.layer.*.attention.self.query", "layers.*.attention.query"),
    rename("encoder.layer.*.attention.self.key", "layers.*.attention.key"),
    rename("encoder.layer.*.attention.self.value", "layers.*.attention.value"),
    rename("encoder.layer.*.attention.output.dense", "layers.*.attention.output"),
    rename("encoder.layer.*.attention.output.LayerNorm", "layers.*.attention_norm"),
    rename("encoder.layer.*.intermediate.dense", "layers.*.feed_forward.up"),
    rename("encoder.layer.*.output.dense", "layers.*.feed_forward.down"),
    rename("encoder.layer.*.output.LayerNorm", "layers.*.feed_forward_norm"),
]

MASKED_LM_HEAD = [
    rename("cls.predictions.transform.dense", "masked_lm_head.dense"),
    rename("cls.predictions.transform.LayerNorm", "masked_lm_head.norm"),
    rename("cls.predictions.decoder", "masked_lm_head.decoder"),
    rename("cls.predictions.bias", "masked_lm_head.bias"),
]

NEXT_SENTENCE_HEAD = [rename("cls.seq_relationship", "next_sentence_head")]

register_names("ScratchBertModel", BODY, base_model_prefix="bert")
register_names("ScratchBertForMaskedLM", MASKED_LM_HEAD)
register_names("ScratchBertForPreTraining", MASKED_LM_HEAD + NEXT_SENTENCE_HEAD)

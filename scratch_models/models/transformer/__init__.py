"""The Transformer of Vaswani et al. 2017, as Marian's translation models have it."""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="marian",
    title="Transformer",
    paper="Vaswani et al. 2017, arXiv:1706.03762",
    classes={
        "model": "ScratchTransformerModel",
        "seq2seq-lm": "ScratchTransformerForConditionalGeneration",
    },
    exports=(
        "ScaledTokenPositionEmbeddings",
        "ScratchTransformerDecoder",
        "ScratchTransformerEncoder",
        "ScratchTransformerPreTrainedModel",
    ),
    reference="Helsinki-NLP/opus-mt-en-zh",
    reference_config={
        "vocab_size": 65001,
        "d_model": 512,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 2048,
        "decoder_ffn_dim": 2048,
        "activation_function": "swish",
        "max_position_embeddings": 512,
        "scale_embedding": True,
        "pad_token_id": 65000,
        "decoder_start_token_id": 65000,
    },
)

"""The Transformer: an encoder and a decoder of attention only (arXiv:1706.03762).

Built from `scratch_models.layers` after HuggingFace's `MarianConfig`; equal to HuggingFace's
`MarianModel` and `MarianMTModel` in every value and gradient, and reads the opus-mt checkpoints.

| part | of the paper |
|---|---|
| encoder and decoder stacks, residuals, post-norm | §3.1, figure 1; dropout §5.4 |
| attention: encoder's, masked, encoder-decoder | §3.2 |
| feed-forward | §3.3 |
| embeddings, times sqrt(d_model), and the tied output matrix | §3.4 |
| sinusoidal positions | §3.5 |

Where Marian's checkpoints differ from the paper: positions hold all sines before all cosines (the
paper interleaves them), the activation is mostly swish (the paper's is ReLU) and the output has a
bias (`final_logits_bias`). `scratch_models.models.paper_transformer` has the paper's own layout.

Unlike HuggingFace's, sequences may be longer than `config.max_position_embeddings`: positions
beyond it follow from the formula. A model may well be worse there: it was not trained on them.
"""

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
        "stacks.ScaledTokenPositionEmbeddings",
        "stacks.ScratchTransformerDecoder",
        "stacks.ScratchTransformerEncoder",
        "stacks.ScratchTransformerPreTrainedModel",
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

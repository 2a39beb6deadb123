"""The Transformer of Vaswani et al. 2017 in the paper's own layout, to be trained from scratch."""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="scratch_paper_transformer",
    title="Transformer (the paper's layout)",
    paper="Vaswani et al. 2017, arXiv:1706.03762",
    classes={
        "model": "ScratchPaperTransformerModel",
        "seq2seq-lm": "ScratchPaperTransformerForConditionalGeneration",
    },
    exports=(
        "ScratchPaperTransformerConfig",
        "ScratchPaperTransformerDecoder",
        "ScratchPaperTransformerEncoder",
        "to_marian",
    ),
)

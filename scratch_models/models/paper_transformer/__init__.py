"""The Transformer as the paper has it (arXiv:1706.03762), to be trained from scratch.

What differs from `scratch_models.models.transformer`, which reads Marian's checkpoints:

| | here | of the paper |
|---|---|---|
| positions | sines and cosines take turns | §3.5 |
| sizes by default | the base model's | table 3 |
| loss in training | label smoothing 0.1 | §5.4 |

The two layouts compute the same function with the dimensions of d_model in another order:
`to_marian` reorders the weights, and what comes out is an ordinary Marian checkpoint. HuggingFace
has no model of this layout; the model type is our own, so that nothing takes one for the other.
The paper's learning rate is `toolkit.training.schedules.noam_learning_rate` (§5.3).

Not said in the paper, chosen here: normally distributed fresh weights (`init_std`), token 0 for
padding and as what the decoder starts from, token 1 for the end.
"""

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

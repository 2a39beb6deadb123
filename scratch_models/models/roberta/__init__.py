"""RoBERTa: BERT trained longer on more text, without segments (Liu et al. 2019, arXiv:1907.11692).

| part | where |
|---|---|
| encoder | BERT's, §2.1 |
| masked language model | BERT's head, §4.1; no next sentence prediction, §4.2 |
| classifier | one more layer on the first token instead of BERT's pooler |

Where the checkpoints differ from the paper: they count positions from `pad_token_id + 1`, an
accident of their first implementation, so that 514 positions are room for 512 tokens; and padding
is told from the token ids, not from the attention mask.
"""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="roberta",
    title="RoBERTa",
    paper="Liu et al. 2019, arXiv:1907.11692",
    classes={
        "model": "ScratchRobertaModel",
        "masked-lm": "ScratchRobertaForMaskedLM",
        "sequence-classification": "ScratchRobertaForSequenceClassification",
        "token-classification": "ScratchRobertaForTokenClassification",
        "question-answering": "ScratchRobertaForQuestionAnswering",
    },
    exports=(
        "FirstTokenClassifier",
        "RobertaMaskedLMHead",
        "RobertaPositions",
        "ScratchRobertaPreTrainedModel",
    ),
    reference="FacebookAI/roberta-base",
    reference_config={"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
)

"""BERT: the bidirectional Transformer encoder of Devlin et al. 2018."""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="bert",
    title="BERT",
    paper="Devlin et al. 2018, arXiv:1810.04805",
    classes={
        "model": "ScratchBertModel",
        "pretraining": "ScratchBertForPreTraining",
        "masked-lm": "ScratchBertForMaskedLM",
        "sequence-classification": "ScratchBertForSequenceClassification",
        "token-classification": "ScratchBertForTokenClassification",
        "question-answering": "ScratchBertForQuestionAnswering",
    },
    exports=("MaskedLMHead", "Pooler", "ScratchBertPreTrainedModel"),
    reference="google-bert/bert-base-chinese",
    reference_config={"vocab_size": 21128},
)

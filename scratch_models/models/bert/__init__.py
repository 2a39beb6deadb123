"""BERT: the bidirectional Transformer encoder of Devlin et al. 2018 (arXiv:1810.04805).

| part | where |
|---|---|
| input: token + segment + position embeddings | §3, figure 2 |
| encoder: attention, post-norm, GELU | §3, "Model Architecture"; appendix A.2 |
| pooler, dense layer and tanh on the first token | "the final hidden vector C" of §3 |
| masked language model | §3.1, task #1 |
| next sentence prediction | §3.1, task #2 |
| sequence classification | §4.1, figure 4 (a) and (b) |
| question answering, one score for start and one for end | §4.2, figure 4 (c) |
| token classification | §5.3, figure 4 (d) |

Where the checkpoints differ from the paper, or say what it leaves open:

- C is not the encoder's output for the first token: a dense layer and tanh come after it, trained
  with next sentence prediction. The heads for tokens and for answers do without it.
- The head for masked tokens has a dense layer, GELU and a layer norm before the decoder; the
  decoder's matrix is the token embedding and it has a bias for every vocabulary entry.
- The embeddings go through a layer norm and dropout before the first layer; every layer norm's
  epsilon is 1e-12.
- Dropout of 0.1 "on all layers" (A.2) is on the attention weights too.
- Classifiers have a bias beside W (§4.1), the scores of start and end one beside S and E (§4.2).
- Positions are learned, 512 of them: longer texts have none.
"""

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

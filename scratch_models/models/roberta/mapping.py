"""The weights of RoBERTa: BERT's names, but for the heads."""

from scratch_models.hub.mapping import register_names, rename
from scratch_models.models.bert.mapping import BODY

MASKED_LM_HEAD = [
    rename("lm_head.dense", "masked_lm_head.dense"),
    rename("lm_head.layer_norm", "masked_lm_head.norm"),
    rename("lm_head.decoder", "masked_lm_head.decoder"),
    rename("lm_head.bias", "masked_lm_head.bias"),
]

CLASSIFIER = [rename("classifier.out_proj", "classifier.output")]

register_names("ScratchRobertaModel", BODY, base_model_prefix="roberta")
register_names("ScratchRobertaForMaskedLM", MASKED_LM_HEAD)
register_names("ScratchRobertaForSequenceClassification", CLASSIFIER)

"""GPT-2: the Transformer decoder of Radford et al. 2019 that continues texts."""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="gpt2",
    title="GPT-2",
    paper="Radford et al. 2019, Language Models are Unsupervised Multitask Learners",
    classes={
        "model": "ScratchGPT2Model",
        "causal-lm": "ScratchGPT2LMHeadModel",
        "sequence-classification": "ScratchGPT2ForSequenceClassification",
        "token-classification": "ScratchGPT2ForTokenClassification",
    },
    exports=("ScratchGPT2PreTrainedModel", "UpcastCausalSelfAttention"),
    reference="openai-community/gpt2",
)

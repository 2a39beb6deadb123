"""GPT-2: a Transformer decoder without encoder that continues texts (Radford et al. 2019).

| part | where |
|---|---|
| decoder with masked self-attention, learned positions, GELU | Radford et al. 2018, "Improving \
Language Understanding by Generative Pre-Training", §3.1 and §4.1, which GPT-2 follows |
| norm before each sublayer and one more after the last layer | Radford et al. 2019, "Language \
Models are Unsupervised Multitask Learners", §2.3 |
| residual layers scaled by 1 / sqrt(N) at initialisation | 2019, §2.3; N is twice the layers |
| head: the token embedding, transposed | 2018, §3.1 |
| classifying by the last token | 2018, §3.2 |

Where the checkpoints differ from what one would write: weights lie as [inputs, outputs], with
query, key and value side by side in one; GELU is its tanh approximation (`gelu_new`); the matrix of
the head is not stored; names carry no prefix; token types, where given, are looked up among the
tokens. The paper counts 117M parameters for the smallest model; it has 124M.
"""

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

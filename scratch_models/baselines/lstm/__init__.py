"""A bidirectional LSTM classifier: what texts were classified with before Transformers."""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="scratch_lstm",
    title="LSTM classifier",
    paper="Hochreiter and Schmidhuber 1997; pooling of Conneau et al. 2017, arXiv:1705.02364",
    classes={"sequence-classification": "ScratchLSTMForSequenceClassification"},
    exports=("ScratchLSTMConfig",),
)

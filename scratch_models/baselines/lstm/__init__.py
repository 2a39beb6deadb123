"""A bidirectional LSTM classifier: what texts were classified with before Transformers.

Where each part comes from:

- the memory cell with input and output gates: Hochreiter and Schmidhuber 1997, "Long Short-Term
  Memory", §4; its forget gate, which torch's LSTM has: Gers, Schmidhuber and Cummins 2000,
  "Learning to Forget";
- one LSTM a direction, their states side by side: Schuster and Paliwal 1997, "Bidirectional
  Recurrent Neural Networks", with LSTM cells in Graves and Schmidhuber 2005;
- the largest (or the mean) value of each feature over time: Conneau et al. 2017,
  arXiv:1705.02364, §3.2.2.

Where it differs from that last paper: token embeddings are learnt here, not taken from GloVe, and
one linear layer classifies the pooled text instead of a pair of sentences. HuggingFace has no such
model: checkpoints are in our own format and read by this package only.
"""

from scratch_models.hub.architecture import Architecture

ARCHITECTURE = Architecture(
    model_type="scratch_lstm",
    title="LSTM classifier",
    paper="Hochreiter and Schmidhuber 1997; pooling of Conneau et al. 2017, arXiv:1705.02364",
    classes={"sequence-classification": "ScratchLSTMForSequenceClassification"},
    exports=("ScratchLSTMConfig",),
)

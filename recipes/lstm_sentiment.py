"""The recurrent baseline: a bidirectional LSTM from random weights.

accelerate launch recipes/lstm_sentiment.py --preset demo
"""

from dataclasses import dataclass

from scratch_models import ScratchLSTMConfig, ScratchLSTMForSequenceClassification
from toolkit.classification import train_classifier
from toolkit.config import Invocation, RunConfig, check_range
from toolkit.data.collate import ClassificationCollator
from toolkit.data.config import TextDataConfig
from toolkit.data.text_classification import tokenize
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.entry import run_recipe
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Classification
from toolkit.outcome import describe_model, finish_classification
from toolkit.run import start_run


@dataclass
class Config(TextDataConfig, RunConfig):
    """What to train on, and the size of the network."""

    max_length: int = 256
    """Longer texts are cut to this many tokens, special tokens included."""
    vocabulary: int = 8000
    """Word pieces, learned from the training texts."""
    embedding_size: int = 128
    """Width of the token embedding."""
    hidden_size: int = 128
    """Width of each of the two directions."""
    layers: int = 1
    """LSTM layers."""
    dropout: float = 0.5
    """Dropout of embeddings and of the pooled vector."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "lstm_sentiment")
    config = run.config
    check_range("dropout", config.dropout, 0, 1)
    for name in ("embedding_size", "hidden_size", "layers"):
        check_range(name, getattr(config, name), 1, 65536)
    data = config.load_single_texts()
    run.record_data(data.summary)

    tokenizer = train_wordpiece(data.train["text"], config.vocabulary)
    data = tokenize(data, tokenizer, config.max_length)
    model = ScratchLSTMForSequenceClassification(
        ScratchLSTMConfig(
            vocab_size=len(tokenizer),
            embedding_size=config.embedding_size,
            hidden_size=config.hidden_size,
            num_layers=config.layers,
            dropout=config.dropout,
            pad_token_id=tokenizer.pad_token_id,
            id2label=dict(enumerate(data.label_names)),
            label2id={name: index for index, name in enumerate(data.label_names)},
        )
    )
    described = describe_model(model, "LSTM", "scratch", "from_scratch")

    outcome = train_classifier(
        run, model, data, described, tokenizer,
        objective=Classification(), collate=ClassificationCollator(tokenizer),
        metric=ClassificationMetric(len(data.label_names)),
    )  # fmt: skip
    finish_classification(run, data, outcome)


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

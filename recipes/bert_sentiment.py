"""Fine-tune a Chinese BERT on sentiment.

The real task: accelerate launch recipes/bert_sentiment.py
Offline, minutes on a laptop: accelerate launch recipes/bert_sentiment.py --preset demo
Your own reviews: accelerate launch recipes/bert_sentiment.py --dataset reviews.csv --method lora
"""

from dataclasses import dataclass, field

from toolkit.classification import fit_classifier_on_features, train_classifier
from toolkit.config import Invocation, RunConfig
from toolkit.data.collate import ClassificationCollator
from toolkit.data.config import TextDataConfig
from toolkit.data.text_classification import tokenize
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.entry import run_recipe
from toolkit.evaluation import ClassificationMetric
from toolkit.fine_tuning import FineTuningConfig, Method
from toolkit.loss_config import ClassificationLossConfig
from toolkit.modeling import BertShape, load_tokenizer, new_bert
from toolkit.outcome import describe_model, finish_classification
from toolkit.run import start_run
from toolkit.unused_settings import say_unused


@dataclass
class Config(TextDataConfig, FineTuningConfig, ClassificationLossConfig, RunConfig):
    """What to train on what. The defaults are the usual setting on ChnSentiCorp."""

    model: str = "google-bert/bert-base-chinese"
    """Hub name, model folder, or demo:chinese-bert; not used by --method from_scratch."""
    dataset: str = "lansinuote/ChnSentiCorp"
    """Hub name, file (csv, tsv, json, jsonl, parquet), folder of splits, or demo:reviews."""
    max_length: int = 256
    """Longer texts are cut to this many tokens, special tokens included."""
    method: Method = "full"
    """Train all weights; train LoRA or DoRA updates; keep the encoder and fit logistic regression
    on its mean-pooled features; or train a small BERT from random weights."""
    shape: BertShape = field(default_factory=BertShape)
    """For --method from_scratch."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "bert_sentiment")
    config = run.config
    say_unused(run, config.method, trains=config.method != "frozen")
    data = config.load_data()
    run.record_data(data.summary)

    # Tokenizer and model: pretrained, or both made from the training texts alone.
    new_modules: list[str] = []
    if config.method == "from_scratch":
        name = "small BERT"
        tokenizer = train_wordpiece(data.training_texts(), config.shape.vocabulary)
        model = new_bert(
            config.shape, tokenizer, "sequence-classification", config.implementation,
            data.label_names,
        )  # fmt: skip
    else:
        name = config.model
        tokenizer = load_tokenizer(name)
        head = "model" if config.method == "frozen" else "sequence-classification"
        model, new_modules = config.load(
            name, head, label_names=data.label_names, tokenizer=tokenizer
        )
    data = tokenize(data, tokenizer, input_limit(config.max_length, tokenizer, model.config))
    collate = ClassificationCollator(tokenizer)
    if config.method != "frozen":  # which trains no part of the encoder
        model = config.choose_trained(model, config.method, new_modules)
    described = describe_model(model, name, config.implementation, config.method)

    # Train; the best checkpoint on validation is tested once.
    if config.method == "frozen":
        outcome = fit_classifier_on_features(
            run, model, data, described, tokenizer, collate=collate
        )
    else:
        outcome = train_classifier(
            run, model, data, described, tokenizer,
            objective=config.classification(data), collate=collate,
            metric=ClassificationMetric(len(data.label_names)),
        )  # fmt: skip
    finish_classification(run, data, outcome)


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

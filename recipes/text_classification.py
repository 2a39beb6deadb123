"""Label your own texts, or pairs of texts, with any model that classifies.

    accelerate launch recipes/text_classification.py --dataset tickets.csv --method lora
    accelerate launch recipes/text_classification.py --dataset nli.csv --text_column premise
        --pair_column hypothesis --model FacebookAI/roberta-base

tickets.csv has the columns text and label, in any language; a file with other names says which.
Models of an architecture that is not written here: --implementation hf. Offline, a minute on a
laptop: --preset demo
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
    """What to train on what."""

    model: str = "google-bert/bert-base-multilingual-cased"
    """Hub name or model folder, encoder or decoder; not used by --method from_scratch."""
    max_length: int = 256
    """Longer texts are cut to this many tokens, special tokens included; of a pair the longer text
    first."""
    method: Method = "full"
    """Train all weights; train LoRA or DoRA updates; keep the model and fit logistic regression on
    its mean-pooled features; or train a small BERT from random weights."""
    shape: BertShape = field(default_factory=BertShape)
    """For --method from_scratch."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "text_classification")
    config = run.config
    say_unused(run, config.method, trains=config.method != "frozen")
    data = config.load_data()
    run.record_data(data.summary)

    # A pretrained model brings its tokenizer; a new one learns its words from the training texts.
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
        if config.method != "frozen":  # which trains no part of the model
            model = config.choose_trained(model, config.method, new_modules)
    described = describe_model(model, name, config.implementation, config.method)
    data = tokenize(data, tokenizer, input_limit(config.max_length, tokenizer, model.config))
    collate = ClassificationCollator(tokenizer)

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

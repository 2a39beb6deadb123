"""Fine-tune a Chinese BERT on sentiment.

The real task: accelerate launch recipes/bert_sentiment.py
Offline, minutes on a laptop: accelerate launch recipes/bert_sentiment.py --preset demo
Your own reviews: accelerate launch recipes/bert_sentiment.py --dataset reviews.csv --method lora
"""

from dataclasses import dataclass, field
from typing import Literal

from toolkit.adapters import LoraSettings, add_lora, merge, save_adapter
from toolkit.config import Invocation, RunConfig
from toolkit.data.collate import ClassificationCollator
from toolkit.data.config import TextDataConfig
from toolkit.data.text_classification import tokenize
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.engine import fit
from toolkit.entry import run_recipe
from toolkit.evaluation import ClassificationMetric
from toolkit.frozen import fit_frozen
from toolkit.modeling import BertShape, freeze_lowest, load_pretrained, load_tokenizer, new_bert
from toolkit.objectives import Classification
from toolkit.outcome import (
    Outcome,
    describe_model,
    describe_training,
    finish_classification,
    save_model,
    score_splits,
)
from toolkit.run import start_run


@dataclass
class Config(TextDataConfig, RunConfig):
    """What to train on what. The defaults are the published setting on ChnSentiCorp."""

    model: str = "google-bert/bert-base-chinese"
    """Hub name, model folder, or demo:chinese-bert; not used by --method from_scratch."""
    implementation: Literal["scratch", "hf"] = "scratch"
    """Our own classes, or HuggingFace's: the same results, another speed."""
    dataset: str = "lansinuote/ChnSentiCorp"
    """Hub name, file (csv, tsv, json, jsonl, parquet), folder of splits, or demo:reviews."""
    max_length: int = 256
    """Longer texts are cut to this many tokens, special tokens included."""
    method: Literal["full", "lora", "frozen", "from_scratch"] = "full"
    """Train all weights; train LoRA updates; keep the encoder and fit logistic regression on its
    mean-pooled features; or train a small BERT from random weights."""
    dropout: float | None = None
    """Dropout of a pretrained model's hidden states and attention; null: its own."""
    freeze_layers: int | None = None
    """For --method full: leave the embeddings and the lowest so many layers as they are."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """For --method lora."""
    shape: BertShape = field(default_factory=BertShape)
    """For --method from_scratch."""
    allow_missing_weights: bool = False
    """Go on when a checkpoint lacks weights that are not the task's own."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "bert_sentiment")
    config = run.config
    data = config.load_data()

    # Tokenizer and model: pretrained, or both made from the training texts alone.
    new_modules: list[str] = []
    if config.method == "from_scratch":
        name = "small BERT"
        tokenizer = train_wordpiece(data.train["text"], config.shape.vocabulary)
        model = new_bert(
            config.shape, tokenizer, "sequence-classification", config.implementation,
            data.label_names,
        )  # fmt: skip
    else:
        name = config.model
        tokenizer = load_tokenizer(name)
        head = "model" if config.method == "frozen" else "sequence-classification"
        model, new_modules = load_pretrained(
            name, head, implementation=config.implementation, label_names=data.label_names,
            dropout=config.dropout, allow_missing_weights=config.allow_missing_weights,
            tokenizer=tokenizer,
        )  # fmt: skip
    data = tokenize(data, tokenizer, input_limit(config.max_length, tokenizer, model.config))
    collate = ClassificationCollator(tokenizer)
    if config.freeze_layers is not None and config.method == "full":
        freeze_lowest(model, config.freeze_layers)
    if config.method == "lora":
        model = add_lora(model, config.lora, new_modules)
    described = describe_model(model, name, config.implementation, config.method)

    # Train; the best checkpoint on validation is tested once.
    if config.method == "frozen":
        frozen = fit_frozen(run, model, data, collate)
        frozen.save(run, model, tokenizer)
        training, scores = frozen.training, frozen.scores
        described |= frozen.parameters(model)
    else:
        objective = Classification()
        metric = ClassificationMetric(len(data.label_names))
        result = fit(run, model, data, objective=objective, collate=collate, metric=metric)
        training = describe_training(result)
        scores = score_splits(run, result, data, objective, collate)
        trained = result.model
        if config.method == "lora":
            save_adapter(run, trained, tokenizer)
            trained = merge(trained)
        save_model(run, trained, tokenizer)

    title = config.title or f"{name}, {config.method}"
    finish_classification(run, data, Outcome(title, described, training, scores))


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

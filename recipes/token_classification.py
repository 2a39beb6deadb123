"""Find entities in texts: one tag for every token.

Offline, minutes on a laptop: accelerate launch recipes/token_classification.py --preset demo
Weibo NER: accelerate launch recipes/token_classification.py --preset weibo --dataset FOLDER
Your own CoNLL file: accelerate launch recipes/token_classification.py --dataset entities.conll
"""

from dataclasses import dataclass, field
from typing import Literal

from toolkit.adapters import LoraSettings, add_lora, merge, save_adapter
from toolkit.config import Invocation, RunConfig
from toolkit.data.tagging_config import TaggingDataConfig
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.data.word_windows import TaggingCollator, tokenize_words
from toolkit.engine import fit
from toolkit.entry import run_recipe
from toolkit.freezing import freeze_encoder
from toolkit.modeling import BertShape, freeze_lowest, load_pretrained, load_tokenizer, new_bert
from toolkit.outcome import describe_model, save_model
from toolkit.run import start_run
from toolkit.tagging import EntityMetric, SentenceTags, TokenClassification, finish_tagging


@dataclass
class Config(TaggingDataConfig, RunConfig):
    """What to train on what."""

    model: str = "google-bert/bert-base-chinese"
    """Hub name, model folder, or demo:chinese-bert; not used by --method from_scratch."""
    implementation: Literal["scratch", "hf"] = "scratch"
    """Our own classes, or HuggingFace's: the same results, another speed."""
    max_length: int = 256
    """Tokens the model reads at once; longer sentences are read in windows that overlap."""
    overlap: int = 64
    """Tokens that neighbouring windows share."""
    unknown_share: float = 0.0
    """Share of the tokens that training shows as unknown, so that the model goes by what stands
    around a name it has never seen."""
    method: Literal["full", "lora", "frozen", "from_scratch"] = "full"
    """Train all weights; train LoRA updates; train the classifier alone; or train a small BERT from
    random weights, its vocabulary from the training sentences."""
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
    run = start_run(invocation, "token_classification")
    config = run.config
    data = config.load_data()

    head = "token-classification"
    new_modules: list[str] = []
    if config.method == "from_scratch":
        name = "small BERT"
        texts = [" ".join(tokens) for tokens in data.train["tokens"]]
        tokenizer = train_wordpiece(texts, config.shape.vocabulary)
        model = new_bert(config.shape, tokenizer, head, config.implementation, data.label_names)
    else:
        name = config.model
        tokenizer = load_tokenizer(name)
        model, new_modules = load_pretrained(
            name, head, implementation=config.implementation, label_names=data.label_names,
            dropout=config.dropout, allow_missing_weights=config.allow_missing_weights,
        )  # fmt: skip
    if config.method == "frozen":
        freeze_encoder(model)
    elif config.method == "lora":
        model = add_lora(model, config.lora, new_modules)
    elif config.method == "full" and config.freeze_layers is not None:
        freeze_lowest(model, config.freeze_layers)
    described = describe_model(model, name, config.implementation, config.method)

    limit = input_limit(config.max_length, tokenizer, model.config)
    data, windows = tokenize_words(data, tokenizer, limit, config.overlap)
    objective, collate = TokenClassification(windows.longest), TaggingCollator(tokenizer)
    collate_training = TaggingCollator(tokenizer, config.unknown_share, config.seed)
    # Training sees windows; what counts is how many entities of whole sentences are found.
    metric = EntityMetric(SentenceTags(data.validation, windows.validation, data.label_names))
    result = fit(
        run, model, windows, objective=objective, collate=collate_training, metric=metric,
        collate_validation=collate,
    )  # fmt: skip

    trained = result.model
    if config.method == "lora":
        save_adapter(run, trained, tokenizer)
        trained = merge(trained)
    save_model(run, trained, tokenizer)
    finish_tagging(
        run, result, data, windows, objective=objective, collate=collate,
        title=config.title or f"{name}, {config.method}", model=described,
    )  # fmt: skip


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

"""Find entities in texts: one tag for every token.

Offline, minutes on a laptop: accelerate launch recipes/token_classification.py --preset demo
Weibo NER: accelerate launch recipes/token_classification.py --preset weibo --dataset FOLDER
Your own CoNLL file: accelerate launch recipes/token_classification.py --dataset entities.conll
"""

from dataclasses import dataclass, field

from toolkit.config import Invocation, RunConfig
from toolkit.data.tagging_config import TaggingDataConfig
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.data.word_windows import TaggingCollator, tokenize_words
from toolkit.entry import run_recipe
from toolkit.fine_tuning import FineTuningConfig, Method, save_trained
from toolkit.modeling import BertShape, load_tokenizer, new_bert
from toolkit.outcome import describe_model
from toolkit.run import start_run
from toolkit.tagging import EntityMetric, SentenceTags, TokenClassification
from toolkit.tagging_outcome import finish_tagging
from toolkit.training.engine import fit
from toolkit.unused_settings import say_unused


@dataclass
class Config(TaggingDataConfig, FineTuningConfig, RunConfig):
    """What to train on what."""

    model: str = "google-bert/bert-base-chinese"
    """Hub name, model folder, or demo:chinese-bert; not used by --method from_scratch."""
    max_length: int = 256
    """Tokens the model reads at once; longer sentences are read in windows that overlap."""
    overlap: int = 64
    """Tokens that neighbouring windows share."""
    unknown_share: float = 0.0
    """Share of the tokens that training shows as unknown, so that the model goes by what stands
    around a name it has never seen."""
    label_smoothing: float = 0.0
    """Share of every label that is spread over all tags."""
    method: Method = "full"
    """Train all weights; train LoRA or DoRA updates; train the classifier alone; or train a small
    BERT from random weights, its vocabulary from the training sentences."""
    shape: BertShape = field(default_factory=BertShape)
    """For --method from_scratch."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "token_classification")
    config = run.config
    say_unused(run, config.method)
    data = config.load_data()
    run.record_data(data.summary)

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
        model, new_modules = config.load(name, head, label_names=data.label_names)
    model = config.choose_trained(model, config.method, new_modules)
    described = describe_model(model, name, config.implementation, config.method)

    limit = input_limit(config.max_length, tokenizer, model.config)
    data, windows = tokenize_words(data, tokenizer, limit, config.overlap)
    objective = TokenClassification(windows.longest, config.label_smoothing)
    collate = TaggingCollator(tokenizer)
    collate_training = TaggingCollator(tokenizer, config.unknown_share, config.seed)
    # Training sees windows; what counts is how many entities of whole sentences are found.
    metric = EntityMetric(SentenceTags(data.validation, windows.validation, data.label_names))
    result = fit(
        run, model, windows, objective=objective, collate=collate_training, metric=metric,
        collate_validation=collate,
    )  # fmt: skip

    save_trained(run, result.model, tokenizer)
    finish_tagging(
        run, result, data, windows, objective=objective, collate=collate,
        title=config.title or f"{name}, {config.method}", model=described,
    )  # fmt: skip


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

"""Pretrain a BERT: masked tokens and next sentence, as in the paper.

A small one on embedded reviews: accelerate launch recipes/bert_pretraining.py --preset demo
Your own texts, one per line: accelerate launch recipes/bert_pretraining.py --dataset texts.txt
"""

from dataclasses import dataclass, field
from typing import Literal

from toolkit.config import Invocation, RunConfig
from toolkit.data.encoding import text_encoding
from toolkit.data.pretraining import PretrainingCollator, tokenize_documents
from toolkit.data.texts import load_texts
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.entry import run_recipe
from toolkit.evaluation import PretrainingMetric, predict
from toolkit.modeling import BertShape, load_pretrained, load_tokenizer, new_bert
from toolkit.objectives import Pretraining
from toolkit.outcome import describe_model, save_model
from toolkit.pretraining import PretrainingData, finish_pretraining
from toolkit.run import start_run
from toolkit.training.engine import fit


@dataclass
class Config(RunConfig):
    """What to learn from, and how large a model."""

    dataset: str = "demo:reviews"
    """Text file (one text per line), table with a text column, Hub name, or demo:reviews."""
    encoding: str | None = None
    """Encoding of text files, such as big5; null: told from the bytes (UTF-8, UTF-16 with its mark,
    GB18030)."""
    text_column: str | None = None
    """Column with the text; null: found by its name."""
    validation_size: int | None = None
    """Texts to hold out; null: a tenth."""
    model: str | None = None
    """Checkpoint to go on from (folder, Hub name); null: random weights of --shape."""
    tokenizer: str | None = None
    """Tokenizer (folder, Hub name); null: the checkpoint's, or one learned from the texts."""
    implementation: Literal["scratch", "hf"] = "scratch"
    """Our own classes, or HuggingFace's."""
    shape: BertShape = field(default_factory=BertShape)
    """Size of a new model."""
    max_length: int = 128
    """Tokens of a sentence pair, special tokens included."""
    mask_share: float = 0.15
    """Share of tokens to predict; of these 80 % become [MASK], 10 % a random token, 10 % stay."""


def main(invocation: Invocation[Config]) -> None:
    """Texts, tokenizer, model, training, result: in this order."""
    run = start_run(invocation, "bert_pretraining")
    config = run.config
    with text_encoding(config.encoding):
        texts = load_texts(
            config.dataset, text_column=config.text_column, validation_size=config.validation_size
        )
    run.record_data(texts.summary)

    source = config.tokenizer or config.model
    if source is not None:
        tokenizer = load_tokenizer(source)
    else:
        tokenizer = train_wordpiece(texts.train, config.shape.vocabulary)
    if config.model is not None:
        model = load_pretrained(
            config.model, "pretraining", implementation=config.implementation
        ).model
    else:
        model = new_bert(config.shape, tokenizer, "pretraining", config.implementation)
    described = describe_model(
        model, config.model or "new BERT", config.implementation, "pretraining"
    )

    limit = input_limit(config.max_length, tokenizer, model.config)
    data = PretrainingData(
        train=tokenize_documents(texts.train, tokenizer, limit),
        validation=tokenize_documents(texts.validation, tokenizer, limit),
        texts=texts.validation,
        summary=texts.summary,
    )
    # Wrong next sentences are drawn from the documents of the same split. Validation has a seed of
    # its own, so that runs with other seeds are asked the same.
    collate, collate_validation = (
        PretrainingCollator(tokenizer, rows, limit, seed, config.mask_share)
        for rows, seed in ((data.train, config.seed), (data.validation, 0))
    )
    objective = Pretraining()
    result = fit(
        run, model, data, objective=objective, collate=collate,
        collate_validation=collate_validation, metric=PretrainingMetric(),
    )  # fmt: skip

    outputs = result.validation or predict(
        result.model, data.validation, compute=objective.outputs, collate=collate_validation,
        accelerator=run.accelerator, batch_size=config.train.eval_batch_size,
    )  # fmt: skip
    save_model(run, result.model, tokenizer)
    finish_pretraining(
        run, result, data, outputs, collate=collate_validation,
        title=config.title or "BERT pretraining", model=described,
    )  # fmt: skip


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

"""Train a Transformer to translate, from random weights or from a pretrained Marian, mBART or T5.

Dates and numbers, English to Chinese, offline in minutes:
    accelerate launch recipes/translation.py --preset demo
Multi30k, the small published setting:
    accelerate launch recipes/translation.py --preset multi30k --dataset FOLDER
Fine-tuning opus-mt on your own pairs:
    accelerate launch recipes/translation.py --preset full --dataset pairs.tsv
"""

from dataclasses import dataclass, field
from typing import Any

from toolkit.config import Invocation, RunConfig
from toolkit.data.joint_bpe import train_joint_bpe
from toolkit.data.tokenization import input_limit
from toolkit.data.translation_config import TranslationDataConfig
from toolkit.data.translation_tokens import TranslationCollator, tokenize_pairs
from toolkit.entry import run_recipe
from toolkit.fine_tuning import FineTuningConfig, Method
from toolkit.run import start_run
from toolkit.training.averaging import average_if_better, keep_for_average
from toolkit.training.engine import fit
from toolkit.translation import GenerationSettings, Selection, Translation, TranslationMetric
from toolkit.translation_models import (
    TransformerShape,
    Translator,
    decide_method,
    load_translator,
    new_transformer,
    save_translator,
)
from toolkit.translation_outcome import finish_translation, translate_test
from toolkit.untrained import evaluate_untrained


@dataclass
class Config(TranslationDataConfig, FineTuningConfig, RunConfig):
    """What to translate with what."""

    model: str | None = None
    """Checkpoint to fine-tune (folder, Hub name); null: random weights of --shape."""
    method: Method | None = None
    """For a checkpoint: train all weights, LoRA or DoRA updates, or translate with it as it is
    (frozen); null: full where there is a checkpoint, else from_scratch."""
    shape: TransformerShape = field(default_factory=TransformerShape)
    """Size of a new model."""
    lowercase: bool = False
    """Learn the vocabulary of a new model from lower-cased text, and translate into lower case."""
    source_code: str | None = None
    """What a multilingual tokenizer calls the source language (en_XX); null: found by --source."""
    target_code: str | None = None
    """Likewise for the target language."""
    prefix: str | None = None
    """Put before every source ("translate English to German: "); null: the checkpoint's own."""
    max_length: int = 128
    """Longer texts are cut to this many tokens, special tokens included, on either side."""
    label_smoothing: float = 0.1
    """Share of the probability that a label gives to the whole vocabulary."""
    select_by: Selection = "loss"
    """What chooses the best checkpoint on validation; loss needs no translations."""
    translate_validation: int = 200
    """Validation rows to translate at every evaluation, the first ones; 0 leaves it out."""
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    """How translations are searched for."""
    average: int = 0
    """Test the mean of so many last checkpoints instead, where it is better on validation."""
    samples: int = 5
    """Test translations to print in the end."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "translation")
    config = run.config
    method = decide_method(run)
    keep_for_average(run, config.average)
    data = config.load_data()
    run.record_data(data.summary)

    # Model and tokenizer: pretrained, or both made from the training pairs alone.
    if config.model is None:
        texts = [*data.train["source"][:], *data.train["target"][:]]
        tokenizer = train_joint_bpe(texts, config.shape.vocabulary, lowercase=config.lowercase)
        positions = config.generation.longest(config.max_length)
        model = new_transformer(config.shape, tokenizer, config.implementation, positions)
        translator = Translator(model, tokenizer, config.implementation)
    else:
        translator = load_translator(
            config.model, config, (config.source, config.target),
            codes=(config.source_code, config.target_code), prefix=config.prefix,
        )  # fmt: skip
    model, tokenizer = translator.model, translator.tokenizer
    limit = input_limit(config.max_length, tokenizer, model.config)
    data = tokenize_pairs(data, tokenizer, limit, translator.prefix)
    objective = Translation(
        model, config.label_smoothing, config.generation, limit, config.translate_validation
    )
    references = data.validation["target"][: config.translate_validation]
    metric = TranslationMetric(tokenizer, references, config.target, config.select_by)

    # Train; the best weights on validation translate the test set once.
    collate = TranslationCollator(tokenizer)
    task: Any = {"objective": objective, "collate": collate, "metric": metric}
    if method == "frozen":
        result, average = evaluate_untrained(run, model, data, **task), None
    else:
        result = fit(run, config.choose_trained(model, method, []), data, **task)
        result, average = average_if_better(
            run, result, config.average, validation=data.validation, **task
        )
    outputs = translate_test(run, result, data, objective, collate)
    described = translator.describe(result.model, config.model or "Transformer", method)
    save_translator(run, result.model, tokenizer, objective)
    finish_translation(
        run, result, data, outputs, tokenizer, described, average=average, samples=config.samples
    )


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

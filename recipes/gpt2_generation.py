"""Let GPT-2 write: fine-tune it on your texts, or train a small one from random weights.

The real task, WikiText-2: accelerate launch recipes/gpt2_generation.py --preset full
Offline, minutes on a laptop: accelerate launch recipes/gpt2_generation.py --preset demo
Your own texts, one per line: accelerate launch recipes/gpt2_generation.py --dataset texts.txt
"""

from dataclasses import dataclass, field

from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.data.document_config import DocumentDataConfig
from toolkit.data.packing import PackedCollator
from toolkit.data.tokenization import input_limit
from toolkit.entry import run_recipe
from toolkit.fine_tuning import FineTuningConfig, Method, save_trained
from toolkit.gpt2 import HEAD, Gpt2Shape, agree_on_special_tokens, new_gpt2
from toolkit.language_modeling import CausalLanguageModeling, PerplexityMetric, prepare
from toolkit.language_outcome import finish_language_model, score_documents
from toolkit.modeling import load_tokenizer
from toolkit.outcome import describe_model
from toolkit.run import start_run
from toolkit.text_samples import SampleWriter, SamplingSettings
from toolkit.training.engine import fit
from toolkit.untrained import evaluate_untrained
from toolkit.unused_settings import say_unused


@dataclass
class Config(DocumentDataConfig, FineTuningConfig, RunConfig):
    """What to learn from, with which model, and what it is to write while it learns."""

    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(batch_size=8, eval_batch_size=8, learning_rate=5e-5)
    )
    """How to train; a block of 512 tokens has 100 MB of logits in GPT-2's vocabulary."""
    model: str = "openai-community/gpt2"
    """Hub name or model folder; not used by --method from_scratch."""
    method: Method = "full"
    """Train all weights; train LoRA or DoRA updates; measure the model as it is (frozen); or train
    a small GPT-2 from random weights, with a vocabulary of its own."""
    block_size: int = 512
    """Tokens of a block to train on, of a window to measure by, and a new model's positions."""
    stride: int | None = None
    """Tokens by which the window moves on over a document; null: half of it."""
    shape: Gpt2Shape = field(default_factory=Gpt2Shape)
    """For --method from_scratch."""
    samples: SamplingSettings = field(default_factory=SamplingSettings)
    """What the model writes at every evaluation."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "gpt2_generation")
    config = run.config
    say_unused(run, config.method, trains=config.method != "frozen")
    config.samples.check()
    documents = config.load_data()
    run.record_data(documents.summary)

    # Tokenizer and model: pretrained, or both made from the training documents alone.
    if config.method == "from_scratch":
        name = "small GPT-2"
        tokenizer = train_byte_bpe(
            documents.train["text"], config.shape.vocabulary, model_max_length=config.block_size
        )
        model = new_gpt2(config.shape, tokenizer, config.block_size, config.implementation)
    else:
        name = config.model
        tokenizer = load_tokenizer(name)
        model, _ = config.load(name, HEAD)
    agree_on_special_tokens(model, tokenizer)
    limit = input_limit(config.block_size, tokenizer, model.config)
    data = prepare(documents, tokenizer, limit, config.stride)
    collate, objective = PackedCollator(tokenizer.pad_token_id), CausalLanguageModeling()

    # Train; what a pretrained model knew before is measured too.
    before, metric = None, PerplexityMetric()
    if config.method == "frozen":
        result = evaluate_untrained(
            run, model, data, objective=objective, collate=collate, metric=metric
        )
    else:
        if config.method != "from_scratch" and not (config.dry_run or config.lr_finder):
            model = model.to(run.accelerator.device)
            before = score_documents(run, model, data, objective, collate)
        model = config.choose_trained(model, config.method, [])
        result = fit(
            run, model, data, objective=objective, collate=collate, metric=metric,
            after_evaluation=SampleWriter(run, tokenizer, config.samples),
        )  # fmt: skip
    described = describe_model(result.model, name, config.implementation, config.method)

    # The best checkpoint on validation is tested once.
    losses = score_documents(
        run, result.model, data, objective, collate, known={"validation": result.validation}
    )
    save_trained(run, result.model, tokenizer)
    finish_language_model(
        run, result, data, title=config.title or f"{name}, {config.method}", model=described,
        losses=losses, before=before, vocab_size=len(tokenizer),
    )  # fmt: skip


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

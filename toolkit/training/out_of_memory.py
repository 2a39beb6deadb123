"""Say what to do when memory runs out during training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.batching import padded_tokens
from toolkit.config import TrainConfig
from toolkit.errors import UserError, first_line
from toolkit.memory_errors import is_out_of_memory
from toolkit.training.training_steps import Step, Training


@contextmanager
def explain_out_of_memory(training: Training, step: Step) -> Iterator[None]:
    """Around a training step.

    Raises:
        UserError: it ran out of memory; says what was computed and which settings need less.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(_advice(training, step, first_line(error))) from error


def _advice(training: Training, step: Step, problem: str) -> str:
    train = training.run.config.train
    largest = max(step.batches, key=lambda batch: batch[next(iter(batch))].numel())
    rows = len(next(iter(largest.values())))
    tokens = padded_tokens(largest, training.encoder_decoder)
    longest = f", padded to {tokens // rows:,} tokens each" if tokens else ""
    return (
        f"out of memory in step {training.state.step + 1}, whose largest forward pass has {rows} "
        f"rows{longest} ({problem}). Start a new run with {', or '.join(_remedies(train))}."
    )


def _remedies(train: TrainConfig) -> list[str]:
    """The ones that change no result first; those that are in use already are left out."""
    more = f"--train.accumulation_steps {2 * train.accumulation_steps}"
    if train.batch_tokens is None and train.batch_size > 1:
        more = f"--train.batch_size {train.batch_size // 2} {more}"
    remedies = [] if train.auto_batch_size else ["--train.auto_batch_size"]
    if train.batch_tokens is not None or train.batch_size > 1:
        remedies.append(f"{more} (the same global batch)")
    if not train.gradient_checkpointing:
        remedies.append("--train.gradient_checkpointing (slower)")
    if train.mixed_precision is None or train.mixed_precision == "no":
        remedies.append("--train.mixed_precision bf16")
    return [*remedies, "shorter inputs (--max_length)"]

"""Let a language model go on with prompts: what it has learnt, to be read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from toolkit.config import check_range
from toolkit.console import notify
from toolkit.data.tokenization import usable_positions
from toolkit.errors import UserError
from toolkit.run import Run
from toolkit.training.sharding import is_divided, prepare_generation


@dataclass
class SamplingSettings:
    """Prompts that the model goes on with at every evaluation, and how it chooses tokens."""

    prompts: list[str] = field(default_factory=list)
    """Beginnings of texts."""
    max_new_tokens: int = 60
    """Tokens to add at most; fewer where the text ends before."""
    temperature: float = 0.8
    """Logits are divided by it; 0 takes the most probable token every time."""
    top_k: int | None = None
    """Choose among so many most probable tokens only; null: among all."""
    top_p: float = 0.95
    """Choose among the most probable tokens that together have this probability."""
    repetition_penalty: float = 1.0
    """Above 1, tokens that are there already become less probable."""
    no_repeat_ngram_size: int = 0
    """No so many tokens in a row occur twice; 0: no such rule."""

    def check(self) -> None:
        """Raise a UserError for a setting that cannot be sampled with."""
        check_range("samples.max_new_tokens", self.max_new_tokens, 1, 1 << 20)
        check_range("samples.temperature", self.temperature, 0, 100)
        check_range("samples.repetition_penalty", self.repetition_penalty, 0.01, 100)
        check_range("samples.no_repeat_ngram_size", self.no_repeat_ngram_size, 0, 1 << 20)
        check_range("samples.top_p", self.top_p, 0.001, 1)
        if self.top_k is not None:
            check_range("samples.top_k", self.top_k, 1, 1 << 30)
        if "" in self.prompts:
            raise UserError("--samples.prompts: an empty prompt gives nothing to go on with")

    def for_generate(self) -> dict[str, Any]:
        """As arguments of `generate`."""
        chosen: dict[str, Any] = {"max_new_tokens": self.max_new_tokens, "do_sample": False}
        if self.temperature > 0:
            chosen |= {
                "do_sample": True,
                "temperature": self.temperature,
                "top_k": self.top_k or 0,
                "top_p": self.top_p,
            }
        return chosen | {
            "repetition_penalty": self.repetition_penalty,
            "no_repeat_ngram_size": self.no_repeat_ngram_size,
        }


@dataclass(frozen=True)
class Sample:
    """A prompt as far as the model read it, what it added, and whether it ended the text itself."""

    prompt: str
    text: str
    ended: bool


def prompt_tokens(
    prompts: Sequence[str], tokenizer: Any, positions: int | None, max_new_tokens: int
) -> list[list[int]]:
    """Token ids of prompts; where they and the new tokens exceed the positions, the start goes.

    The token that is added last is not read again and needs no position.
    """
    encoded = tokenizer(list(prompts), add_special_tokens=False, split_special_tokens=True)
    rows: list[list[int]] = encoded["input_ids"]
    if positions is None:
        return rows
    limit = max(positions + 1 - max_new_tokens, 1)
    for row, prompt in zip(rows, prompts, strict=True):
        if len(row) > limit:
            notify(
                f"the prompt {prompt[:20]!r}… has {len(row)} tokens; the model has {positions} "
                f"positions and is to add {max_new_tokens}: only the last {limit} are read"
            )
    return [row[-limit:] for row in rows]


def generate_samples(
    model: Any, tokenizer: Any, settings: SamplingSettings, seed: int
) -> list[Sample]:
    """Go on with every prompt, until the end of text or `max_new_tokens`.

    Prompts of different length are padded on the left and masked. The global random state is left
    as it was.
    """
    positions = usable_positions(model.config)
    new_tokens = min(settings.max_new_tokens, positions or settings.max_new_tokens)
    rows = prompt_tokens(settings.prompts, tokenizer, positions, new_tokens)
    # transformers takes padding for text that must not be repeated, and it is the end of text.
    together = settings.no_repeat_ngram_size == 0
    batches = [rows] if together else [[row] for row in rows]
    device = next(model.parameters()).device
    devices = [device] if device.type == "cuda" else []
    arguments = settings.for_generate() | {"max_new_tokens": new_tokens}
    together_only = prepare_generation(model)
    was_training = model.training
    model.eval()
    added: list[list[int]] = []
    with torch.random.fork_rng(devices), warnings.catch_warnings(), torch.no_grad():
        torch.manual_seed(seed)
        for batch in batches:
            inputs = tokenizer.pad(
                {"input_ids": batch}, padding_side="left", return_tensors="pt"
            ).to(device)
            output = model.generate(**inputs, **arguments, synced_gpus=together_only)
            added += output[:, inputs["input_ids"].shape[1] :].tolist()
    model.train(was_training)
    return [read_sample(row, new, tokenizer) for row, new in zip(rows, added, strict=True)]


def read_sample(prompt: list[int], new: list[int], tokenizer: Any) -> Sample:
    """Texts of the token ids of a prompt and of what was added to it, up to the end of text."""
    ended = tokenizer.eos_token_id in new
    if ended:
        new = new[: new.index(tokenizer.eos_token_id)]
    read = tokenizer.decode(prompt)
    # Decoded together: a character's bytes may lie on both sides.
    return Sample(read, tokenizer.decode([*prompt, *new])[len(read) :], ended)


class SampleWriter:
    """Prints samples at every evaluation and keeps them in metrics.jsonl (main process only).

    Args:
        run: logs them.
        tokenizer: of the model.
        settings: checked before.
    """

    def __init__(self, run: Run[Any], tokenizer: Any, settings: SamplingSettings) -> None:
        self.run, self.tokenizer, self.settings = run, tokenizer, settings

    def __call__(self, model: nn.Module, step: int) -> None:
        """Write what the model makes of the prompts; the same step gives the same texts.

        All processes compute where none has the whole model.
        """
        main = self.run.accelerator.is_main_process
        if not self.settings.prompts or not (main or is_divided(model)):
            return
        seed = self.run.config.seed + step
        samples = generate_samples(model, self.tokenizer, self.settings, seed)
        for sample in samples:
            end = " ■" if sample.ended else " …"
            notify(f"  {sample.prompt}▸{sample.text}{end}")
        self.run.log({"step": step, "samples": [vars(sample) for sample in samples]})

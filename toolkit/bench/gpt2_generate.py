"""Write with GPT-2, greedily: one text, and eight at a time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch

from scratch_models import optimize_for_inference
from toolkit.bench.agreement import agree
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE, OURS
from toolkit.bench.gpt2 import END_OF_TEXT, LOADERS, write_gpt2
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import precision

LAYERS, PROMPT = 12, 32
WEIGHTS = 123_653_376
"""Of GPT-2 small, without positions: every token reads them once."""
GOALS = {1: 1.6, 8: 2.5}


def cases(settings: BenchSettings) -> list[Case]:
    """By the number of texts."""
    return [_case(texts, settings) for texts in GOALS]


def _case(texts: int, settings: BenchSettings) -> Case:
    new = 128 if settings.full else 32
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(0, END_OF_TEXT, (texts, PROMPT), generator=generator)

    def writing(model: Any) -> Program:
        model.eval().to(settings.device)
        inputs = prompts.to(settings.device)

        def run() -> list[torch.Tensor]:
            with torch.inference_mode(), precision(settings):
                # The length is the same for all: the end of text is not looked for.
                written = model.generate(
                    inputs,
                    attention_mask=torch.ones_like(inputs),
                    do_sample=False,
                    min_new_tokens=new,
                    max_new_tokens=new,
                )
            return [written.cpu()]

        return run

    def ours(folder: Path) -> Program:
        return writing(optimize_for_inference(LOADERS[OURS](folder)))

    return Case(
        name=f"gpt2-generate, {texts} at a time",
        task=f"GPT-2 small ({LAYERS} layers), {new} new tokens after {PROMPT}, greedy, {texts} at "
        "a time",
        sides={
            HUGGINGFACE: Side(lambda folder: writing(LOADERS[HUGGINGFACE](folder)), texts * new),
            OURS: Side(ours, texts * new),
        },
        ours=OURS,
        prepare=partial(write_gpt2, layers=LAYERS),
        check=lambda results, _: agree(results, OURS, "ids of all tokens", 0.0),
        rows=texts,
        units=texts * new,
        bytes_read=new * 4 * WEIGHTS,
        goals={HUGGINGFACE: GOALS[texts]},
        memory=(HUGGINGFACE, OURS) if texts == 1 else (),
    )

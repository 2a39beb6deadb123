"""What the training loop costs by itself: the engine's steps against bare ones of the same model.

A model as deep as those that are fine-tuned: on one of two layers any loop costs a share, and it is
the other case of the benchmark that shows it. Evaluations and checkpoints are no part of a step.
"""

from __future__ import annotations

import contextlib
import io
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from toolkit.batching import plan_epoch
from toolkit.bench.agreement import agree
from toolkit.bench.bert import LOADERS, NO_DROPOUT, write_classifier
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE
from toolkit.bench.random_texts import BATCH, LONGEST, VOCABULARY, bare_steps, collate, make_rows
from toolkit.bench.settings import BenchSettings
from toolkit.bench.texts import review_lengths

OURS, BARE = "engine's steps", "bare steps"
LAYERS, WIDTH = 6, 384
STEPS = 48
GOAL = 0.97
"""The loop takes less than 3 % of the time."""


def steps_alone(settings: BenchSettings) -> Case:
    """Forward, backward and update, with and without all that a training needs besides."""
    rows = BATCH * (2 * STEPS if settings.full else STEPS)
    lengths = review_lengths(rows).clip(max=LONGEST)
    data = SimpleNamespace(train=make_rows(lengths, 0), validation=make_rows(lengths[:1], 1))
    sides = {BARE: with_bare_steps, OURS: with_engines_steps}
    padded = sum(int(lengths[b].max()) * len(b) for b in plan_epoch(rows, BATCH, 0, 0))
    return Case(
        name="engine (steps alone)",
        task=f"a BERT of {LAYERS} layers, width {WIDTH}; {rows // BATCH} steps of {BATCH} texts",
        sides={name: Side(partial(build, data=data, settings=settings), padded)
               for name, build in sides.items()},
        ours=OURS,
        prepare=write_model,
        check=lambda results, _: agree(results, OURS, "mean loss of the epoch", 1e-4),
        rows=rows,
        units=int(lengths.sum()),
        goals={BARE: GOAL},
        note="Both train transformers' class on the same batches. Bare: forward, backward, fused "
        "AdamW. The engine's: also the schedule, clipping, counting, logging of every tenth step "
        "and the display.",
    )  # fmt: skip


def write_model(folder: Path) -> None:
    """A classifier without dropout."""
    write_classifier(
        folder, vocab_size=VOCABULARY, max_position_embeddings=LONGEST, hidden_size=WIDTH,
        num_hidden_layers=LAYERS, num_attention_heads=WIDTH // 32, intermediate_size=4 * WIDTH,
        **NO_DROPOUT,
    )  # fmt: skip


def with_bare_steps(folder: Path, data: Any, settings: BenchSettings) -> Program:
    """Forward, backward, fused AdamW."""
    model = LOADERS[HUGGINGFACE](folder).train().to(settings.device)
    return lambda: [bare_steps(model, data.train, settings.device)]


def with_engines_steps(folder: Path, data: Any, settings: BenchSettings) -> Program:
    """`toolkit.training.engine.take_steps`: no evaluation, and no checkpoint after the last one."""
    from toolkit.config import Invocation, RunConfig, TrainConfig
    from toolkit.evaluation import ClassificationMetric
    from toolkit.objectives import Classification
    from toolkit.progress import progress_bar
    from toolkit.run import start_run
    from toolkit.training.engine import prepare_training, take_steps
    from toolkit.training.freezing import set_training_mode
    from toolkit.training.resuming import new_state

    train = TrainConfig(
        epochs=1, batch_size=BATCH, learning_rate=0.0, schedule="constant", warmup_ratio=0.0,
        group_by_length=False,
    )  # fmt: skip
    config = RunConfig(train=train, seed=0, output_dir=str(folder), run_id="steps")
    with contextlib.redirect_stderr(io.StringIO()):
        training, _ = prepare_training(
            start_run(Invocation(config, None), "bench"), LOADERS[HUGGINGFACE](folder), data,
            Classification(), collate, collate, ClassificationMetric(2), None,
        )  # fmt: skip
    set_training_mode(training.model)

    def run() -> list[float]:
        training.state = new_state(training.run.accelerator, training.clock)
        bar = progress_bar("training", training.total_steps)
        with contextlib.redirect_stderr(io.StringIO()), bar as display:
            losses = [report["loss"] for _, report in take_steps(training, display)]
        return [sum(losses) / len(losses)]

    return run

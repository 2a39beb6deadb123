"""The training loop around a small model, where the loop itself costs most.

One epoch with one evaluation and one checkpoint; the bare loop has neither, nor logs, nor clipping:
what is left of it when all that a training needs is taken away. The learning rate is 0, so that the
mean loss of an epoch does not depend on the order of the rows, and can be compared.
"""

from __future__ import annotations

import contextlib
import io
import json
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from toolkit.batching import plan_epoch
from toolkit.bench.agreement import agree
from toolkit.bench.bert import LOADERS, write_small_bert
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE
from toolkit.bench.engine_loop import steps_alone
from toolkit.bench.random_texts import BATCH, LONGEST, VOCABULARY, bare_steps, collate, make_rows
from toolkit.bench.settings import BenchSettings
from toolkit.bench.texts import review_lengths

OURS, BARE = "toolkit engine", "bare loop"
VALIDATION = 64
GOAL = 1.0
"""At least as fast as the Trainer."""


def cases(settings: BenchSettings) -> list[Case]:
    """The whole of a small training, and the steps of a larger model alone."""
    rows = 4096 if settings.full else 1024
    lengths = review_lengths(rows + VALIDATION).clip(max=LONGEST)
    data = SimpleNamespace(
        train=make_rows(lengths[:rows], 0), validation=make_rows(lengths[rows:], 1)
    )
    padded = sum(int(lengths[b].max()) * len(b) for b in plan_epoch(rows, BATCH, 0, 0))
    sides = {HUGGINGFACE: with_trainer, BARE: with_bare_loop, OURS: with_engine}
    return [
        Case(
            name="engine",
            task=f"a BERT of 2 layers, width 64; an epoch of {rows // BATCH} steps of {BATCH} "
            f"texts, {VALIDATION} to evaluate, one checkpoint",
            sides={
                name: Side(partial(build, data=data, settings=settings), padded)
                for name, build in sides.items()
            },
            ours=OURS,
            prepare=partial(
                write_small_bert, vocab_size=VOCABULARY, max_position_embeddings=LONGEST
            ),
            check=lambda results, _: agree(results, OURS, "mean loss of the epoch", 1e-4),
            rows=rows,
            units=int(lengths[:rows].sum()),
            goals={HUGGINGFACE: GOAL},
            note="All three train transformers' class, in random order. The bare loop does not "
            "evaluate, save, log or clip, and loads its model before. The Trainer logs every "
            "tenth step, the engine every one.",
        ),
        steps_alone(settings),
    ]


def with_bare_loop(folder: Path, data: Any, settings: BenchSettings) -> Program:
    """Forward, backward, fused AdamW (`bare_steps`)."""
    model = LOADERS[HUGGINGFACE](folder).train().to(settings.device)

    return lambda: [bare_steps(model, data.train, settings.device)]


def with_trainer(folder: Path, data: Any, settings: BenchSettings) -> Program:
    """transformers' Trainer."""
    from transformers import Trainer, TrainingArguments

    numbers = count()

    def run() -> list[float]:
        arguments = TrainingArguments(
            output_dir=str(folder / f"trainer-{next(numbers)}"),
            per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH,
            num_train_epochs=1, learning_rate=0.0, lr_scheduler_type="constant",
            optim="adamw_torch_fused", eval_strategy="epoch", save_strategy="epoch",
            logging_steps=10, disable_tqdm=True, report_to="none",
            use_cpu=settings.device == "cpu", remove_unused_columns=False,
        )  # fmt: skip
        trainer = Trainer(
            model=LOADERS[HUGGINGFACE](folder), args=arguments, train_dataset=data.train,
            eval_dataset=data.validation, data_collator=collate,
        )  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            done = trainer.train()
        return [float(done.training_loss)]

    return run


def with_engine(folder: Path, data: Any, settings: BenchSettings) -> Program:
    """`toolkit.training.engine.fit`, as every recipe calls it."""
    from toolkit.config import Invocation, RunConfig, TrainConfig
    from toolkit.evaluation import ClassificationMetric
    from toolkit.objectives import Classification
    from toolkit.run import start_run
    from toolkit.training.engine import fit

    numbers = count()

    def run() -> list[float]:
        train = TrainConfig(
            epochs=1, batch_size=BATCH, eval_batch_size=BATCH, learning_rate=0.0,
            schedule="constant", warmup_ratio=0.0, group_by_length=False, log_every=1,
        )  # fmt: skip
        name = f"engine-{next(numbers)}"
        config = RunConfig(train=train, output_dir=str(folder), run_id=name)
        with contextlib.redirect_stderr(io.StringIO()):
            started = start_run(Invocation(config, None), "bench")
            fit(
                started, LOADERS[HUGGINGFACE](folder), data, objective=Classification(),
                collate=collate, metric=ClassificationMetric(2),
            )  # fmt: skip
        lines = (started.directory / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses = [line["loss"] for line in map(json.loads, lines) if "loss" in line]
        return [sum(losses) / len(losses)]

    return run

"""From the start of a process to the end of the first step: what one waits for after Enter.

The model is small, so that loading it is next to nothing: a real one comes on top, on all sides.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from toolkit.bench.agreement import agree
from toolkit.bench.bert import write_small_bert
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.settings import BenchSettings
from toolkit.errors import UserError

HUGGINGFACE, OURS, LAUNCHED = "Trainer script", "python recipe", "accelerate launch"
IMPORTS = "imports alone"
ROWS = 32
RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "bert_sentiment.py"

# Both end the process when the first step is done: what comes after is no part of the start.
OURS_DRIVER = """
import os, runpy, sys
import toolkit.training.engine
step = toolkit.training.engine.train_step
def first(*arguments):
    report = step(*arguments)
    sys.__stdout__.write(f"\\nloss {report['loss']}\\n"); sys.__stdout__.flush(); os._exit(0)
toolkit.training.engine.train_step = first
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
TRAINER_DRIVER = """
import os, sys
import datasets
from transformers import (AutoModelForSequenceClassification, AutoTokenizer,
                          DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments)
data, model, output = sys.argv[1:4]
rows = datasets.load_dataset("csv", data_files={"train": f"{data}/train.csv"}, cache_dir=output)
tokenizer = AutoTokenizer.from_pretrained(model)
names = {"negative": 0, "positive": 1}
def encode(batch):
    return {**tokenizer(batch["text"], truncation=True, max_length=32),
            "labels": [names[name] for name in batch["label"]]}
rows = rows["train"].map(encode, batched=True, remove_columns=["text", "label"])
class Stop(TrainerCallback):
    def on_log(self, args, state, control, logs, **kwargs):
        sys.__stdout__.write(f"\\nloss {logs['loss']}\\n"); sys.__stdout__.flush(); os._exit(0)
arguments = TrainingArguments(output, per_device_train_batch_size=32, max_steps=2, logging_steps=1,
                              learning_rate=1e-5, report_to="none", disable_tqdm=True,
                              use_cpu=sys.argv[4] == "cpu")
Trainer(AutoModelForSequenceClassification.from_pretrained(model), arguments,
        DataCollatorWithPadding(tokenizer), rows, callbacks=[Stop()]).train()
"""

# The libraries that both are built on; ended like the others, without clearing up.
IMPORTS_ALONE = """
import accelerate, datasets, torch
from transformers import AutoTokenizer, BertForSequenceClassification
import os
print("loss 0", flush=True)
os._exit(0)
"""


def cases(settings: BenchSettings) -> list[Case]:
    """One.

    Raises:
        UserError: the recipes are not beside the package.
    """
    if not RECIPE.is_file():
        raise UserError(
            f"the benchmark startup runs {RECIPE}, which is not there: install the toolkit from a "
            "clone (pip install -e .)."
        )
    sides = {HUGGINGFACE: _trainer, OURS: _recipe, LAUNCHED: _launched, IMPORTS: _imports}
    return [
        Case(
            name="startup",
            task=f"from the start of the process to the end of the first step, of {ROWS} texts; a "
            "BERT of 2 layers, width 64",
            sides={
                name: Side(partial(build, settings=settings), ROWS) for name, build in sides.items()
            },
            ours=OURS,
            prepare=prepare,
            # One batch holds all rows, in whatever order; the Trainer rounds to four digits.
            check=lambda results, _: agree(
                {name: loss for name, loss in results.items() if name != IMPORTS},
                OURS,
                "loss of the first step",
                1e-3,
            ),
            rows=ROWS,
            units=ROWS,
            unit="texts",
            note=f"{IMPORTS}: torch, accelerate, datasets and transformers' BERT and tokenizers. "
            "accelerate launch imports most of that twice.",
        )
    ]


def prepare(folder: Path) -> None:
    """A small BERT, its tokenizer, and a folder of splits."""
    from transformers import BertTokenizer

    words = [chr(0x4E00 + number) for number in range(200)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    model, data = folder / "model", folder / "data"
    model.mkdir()
    data.mkdir()
    (model / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    write_small_bert(
        model, vocab_size=len(vocabulary), max_position_embeddings=32,
        id2label={0: "negative", 1: "positive"}, label2id={"negative": 0, "positive": 1},
    )  # fmt: skip
    BertTokenizer(str(model / "vocab.txt"), model_max_length=32).save_pretrained(model)
    for number, split in enumerate(("train", "validation", "test")):
        lines = ["text,label"]
        for row in range(ROWS):
            text = "".join(words[(7 * row + 31 * number + k * k) % 200] for k in range(12))
            lines.append(f"{text},{('negative', 'positive')[row % 2]}")
        (data / f"{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _recipe(folder: Path, settings: BenchSettings, launcher: Sequence[str] = ()) -> Program:
    driver = folder / "first_step.py"
    driver.write_text(OURS_DRIVER, encoding="utf-8")
    command = [
        sys.executable, *launcher, str(driver), str(RECIPE), "--dataset", str(folder / "data"),
        "--model", str(folder / "model"), "--train.batch_size", str(ROWS), "--train.max_steps",
        "2", "--max_length", "32",
    ]  # fmt: skip
    return partial(_first_loss, command, "--output-dir", folder, settings)


def _launched(folder: Path, settings: BenchSettings) -> Program:
    device = ["--cpu"] if settings.device == "cpu" else ["--num_processes", "1"]
    return _recipe(folder, settings, ["-m", "accelerate.commands.launch", "-q", *device])


def _imports(folder: Path, settings: BenchSettings) -> Program:
    script = folder / "imports.py"
    script.write_text(IMPORTS_ALONE, encoding="utf-8")
    return partial(_first_loss, [sys.executable, str(script)], None, folder, settings)


def _trainer(folder: Path, settings: BenchSettings) -> Program:
    driver = folder / "trainer.py"
    driver.write_text(TRAINER_DRIVER, encoding="utf-8")
    command = [sys.executable, str(driver), str(folder / "data"), str(folder / "model")]
    return partial(_first_loss, command, None, folder, settings)


def _first_loss(
    command: Sequence[str], output_flag: str | None, folder: Path, settings: BenchSettings
) -> list[float]:
    """Run until the first step is done; every time with an empty cache of data."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="run-") as output:
        where = [output_flag, output] if output_flag else [output, settings.device]
        environment = os.environ | {
            "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(torch.get_num_threads()),
            "HF_DATASETS_CACHE": f"{output}/cache",
            "ACCELERATE_USE_CPU": str(settings.device == "cpu").lower(),
        }  # fmt: skip
        done = subprocess.run(
            [*command, *where], env=environment, capture_output=True, text=True, check=False
        )
    losses = [line for line in done.stdout.splitlines() if line.startswith("loss ")]
    if not losses:
        raise RuntimeError(f"{' '.join(command)}: no first step\n{done.stderr[-3000:]}")
    return [float(losses[-1].split()[1])]

"""The settings of a run: dataclasses that recipes inherit from, and the values they may have."""

# No `from __future__ import annotations` here: jsonargparse would look the names of the field types
# up in the recipe that inherits from RunConfig.
import dataclasses
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from toolkit.errors import UserError
from toolkit.json_values import check_writable
from toolkit.published import Published


@dataclass
class TrainConfig:
    """How to train; the same fields for every recipe."""

    epochs: int = 3
    """Passes over the training data."""
    max_steps: int | None = None
    """Stop after this many optimizer steps; the schedule is laid out for them."""
    max_seconds: float | None = None
    """Stop after the step in which so many seconds of training are used up (evaluations do not
    count); the schedule ends then too. How many steps that is depends on the machine: such a run
    cannot be repeated or resumed bit for bit."""
    batch_size: int = 32
    """Examples per process and forward pass."""
    batch_tokens: int | None = None
    """Instead of batch_size, for texts: tokens per optimizer step, padding included, over all
    processes; accumulation_steps is then the number of forward passes they are divided into."""
    accumulation_steps: int = 1
    """Forward passes per optimizer step; the global batch is this x batch_size x processes."""
    auto_batch_size: bool = False
    """Divide the rows of an optimizer step into as few forward passes as memory allows: batch_size
    x accumulation_steps stays as given, the two are chosen (with batch_tokens the passes alone).
    Tried on a GPU; on a CPU measured on a few rows. The run records what was chosen."""
    eval_batch_size: int = 64
    """Examples per process and forward pass in evaluation."""
    learning_rate: float = 2e-5
    """Peak learning rate."""
    optimizer: Literal["adamw", "sgd"] = "adamw"
    """sgd has Nesterov momentum of 0.9; usual for convolutional networks, at a rate around 0.1."""
    layer_decay: float | None = None
    """Each layer's learning rate is this times that of the layer above it, the embeddings' lowest:
    0.65 to 0.95 is usual; null: the same for all."""
    weight_decay: float = 0.01
    """Weight decay (AdamW's is decoupled); biases and norms are exempt."""
    adam_beta2: float = 0.999
    """Memory of AdamW's second moment; Transformers trained from random weights often use 0.98."""
    schedule: Literal["linear", "cosine", "constant", "inverse_sqrt"] = "linear"
    """Decay of the learning rate after the warm-up; inverse_sqrt is the 2017 Transformer's."""
    warmup_ratio: float = 0.1
    """Share of all optimizer steps in which the learning rate rises from 0 to its peak."""
    max_grad_norm: float | None = 1.0
    """Gradients are scaled down to this global norm; null switches it off."""
    ema: float | None = None
    """Evaluate and save an exponential moving average of the weights, which keeps this share of
    itself at every update, such as 0.999; null: the weights themselves."""
    mixed_precision: Literal["no", "bf16", "fp16", "fp8"] | None = None
    """Autocast precision; null takes what `accelerate launch` was told, else full fp32. fp8 needs a
    GPU of compute capability 8.9 (Ada, Hopper) and torchao or transformer_engine."""
    gradient_checkpointing: bool = False
    """Compute every layer of a Transformer again in the backward pass instead of keeping what is
    inside it: much less memory for a third more time or more, and the same results."""
    group_by_length: bool = True
    """Batch texts of similar length together: the same rows, less padding."""
    evaluate_every: int | None = None
    """Optimizer steps between evaluations on the validation data; null: once an epoch."""
    save_every: int | None = None
    """Optimizer steps between checkpoints; null: at every evaluation."""
    keep_checkpoints: int = 1
    """Newest checkpoints to keep; the best one is kept besides."""
    fallback_dir: str | None = None
    """A folder on another disk for checkpoints that cannot be written in the run directory, because
    its disk is full; --resume finds them there. null: none."""
    wait_for_space: float = 600
    """Seconds to wait, trying again and again, when a checkpoint cannot be written anywhere: what
    is trained is still in memory. Then the run ends; --resume goes on from the checkpoint before.
    """
    not_finite: Literal["stop", "skip"] = "stop"
    """What a loss or gradient that is NaN or infinite does: end the run, or leave this step out;
    ten such steps on end always end it."""
    patience: int | None = None
    """Stop after this many evaluations without improvement; null: never."""
    log_every: int = 10
    """Optimizer steps between lines in metrics.jsonl."""
    workers: int = 0
    """Processes that prepare batches; 0 prepares them in the training process."""


@dataclass
class RunConfig:
    """What every recipe has in common."""

    train: TrainConfig = field(default_factory=TrainConfig)
    """How to train."""
    seed: int = 42
    """Seed of initialisation, data order and dropout."""
    output_dir: str = "results/runs"
    """Where run directories are made: <output_dir>/<recipe>/<run_id>."""
    run_id: str | None = None
    """Name of the run directory; null: date and time."""
    title: str | None = None
    """Name of the run in tables and reports; null: made from model and method."""
    published: Published | None = None
    """Of presets."""  # the published result that they repeat
    tracker: Literal["tensorboard", "wandb", "trackio"] | None = None
    """Send the numbers to an experiment tracker as well (`pip install -e '.[trackers]'`).
    tensorboard: files in <run directory>/tensorboard, shown by `tensorboard --logdir results/runs`.
    wandb: your account there, after `wandb login`; with WANDB_MODE=offline files in the run
    directory, for `wandb sync`. trackio: a database on this machine (in TRACKIO_DIR, else in
    HuggingFace's cache), shown by `trackio show`. null: none."""
    push_to_hub: str | None = None
    """Upload the model to this repository of the HuggingFace Hub (user/name) in the end, with its
    card, as `toolkit push` does. Whether that is allowed is asked before anything is trained."""
    private: bool = False
    """With push_to_hub: only you (or your organisation) can see it."""
    dry_run: bool = False
    """Build data and model, compute a few batches, say what training would take, and stop."""
    dry_run_json: str | None = None
    """A dry run that also writes what it says as JSON to this file; -: prints that alone."""
    lr_finder: bool = False
    """Instead of training, raise the learning rate over 100 steps, show where the loss falls and
    where it breaks, suggest a rate, and stop."""

    def __post_init__(self) -> None:
        self.dry_run = self.dry_run or self.dry_run_json is not None


ConfigT = TypeVar("ConfigT", bound=RunConfig)


@dataclass(frozen=True)
class Invocation(Generic[ConfigT]):
    """A parsed command line: the configuration and, when resuming, the run it belongs to.

    ``given`` are the settings that stood on the command line itself, by their dotted names.
    """

    config: ConfigT
    resume_from: Path | None
    given: frozenset[str] = frozenset()


def leaf_types(config_class: type, prefix: str = "") -> dict[str, Any]:
    """Dotted name of every setting of a config dataclass, and its type: ``train.epochs -> int``."""
    hints = typing.get_type_hints(config_class)
    leaves: dict[str, Any] = {}
    for item in dataclasses.fields(config_class):
        kind = hints[item.name]
        if dataclasses.is_dataclass(kind):
            leaves |= leaf_types(typing.cast(type, kind), f"{prefix}{item.name}.")
        else:
            leaves[prefix + item.name] = kind
    return leaves


def check_range(name: str, value: float, lowest: float, highest: float) -> None:
    """Raise a UserError for a setting outside its range.

    Args:
        name: dotted name of the setting.
        lowest, highest: both allowed.
    """
    if not lowest <= value <= highest:
        raise UserError(f"--{name} {value}: expected a number from {lowest:g} to {highest:g}")


def check_values(config: RunConfig) -> None:
    """Raise a UserError for a number that cannot be trained with."""
    if not 0 <= config.seed < 2**32:
        raise UserError(f"--seed {config.seed}: expected a whole number from 0 to {2**32 - 1}")
    check_writable(config.dry_run_json, "--dry_run_json")
    train = config.train
    at_least = {
        "epochs": 1, "max_steps": 1, "batch_size": 1, "batch_tokens": 1,
        "accumulation_steps": 1, "eval_batch_size": 1,
        "learning_rate": 0, "weight_decay": 0, "warmup_ratio": 0, "evaluate_every": 1,
        "save_every": 1, "keep_checkpoints": 1, "patience": 1, "log_every": 1, "workers": 0,
        "wait_for_space": 0,
    }  # fmt: skip
    for key, lowest in at_least.items():
        value = getattr(train, key)
        if value is not None and not value >= lowest:
            raise UserError(f"--train.{key} {value}: expected a number of at least {lowest}")
    if train.warmup_ratio > 1:
        raise UserError(f"--train.warmup_ratio {train.warmup_ratio}: expected a share from 0 to 1")
    if not 0 <= train.adam_beta2 < 1:
        raise UserError(
            f"--train.adam_beta2 {train.adam_beta2}: expected a number from 0 up to, but not "
            "including, 1"
        )
    if train.layer_decay is not None and not 0 < train.layer_decay <= 1:
        raise UserError(
            f"--train.layer_decay {train.layer_decay}: expected a number above 0, up to 1"
        )
    if train.max_seconds is not None and not train.max_seconds > 0:
        raise UserError(f"--train.max_seconds {train.max_seconds}: expected a number above 0")
    if train.ema is not None and not 0 < train.ema < 1:
        raise UserError(
            f"--train.ema {train.ema}: expected a number between 0 and 1, such as 0.999, or null "
            "for the weights themselves"
        )
    if train.max_grad_norm is not None and not train.max_grad_norm > 0:
        raise UserError(
            f"--train.max_grad_norm {train.max_grad_norm}: expected a number above 0, or null to "
            "switch clipping off"
        )

"""Configuration: dataclasses filled from presets, YAML files and the command line.

A later source wins: defaults < ``--preset`` < ``--config`` < flags. An unknown key is an error that
names the nearest one; abbreviations are not accepted, so a typo can never set something else.
"""

# No `from __future__ import annotations` here: jsonargparse would look the names of the field types
# up in the recipe that inherits from RunConfig.
import dataclasses
import difflib
import functools
import inspect
import re
import types
import typing
from argparse import SUPPRESS
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import yaml

from toolkit.disk import write_whole
from toolkit.errors import UserError
from toolkit.json_values import check_writable
from toolkit.published import Published
from toolkit.run_origin import check_recipe


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


def parse_arguments(
    config_class: type[ConfigT], recipe_file: str | Path, argv: list[str]
) -> Invocation[ConfigT]:
    """Read a recipe's command line.

    Besides the fields of ``config_class`` (``--train.epochs 2``; dashes and underscores are the
    same; a bool needs no value) it knows ``--preset NAME`` (``presets/<recipe>/<NAME>.yaml`` beside
    the recipe), ``--config FILE`` and ``--resume RUN_DIRECTORY``.

    Raises:
        UserError: unknown key (names the nearest one), value of the wrong type, missing file or
            preset, or a flag given together with ``--resume``.
        SystemExit: after ``--help`` and ``--print_config``.
    """
    recipe_file = Path(recipe_file)
    known = leaf_types(config_class)
    flags = _canonical_flags(argv, known)
    resume = flags.pop_value("resume")
    if resume is not None:
        return Invocation(
            _resumed_config(config_class, recipe_file, Path(resume), flags), Path(resume)
        )
    files = []
    if (preset := flags.pop_value("preset")) is not None:
        files.append(preset_file(recipe_file, preset))
    if (config_file := flags.pop_value("config")) is not None:
        files.append(Path(config_file))
    config_flags = []
    for file in files:
        content = read_yaml(file)
        check_keys(content, config_class, where=str(file))
        if content:  # jsonargparse refuses a file of comments alone
            config_flags.append(f"--config={file}")
    given = {token[2:].partition("=")[0] for token in flags.tokens if token.startswith("--")}
    config = _parse(config_class, recipe_file, config_flags + flags.tokens)
    return Invocation(config, None, frozenset(given & set(known)))


def load_config(config_class: type[ConfigT], file: Path) -> ConfigT:
    """Read a configuration written by ``save_config``; every key is checked."""
    check_keys(read_yaml(file), config_class, where=str(file))
    return _parse(config_class, file, [f"--config={file}"])


def save_config(config: RunConfig, file: Path) -> None:
    """Write the whole configuration as YAML, so that ``--config FILE`` repeats the run."""
    text = yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)
    # Whole or not at all: half of it would be valid YAML that means another run.
    write_whole(file, text)


def preset_file(recipe_file: Path, name: str) -> Path:
    """Path of a recipe's preset.

    Raises:
        UserError: no such preset; lists those that exist.
    """
    folder = recipe_file.parent / "presets" / recipe_file.stem
    file = folder / f"{name}.yaml"
    if not file.is_file():
        names = ", ".join(sorted(p.stem for p in folder.glob("*.yaml"))) or "none"
        raise UserError(
            f"--preset {name}: {recipe_file.name} has no such preset; it has: {names}. "
            "For a file of your own use --config FILE."
        )
    return file


def read_yaml(file: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        UserError: missing file, invalid YAML (with line and column), or no mapping.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file (expected a YAML configuration)")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not valid YAML: {_one_line(str(error))}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text (byte {error.start + 1})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        found = type(content).__name__
        raise UserError(f"{file}: expected keys and values (key: value), found a {found}")
    return content


def check_keys(content: dict[str, Any], config_class: type, where: str, prefix: str = "") -> None:
    """Raise a UserError for the first key that ``config_class`` does not have."""
    known = leaf_types(config_class)
    groups = {name.rsplit(".", 1)[0] for name in known if "." in name}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if name in groups and value is None:
            raise UserError(f"{where}: the section '{name}' is empty; give it keys or remove it")
        if name in groups and isinstance(value, dict):
            check_keys(value, config_class, where, prefix=f"{name}.")
        elif name in groups:
            raise UserError(
                f"{where}: '{name}' is a section, expected keys under it, not {value!r}"
            )
        elif name not in known:
            raise UserError(f"{where}: unknown key '{name}'. {_nearest(name, known)}")


@dataclass
class _Flags:
    """Command-line tokens with canonical names; options of the command itself can be taken out."""

    tokens: list[str]

    def pop_value(self, name: str) -> str | None:
        """Remove ``--name VALUE`` or ``--name=VALUE`` and return the value."""
        values, rest, waiting = [], [], False
        for token in self.tokens:
            if waiting:
                values.append(token)
                waiting = False
            elif token == f"--{name}":
                waiting = True
            elif token.startswith(f"--{name}="):
                values.append(token.split("=", 1)[1])
            else:
                rest.append(token)
        if waiting:
            raise UserError(f"--{name} needs a value")
        if len(values) > 1:  # only one could count, and the other would be ignored in silence
            raise UserError(f"--{name} was given {len(values)} times: {', '.join(values)}")
        self.tokens = rest
        return values[0] if values else None


_COMMAND_OPTIONS = ("preset", "config", "resume", "help", "print_config")


def _canonical_flags(argv: list[str], known: dict[str, Any]) -> _Flags:
    tokens: list[str] = []
    for position, token in enumerate(argv):
        if not token.startswith("--"):
            tokens.append(token)
            continue
        name, equals, value = token[2:].partition("=")
        name = name.replace("-", "_")
        if name not in known and name not in _COMMAND_OPTIONS:
            raise UserError(f"unknown option '{token}'. {_nearest(name, known, flag=True)}")
        following = argv[position + 1] if position + 1 < len(argv) else "--"
        bare_bool = known.get(name) is bool and not equals and following.startswith("-")
        tokens.append(f"--{name}=true" if bare_bool else f"--{name}{equals}{value}")
    return _Flags(tokens)


def _nearest(name: str, known: dict[str, Any], flag: bool = False) -> str:
    """A sentence that names the known key most like ``name`` (its last part counts most)."""
    leaf = name.rsplit(".", 1)[-1]
    by_leaf = {key.rsplit(".", 1)[-1]: key for key in known}
    # `batch` is 0.67 like `batch_size`; `class_weights` 0.65 like `allow_missing_weights`.
    close = difflib.get_close_matches(leaf, by_leaf, n=1, cutoff=0.66)
    dashes = "--" if flag else ""
    if close:
        return f"Did you mean '{dashes}{by_leaf[close[0]]}'?"
    return f"Known: {', '.join(dashes + key for key in known)}."


def _resumed_config(
    config_class: type[ConfigT], recipe_file: Path, run: Path, flags: _Flags
) -> ConfigT:
    if not (run / "config.yaml").is_file():
        raise UserError(f"--resume {run}: not a run directory (it has no config.yaml)")
    if flags.tokens:
        raise UserError(
            f"--resume continues {run} exactly as it was started, so it takes no other option; "
            f"found: {' '.join(flags.tokens)}. Leave them out, or start a new run."
        )
    try:
        return load_config(config_class, run / "config.yaml")
    except UserError:  # where they are another recipe's settings, that is what is wrong
        check_recipe(run, recipe_file.stem)
        raise


def _parse(config_class: type[ConfigT], recipe_file: Path, argv: list[str]) -> ConfigT:
    from argparse import RawDescriptionHelpFormatter

    from jsonargparse import (
        ArgumentError,
        ArgumentParser,
        DefaultHelpFormatter,
        set_parsing_settings,
    )

    class Formatter(DefaultHelpFormatter, RawDescriptionHelpFormatter):
        """A recipe's description keeps its lines: they are commands to copy."""

    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser = ArgumentParser(
        prog=recipe_file.name,
        exit_on_error=False,
        formatter_class=Formatter,
        allow_abbrev=False,
        usage=f"{recipe_file.name} [--preset NAME] [--config FILE] [--resume RUN] [--KEY VALUE]",
        description=_recipe_description(recipe_file),
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the keys below.")
    # Both are handled before jsonargparse sees the command line; they stand here for --help.
    parser.add_argument("--preset", help=_preset_help(recipe_file))
    parser.add_argument("--resume", help="Run directory to continue exactly where it stopped.")
    parser.add_class_arguments(config_class, nested_key=None)
    _show_own_settings_first(parser, config_class)
    try:
        parsed = parser.parse_args(argv)
    except ArgumentError as error:
        raise UserError(_readable(str(error), leaf_types(config_class))) from None
    values = parser.instantiate(parsed)
    config = config_class(
        **{key.name: values[key.name] for key in dataclasses.fields(config_class)}
    )
    _refuse_null(config)
    check_values(config)
    return config


def _show_own_settings_first(parser: Any, config_class: type) -> None:
    """In --help: the recipe's settings, its data, then what it shares with all recipes.

    dataclasses have the fields of base classes first.
    """
    places = {
        name: place
        for place, base in reversed(list(enumerate(config_class.__mro__)))
        for name in inspect.get_annotations(base)
    }
    nested = {name.split(".")[0] for name in leaf_types(config_class) if "." in name}
    for group in parser._action_groups:
        group._group_actions.sort(key=lambda action: places.get(action.dest, -1))
        for action in group._group_actions:
            # A file for one section alone; the keys of what only presets give.
            if action.dest in nested or action.dest.endswith(".help"):
                action.help = SUPPRESS
            elif action.dest == "published":
                action.metavar = "RESULT"  # one line for it is enough


def _refuse_null(config: RunConfig) -> None:
    """jsonargparse takes null for a list."""
    for name, kind in leaf_types(type(config)).items():
        if types.NoneType not in typing.get_args(kind):
            value = functools.reduce(getattr, name.split("."), config)
            if value is None:
                raise UserError(f"--{name} null: expected {_in_words(kind)}")


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


def _recipe_description(recipe_file: Path) -> str | None:
    if recipe_file.suffix != ".py" or not recipe_file.is_file():
        return None
    import ast

    return ast.get_docstring(ast.parse(recipe_file.read_text(encoding="utf-8")))


def _preset_help(recipe_file: Path) -> str:
    folder = recipe_file.parent / "presets" / recipe_file.stem
    names = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
    return f"Settings kept beside the recipe: {names or 'none yet'}."


def _readable(message: str, known: dict[str, Any]) -> str:
    """jsonargparse names Python types; a person at the command line reads words."""
    wrong = re.match(
        r'Parser key "(?P<key>[\w.]+)":.*(Got|Given) value: (?P<value>.*)', message, re.DOTALL
    )
    if wrong is None or wrong["key"] not in known:
        return _one_line(message)
    value = _one_line(wrong["value"]).replace("None", "null")
    return f"--{wrong['key']} {value}: expected {_in_words(known[wrong['key']])}"


def _in_words(kind: Any) -> str:
    """``int | None`` -> ``a whole number or null``."""
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, typing.get_args(kind)))}"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(_in_words(member) for member in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return 'a list, such as ["a", "b"]'
    if dataclasses.is_dataclass(kind):
        return f"keys and values ({', '.join(key.name for key in dataclasses.fields(kind))})"
    words = {
        int: "a whole number", float: "a number", str: "a text", bool: "true or false",
        types.NoneType: "null",
    }  # fmt: skip
    return words.get(kind, str(kind))


def _one_line(message: str) -> str:
    return re.sub(r"\s*\n\s*", " ", message.strip())

"""The command line and YAML files of recipes: what wins, what is refused, and in which words."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.arguments import load_config, parse_arguments
from toolkit.config import Invocation, RunConfig, TrainConfig, leaf_types
from toolkit.config_files import save_config
from toolkit.data.config import TextDataConfig
from toolkit.errors import UserError

RECIPES = Path(__file__).parents[2] / "recipes"


@dataclass
class Adapter:
    """A nested section."""

    rank: int = 8
    """Rank."""
    targets: list[str] = field(default_factory=lambda: ["query", "value"])
    """Layers."""


# The field types are looked up in the module of the class, which pytest does not register.
Config = dataclasses.make_dataclass(
    "Config",
    [
        ("method", Literal["full", "lora"], "full"),
        ("freeze", str | None, None),
        ("allow_missing_weights", bool, False),
        ("adapter", Adapter, field(default_factory=Adapter)),
    ],
    bases=(TextDataConfig, RunConfig),
)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file with two presets beside it."""
    file = tmp_path / "recipes" / "sentiment.py"
    presets = file.parent / "presets" / "sentiment"
    presets.mkdir(parents=True)
    file.write_text('"""A recipe."""\n')
    (presets / "demo.yaml").write_text("seed: 1\ntitle: demo\ntrain: {epochs: 10, batch_size: 4}\n")
    (presets / "full.yaml").write_text("seed: 7\n")
    return file


def parse(recipe: Path, *argv: str) -> Any:
    return parse_arguments(Config, recipe, list(argv)).config


def refusal(recipe: Path, *argv: str) -> str:
    with pytest.raises(UserError) as caught:
        parse(recipe, *argv)
    message = str(caught.value)
    assert "\n" not in message
    assert "class '" not in message
    return message


# Which source wins


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_flags_win_over_config_over_preset_over_defaults_in_any_order(
    recipe: Path, tmp_path: Path, order: tuple[int, ...]
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("seed: 2\ntrain: {epochs: 20}\n")
    sources = [["--preset", "demo"], [f"--config={own}"], ["--seed", "3"]]
    config = parse(recipe, *(token for number in order for token in sources[number]))
    assert config.seed == 3  # all four say something
    assert config.train.epochs == 20  # preset 10, config 20
    assert config.train.batch_size == 4  # preset only
    assert config.title == "demo"
    assert config.train.eval_batch_size == TrainConfig().eval_batch_size


def test_without_arguments_every_default_stands(recipe: Path) -> None:
    assert parse(recipe) == Config()


def test_a_section_in_a_file_keeps_the_other_defaults_of_the_section(recipe: Path) -> None:
    assert dataclasses.asdict(parse(recipe, "--preset", "demo").train) == {
        **dataclasses.asdict(TrainConfig()),
        "epochs": 10,
        "batch_size": 4,
    }


@pytest.mark.parametrize("name", ["preset", "config"])
def test_a_second_preset_or_file_is_not_dropped_in_silence(recipe: Path, name: str) -> None:
    assert f"--{name} was given 2 times" in refusal(recipe, f"--{name}", "demo", f"--{name}=full")


# Unknown keys


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("--train.epoch", "--train.epochs"),  # argparse would take it as an abbreviation
        ("--epoch", "--train.epochs"),
        ("--train.learning-rte", "--train.learning_rate"),
        ("--train.leaning_rate=3", "--train.learning_rate"),
        ("--batchsize", "--train.batch_size"),
        ("--data-set", "--dataset"),
        ("--metod", "--method"),
        ("--ranks", "--adapter.rank"),
        ("--label-colum", "--label_column"),
        ("--train.batch", "--train.batch_size"),
    ],
)
def test_an_unknown_flag_names_the_nearest_one(recipe: Path, typed: str, nearest: str) -> None:
    assert f"Did you mean '{nearest}'?" in refusal(recipe, typed, "2")


@pytest.mark.parametrize("name", ["epochs", "auto-batch-size", "gradient_checkpointing"])
def test_a_section_need_not_be_named(recipe: Path, name: str) -> None:
    value = "3" if name == "epochs" else "true"
    short, full = (
        parse_arguments(Config, recipe, [f"--{flag}", value]) for flag in (name, f"train.{name}")
    )
    assert short == full  # with the names of what was given
    assert getattr(short.config.train, name.replace("-", "_")) == int(value.replace("true", "1"))


def test_a_name_of_two_sections_is_refused(recipe: Path) -> None:
    other = dataclasses.make_dataclass(
        "Other", [("second", Adapter, field(default_factory=Adapter))], bases=(Config,)
    )
    with pytest.raises(UserError, match=r"--rank may mean --(second|adapter)\.rank or --"):
        parse_arguments(other, recipe, ["--rank", "2"])
    nearer = dataclasses.make_dataclass("Nearer", [("rank", int, 1)], bases=(other,))
    assert parse_arguments(nearer, recipe, ["--rank", "2"]).config.rank == 2


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("train: {epoch: 2}", "train.epoch", "train.epochs"),
        ("epochs: 2", "epochs", "train.epochs"),
        ("train: {batch-size: 2}", "train.batch-size", "train.batch_size"),
        ("adapter: {target: []}", "adapter.target", "adapter.targets"),
    ],
)
def test_an_unknown_key_in_a_file_names_file_and_nearest(
    recipe: Path, tmp_path: Path, text: str, key: str, nearest: str
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    message = refusal(recipe, "--config", str(file))
    assert str(file) in message
    assert f"'{key}'" in message
    assert f"Did you mean '{nearest}'?" in message


def test_with_nothing_near_all_keys_are_listed(recipe: Path) -> None:
    message = refusal(recipe, "--zzzzzz", "1")
    assert all(f"--{key}" in message for key in leaf_types(Config))


def test_a_setting_of_another_recipe_is_not_taken_for_a_typing_mistake(recipe: Path) -> None:
    @dataclass
    class Tagging(Config):
        allow_missing_weights: bool = False

    with pytest.raises(UserError, match=r"'--class_weights'\. Known: .*--allow_missing_weights"):
        parse_arguments(Tagging, recipe, ["--class_weights", "balanced"])


@pytest.mark.parametrize(
    "prefix", ["--see", "--metho", "--pres", "--conf", "--train.epoc", "--res"]
)
def test_abbreviations_are_refused(recipe: Path, prefix: str) -> None:
    assert "unknown option" in refusal(recipe, prefix, "2")


def test_stray_words_are_refused(recipe: Path) -> None:
    assert "stray" in refusal(recipe, "--seed", "3", "stray")


# Values


def test_dashes_and_underscores_are_the_same(recipe: Path) -> None:
    dashes = parse(recipe, "--train.learning-rate", "0.5", "--label-column=a-b", "--split-seed=3")
    underscores = parse(
        recipe, "--train.learning_rate", "0.5", "--label_column=a-b", "--split_seed=3"
    )
    assert dashes == underscores
    assert dashes.label_column == "a-b"  # the value is left alone
    assert dashes.train.learning_rate == 0.5


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--allow-missing-weights"], (True, 42)),
        (["--allow-missing-weights", "--seed", "3"], (True, 3)),
        (["--seed", "3", "--allow_missing_weights"], (True, 3)),
        (["--allow-missing-weights", "false", "--seed", "3"], (False, 3)),
        (["--allow-missing-weights=true", "--seed", "3"], (True, 3)),
    ],
)
def test_a_bool_needs_no_value(recipe: Path, argv: list[str], expected: tuple[bool, int]) -> None:
    config = parse(recipe, *argv)
    assert (config.allow_missing_weights, config.seed) == expected


def test_null_switches_off(recipe: Path) -> None:
    config = parse(recipe, "--train.max-grad-norm", "null", "--train.patience", "3")
    assert config.train.max_grad_norm is None
    assert config.train.patience == 3
    assert parse(recipe, "--preset", "demo", "--title", "null").title is None


@pytest.mark.parametrize("text", ["2024", "1e3", "true", "a: b", "[1]", "数据 #1", " x ", "'q'"])
def test_text_stays_text(recipe: Path, text: str) -> None:
    assert parse(recipe, f"--title={text}").title == text
    assert parse(recipe, f"--dataset={text}").dataset == text


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--train.epochs", "two"], "--train.epochs two: expected a whole number"),
        (["--train.epochs", "2.5"], "--train.epochs 2.5: expected a whole number"),
        (["--train.epochs", "null"], "--train.epochs null: expected a whole number"),
        (["--train.epochs", "0"], "--train.epochs 0: expected a number of at least 1"),
        (["--train.batch-size", "-3"], "--train.batch_size -3: expected a number of at least 1"),
        (["--train.learning_rate", "nan"], "--train.learning_rate nan: expected a number"),
        (["--train.warmup-ratio", "1.5"], "--train.warmup_ratio 1.5: expected a share from 0 to 1"),
        (["--train.max_grad_norm", "0"], "--train.max_grad_norm 0.0: expected a number above 0"),
        (["--train.max_grad_norm", "x"], "--train.max_grad_norm x: expected a number or null"),
        (["--train.mixed-precision", "int8"], "expected one of no, bf16, fp16, fp8 or null"),
        (["--method", "ful"], "--method ful: expected one of full, lora"),
        (["--seed", "-1"], "--seed -1: expected a whole number from 0 to 4294967295"),
        (["--seed", "4294967296"], "--seed 4294967296: expected a whole number from 0"),
        (["--allow-missing-weights", "maybe"], "maybe: expected true or false"),
        (["--adapter.targets", "query"], "--adapter.targets query: expected a list"),
        (["--adapter.targets", "null"], "--adapter.targets null: expected a list"),
        (["--preset"], "--preset needs a value"),
        (["--title"], "--title: expected one argument"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(
    recipe: Path, argv: list[str], expected: str
) -> None:
    assert expected in refusal(recipe, *argv)


def test_a_missing_preset_lists_those_there_are(recipe: Path) -> None:
    assert "it has: demo, full." in refusal(recipe, "--preset", "demos")
    with pytest.raises(UserError, match="it has: none"):
        parse_arguments(Config, recipe.with_name("other.py"), ["--preset", "demo"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"- a\n- b\n", "expected keys and values (key: value), found a list"),
        (b"seed: [1", "is not valid YAML"),
        (b"\xb2\xe2\xca\xd4: 1\n", "is not UTF-8"),
        (b"train: 5\n", "'train' is a section, expected keys under it, not 5"),
        (b"train:\n", "the section 'train' is empty"),
        (b"title: 2024\n", "--title 2024: expected a text or null"),
        (b"train: {epochs: 2.0}\n", "--train.epochs 2.0: expected a whole number"),
    ],
)
def test_a_bad_file_is_refused(recipe: Path, tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(content)
    assert expected in refusal(recipe, "--config", str(file))


def test_a_missing_file_and_an_empty_file(recipe: Path, tmp_path: Path) -> None:
    assert "no such file" in refusal(recipe, "--config", str(tmp_path / "none.yaml"))
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    assert parse(recipe, "--config", str(tmp_path / "empty.yaml")) == Config()


def test_help_shows_keys_defaults_and_presets(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(recipe, "--help")
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A recipe." in text
    assert "demo, full" in text
    assert "Passes over the training data." in text
    assert all(f"--{key}" in text for key in leaf_types(Config))
    # The recipe's own settings, those of its data, those of every recipe, how to train.
    order = ["--method", "--text_column", "--seed", "--train.epochs"]
    assert [text.index(f"{key} ", text.index("--resume RESUME")) for key in order] == sorted(
        text.index(f"{key} ", text.index("--resume RESUME")) for key in order
    )


# Files written and read back

# PyYAML folds Unicode's own line separators (U+0085, U+2028, U+2029) into spaces.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029"))
TRAIN = st.builds(
    TrainConfig,
    epochs=st.integers(1, 10**9),
    max_steps=st.none() | st.integers(1, 10**9),
    learning_rate=st.floats(0, 1e3),
    weight_decay=st.floats(0, 1e3),
    schedule=st.sampled_from(["linear", "cosine", "constant", "inverse_sqrt"]),
    warmup_ratio=st.floats(0, 1),
    max_grad_norm=st.none() | st.floats(1e-12, 1e12),
    mixed_precision=st.sampled_from([None, "no", "bf16", "fp16"]),
    group_by_length=st.booleans(),
)
CONFIGS = st.builds(
    Config,
    train=TRAIN,
    seed=st.integers(0, 2**32 - 1),
    output_dir=TEXT,
    run_id=st.none() | TEXT,
    title=st.none() | TEXT,
    dataset=TEXT,
    method=st.sampled_from(["full", "lora"]),
    freeze=st.none() | TEXT,
    allow_missing_weights=st.booleans(),
    adapter=st.builds(Adapter, rank=st.integers(), targets=st.lists(TEXT)),
)


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(CONFIGS)
def test_a_saved_configuration_is_read_back_equal(tmp_path: Path, config: RunConfig) -> None:
    file = tmp_path / "config.yaml"
    save_config(config, file)
    assert yaml.safe_load(file.read_text(encoding="utf-8")) == dataclasses.asdict(config)
    assert load_config(Config, file) == config
    assert [path.name for path in tmp_path.glob("config*")] == ["config.yaml"]


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(TRAIN)
def test_settings_typed_as_flags_are_read_back_equal(recipe: Path, train: TrainConfig) -> None:
    values = dataclasses.asdict(train)
    flags = [f"--train.{k}={'null' if v is None else str(v).lower()}" for k, v in values.items()]
    assert parse(recipe, *flags).train == train


# Resuming


def test_resume_takes_the_recorded_configuration_and_nothing_else(
    recipe: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    recorded = Config(seed=9, train=TrainConfig(epochs=5))
    save_config(recorded, run / "config.yaml")
    invocation = parse_arguments(Config, recipe, ["--resume", str(run)])
    assert invocation == Invocation(recorded, run)
    for other in (["--seed", "3"], ["--preset", "demo"], ["--config", "x.yaml"], ["word"]):
        message = refusal(recipe, *other, "--resume", str(run))
        assert "takes no other option" in message
        assert " ".join(other).replace(" ", "") in message.replace(" ", "")


def test_resume_of_something_else_is_refused(recipe: Path, tmp_path: Path) -> None:
    assert "not a run directory" in refusal(recipe, "--resume", str(tmp_path))
    (tmp_path / "config.yaml").write_text("sed: 3\n")  # of another version
    assert "unknown key 'sed'" in refusal(recipe, "--resume", str(tmp_path))


def test_a_run_of_another_recipe_with_other_settings_is_named(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("beams: 3\n")
    (tmp_path / "environment.json").write_text('{"recipe": "translation"}')
    message = refusal(recipe, "--resume", str(tmp_path))
    assert f"is a run of translation, not of {recipe.stem}; use" in message
    assert f"recipes/translation.py --resume {tmp_path}" in message
    for unsaid in ("{", "[]", "{}", '{"recipe": 3}', f'{{"recipe": "{recipe.stem}"}}'):
        (tmp_path / "environment.json").write_text(unsaid)
        assert "unknown key 'beams'" in refusal(recipe, "--resume", str(tmp_path))


# What lies in recipes/


def config_class_of(recipe_name: str) -> type[RunConfig]:
    spec = importlib.util.spec_from_file_location(
        f"recipe_under_test_{recipe_name}", RECIPES / f"{recipe_name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: type[RunConfig] = module.Config
    return found


@pytest.mark.parametrize("name", sorted(file.stem for file in RECIPES.glob("*.py")))
def test_every_recipe_parses_without_arguments_and_with_each_preset(name: str) -> None:
    config_class = config_class_of(name)
    recipe = RECIPES / f"{name}.py"
    assert parse_arguments(config_class, recipe, []).config == config_class()
    for preset in sorted((RECIPES / "presets" / name).glob("*.yaml")):
        config = parse_arguments(config_class, recipe, ["--preset", preset.stem]).config
        written = yaml.safe_load(preset.read_text(encoding="utf-8"))
        for key, value in flat(written).items():
            assert flat(dataclasses.asdict(config))[key] == value, f"{preset}: {key}"


def test_every_preset_folder_belongs_to_a_recipe() -> None:
    for folder in (RECIPES / "presets").iterdir():
        assert (RECIPES / f"{folder.name}.py").is_file()


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found

"""A published number is set beside runs of the published data only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from toolkit.arguments import load_config, parse_arguments
from toolkit.config import RunConfig
from toolkit.config_files import save_config
from toolkit.errors import UserError
from toolkit.published import Published, published_result
from toolkit.trackers import flat_config

PRESETS = Path(__file__).parents[2] / "recipes" / "presets"
RESULT = Published(
    metric="accuracy", value=0.947, split="test", dataset="hub/reviews", setting="mean of ten",
    source="a paper",
)  # fmt: skip
DATA = {"source": "hub/reviews", "sha256": {"test": "abc", "validation": "def"}}


def found(
    published: Published | None = RESULT, data: dict[str, Any] = DATA, **settings: Any
) -> dict[str, Any] | None:
    return published_result(SimpleNamespace(published=published, **settings), data)


def test_it_is_written_where_the_data_are_those_published() -> None:
    assert found() == {
        "metric": "accuracy", "value": 0.947, "split": "test", "dataset": "hub/reviews",
        "setting": "mean of ten", "source": "a paper",
    }  # fmt: skip
    assert found(None) is None


def test_it_is_left_out_of_runs_of_other_data() -> None:
    assert found(data=DATA | {"source": "own.csv"}) is None
    assert found(hub_config="other") is None
    assert found(replace(RESULT, hub_config="a")) is None
    assert found(replace(RESULT, hub_config="a"), hub_config="a") is not None
    assert found(test_size=100) is None  # a part of them
    assert found(test_size=None, validation_size=100, train_size=100) is not None
    assert found(replace(RESULT, split="validation"), validation_size=100) is None


def test_data_of_a_known_hash_are_recognised_wherever_they_lie_and_by_nothing_else() -> None:
    known = replace(RESULT, sha256="abc")
    elsewhere = DATA | {"source": "my/folder"}
    moved = found(known, elsewhere)
    assert moved is not None
    assert moved["dataset"] == "my/folder"  # as the summary shows it
    assert found(replace(known, sha256="xyz")) is None  # own data in the published folder
    assert found(replace(known, split="validation"), elsewhere) is None


# In configurations


@dataclass
class Config(RunConfig):
    """A recipe's."""

    sizes: list[int] = field(default_factory=list)


def test_a_preset_sets_it_and_a_run_keeps_it(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.py"
    folder = tmp_path / "presets" / "recipe"
    folder.mkdir(parents=True)
    (folder / "full.yaml").write_text(yaml.safe_dump({"published": vars(RESULT)}))
    config = parse_arguments(Config, recipe, ["--preset", "full"]).config
    assert config.published == RESULT
    save_config(config, tmp_path / "config.yaml")
    assert load_config(Config, tmp_path / "config.yaml") == config
    assert "published" not in flat_config(config)  # which trackers show as settings
    assert parse_arguments(Config, recipe, []).config.published is None


@pytest.mark.parametrize(
    "content",
    [
        "5",
        "{metric: accuracy}",
        "{metric: a, value: x, split: test, dataset: a, setting: b, source: c}",
        "{metric: a, value: 1, split: dev, dataset: a, setting: b, source: c}",
        "{metric: a, value: 1, split: test, dataset: a, setting: b, source: c, extra: 1}",
    ],
)
def test_half_of_one_is_refused_in_words(tmp_path: Path, content: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(f"published: {content}\n")
    with pytest.raises(UserError) as caught:
        parse_arguments(Config, tmp_path / "recipe.py", ["--config", str(file)])
    assert "--published" in str(caught.value)
    assert "expected keys and values (metric, value, split, dataset, setting, " in str(caught.value)


def test_help_has_one_line_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(Config, tmp_path / "recipe.py", ["--help"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "ublished" in line]
    assert len(lines) == 1
    assert lines[0].lstrip().startswith("--published ")


# What the presets claim

RECORDED = {
    "bert_sentiment": ("accuracy",),
    "text_classification": ("accuracy",),
    "cifar10": ("accuracy",),
    "image_classification": ("accuracy",),
    "token_classification": ("entity_f1",),
    "question_answering": ("exact_match", "f1"),
    "translation": ("bleu", "bleu_lowercase", "chrf"),
    "gpt2_generation": ("perplexity",),
}
"""Metrics that the summaries of a recipe have."""


@pytest.mark.parametrize("file", sorted(PRESETS.glob("*/*.yaml")), ids=lambda f: f.stem)
def test_a_presets_published_number_is_on_the_scale_of_our_metric(file: Path) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    if "published" not in content:
        assert file.stem not in ("weibo", "multi30k", "cmrc2018", "pairs", "vit_base", "vit_small")
        return
    published = Published(**content["published"])
    assert published.metric in RECORDED[file.parent.name]
    if published.metric.startswith(("bleu", "chrf")):
        assert 10 < published.value < 100
    elif published.metric == "perplexity":
        assert published.value > 1
    else:
        assert 0.5 < published.value < 1
    assert published.hub_config == content.get("hub_config")
    if "dataset" in content:  # else the recipe's own
        assert published.dataset == content["dataset"]
    assert (published.sha256 is not None) == published.dataset.startswith("data/")
    if content.get("lowercase"):
        assert published.metric == "bleu_lowercase"

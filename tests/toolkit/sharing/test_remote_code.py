"""Architectures transformers lacks: the source that is shared computes what ours does."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from transformers import AutoImageProcessor, AutoTokenizer

from toolkit.sharing.converting import resnet_name
from toolkit.sharing.remote.cifar_resnet import CifarResNetForImageClassification
from toolkit.sharing.remote.frozen_classifier import FrozenTextClassifier
from toolkit.sharing.remote_code import (
    cifar_resnet_code,
    frozen_code,
    lstm_code,
    without_our_base,
)
from toolkit.sharing.shareable import write_shareable

ALLOWED = {"__future__", "typing", "torch", "transformers"}


@pytest.mark.parametrize(
    "code",
    [lstm_code(), cifar_resnet_code(), frozen_code("bert", False),
     frozen_code("scratch_cifar_resnet", True)],
)  # fmt: skip
def test_the_source_takes_nothing_of_ours(code: Any) -> None:
    for name, source in code.files.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= ALLOWED, name
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert str(node.module).split(".")[0] in ALLOWED, name
            elif isinstance(node, ast.ImportFrom):  # a sibling, which is there
                assert f"{node.module}.py" in code.files
    for value in code.auto_map.values():
        module, _, class_name = value.partition(".")
        assert f"class {class_name}(" in code.files[f"{module}.py"]


def test_source_that_takes_more_of_ours_is_refused() -> None:
    source = lstm_code().files["modeling_lstm.py"]
    with pytest.raises(ValueError, match="cannot stand alone"):
        without_our_base("from scratch_models.layers.masks import x\n" + source)
    with pytest.raises(ValueError, match="cannot stand alone"):
        without_our_base(source)  # has no base class of ours any more


@pytest.fixture
def shared_lstm_module(lstm_run: Path, tmp_path: Path) -> Iterator[tuple[ModuleType, Path]]:
    """The shared source, imported by itself."""
    shared = write_shareable(lstm_run, tmp_path / "shared")
    module = ModuleType("modeling_lstm_of_the_test")
    sys.modules[module.__name__] = module
    source = (shared.folder / "modeling_lstm.py").read_text(encoding="utf-8")
    exec(compile(source, "modeling_lstm.py", "exec"), module.__dict__)
    yield module, shared.folder
    del sys.modules[module.__name__]


def test_the_lstm_is_exact(shared_lstm_module: tuple[ModuleType, Path], lstm_run: Path) -> None:
    from scratch_models import ScratchLSTMForSequenceClassification

    module, folder = shared_lstm_module
    theirs, info = module.ScratchLSTMForSequenceClassification.from_pretrained(
        folder, output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ours = ScratchLSTMForSequenceClassification.from_pretrained(lstm_run / "model").eval()
    ids = torch.randint(1, 20, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(9) < torch.tensor([[9], [4], [1]])).long()
    with torch.no_grad():
        assert torch.equal(
            ours(ids, attention_mask=mask).logits, theirs.eval()(ids, attention_mask=mask).logits
        )


def test_the_frozen_classifier_gives_the_recorded_probabilities(
    frozen_run: Path, tmp_path: Path
) -> None:
    shared = write_shareable(frozen_run, tmp_path / "shared")
    config = json.loads((shared.folder / "config.json").read_text(encoding="utf-8"))
    assert (shared.remote_code, config["architectures"]) == (True, ["FrozenTextClassifier"])
    assert config["id2label"] == {"0": "负面", "1": "中性", "2": "正面"}
    model, info = FrozenTextClassifier.from_pretrained(shared.folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    rows = pyarrow.parquet.read_table(frozen_run / "predictions" / "test.parquet").to_pydict()
    tokenizer = AutoTokenizer.from_pretrained(frozen_run / "model")
    with torch.no_grad():
        batch = tokenizer(rows["text"], padding=True, return_tensors="pt")
        probabilities = model.eval()(**batch).logits.softmax(-1)
    np.testing.assert_allclose(probabilities, np.array(rows["probabilities"]), atol=1e-6, rtol=0)


def test_the_frozen_classifier_can_be_trained_on(frozen_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(frozen_run, tmp_path / "shared")
    model = FrozenTextClassifier.from_pretrained(shared.folder)
    outputs = model(input_ids=torch.tensor([[2, 9, 3]]), labels=torch.tensor([1]))
    expected = -outputs.logits.log_softmax(-1)[0, 1]
    torch.testing.assert_close(outputs.loss, expected)
    outputs.loss.backward()
    assert model.classifier.weight.grad is not None


def test_the_resnet_for_small_images_is_exact(resnet_run: Path, tmp_path: Path) -> None:
    from scratch_models import ScratchCifarResNetForImageClassification

    shared = write_shareable(resnet_run, tmp_path / "shared")
    theirs, info = CifarResNetForImageClassification.from_pretrained(
        shared.folder, output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ours = ScratchCifarResNetForImageClassification.from_pretrained(resnet_run / "model").eval()
    pixels = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = ours(pixel_values=pixels).logits
        assert expected.std() > 0.01
        assert torch.equal(theirs.eval()(pixel_values=pixels).logits, expected)
    assert AutoImageProcessor.from_pretrained(shared.folder).size["height"] == 12


def test_names_that_a_resnet_has_not_are_refused() -> None:
    assert resnet_name("resnet.stages.2.blocks.11.layers.1.norm.running_var") == (
        "resnet.encoder.stages.2.layers.11.layer.1.normalization.running_var"
    )
    assert resnet_name("stem.convolution.weight", "") == "embedder.embedder.convolution.weight"
    with pytest.raises(ValueError, match="no weight for"):
        resnet_name("resnet.attention.weight")

"""From a PyTorch classifier to the file `model.onnx`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from toolkit.export.unpacked_lstm import without_packing

_ONE_FILE = 1 << 30
"""Bytes of weights above which they lie beside the file: a protocol buffer ends at 2 GiB."""


class _Logits(nn.Module):
    """A model whose only output is its logits [batch, labels] or [batch, length, labels]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model


class _OfImages(_Logits):
    def forward(self, pixel_values: Tensor) -> Tensor:
        logits: Tensor = self.model(pixel_values=pixel_values).logits
        return logits


class _OfTexts(_Logits):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


class _OfPairs(_Logits):
    """With token types, which tell the second text of a pair from the first."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        logits: Tensor = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).logits
        return logits


_WRAPPERS = (_OfImages, _OfTexts, _OfPairs)  # by the number of their inputs


def write_graph(model: Any, example: dict[str, Tensor], file: Path) -> None:
    """Write a classifier in evaluation mode as ONNX; batch and length are left open.

    Args:
        example: two rows or more of its inputs; the names are those of the file's inputs.

    Raises:
        Exception: of many kinds, where something in the model cannot be exported.
    """
    if model.config.model_type == "scratch_lstm":
        model = without_packing(model)
    axes = {0: "batch"} if "pixel_values" in example else {0: "batch", 1: "length"}
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    torch.onnx.export(
        _WRAPPERS[len(example) - 1](model).eval(),
        kwargs=dict(example),
        f=file,
        input_names=list(example),
        output_names=["logits"],
        dynamic_shapes=dict.fromkeys(example, axes),
        external_data=size > _ONE_FILE,
        dynamo=True,
        verbose=False,
    )
    _forget_shapes(file)


def _forget_shapes(file: Path) -> None:
    """Leave out what is noted of the sizes of inner values: an LSTM's are those of the example."""
    import onnx

    model = onnx.load(file, load_external_data=False)
    del model.graph.value_info[:]
    onnx.save(model, file)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what exporter and loaders say for their developers."""
    import transformers

    logger = logging.getLogger("torch.onnx")
    level, bars = logger.level, transformers.utils.logging.is_progress_bar_enabled()
    logger.setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()

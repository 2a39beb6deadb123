"""A classifier as ONNX: one file that onnxruntime computes, with any batch and any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from toolkit.console import notify
from toolkit.errors import UserError, first_line
from toolkit.export.onnx_graph import quiet, write_graph
from toolkit.export.onnx_readme import onnx_readme
from toolkit.progress import working
from toolkit.sharing.files import PROCESSORS, copy_files, whole_folder, write_json
from toolkit.sharing.inputs import some_images, some_texts
from toolkit.sharing.shareable import write_shareable
from toolkit.sharing.source import Source, read_source
from toolkit.sharing.tasks import AUTO_CLASSES, Kind, kind_of

FILE = "model.onnx"
TOLERANCE = 1e-4
"""Largest difference of a logit from PyTorch's: rounding of float32."""

_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_KINDS = ("text-classification", "image-classification", "token-classification")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_MAX_LENGTH = 128


@dataclass(frozen=True)
class OnnxExport:
    """What was written, and how far it is from PyTorch.

    Args:
        folder: holds `model.onnx`, tokenizer or image processor, config.json, README.md.
        largest: largest absolute difference of a logit.
        batches: [rows, length] of the texts, or [rows, height, width] of the images compared.
    """

    folder: Path
    largest: float
    batches: list[list[int]]

    @property
    def equal(self) -> bool:
        """True where the difference is rounding."""
        return self.largest <= TOLERANCE


def require_packages() -> None:
    """Raise a UserError where a package that exports is not installed."""
    for name in _PACKAGES:
        try:
            import_module(name)
        except ImportError as error:
            raise UserError(
                f"--format onnx needs the package {name} ({error}): pip install -e '.[export]'"
            ) from error


def export_onnx(run: Path, folder: Path) -> OnnxExport:
    """Write the classifier of a run as ONNX and compare it with PyTorch on inputs of its test set.

    Texts are compared alone and in batches, short and long, with padding; `check.json` records the
    difference.

    Args:
        run: run directory or model folder: a classifier of texts, pairs, images or tokens.
        folder: new, or empty.

    Raises:
        UserError: no such run, a model of another task, a package that is missing, or an
            architecture that cannot be exported.
    """
    require_packages()
    source = read_source(Path(run))
    kind = kind_of(source)
    if kind.check not in _KINDS:
        raise UserError(
            f"{run}: a model of the kind {kind.check}; --format onnx exports Transformers, LSTMs "
            "and ResNets that classify texts, pairs, images or tokens. Use --format transformers."
        )
    what = f"exporting {source.folder} to {folder / FILE}"
    notify(what)
    with TemporaryDirectory() as name, working(what), quiet():
        model, processor = _load(source, kind, Path(name) / "model")
        batches = list(_batches(source, kind, processor, Path(name)))
        with whole_folder(folder):
            return _write(source, kind, model, batches, folder)


def _write(
    source: Source, kind: Kind, model: Any, batches: list[dict[str, Tensor]], folder: Path
) -> OnnxExport:
    try:
        write_graph(model, batches[0], folder / FILE)
    except Exception as error:  # of many kinds: torch's, the exporter's, onnxscript's
        raise UserError(
            f"{source.folder}: {type(model).__name__} cannot be exported: {first_line(error)} Use "
            "--format transformers."
        ) from error
    largest, shapes = _compare(model, batches, folder / FILE)
    copy_files(source.model, folder, PROCESSORS)
    write_json(folder / "config.json", source.config | _labels(model))
    checked = {"largest_difference": largest, "tolerance": TOLERANCE, "batches": shapes}
    write_json(folder / "check.json", checked)
    title = str(source.summary.get("title") or source.folder.name)
    readme = onnx_readme(title, kind, list(batches[0]), largest)
    (folder / "README.md").write_text(readme, encoding="utf-8")
    return OnnxExport(folder, largest, shapes)


def _load(source: Source, kind: Kind, folder: Path) -> tuple[Any, Any]:
    """HuggingFace's class and the processor; where it has none, the source that is shared."""
    import transformers

    shared = write_shareable(source.folder, folder, merged=True if source.adapter else None)
    trust = {"trust_remote_code": True} if shared.remote_code else {}
    model = getattr(transformers, AUTO_CLASSES[kind.check]).from_pretrained(folder, **trust)
    reader = "AutoImageProcessor" if source.reads_images else "AutoTokenizer"
    processor = getattr(transformers, reader).from_pretrained(folder, **trust)
    return model.eval(), processor


def _batches(
    source: Source, kind: Kind, processor: Any, folder: Path
) -> Iterator[dict[str, Tensor]]:
    """Inputs of several sizes; the first has two rows, which the exporter looks at."""
    if source.reads_images:
        from PIL import Image

        images = [Image.open(name).convert("RGB") for name in some_images(source, folder)]
        for rows in (2, 1, 5):
            read = processor((images * rows)[:rows], return_tensors="pt")
            yield {"pixel_values": read["pixel_values"]}
        return
    texts = some_texts(source, kind)
    longest, shortest = max(texts, key=_length), min(texts, key=_length)
    # An LSTM does not look at token types.
    names = _INPUTS[:2] if source.model_type == "scratch_lstm" else _INPUTS
    for group in ([longest, shortest], [shortest], [longest], [shortest, *texts]):
        batch = processor(
            *map(list, zip(*group, strict=True)), padding=True, truncation=True,
            max_length=min(_MAX_LENGTH, processor.model_max_length), return_tensors="pt",
        )  # fmt: skip
        yield {name: batch[name] for name in names if name in batch}


def _length(texts: list[str]) -> int:
    return sum(map(len, texts))


def _compare(
    model: Any, batches: list[dict[str, Tensor]], file: Path
) -> tuple[float, list[list[int]]]:
    """Largest difference from PyTorch, and the shapes that were compared.

    Raises:
        UserError: onnxruntime cannot compute the file.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    inputs = [each.name for each in session.get_inputs()]
    largest, shapes = 0.0, []
    for batch in batches:
        with torch.no_grad():
            expected = model(**batch).logits.numpy()
        try:
            [found] = session.run(None, {name: batch[name].numpy() for name in inputs})
        except Exception as error:  # onnxruntime's have no base class but this
            raise UserError(
                f"{file}: onnxruntime cannot compute a batch of the shape "
                f"{list(next(iter(batch.values())).shape)}: {first_line(error)}"
            ) from error
        largest = max(largest, _difference(found, expected, batch.get("attention_mask")))
        first = next(iter(batch.values()))
        shapes.append([size for place, size in enumerate(first.shape) if place != first.ndim - 3])
    return largest, shapes


def _difference(found: np.ndarray, expected: np.ndarray, mask: Tensor | None) -> float:
    """The largest; infinity where shapes differ or a number is not finite. Padding is left out."""
    if found.shape != expected.shape:
        return float("inf")
    if mask is not None and found.ndim == 3:
        real = mask.numpy().astype(bool)
        found, expected = found[real], expected[real]
    difference = float(np.abs(found - expected).max())
    return difference if np.isfinite(difference) else float("inf")


def _labels(model: Any) -> dict[str, Any]:
    names = model.config.id2label
    return {
        "id2label": {str(index): name for index, name in names.items()},
        "label2id": {name: index for index, name in names.items()},
    }

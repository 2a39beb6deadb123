"""Weights of two runs, tensor by tensor."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from toolkit.disk import sha256_of
from toolkit.errors import UserError, first_line

FOLDERS = ("model", "adapter")


def compare_weights(then: Path, now: Path) -> tuple[float | None, str | None] | None:
    """The largest absolute difference of two weights, and which tensor has it.

    Returns:
        (None, None) where all are equal bit for bit; a difference of None where the tensors
        themselves are others; None where neither run has a safetensors file.

    Raises:
        UserError: a file is damaged.
    """
    names = sorted({name for run in (then, now) for name in _files(run)})
    if not names:
        return None
    largest: float | None = None
    where = None
    for name in names:
        files = [run / name for run in (then, now)]
        for file, when in zip(files, ("then", "now"), strict=True):
            if not file.is_file():
                return None, f"there is no {name} {when}"
        if sha256_of(files[0]) == sha256_of(files[1]):
            continue
        difference, place = _compare_files(*files)
        if place is not None and difference is None:
            return None, f"{name}: {place}"
        if difference is not None and (largest is None or not difference <= largest):
            largest, where = difference, f"{name}: {place}"
    return largest, where


def _files(run: Path) -> list[str]:
    return [
        file.relative_to(run).as_posix()
        for folder in FOLDERS
        for file in (run / folder).rglob("*.safetensors")
    ]


def _compare_files(then: Path, now: Path) -> tuple[float | None, str | None]:
    largest: float | None = None
    where = None
    try:
        with safe_open(then, "pt") as first, safe_open(now, "pt") as second:
            if set(first.keys()) != set(second.keys()):
                names = sorted(set(first.keys()) ^ set(second.keys()))
                return None, f"other tensors: {', '.join(names[:4])}"
            for name in first.keys():  # noqa: SIM118  (no dictionary)
                a, b = first.get_tensor(name), second.get_tensor(name)
                if a.shape != b.shape or a.dtype != b.dtype:
                    return None, f"{name}: {_kind(a)} then, {_kind(b)} now"
                if torch.equal(_bits(a), _bits(b)):
                    continue
                difference = float((a.double() - b.double()).abs().max())
                if largest is None or not difference <= largest:
                    largest, where = difference, name
    except (OSError, SafetensorError) as error:
        raise UserError(f"{then} or {now} is damaged: {first_line(error)}") from error
    return largest, where


def _bits(tensor: Tensor) -> Tensor:
    """As bytes: NaN is equal to itself, and 0 is not -0."""
    return tensor.contiguous().view(-1).view(torch.uint8)


def _kind(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"

"""Images that cannot be read are named by their rows in all of the input."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

from toolkit.data.image_collate import Preprocessing
from toolkit.errors import UserError
from toolkit.prediction import predict
from toolkit.prediction.images import ImageClassifier


def brightness(_: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
    bright = batch["pixel_values"].mean((1, 2, 3))
    return {"probabilities": torch.stack([1 - bright, bright], dim=1)}


def picture(bright: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (2, 2), (bright, bright, bright)).save(stream, "PNG")
    return stream.getvalue()


def classifier(skip: bool = False) -> Any:
    plain = Preprocessing((2, 2), [0.0] * 3, [1.0] * 3)
    return ImageClassifier(nn.Linear(1, 1), plain, brightness, ["dark", "bright"], 2, skip)


def test_bad_images_are_numbered_through_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.prediction.session.CHUNK", 3)
    rows: list[Any] = [picture(255)] * 3 + [picture(0)] * 3 + [None, b"<html>", picture(255)]
    with pytest.raises(UserError, match=r"^1 of the images cannot be read:\n  row 8: not an image"):
        predict(classifier(), rows)
    found = predict(classifier(skip=True), rows).answers
    assert [answer["prediction"] for answer in found] == [
        *["bright"] * 3, *["dark"] * 3, None, None, "bright",
    ]  # fmt: skip


def test_bad_files_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("toolkit.prediction.session.CHUNK", 2)
    rows = [picture(0), picture(0), tmp_path / "none.png"]
    with pytest.raises(UserError, match=r"\n  .*none\.png: there is no such file\nMend"):
        predict(classifier(), rows)

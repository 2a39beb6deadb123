"""Image files of every mode become the pixels one sees."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTImageProcessor

from toolkit.data.image_decoding import decode, read_size, resize

RED, GREEN = (200, 30, 10), (20, 180, 40)


def file_of(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def two_rows(mode: str = "RGB") -> Image.Image:
    """3 wide, 2 high: red above, green below."""
    image = Image.new("RGB", (3, 2), RED)
    image.paste(GREEN, (0, 1, 3, 2))
    return image.convert(mode)


def test_colour() -> None:
    decoded = decode(file_of(two_rows()))
    assert decoded.pixels.shape == (2, 3, 3)
    assert decoded.pixels[0].tolist() == [list(RED)] * 3
    assert decoded.pixels[1].tolist() == [list(GREEN)] * 3
    assert decoded.changes == []


def test_gray_is_copied_to_three_channels() -> None:
    decoded = decode(file_of(Image.fromarray(np.array([[0, 100, 255]], dtype=np.uint8))))
    assert decoded.pixels.tolist() == [[[0] * 3, [100] * 3, [255] * 3]]
    assert decoded.changes == ["gray"]


def test_one_bit_and_palette() -> None:
    bits = Image.fromarray(np.array([[0, 255]], dtype=np.uint8)).convert("1")
    assert decode(file_of(bits)).pixels[0, :, 0].tolist() == [0, 255]
    palette = two_rows().quantize(2)
    assert decode(file_of(palette)).pixels[0, 0].tolist() == list(RED)


def test_sixteen_bits_are_scaled_not_cut_off() -> None:
    values = np.array([[0, 257, 25700, 65535]], dtype=np.uint16)
    decoded = decode(file_of(Image.fromarray(values)))
    assert decoded.pixels[0, :, 1].tolist() == [0, 1, 100, 255]
    assert "16-bit" in decoded.changes


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_is_laid_on_white(mode: str) -> None:
    image = Image.new("RGBA", (3, 1), (0, 0, 0, 0))  # invisible black
    image.putpixel((1, 0), (0, 0, 0, 255))
    image.putpixel((2, 0), (0, 0, 0, 51))  # a fifth
    decoded = decode(file_of(image.convert(mode)))
    assert decoded.pixels[0, :, 0].tolist() == [255, 0, 204]
    assert decoded.changes == ["transparent"]


def test_exif_orientation_is_applied_once() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise: what was left becomes the top
    image = Image.new("RGB", (32, 16), RED)
    image.paste(GREEN, (16, 0, 32, 16))
    content = file_of(image, "JPEG", exif=exif, quality=95)
    decoded = decode(content)
    assert decoded.pixels.shape == (32, 16, 3)
    assert read_size(content) == (32, 16)
    assert np.abs(decoded.pixels[:12].astype(int) - RED).max() < 12
    assert np.abs(decoded.pixels[20:].astype(int) - GREEN).max() < 12
    assert decoded.changes == ["turned"]


def test_cmyk() -> None:
    decoded = decode(file_of(Image.new("CMYK", (4, 4), (0, 0, 0, 255)), "JPEG"))
    assert decoded.pixels.max() < 5


def test_floating_point_pixels_are_refused() -> None:
    with pytest.raises(ValueError, match="floating point"):
        decode(file_of(Image.new("F", (2, 2), 0.5), "TIFF"))


def test_resizing_is_that_of_huggingfaces_processors() -> None:
    image = torch.randint(0, 256, (3, 40, 24), generator=torch.Generator().manual_seed(0))
    image = image.to(torch.uint8)
    processor = ViTImageProcessor(
        size={"height": 32, "width": 16}, do_normalize=False, do_rescale=False
    )
    theirs = processor(image, return_tensors="pt")["pixel_values"][0]
    assert torch.equal(resize(image, (32, 16)).float(), theirs.float())
    assert resize(image, (40, 24)) is image

"""Images in reports: read once more where the runs had them, shown small, checked by their hash."""

import base64
import hashlib
import io
import re

import numpy as np
import pytest
from PIL import Image

from toolkit.comparison.compare import compare_runs
from toolkit.report import as_blocks, as_json, build_report
from toolkit.report.html import render_html
from toolkit.report.markdown_blocks import render_markdown
from toolkit.report.thumbnails import LARGEST_SIDE

N = 30
LABELS = np.arange(N) % 2


@pytest.fixture
def photos(tmp_path):
    """Folders of two classes; every picture has another size and another colour."""
    folder = tmp_path / "photos"
    for number in range(N):
        file = folder / f"class_{number % 2}" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (100 + number, 50), (8 * number, 255 - 8 * number, 7)).save(file)
    return folder


def ids_of(folder):
    """As the image recipes name rows: hash of the file, and its number among all."""
    files = [file for kind in sorted(folder.iterdir()) for file in sorted(kind.iterdir())]
    digests = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    named = {file: f"{digests[file][:12]}-{row + 1}" for row, file in enumerate(files)}
    return [named[folder / f"class_{n % 2}" / f"{n:02}.png"] for n in range(N)]


@pytest.fixture
def compared(make_run, photos):
    def make(dataset=photos, **report):
        ids = ids_of(photos)
        places = [str(photos / f"class_{n % 2}" / f"{n:02}.png") for n in range(N)]
        runs = [
            make_run(
                title, LABELS, np.where(np.arange(N) < wrong, 1 - LABELS, LABELS),
                {"task": "image-classification"}, config={"method": title, "dataset": str(dataset)},
                text=None, image=places, id=ids,
            )
            for title, wrong in (("A", 5), ("B", 9))
        ]  # fmt: skip
        return runs, lambda: build_report(compare_runs(runs, draws=20), **report)

    return make


def shown(report):
    """The images in the page by their label, and the page."""
    document = as_blocks(report)
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="10pt"/>'
    page = render_html(document, {f.name: svg for f in figures(document.blocks)})
    found = re.findall(
        r'<img src="data:image/png;base64,([^"]+)" width="(\d+)" height="(\d+)" alt="([^"]+)">',
        page,
    )
    return {label: (base64.b64decode(png), int(w), int(h)) for png, w, h, label in found}, page


def figures(blocks):
    from toolkit.report.blocks import figures_of

    return figures_of(blocks)


def test_the_images_themselves_are_shown_small(compared, photos):
    report = compared()[1]()
    images, page = shown(report)
    examples = [one for group in report.examples for one in group.examples]
    assert set(images) == {one.shown for one in examples}
    for label, (png, width, height) in images.items():
        number = int(label.removesuffix(".png")[-2:])
        with Image.open(io.BytesIO(png)) as image:
            assert image.format == "PNG"
            assert max(image.size) == LARGEST_SIDE
            assert image.convert("RGB").getpixel((3, 3)) == (8 * number, 255 - 8 * number, 7)
            assert (width, height) == image.size
    assert "not shown" not in page
    markdown = render_markdown(as_blocks(report))
    assert "base64" not in markdown
    assert all(f"> {label.replace('_', chr(92) + '_')}" in markdown for label in images)
    assert "png" not in str(as_json(report)["examples"]).replace(".png", "")


def test_no_examples_no_images(compared):
    images, page = shown(compared(show_examples=False)[1]())
    assert not images
    assert "The test images are left out of this report on request." in page


def test_another_file_under_the_name_is_not_shown(compared, photos):
    build = compared()[1]
    for file in photos.rglob("*.png"):
        Image.new("RGB", (20, 20), "red").save(file)
    images, page = shown(build())
    assert not images
    assert f"The images are not shown: {photos} no longer holds them as they were tested." in page


def test_images_that_are_gone_are_said_to_be(compared, photos):
    build = compared()[1]
    photos.rename(photos.with_name("elsewhere"))
    images, page = shown(build())
    assert not images
    assert "is not on this machine as files." in page
    assert str(photos / "class_0" / "00.png") in page or "class_1" in page  # the rows, then


def test_one_that_is_gone_is_counted(compared, photos):
    build = compared()[1]
    gone = build().examples[0].examples[0].shown
    number = int(gone.removesuffix(".png")[-2:])
    (photos / f"class_{number % 2}" / f"{number:02}.png").write_bytes(b"no image")
    images, page = shown(build())
    assert gone not in images
    assert images
    assert re.search(r"1 of \d+ images are not shown", page)


def test_embedded_digits_are_enlarged_whole_times(make_run):
    from toolkit.data.image_sources import read_image_source

    table = read_image_source("demo:digits").tables["train"]
    digests = [hashlib.sha256(content).hexdigest()[:12] for content in table.contents[:N]]
    ids = [f"{digest}-{row + 1}" for row, digest in enumerate(digests)]
    runs = [
        make_run(title, LABELS, np.where(np.arange(N) < wrong, 1 - LABELS, LABELS),
                 {"task": "image-classification"},
                 config={"method": title, "dataset": "demo:digits"},
                 text=None, image=table.places[:N], id=ids)
        for title, wrong in (("A", 5), ("B", 9))
    ]  # fmt: skip
    images, _ = shown(build_report(compare_runs(runs, draws=20)))
    assert images
    for png, width, height in images.values():
        with Image.open(io.BytesIO(png)) as image:
            assert image.size == (8, 8)
        assert (width, height) == (96, 96)

"""Images from folders, tables and the package: what counts, what is refused, what is kept."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from PIL import Image

from toolkit.data.images import load_images
from toolkit.errors import UserError


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "scratch-models-toolkit"


def picture(number: int, size: tuple[int, int] = (6, 4)) -> Image.Image:
    """Its number is in every pixel: red the number, green 255 minus it."""
    return Image.new("RGB", size, (number, 255 - number, 7))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of ten."""
    for number in range(20):
        file = tmp_path / "photos" / ("cat" if number < 10 else "dog") / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        picture(number).save(file)
    return tmp_path / "photos"


def test_a_folder_of_class_folders(folder: Path) -> None:
    data = load_images(str(folder))
    assert data.label_names == ["cat", "dog"]
    assert data.size == (4, 6)
    assert data.summary["sizes"] == {"train": 16, "validation": 2, "test": 2}
    seen = []
    for split in (data.train, data.validation, data.test):
        rows = split[list(range(len(split)))]
        assert rows["pixels"].dtype == torch.uint8
        assert rows["pixels"].shape[1:] == (3, 4, 6)
        for pixels, label, place in zip(rows["pixels"], rows["label"], split["image"], strict=True):
            number = int(pixels[0, 0, 0])
            assert (pixels[1] == 255 - number).all()
            assert label == int(number >= 10)
            assert place.endswith(f"{number:02}.png")
            seen.append(number)
    assert sorted(seen) == list(range(20))


def test_the_same_data_has_the_same_ids_and_splits_and_is_decoded_once(
    folder: Path, cache: Path
) -> None:
    one = load_images(str(folder))
    (stored,) = cache.glob("images-*[0-9a-f]")
    changed = (stored / "pixels.npy").stat().st_mtime_ns
    other = load_images(str(folder))
    assert (stored / "pixels.npy").stat().st_mtime_ns == changed
    assert one.test["id"] == other.test["id"]
    assert one.summary == other.summary
    picture(77).save(folder / "cat" / "00.png")
    assert load_images(str(folder)).summary["sha256"] != one.summary["sha256"]
    assert len(list(cache.glob("images-*[0-9a-f]"))) == 2


def test_splits_given_as_folders_and_a_class_without_test_images(
    folder: Path, tmp_path: Path
) -> None:
    root = tmp_path / "split"
    for name, classes in (("train", ("cat", "dog")), ("test", ("dog",))):
        for label in classes:
            for file in (folder / label).iterdir():
                if (name == "test") == (int(file.stem) % 10 >= 8):
                    target = root / name / label / file.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(file.read_bytes())
    data = load_images(str(root))
    assert data.label_names == ["cat", "dog"]
    assert data.test["label"] == [1, 1]
    assert data.summary["class_counts"]["test"] == {"cat": 0, "dog": 2}


def test_words_in_names_below_make_no_splits(folder: Path) -> None:
    (folder / "cat").rename(folder / "contest-dev")
    (folder / "dog" / "test").mkdir()
    for file in list((folder / "dog").glob("*.png"))[:5]:
        file.rename(file.parent / "test" / file.name)
    data = load_images(str(folder))
    assert data.label_names == ["contest-dev", "dog"]
    assert data.summary["rows_read"] == {"train": 20}


def test_a_class_may_be_called_like_a_split(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dog").rename(folder / "train")
    assert load_images(str(folder)).label_names == ["cat", "train"]
    assert "train holds no class folders: it is read as a class" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        (
            {"cat": "train/cat", "dog": "train/dog", "cow": "cow"},
            "holds train with .* images in cow",
        ),
        ({"cat": "test/cat", "dog": "test/dog"}, "holds test with .* but no train"),
        (
            {"cat": "test/cat", "dog": "dog"},
            "holds test with class folders in it, .* images in dog",
        ),
        ({"cat": "train", "dog": "test"}, "test holds no images in class folders"),
    ],
)
def test_folders_that_are_neither_splits_nor_classes_are_refused(
    folder: Path, moves: dict[str, str], message: str
) -> None:
    (folder / "cow").mkdir()
    picture(99).save(folder / "cow" / "99.png")
    if "cow" not in moves:
        (folder / "cow" / "99.png").unlink()
    for old, new in moves.items():
        (folder / new).parent.mkdir(exist_ok=True)
        (folder / old).rename(folder / new)
    with pytest.raises(UserError, match=message):
        load_images(str(folder))


def test_images_outside_of_class_folders_are_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture(99).save(folder / "stray.png")
    assert load_images(str(folder)).summary["rows_read"] == {"train": 20}
    said = capsys.readouterr().err
    assert "1 images of" in said
    assert "stray.png" in said


def test_junk_is_no_image(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("Thumbs.db", ".DS_Store", "._00.png", "notes.txt"):
        (folder / "cat" / name).write_bytes(b"junk")
    for name in ("__MACOSX/cat", "cat/@eaDir"):
        (folder / name).mkdir(parents=True)
        shutil.copy(folder / "cat" / "00.png", folder / name / "00.png")
    data = load_images(str(folder))
    assert data.summary["rows_read"] == {"train": 20}
    assert data.label_names == ["cat", "dog"]
    said = capsys.readouterr().err.replace("\n", " ")
    assert "notes.txt" in said
    assert "Thumbs" not in said


def test_an_empty_class_is_refused_for_training_and_said_of_a_test_set(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(UserError, match=r"no image in .*empty: nothing can be learned"):
        load_images(str(folder))
    (folder / "empty").rmdir()
    for split, name in (("train", "cat"), ("train", "dog"), ("test", "dog")):
        (folder / split).mkdir(exist_ok=True)
        shutil.copytree(folder / name, folder / split / name)
    for name in ("cat", "dog"):
        shutil.rmtree(folder / name)
    (folder / "test" / "cat").mkdir()
    for file in sorted((folder / "test" / "dog").iterdir())[2:]:
        file.unlink()
    data = load_images(str(folder), keep_leaks=True)
    assert data.label_names == ["cat", "dog"]
    assert data.test["label"][:] == [1, 1]
    assert "warning: no image in" in capsys.readouterr().err


def test_a_link_that_leads_nowhere_is_a_missing_image(folder: Path) -> None:
    (folder / "cat" / "gone.png").symlink_to(folder / "moved.png")
    (folder / "dog" / "same.png").symlink_to(folder / "cat" / "00.png")
    with pytest.raises(UserError, match=r"1 of 22 files(.|\n)*gone\.png"):
        load_images(str(folder))


@pytest.fixture
def damaged(folder: Path) -> Path:
    whole = (folder / "cat" / "00.png").read_bytes()
    stream = io.BytesIO()
    Image.effect_noise((64, 64), 90).save(stream, "JPEG")
    (folder / "cat" / "truncated.jpg").write_bytes(stream.getvalue()[:700])
    (folder / "dog" / "empty.png").write_bytes(b"")
    (folder / "dog" / "page.jpg").write_text("<html>404</html>")
    assert whole
    return folder


def test_damaged_files_are_listed_by_path(damaged: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_images(str(damaged), size=(4, 6))
    message = str(caught.value)
    assert "3 of 23 files" in message
    for name in ("cat/truncated.jpg", "dog/empty.png", "dog/page.jpg"):
        assert str(damaged / name) in message
    assert "--skip-damaged" in message


def test_damaged_files_can_be_left_out(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = load_images(str(damaged), size=(4, 6), skip_damaged=True)
    assert sum(data.summary["sizes"].values()) == 20
    assert data.summary["dropped"]["not_readable"] == {"train": 3}
    assert "truncated.jpg" in capsys.readouterr().err


def test_different_sizes_need_one_to_be_brought_to(folder: Path) -> None:
    picture(3, (30, 20)).save(folder / "cat" / "large.png")
    with pytest.raises(UserError, match=r"from 4x6 to 20x30.*--image-size"):
        load_images(str(folder))
    data = load_images(str(folder), size=(8, 8))
    assert data.size == (8, 8)
    assert data.summary["changes"] == {"resized": 21}


def test_one_size_stays_unless_it_is_larger(folder: Path) -> None:
    assert load_images(str(folder), size=(100, 100)).size == (4, 6)
    assert load_images(str(folder), size=(2, 2)).size == (2, 2)


def test_a_training_image_that_is_also_tested_is_removed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        f"photos/{label}/{n:02}.png,{label}" for n, label in enumerate(["cat"] * 10 + ["dog"] * 10)
    ]
    root = tmp_path / "tables"
    root.mkdir()
    (root / "photos").symlink_to(folder)
    (root / "train.csv").write_text("image,label\n" + "\n".join(lines) + "\n")
    (root / "test.csv").write_text("image,label\nphotos/cat/03.png,dog\nphotos/dog/12.png,dog\n")
    data = load_images(str(root))
    assert data.summary["overlap"]["test"] == {
        "in_train": 2, "with_opposite_label": 1, "training_rows_removed": 2,
    }  # fmt: skip
    assert data.summary["sizes"]["train"] + data.summary["sizes"]["validation"] == 18
    assert "2 of 2 test images are also training images" in capsys.readouterr().err
    kept = load_images(str(root), keep_leaks=True)
    assert kept.summary["sizes"]["train"] + kept.summary["sizes"]["validation"] == 20


def test_a_table_of_paths_names_the_row_of_a_missing_file(tmp_path: Path) -> None:
    for number in range(12):
        picture(number).save(tmp_path / f"{number}.png")
    lines = "".join(f"{n}.png,{'even' if n % 2 == 0 else 'odd'}\n" for n in range(12))
    file = tmp_path / "table.csv"
    file.write_text("file_name,label\n" + lines)
    data = load_images(str(file))
    assert data.summary["sizes"] == {"train": 8, "validation": 2, "test": 2}
    (tmp_path / "5.png").unlink()
    with pytest.raises(UserError, match=r"table.csv, line 7 \(5.png\): there is no such file"):
        load_images(str(file))


def test_parquet_as_the_hub_has_it_keeps_the_order_of_its_classes(tmp_path: Path) -> None:
    names = ["zebra", "ant", "bee"]
    features = datasets.Features(
        {"img": datasets.Image(decode=False), "label": datasets.ClassLabel(names=names)}
    )
    rows = []
    for number in range(12):
        stream = io.BytesIO()
        picture(number).save(stream, "PNG")
        rows.append({"img": {"bytes": stream.getvalue(), "path": None}, "label": number % 3})
    table = datasets.Dataset.from_list(rows, features=features)
    for name in ("train", "test"):
        table.to_parquet(tmp_path / f"{name}.parquet")
    data = load_images(str(tmp_path), keep_leaks=True)
    assert data.label_names == names
    assert data.test["label"] == [number % 3 for number in range(12)]
    red = data.test[list(range(12))]["pixels"][:, 0, 0, 0]
    assert red.tolist() == list(range(12))


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (lambda root: (root / "photos").mkdir(), "holds no images in class folders"),
        (lambda root: (root / "photos/cat").mkdir(parents=True), "holds no images"),
    ],
)
def test_nothing_there(tmp_path: Path, prepare: object, expected: str) -> None:
    prepare(tmp_path)  # type: ignore[operator]
    with pytest.raises(UserError, match=expected):
        load_images(str(tmp_path / "photos"))


def test_one_class_is_none(tmp_path: Path) -> None:
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    for number in range(5):
        picture(number).save(tmp_path / "photos" / "cat" / f"{number}.png")
    with pytest.raises(UserError, match="1 class"):
        load_images(str(tmp_path / "photos"))


def test_an_unknown_embedded_set_and_column(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="demo:digits"):
        load_images("demo:letters")
    (tmp_path / "a.csv").write_text("picture_name,label\na.png,1\n")
    with pytest.raises(UserError, match=r"picture_name, label.*--image_column"):
        load_images(str(tmp_path / "a.csv"))
    with pytest.raises(UserError, match="no column 'picture'"):
        load_images(str(tmp_path / "a.csv"), image_column="picture")


def test_the_digits() -> None:
    from sklearn.datasets import load_digits

    data = load_images("demo:digits", train_size=100)
    assert data.summary["sizes"] == {"train": 100, "validation": 180, "test": 450}
    assert data.label_names == [str(digit) for digit in range(10)]
    given = load_digits()
    for split in (data.train, data.test):
        rows = split[list(range(len(split)))]
        numbers = [int(place.split()[-1]) - 1 for place in split["image"]]
        expected = np.round(given.images[numbers] * 255 / 16)
        assert (rows["pixels"].numpy() == expected[:, None]).all()
        assert rows["label"] == given.target[numbers].tolist()
    assert set(data.train["id"]).isdisjoint(data.test["id"])

"""`toolkit attention` as it is typed: files, remarks, and mistakes with one message each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from toolkit.attention.picture import draw
from toolkit.attention.reading import read
from toolkit.attention.rollout import rollout

from .conftest import Finished, data_of

Command = Callable[..., Finished]


def test_the_page_has_a_name_of_its_own(attention: Command, bert: Path, tmp_path: Path) -> None:
    done = attention(bert, "今天房间好棒")

    assert done.status == 0, done.err
    assert done.out == ""
    page = (tmp_path / "attention-bert.html").read_text("utf-8")
    assert data_of(page)["attentions"][0]["heads"] == 2
    assert "written: attention-bert.html" in done.err
    assert "exists already. Write over it: --overwrite." in attention(bert, "房间").error
    assert attention(bert, "房间", "--overwrite").status == 0
    assert (tmp_path / "attention-bert.html").read_text("utf-8") != page


def test_numbers_alone(attention: Command, bert: Path, tmp_path: Path) -> None:
    done = attention(bert, "--json", "-", "今天", "房间")

    assert list(tmp_path.iterdir()) == []
    found = json.loads(done.out)
    maps = read(str(bert), ["今天", "房间"]).maps["encoder"]
    told = found["attention"]["encoder"]
    np.testing.assert_allclose(told["weights"], maps.weights, atol=1e-6)
    np.testing.assert_allclose(told["mean"], maps.weights.mean(1), atol=1e-6)
    np.testing.assert_allclose(told["rollout"], rollout(maps.weights), atol=1e-6)
    assert told["keys"][0] == {"token": "[CLS]", "special": True}
    assert found["texts"] == ["今天", "房间"]


def test_a_translation_is_said(attention: Command, marian: Path, tmp_path: Path) -> None:
    done = attention(marian, "3 plus 12", "--output", "a.html", "--json", "a.json",
                     "--max-tokens", 8)  # fmt: skip
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert list(found["attention"]) == ["encoder", "decoder", "cross"]
    assert "rollout" not in found["attention"]["cross"]
    assert found["translation_is_the_models_own"] is True
    assert f"its own translation: {found['translation']}" in done.err
    assert (tmp_path / "a.html").is_file()


@pytest.mark.parametrize("what", [[], ["--layer", 1, "--head", 2]])
def test_pictures_of_a_text(attention: Command, gpt2: Path, tmp_path: Path, what: list) -> None:
    done = attention(gpt2, "房间 room", "--png", "a.png", *what)
    assert done.status == 0, done.err
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB"))
    assert 900 < pixels.shape[1] < 1100
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50

    assert attention(gpt2, "房间 room", "--png", "a.svg", *what).status == 0
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert "房间 room" in svg  # the text stays text
    if "--head" in what and "--layer" in what:
        assert ">房 1/3<" in svg


@pytest.mark.parametrize(
    ("layer", "head", "names"),
    [
        (2, None, ["head 1", "head 2", "mean", "rollout"]),
        (None, "rollout", ["layer 1", "layer 2", "layer 3"]),
    ],
)
def test_one_layer_or_one_head(
    gpt2: Path, layer: int | None, head: str | None, names: list[str]
) -> None:
    figure = draw(read(str(gpt2), ["the room"]), layer=layer, head=head)
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == names


def test_the_shade_of_a_cell_is_its_share(attention: Command, bert: Path, tmp_path: Path) -> None:
    from toolkit.plots.matrices import SHADES

    attention(bert, "房间", "--png", "a.png", "--layer", 1, "--head", 1)

    weights = read(str(bert), ["房间"]).maps["encoder"].weights[0, 0]
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).astype(int)
    for share in weights.flatten().tolist():
        expected = np.round(np.array(SHADES(share**0.5)[:3]) * 255)
        cells = (np.abs(pixels - expected).max(-1) <= 1).sum()
        assert cells > 500, share


def test_pictures_of_an_image(attention: Command, vit: Path, photo: Path, tmp_path: Path) -> None:
    done = attention(vit, photo, "--png", "a.png", "--output", "a.html")
    assert done.status == 0, done.err
    assert data_of((tmp_path / "a.html").read_text("utf-8"))["image"]["columns"] == 3
    assert attention(vit, photo, "--png", "b.png", "--layer", 2, "--head", "mean").status == 0


def test_words_behind_options(attention: Command, bert: Path) -> None:
    assert attention(bert, "--implementation", "hf", "今天", "房间").status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a text, or two, behind the model; none given."),
        (["a", "b", "c"], "expected a text, or two, behind the model; 3 given. A text of several"),
        (["房间", "--layer", "1"], "--layer, --head and --kind choose what --png shows"),
        (["房间", "--png", "a.jpg"], "--png a.jpg: unknown kind of file; expected one of .png"),
        (["房间", "--output", "a.pdf"], "--output a.pdf: unknown kind of file"),
        (["房间", "--output", "no/a.html"], "--output no/a.html: cannot be written: No such"),
        (["房间", "--json", "no/a.json"], "--json no/a.json: expected a file in a folder"),
        (["房间", "--json", "a.html", "--output", "a.html"], "is to hold something else too"),
        (["房间", "--png", "a.png", "--layer", "3"], "--layer 3: the model has layers 1 to 2."),
        (["房间", "--png", "a.png", "--layer", "0"], "--layer 0: the model has layers 1 to 2."),
        (
            ["房间", "--png", "a.png", "--head", "3"],
            "--head 3: every layer has heads 1 to 2, and m",
        ),
        (["房间", "--png", "a.png", "--head", "all"], "--head all: expected a number from 1 on,"),
        (["房间", "--png", "a.png", "--kind", "cross"], "bert has encoder attention only."),
        (["房间", "--max-tokens", "0"], "--max-tokens"),
        (["房间", "--max-tokens", "2"], "special tokens. Raise --max-tokens."),
        (["房间", "--device", "cuda:77"], "--device cuda:77: not available here"),
    ],
)
def test_mistakes(
    attention: Command, bert: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    assert message in attention(bert, *words).error.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_models_that_are_none(attention: Command, bert: Path, tmp_path: Path) -> None:
    assert "no such model folder" in attention(tmp_path / "none", "房间").error
    copy = shutil.copytree(bert, tmp_path / "copy")
    for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (copy / file).unlink(missing_ok=True)
    assert "has no tokenizer" in attention(copy, "房间").error
    (copy / "config.json").write_text("{")
    assert "config.json" in attention(copy, "房间").error


def test_json_is_not_written_over(attention: Command, bert: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("mine")
    assert "--json a.json exists already" in attention(bert, "房间", "--json", "a.json").error
    assert (tmp_path / "a.json").read_text() == "mine"

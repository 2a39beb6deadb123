"""What is read, and how: tokens and weights against HuggingFace's classes on the same folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from toolkit.attention.reading import read
from toolkit.errors import UserError
from toolkit.prediction import Options

from .conftest import CHINESE, assert_close

IMPLEMENTATIONS = pytest.mark.parametrize("implementation", ["scratch", "hf"])


def eager(auto: Any, folder: Path) -> Any:
    return auto.from_pretrained(folder, attn_implementation="eager").eval()


@IMPLEMENTATIONS
def test_a_body_without_a_head(bert: Path, implementation: str) -> None:
    found = read(str(bert), ["今天房间好棒"], Options(implementation))

    ids = AutoTokenizer.from_pretrained(bert)("今天房间好棒", return_tensors="pt")
    with torch.no_grad():
        expected = eager(AutoModel, bert)(**ids, output_attentions=True).attentions
    assert list(found.maps) == ["encoder"]
    assert_close(found.maps["encoder"].weights, torch.cat(expected))
    assert found.maps["encoder"].keys.labels == ("[CLS]", *"今天房间好棒", "[SEP]")
    assert found.remarks == ()


@IMPLEMENTATIONS
def test_a_pair_has_its_segments(bert: Path, implementation: str) -> None:
    found = read(str(bert), ["房间好", "服务差"], Options(implementation))

    ids = AutoTokenizer.from_pretrained(bert)("房间好", "服务差", return_tensors="pt")
    assert ids["token_type_ids"].sum() == 4
    with torch.no_grad():
        expected = eager(AutoModel, bert)(**ids, output_attentions=True).attentions
    assert_close(found.maps["encoder"].weights, torch.cat(expected))


def test_a_run_reads_as_long_as_it_was_trained(bert_run: Path) -> None:
    found = read(str(bert_run), ["今天房间好棒" * 20])

    assert len(found.maps["encoder"].keys) == 32
    [remark] = found.remarks
    assert remark.startswith("the text was cut from 122 to 32 tokens")
    assert "--max-tokens" not in remark  # which would allow no more
    assert read(str(bert_run), ["今天房间好棒" * 20], max_tokens=10).remarks == (
        "the text was cut from 122 to 10 tokens; --max-tokens allows more, up to what the model "
        "can read",
    )
    assert found.model_class == "ScratchBertForSequenceClassification"


def test_an_adapter_is_read_with_its_updates(lora_run: Path, tiny_checkpoint: Path) -> None:
    text = "今天房间好棒"
    found, merged, base = (
        read(str(folder), [text]).maps["encoder"].weights
        for folder in (lora_run / "adapter", lora_run, tiny_checkpoint)
    )
    assert_close(found, merged, atol=1e-5)
    assert (found - base).abs().max() > 1e-3


def test_a_frozen_run(frozen_run: Path) -> None:
    assert read(str(frozen_run), ["房间"]).maps["encoder"].layers == 2


@IMPLEMENTATIONS
def test_a_language_model(gpt2: Path, implementation: str) -> None:
    found = read(str(gpt2), [CHINESE], Options(implementation))

    ids = AutoTokenizer.from_pretrained(gpt2)(CHINESE, return_tensors="pt")
    with torch.no_grad():
        expected = eager(AutoModelForCausalLM, gpt2)(**ids, output_attentions=True).attentions
    assert list(found.maps) == ["decoder"]
    assert_close(found.maps["decoder"].weights, torch.cat(expected), atol=1e-5)
    assert found.maps["decoder"].keys.labels[:3] == ("房 1/3", "房 2/3", "房 3/3")


@IMPLEMENTATIONS
def test_a_translation_of_its_own(marian: Path, implementation: str) -> None:
    found = read(str(marian), ["3 plus 12"], Options(implementation), max_tokens=12)

    tokenizer = AutoTokenizer.from_pretrained(marian)
    model = eager(AutoModelForSeq2SeqLM, marian)
    ids = tokenizer("3 plus 12", return_tensors="pt")
    made = model.generate(**ids, num_beams=1, do_sample=False, max_new_tokens=12)
    with torch.no_grad():
        outputs = model(**ids, decoder_input_ids=made[:, :-1], output_attentions=True)
    assert found.remarks == (f"its translation was stopped after {made.shape[1] - 1} tokens",)
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions",
             "cross": "cross_attentions"}  # fmt: skip
    assert list(found.maps) == list(names)
    for kind, maps in found.maps.items():
        assert_close(maps.weights, torch.cat(outputs[names[kind]]), atol=1e-5)
    assert found.made
    assert found.written == tokenizer.decode(made[0], skip_special_tokens=True).strip()
    # The decoder reads the start token first; a row of cross is what is written there.
    assert found.maps["decoder"].queries.labels[0] == tokenizer.pad_token
    assert found.maps["cross"].queries.labels[:-1] == found.maps["decoder"].queries.labels[1:]


@IMPLEMENTATIONS
def test_a_translation_that_is_given(marian: Path, implementation: str) -> None:
    found = read(str(marian), ["3 plus 12", "3加12"], Options(implementation))

    tokenizer = AutoTokenizer.from_pretrained(marian)
    ids = tokenizer("3 plus 12", text_target="3加12", return_tensors="pt")
    with torch.no_grad():
        outputs = eager(AutoModelForSeq2SeqLM, marian)(**ids, output_attentions=True)
    assert_close(found.maps["cross"].weights, torch.cat(outputs.cross_attentions), atol=1e-5)
    assert (found.written, found.made) == ("3加12", False)
    assert "".join(found.maps["cross"].queries.labels) == "␣3加12</s>"


@IMPLEMENTATIONS
def test_an_image(vit: Path, photo: Path, implementation: str) -> None:
    found = read(str(vit), [str(photo)], Options(implementation))

    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(vit)
    pixels = processor(Image.open(photo), return_tensors="pt")
    with torch.no_grad():
        expected = eager(AutoModel, vit)(**pixels, output_attentions=True).attentions
    maps = found.maps["encoder"]
    assert_close(maps.weights, torch.cat(expected), atol=1e-5)
    assert maps.keys.labels == (
        "[CLS]", "(1, 1)", "(1, 2)", "(1, 3)", "(2, 1)", "(2, 2)", "(2, 3)",
    )  # fmt: skip
    image: Any = found.image
    assert (image.rows, image.columns, image.first) == (2, 3, 1)
    assert image.pixels.shape == (8, 12, 3)
    assert image.pixels.dtype == np.uint8
    assert found.texts == ("photo.png",)


def test_more_tokens_may_be_allowed_or_fewer(bert: Path) -> None:
    text = "今天房间好棒" * 4
    assert len(read(str(bert), [text], max_tokens=10).maps["encoder"].keys) == 10
    assert len(read(str(bert), [text]).maps["encoder"].keys) == 26


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["　"], "the text is empty"),
        (["房间", " "], "the text is empty"),
        (["\udcff"], "no valid UTF-8"),
    ],
)
def test_what_is_no_text(bert: Path, texts: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(str(bert), texts)


def test_an_image_for_a_model_of_texts(bert: Path, photo: Path) -> None:
    with pytest.raises(UserError, match=r"is an image, but .* reads texts"):
        read(str(bert), [str(photo)])


def test_a_text_for_a_model_of_images(vit: Path, photo: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="房间 does not exist; this model reads images"):
        read(str(vit), ["房间"])
    with pytest.raises(UserError, match="is a folder"):
        read(str(vit), [str(tmp_path)])
    with pytest.raises(UserError, match="reads one image, 2 are given"):
        read(str(vit), [str(photo)] * 2)
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(UserError, match="is no image that can be read"):
        read(str(vit), [str(tmp_path / "broken.png")])


def test_a_prefix_is_for_translations(bert: Path, marian: Path) -> None:
    whole = read(str(marian), ["3 plus 12", "3"])
    parted = read(str(marian), ["12", "3"], Options(prefix="3 plus "))
    assert_close(whole.maps["cross"].weights, parted.maps["cross"].weights)
    with pytest.raises(UserError, match="--prefix is for translation"):
        read(str(bert), ["12"], Options(prefix="3 plus "))


def test_two_texts_for_a_language_model(gpt2: Path) -> None:
    with pytest.raises(UserError, match="a language model reads one text, 2 are given"):
        read(str(gpt2), ["one", "two"])


def test_models_without_attention(lstm_run: Path, resnet_run: Path, photo: Path) -> None:
    with pytest.raises(UserError, match="returns no attention weights"):
        read(str(lstm_run), ["房间"])
    with pytest.raises(UserError, match="has no patches"):
        read(str(resnet_run), [str(photo)])


def test_a_pretraining_run(write_run: Callable[..., Path], bert: Path, tmp_path: Path) -> None:
    import shutil

    run = write_run(tmp_path / "run", "pretraining")
    shutil.copytree(bert, run / "model")
    assert read(str(run), ["房间"]).maps["encoder"].layers == 2
    from toolkit.prediction.source import find_source

    with pytest.raises(UserError, match="no task to predict"):
        find_source(str(run))

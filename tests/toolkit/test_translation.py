"""The objective against HuggingFace's losses, and translations that no neighbour changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LabelSmoother

from scratch_models import ScratchTransformerForConditionalGeneration
from toolkit.data.joint_bpe import train_joint_bpe
from toolkit.data.translation_tokens import TranslationCollator
from toolkit.errors import UserError
from toolkit.translation import (
    GenerationSettings,
    Translation,
    TranslationMetric,
    decode,
    translate,
)

SETTINGS = GenerationSettings(beams=1, length_ratio=1.0)
TOKENIZER = train_joint_bpe(["the cat sat", "a dog ran", "猫坐着", "狗跑了"], 300)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=len(TOKENIZER), d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
        decoder_ffn_dim=24, max_position_embeddings=40, init_std=0.4, scale_embedding=True,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None,
    )  # fmt: skip
    return MarianMTModel(config).eval()


@pytest.fixture(scope="module")
def batch() -> dict[str, torch.Tensor]:
    rows = []
    for index, (source, target) in enumerate(
        [
            ("the cat sat", "猫坐着"),
            ("a", "狗"),
            ("a dog ran and ran", "狗跑了狗跑了"),
            ("cat", "猫"),
        ]
    ):
        ids, labels = TOKENIZER(source)["input_ids"], TOKENIZER(target)["input_ids"]
        rows.append({"input_ids": ids, "labels": labels, "index": index})
    return TranslationCollator(TOKENIZER)(rows)


def objective(model: Any, smoothing: float = 0.0, rows: int = 0, **changes: Any) -> Translation:
    return Translation(model, smoothing, changes.get("settings", SETTINGS), 20, rows)


def test_collator_pads_each_side_for_itself(batch: dict[str, torch.Tensor]) -> None:
    assert batch["input_ids"].shape == batch["attention_mask"].shape
    assert batch["labels"].shape[0] == 4
    assert batch["labels"].shape[1] == max((batch["labels"] != -100).sum(1))
    assert ((batch["input_ids"] == 0) == (batch["attention_mask"] == 0)).all()
    assert batch["index"].tolist() == [0, 1, 2, 3]


def test_sum_over_count_is_huggingfaces_loss(model: Any, batch: dict[str, torch.Tensor]) -> None:
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}
    with torch.no_grad():
        expected = model(**inputs)
    plain = objective(model)
    (count,) = plain.count(batch)
    assert count == int((batch["labels"] != -100).sum())
    total = plain.loss(model, batch)
    assert total.shape == (1,)
    assert total.item() / count == pytest.approx(expected.loss.item(), abs=1e-5)
    smooth = objective(model, 0.1).loss(model, batch)
    smoothed = LabelSmoother(epsilon=0.1)(expected, batch["labels"])
    assert smooth.item() / count == pytest.approx(smoothed.item(), abs=1e-5)
    assert smooth.item() != pytest.approx(total.item(), abs=1e-2)


def test_outputs_per_example_are_not_smoothed(model: Any, batch: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        outputs = objective(model, 0.1).outputs(model, batch)
        assert set(outputs) == {"loss", "tokens", "correct"}
        for row in range(4):
            labels = batch["labels"][row][batch["labels"][row] != -100][None]
            ids = batch["input_ids"][row][batch["attention_mask"][row] == 1][None]
            alone = model(input_ids=ids, labels=labels)
            assert outputs["loss"][row].item() == pytest.approx(
                alone.loss.item() * labels.shape[1], rel=1e-4
            )
            assert outputs["tokens"][row] == labels.shape[1]
            assert outputs["correct"][row] == (alone.logits.argmax(-1) == labels).sum()


@pytest.mark.parametrize("beams", [1, 3])
def test_a_translation_does_not_depend_on_its_neighbours(
    model: Any, batch: dict[str, torch.Tensor], beams: int
) -> None:
    settings = GenerationSettings(beams=beams, length_ratio=0.6)
    together = translate(model, batch, settings, 99)
    for row in range(4):
        length = int(batch["attention_mask"][row].sum())
        alone = translate(
            model, {name: batch[name][row : row + 1, :length] for name in
                    ("input_ids", "attention_mask")}, settings, 99,
        )[0]  # fmt: skip
        made = together[row][: len(alone)]
        assert made.tolist() == alone.tolist()
        assert set(together[row][len(alone) :].tolist()) <= {0, 1}  # padding or end
        assert (alone == 1).sum() == 1
        assert int((alone == 1).nonzero()) + 1 <= settings.longest(length)
        if beams == 1:  # a random model does not stop by itself
            assert int((alone == 1).nonzero()) + 1 == settings.longest(length)
            free = model.generate(
                batch["input_ids"][row : row + 1, :length], max_new_tokens=len(alone) - 1,
                do_sample=False,
            )  # fmt: skip
            assert made[:-1].tolist() == free[0, 1:].tolist()


def test_no_translation_is_longer_than_the_positions(
    model: Any, batch: dict[str, torch.Tensor]
) -> None:
    long = objective(model, rows=4, settings=GenerationSettings(beams=1, length_ratio=90))
    assert long.width == 40
    with torch.no_grad():
        outputs = long.outputs(model, batch)
    assert outputs["translation"].shape == (4, 40)


def test_the_first_rows_are_translated_and_fill_is_decoded_as_nothing(
    model: Any, batch: dict[str, torch.Tensor]
) -> None:
    task = objective(model, rows=1)
    with torch.no_grad():
        outputs = {k: v.numpy() for k, v in task.outputs(model, batch).items()}
        everything = task.translating(4).outputs(model, batch)["translation"].numpy()
    assert task.translated_rows == 1
    assert outputs["translation"].shape == (4, SETTINGS.longest(20))
    assert (outputs["translation"][1:] == -100).all()
    assert decode(TOKENIZER, outputs["translation"]) == [
        decode(TOKENIZER, everything)[0],
        *[""] * 3,
    ]
    assert "" not in decode(TOKENIZER, everything)
    assert decode(TOKENIZER, batch["labels"].numpy()) == ["猫坐着", "狗", "狗跑了狗跑了", "猫"]


def test_scratch_and_huggingface_translate_alike(
    model: Any, batch: dict[str, torch.Tensor]
) -> None:
    ours = ScratchTransformerForConditionalGeneration(model.config).eval()
    ours.load_state_dict(model.state_dict())
    settings = GenerationSettings(beams=3)
    assert torch.equal(translate(model, batch, settings, 30), translate(ours, batch, settings, 30))


def test_metric_values() -> None:
    ids = [TOKENIZER(text)["input_ids"] for text in ("猫坐着猫坐着", "狗跑了狗坐着", "x")]
    translation = np.full((3, 9), -100)
    for row, made in enumerate(ids):
        translation[row, : len(made)] = made
    outputs = {
        "loss": np.array([2.0, 1.0, 3.0]), "tokens": np.array([4, 2, 4]),
        "correct": np.array([4, 1, 0]), "translation": translation,
    }  # fmt: skip
    metric = TranslationMetric(TOKENIZER, ["猫坐着猫坐着", "狗跑了狗跑了"], "zh", "exact_match")
    values = metric(outputs)
    assert values["loss"] == pytest.approx(6 / 10)
    assert values["token_accuracy"] == pytest.approx(0.5)
    assert values["exact_match"] == 0.5
    assert 0 < values["bleu"] < 100
    assert metric.higher_is_better
    by_loss = TranslationMetric(TOKENIZER, [], "zh", "loss")
    assert not by_loss.higher_is_better
    assert set(by_loss(outputs)) == {"loss", "token_accuracy"}


def test_bleu_of_a_model_that_writes_lower_case_does_not_look_at_case() -> None:
    references = ["Ein Hund läuft über die Wiese", "Zwei Männer sitzen auf der Bank"]
    for lowercase in (False, True):
        tokenizer = train_joint_bpe(references, 320, lowercase=lowercase)
        ids = tokenizer(references, padding=True, return_tensors="np")["input_ids"]
        written = [text.lower() for text in references] if lowercase else references
        assert decode(tokenizer, ids) == written
        outputs = {
            "loss": np.zeros(2), "tokens": np.ones(2), "correct": np.ones(2), "translation": ids,
        }  # fmt: skip
        values = TranslationMetric(tokenizer, references, "de", "loss")(outputs)
        assert values["bleu"] == pytest.approx(100)
        assert values["exact_match"] == (0 if lowercase else 1)


def test_settings_out_of_range(model: Any) -> None:
    with pytest.raises(UserError, match="--select_by bleu needs --translate_validation"):
        TranslationMetric(TOKENIZER, [], "zh", "bleu")
    for smoothing, settings, rows, name in [
        (1.0, SETTINGS, 0, "label_smoothing"),
        (0.1, GenerationSettings(beams=0), 0, "generation.beams"),
        (0.1, GenerationSettings(length_ratio=-1), 0, "generation.length_ratio"),
        (0.1, SETTINGS, -1, "translate_validation"),
    ]:
        with pytest.raises(UserError, match=f"--{name} "):
            Translation(model, smoothing, settings, 20, rows)

"""New Transformers, and pretrained ones with their languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from toolkit.data.joint_bpe import train_joint_bpe
from toolkit.errors import UserError
from toolkit.fine_tuning import FineTuningConfig
from toolkit.translation import GenerationSettings, translate
from toolkit.translation_models import (
    TransformerShape,
    load_translator,
    method_for,
    new_transformer,
    portable,
    set_generation,
)

SCRATCH, HF = FineTuningConfig(), FineTuningConfig(implementation="hf")
TOKENIZER = train_joint_bpe(["the cat sat", "a dog ran", "猫坐着", "狗跑了"], 300)
SHAPE = TransformerShape(
    encoder_layers=2, decoder_layers=1, d_model=16, feed_forward=24, heads=2, dropout=0.0
)
SMALL: dict[str, dict[str, Any]] = {
    "Marian": {
        "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
        "max_position_embeddings": 64, "init_std": 0.3, "eos_token_id": 1, "pad_token_id": 0,
        "decoder_start_token_id": 0, "forced_eos_token_id": None,
    },
    "T5": {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2},
    "MBart": {
        "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
        "max_position_embeddings": 64, "init_std": 0.3,
    },
}  # fmt: skip
CLASSES = {
    "Marian": "MarianMTModel", "T5": "T5ForConditionalGeneration",
    "MBart": "MBartForConditionalGeneration",
}  # fmt: skip


def save(folder: Path, name: str, tokenizer: Any = TOKENIZER, **changes: Any) -> Path:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer), **SMALL[name], **changes
    )
    getattr(transformers, CLASSES[name])(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def batch(text: str = "the cat") -> dict[str, torch.Tensor]:
    return dict(TOKENIZER([text], return_tensors="pt"))


def test_the_new_transformer_has_the_shape_and_shares_its_embeddings() -> None:
    model = new_transformer(SHAPE, TOKENIZER, "scratch", 40)
    assert type(model).__name__ == "ScratchPaperTransformerForConditionalGeneration"
    layers = 2 * (4 * 16 * 16 + 2 * 16 * 24) + 8 * 16 * 16 + 2 * 16 * 24
    vectors = 2 * (9 * 16 + 24) + 15 * 16 + 24  # biases and norms
    embedding = len(TOKENIZER) * 16
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert parameters == layers + vectors + embedding
    hf = new_transformer(SHAPE, TOKENIZER, "hf", 40)
    assert type(hf).__name__ == "MarianMTModel"
    assert sum(p.numel() for p in hf.parameters() if p.requires_grad) == parameters


def test_with_one_seed_both_implementations_are_the_same_new_model() -> None:
    models: list[Any] = []
    for implementation in ("scratch", "hf"):
        torch.manual_seed(3)
        models.append(new_transformer(SHAPE, TOKENIZER, implementation, 40))  # type: ignore[arg-type]
    assert all(model.training for model in models)
    labels = torch.tensor([TOKENIZER("猫坐着")["input_ids"]])
    logits = [model(**batch(), labels=labels).logits for model in models]
    assert logits[0].std() > 0.1  # far from constant
    assert torch.allclose(logits[0], logits[1], atol=1e-5)
    for scores in logits:
        torch.nn.functional.cross_entropy(scores[0], labels[0]).backward()
    norms = [torch.cat([p.grad.flatten() for p in m.parameters() if p.grad is not None]).norm()
             for m in models]  # fmt: skip
    assert torch.allclose(norms[0], norms[1], rtol=1e-5)


def test_what_is_saved_is_a_marian_that_translates_alike(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model: Any = new_transformer(SHAPE, TOKENIZER, "scratch", 40).eval()
    settings = GenerationSettings(beams=3, length_ratio=1.5)
    set_generation(model, settings, 25)
    portable(model).save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(loaded).__name__ == "MarianMTModel"
    assert loaded.generation_config.num_beams == 3
    assert loaded.generation_config.max_new_tokens == 25
    labels = torch.tensor([TOKENIZER("猫坐着")["input_ids"]])
    with torch.no_grad():
        ours, theirs = (m(**batch(), labels=labels).logits for m in (model, loaded))
    assert torch.allclose(ours, theirs, atol=1e-5)
    made = translate(model, batch(), settings, 25)
    assert torch.equal(made, translate(loaded, batch(), settings, 25))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("the 猫")["input_ids"] == TOKENIZER("the 猫")["input_ids"]
    # and it is a checkpoint to fine-tune
    again = load_translator(str(tmp_path), SCRATCH, ("en", "zh"))
    assert torch.equal(made, translate(again.model.eval(), batch(), settings, 25))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"heads": 3}, "heads 3"), ({"d_model": 0}, "d_model 0"), ({"dropout": 2}, "dropout 2"),
     ({"encoder_layers": 0}, "encoder_layers 0"), ({"d_model": 9, "heads": 3}, "even number")],
)  # fmt: skip
def test_shapes_that_cannot_be_built(changes: dict[str, Any], message: str) -> None:
    shape = TransformerShape(**{**vars(SHAPE), **changes})
    with pytest.raises(UserError, match=message):
        new_transformer(shape, TOKENIZER, "scratch", 40)


def test_marian_loads_into_our_class_and_t5_into_huggingfaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marian = load_translator(str(save(tmp_path / "m", "Marian")), SCRATCH, ("en", "zh"))
    assert type(marian.model).__name__ == "ScratchTransformerForConditionalGeneration"
    assert marian.implementation == "scratch"
    assert capsys.readouterr().err == ""
    t5 = load_translator(
        str(save(tmp_path / "t", "T5", pad_token_id=0, eos_token_id=1)), SCRATCH, ("en", "de")
    )
    assert type(t5.model).__name__ == "T5ForConditionalGeneration"
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "no from-scratch t5; HuggingFace's class is used" in line]
    assert len(said) == 1
    assert t5.implementation == "hf"


@pytest.mark.parametrize("settings", [SCRATCH, HF])
@pytest.mark.parametrize("model_type", ["bert", "gpt2", "electra", "scratch_lstm"])
def test_a_model_that_cannot_translate_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model_type: str,
    settings: FineTuningConfig,
) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(f'{{"model_type": "{model_type}"}}')
    with pytest.raises(UserError, match=f"{model_type} cannot translate: it is no encoder-decoder"):
        load_translator(str(tmp_path), settings, ("en", "zh"))
    assert "no from-scratch" not in capsys.readouterr().err


def test_t5s_own_prefix_is_found_and_can_be_replaced(tmp_path: Path) -> None:
    tasks = {"translation_en_to_de": {"prefix": "translate English to German: "}}
    folder = str(save(tmp_path / "t", "T5", task_specific_params=tasks))
    assert load_translator(folder, HF, ("en", "de")).prefix == "translate English to German: "
    assert load_translator(folder, HF, ("en", "zh")).prefix == ""
    assert load_translator(folder, HF, ("en", "zh"), prefix="zh: ").prefix == "zh: "


@pytest.fixture(params=["MBartTokenizer", "MBart50Tokenizer"])
def mbart(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "b", "猫"]
    vocabulary = [(piece, -float(rank)) for rank, piece in enumerate(pieces)]
    tokenizer = getattr(transformers, request.param)(vocab=vocabulary)
    return save(
        tmp_path / "b", "MBart", tokenizer, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.bos_token_id or 0,
        decoder_start_token_id=tokenizer.eos_token_id,  # as mbart-large-50 has it
    )  # fmt: skip


def test_mbart_is_told_its_languages(mbart: Path) -> None:
    translator = load_translator(str(mbart), HF, ("en", "zh"))
    tokenizer, model = translator.tokenizer, translator.model
    english, chinese = (tokenizer.convert_tokens_to_ids(code) for code in ("en_XX", "zh_CN"))
    assert english in tokenizer("a b")["input_ids"]
    assert chinese in tokenizer(text_target="猫")["input_ids"]
    settings = GenerationSettings(beams=2)
    made = model.generate(**tokenizer(["a b"], return_tensors="pt"), max_new_tokens=3, num_beams=2)
    labels = torch.tensor([tokenizer(text_target="猫")["input_ids"]])
    first = model.prepare_decoder_input_ids_from_labels(labels)[0]
    assert made[0, 0] == first[0]  # generation begins as training does
    if chinese in labels[0, :1]:  # mBART-50 writes the language first
        assert made[0, 1] == chinese == first[1]
    else:
        assert made[0, 0] == chinese
    translate(model, dict(tokenizer(["a b"], return_tensors="pt")), settings, 30)


def test_languages_that_mbart_does_not_know(mbart: Path) -> None:
    with pytest.raises(UserError, match=r"none stand for 'tlh'.*--target_code"):
        load_translator(str(mbart), HF, ("en", "tlh"))
    with pytest.raises(UserError, match="no language 'zh_TW'"):
        load_translator(str(mbart), HF, ("en", "zh"), codes=(None, "zh_TW"))


def test_codes_for_a_tokenizer_without_languages(tmp_path: Path) -> None:
    folder = str(save(tmp_path / "m", "Marian"))
    with pytest.raises(UserError, match="no language codes"):
        load_translator(folder, SCRATCH, ("en", "zh"), codes=("en_XX", None))


def test_the_method_goes_with_the_model() -> None:
    assert method_for(None, None) == method_for(None, "from_scratch") == "from_scratch"
    assert method_for("folder", None) == method_for("folder", "full") == "full"
    assert method_for("folder", "frozen") == "frozen"
    with pytest.raises(UserError, match="--method lora needs a pretrained model"):
        method_for(None, "lora")
    with pytest.raises(UserError, match=r"from_scratch makes a new model.*leave --model folder"):
        method_for("folder", "from_scratch")

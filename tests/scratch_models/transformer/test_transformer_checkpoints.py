"""Every form an opus-mt checkpoint comes in loads fully; what is saved is HuggingFace's own."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    MarianModel,
    MarianMTModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

from scratch_models import (
    ScratchTransformerForConditionalGeneration,
    ScratchTransformerModel,
    disable,
    enable,
    scratch_class,
)
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity import compare_saving

SEPARATE = {
    "share_encoder_decoder_embeddings": False,
    "decoder_vocab_size": 53,
    "pad_token_id": 52,
    "decoder_start_token_id": 52,
}
HEADS = {"model": MarianModel, "seq2seq-lm": MarianMTModel}


def as_stored(form: str, model: MarianMTModel, folder: Path) -> None:
    """Write a model in one of the forms found on the Hub."""
    model.config.save_pretrained(folder)
    everything = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if form == "as saved today":
        model.save_pretrained(folder)
    elif form == "bin with all weights, tables and copies":
        # As transformers 4 wrote it: one tensor under several names, positions as weights.
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    elif form == "safetensors with all copies":
        save_file(everything, folder / "model.safetensors", metadata={"format": "pt"})
    elif form == "without output bias and positions":
        kept = {
            name: tensor
            for name, tensor in everything.items()
            if "embed_positions" not in name and name != "final_logits_bias"
        }
        torch.save(kept, folder / "pytorch_model.bin")
    elif form == "half precision":
        model.half().save_pretrained(folder)
    elif form == "tables of its own":
        for name, tensor in everything.items():
            if "embed_positions" in name:
                tensor.add_(torch.randn_like(tensor))
        save_file(everything, folder / "model.safetensors", metadata={"format": "pt"})
    elif form == "body":
        model.model.save_pretrained(folder)


FORMS = [
    "as saved today",
    "bin with all weights, tables and copies",
    "safetensors with all copies",
    "without output bias and positions",
    "half precision",
    "tables of its own",
    "body",
]


def assert_equal_models(scratch, reference) -> None:
    own, expected = scratch.state_dict(), to_own_names(scratch, reference.state_dict())
    assert own.keys() == expected.keys()
    different = [
        name
        for name in own
        if own[name].dtype != expected[name].dtype or not torch.equal(own[name], expected[name])
    ]
    assert different == []


SHAPES: dict[str, dict[str, Any]] = {
    "shared": {},
    "separate": SEPARATE,
    "untied": {"tie_word_embeddings": False},
}


def marks(form: str, shape: str, head: str) -> list[pytest.MarkDecorator]:
    """Every form once in the default run, and every shape and head."""
    common = shape == "shared" and head == "seq2seq-lm"
    others = head == "seq2seq-lm" and form == "bin with all weights, tables and copies"
    return [] if common or others or (shape, form) == ("shared", FORMS[0]) else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("form", "shape", "head"),
    [pytest.param(*case, marks=marks(*case)) for case in itertools.product(FORMS, SHAPES, HEADS)],
)
def test_all_forms_load_and_save_as_huggingface(form, shape, head, marian_pair, tmp_path) -> None:
    _, stored = marian_pair(**SHAPES[shape])
    as_stored(form, stored, tmp_path)
    torch.manual_seed(1)  # a head that the checkpoint does not hold is fresh
    scratch, info = scratch_class("marian", head).from_pretrained(
        tmp_path, output_loading_info=True
    )
    torch.manual_seed(1)
    reference, expected_info = HEADS[head].from_pretrained(tmp_path, output_loading_info=True)
    assert_equal_models(scratch, reference)
    for key, names in expected_info.items():
        assert len(info[key]) == len(names), key
    rows = compare_saving(scratch, reference)
    assert all(row.passed for row in rows), rows


@pytest.mark.parametrize("head", HEADS)
def test_fresh_models_save_as_huggingface(head, tiny_marian) -> None:
    torch.manual_seed(1)
    scratch = scratch_class("marian", head)(tiny_marian())
    torch.manual_seed(1)
    rows = compare_saving(scratch, HEADS[head](tiny_marian()))
    assert all(row.passed for row in rows), rows


def test_positions_are_right_after_loading_without_them(marian_pair, tmp_path) -> None:
    """They are not in the file; what is not comes out of a meta device as garbage."""
    scratch, _ = marian_pair()
    scratch.save_pretrained(tmp_path)
    assert not any("embed_positions" in name for name in load_file(tmp_path / "model.safetensors"))
    loaded = ScratchTransformerForConditionalGeneration.from_pretrained(tmp_path)
    for part in (loaded.model.encoder, loaded.model.decoder):
        assert torch.equal(
            part.embeddings.position.weight, scratch.model.encoder.embeddings.position.weight
        )


def test_shared_embeddings_are_one_tensor(marian_pair, tmp_path) -> None:
    scratch, _ = marian_pair()
    scratch.save_pretrained(tmp_path)
    loaded = ScratchTransformerForConditionalGeneration.from_pretrained(tmp_path)
    tables = {
        loaded.lm_head.weight.data_ptr(),
        loaded.model.embedding.weight.data_ptr(),
        loaded.model.encoder.embeddings.token.weight.data_ptr(),
        loaded.model.decoder.embeddings.token.weight.data_ptr(),
    }
    assert len(tables) == 1


def test_huggingface_reads_what_we_save(marian_pair, sentences, tmp_path) -> None:
    scratch, _ = marian_pair()
    scratch.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["MarianMTModel"]
    batch = sentences([7, 4])
    reference = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(reference) is MarianMTModel
    assert torch.equal(reference.generate(**batch), scratch.generate(**batch))
    enable()
    try:
        ours = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    finally:
        disable()
    assert type(ours) is ScratchTransformerForConditionalGeneration
    body = ScratchTransformerModel.from_pretrained(tmp_path)
    assert torch.equal(body.embedding.weight, scratch.lm_head.weight)


# Resizing


@pytest.mark.parametrize(("tokens", "multiple"), [(70, None), (50, None), (62, 8)])
def test_resizing_shared_embeddings(tokens, multiple, marian_pair, tmp_path) -> None:
    scratch, reference = marian_pair(pad_token_id=0, decoder_start_token_id=0)
    size = tokens if multiple is None else 64
    for model in (scratch, reference):
        torch.manual_seed(2)
        model.resize_token_embeddings(tokens, pad_to_multiple_of=multiple)
    bias = scratch.final_logits_bias
    assert bias.shape == (1, size)
    assert (bias[:, 61:] == 0).all()
    if multiple is not None:  # HuggingFace forgets to pad the bias
        reference.final_logits_bias = torch.nn.Buffer(bias.clone())
    assert_equal_models(scratch, reference)
    assert scratch.config.vocab_size == scratch.config.decoder_vocab_size == size
    shared = scratch.model.embedding
    assert shared.num_embeddings == size
    assert scratch.get_input_embeddings() is scratch.get_decoder().get_input_embeddings() is shared
    ids = torch.tensor([[3, 45, 7]])
    labels = torch.tensor([[9, size - 1]])
    ours, theirs = scratch(ids, labels=labels), reference(ids, labels=labels)
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.loss, theirs.loss)
    rows = compare_saving(scratch, reference)
    assert all(row.passed for row in rows), rows
    scratch.save_pretrained(tmp_path)
    again = ScratchTransformerForConditionalGeneration.from_pretrained(tmp_path)
    torch.testing.assert_close(again(ids, labels=labels).logits, ours.logits)


@pytest.mark.parametrize("tied", [True, False])
def test_resizing_separate_embeddings(tied: bool, marian_pair) -> None:
    scratch, reference = marian_pair(**SEPARATE, tie_word_embeddings=tied)
    for model in (scratch, reference):
        torch.manual_seed(2)
        model.resize_token_embeddings(70)
        model.resize_decoder_token_embeddings(57)
    assert_equal_models(scratch, reference)
    assert (scratch.config.vocab_size, scratch.config.decoder_vocab_size) == (70, 57)
    ids, labels = torch.tensor([[3, 69, 7]]), torch.tensor([[9, 56]])
    ours, theirs = scratch(ids, labels=labels), reference(ids, labels=labels)
    torch.testing.assert_close(ours.loss, theirs.loss)
    assert (scratch.lm_head.weight is scratch.get_decoder().get_input_embeddings().weight) == tied


def test_resizing_keeps_half_precision(marian_pair) -> None:
    scratch, _ = marian_pair()
    scratch.half().resize_token_embeddings(70)
    assert scratch.final_logits_bias.dtype == torch.float16
    assert scratch(torch.tensor([[3]]), labels=torch.tensor([[69]])).logits.dtype == torch.float16


@pytest.mark.parametrize("head", HEADS)
def test_a_shared_vocabulary_is_not_resized_for_the_decoder_alone(head, marian_pair) -> None:
    scratch, _ = marian_pair(head)
    with pytest.raises(ValueError, match="resize_token_embeddings"):
        scratch.resize_decoder_token_embeddings(70)


@pytest.mark.parametrize("head", HEADS)
def test_shared_but_untied_embeddings_are_not_resized(head, marian_pair) -> None:
    """HuggingFace resizes them, forgets the decoder's rows, and loses both tables in the save."""
    scratch, _ = marian_pair(head, tie_word_embeddings=False)
    with pytest.raises(ValueError, match="tie_word_embeddings"):
        scratch.resize_token_embeddings(70)


# Inside the ecosystem


def test_trainer_resumes_and_loads_the_best_model(marian_pair, tmp_path) -> None:
    """transformers reads its checkpoints back with a plain load_state_dict."""
    scratch, _ = marian_pair()
    rows = [{"input_ids": [i % 40, 5, 6], "labels": [i % 40, 7]} for i in range(8)]

    def train(model, steps: int, resume: bool = False) -> Any:
        arguments = Seq2SeqTrainingArguments(
            str(tmp_path), max_steps=steps, per_device_train_batch_size=4, save_steps=2,
            eval_steps=2, eval_strategy="steps", load_best_model_at_end=True, report_to=[],
            use_cpu=True, predict_with_generate=True, generation_max_length=5, disable_tqdm=True,
        )  # fmt: skip
        trainer = Seq2SeqTrainer(model, arguments, train_dataset=rows, eval_dataset=rows)
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    train(scratch, 2)
    saved = load_file(tmp_path / "checkpoint-2" / "model.safetensors")
    other = ScratchTransformerForConditionalGeneration(scratch.config)
    trainer = train(other, 2, resume=True)
    state = to_own_names(other, saved)
    own = other.state_dict()
    assert [name for name in state if not torch.equal(state[name], own[name])] == []
    assert len(trainer.predict(rows[:2]).predictions) == 2


@pytest.mark.hub
@pytest.mark.parametrize("name", ["Helsinki-NLP/opus-mt-en-zh"])
def test_translations_of_opus_mt_equal_huggingface(name: str) -> None:
    from toolkit.errors import UserError
    from toolkit.sources import resolve_model

    try:
        resolve_model(name)
    except UserError as error:
        pytest.skip(str(error))
    tokenizer = AutoTokenizer.from_pretrained(name)
    scratch = ScratchTransformerForConditionalGeneration.from_pretrained(name).eval()
    reference = transformers.MarianMTModel.from_pretrained(name).eval()
    assert_equal_models(scratch, reference)
    sentences = ["Attention is all you need.", "The cat, which had slept all day, woke up at last."]
    batch = tokenizer(sentences, return_tensors="pt", padding=True)
    for beams in (1, 4):
        ours, theirs = (m.generate(**batch, num_beams=beams) for m in (scratch, reference))
        assert torch.equal(ours, theirs)
    with torch.no_grad():
        ours, theirs = (m(**batch, labels=theirs[:, 1:]).logits for m in (scratch, reference))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    rows = compare_saving(scratch, reference)
    assert all(row.passed for row in rows), rows

"""The paper's own layout: Marian's function with its own positions and loss; and it trains."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, MarianConfig, MarianMTModel

from scratch_models import (
    ScratchPaperTransformerConfig,
    ScratchPaperTransformerForConditionalGeneration,
    ScratchPaperTransformerModel,
    ScratchTransformerForConditionalGeneration,
    disable,
    enable,
    to_marian,
)
from scratch_models.models.transformer.parity_grid import TINY

SIZES = {**TINY, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}


def build(**changes: Any) -> ScratchPaperTransformerForConditionalGeneration:
    config = ScratchPaperTransformerConfig(**{**SIZES, "activation_function": "relu", **changes})
    model = ScratchPaperTransformerForConditionalGeneration(config)
    with torch.no_grad():
        model.final_logits_bias.normal_()
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    ids = torch.randint(2, 53, (2, 7))
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 4:] = 0
    labels = torch.randint(2, 53, (2, 5))
    labels[1, 3:] = -100
    return {"input_ids": ids * mask, "attention_mask": mask, "labels": labels}


def test_the_defaults_are_the_base_model_of_the_paper() -> None:
    config = ScratchPaperTransformerConfig(vocab_size=37000)
    with torch.device("meta"):
        model = ScratchPaperTransformerForConditionalGeneration(config)
    assert (config.d_model, config.encoder_ffn_dim, config.decoder_ffn_dim) == (512, 2048, 2048)
    assert (config.encoder_layers, config.decoder_layers) == (6, 6)
    assert (config.encoder_attention_heads, config.decoder_attention_heads) == (8, 8)
    assert (config.dropout, config.label_smoothing, config.activation_function) == (
        0.1,
        0.1,
        "relu",
    )
    assert config.scale_embedding
    assert model.model.encoder.embeddings.scale == pytest.approx(math.sqrt(512))
    trained = sum(p.numel() for p in set(model.parameters()) if p.requires_grad)
    assert round(trained / 1e6) in (63, 64, 65)  # table 3: 65 million


def test_positions_take_turns_in_encoder_and_decoder() -> None:
    model = build()
    for part in (model.model.encoder, model.model.decoder):
        row = part.embeddings.position(24)[0, 5]
        for i in range(32):
            angle = 5 / 10000 ** (2 * (i // 2) / 32)
            expected = math.sin(angle) if i % 2 == 0 else math.cos(angle)
            assert row[i].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_model": 15, "encoder_attention_heads": 3, "decoder_attention_heads": 5},
        {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "tie_word_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 53},
    ],
    ids=["tied", "odd width", "square feed-forward, untied", "separate"],
)
def test_marians_layout_computes_the_same(changes, batch, tmp_path) -> None:
    paper = build(**changes)
    marian = to_marian(paper)
    assert type(marian) is ScratchTransformerForConditionalGeneration
    assert type(marian.config) is MarianConfig
    wanted = {"output_attentions": True}
    ours, theirs = paper(**batch, **wanted), marian(**batch, **wanted)
    torch.testing.assert_close(theirs.logits, ours.logits, atol=1e-5, rtol=1e-5)
    for kind in ("encoder_attentions", "decoder_attentions", "cross_attentions"):
        torch.testing.assert_close(theirs[kind], ours[kind], atol=1e-5, rtol=1e-5)
    marian.save_pretrained(tmp_path)
    reference, info = MarianMTModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())
    again = reference(**batch)
    torch.testing.assert_close(again.logits, ours.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(again.loss, ours.loss, atol=1e-5, rtol=1e-5)
    source = {name: batch[name] for name in ("input_ids", "attention_mask")}
    ids = [m.generate(**source, num_beams=2, max_new_tokens=8) for m in (paper, reference)]
    assert torch.equal(*ids)


def test_the_layouts_differ_without_the_reordering(batch) -> None:
    paper = build()
    marian = to_marian(paper)
    marian.load_state_dict(
        {n: t for n, t in paper.state_dict().items() if "position" not in n}, strict=False
    )
    assert (marian(**batch).logits - paper(**batch).logits).abs().max() > 0.1


def test_to_marian_keeps_precision_and_mode(batch) -> None:
    paper = build().to(torch.bfloat16).train()
    marian = to_marian(paper)
    assert marian.dtype == torch.bfloat16
    assert marian.training


def test_labels_are_smoothed_in_training_only(batch) -> None:
    """§5.4: a label gives 0.1 of its probability to all entries of the vocabulary alike."""
    model = build(dropout=0.0)
    asked = batch["labels"] != -100
    logits = model(**batch).logits[asked].log_softmax(-1)
    plain = -logits.gather(1, batch["labels"][asked][:, None]).mean()
    smoothed = 0.9 * plain + 0.1 * -logits.mean()
    torch.testing.assert_close(model(**batch).loss, plain)
    torch.testing.assert_close(model.train()(**batch).loss, smoothed)
    model.config.label_smoothing = 0.0
    torch.testing.assert_close(model(**batch).loss, plain)


@pytest.mark.parametrize("value", [-0.1, 1.0, 7])
def test_an_impossible_smoothing_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="label_smoothing"):
        ScratchPaperTransformerConfig(label_smoothing=value)


def test_it_is_saved_and_loaded_as_what_it_is(batch, tmp_path) -> None:
    model = build(label_smoothing=0.2)
    model.save_pretrained(tmp_path)
    own, info = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())
    assert own.config.label_smoothing == 0.2
    torch.testing.assert_close(own(**batch).logits, model(**batch).logits)
    body = ScratchPaperTransformerModel.from_pretrained(tmp_path)
    assert torch.equal(body.embedding.weight, model.lm_head.weight)
    with pytest.raises(ValueError, match="scratch_paper_transformer"):
        ScratchTransformerForConditionalGeneration.from_pretrained(tmp_path)
    enable()
    try:
        assert type(AutoConfig.from_pretrained(tmp_path)) is ScratchPaperTransformerConfig
        assert type(AutoModelForSeq2SeqLM.from_pretrained(tmp_path)) is type(model)
    finally:
        disable()


def test_huggingface_cannot_take_it_for_marian(tmp_path) -> None:
    """Even told to, its class finds none of its weights there, and says so."""
    build().save_pretrained(tmp_path)
    _, info = MarianMTModel.from_pretrained(tmp_path, output_loading_info=True)
    assert len(info["missing_keys"]) > 50
    assert len(info["unexpected_keys"]) > 50


def test_longer_than_trained(batch) -> None:
    """Built for 16 positions or for 40: the same outputs for 40 tokens."""
    short, long = build(max_position_embeddings=16), build(max_position_embeddings=40)
    weights = {n: t for n, t in long.state_dict().items() if "position" not in n}
    short.load_state_dict(weights, strict=False)
    ids = torch.randint(2, 61, (2, 40))
    assert torch.equal(short(ids, labels=ids).logits, long(ids, labels=ids).logits)
    generated = [m.generate(ids, min_new_tokens=30, max_new_tokens=30) for m in (short, long)]
    assert torch.equal(*generated)
    assert generated[0].shape == (2, 31)


def test_it_learns_to_reverse() -> None:
    """Five symbols in, the same in reverse out: every one of 200 unseen sequences is right."""
    config = ScratchPaperTransformerConfig(
        vocab_size=12, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, dropout=0.0,
        max_position_embeddings=8, init_std=0.1, label_smoothing=0.1,
    )  # fmt: skip
    model = ScratchPaperTransformerForConditionalGeneration(config).train()
    sequences = torch.randint(2, 12, (20_000, 5)).unique(dim=0)
    sequences = sequences[torch.randperm(len(sequences))]
    unseen, seen = sequences[:200], sequences[200:]
    ends = torch.ones(64, 1, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 201):
        optimizer.param_groups[0]["lr"] = 8e-3 * min(step / 40, (40 / step) ** 0.5)  # §5.3
        rows = seen[torch.randint(len(seen), (64,))]
        model(rows, labels=torch.cat([rows.flip(1), ends], dim=1)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ids = model.eval().generate(unseen, max_new_tokens=6)
    assert torch.equal(ids[:, 1:6], unseen.flip(1))
    assert (ids[:, 6] == config.eos_token_id).all()

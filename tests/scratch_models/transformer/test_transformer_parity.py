"""The Transformer computes what HuggingFace's Marian computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import DynamicCache, MarianConfig
from transformers.modeling_outputs import BaseModelOutput

from scratch_models import scratch_class
from scratch_models.hub.mapping import to_own_names
from scratch_models.models.transformer.modeling import shift_right

SHAPES: dict[str, dict[str, Any]] = {
    "shared": {},
    "separate": {
        "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 53,
        "pad_token_id": 52,
        "decoder_start_token_id": 52,
    },
    "different encoder and decoder": {
        "encoder_layers": 1,
        "decoder_layers": 3,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 40,
    },
    "untied, unscaled, odd width": {
        "tie_word_embeddings": False,
        "scale_embedding": False,
        "d_model": 15,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 5,
    },
}


def tensors_of(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for part in value for t in tensors_of(part)] if isinstance(value, tuple) else []


def assert_same(ours: Any, theirs: Any, atol: float = 1e-5) -> None:
    """Every tensor of two model outputs, nested or not."""
    assert list(ours.keys()) == list(theirs.keys())
    for key in theirs:
        own, expected = tensors_of(ours[key]), tensors_of(theirs[key])
        assert len(own) == len(expected), key
        for a, b in zip(own, expected, strict=True):
            torch.testing.assert_close(a, b, atol=atol, rtol=0, msg=lambda m, k=key: f"{k}: {m}")


def batch_for(head: str, sentences) -> dict[str, Tensor]:
    batch = sentences([7, 4])
    targets = torch.randint(1, 45, (2, 5))
    if head == "model":
        return batch | {"decoder_input_ids": targets}
    targets[1, 3:] = -100
    return batch | {"labels": targets}


def loss_of(output: Any) -> Tensor:
    if output.get("loss") is not None:
        return output.loss
    weights = torch.randn(output[0].shape, generator=torch.Generator().manual_seed(0))
    return (output[0] * weights).mean()


@pytest.mark.parametrize("head", ["model", "seq2seq-lm"])
@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_gradients_equal_huggingface(shape, head, marian_pair, sentences) -> None:
    scratch, reference = marian_pair(head, attn="eager", **SHAPES[shape])
    batch = batch_for(head, sentences)
    wanted = {"output_hidden_states": True, "output_attentions": True}
    ours, theirs = scratch(**batch, **wanted), reference(**batch, **wanted)
    assert_same(ours, theirs)
    loss_of(ours).backward()
    loss_of(theirs).backward()
    expected = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    expected = to_own_names(scratch, expected)
    gradients = {n: p.grad for n, p in scratch.named_parameters() if p.grad is not None}
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("head", ["model", "seq2seq-lm"])
@pytest.mark.parametrize("shape", SHAPES)
def test_fresh_weights_are_those_of_huggingface(shape, head, tiny_marian) -> None:
    own_class = scratch_class("marian", head)
    reference_class = getattr(transformers, own_class.huggingface_class)
    for build in (
        lambda kind, config: kind(config),
        lambda kind, config: kind._from_config(config),
    ):
        torch.manual_seed(3)
        scratch = build(own_class, tiny_marian(**SHAPES[shape]))
        torch.manual_seed(3)
        reference = build(reference_class, tiny_marian(**SHAPES[shape]))
        expected = to_own_names(scratch, reference.state_dict())
        own = scratch.state_dict()
        assert own.keys() == expected.keys()
        assert [name for name in own if not torch.equal(own[name], expected[name])] == []
        assert scratch.num_parameters() == reference.num_parameters()


@pytest.mark.parametrize(
    "dropouts",
    [
        {"dropout": 0.3},
        {"dropout": 0.0, "attention_dropout": 0.3},
        {"dropout": 0.0, "activation_dropout": 0.3},
        {"dropout": 0.1, "encoder_layerdrop": 0.5, "decoder_layerdrop": 0.5},
    ],
    ids=lambda dropouts: " ".join(dropouts),
)
def test_dropout_falls_at_the_same_places(dropouts, marian_pair, sentences) -> None:
    scratch, reference = marian_pair(**dropouts)
    batch = batch_for("seq2seq-lm", sentences)
    without = scratch(**batch).loss
    for seed in range(4):
        losses = []
        for model in (scratch.train(), reference.train()):
            torch.manual_seed(seed)
            losses.append(model(**batch).loss)
        torch.testing.assert_close(*losses, atol=1e-6, rtol=0)
    assert abs(losses[0] - without) > 1e-3


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
def test_every_attention_gives_its_weights(attn, marian_pair, sentences) -> None:
    scratch, reference = marian_pair(attn="eager")
    scratch.set_attn_implementation(attn)
    batch = batch_for("seq2seq-lm", sentences)
    ours, theirs = (model(**batch, output_attentions=True) for model in (scratch, reference))
    assert_same(ours, theirs)
    assert ours.decoder_attentions[0].triu(1).abs().max() == 0
    assert ours.cross_attentions[0][1, :, :, 4:].abs().max() == 0
    assert ours.encoder_attentions[0][1, :, :, 4:].abs().max() == 0


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16])
def test_masks_of_every_dtype_hide_padding(dtype, attn, marian_pair, sentences) -> None:
    scratch, _ = marian_pair(attn=attn)
    batch = sentences([7, 4])
    targets = torch.randint(1, 45, (2, 5))
    mask = batch["attention_mask"].to(dtype)
    both = scratch(batch["input_ids"], mask, decoder_input_ids=targets).logits
    alone = scratch(batch["input_ids"][1:, :4], decoder_input_ids=targets[1:]).logits
    torch.testing.assert_close(both[1:], alone, atol=1e-5, rtol=0)
    target_mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]).to(dtype)
    hidden = {"decoder_input_ids": targets, "decoder_attention_mask": target_mask}
    other = targets.clone()
    other[1, :2] = 7
    changed = scratch(**batch, **hidden | {"decoder_input_ids": other}).logits
    torch.testing.assert_close(changed[1, 2:], scratch(**batch, **hidden).logits[1, 2:])


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_source_of_padding_only_stays_finite(dtype, attn, marian_pair, sentences) -> None:
    scratch, _ = marian_pair(attn=attn)
    scratch.to(dtype)
    batch = batch_for("seq2seq-lm", sentences)
    batch["attention_mask"][0] = 0
    output = scratch(**batch)
    output.loss.backward()
    assert output.logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in scratch.parameters() if p.grad is not None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_equals_huggingface(dtype, marian_pair, sentences) -> None:
    scratch, reference = (model.to(dtype) for model in marian_pair())
    batch = batch_for("seq2seq-lm", sentences)
    ours, theirs = scratch(**batch), reference(**batch)
    assert ours.logits.dtype == dtype
    assert torch.equal(ours.logits, theirs.logits)
    assert torch.equal(ours.loss, theirs.loss)


def test_embeddings_in_place_of_tokens(marian_pair, sentences) -> None:
    """HuggingFace takes the source's as they are and scales the target's: so do we."""
    scratch, reference = marian_pair()
    mask = sentences([7, 4])["attention_mask"]
    source, target = torch.randn(2, 7, 32), torch.randn(2, 5, 32)
    batch = {"inputs_embeds": source, "decoder_inputs_embeds": target, "attention_mask": mask}
    assert_same(scratch(**batch, use_cache=False), reference(**batch, use_cache=False))
    ids = torch.randint(1, 45, (2, 5))
    tokens = scratch.get_input_embeddings()(ids)
    by_tokens = scratch(inputs_embeds=source, decoder_input_ids=ids).logits
    by_vectors = scratch(inputs_embeds=source, decoder_inputs_embeds=tokens).logits
    torch.testing.assert_close(by_vectors, by_tokens)


@pytest.mark.parametrize("form", ["output", "tuple", "long tuple"])
def test_encoder_outputs_can_be_given(form, marian_pair, sentences) -> None:
    scratch, reference = marian_pair()
    batch = batch_for("seq2seq-lm", sentences)
    expected = reference(**batch)
    encoded = scratch.get_encoder()(batch.pop("input_ids"), batch["attention_mask"])
    hidden = encoded.last_hidden_state
    given = {
        "output": BaseModelOutput(last_hidden_state=hidden),
        "tuple": (hidden,),
        "long tuple": (hidden, None, None, "other"),
    }[form]
    torch.testing.assert_close(scratch(**batch, encoder_outputs=given).loss, expected.loss)


def test_return_dict_false_gives_the_tuple_of_huggingface(marian_pair, sentences) -> None:
    for head in ("model", "seq2seq-lm"):
        scratch, reference = marian_pair(head)
        batch = batch_for(head, sentences)
        ours = scratch(**batch, return_dict=False, use_cache=False)
        theirs = reference(**batch, return_dict=False, use_cache=False)
        assert isinstance(ours, tuple)
        assert len(ours) == len(theirs)
        torch.testing.assert_close(ours[0], theirs[0], atol=1e-5, rtol=0)


def test_labels_are_shifted_right_for_the_decoder(marian_pair) -> None:
    scratch, reference = marian_pair()
    labels = torch.tensor([[5, 6, 7], [8, -100, -100]])
    expected = torch.tensor([[60, 5, 6], [60, 8, 60]])
    assert torch.equal(scratch.prepare_decoder_input_ids_from_labels(labels), expected)
    assert torch.equal(reference.prepare_decoder_input_ids_from_labels(labels), expected)
    assert labels[1, 1] == -100


def test_labels_without_a_padding_token_are_refused() -> None:
    config = MarianConfig(pad_token_id=None, vocab_size=11, decoder_start_token_id=3)
    with pytest.raises(ValueError, match="pad_token_id None"):
        shift_right(torch.tensor([[1, 2]]), config)


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_changes_nothing(reentrant, marian_pair, sentences) -> None:
    scratch, _ = marian_pair(dropout=0.2)
    batch = batch_for("seq2seq-lm", sentences)

    def step() -> tuple[Tensor, dict[str, Tensor]]:
        scratch.zero_grad()
        torch.manual_seed(1)
        loss = scratch.train()(**batch).loss
        loss.backward()
        return loss, {
            n: p.grad.clone() for n, p in scratch.named_parameters() if p.grad is not None
        }

    loss, gradients = step()
    scratch.gradient_checkpointing_enable({"use_reentrant": reentrant})
    again, recomputed = step()
    assert torch.equal(loss, again)
    assert gradients.keys() == recomputed.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, recomputed[name], atol=1e-6, rtol=1e-5)
    assert scratch.config.use_cache


def test_mistakes_are_named(marian_pair, sentences) -> None:
    scratch, _ = marian_pair()
    batch = sentences([7, 4])
    with pytest.raises(ValueError, match="decoder_input_ids"):
        scratch(**batch)
    with pytest.raises(ValueError, match="exactly one"):
        scratch(**batch, inputs_embeds=torch.randn(2, 7, 32), labels=torch.ones(2, 3).long())
    with pytest.raises(ValueError, match="EncoderDecoderCache"):
        scratch(**batch, decoder_input_ids=batch["input_ids"], cache=DynamicCache())
    with pytest.raises(ValueError, match="encoder_hidden_states"):
        scratch.get_decoder()(batch["input_ids"])


@pytest.mark.slow
def test_it_compiles_without_a_break(marian_pair, sentences) -> None:
    scratch, _ = marian_pair()
    batch = batch_for("seq2seq-lm", sentences)
    compiled = torch.compile(scratch, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(**batch).logits, scratch(**batch).logits)

"""Attention weights against HuggingFace's own, from its eager attention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from scratch_models import scratch_class
from scratch_models.hub.architecture import architectures
from scratch_models.parity.grid import write_random_checkpoint
from toolkit.attention import AttentionMaps, Tokens, collect
from toolkit.attention.weights import stacked_weights
from toolkit.errors import UserError

LENGTH, WRITTEN = 7, 5
_TEXT = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "initializer_range": 0.3,
}  # fmt: skip
_TRANSLATES = {
    "vocab_size": 61, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 4, "decoder_attention_heads": 2, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "init_std": 0.3, "pad_token_id": 60, "decoder_start_token_id": 60,
    "bos_token_id": 0, "eos_token_id": 0, "forced_eos_token_id": 0,
}  # fmt: skip
_IMAGE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "image_size": 16, "patch_size": 4, "initializer_range": 0.3,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "BertModel": _TEXT,
    "RobertaForSequenceClassification": _TEXT,
    "DistilBertModel": {
        "vocab_size": 61, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48,
        "initializer_range": 0.3,
    },
    "GPT2LMHeadModel": {
        "vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3,
        "bos_token_id": 0, "eos_token_id": 0,
    },
    "LlamaForCausalLM": {**_TEXT, "num_key_value_heads": 2},
    "T5ForConditionalGeneration": {
        "vocab_size": 61, "d_model": 32, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4,
        "d_kv": 8, "d_ff": 48,
    },
    "BartForConditionalGeneration": _TRANSLATES,
    "MarianMTModel": _TRANSLATES,
    "ViTForImageClassification": _IMAGE,
}  # fmt: skip


def numbered(count: int) -> Tokens:
    return Tokens(tuple(map(str, range(count))), (False,) * count)


def inputs_for(config: Any) -> tuple[dict[str, Tensor], Tokens, Tokens | None]:
    generator = torch.Generator().manual_seed(1)
    if hasattr(config, "num_channels"):
        pixels = torch.randn(1, 3, config.image_size, config.image_size, generator=generator)
        return {"pixel_values": pixels}, numbered((config.image_size // 4) ** 2 + 1), None
    inputs = {"input_ids": torch.randint(1, 53, (1, LENGTH), generator=generator)}
    if not config.is_encoder_decoder:
        return inputs, numbered(LENGTH), None
    written = torch.randint(1, 53, (1, WRITTEN), generator=generator)
    return inputs | {"decoder_input_ids": written}, numbered(LENGTH), numbered(WRITTEN)


def eager_weights(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """By HuggingFace's own eager attention, of a model that was built with it."""
    with torch.no_grad():
        outputs = model.eval()(**inputs, output_attentions=True)
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions",
             "cross": "cross_attentions"}  # fmt: skip
    if not model.config.is_encoder_decoder:
        causal = type(model).__name__.endswith(("CausalLM", "LMHeadModel"))
        names = {"decoder" if causal else "encoder": "attentions"}
    return {kind: torch.stack(outputs[name])[:, 0] for kind, name in names.items()}


@pytest.mark.parametrize("name", list(MODELS))
def test_the_weights_are_those_of_huggingfaces_eager_attention(name: str) -> None:
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**MODELS[name], attn_implementation="sdpa"))
    inputs, tokens, target = inputs_for(model.config)
    reference = model_class(model_class.config_class(**MODELS[name], attn_implementation="eager"))
    reference.load_state_dict(model.state_dict())

    model.train()  # dropout must not be drawn
    found = collect(model, inputs, tokens, target)

    expected = eager_weights(reference, inputs)
    assert list(found) == list(expected)
    for kind, maps in found.items():
        assert maps.weights.dtype == torch.float32
        torch.testing.assert_close(maps.weights, expected[kind], atol=1e-6, rtol=0)
        assert maps.weights.std() > 0.01  # not one number everywhere
    assert model.training
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    ("model_type", "head"),
    [
        # The heads that read the class token alone leave most of the last layer out.
        ("bert", "sequence-classification"),
        ("roberta", "sequence-classification"),
        ("vit", "image-classification"),
        ("gpt2", "causal-lm"),
        ("marian", "seq2seq-lm"),
    ],
)
@pytest.mark.parametrize("implementation", ["sdpa", "scratch"])
def test_our_classes_give_the_weights_of_huggingfaces(
    model_type: str, head: str, implementation: str, tmp_path: Path
) -> None:
    architecture = architectures()[model_type]
    write_random_checkpoint(tmp_path, architecture, head)
    own_class: Any = scratch_class(model_type, head)
    own = own_class.from_pretrained(tmp_path, attn_implementation=implementation)
    reference_class = getattr(transformers, own_class.huggingface_class)
    reference = reference_class.from_pretrained(tmp_path, attn_implementation="eager")
    inputs, tokens, target = inputs_for(own.config)
    if "pixel_values" in inputs:
        tokens = numbered((own.config.image_size // own.config.patch_size) ** 2 + 1)

    found = collect(own, inputs, tokens, target)

    expected = eager_weights(reference, inputs)
    assert list(found) == list(expected)
    for kind, maps in found.items():
        torch.testing.assert_close(maps.weights, expected[kind], atol=1e-5, rtol=0)


def test_a_batch_has_the_weights_of_its_rows() -> None:
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**_TEXT))
    ids = torch.randint(1, 61, (3, LENGTH))

    batch = stacked_weights(model, {"input_ids": ids})["encoder"]

    assert batch.shape == (2, 3, 4, LENGTH, LENGTH)
    for row in range(3):
        alone = collect(model, {"input_ids": ids[row : row + 1]}, numbered(LENGTH))["encoder"]
        torch.testing.assert_close(batch[:, row], alone.weights, atol=1e-6, rtol=0)


def test_an_adapter_is_looked_through() -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    plain = transformers.BertModel(transformers.BertConfig(**_TEXT))
    inputs, tokens, _ = inputs_for(plain.config)
    before = collect(plain, inputs, tokens)["encoder"].weights
    adapted = get_peft_model(plain, LoraConfig(target_modules=["query"], init_lora_weights=False))

    after = collect(adapted, inputs, tokens)["encoder"].weights

    assert (after - before).abs().max() > 1e-3
    merged = adapted.merge_and_unload()
    expected = collect(merged, inputs, tokens)["encoder"].weights
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=0)


def test_models_without_attention_are_refused(lstm_run: Path) -> None:
    from scratch_models import ScratchLSTMForSequenceClassification

    model = ScratchLSTMForSequenceClassification.from_pretrained(lstm_run / "model")
    inputs = {"input_ids": torch.tensor([[1, 2, 3]]), "attention_mask": torch.ones(1, 3)}
    with pytest.raises(UserError, match="returns no attention weights"):
        collect(model, inputs, numbered(3))


def test_attention_within_windows_is_refused() -> None:
    config = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4
    )
    with pytest.raises(UserError, match="attend in different ways"):
        collect(transformers.SwinModel(config), {"pixel_values": torch.randn(1, 3, 32, 32)},
                numbered(64))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights * 0.9, "differ by 0.1 from a sum of 1"),
        (lambda weights: weights.log(), "from a sum of 1"),  # not a number
        (lambda weights: weights[..., :2], "4 queries and 4 keys"),
        (lambda weights: weights[0], "4 queries and 4 keys"),
    ],
)
def test_what_is_no_distribution_over_the_tokens_is_refused(
    change: Callable[[Tensor], Tensor], message: str
) -> None:
    whole = torch.eye(4).expand(2, 3, 4, 4)
    assert AttentionMaps("encoder", whole, numbered(4), numbered(4)).heads == 3
    with pytest.raises(ValueError, match=message):
        AttentionMaps("encoder", change(whole), numbered(4), numbered(4))

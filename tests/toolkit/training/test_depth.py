"""How deep weights lie: counted by hand on HuggingFace's names, and the same for our classes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import scratch_models
from scratch_models.hub.auto import scratch_class
from toolkit.adapters import LoraSettings, add_lora
from toolkit.errors import UserError
from toolkit.training.depth import parameter_depths
from toolkit.training.freezing import freeze_lowest, set_training_mode
from toolkit.training.optimizers import learning_rate_shares

BERT = transformers.BertConfig(
    vocab_size=11, hidden_size=4, num_hidden_layers=3, num_attention_heads=1,
    intermediate_size=4, max_position_embeddings=6,
)  # fmt: skip
GPT2 = transformers.GPT2Config(vocab_size=11, n_positions=6, n_embd=4, n_layer=2, n_head=1)
VIT = transformers.ViTConfig(
    image_size=8, patch_size=4, hidden_size=4, num_hidden_layers=2, num_attention_heads=1,
    intermediate_size=4,
)  # fmt: skip
MARIAN = transformers.MarianConfig(
    vocab_size=11, d_model=4, encoder_layers=3, decoder_layers=2, encoder_attention_heads=1,
    decoder_attention_heads=1, encoder_ffn_dim=4, decoder_ffn_dim=4, max_position_embeddings=6,
    pad_token_id=0, decoder_start_token_id=0,
)  # fmt: skip
T5 = transformers.T5Config(vocab_size=11, d_model=4, d_kv=4, d_ff=4, num_layers=2, num_heads=1)
# The class of HuggingFace, our head, the name of what is deepest, and a layer's number in a name.
CASES: list[tuple[Any, str, str, str]] = [
    (BERT, "BertForSequenceClassification", "sequence-classification", r"encoder\.layer\.(\d+)\."),
    (GPT2, "GPT2ForSequenceClassification", "sequence-classification", r"\.h\.(\d+)\."),
    (VIT, "ViTForImageClassification", "image-classification", r"\.layers?\.(\d+)\."),
    (MARIAN, "MarianMTModel", "seq2seq-lm", r"\.layers\.(\d+)\."),
    (T5, "T5ForConditionalGeneration", "", r"\.block\.(\d+)\."),
]
EMBEDDINGS = r"embeddings\.|wte|wpe|shared|embed_"


@pytest.mark.parametrize(("config", "name", "head", "layer"), CASES, ids=[c[1] for c in CASES])
def test_depths_are_those_of_the_layers_numbers(
    config: Any, name: str, head: str, layer: str
) -> None:
    theirs = getattr(transformers, name)(config)
    depths = parameter_depths(theirs)
    assert depths is not None
    numbers: dict[str, int] = {}  # of layers in every stack, by what stands before the number
    for key in depths.from_bottom:
        if found := re.search(layer, key):
            stack = key[: found.start()]
            numbers[stack] = max(numbers.get(stack, 0), int(found[1]) + 1)
    assert depths.stacks == list(numbers.values())
    for key, depth in depths.from_bottom.items():
        if found := re.search(layer, key):
            expected = int(found[1]) + 1, numbers[key[: found.start()]] - int(found[1])
        elif re.search(EMBEDDINGS, key):
            expected = 0, max(numbers.values()) + 1
        else:
            expected = max(numbers.values()) + 1, 0
        assert (depth, depths.from_top[key]) == expected, key
    assert set(depths.from_bottom) == {key for key, _ in theirs.named_parameters()}
    if head:  # ours have other names, and as many weights at every depth
        ours = scratch_class(config.model_type, head)(config)
        assert sizes(ours) == sizes(theirs)


def sizes(model: nn.Module) -> dict[int, int]:
    depths = parameter_depths(model)
    assert depths is not None
    found: dict[int, int] = {}
    for name, parameter in model.named_parameters():
        depth = depths.from_bottom[name]
        found[depth] = found.get(depth, 0) + parameter.numel()
    return found


def test_an_adapters_weights_lie_where_they_act() -> None:
    model = scratch_models.ScratchBertForSequenceClassification(BERT)
    depths = parameter_depths(add_lora(model, LoraSettings(rank=1), []))
    assert depths is not None
    assert depths.stacks == [3]
    updates = {name: depth for name, depth in depths.from_bottom.items() if "lora_" in name}
    assert len(updates) == 3 * 2 * 2
    for name, depth in updates.items():
        assert f".layers.{depth - 1}." in name
    heads = {d for name, d in depths.from_top.items() if "classifier" in name or "pooler" in name}
    assert heads == {0}


def test_a_model_without_layers_has_no_depths() -> None:
    assert parameter_depths(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))) is None


def test_encoder_and_decoder_freeze_alike() -> None:
    model = scratch_class("marian", "seq2seq-lm")(MARIAN)
    freeze_lowest(model, 1)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    for stack, layers in (("encoder", 3), ("decoder", 2)):
        for layer in range(layers):
            mine = [n for n, _ in model.named_parameters() if f"{stack}.layers.{layer}." in n]
            assert mine
            assert (set(mine) <= trained) == (layer >= 1)
            assert bool(set(mine) & trained) == (layer >= 1)
    assert not model.get_input_embeddings().weight.requires_grad
    with pytest.raises(UserError, match=r"3: the model has 3 and 2 layers, so .* to 2"):
        freeze_lowest(model, 3)


def test_the_top_of_a_short_decoder_learns_as_fast_as_that_of_a_long_encoder() -> None:
    shares = learning_rate_shares(transformers.MarianMTModel(MARIAN), 0.5)
    for stack, layers in (("encoder", 3), ("decoder", 2)):
        for layer in range(layers):
            own = {v for n, v in shares.items() if f"{stack}.layers.{layer}." in n}
            assert own == {0.5 ** (layers - layer)}
    assert shares["model.shared.weight"] == 0.5**4


def test_a_frozen_batch_norm_measures_nothing() -> None:
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[4, 4], depths=[1, 1], layer_type="basic", num_labels=2
    )
    model = transformers.ResNetForImageClassification(config)
    freeze_lowest(model, 1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    set_training_mode(model)
    assert model.training
    model(pixel_values=torch.randn(2, 3, 32, 32))
    depths = parameter_depths(model)
    assert depths is not None
    changed = {n for n, v in model.state_dict().items() if not v.equal(before[n])}
    frozen = {n.rpartition(".")[0] for n, d in depths.from_bottom.items() if d <= 1}
    assert changed
    assert not {name for name in changed if name.rpartition(".")[0] in frozen}
    # Not frozen: all of them measure, as ever.
    model.requires_grad_(True)
    set_training_mode(model)
    model(pixel_values=torch.randn(2, 3, 32, 32))
    still = [n for n, v in model.state_dict().items() if "running" in n and v.equal(before[n])]
    assert not still


def test_freezing_embeddings_alone_leaves_the_rest_to_be_trained() -> None:
    model = scratch_class("gpt2", "causal-lm")(GPT2)
    freeze_lowest(model, 0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    ids = torch.tensor([[1, 2, 3]])
    model(input_ids=ids, labels=ids).loss.backward()
    torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1).step()
    changed = {n for n, p in model.named_parameters() if not p.equal(before[n])}
    assert not {name for name in changed if "token" in name or "position" in name}
    assert any("layers.0." in name for name in changed)

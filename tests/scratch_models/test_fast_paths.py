"""The fast ways equal the plain ones: activations, the loss without logits, the cache with room."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import DynamicCache, GPT2Config, StaticCache
from transformers.activations import ACT2FN
from transformers.loss.loss_utils import ForCausalLMLoss

from scratch_models import PreallocatedCache, PreallocatedLayer, ScratchGPT2LMHeadModel
from scratch_models.hub.preallocated_cache import with_room
from scratch_models.layers import vocabulary_loss
from scratch_models.layers.activations import activation
from scratch_models.layers.vocabulary_loss import chunks_work, next_token_loss

CONFIG = GPT2Config(
    vocab_size=50, n_embd=16, n_head=2, n_layer=2, n_positions=40, bos_token_id=0, eos_token_id=1,
    pad_token_id=1,
)  # fmt: skip


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "tanh"])
def test_activations_are_transformers(name: str) -> None:
    values = torch.linspace(-8, 8, 4001, dtype=torch.float64, requires_grad=True)
    [own] = torch.autograd.grad(activation(name)(values).sum(), values)
    [other] = torch.autograd.grad(ACT2FN[name](values).sum(), values)
    torch.testing.assert_close(activation(name)(values), ACT2FN[name](values), atol=1e-7, rtol=1e-6)
    torch.testing.assert_close(own, other, atol=1e-6, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 3), length=st.integers(1, 30), hidden=st.sampled_from(["some", "none"]),
    count=st.sampled_from([None, 1, 7.0]), bias=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_the_loss_without_logits_is_transformers(
    rows: int, length: int, hidden: str, count: Any, bias: bool, seed: int
) -> None:
    """Value and gradients, in chunks of 4 tokens."""
    torch.manual_seed(seed)
    head = nn.Linear(6, 11, bias=bias)
    states = torch.randn(rows, length, 6, requires_grad=True)
    labels = torch.randint(0, 11, (rows, length))
    if hidden == "some":
        labels[torch.rand(rows, length) < 0.3] = -100
    if not bool((labels[:, 1:] != -100).any()):
        labels = torch.cat([labels, labels.clamp(min=0)], dim=1)
        states = torch.randn(rows, 2 * length, 6, requires_grad=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary_loss, "CHUNK", 4)
        own = next_token_loss(states, head, labels, count)
        found = torch.autograd.grad(own, [states, *head.parameters()])
    other = ForCausalLMLoss(head(states), labels, vocab_size=11, num_items_in_batch=count)
    torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)
    expected = torch.autograd.grad(other, [states, *head.parameters()])
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="an older PyTorch")
def test_chunks_are_taken_where_they_compute_the_same() -> None:
    head, many = nn.Linear(4, 9), torch.randn(vocabulary_loss.CHUNK + 1, 4)
    assert chunks_work(many, head)
    assert not chunks_work(many[:-1], head)
    assert not chunks_work(many.double(), head.double())
    head = head.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not chunks_work(many, head)

    class Adapted(nn.Linear):
        pass

    assert not chunks_work(many, Adapted(4, 9))


def test_an_older_torch_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    head, states = nn.Linear(4, 9, bias=False), torch.randn(2, 600, 4)
    labels = torch.randint(0, 9, (2, 600))
    here = next_token_loss(states, head, labels)
    monkeypatch.delattr(F, "linear_cross_entropy", raising=False)
    torch.testing.assert_close(next_token_loss(states, head, labels), here)


@pytest.mark.parametrize("labels_hidden", [False, True])
def test_gpt2_with_the_loss_alone(labels_hidden: bool) -> None:
    torch.manual_seed(0)
    model = ScratchGPT2LMHeadModel(CONFIG).eval()
    ids = torch.randint(2, 50, (3, 20))
    labels = ids.clone()
    if labels_hidden:
        labels[1, 5:] = -100
    alone = model(ids, labels=labels, loss_only=True)
    assert alone.logits is None
    torch.testing.assert_close(alone.loss, model(ids, labels=labels).loss)
    assert model(ids, loss_only=True).logits.shape == (3, 20, 50)  # no labels: no loss
    with pytest.raises(ValueError, match="labels or logits_at"):
        model(ids, labels=labels, loss_only=True, logits_at=ids > 5)


def heads(tokens: int, batch: int = 2, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, 3, tokens, 4, generator=generator)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), room=st.integers(0, 12))
def test_a_layer_with_room_holds_what_a_growing_one_holds(data: st.DataObject, room: int) -> None:
    """After any sequence of additions, re-orderings, repetitions and cuts."""
    from transformers.cache_utils import DynamicLayer

    own, other, batch = PreallocatedLayer(room), DynamicLayer(), 2
    for step in range(data.draw(st.integers(1, 7))):
        kind = data.draw(st.sampled_from(["add", "add", "reorder", "repeat", "crop"]))
        if kind == "add" or other.get_seq_length() == 0:
            tokens = data.draw(st.integers(1, 4))
            new = heads(tokens, batch, step), heads(tokens, batch, step + 50)
            returned = own.update(*new), other.update(*new)
            assert all(torch.equal(a, b) for a, b in zip(*returned, strict=True))
        elif kind == "reorder":
            order = torch.tensor(data.draw(st.permutations(range(batch))))
            own.reorder_cache(order)
            other.reorder_cache(order)
        elif kind == "repeat" and batch < 8:
            own.batch_repeat_interleave(2)
            other.batch_repeat_interleave(2)
            batch *= 2
        elif kind == "crop":
            away = data.draw(st.integers(0, other.get_seq_length() - 1))
            own.crop(-away)
            other.crop(-away)
        assert own.get_seq_length() == other.get_seq_length()
        assert own.keys is not None
        assert other.keys is not None
        assert torch.equal(own.keys, other.keys)
        assert torch.equal(own.values, other.values)


def test_nothing_is_copied_while_there_is_room() -> None:
    layer = PreallocatedLayer(room=10)
    layer.update(heads(5), heads(5))
    assert layer.keys is not None
    place = layer.keys.data_ptr()
    for step in range(5):
        layer.update(heads(1, seed=step), heads(1, seed=step))
        assert layer.keys.data_ptr() == place
    layer.update(heads(1), heads(1))  # one too many
    assert layer.keys.data_ptr() != place
    assert layer.get_seq_length() == 11


def test_a_copy_that_goes_on_otherwise_changes_nothing() -> None:
    """Two continuations of one prefix, as of a prompt that is read once."""
    from transformers.cache_utils import DynamicLayer

    for kind in (PreallocatedLayer, DynamicLayer):
        first = kind()
        first.update(heads(3), heads(3))
        second = copy.copy(first)
        first.update(heads(1, seed=1), heads(1, seed=1))
        second.update(heads(1, seed=2), heads(1, seed=2))
        assert first.keys is not None
        assert torch.equal(first.keys[:, :, 3:], heads(1, seed=1))
        assert torch.equal(second.keys[:, :, 3:], heads(1, seed=2))


def test_what_was_read_in_inference_mode_is_gone_on_with_outside() -> None:
    layer = PreallocatedLayer(room=10)
    with torch.inference_mode():
        layer.update(heads(3), heads(3))
    with torch.no_grad():
        keys, _ = layer.update(heads(1, seed=1), heads(1, seed=1))
    assert torch.equal(keys, torch.cat([heads(3), heads(1, seed=1)], dim=2))


def test_little_is_taken_at_first() -> None:
    layer = PreallocatedLayer(room=1000)
    keys, _ = layer.update(heads(3), heads(3))
    assert keys.untyped_storage().nbytes() == 2 * keys.nbytes
    for step in range(500):
        keys, _ = layer.update(heads(1, seed=step), heads(1, seed=step))
    assert keys.untyped_storage().nbytes() <= 1000 * heads(1).nbytes


def test_keys_that_are_learned_through_are_not_overwritten() -> None:
    layer = PreallocatedLayer(room=10)
    first = heads(2).requires_grad_()
    layer.update(first, first)
    keys, _ = layer.update(heads(1), heads(1))
    [gradient] = torch.autograd.grad((keys**2).sum(), first)
    torch.testing.assert_close(gradient, 2 * first.detach())


def test_generate_takes_it_and_leaves_others_alone() -> None:
    assert type(with_room(DynamicCache(config=CONFIG), CONFIG, 9)) is PreallocatedCache
    static = StaticCache(config=CONFIG, max_cache_len=9)
    assert with_room(static, CONFIG, 9) is static
    begun = DynamicCache(config=CONFIG)
    begun.update(heads(1), heads(1), 0)
    assert with_room(begun, CONFIG, 9) is begun
    torch.manual_seed(0)
    model = ScratchGPT2LMHeadModel(CONFIG).eval()
    found = model.generate(
        torch.tensor([[5, 6]]), attention_mask=torch.ones(1, 2, dtype=torch.long),
        max_new_tokens=4, min_new_tokens=4, do_sample=False, return_dict_in_generate=True,
    )  # fmt: skip
    assert type(found.past_key_values) is PreallocatedCache
    mine = DynamicCache(config=CONFIG)
    model.generate(
        torch.tensor([[5, 6]]), attention_mask=torch.ones(1, 2, dtype=torch.long),
        max_new_tokens=4, past_key_values=mine, do_sample=False,
    )  # fmt: skip
    assert mine.get_seq_length() > 0

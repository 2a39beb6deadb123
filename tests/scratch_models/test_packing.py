"""Padded batches computed without padding: the same numbers for real tokens, zeros elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, DynamicCache, GPT2Config, RobertaConfig

from scratch_models import scratch_class
from scratch_models.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from scratch_models.layers.packed_attention import packed_attention, padded_inside
from scratch_models.layers.packing import PackedSequences, find_packing

SIZES: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 24, "initializer_range": 0.3,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 3,
}  # fmt: skip
CONFIGS = {"bert": BertConfig, "roberta": RobertaConfig}
KINDS = [
    (model_type, head)
    for model_type in CONFIGS
    for head in ("model", "masked-lm", "token-classification", "sequence-classification")
]


def build(model_type: str = "bert", head: str = "model", attn: str = "sdpa", **changes: Any) -> Any:
    torch.manual_seed(0)
    config = CONFIGS[model_type](**{**SIZES, **changes})
    return scratch_class(model_type, head)._from_config(config, attn_implementation=attn).eval()


def mask_of(lengths: list[int], longest: int | None = None) -> Tensor:
    longest = max(lengths) if longest is None else longest
    return (torch.arange(longest)[None] < torch.tensor(lengths)[:, None]).long()


def batch_of(mask: Tensor, head: str, pad: int = 0) -> dict[str, Tensor]:
    torch.manual_seed(1)
    real = mask.bool()
    batch = {
        "input_ids": torch.randint(5, 50, mask.shape).masked_fill(~real, pad),
        "attention_mask": mask,
    }
    if head == "sequence-classification":
        batch["labels"] = torch.randint(3, (len(mask),))
    elif head != "model":
        batch["labels"] = torch.randint(3, mask.shape).masked_fill(~real, -100)
    return batch


def counted_tokens(model: Any, batch: dict[str, Tensor]) -> int:
    """How many tokens the first feed-forward part sees."""
    seen: list[int] = []
    layer = model.base_model.layers[0].feed_forward
    hook = layer.register_forward_hook(
        lambda m, args, out: seen.append(args[0].flatten(0, 1).shape[0])
    )
    model(**batch)
    hook.remove()
    return seen[0]


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
@pytest.mark.parametrize(("model_type", "head"), KINDS)
def test_real_tokens_loss_and_gradients_are_those_of_the_padded_batch(
    model_type: str, head: str, attn: str
) -> None:
    model = build(model_type, head, attn)
    mask = mask_of([11, 4, 1, 7])
    batch = batch_of(mask, head, pad=model.config.pad_token_id)
    found = []
    for packing in ("off", "auto"):
        model.set_packing(packing)
        model.zero_grad(set_to_none=True)
        output = model(**batch, output_hidden_states=True, output_attentions=True)
        loss = (
            model(**batch).loss
            if head != "model"
            else output.last_hidden_state[mask.bool()].sin().mean()
        )
        loss.backward()
        gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        found.append((output, loss.detach(), gradients))
    assert counted_tokens(model, batch) == 23
    (padded, loss, gradients), (packed, packed_loss, packed_gradients) = found
    real = mask.bool()
    torch.testing.assert_close(packed_loss, loss, atol=1e-5, rtol=1e-5)
    assert packed.keys() == padded.keys()
    for ours, theirs in zip(packed.hidden_states, padded.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=1e-5)
        assert not ours[~real].any()
    for ours, theirs in zip(packed.attentions, padded.attentions, strict=True):
        assert ours.shape == theirs.shape
        rows = ours.transpose(1, 2)
        torch.testing.assert_close(rows[real], theirs.transpose(1, 2)[real], atol=1e-5, rtol=1e-5)
        assert not rows[~real].any()
    assert packed_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(
            packed_gradients[name],
            gradient,
            atol=1e-5,
            rtol=1e-4,
            msg=lambda m, n=name: f"{n}: {m}",
        )


@settings(max_examples=40, deadline=None)
@given(mask=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5))
def test_padding_may_stand_anywhere(mask: list[list[bool]]) -> None:
    """Left, in the middle, whole rows."""
    model = build("bert", "token-classification")
    batch = batch_of(torch.tensor(mask).long(), "model")
    real = torch.tensor(mask)
    with torch.no_grad():
        model.set_packing("off")
        padded = model(**batch).logits
        model.set_packing("auto")
        packed = model(**batch).logits
    torch.testing.assert_close(packed[real], padded[real], atol=1e-5, rtol=1e-5)
    if not real.all():
        nothing = model.classifier.bias.expand_as(packed[~real])
        torch.testing.assert_close(packed[~real], nothing)


@pytest.mark.parametrize("rows", [[[0, 1, 1], [1, 1, 0]], [[0, 0, 0], [1, 1, 0]]])
def test_a_head_that_reads_padding_gets_it(rows: list[list[int]]) -> None:
    """The first place of a row that begins with padding has a value in the padded computation."""
    model = build("bert", "sequence-classification")
    batch = batch_of(torch.tensor(rows), "model")
    with torch.no_grad():
        packed = model(**batch).logits
        assert counted_tokens(model, batch) == 6
        model.set_packing("off")
        torch.testing.assert_close(packed, model(**batch).logits, atol=0, rtol=0)


def test_labels_on_padding_are_not_lost() -> None:
    model = build("bert", "token-classification")
    batch = batch_of(mask_of([5, 2]), "model")
    labels = torch.randint(3, (2, 5))
    loss = model(**batch, labels=labels).loss
    model.set_packing("off")
    assert loss == model(**batch, labels=labels).loss


def test_answers_are_compared_with_padding_in_the_loss_alone() -> None:
    model = build("bert", "question-answering", num_labels=2)
    batch = batch_of(mask_of([5, 2]), "model")
    places = {"start_positions": torch.tensor([1, 0]), "end_positions": torch.tensor([2, 1])}
    assert counted_tokens(model, batch) == 7
    assert counted_tokens(model, batch | places) == 10
    loss = model(**batch, **places).loss
    model.set_packing("off")
    assert loss == model(**batch, **places).loss


@pytest.mark.parametrize("model_type", CONFIGS)
def test_texts_that_come_packed(model_type: str) -> None:
    lengths = [4, 1, 7]
    for head in ("model", "token-classification", "sequence-classification"):
        model = build(model_type, head)
        padded = batch_of(mask_of(lengths), head, pad=model.config.pad_token_id)
        real = padded["attention_mask"].bool()
        flat = {"input_ids": padded["input_ids"][real][None], "sequence_lengths": lengths}
        if head == "sequence-classification":
            flat["labels"] = padded["labels"]
        elif head == "token-classification":
            flat["labels"] = padded["labels"][real][None]
        model.set_packing("off")
        with torch.no_grad():
            expected, found = model(**padded), model(**flat)
        if head == "model":
            torch.testing.assert_close(found.last_hidden_state[0], expected.last_hidden_state[real])
            if expected.pooler_output is not None:
                torch.testing.assert_close(found.pooler_output, expected.pooler_output)
        else:
            torch.testing.assert_close(found.loss, expected.loss)
            by_token = head == "token-classification"
            logits = expected.logits[real][None] if by_token else expected.logits
            torch.testing.assert_close(found.logits, logits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sequence_lengths": [3, 3]}, r"add up to 6, but input_ids hold 5 tokens"),
        ({"sequence_lengths": [6, -1]}, r"add up to 5, but"),
        ({"sequence_lengths": [5], "attention_mask": torch.ones(1, 5)}, "without attention_mask"),
        (
            {"sequence_lengths": [25], "input_ids": torch.ones(1, 25, dtype=torch.long)},
            "25 tokens but the model has positions for 24",
        ),
        (
            {"sequence_lengths": [5, 5], "input_ids": torch.ones(2, 5, dtype=torch.long)},
            r"in one row, \[1, tokens\], not \[2, 5\]",
        ),
    ],
)
def test_wrong_lengths(arguments: dict[str, Any], message: str) -> None:
    ids = {"input_ids": torch.ones(1, 5, dtype=torch.long)}
    with pytest.raises(ValueError, match=message):
        build()(**ids | arguments)


def test_more_tokens_than_positions_in_a_text_are_refused_but_not_in_the_row() -> None:
    model = build()
    ids = torch.randint(5, 50, (1, 40))
    assert model(input_ids=ids, sequence_lengths=[24, 16]).last_hidden_state.shape == (1, 40, 32)
    mask = mask_of([20, 15, 12])
    assert model(**batch_of(mask, "model")).last_hidden_state.shape == (3, 20, 32)
    with pytest.raises(ValueError, match="25 tokens but the model has positions for 24"):
        model(**batch_of(mask_of([25, 2]), "model"))


def test_training_with_dropout_checkpointing_and_autocast() -> None:
    model = build("bert", "sequence-classification", hidden_dropout_prob=0.3).train()
    batch = batch_of(mask_of([9, 2, 5]), "sequence-classification")
    losses, gradients = [], []
    for checkpointing in (False, True):
        if checkpointing:
            model.activation_checkpointing_enable()
        model.zero_grad(set_to_none=True)
        torch.manual_seed(7)
        loss = model(**batch).loss
        loss.backward()
        losses.append(loss.detach())
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert losses[0] == losses[1]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
    model.eval()
    with torch.no_grad():
        exact = model(**batch).logits
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = model(**batch).logits
            model.set_packing("off")
            padded = model(**batch).logits
    scale = float(exact.abs().max())
    assert float((rounded.float() - padded.float()).abs().max()) < 0.03 * scale
    assert float((rounded.float() - exact).abs().max()) < 0.05 * scale


def test_masks_that_are_not_packed() -> None:
    config = BertConfig(**SIZES)
    config._attn_implementation = "sdpa"
    padded = mask_of([3, 1])
    assert find_packing(config, padded, "auto") is not None
    assert find_packing(config, padded, "off") is None
    assert find_packing(config, torch.ones(2, 3), "auto") is None
    assert find_packing(config, None, "auto") is None
    assert find_packing(config, padded[:, None].expand(2, 3, 3), "auto") is None
    config._attn_implementation = "flex_attention"
    assert find_packing(config, padded, "auto") is None


def test_packing_is_a_setting_of_the_model_and_not_of_its_config(tmp_path: Any) -> None:
    model = build("bert", "sequence-classification")
    model.save_pretrained(tmp_path)
    assert "packing" not in (tmp_path / "config.json").read_text(encoding="utf-8")
    loaded = type(model).from_pretrained(tmp_path, packing="off")
    assert (loaded.packing, loaded.bert.packing) == ("off", "off")
    assert type(model).from_pretrained(tmp_path).bert.packing == "auto"
    with pytest.raises(ValueError, match="expected 'auto' or 'off'"):
        model.set_packing("on")


def test_only_the_first_token_in_the_last_layer() -> None:
    model = build("bert", "sequence-classification", hidden_dropout_prob=0.1).train()
    seen: list[tuple[int, ...]] = []
    for layer in model.bert.layers:
        layer.feed_forward.register_forward_hook(lambda m, args, out: seen.append(tuple(out.shape)))
    model(**batch_of(mask_of([9, 2, 5]), "model"))
    assert seen == [(1, 16, 32), (1, 16, 32), (1, 3, 32)]


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    causal=st.booleans(),
    first=st.booleans(),
)
def test_each_way_of_attention_is_that_of_every_text_alone(
    lengths: list[int], causal: bool, first: bool
) -> None:
    """Against the written-out formula (equation (1) of the 2017 paper), text by text."""
    module = MultiHeadAttention(8, 2)
    module.is_causal = causal
    first = first and not causal
    packed = PackedSequences.of_lengths(lengths, sum(lengths))
    if first:
        packed = packed.first_tokens_only
    query, key, value = (
        torch.randn(1, 2, n, 4) for n in (sum(packed.queries), *[sum(lengths)] * 2)
    )
    expected = []
    for q, k, v in zip(
        query.split(packed.queries, 2), key.split(packed.keys, 2), value.split(packed.keys, 2),
        strict=True,
    ):  # fmt: skip
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril() if causal else None
        expected.append(scaled_dot_product_attention(q, k, v, mask)[0].transpose(1, 2))
    wanted = torch.cat(expected, dim=1)

    def sdpa(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: None, **how: Any) -> Any:
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=how["scaling"])
        return mixed.transpose(1, 2), None

    loop = packed_attention(sdpa, module, query, key, value, packed, scaling=0.5)
    inside = padded_inside(module, query, key, value, packed, 0.5, 0.0)
    torch.testing.assert_close(loop, wanted)
    torch.testing.assert_close(inside, wanted)


GPT2: dict[str, Any] = {
    "vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16,
    "initializer_range": 0.3, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
def test_documents_in_one_row_do_not_see_each_other(attn: str) -> None:
    torch.manual_seed(0)
    config = GPT2Config(**GPT2)
    model = scratch_class("gpt2", "causal-lm")._from_config(config, attn_implementation=attn).eval()
    lengths = [5, 1, 16, 3]
    texts = [torch.randint(5, 50, (1, n)) for n in lengths]
    alone = torch.cat([model(text).logits for text in texts], dim=1)
    packed = model(torch.cat(texts, dim=1), sequence_lengths=lengths)
    torch.testing.assert_close(packed.logits, alone, atol=1e-5, rtol=1e-5)
    assert packed.cache is None
    together = model(torch.cat(texts[:3], dim=1)[:, :16]).logits
    assert (together[:, 6:] - alone[:, 6:16]).abs().max() > 0.1  # they would matter
    maps = model(torch.cat(texts, dim=1), sequence_lengths=lengths, output_attentions=True)
    assert maps.attentions[0].shape == (4, 4, 16, 16)
    expected = model(texts[0], output_attentions=True).attentions[0]
    torch.testing.assert_close(maps.attentions[0][:1, :, :5, :5], expected)


def test_packed_documents_have_no_past_and_no_mask() -> None:
    model = scratch_class("gpt2", "model")(GPT2Config(**GPT2)).eval()
    ids = torch.ones(1, 6, dtype=torch.long)
    with pytest.raises(ValueError, match="without a cache"):
        model(ids, sequence_lengths=[6], cache=DynamicCache())
    with pytest.raises(ValueError, match="17 tokens but the model has positions for 16"):
        model(torch.ones(1, 17, dtype=torch.long), sequence_lengths=[17])


@pytest.mark.parametrize("head", ["masked-lm", "pretraining", "causal-lm"])
def test_logits_of_chosen_places(head: str) -> None:
    torch.manual_seed(0)
    model_type = "gpt2" if head == "causal-lm" else "bert"
    config = GPT2Config(**GPT2) if model_type == "gpt2" else BertConfig(**SIZES)
    model = scratch_class(model_type, head)(config).eval()
    batch = batch_of(mask_of([7, 3]), "model")
    if model_type == "gpt2":
        batch["attention_mask"] = torch.ones(2, 7, dtype=torch.long)
    places = torch.rand(2, 7) < 0.4
    labels = torch.randint(50, (2, 7)).masked_fill(~places, -100)
    name = "prediction_logits" if head == "pretraining" else "logits"
    with torch.no_grad():
        everywhere = model(**batch)[name]
        chosen = model(**batch, logits_at=places)[name]
    torch.testing.assert_close(chosen, everywhere[places])
    with pytest.raises(ValueError, match=r"logits_at is \[2, 6\] but the input is \[2, 7\]"):
        model(**batch, logits_at=places[:, :6])
    if head == "causal-lm":
        with pytest.raises(ValueError, match="labels or logits_at"):
            model(**batch, labels=labels, logits_at=places)
        return
    batch |= {"labels": labels.masked_fill(batch["attention_mask"] == 0, -100)}
    batch |= {"next_sentence_label": torch.tensor([0, 1])} if head == "pretraining" else {}
    loss = model(**batch, logits_at=batch["labels"] != -100).loss
    torch.testing.assert_close(loss, model(**batch).loss)

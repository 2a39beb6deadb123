"""The LSTM baseline sees real tokens only, learns, and survives saving."""

from __future__ import annotations

import pytest
import torch

from scratch_models import ScratchLSTMConfig, ScratchLSTMForSequenceClassification
from scratch_models.baselines.lstm.modeling import masked_max, masked_mean


def build(**changes) -> ScratchLSTMForSequenceClassification:
    sizes = {"vocab_size": 40, "embedding_size": 12, "hidden_size": 10, "num_layers": 2}
    return ScratchLSTMForSequenceClassification(ScratchLSTMConfig(**{**sizes, **changes})).eval()


@pytest.mark.parametrize("pooling", ["max", "mean"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_and_neighbours_change_nothing(pooling: str, side: str) -> None:
    model = build(pooling=pooling)
    texts = [torch.randint(1, 40, (n,)) for n in (7, 3, 1)]
    ids, mask = torch.zeros(3, 9, dtype=torch.long), torch.zeros(3, 9, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(0, len(text)) if side == "right" else slice(9 - len(text), 9)
        ids[row, place], mask[row, place] = text, 1
    together = model(ids, attention_mask=mask).logits
    alone = torch.cat([model(text[None]).logits for text in texts])
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_it_is_torch_s_lstm_pooled_and_projected(pooling: str) -> None:
    model = build(pooling=pooling)
    ids = torch.randint(1, 40, (2, 6))
    states, _ = model.lstm(model.token(ids))
    pooled = states.amax(dim=1) if pooling == "max" else states.mean(dim=1)
    torch.testing.assert_close(model(ids).logits, model.classifier(pooled))


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_a_row_without_tokens_is_a_zero_vector_and_gradients_stay_finite(pooling: str) -> None:
    model = build(pooling=pooling)
    ids = torch.tensor([[5, 6, 7], [0, 0, 0]])
    output = model(ids, attention_mask=(ids > 0).long(), labels=torch.tensor([0, 1]))
    torch.testing.assert_close(output.logits[1], model.classifier.bias)
    torch.testing.assert_close(output.logits[:1], model(ids[:1]).logits)
    output.loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_pools_computed_by_hand() -> None:
    states = torch.tensor([[[1.0, -5.0], [3.0, -7.0], [99.0, 99.0]]])
    real = torch.tensor([[True, True, False]])
    assert masked_max(states, real).tolist() == [[3.0, -5.0]]
    assert masked_mean(states, real).tolist() == [[2.0, -6.0]]
    assert masked_max(states.half(), real).tolist() == [[3.0, -5.0]]


def test_it_learns_which_token_a_text_holds() -> None:
    model = build(dropout=0.0, num_layers=1)
    ids = torch.randint(2, 40, (64, 8))
    labels = torch.arange(64) % 2
    ids[labels == 1, 3] = 1
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(40):
        loss = model(ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert (model(ids).logits.argmax(-1) == labels).float().mean() == 1.0


def test_what_is_saved_loads_with_equal_logits(tmp_path) -> None:
    model = build(pooling="mean", num_labels=3, id2label={0: "a", 1: "b", 2: "c"})
    model.save_pretrained(tmp_path)
    loaded = ScratchLSTMForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.config.pooling == "mean"
    assert loaded.config.id2label == {0: "a", 1: "b", 2: "c"}
    ids = torch.randint(1, 40, (2, 6))
    assert torch.equal(loaded(ids).logits, model(ids).logits)


def test_dropout_is_active_in_training_only() -> None:
    model = build(dropout=0.5)
    ids = torch.randint(1, 40, (4, 6))
    assert torch.equal(model(ids).logits, model(ids).logits)
    model.train()
    assert not torch.equal(model(ids).logits, model(ids).logits)


def test_unknown_pooling_is_refused() -> None:
    with pytest.raises(ValueError, match="'sum'; choose 'max' or 'mean'"):
        ScratchLSTMConfig(pooling="sum")

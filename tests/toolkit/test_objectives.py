"""Loss sums, their counts and per-example results against HuggingFace's losses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers import BertConfig, BertForPreTraining, BertForSequenceClassification

from toolkit.objectives import Classification, Pretraining, model_inputs


def tiny_config(**changes: int) -> BertConfig:
    return BertConfig(
        vocab_size=31, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=12, initializer_range=0.3, **changes,
    )  # fmt: skip


@pytest.fixture
def tokens() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    ids = torch.randint(5, 31, (4, 9))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    mask[3, 7:] = 0
    return {"input_ids": ids, "attention_mask": mask, "index": torch.arange(4)}


def test_classification_sum_over_count_is_huggingfaces_loss(tokens: dict) -> None:
    model = BertForSequenceClassification(tiny_config(num_labels=3)).eval()
    batch = {**tokens, "labels": torch.tensor([0, 2, 1, 1])}
    objective = Classification()
    assert objective.count(batch) == [4]
    total = objective.loss(model, batch)
    assert total.shape == (1,)
    with torch.no_grad():
        expected = model(**model_inputs(batch), labels=batch["labels"])
    assert total.item() / 4 == pytest.approx(expected.loss.item(), abs=1e-6)
    outputs = objective.outputs(model, batch)
    assert torch.allclose(outputs["logits"], expected.logits)
    assert outputs["loss"].sum().item() == pytest.approx(total.item(), abs=1e-6)
    single = [-torch.log_softmax(expected.logits[i], -1)[y] for i, y in enumerate(batch["labels"])]
    assert torch.allclose(outputs["loss"], torch.stack(single))


def test_pretraining_parts_over_counts_are_huggingfaces_loss(tokens: dict) -> None:
    model = BertForPreTraining(tiny_config()).eval()
    labels = torch.full((4, 9), -100)
    labels[0, 2], labels[0, 3], labels[2, 1], labels[3, 5] = 7, 8, 9, 10  # row 1 has none
    batch = {**tokens, "labels": labels, "next_sentence_label": torch.tensor([0, 1, 1, 0])}
    objective = Pretraining()
    assert objective.count(batch) == [4, 4]
    masked, pairs = objective.loss(model, batch)
    with torch.no_grad():
        expected = model(
            **model_inputs(batch), labels=labels, next_sentence_label=batch["next_sentence_label"]
        )
    assert (masked / 4 + pairs / 4).item() == pytest.approx(expected.loss.item(), abs=1e-5)
    outputs = objective.outputs(model, batch)
    guesses = expected.prediction_logits.argmax(-1)
    right = [sum(int(guesses[i, j] == labels[i, j]) for j in range(9)) for i in range(4)]
    assert outputs["masked"].tolist() == [2, 0, 1, 1]
    assert outputs["correct"].tolist() == right
    assert outputs["loss"][1] == 0
    assert outputs["loss"].sum().item() == pytest.approx(masked.item(), abs=1e-5)
    decided = expected.seq_relationship_logits.argmax(-1)
    assert outputs["next_correct"].tolist() == (decided == batch["next_sentence_label"]).tolist()


def test_a_batch_without_masked_tokens_has_a_loss_of_its_pairs_alone(tokens: dict) -> None:
    model = BertForPreTraining(tiny_config()).eval()
    batch = {
        **tokens,
        "labels": torch.full((4, 9), -100),
        "next_sentence_label": torch.tensor([0, 1, 1, 0]),
    }
    assert Pretraining().count(batch) == [0, 4]
    masked, pairs = Pretraining().loss(model, batch)
    assert masked.item() == 0
    assert torch.isfinite(pairs)


def test_labels_and_row_numbers_do_not_reach_the_model(tokens: dict) -> None:
    batch = {**tokens, "labels": torch.ones(4), "next_sentence_label": torch.ones(4)}
    assert set(model_inputs(batch)) == {"input_ids", "attention_mask"}


def test_class_weights_are_torchs_over_the_number_of_examples(tokens: dict) -> None:
    model = BertForSequenceClassification(tiny_config(num_labels=3)).eval()
    batch = {**tokens, "labels": torch.tensor([0, 2, 1, 1])}
    weights = [2.0, 0.5, 1.25]
    with torch.no_grad():
        logits = model(**model_inputs(batch)).logits
        single = torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="none")
        expected = sum(weights[y] * loss for y, loss in zip([0, 2, 1, 1], single, strict=True))
        objective = Classification(class_weights=weights)
        assert objective.count(batch) == [4]
        assert objective.loss(model, batch).item() == pytest.approx(expected.item(), rel=1e-6)
        # Evaluation is not weighted: its loss compares with that of any other run.
        assert torch.allclose(objective.outputs(model, batch)["loss"], single)
        logs = logits.log_softmax(-1)
        one_hot = torch.nn.functional.one_hot(batch["labels"], 3).float()
        same = objective.loss(model, {**tokens, "labels": one_hot})
        assert same.item() == pytest.approx(expected.item(), rel=1e-6)
        # An example that is mixed of two weighs by their shares.
        shares = 0.7 * one_hot + 0.3 * one_hot.roll(1, 0)
        by_hand = sum((row @ torch.tensor(weights)) * -(row @ log)
                      for row, log in zip(shares, logs, strict=True))  # fmt: skip
        mixed = objective.loss(model, {**tokens, "labels": shares})
        assert mixed.item() == pytest.approx(by_hand.item(), rel=1e-6)
        # What smoothing gives to other classes weighs as the example does, not as they do.
        smoothed = Classification(0.3, weights)
        targets = 0.7 * one_hot + 0.1
        by_hand = sum(weights[y] * -(row @ log)
                      for y, row, log in zip([0, 2, 1, 1], targets, logs, strict=True))  # fmt: skip
        assert smoothed.loss(model, batch).item() == pytest.approx(by_hand.item(), rel=1e-6)
    assert objective.describe() == {"class_weights": weights}
    assert Classification(0.1).describe() == {"label_smoothing": 0.1}
    assert Classification().describe() == {}


def test_weights_and_smoothing_together_leave_the_right_class_the_best_answer() -> None:
    """By the loss alone: what minimises it for an example of a class is that class."""
    logits = torch.zeros(2, 2, requires_grad=True)
    objective = Classification(0.1, [13.33, 0.52])
    optimizer = torch.optim.LBFGS([logits], max_iter=50)
    batch = {"labels": torch.tensor([0, 1])}

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = objective.loss(lambda: SimpleNamespace(logits=logits), batch)  # type: ignore[arg-type]
        loss.backward()
        return loss

    optimizer.step(step)
    best = logits.detach().softmax(-1)
    assert torch.allclose(best, torch.tensor([[0.95, 0.05], [0.05, 0.95]]), atol=1e-3)

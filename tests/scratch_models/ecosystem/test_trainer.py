"""transformers' Trainer: stopping and resuming, the best model, accumulation, label smoothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)

from scratch_models.hub.architecture import architectures

pytestmark = pytest.mark.usefixtures("fresh_accelerator")
QUIET: dict[str, Any] = {
    "use_cpu": True,
    "report_to": [],
    "disable_tqdm": True,
    "logging_strategy": "no",
    "save_strategy": "no",
    "lr_scheduler_type": "constant",
    "per_device_train_batch_size": 4,
    "seed": 3,
}


def examples(case, config) -> list[dict[str, Tensor]]:
    """Sixteen rows."""
    batches = [case.batch(config, seed=seed) for seed in range(4)]
    return [{key: batch[key][row] for key in batch} for batch in batches for row in range(4)]


def trainer(case, model: PreTrainedModel, folder: Path, **arguments: Any) -> Trainer:
    rows = examples(case, model.config)
    settings = TrainingArguments(output_dir=str(folder), **{**QUIET, **arguments})
    return Trainer(model, settings, train_dataset=rows, eval_dataset=rows[:8])


def assert_equal_weights(model: PreTrainedModel, expected: dict[str, Tensor]) -> None:
    found = model.state_dict()
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_a_resumed_run_ends_like_one_that_never_stopped(one_head, tmp_path) -> None:
    how = {"max_steps": 3, "save_strategy": "steps", "save_steps": 2}
    uninterrupted = one_head.fresh(seed=0, dropout=True)
    trainer(one_head, uninterrupted, tmp_path, **how).train()
    resumed = one_head.fresh(seed=9, dropout=True)
    checkpoint = str(tmp_path / "checkpoint-2")
    trainer(one_head, resumed, tmp_path, **how).train(resume_from_checkpoint=checkpoint)
    assert_equal_weights(resumed, uninterrupted.state_dict())
    with pytest.raises(AssertionError):
        assert_equal_weights(resumed, one_head.fresh(seed=0, dropout=True).state_dict())


def test_the_best_model_is_restored_and_can_be_saved_for_huggingface(one_head, tmp_path) -> None:
    """With a learning rate that only does harm the first of three checkpoints is best."""
    model = one_head.fresh()
    run = trainer(
        one_head,
        model,
        tmp_path / "run",
        max_steps=3,
        save_strategy="steps",
        save_steps=1,
        eval_strategy="steps",
        eval_steps=1,
        load_best_model_at_end=True,
        optim="sgd",
        learning_rate=20.0,
        max_grad_norm=1.0,
    )
    run.train()
    losses = [entry["eval_loss"] for entry in run.state.log_history if "eval_loss" in entry]
    best = 1 + losses.index(min(losses))
    assert best < 3
    assert run.state.best_model_checkpoint == str(tmp_path / "run" / f"checkpoint-{best}")
    stored = one_head.own_class.from_pretrained(tmp_path / "run" / f"checkpoint-{best}")
    assert_equal_weights(model, stored.state_dict())
    assert run.evaluate()["eval_loss"] == pytest.approx(losses[best - 1], rel=1e-6)

    run.save_model(str(tmp_path / "saved"))
    reader = one_head.reference_class or one_head.own_class
    loaded, info = reader.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not info["missing_keys"]
    batch = one_head.batch(model.config)
    with torch.no_grad():
        ours, theirs = model.eval()(**batch), loaded.eval()(**batch)
    torch.testing.assert_close(ours.loss, theirs.loss, atol=1e-5, rtol=1e-5)


def test_small_batches_add_up_to_one_large_batch(one_head, tmp_path) -> None:
    """With as many labels in every batch: losses are means, which Trainer then averages."""
    results = []
    for batch, parts in ((8, 1), (2, 4)):
        model = one_head.fresh()
        freeze_statistics(model)
        run = trainer(
            one_head,
            model,
            tmp_path,
            max_steps=1,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=parts,
            optim="sgd",
            learning_rate=0.05,
            max_grad_norm=0.0,
        )
        if not run.model_accepts_loss_kwargs:  # else it counts the labels of the whole step
            run.train_dataset = [whole(row) for row in run.train_dataset]
        run.train()
        results.append(model.state_dict())
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, atol=1e-5, rtol=1e-4)


def test_only_a_loss_that_divides_by_the_whole_step_says_so() -> None:
    """Trainer would believe every `forward` with **kwargs and not divide at all."""
    classes = [
        architecture.load(head)
        for architecture in architectures().values()
        for head in architecture.classes
    ]
    counting = {model.__name__ for model in classes if model.accepts_loss_kwargs}
    assert counting == {"ScratchGPT2LMHeadModel"}


def freeze_statistics(model: PreTrainedModel) -> None:
    """Batch norms that use what they know: else what a batch holds is part of its values."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
            module.train = lambda mode=True, module=module: module


def whole(row: dict[str, Tensor]) -> dict[str, Tensor]:
    """A row that asks for a label everywhere: losses that are means weigh batches alike."""
    return {
        key: value.clamp(min=0) if key == "labels" and value.ndim else value
        for key, value in row.items()
    }


def test_smoothed_labels_give_the_loss_of_huggingface_s_class(smoothed, tmp_path) -> None:
    """Shifted by one for causal models, which Trainer tells by the name of their class."""
    pair = smoothed.pair(attn="sdpa")
    batch = smoothed.batch(pair[0].config)
    if pair[0].config.is_encoder_decoder:  # as DataCollatorForSeq2Seq does
        decoder_input_ids = pair[0].prepare_decoder_input_ids_from_labels(batch["labels"])
        batch["decoder_input_ids"] = decoder_input_ids
    losses = []
    for model in pair:
        run = trainer(smoothed, model, tmp_path, label_smoothing_factor=0.2)
        losses.append(run.compute_loss(model, dict(batch)))
    torch.testing.assert_close(*losses, atol=1e-5, rtol=1e-5)
    assert losses[0] != pair[0](**batch).loss


def test_a_translator_is_evaluated_by_what_it_generates(translator, tmp_path) -> None:
    counterpart = translator.reference_class
    models = translator.pair(attn="sdpa") if counterpart else (translator.fresh(),) * 2
    found = []
    for model in models:
        rows = examples(translator, model.config)[:8]
        settings = Seq2SeqTrainingArguments(
            output_dir=str(tmp_path), predict_with_generate=True, generation_max_length=7, **QUIET
        )
        result = Seq2SeqTrainer(model, settings).predict(rows)
        found.append(result)
        plain = model.generate(
            torch.stack([row["input_ids"] for row in rows]),
            attention_mask=torch.stack([row["attention_mask"] for row in rows]),
            max_length=7,
        )
        assert result.predictions[:, : plain.shape[1]].tolist() == plain.tolist()
    assert found[0].predictions.tolist() == found[1].predictions.tolist()
    assert found[0].metrics["test_loss"] == pytest.approx(found[1].metrics["test_loss"], rel=1e-5)

"""transformers' Trainer, which reads its checkpoints back with a plain `load_state_dict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTForImageClassification

from scratch_models import ScratchViTForImageClassification


class Images(Dataset):
    """Bright and dark noise."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(index)
        pixels = torch.randn(3, 16, 16, generator=generator) + index % 2
        return {"pixel_values": pixels, "labels": index % 2}


def trainer(model, folder: Path, **changes: Any) -> Trainer:
    arguments: dict[str, Any] = {
        "output_dir": str(folder),
        "max_steps": 4,
        "save_steps": 2,
        "per_device_train_batch_size": 4,
        "lr_scheduler_type": "constant",
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "seed": 3,
    }
    return Trainer(
        model,
        TrainingArguments(**{**arguments, **changes}),
        train_dataset=Images(),
        eval_dataset=Images(),
    )


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(tiny_vit, tmp_path) -> None:
    config = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
    torch.manual_seed(0)
    uninterrupted = ScratchViTForImageClassification(tiny_vit(**config))
    trainer(uninterrupted, tmp_path).train()
    torch.manual_seed(9)
    resumed = ScratchViTForImageClassification(tiny_vit(**config))
    first = resumed.vit.layers[0].attention.query.weight.detach().clone()
    trainer(resumed, tmp_path).train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert not torch.equal(first, resumed.vit.layers[0].attention.query.weight)
    for name, tensor in uninterrupted.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


@pytest.mark.parametrize("layout", ["hub", "in memory"])
def test_the_best_model_is_the_one_with_the_best_loss(
    layout: str, tiny_vit, vit_reference, tmp_path
) -> None:
    """A learning rate so large that training only does harm: the first checkpoint is best."""
    reference = vit_reference(tiny_vit(), "image-classification")
    if layout == "in memory":
        reference._weight_conversions = []  # saved, and saved by us again, under these names
    reference.save_pretrained(tmp_path / "start")
    model = ScratchViTForImageClassification.from_pretrained(tmp_path / "start")
    run = trainer(
        model,
        tmp_path / "run",
        save_steps=1,
        eval_steps=1,
        eval_strategy="steps",
        load_best_model_at_end=True,
        optim="sgd",
        learning_rate=100.0,
    )
    run.train()
    losses = [entry["eval_loss"] for entry in run.state.log_history if "eval_loss" in entry]
    best = 1 + losses.index(min(losses))
    assert run.state.best_model_checkpoint == str(tmp_path / "run" / f"checkpoint-{best}")
    assert best < 4
    stored = ViTForImageClassification.from_pretrained(run.state.best_model_checkpoint).eval()
    names = load_file(Path(run.state.best_model_checkpoint) / "model.safetensors")
    assert ("vit.layers.0.mlp.fc1.weight" in names) == (layout == "in memory")
    pixels = torch.stack([Images()[index]["pixel_values"] for index in range(4)])
    torch.testing.assert_close(model.eval()(pixels).logits, stored(pixels).logits)
    assert run.evaluate()["eval_loss"] == pytest.approx(min(losses))

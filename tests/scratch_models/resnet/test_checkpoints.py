"""Every form a ResNet checkpoint comes in loads fully, statistics too, and is saved as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from torch import Tensor
from transformers import (
    AutoModelForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTModel,
)

from scratch_models import (
    ScratchResNetForImageClassification,
    ScratchResNetModel,
    scratch_class,
)
from scratch_models.hub.mapping import rename
from scratch_models.parity import compare_saving

HEADS = ["model", "image-classification"]


def as_stored(form: str, model: ResNetForImageClassification, folder: Path) -> None:
    """Write the model in one of the forms found on the Hub."""
    folder.mkdir()
    model.config.save_pretrained(folder)
    state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    if form == "safetensors":
        model.save_pretrained(folder)
    elif form == "bin":
        torch.save(state, folder / "pytorch_model.bin")
    elif form == "sharded":
        model.save_pretrained(folder, max_shard_size="10KB")
    elif form == "body only":
        model.resnet.save_pretrained(folder)
    elif form == "half precision":
        model.config.dtype = torch.float16
        model.config.save_pretrained(folder)
        half = {k: t.half() if t.is_floating_point() else t for k, t in state.items()}
        save_file(half, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("form", ["safetensors", "bin", "sharded", "body only", "half precision"])
def test_every_form_loads_into_every_head_and_is_saved_like_huggingface_s(
    form: str, head: str, trained_resnet, tmp_path
) -> None:
    as_stored(form, trained_resnet, tmp_path / "in")
    own_class = scratch_class("resnet", head)
    loaded = []
    for model_class in (own_class, getattr(transformers, own_class.huggingface_class)):
        torch.manual_seed(1)
        model, info = model_class.from_pretrained(tmp_path / "in", output_loading_info=True)
        loaded.append((model.eval(), info))
    (scratch, info), (reference, reference_info) = loaded
    fresh = ["classifier.bias", "classifier.weight"] if form == "body only" else []
    assert sorted(info["missing_keys"]) == (fresh if head != "model" else [])
    assert info["unexpected_keys"] == reference_info["unexpected_keys"]
    assert all(row.passed for row in compare_saving(scratch, reference))
    pixels = torch.randn(2, 3, 33, 40, dtype=scratch.dtype)
    with torch.no_grad():
        torch.testing.assert_close(scratch(pixels)[0], reference(pixels)[0], atol=1e-5, rtol=0)


def test_what_we_save_is_read_by_huggingface_s_auto_class(trained_resnet, tmp_path) -> None:
    names = {0: "猫", 1: "狗", 2: "鸟"}
    trained_resnet.config.id2label = names
    trained_resnet.save_pretrained(tmp_path / "in")
    ScratchResNetForImageClassification.from_pretrained(tmp_path / "in").save_pretrained(
        tmp_path / "out"
    )
    saved = json.loads((tmp_path / "out/config.json").read_text(encoding="utf-8"))
    assert saved["architectures"] == ["ResNetForImageClassification"]
    again = AutoModelForImageClassification.from_pretrained(tmp_path / "out")
    assert type(again) is ResNetForImageClassification
    assert again.config.id2label == names
    expected = trained_resnet.state_dict()
    assert again.state_dict().keys() == expected.keys()
    assert all(torch.equal(t, expected[name]) for name, t in again.state_dict().items())


@pytest.mark.parametrize("head", HEADS)
def test_load_state_dict_takes_both_kinds_of_names(head: str, resnet_pair) -> None:
    scratch, reference = resnet_pair(head)
    fresh = type(scratch)(scratch.config)
    for state in (reference.state_dict(), scratch.state_dict()):
        result = fresh.load_state_dict(state)
        assert not result.missing_keys
        assert not result.unexpected_keys
        assert all(torch.equal(t, scratch.state_dict()[k]) for k, t in fresh.state_dict().items())
    state = reference.state_dict()
    del state[next(name for name in state if name.endswith("running_var"))]
    with pytest.raises(RuntimeError, match=r"stem\.norm\.running_var"):
        fresh.load_state_dict(state)


def test_another_architecture_is_refused(tmp_path) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16}
    ViTModel(ViTConfig(**sizes, intermediate_size=8)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"'vit'.*ScratchResNetModel reads 'resnet'"):
        ScratchResNetModel.from_pretrained(tmp_path)


def test_the_config_is_huggingface_s_own() -> None:
    assert ScratchResNetModel.config_class is ResNetConfig


def test_rows_of_a_name_table_hold_the_same_numbers_on_both_sides() -> None:
    with pytest.raises(ValueError, match=r"a\.\*\.b\.\* and c\.\* differ"):
        rename("a.*.b.*", "c.*")


def test_adapters_trained_on_huggingface_s_class_load_into_ours(trained_resnet, tmp_path) -> None:
    trained_resnet.save_pretrained(tmp_path / "base")
    lora = LoraConfig(r=2, target_modules=["convolution"], init_lora_weights=False)
    adapted = get_peft_model(trained_resnet, lora).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    base = ScratchResNetForImageClassification.from_pretrained(tmp_path / "base").eval()
    pixels = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        plain = base(pixels).logits
        ours = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
        torch.testing.assert_close(ours(pixels).logits, adapted(pixels).logits, atol=1e-5, rtol=0)
        assert not torch.allclose(ours(pixels).logits, plain, atol=1e-3)


class Pictures(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(index)
        pixels = torch.randn(3, 16, 16, generator=generator)
        return {"pixel_values": pixels, "labels": torch.tensor(index % 3)}


def test_transformers_trainer_resumes_with_the_statistics_it_had(
    tiny_resnet_config, tmp_path
) -> None:
    def train(resume: Path | None) -> dict[str, Tensor]:
        torch.manual_seed(0 if resume is None else 9)
        model = ScratchResNetForImageClassification(tiny_resnet_config())
        arguments = TrainingArguments(
            output_dir=str(tmp_path / "run"),
            max_steps=4,
            save_steps=2,
            per_device_train_batch_size=4,
            lr_scheduler_type="constant",
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            seed=3,
        )
        trainer = Trainer(model, arguments, train_dataset=Pictures())
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
        return model.state_dict()

    uninterrupted = train(None)
    assert uninterrupted["resnet.stem.norm.num_batches_tracked"] == 4
    resumed = train(tmp_path / "run" / "checkpoint-2")
    for name, tensor in uninterrupted.items():
        assert torch.equal(tensor, resumed[name]), name

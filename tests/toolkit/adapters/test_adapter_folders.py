"""What adapter folders hold, what they are refused for, and that plain peft reads ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from toolkit.adapters import LoraSettings, add_lora, load_adapter, save_adapter
from toolkit.errors import UserError

CLASSIFIER = "sequence-classification"


def settings_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))


def change_settings(folder: Path, **changes: Any) -> None:
    (folder / "adapter_config.json").write_text(json.dumps(settings_of(folder) | changes))


@pytest.fixture
def save_theirs(load, trained, outputs, tmp_path: Path):
    """Train an adapter on HuggingFace's class; gives its folder and what the model says."""

    def save(model_type: str, head: str, **settings: Any) -> tuple[Path, torch.Tensor]:
        model = get_peft_model(load(model_type, head, "hf"), LoraConfig(**settings))
        expected = outputs(trained(model))
        model.save_pretrained(tmp_path / "theirs")
        return tmp_path / "theirs", expected

    return save


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
def test_gpt2_s_c_attn_holds_the_updates_of_its_parts(
    dora: bool, load, trained, run, tokenizer
) -> None:
    settings = LoraSettings(rank=3, alpha=6.0, targets=["query", "value", "down"])
    model = trained(add_lora(load("gpt2", "causal-lm"), settings, [], dora=dora))
    save_adapter(run, model, tokenizer)
    saved = settings_of(run.directory / "adapter")
    assert (saved["r"], saved["lora_alpha"], saved["fan_in_fan_out"]) == (6, 12.0, True)
    assert saved["rank_pattern"] == {"mlp.c_proj": 3}
    assert saved["alpha_pattern"] == {"mlp.c_proj": 6.0}
    assert saved["target_modules"] == ["c_attn", "mlp.c_proj"]
    weights = load_file(run.directory / "adapter" / "adapter_model.safetensors")
    ours = model.get_base_model().transformer.layers[1].attention
    c_attn = "base_model.model.transformer.h.1.attn.c_attn"
    b, a = weights[f"{c_attn}.lora_B.weight"], weights[f"{c_attn}.lora_A.weight"]
    assert torch.equal(b[:16, :3] @ a[:3], ours.query.get_delta_weight("default") / 2)
    assert torch.equal(b[32:, 3:] @ a[3:], ours.value.get_delta_weight("default") / 2)
    assert b[16:32].count_nonzero() == b[:16, 3:].count_nonzero() == b[32:, :3].count_nonzero() == 0
    if dora:
        magnitude = weights[f"{c_attn}.lora_magnitude_vector"]
        torch.testing.assert_close(magnitude[16:32], ours.key.weight.square().sum(1).sqrt())


def test_one_name_a_layer_where_names_are_clear(load, trained, run, tokenizer) -> None:
    save_adapter(run, trained(add_lora(load("bert", "masked-lm"), LoraSettings(), [])), tokenizer)
    saved = settings_of(run.directory / "adapter")
    assert saved["target_modules"] == ["query", "value"]
    assert saved["auto_mapping"] == {
        "base_model_class": "BertForMaskedLM",
        "parent_library": "transformers.models.bert.modeling_bert",
    }


@pytest.mark.parametrize("targets", ["all-linear", r".*\.(attn\.c_\w+|mlp\.c_fc)"])
def test_layers_are_found_by_their_weights(targets: str, save_theirs, load, outputs) -> None:
    folder, expected = save_theirs(
        "gpt2", CLASSIFIER, target_modules=targets, task_type="SEQ_CLS", layers_to_transform=None
    )
    change_settings(folder, target_modules=targets)
    ours = load_adapter(load("gpt2", CLASSIFIER), folder)
    torch.testing.assert_close(outputs(ours), expected, atol=1e-5, rtol=0)


def test_some_layers_only(save_theirs, load, outputs) -> None:
    folder, expected = save_theirs(
        "bert", "masked-lm", target_modules=["query", "dense"], layers_to_transform=[1],
        exclude_modules=r".*intermediate\.dense",
    )  # fmt: skip
    ours = load_adapter(load("bert", "masked-lm"), folder)
    assert sum(name.endswith("lora_A") for name, _ in ours.named_modules()) == 3
    torch.testing.assert_close(outputs(ours), expected, atol=1e-5, rtol=0)


def test_names_of_older_versions(save_theirs, load, outputs) -> None:
    folder, expected = save_theirs("vit", "model", target_modules=["q_proj", "fc2"])
    file = folder / "adapter_model.safetensors"
    old = {"layers.": "encoder.layer.", "attention.q_proj": "attention.attention.query",
           "mlp.fc2": "output.dense"}  # fmt: skip
    weights = {}
    for key, weight in load_file(file).items():
        for new, hub in old.items():
            key = key.replace(new, hub)
        weights[key] = weight
    save_file(weights, file)
    change_settings(folder, target_modules=["query", "output.dense"])
    torch.testing.assert_close(
        outputs(load_adapter(load("vit", "model"), folder)), expected, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    ("model_type", "head", "module"),
    [
        ("gpt2", "causal-lm", "lm_head"),
        ("gpt2", CLASSIFIER, "score"),
        ("gpt2", "causal-lm", "wte"),
        ("bert", "masked-lm", "cls"),
        ("bert", CLASSIFIER, "pooler"),
        ("vit", "image-classification", "classifier"),
        ("marian", "seq2seq-lm", "final_layer_norm"),
    ],
)
def test_modules_trained_whole(
    model_type: str, head: str, module: str, save_theirs, load, outputs, run, tokenizer, tmp_path
) -> None:
    targets = {"gpt2": "c_attn", "bert": "query", "vit": "q_proj", "marian": "q_proj"}
    folder, expected = save_theirs(
        model_type, head, target_modules=[targets[model_type]], modules_to_save=[module]
    )
    ours = load_adapter(load(model_type, head), folder)
    torch.testing.assert_close(outputs(ours), expected, atol=1e-5, rtol=1e-5)
    save_adapter(run, ours, tokenizer)
    again = PeftModel.from_pretrained(load(model_type, head, "hf"), tmp_path / "adapter")
    torch.testing.assert_close(outputs(again), expected, atol=1e-5, rtol=1e-5)


def test_an_adapter_in_our_own_names(load, trained, outputs, tmp_path: Path, capsys) -> None:
    model = trained(add_lora(load("gpt2", CLASSIFIER), LoraSettings(), []))
    model.save_pretrained(tmp_path)  # peft's own
    again = load_adapter(load("gpt2", CLASSIFIER), tmp_path)
    torch.testing.assert_close(outputs(again), outputs(model))
    assert "an adapter in the layout of ScratchGPT2For" in capsys.readouterr().err


def test_an_adapter_goes_on_training_or_not(save_theirs, load) -> None:
    folder, _ = save_theirs("bert", "model", target_modules=["query"])
    ours = load_adapter(load("bert", "model"), folder)
    assert not any(p.requires_grad for p in ours.parameters())
    assert not ours.training
    ours = load_adapter(load("bert", "model"), folder, trainable=True)
    trained = {name for name, p in ours.named_parameters() if p.requires_grad}
    assert len(trained) == 4
    assert all("lora_" in name for name in trained)


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_another_base_is_told(
    implementation: str, save_theirs, load, folders, tmp_path: Path, capsys
) -> None:
    folder, _ = save_theirs("bert", "model", target_modules=["query"])
    model = load("bert", "model", implementation)
    load_adapter(model, folder)
    assert "warning" not in capsys.readouterr().err
    change_settings(folder, base_model_name_or_path="someone/bert", revision="a" * 40)
    model = load("bert", "model", implementation)
    model.config._commit_hash = "b" * 40
    load_adapter(model, folder)
    said = capsys.readouterr().err
    assert f"was trained on someone/bert, but the model is {folders('bert', 'model')}" in said
    assert f"revision {'a' * 40} of someone/bert, but the model is of revision {'b' * 40}" in said


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize(("model_type", "target"), [("bert", "query"), ("gpt2", "c_attn")])
def test_a_resized_vocabulary(
    model_type: str, target: str, implementation: str, load, trained, outputs, tmp_path: Path
) -> None:
    head = {"bert": "masked-lm", "gpt2": "causal-lm"}[model_type]
    model = load(model_type, head, "hf")
    model.resize_token_embeddings(70)
    model = get_peft_model(model, LoraConfig(target_modules=[target]))
    expected = outputs(trained(model))
    with pytest.warns(UserWarning, match="embedding"):
        model.save_pretrained(tmp_path)  # with the embedding, as that is not the base model's
    with pytest.raises(UserError, match=r"size of 70 x 16, the model has 61 x 16.*resize_token"):
        load_adapter(load(model_type, head, implementation), tmp_path)
    resized = load(model_type, head, implementation)
    resized.resize_token_embeddings(70)
    actual = outputs(load_adapter(resized, tmp_path))
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def test_refused(save_theirs, load, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no adapter can be read there"):
        load_adapter(load("bert", "model"), tmp_path / "nothing")
    folder, _ = save_theirs("bert", "model", target_modules=["query"])
    with pytest.raises(UserError, match=r"no counterpart of 2 layers of the adapter: encoder"):
        load_adapter(load("vit", "model"), folder)
    with pytest.raises(UserError, match=r"Is it an adapter of another model|not found"):
        load_adapter(load("vit", "model", "hf"), folder)
    change_settings(folder, init_lora_weights="pissa")
    with pytest.raises(UserError, match="'pissa' changed the weights under the adapter"):
        load_adapter(load("bert", "model"), folder)
    other = get_peft_model(
        load("bert", "model"), IA3Config(target_modules=["key"], feedforward_modules=[])
    )
    other.save_pretrained(tmp_path / "ia3")
    with pytest.raises(UserError, match="a IA3 adapter; expected LoRA or DoRA"):
        load_adapter(load("bert", "model"), tmp_path / "ia3")


def test_what_is_no_adapter_of_theirs_is_merged(
    load, trained, outputs, run, tokenizer, capsys
) -> None:
    model = get_peft_model(
        load("gpt2", "causal-lm"), LoraConfig(target_modules=["query"], modules_to_save=["down"])
    )
    expected = outputs(trained(model))
    save_adapter(run, model, tokenizer)
    assert not (run.directory / "adapter").exists()
    said = " ".join(capsys.readouterr().err.split())
    assert "merged/: the merged model, as no adapter for GPT2LMHeadModel does the same" in said
    merged = type(load("gpt2", "causal-lm", "hf")).from_pretrained(run.directory / "merged")
    torch.testing.assert_close(outputs(merged.eval()), expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(outputs(model), expected)  # still an adapter


PLAIN_PEFT = """
import sys
sys.modules["scratch_models"] = sys.modules["toolkit"] = None  # cannot be imported
import torch, transformers
from peft import PeftModel
ids = torch.load("ids")
for model_class, base, folder in zip(*[iter(sys.argv[1:])] * 3):
    base = getattr(transformers, model_class).from_pretrained(base)
    model = PeftModel.from_pretrained(base, folder + "/adapter").eval()
    with torch.no_grad():
        torch.save(model(ids).logits, folder + "/logits")
"""


@pytest.mark.slow
def test_plain_peft_reads_ours(load, folders, trained, run, tokenizer, tmp_path: Path) -> None:
    ids = torch.randint(2, 53, (2, 7))
    torch.save(ids, tmp_path / "ids")
    expected, arguments = {}, []
    for model_class in ("BertForSequenceClassification", "GPT2ForSequenceClassification"):
        model_type = model_class[:4].lower()
        settings = LoraSettings(targets=["query", "value", "output"])
        model = trained(add_lora(load(model_type, CLASSIFIER), settings, [], dora=True))
        with torch.no_grad():
            expected[model_type] = model(ids).logits
        run.directory = tmp_path / model_type
        save_adapter(run, model, tokenizer)
        arguments += [model_class, folders(model_type, CLASSIFIER), run.directory]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PLAIN_PEFT, *arguments]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    for model_type, logits in expected.items():
        actual = torch.load(tmp_path / model_type / "logits")
        torch.testing.assert_close(actual, logits, atol=1e-5, rtol=0)


def test_what_plain_peft_can_put_on_our_gpt2(
    load, trained, outputs, run, tokenizer, save_theirs
) -> None:
    settings = LoraSettings(targets=["output", "up", "down"])
    model = trained(add_lora(load("gpt2", CLASSIFIER), settings, []))
    save_adapter(run, model, tokenizer)
    again = PeftModel.from_pretrained(load("gpt2", CLASSIFIER), run.directory / "adapter")
    torch.testing.assert_close(outputs(again), outputs(model), atol=1e-5, rtol=0)
    folder, _ = save_theirs("gpt2", CLASSIFIER, target_modules=["c_attn"])
    with pytest.raises(ValueError, match="c_attn"):  # not passed over in silence
        PeftModel.from_pretrained(load("gpt2", CLASSIFIER), folder)

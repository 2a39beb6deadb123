"""Every form a BERT checkpoint comes in loads fully, and what is saved is HuggingFace's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    RobertaConfig,
    RobertaModel,
)

from scratch_models import (
    ScratchBertForMaskedLM,
    ScratchBertForPreTraining,
    ScratchBertForSequenceClassification,
    ScratchBertModel,
    scratch_class,
)
from scratch_models.parity import compare_saving

HEADS = {
    "model": BertModel,
    "pretraining": BertForPreTraining,
    "masked-lm": BertForMaskedLM,
    "sequence-classification": BertForSequenceClassification,
    "token-classification": transformers.BertForTokenClassification,
    "question-answering": transformers.BertForQuestionAnswering,
}


@pytest.fixture
def pretrained(tiny_config, tmp_path) -> tuple[BertForPreTraining, Path]:
    """A full pretraining checkpoint of HuggingFace's, in memory and in a folder."""
    model = BertForPreTraining(tiny_config()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    folder = tmp_path / "pretrained"
    model.save_pretrained(folder)
    return model, folder


def load_both(folder: Path, head: str, **kwargs):
    own = scratch_class("bert", head)
    reference = HEADS[head]
    torch.manual_seed(1)
    scratch, info = own.from_pretrained(folder, output_loading_info=True, **kwargs)
    torch.manual_seed(1)
    theirs, their_info = reference.from_pretrained(folder, output_loading_info=True, **kwargs)
    assert len(info["missing_keys"]) == len(their_info["missing_keys"])
    assert info["unexpected_keys"] == their_info["unexpected_keys"]
    return scratch.eval(), theirs.eval(), info


def assert_same_outputs(scratch, reference) -> None:
    ids = torch.randint(61, (2, 7))
    with torch.no_grad():
        ours, theirs = scratch(ids), reference(ids)
    for key, tensor in theirs.items():
        torch.testing.assert_close(ours[key], tensor, atol=1e-5, rtol=0)


def assert_same_saves(scratch, reference) -> None:
    rows = compare_saving(scratch, reference)
    assert all(row.passed for row in rows), rows


def old_names(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for key, tensor in state.items()
    }


def as_stored(form: str, state: dict[str, torch.Tensor], model, folder: Path) -> None:
    """Write the weights in one of the forms found on the Hub."""
    folder.mkdir()
    model.config.save_pretrained(folder)
    body_only = {k.removeprefix("bert."): v for k, v in state.items() if k.startswith("bert.")}
    if form == "safetensors":
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    elif form == "bin":
        torch.save(state, folder / "pytorch_model.bin")
    elif form == "sharded":
        model.save_pretrained(folder, max_shard_size="20KB")
    elif form == "old norm names":
        torch.save(old_names(state), folder / "pytorch_model.bin")
    elif form == "without prefix":
        save_file(body_only, folder / "model.safetensors", metadata={"format": "pt"})
    elif form == "without prefix, old norm names":
        torch.save(old_names(body_only), folder / "pytorch_model.bin")
    elif form == "half precision":
        model.config.dtype = torch.float16
        model.config.save_pretrained(folder)
        half = {key: tensor.half() for key, tensor in state.items()}
        save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    elif form == "with stored position ids":
        extra = {"bert.embeddings.position_ids": torch.arange(24)[None]}
        torch.save(state | extra, folder / "pytorch_model.bin")
    elif form == "with the tied weights":
        tied = {
            "cls.predictions.decoder.weight": state["bert.embeddings.word_embeddings.weight"],
            "cls.predictions.decoder.bias": state["cls.predictions.bias"],
        }
        torch.save(state | tied, folder / "pytorch_model.bin")


FORMS = [
    "safetensors",
    "bin",
    "sharded",
    "old norm names",
    "without prefix",
    "without prefix, old norm names",
    "half precision",
    "with stored position ids",
    "with the tied weights",
]


@pytest.mark.parametrize("head", ["model", "pretraining", "sequence-classification"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_loads_into_every_head_and_is_saved_like_huggingface_s(
    form: str, head: str, pretrained, tmp_path
) -> None:
    model, folder = pretrained
    state = load_file(folder / "model.safetensors")
    as_stored(form, state, model, tmp_path / "stored")
    scratch, reference, info = load_both(tmp_path / "stored", head)
    heads = ("cls", "masked_lm_head", "next_sentence_head", "classifier", "qa_outputs", "pooler")
    for key in info["missing_keys"]:
        assert key.startswith(heads), f"{key} of the body was left random"
    assert_same_saves(scratch, reference)
    if form != "half precision":
        assert_same_outputs(scratch, reference)


def test_the_dtype_of_the_file_is_kept_or_changed_on_request(pretrained, tmp_path) -> None:
    model, _ = pretrained
    as_stored("half precision", model.state_dict(), model, tmp_path / "half")
    kept = ScratchBertModel.from_pretrained(tmp_path / "half")
    single = ScratchBertModel.from_pretrained(tmp_path / "half", dtype=torch.float32)
    assert kept.dtype == torch.float16
    assert single.dtype == torch.float32
    single.save_pretrained(tmp_path / "out")
    assert json.loads((tmp_path / "out/config.json").read_text())["dtype"] == "float32"


def test_a_head_on_a_body_checkpoint_is_saved_in_huggingface_s_names_only(
    tiny_config, tmp_path
) -> None:
    """Renamings that loading had no use for must still be undone."""
    BertModel(tiny_config()).save_pretrained(tmp_path / "body")
    scratch = ScratchBertForPreTraining.from_pretrained(tmp_path / "body").eval()
    scratch.save_pretrained(tmp_path / "out")
    reference, info = BertForPreTraining.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert_same_outputs(scratch, reference.eval())


@pytest.mark.parametrize("tied", [True, False])
def test_untied_heads_keep_both_matrices(tied: bool, tiny_config, tmp_path) -> None:
    reference = BertForMaskedLM(tiny_config(tie_word_embeddings=tied)).eval()
    reference.save_pretrained(tmp_path / "in")
    scratch = ScratchBertForMaskedLM.from_pretrained(tmp_path / "in").eval()
    shared = scratch.masked_lm_head.decoder.weight is scratch.bert.embeddings.token.weight
    assert shared == tied
    assert_same_outputs(scratch, reference)
    assert_same_saves(scratch, BertForMaskedLM.from_pretrained(tmp_path / "in"))


def test_sharded_saves_load_in_huggingface(pretrained, tmp_path) -> None:
    _, folder = pretrained
    scratch = ScratchBertForPreTraining.from_pretrained(folder).eval()
    scratch.save_pretrained(tmp_path / "out", max_shard_size="20KB")
    assert len(list((tmp_path / "out").glob("*.safetensors"))) > 2
    assert_same_outputs(scratch, BertForPreTraining.from_pretrained(tmp_path / "out").eval())


def test_a_push_uploads_the_config_with_huggingface_s_class(
    tiny_config, tmp_path, monkeypatch
) -> None:
    pushed = []

    def push_to_hub(self, repo_id: str, **options) -> None:
        self.save_pretrained(tmp_path / "uploaded")  # what transformers does before uploading
        pushed.append((repo_id, options))

    monkeypatch.setattr(ScratchBertModel, "push_to_hub", push_to_hub)
    model = ScratchBertModel(tiny_config())
    model.save_pretrained(tmp_path / "mine", push_to_hub=True, repo_id="me/bert", private=True)
    model.save_pretrained(tmp_path / "mine", push_to_hub=True, token="t")
    assert pushed == [("me/bert", {"token": None, "private": True}), ("mine", {"token": "t"})]
    for folder in ("mine", "uploaded"):
        saved = json.loads((tmp_path / folder / "config.json").read_text())
        assert saved["architectures"] == ["BertModel"]


def test_the_checkpoint_of_another_architecture_is_refused(tiny_config, tmp_path) -> None:
    config = RobertaConfig(
        vocab_size=61, hidden_size=32, num_hidden_layers=1, num_attention_heads=4
    )
    RobertaModel(config).save_pretrained(tmp_path / "roberta")
    with pytest.raises(ValueError, match=r"'roberta'.*ScratchBertModel reads 'bert'"):
        ScratchBertModel.from_pretrained(tmp_path / "roberta")


def test_the_config_of_another_architecture_is_refused() -> None:
    with pytest.raises(ValueError, match="type 'bert', not 'roberta'"):
        ScratchBertModel(RobertaConfig())


def test_a_bert_in_a_folder_called_roberta_loads_fully(tiny_config, tmp_path) -> None:
    """Chinese "roberta-wwm" checkpoints are BERT inside: config.json decides, not the name."""
    BertForMaskedLM(tiny_config()).save_pretrained(tmp_path / "chinese-roberta-wwm-ext")
    scratch, reference, info = load_both(tmp_path / "chinese-roberta-wwm-ext", "masked-lm")
    assert not info["missing_keys"]
    assert_same_outputs(scratch, reference)


def test_a_config_without_model_type_is_given_the_benefit_of_the_doubt(pretrained) -> None:
    model, folder = pretrained
    config = json.loads((folder / "config.json").read_text())
    del config["model_type"]
    (folder / "config.json").write_text(json.dumps(config))
    assert_same_outputs(ScratchBertForPreTraining.from_pretrained(folder).eval(), model)


def test_a_file_with_the_decoder_s_name_for_the_tied_matrix_loads(tiny_config) -> None:
    reference = BertForMaskedLM(tiny_config()).eval()
    state = reference.state_dict()
    del state["bert.embeddings.word_embeddings.weight"]
    scratch = ScratchBertForMaskedLM(tiny_config()).eval()
    result = scratch.load_state_dict(state, strict=False)
    assert result.missing_keys == ["bert.embeddings.token.weight"]
    assert_same_outputs(scratch, reference)


@pytest.mark.parametrize("head", HEADS)
def test_load_state_dict_takes_huggingface_s_names(head: str, tiny_config) -> None:
    reference = HEADS[head](tiny_config())
    scratch = scratch_class("bert", head)(tiny_config())
    token = scratch.get_input_embeddings().weight
    result = scratch.load_state_dict(reference.state_dict())
    assert not result.missing_keys
    assert not result.unexpected_keys
    assert scratch.get_input_embeddings().weight is token  # an optimizer may already hold it
    assert_same_outputs(scratch.eval(), reference.eval())
    own = {key: tensor.clone() for key, tensor in scratch.state_dict().items()}
    assert not scratch.load_state_dict(own).missing_keys


def test_load_state_dict_still_refuses_what_does_not_fit(tiny_config) -> None:
    scratch = ScratchBertModel(tiny_config())
    state = BertModel(tiny_config()).state_dict()
    state["encoder.layer.0.surprise"] = torch.zeros(1)
    with pytest.raises(RuntimeError, match="surprise"):
        scratch.load_state_dict(state)
    state = BertModel(tiny_config()).state_dict()
    del state["encoder.layer.1.attention.self.key.bias"]
    with pytest.raises(RuntimeError, match=r"layers\.1\.attention\.key\.bias"):
        scratch.load_state_dict(state)


PLAIN_TRANSFORMERS = """
import sys
sys.modules["scratch_models"] = None  # importing it is an error from here on
import torch
from transformers import AutoModelForSequenceClassification, pipeline
from transformers.utils import logging
logging.set_verbosity_error()
folder, ids, out = sys.argv[1:]
model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
with torch.no_grad():
    logits = model(torch.load(ids)).logits
answer = pipeline("text-classification", model=folder)("好 a")[0]["label"]
torch.save({"logits": logits, "class": type(model).__name__, "answer": answer}, out)
"""


@pytest.mark.slow
def test_plain_transformers_serves_what_we_saved(tiny_config, tmp_path) -> None:
    from transformers import BertTokenizer

    names = {0: "负面", 1: "正面"}
    config = tiny_config(id2label=names, label2id={v: k for k, v in names.items()})
    scratch = ScratchBertForSequenceClassification(config).eval()
    folder = tmp_path / "model"
    scratch.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "好", "a"]
    BertTokenizer(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    ids = torch.randint(61, (3, 8))
    torch.save(ids, tmp_path / "ids.pt")
    command = [
        sys.executable,
        "-c",
        PLAIN_TRANSFORMERS,
        folder,
        tmp_path / "ids.pt",
        tmp_path / "o",
    ]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    result = torch.load(tmp_path / "o")
    assert result["class"] == "BertForSequenceClassification"
    torch.testing.assert_close(result["logits"], scratch(ids).logits, atol=1e-5, rtol=0)
    with torch.no_grad():
        label = int(scratch(torch.tensor([[2, 5, 6, 3]])).logits.argmax())
    assert result["answer"] == names[label]


def test_saving_again_over_a_sharded_save_leaves_no_stale_weights(tiny_config, tmp_path) -> None:
    scratch = ScratchBertModel(tiny_config()).eval()
    scratch.save_pretrained(tmp_path, max_shard_size="20KB")
    scratch.save_pretrained(tmp_path)
    shutil.copytree(tmp_path, tmp_path / "copy", ignore=shutil.ignore_patterns("copy"))
    assert_same_outputs(scratch, BertModel.from_pretrained(tmp_path / "copy").eval())


def test_bert_config_is_huggingface_s_own() -> None:
    assert ScratchBertModel.config_class is BertConfig

"""Every form a GPT-2 checkpoint comes in loads fully, and what is saved is HuggingFace's own."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GPT2ForSequenceClassification, GPT2LMHeadModel, GPT2Model

from scratch_models import ScratchGPT2LMHeadModel, ScratchGPT2Model, scratch_class
from scratch_models.parity import compare_saving

HEADS = ["model", "causal-lm", "sequence-classification", "token-classification"]
HEAD_ONLY = "head without token embedding"


@pytest.fixture
def pretrained(gpt2_pair) -> GPT2LMHeadModel:
    return gpt2_pair()[1]


def buffers_of_old(prefix: str) -> dict[str, Tensor]:
    """The causal masks that old checkpoints hold."""
    mask = torch.ones(1, 1, 32, 32).tril().bool()
    masks = {f"{prefix}h.{i}.attn.bias": mask.clone() for i in range(2)}
    return masks | {f"{prefix}h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)}


def as_stored(form: str, model: GPT2LMHeadModel, folder: Path) -> None:
    """Write the weights in one of the forms found on the Hub."""
    folder.mkdir()
    model.config.save_pretrained(folder)
    state = {k: v.clone() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    body = {k.removeprefix("transformer."): v for k, v in state.items()}
    tied = {"lm_head.weight": state["transformer.wte.weight"].clone()}
    only_head = {k: v for k, v in (state | tied).items() if k != "transformer.wte.weight"}
    if form == "sharded":
        model.save_pretrained(folder, max_shard_size="20KB")
    elif form == "bin with old masks":
        torch.save(state | tied | buffers_of_old("transformer."), folder / "pytorch_model.bin")
    else:
        weights = {
            "with prefix, without head": state,
            "with prefix and head": state | tied,
            HEAD_ONLY: only_head,
            "without prefix": body,
            "as on the Hub": body | buffers_of_old(""),
        }[form]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


FORMS = [
    "with prefix, without head",
    "with prefix and head",
    HEAD_ONLY,
    "without prefix",
    "as on the Hub",
    "bin with old masks",
    "sharded",
]


def load_both(folder: Path, head: str, **options):
    own = scratch_class("gpt2", head)
    loaded = []
    for model_class in (own, getattr(transformers, str(own.huggingface_class))):
        torch.manual_seed(1)
        loaded.append(model_class.from_pretrained(folder, output_loading_info=True, **options))
    (scratch, info), (reference, their_info) = loaded
    assert len(info["missing_keys"]) == len(their_info["missing_keys"])
    return scratch.eval(), reference.eval(), info


def assert_same_saves(scratch, reference) -> None:
    rows = compare_saving(scratch, reference)
    assert all(row.passed for row in rows), rows


FORMS_AND_HEADS = [(form, "causal-lm") for form in FORMS]
FORMS_AND_HEADS += [(form, "sequence-classification") for form in FORMS if form != HEAD_ONLY]


@pytest.mark.parametrize(("form", "head"), FORMS_AND_HEADS)
def test_every_form_loads_and_is_saved_like_huggingface_s(
    form: str, head: str, pretrained, tmp_path
) -> None:
    as_stored(form, pretrained, tmp_path / "stored")
    scratch, reference, info = load_both(tmp_path / "stored", head)
    assert info["missing_keys"] <= {"score.weight"}
    assert info["unexpected_keys"] <= {"lm_head.weight"}
    assert_same_saves(scratch, reference)
    ids = torch.randint(3, 61, (2, 7))
    ours, theirs = scratch(ids).logits, reference(ids).logits
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    if head == "causal-lm":
        assert scratch.lm_head.weight is scratch.transformer.token.weight
        torch.testing.assert_close(ours, pretrained(ids).logits, atol=1e-5, rtol=1e-5)


def test_old_masks_are_passed_over_in_silence(pretrained, tmp_path, caplog) -> None:
    as_stored("as on the Hub", pretrained, tmp_path / "stored")
    log = logging.getLogger("transformers")
    level, log.propagate = log.level, True
    try:
        log.setLevel(logging.WARNING)
        _, info = ScratchGPT2LMHeadModel.from_pretrained(
            tmp_path / "stored", output_loading_info=True
        )
    finally:
        log.setLevel(level)
        log.propagate = False
    assert not info["unexpected_keys"]
    assert not caplog.records


@pytest.mark.parametrize("head", HEADS)
def test_fresh_models_and_plain_state_dicts(head: str, gpt2_pair, tmp_path) -> None:
    scratch, reference = gpt2_pair(head)
    assert_same_saves(scratch, reference)
    scratch.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    again, info = type(reference).from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    expected = reference.state_dict()
    assert again.state_dict().keys() == expected.keys()
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == [type(reference).__name__]


@pytest.mark.parametrize("head", HEADS[1:])
def test_a_head_on_a_body_checkpoint(head: str, gpt2_pair, tmp_path) -> None:
    body = gpt2_pair("model")[0]
    body.save_pretrained(tmp_path / "body")
    scratch, reference, info = load_both(tmp_path / "body", head, num_labels=3)
    assert all(key.startswith(("score", "classifier")) for key in info["missing_keys"])
    assert_same_saves(scratch, reference)


def test_a_body_from_a_head_checkpoint(pretrained, tmp_path) -> None:
    pretrained.save_pretrained(tmp_path)
    scratch, reference, info = load_both(tmp_path, "model")
    assert not info["missing_keys"]
    assert_same_saves(scratch, reference)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_kept(dtype: torch.dtype, pretrained, tmp_path) -> None:
    pretrained.to(dtype).save_pretrained(tmp_path)
    scratch, reference, _ = load_both(tmp_path, "causal-lm")
    assert scratch.dtype == dtype
    assert_same_saves(scratch, reference)


@pytest.mark.parametrize("tied", [True, False])
def test_untied_heads_keep_both_matrices(tied: bool, gpt2_pair, tmp_path) -> None:
    scratch, reference = gpt2_pair(tie_word_embeddings=tied)
    assert (scratch.lm_head.weight is scratch.transformer.token.weight) == tied
    assert_same_saves(scratch, reference)
    reference.save_pretrained(tmp_path)
    again, _, _ = load_both(tmp_path, "causal-lm")
    assert torch.equal(again.lm_head.weight, reference.lm_head.weight)
    assert torch.equal(again.transformer.token.weight, reference.transformer.wte.weight)


@pytest.mark.parametrize("size", [50, 80])
def test_resizing_keeps_the_tie(size: int, gpt2_pair, tmp_path) -> None:
    scratch, reference = gpt2_pair()
    kept = min(61, size)
    for model in (scratch, reference):
        model.resize_token_embeddings(size, mean_resizing=False)
    assert scratch.lm_head.weight is scratch.transformer.token.weight
    assert scratch.config.vocab_size == scratch.lm_head.out_features == size
    ids = torch.randint(kept, (2, 6))
    ours, theirs = scratch(ids).logits, reference(ids).logits
    assert ours.shape == (2, 6, size)
    torch.testing.assert_close(ours[..., :kept], theirs[..., :kept], atol=1e-5, rtol=1e-5)
    scratch.save_pretrained(tmp_path)
    again = ScratchGPT2LMHeadModel.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(again(ids).logits, ours)


def test_weights_of_both_classes_in_one_another(gpt2_pair) -> None:
    """`load_state_dict` takes HuggingFace's names and ours, for bodies and heads."""
    scratch, reference = gpt2_pair("model")
    other = ScratchGPT2Model(scratch.config)
    result = other.load_state_dict(GPT2Model.state_dict(reference))
    assert not result.missing_keys
    assert not result.unexpected_keys
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, scratch.state_dict()[name]), name
    fused = reference.h[1].attn.c_attn
    parts = (other.layers[1].attention.query, other.layers[1].attention.key)
    for number, part in enumerate(parts):
        columns = slice(number * 32, number * 32 + 32)
        assert torch.equal(part.weight, fused.weight[:, columns].T)
        assert torch.equal(part.bias, fused.bias[columns])


def test_labels_reach_huggingface(tiny_gpt2, tmp_path) -> None:
    names = {0: "负面", 1: "正面", 2: "中性"}
    config = tiny_gpt2(id2label=names, label2id={name: i for i, name in names.items()})
    scratch_class("gpt2", "sequence-classification")(config).save_pretrained(tmp_path)
    assert GPT2ForSequenceClassification.from_pretrained(tmp_path).config.id2label == names
    assert load_file(tmp_path / "model.safetensors")["score.weight"].shape == (3, 32)

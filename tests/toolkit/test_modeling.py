"""Loading: which weights may be new, and which stop the run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import scratch_models
from toolkit.errors import UserError
from toolkit.modeling import (
    BertShape,
    count_parameters,
    load_pretrained,
    load_tokenizer,
    new_bert,
)
from toolkit.training.freezing import freeze_lowest

HEAD = "sequence-classification"
WriteBert = Callable[..., Path]


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize(
    ("saved_as", "new"),
    [
        ("BertForPreTraining", ["classifier"]),
        ("BertModel", ["classifier"]),
        ("BertForMaskedLM", ["classifier", "pooler"]),  # never had a pooler
        ("BertForSequenceClassification", []),
        ("BertForTokenClassification", ["pooler"]),  # its classifier has the same name and size
    ],
)
def test_the_task_head_alone_may_be_new(
    write_tiny_bert: WriteBert,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    saved_as: str,
    new: list[str],
    implementation: str,
) -> None:
    folder = write_tiny_bert(tmp_path / "bert", head=saved_as)
    loaded = load_pretrained(str(folder), HEAD, implementation=implementation)  # type: ignore[arg-type]
    assert loaded.new_modules == new
    expected = getattr(transformers, saved_as).from_pretrained(folder)
    body = expected if saved_as == "BertModel" else expected.bert
    ours = loaded.model.bert.embeddings.state_dict().values()
    theirs = body.embeddings.state_dict().values()
    assert sorted(float(v.double().sum()) for v in ours) == sorted(
        float(v.double().sum()) for v in theirs
    )
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(str(folder))]
    assert [line for line in said if "new, to be trained" in line] == (
        [f"{folder}: new, to be trained: {', '.join(new)}"] if new else []
    )
    assert len(said) <= 2


SIZES = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 24}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "saved_as", "changes", "new"),
    [
        ("DistilBert", "ForMaskedLM", {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
         ["classifier", "pre_classifier"]),
        ("Electra", "ForPreTraining", {"embedding_size": 16}, ["classifier"]),
        ("Albert", "ForPreTraining", {"embedding_size": 8}, ["classifier"]),
        ("DebertaV2", "ForMaskedLM", {}, ["classifier", "pooler"]),
        ("XLNet", "LMHeadModel", {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24},
         ["logits_proj", "sequence_summary"]),
        ("Qwen2", "ForCausalLM", {"num_key_value_heads": 2}, ["score"]),
    ],
)  # fmt: skip
def test_huggingfaces_other_heads_may_be_new_too(
    tmp_path: Path, model: str, saved_as: str, changes: dict[str, int], new: list[str]
) -> None:
    sizes = SIZES if not {"dim", "d_model"} & set(changes) else {"vocab_size": 40}
    config = getattr(transformers, f"{model}Config")(**sizes, **changes)
    folder = tmp_path / model
    getattr(transformers, f"{model}{saved_as}")(config).save_pretrained(folder)
    loaded = load_pretrained(str(folder), HEAD, implementation="hf", label_names=["a", "b", "c"])
    assert loaded.new_modules == new
    weights = load_file(folder / "model.safetensors")
    del weights[next(name for name in weights if ".0." in name and name.endswith("weight"))]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="1 weights of the model are not in it"):
        load_pretrained(str(folder), HEAD, implementation="hf")


def test_labels_replace_those_of_the_checkpoint(write_tiny_bert: WriteBert, tmp_path: Path) -> None:
    """Two labels there, three here: a classifier of the right size, named after the data."""
    folder = write_tiny_bert(tmp_path / "bert", head="BertForSequenceClassification")
    names = ["中", "差", "好"]
    for implementation in ("scratch", "hf"):
        model, new = load_pretrained(
            str(folder), HEAD, implementation=implementation, label_names=names
        )  # type: ignore[misc]
        assert new == ["classifier"]
        assert model.config.id2label == {0: "中", 1: "差", 2: "好"}
        assert model.config.label2id == {"中": 0, "差": 1, "好": 2}
        batch = {"input_ids": torch.tensor([[5, 6]]), "attention_mask": torch.ones(1, 2).long()}
        assert model(**batch).logits.shape == (1, 3)


def test_a_folder_in_half_precision_is_trained_in_float32(
    write_tiny_bert: WriteBert, tmp_path: Path
) -> None:
    folder = write_tiny_bert(tmp_path / "bert")
    weights = {
        name: value.half() for name, value in load_file(folder / "model.safetensors").items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"dtype": "float16"}))
    for implementation in ("scratch", "hf"):
        model = load_pretrained(str(folder), HEAD, implementation=implementation).model  # type: ignore[arg-type]
        assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_old_checkpoints_load_whole(write_tiny_bert: WriteBert, tmp_path: Path) -> None:
    """gamma and beta instead of weight and bias, and a buffer of position numbers."""
    folder = write_tiny_bert(tmp_path / "bert")
    weights = load_file(folder / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in weights.items()
    }
    old["bert.embeddings.position_ids"] = torch.arange(32)[None]
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})
    for implementation in ("scratch", "hf"):
        loaded = load_pretrained(str(folder), HEAD, implementation=implementation)  # type: ignore[arg-type]
        assert loaded.new_modules == ["classifier"]


def test_unknown_heads_and_missing_folders(write_tiny_bert: WriteBert, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such model folder"):
        load_pretrained(str(tmp_path / "none" / "bert"), HEAD)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"no usable config\.json"):
        load_pretrained(str(tmp_path / "broken"), HEAD)
    with pytest.raises(UserError, match="has no tokenizer"):
        load_tokenizer(str(tmp_path / "broken"))


def test_a_new_bert_has_the_shape_asked_for(write_tiny_bert: WriteBert, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(write_tiny_bert(tmp_path / "bert")))
    shape = BertShape(layers=2, hidden_size=24, heads=4, dropout=0.25, initializer_range=0.1)
    ours, theirs = (
        new_bert(shape, tokenizer, HEAD, implementation, ["a", "b"])  # type: ignore[arg-type]
        for implementation in ("scratch", "hf")
    )
    assert isinstance(theirs, transformers.BertForSequenceClassification)
    assert count_parameters(ours) == count_parameters(theirs)
    config = ours.config
    assert (config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (2, 24, 96)
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.25
    assert config.vocab_size == len(tokenizer)
    assert config.id2label == {0: "a", 1: "b"}
    for model in (ours, theirs):
        weights = torch.cat([p.flatten() for p in model.parameters() if p.ndim > 1])
        assert float(weights.std()) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_the_lowest_layers_freeze_with_the_embeddings(implementation: str) -> None:
    config = transformers.BertConfig(
        vocab_size=11, hidden_size=4, num_hidden_layers=3, num_attention_heads=1,
        intermediate_size=4, max_position_embeddings=6,
    )  # fmt: skip
    name = f"{'Scratch' if implementation == 'scratch' else ''}BertForSequenceClassification"
    package = scratch_models if implementation == "scratch" else transformers
    embeddings = 11 * 4 + 6 * 4 + 2 * 4 + 4 + 4
    layer = 4 * (4 * 4 + 4) + 2 * (4 * 4 + 4) + 2 * (4 + 4)
    for layers in (0, 2):
        model = getattr(package, name)(config)
        total = sum(p.numel() for p in model.parameters())
        freeze_lowest(model, layers)
        trained = total - embeddings - layers * layer
        counts = {"parameters_total": total, "parameters_trained": trained}
        assert count_parameters(model) == counts
    with pytest.raises(UserError, match="4: the model has 3 layers"):
        freeze_lowest(model, 4)
    with pytest.raises(UserError, match="no embeddings and layers"):
        freeze_lowest(torch.nn.Linear(2, 2), 1)


def test_shared_weights_count_once() -> None:
    config = transformers.BertConfig(
        vocab_size=11, hidden_size=4, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=4,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config)
    unique = {p.data_ptr(): p.numel() for p in model.parameters()}
    assert count_parameters(model)["parameters_total"] == sum(unique.values())


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize("labels", [1, 2, 3])
def test_answers_have_a_start_and_an_end_whatever_the_checkpoint_has_labels(
    write_tiny_bert: WriteBert, tmp_path: Path, implementation: Any, labels: int
) -> None:
    folder = write_tiny_bert(
        tmp_path / "bert", "BertForTokenClassification", id2label=dict(enumerate("abc"[:labels]))
    )
    loaded = load_pretrained(str(folder), "question-answering", implementation=implementation)
    assert loaded.new_modules == ["qa_outputs"]
    scores = loaded.model(torch.tensor([[2, 5, 6, 3]]))
    assert scores.start_logits.shape == scores.end_logits.shape == (1, 4)
    assert loaded.model.config.num_labels == 2


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize("model_type", ["marian", "t5"])
def test_an_encoder_decoder_has_no_features_of_texts(
    tmp_path: Path, model_type: str, implementation: Any
) -> None:
    """Its hidden states are those of the decoder, which reads another text."""
    folder = tmp_path / "model"
    transformers.AutoConfig.for_model(model_type).save_pretrained(folder)
    with pytest.raises(UserError, match=f"{model_type} is an encoder with a decoder.*--method"):
        load_pretrained(str(folder), "model", implementation=implementation)


@pytest.fixture
def lstm(write_tiny_bert: WriteBert, tmp_path: Path) -> Path:
    folder = tmp_path / "lstm"
    tokenizer = load_tokenizer(str(write_tiny_bert(tmp_path / "bert")))
    config = scratch_models.ScratchLSTMConfig(
        vocab_size=len(tokenizer), embedding_size=4, hidden_size=4
    )
    scratch_models.ScratchLSTMForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_an_architecture_that_only_we_have_is_loaded_without_warnings(lstm: Path) -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("transformers").addHandler(handler)
    try:
        tokenizer = load_tokenizer(str(lstm))
        model = load_pretrained(str(lstm), HEAD, tokenizer=tokenizer).model
    finally:
        logging.getLogger("transformers").removeHandler(handler)
    assert said == []
    assert type(model).__name__ == "ScratchLSTMForSequenceClassification"
    expected = transformers.AutoTokenizer.from_pretrained(lstm)
    assert type(tokenizer) is type(expected)
    assert tokenizer("今天好")["input_ids"] == expected("今天好")["input_ids"]


def test_advice_that_could_not_work_is_not_given(lstm: Path, tmp_path: Path) -> None:
    for implementation in ("scratch", "hf"):
        with pytest.raises(UserError, match=r"it has sequence-classification\. Choose another"):
            load_pretrained(str(lstm), "model", implementation=implementation)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="Use --implementation scratch"):
        load_pretrained(str(lstm), HEAD, implementation="hf")
    marian = tmp_path / "marian"
    transformers.MarianConfig().save_pretrained(marian)
    with pytest.raises(UserError, match=r"it has model, seq2seq-lm\.$"):
        load_pretrained(str(marian), HEAD)
    with pytest.raises(UserError, match="HuggingFace has no 'marian' model for 'sequence-"):
        load_pretrained(str(marian), HEAD, implementation="hf")
    transformers.T5Config().save_pretrained(marian)
    with pytest.raises(UserError, match="Use --implementation hf for it"):
        load_pretrained(str(marian), HEAD)

"""What is written for others: HuggingFace's own format, label names, nothing of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, pipeline

from toolkit.errors import UserError
from toolkit.sharing.shareable import write_shareable

NAMES = ["负面", "中性", "正面"]


def test_a_run_is_loaded_by_plain_transformers(bert_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(bert_run, tmp_path / "shared")
    assert (shared.library, shared.pipeline_tag) == ("transformers", "text-classification")
    assert (shared.base_model, shared.remote_code) == (None, False)
    model, info = AutoModelForSequenceClassification.from_pretrained(
        shared.folder, output_loading_info=True
    )
    assert type(model).__name__ == "BertForSequenceClassification"
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, tensor in load_file(bert_run / "model" / "model.safetensors").items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_label_names_arrive_in_utf8_and_in_predictions(bert_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(bert_run, tmp_path / "shared")
    written = (shared.folder / "config.json").read_text(encoding="utf-8")
    assert '"0": "负面"' in written
    config = AutoConfig.from_pretrained(shared.folder)
    assert config.id2label == {0: "负面", 1: "中性", 2: "正面"}
    assert config.label2id == {"负面": 0, "中性": 1, "正面": 2}
    classify = pipeline("text-classification", model=str(shared.folder))
    texts = ["今天房间好棒", "差"]
    batch = classify.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        best = classify.model(**batch).logits.argmax(-1)
    assert [each["label"] for each in classify(texts)] == [NAMES[i] for i in best]


def test_names_of_the_run_replace_those_of_the_config(
    bert_run: Path, copy_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    run = copy_of(bert_run)
    edit(run / "model" / "config.json", id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})
    shared = write_shareable(run, tmp_path / "shared")
    assert list(AutoConfig.from_pretrained(shared.folder).id2label.values()) == NAMES


def test_nothing_of_the_machine_or_the_training_goes_along(
    bert_run: Path, copy_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    run = copy_of(bert_run)
    edit(
        run / "model" / "config.json", _name_or_path=str(run),
        architectures=["ScratchBertForSequenceClassification"],
    )  # fmt: skip
    edit(run / "model" / "tokenizer_config.json", name_or_path=str(run), is_local=True)
    for name in ("optimizer.pt", "training_args.bin", "trainer_state.json", "README.md"):
        (run / "model" / name).write_text("left over", "utf-8")
    shared = write_shareable(run, tmp_path / "shared")
    names = {file.name for file in shared.folder.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    for file in shared.folder.glob("*.json"):
        assert str(tmp_path) not in file.read_text(encoding="utf-8")
        assert "is_local" not in file.read_text(encoding="utf-8")
    config = json.loads((shared.folder / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForSequenceClassification"]


def edit(file: Path, **changes: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(content | changes, ensure_ascii=False), encoding="utf-8")


def test_a_model_folder_is_taken_without_a_run(bert_run: Path, tmp_path: Path) -> None:
    plain = write_shareable(bert_run, tmp_path / "plain").folder
    again = write_shareable(plain, tmp_path / "again")
    assert again.pipeline_tag == "text-classification"
    assert {f.name: f.read_bytes() for f in plain.iterdir()} == {
        f.name: f.read_bytes() for f in again.folder.iterdir()
    }


def test_the_folder_model_of_a_run_is_its_run(bert_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(bert_run / "model", tmp_path / "shared")
    assert list(AutoConfig.from_pretrained(shared.folder).id2label.values()) == NAMES


def test_an_adapter_on_a_local_base_is_merged(
    lora_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = write_shareable(lora_run, tmp_path / "shared")
    assert "is not on the Hub: the model is shared merged" in capsys.readouterr().err
    assert (shared.library, shared.base_model) == ("transformers", None)
    with pytest.raises(UserError, match="which is not on the Hub, so nobody else could load it"):
        write_shareable(lora_run, tmp_path / "adapter", merged=False)


def test_an_adapter_on_a_base_of_the_hub_names_it(
    lora_run: Path, copy_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    run = copy_of(lora_run)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    edit(run / "summary.json", model=summary["model"] | {"name": "owner/tiny-bert"})
    shared = write_shareable(run, tmp_path / "shared")
    assert (shared.library, shared.base_model) == ("peft", "owner/tiny-bert")
    settings = json.loads((shared.folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["base_model_name_or_path"] == "owner/tiny-bert"
    assert AutoConfig.from_pretrained(shared.folder).id2label == dict(enumerate(NAMES))
    assert not (shared.folder / "model.safetensors").exists()
    assert '"owner/tiny-bert", config=config' in shared.usage
    assert write_shareable(run, tmp_path / "merged", merged=True).library == "transformers"


def test_tfidf_brings_its_label_names(
    write_run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_tfidf(write_run, tmp_path / "run")
    shared = write_shareable(run, tmp_path / "shared")
    assert (shared.library, shared.pipeline_tag) == ("sklearn", "text-classification")
    assert json.loads((shared.folder / "labels.json").read_text("utf-8")) == ["负面", "正面"]
    capsys.readouterr()
    exec(shared.usage_of(str(shared.folder)), {})
    expected = joblib.load(run / "model" / "tfidf.joblib").predict_proba(["房间很干净，服务也好。"])
    assert capsys.readouterr().out == f"{['负面', '正面']} {expected}\n"


def write_tfidf(write_run: Callable[..., Path], folder: Path) -> Path:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    names = ["负面", "正面"]
    run = write_run(folder, "text-classification", "TF-IDF", "classic", names)
    (run / "model").mkdir()
    model = make_pipeline(TfidfVectorizer(analyzer="char"), LogisticRegression())
    model.fit(["好棒", "佳妙", "坏差", "烂糟"], [1, 1, 0, 0])
    joblib.dump(model, run / "model" / "tfidf.joblib")
    return run


def test_the_papers_layout_becomes_marian(
    write_run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolkit.data.joint_bpe import train_joint_bpe
    from toolkit.translation_models import TransformerShape, new_transformer

    run = write_run(tmp_path / "run", "translation", "Transformer", source=["3 plus 4"])
    tokenizer = train_joint_bpe(["3 plus 4", "3加4", "5 plus 6", "5加6"], 280)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        shape = TransformerShape(2, 1, 8, 12, 2, dropout=0)
        paper: Any = new_transformer(shape, tokenizer, "scratch", 40).eval()
    paper.save_pretrained(run / "model")
    tokenizer.save_pretrained(run / "model")
    shared = write_shareable(run, tmp_path / "shared")
    assert "the paper's layout is shared as the Marian model" in capsys.readouterr().err
    assert (shared.pipeline_tag, shared.remote_code) == ("translation", False)

    from transformers import AutoModelForSeq2SeqLM

    theirs, info = AutoModelForSeq2SeqLM.from_pretrained(shared.folder, output_loading_info=True)
    assert type(theirs).__name__ == "MarianMTModel"
    assert not info["missing_keys"]
    reader = AutoTokenizer.from_pretrained(shared.folder)
    batch = reader(["3 plus 4", "5 plus"], padding=True, return_tensors="pt")
    assert (
        batch["input_ids"].tolist()
        == (tokenizer(["3 plus 4", "5 plus"], padding=True)["input_ids"])
    )
    begun = torch.tensor([[0, 5, 9], [0, 7, 2]])
    ours, theirs = paper.double().eval(), theirs.double().eval()
    with torch.no_grad():
        difference = ours(**batch, decoder_input_ids=begun).logits - (
            theirs(**batch, decoder_input_ids=begun).logits
        )
        made = [m.generate(**batch, num_beams=2, max_new_tokens=9) for m in (ours, theirs)]
    # Both keep their positions in float32.
    assert difference.abs().max() < 1e-6
    assert torch.equal(*made)


def test_tied_weights_are_saved_once_and_still_tied(tiny_checkpoint: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, GPT2Config

    from scratch_models import ScratchGPT2LMHeadModel

    config = GPT2Config(vocab_size=30, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    own = ScratchGPT2LMHeadModel(config).eval()
    own.save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(tiny_checkpoint).save_pretrained(tmp_path / "model")
    shared = write_shareable(tmp_path / "model", tmp_path / "shared")
    assert shared.pipeline_tag == "text-generation"
    names = load_file(shared.folder / "model.safetensors").keys()
    assert ("transformer.wte.weight" in names) + ("lm_head.weight" in names) == 1
    theirs, info = AutoModelForCausalLM.from_pretrained(shared.folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert theirs.lm_head.weight is theirs.transformer.wte.weight
    ids = torch.tensor([[1, 5, 9, 2]])
    with torch.no_grad():
        assert (own(ids).logits - theirs.eval()(ids).logits).abs().max() < 1e-6


def test_what_cannot_be_shared_says_why(
    bert_run: Path, copy_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    def refused(run: Path, message: str) -> None:
        with pytest.raises(UserError, match=message):
            write_shareable(run, tmp_path / "shared")
        assert not (tmp_path / "shared").exists()

    refused(tmp_path / "nothing", "nothing does not exist; expected a run directory")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "neither a run directory .* nor a model folder")
    run = copy_of(bert_run)
    weights = run / "model" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    refused(run, "model.safetensors is damaged")
    weights.unlink()
    refused(run, r"no weights \(model.safetensors\)")
    weights.write_bytes(whole)
    (run / "model").rename(run / "elsewhere")
    refused(run, "the run has no folder model: its model was deleted")
    (run / "summary.json").unlink()
    refused(run, "this run did not finish .* --resume")


def test_a_folder_that_holds_something_is_not_written_to(bert_run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", "utf-8")
    with pytest.raises(UserError, match="is not empty"):
        write_shareable(bert_run, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_damaged_classifier_is_found(
    frozen_run: Path, copy_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    run = copy_of(frozen_run)
    file = run / "model" / "classifier.safetensors"
    save_file({"weight": torch.zeros(2, 16), "bias": torch.zeros(2)}, file)
    with pytest.raises(UserError, match="which labels"):
        write_shareable(run, tmp_path / "shared")

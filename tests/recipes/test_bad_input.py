"""A mistake in the input: one line that says what, where and what to do; status 2; nothing left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

Recipe = Callable[..., Any]
QUICK = ("--train.max-steps", "1", "--train.batch-size", "4")


@pytest.fixture
def refused(run_recipe: Recipe, tmp_path: Path) -> Callable[..., str]:
    """Run bert_sentiment with a mistake; returns its message."""

    def run(*argv: object) -> str:
        finished = run_recipe("bert_sentiment", *argv)
        assert finished.status == 2, finished.err
        assert not (tmp_path / "results").exists()
        message: str = finished.error
        return message

    return run


def csv(tmp_path: Path, *lines: str, name: str = "bad.csv") -> Path:
    file = tmp_path / name
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return file


# Data


def test_missing_file(refused: Callable[..., str], tiny_bert: Path) -> None:
    message = refused("--dataset", "no/such/reviews.csv", "--model", tiny_bert)
    assert "reviews.csv" in message


def test_unknown_column(refused: Callable[..., str], tiny_bert: Path, reviews: Path) -> None:
    message = refused("--dataset", reviews, "--model", tiny_bert, "--label-column", "stars")
    assert "stars" in message
    assert "label" in message
    assert str(reviews) in message


@pytest.mark.parametrize("lines", [(), ("text,label",)], ids=["nothing", "header only"])
def test_empty_file(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, lines: tuple[str, ...]
) -> None:
    file = csv(tmp_path, *lines)
    assert str(file) in refused("--dataset", file, "--model", tiny_bert)


def test_one_class_only(refused: Callable[..., str], tmp_path: Path, tiny_bert: Path) -> None:
    file = csv(tmp_path, "text,label", *(f"好{i},正面" for i in range(30)))
    message = refused("--dataset", file, "--model", tiny_bert)
    assert str(file) in message
    assert "正面" in message
    assert "1 class" in message


def test_unknown_label_in_the_test_file(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    test_file = csv(tmp_path, "text,label", "很好的酒店,正面", "一般般的东西,中性", name="test.csv")
    message = refused("--dataset", reviews, "--test-file", test_file, "--model", tiny_bert)
    assert "test.csv" in message
    assert "中性" in message
    assert "line 3" in message


def test_more_rows_asked_for_than_there_are(
    refused: Callable[..., str], tiny_bert: Path, reviews: Path
) -> None:
    assert "5,000" in refused("--dataset", reviews, "--train-size", "5000", "--model", tiny_bert)


# Models


def test_folder_without_tokenizer(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    folder = tmp_path / "untokenised"
    shutil.copytree(tiny_bert, folder)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    message = refused("--dataset", reviews, "--model", folder)
    assert "tokenizer" in message
    assert str(folder) in message


def test_folder_without_weights_or_with_half_of_them(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    folder = tmp_path / "half"
    shutil.copytree(tiny_bert, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert str(folder) in refused("--dataset", reviews, "--model", folder)
    weights.unlink()
    assert str(folder) in refused("--dataset", reviews, "--model", folder)


def test_another_architecture(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    import transformers

    folder = tmp_path / "distilbert"
    config = transformers.DistilBertConfig(vocab_size=37, dim=8, n_layers=1, n_heads=2)
    transformers.DistilBertModel(config).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(tiny_bert / name, folder)
    message = refused("--dataset", reviews, "--model", folder)
    assert "distilbert" in message
    assert "--implementation hf" in message


def test_bert_config_over_another_architectures_weights(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    """Every weight would be random: transformers itself would go on."""
    folder = tmp_path / "mixed"
    shutil.copytree(tiny_bert, folder)
    weights = load_file(folder / "model.safetensors")
    other = {f"transformer.{name}.x": value for name, value in weights.items()}
    save_file(other, folder / "model.safetensors", metadata={"format": "pt"})
    for implementation in ("scratch", "hf"):
        message = refused(
            "--dataset", reviews, "--model", folder, "--implementation", implementation
        )
        assert "weights of the model are not in it" in message
        assert "have no place in the model" in message


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_a_missing_encoder_weight_stops_unless_allowed(
    refused: Callable[..., str],
    run_recipe: Recipe,
    tmp_path: Path,
    tiny_bert: Path,
    reviews: Path,
    implementation: str,
) -> None:
    folder = tmp_path / "holed"
    shutil.copytree(tiny_bert, folder)
    weights = load_file(folder / "model.safetensors")
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    arguments = ("--dataset", reviews, "--model", folder, "--implementation", implementation)
    message = refused(*arguments)
    assert str(folder) in message
    assert "1 weights of the model are not in it" in message
    assert "layer" in message
    assert "--allow-missing-weights" in message
    allowed = run_recipe("bert_sentiment", *arguments, "--allow-missing-weights", *QUICK)
    assert allowed.status == 0, allowed.err
    assert "warning" in allowed.err


def test_left_over_encoder_weights_stop_the_run(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    """Three layers of weights for a config of two."""
    folder = tmp_path / "deeper"
    shutil.copytree(tiny_bert, folder)
    weights = load_file(folder / "model.safetensors")
    extra = {
        name.replace("layer.1.", "layer.2."): value.clone()
        for name, value in weights.items()
        if "layer.1." in name
    }
    save_file(weights | extra, folder / "model.safetensors", metadata={"format": "pt"})
    message = refused("--dataset", reviews, "--model", folder)
    assert "16 of its weights have no place in the model" in message


def test_weights_of_another_size(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    folder = tmp_path / "wider"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config["intermediate_size"] = 48
    (folder / "config.json").write_text(json.dumps(config))
    message = refused("--dataset", reviews, "--model", folder)
    assert "weights of the model are not in it" in message
    assert "24" in message
    assert "48" in message


def test_a_tokenizer_of_another_model(
    refused: Callable[..., str], tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    folder = tmp_path / "foreign"
    shutil.copytree(tiny_bert, folder)
    with (folder / "vocab.txt").open("a", encoding="utf-8") as stream:
        stream.write("".join(f"w{i}\n" for i in range(100)))
    assert "137 tokens" in refused("--dataset", reviews, "--model", folder)


def test_a_chinese_roberta_is_bert_inside_and_loads_whole(
    run_recipe: Recipe, tmp_path: Path, write_tiny_bert: Callable[..., Path], reviews: Path
) -> None:
    folder = write_tiny_bert(tmp_path / "chinese-roberta-wwm-ext", head="BertForMaskedLM")
    finished = run_recipe("bert_sentiment", "--dataset", reviews, "--model", folder, *QUICK)
    assert finished.status == 0, finished.err
    new = [line for line in finished.err.splitlines() if "new, to be trained" in line]
    assert len(new) == 1
    # a masked language model never had a pooler
    assert new[0].split("trained: ")[1].split(". ")[0].rstrip(".") == "classifier, pooler"


def test_longer_positions_are_not_asked_of_a_model_that_has_32(
    run_recipe: Recipe, tmp_path: Path, tiny_bert: Path
) -> None:
    """The tokenizer knows no limit; one text has 300 characters."""
    folder = tmp_path / "short"
    shutil.copytree(tiny_bert, folder)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    rows = [
        f"{'好坏'[i % 2] * 3}{'酒店'[i % 2]}{'书' * (i % 9)}{'本' * (i // 9)},{i % 2}"
        for i in range(40)
    ]
    file = csv(tmp_path, "text,label", *rows, "好" * 300 + ",0", "坏" * 299 + ",1")
    finished = run_recipe("bert_sentiment", "--dataset", file, "--model", folder, *QUICK)
    assert finished.status == 0, finished.err
    assert "texts cut to 32 tokens" in finished.err


# Settings that only the recipe can judge


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--freeze-layers", "99"), "--freeze_layers 99: the model has"),
        (("--method", "lora", "--lora.targets", '["q_proj"]'), "no such linear layers"),
        (("--method", "lora", "--lora.rank", "0"), "--lora.rank 0: expected at least 1"),
        (("--method", "from_scratch", "--shape.heads", "5"), "does not divide"),
        (("--method", "from_scratch", "--shape.heads", "0"), "--shape.heads 0"),
        (("--train.mixed-precision", "fp16"), "fp16 needs a GPU"),
        (("--max-length", "2"), "no room for text"),
        (("--train.epoch", "2"), "Did you mean '--train.epochs'?"),
        (("--preset", "none"), "it has: "),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_settings(
    refused: Callable[..., str],
    tiny_bert: Path,
    reviews: Path,
    options: tuple[str, ...],
    expected: str,
) -> None:
    assert expected in refused("--dataset", reviews, "--model", tiny_bert, *options)


def test_partly_unknown_lora_targets_are_named(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path
) -> None:
    targets = ("--method", "lora", "--lora.targets", '["query", "FAKE"]')
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", tiny_bert, *targets, *QUICK
    )
    assert finished.status == 0, finished.err
    assert "no layer is called FAKE" in finished.err


def test_an_existing_run_is_not_written_over(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    arguments = ("--dataset", reviews, "--model", tiny_bert, "--run-id", "mine", *QUICK)
    assert run_recipe("bert_sentiment", *arguments).status == 0
    folder = tmp_path / "results" / "runs" / "bert_sentiment" / "mine"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = run_recipe("bert_sentiment", *arguments)
    assert again.status == 2
    assert "exists already" in again.error
    complete = run_recipe("bert_sentiment", "--resume", folder)
    assert complete.status == 2
    assert "this run is complete" in complete.error
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_an_output_folder_that_cannot_be_made(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    finished = run_recipe(
        "bert_sentiment",
        "--dataset",
        reviews,
        "--model",
        tiny_bert,
        "--output-dir",
        "taken",
        *QUICK,
    )
    assert finished.status == 2
    assert "cannot make the run directory" in finished.error

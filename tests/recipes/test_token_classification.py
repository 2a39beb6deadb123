"""Token classification, end to end on sentences that can be learned."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
import tokenizers
import transformers
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

Recipe = Callable[..., Any]
PLACES, PEOPLE, OTHER = "京沪津渝苏杭", "张王李赵钱孙", "今天去了又从来的很好看吃饭"
SMALL = (
    "--method", "from_scratch", "--shape.layers", "1", "--shape.hidden-size", "32",
    "--shape.heads", "2", "--shape.dropout", "0", "--train.batch-size", "16",
    "--train.learning-rate", "0.01", "--train.log-every", "20",
)  # fmt: skip


def sentence(generator: random.Random) -> tuple[list[str], list[str]]:
    """Two characters of a kind are a name; longer sentences than a window takes are among them."""
    tokens, tags = [], []
    for _ in range(generator.randint(1, 6)):
        tokens += generator.choices(OTHER, k=generator.randint(1, 4))
        tags += ["O"] * (len(tokens) - len(tags))
        kind, letters = generator.choice([("PLACE", PLACES), ("PERSON", PEOPLE)])
        tokens += generator.choices(letters, k=2)
        tags += [f"B-{kind}", f"I-{kind}"]
    return [*tokens, "。"], [*tags, "O"]


@pytest.fixture
def entities(tmp_path: Path) -> Path:
    generator = random.Random(0)
    rows = [sentence(generator) for _ in range(400)]
    file = tmp_path / "entities.conll"
    file.write_text(
        "".join(
            "".join(f"{token}\t{tag}\n" for token, tag in zip(*row, strict=True)) + "\n"
            for row in rows
        ),
        encoding="utf-8",
    )
    return file


def test_entities_are_found_in_windows_and_plain_transformers_finds_them_too(
    run_recipe: Recipe, use_run: Callable[..., str], entities: Path, tmp_path: Path
) -> None:
    finished = run_recipe(
        "token_classification", "--dataset", entities, "--run-id", "a", "--max-length", "16",
        "--overlap", "6", "--train.epochs", "6", *SMALL,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    assert "sentences read in overlapping windows of 16 tokens" in finished.err
    run = tmp_path / "results/runs/token_classification/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["task"] == "token-classification"
    assert summary["data"]["label_names"] == ["O", "B-PERSON", "I-PERSON", "B-PLACE", "I-PLACE"]
    test = summary["test"]
    assert test["entity_f1"]["value"] > 0.97
    low, high = test["entity_f1"]["interval"]
    assert low <= test["entity_f1"]["value"] <= high
    assert test["seen"]["gold"] + test["unseen"]["gold"] == test["gold"]

    table = pandas.read_parquet(run / "predictions/test.parquet")
    gold, predicted = ([list(tags) for tags in table[name]] for name in ("gold", "predicted"))
    assert [len(tags) for tags in predicted] == [len(tokens) for tokens in table["tokens"]]
    assert test["entity_f1"]["value"] == pytest.approx(f1_score(gold, predicted))

    model, info = AutoModelForTokenClassification.from_pretrained(
        run / "model", output_loading_info=True
    )
    assert type(model).__name__ == "BertForTokenClassification"
    assert not info["missing_keys"] | info["unexpected_keys"]
    find = pipeline(
        "token-classification", model=model, aggregation_strategy="simple",
        tokenizer=AutoTokenizer.from_pretrained(run / "model"),
    )  # fmt: skip
    found = find("从张王去了京沪。")
    assert [(e["entity_group"], e["word"].replace(" ", "")) for e in found] == [
        ("PERSON", "张王"), ("PLACE", "京沪"),
    ]  # fmt: skip
    assert [(e["start"], e["end"]) for e in found] == [(1, 3), (5, 7)]

    readme = (run / "README.md").read_text(encoding="utf-8")
    total = f"{test['precision']:.4f} | {test['recall']:.4f} | {test['entity_f1']['value']:.4f}"
    assert f"| all | {test['gold']:,} | {total} | {low:.4f}-{high:.4f} |" in readme
    assert f"`{test['entity_f1']['signature']}`" in readme
    assert (run / "plots/training.svg").stat().st_size > 0
    short = table[table["tokens"].map(len) <= 14][:5]
    assert len(short) == 5
    for tokens, tags in zip(short["tokens"], short["predicted"], strict=True):
        change = ("她打算六月一日去上海旅行，带了一些美元。", "".join(tokens))
        assert printed_entities(use_run(run, change)) == [
            (kind, "".join(tokens[first : last + 1]))
            for kind, first, last in get_entities(list(tags))
        ]


def printed_entities(output: str) -> list[tuple[str, ...]]:
    """Type and text of what the README's code prints: type, text, score."""
    return [tuple(line.rsplit(" ", 1)[0].split(" ", 1)) for line in output.splitlines()]


def test_words_of_several_pieces_are_found_by_the_code_in_the_readme(
    run_recipe: Recipe, use_run: Callable[..., str], tmp_path: Path
) -> None:
    generator = random.Random(0)
    lines = []
    for _ in range(200):
        place = "".join(generator.choices("aeiou", k=generator.randint(3, 7))).title()
        person = "".join(generator.choices("bdgkt", k=generator.randint(3, 7))).title()
        for token in f"{person} {person[::-1]} went to {place} .".split():
            kind = {person: "B-PERSON", person[::-1]: "I-PERSON", place: "B-PLACE"}.get(token, "O")
            lines.append(f"{token} {kind}\n")
        lines.append("\n")
    (tmp_path / "words.conll").write_text("".join(lines))
    finished = run_recipe(
        "token_classification", "--dataset", tmp_path / "words.conll", "--run-id", "a",
        "--train.epochs", "3", "--overlap", "8", "--shape.vocabulary", "60", *SMALL,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/token_classification/a"
    assert "Tokens are words." in (run / "README.md").read_text(encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    table = pandas.read_parquet(run / "predictions/test.parquet").iloc[:5]
    found = []
    for tokens, tags in zip(table["tokens"], table["predicted"], strict=True):
        assert len(tokenizer.tokenize(" ".join(tokens))) > len(tokens)
        change = ("Angela Merkel was born in Hamburg .", " ".join(tokens))
        expected = [
            (kind, " ".join(tokens[first : last + 1]))
            for kind, first, last in get_entities(list(tags))
        ]
        assert printed_entities(use_run(run, change)) == expected
        found += expected
    assert {kind for kind, _ in found} == {"PERSON", "PLACE"}


@pytest.mark.parametrize("method", ["full", "lora", "frozen"])
@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_pretrained_models_take_every_method(
    run_recipe: Recipe, entities: Path, exact_bert: Path, tmp_path: Path, method: str,
    implementation: str,
) -> None:  # fmt: skip
    finished = run_recipe(
        "token_classification", "--dataset", entities, "--run-id", "a", "--model", exact_bert,
        "--method", method, "--implementation", implementation, "--max-length", "32", "--overlap",
        "8", "--train.max-steps", "6", "--train.learning-rate", "0.02", "--train.log-every", "1",
        "--train_size", "64", "--validation_size", "16", "--test_size", "16",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/token_classification/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    model = summary["model"]
    assert (model["parameters_trained"] < model["parameters_total"]) == (method != "full")
    if method == "frozen":
        assert model["parameters_trained"] == 16 * 5 + 5
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < losses[0]
    loaded = AutoModelForTokenClassification.from_pretrained(run / "model")
    assert loaded.config.id2label[4] == "I-PLACE"


def test_nothing_is_lost_where_tokens_show_nothing(
    run_recipe: Recipe, entities: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.conll"
    odd.write_text("王 B-PERSON\n\u200b O\n京 B-PLACE\n😀😀 O\n\ufffd O\n\n", encoding="utf-8")
    finished = run_recipe(
        "token_classification", "--dataset", entities, "--test_file", odd, "--run-id", "a",
        "--train.max-steps", "2", "--overlap", "8", *SMALL,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/token_classification/a"
    table = pandas.read_parquet(run / "predictions/test.parquet")
    assert list(table["tokens"][0]) == ["王", "\u200b", "京", "😀😀", "\ufffd"]
    assert len(table["predicted"][0]) == 5


def test_a_dry_run_of_the_demo(run_recipe: Recipe, tmp_path: Path) -> None:
    finished = run_recipe("token_classification", "--preset", "demo", "--dry-run")
    assert finished.status == 0, finished.err
    assert "6,000" in finished.out
    assert not (tmp_path / "results").exists()


def test_tags_that_are_none_are_refused(run_recipe: Recipe, tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    file.write_text("京 LOC\n", encoding="utf-8")
    finished = run_recipe("token_classification", "--dataset", file, *SMALL)
    assert finished.status == 2
    assert f"{file}, line 1: 'LOC' is no tag" in finished.error
    assert not (tmp_path / "results").exists()


def test_a_sentencepiece_models_readme_gives_the_runs_own_tags(
    run_recipe: Recipe, use_run: Callable[..., str], entities: Path, tmp_path: Path
) -> None:
    letters = sorted({*PLACES, *PEOPLE, *OTHER})
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "。", "▁。", *letters]
    core = tokenizers.Tokenizer(
        tokenizers.models.Unigram([(piece, -len(piece) / 10) for piece in pieces], unk_id=3)
    )
    core.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    core.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        unk_token="<unk>", cls_token="<s>", sep_token="</s>",
    )  # fmt: skip
    assert tokenizer.tokenize("京") == ["▁", "京"]
    folder = tmp_path / "model"
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64, pad_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    finished = run_recipe(
        "token_classification", "--dataset", entities, "--run-id", "a", "--model", folder,
        "--train.epochs", "2", "--train.batch-size", "16", "--train.learning-rate", "0.01",
        "--overlap", "6",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/token_classification/a"
    table = pandas.read_parquet(run / "predictions/test.parquet").iloc[:6]
    assert len({tag for tags in table["predicted"] for tag in tags}) > 2
    for tokens, tags in zip(table["tokens"], table["predicted"], strict=True):
        change = ("她打算六月一日去上海旅行，带了一些美元。", "".join(tokens))
        printed = [line.split(" ") for line in use_run(run, change).splitlines()]
        assert printed == [[token, tag] for token, tag in zip(tokens, tags, strict=True)]

"""A GPT-2 learns a small language whose entropy is known, and stops where its texts stop."""

from __future__ import annotations

import ast
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

Recipe = Callable[..., Any]
LETTERS = "abcdefgh"
WORDS = 3
# Of a document's tokens these are free: two first letters (that of the first word is not scored)
# and three digits. All else follows.
ENTROPY = (WORDS - 1) * math.log(len(LETTERS)) + WORDS * math.log(3)
SMALL = (
    "--block-size", "64", "--train.batch-size", "8", "--train.log-every", "20",
)  # fmt: skip
NEW = (
    "--method", "from_scratch", "--shape.layers", "2", "--shape.hidden-size", "64",
    "--shape.heads", "4", "--shape.dropout", "0", "--shape.vocabulary", "258",
)  # fmt: skip


def word(generator: random.Random) -> str:
    """A letter, a step, and the letters that follow by this step, round the alphabet."""
    first, step = generator.randrange(len(LETTERS)), generator.randrange(3)
    return f"{LETTERS[first]}{step}{following(first, step)}"


def following(first: int, step: int) -> str:
    return "".join(LETTERS[(first + (step + 1) * i) % len(LETTERS)] for i in range(1, 5))


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = random.Random(0)
    texts = {" ".join(word(generator) for _ in range(WORDS)) + "." for _ in range(420)}
    file = tmp_path_factory.mktemp("language") / "texts.txt"
    file.write_text("\n".join(sorted(texts)) + "\n", encoding="utf-8")
    return file


def read(run: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return summary, events


def test_it_learns_the_language_stops_and_is_what_others_fine_tune(
    run_recipe: Recipe, use_run: Callable[..., str], language: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "results/runs/gpt2_generation"
    finished = run_recipe(
        "gpt2_generation", "--dataset", language, "--run-id", "a", *SMALL, *NEW,
        "--train.max-steps", "170", "--train.evaluate-every", "85",
        "--train.learning-rate", "0.008",
        "--samples.prompts", '["c1", "a0"]', "--samples.temperature", "0",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    summary, events = read(runs / "a")
    test = pandas.read_parquet(runs / "a/predictions/test.parquet")

    # Near the entropy of the language, and not below it: nothing is seen before its time. Counting
    # does not reach half of that.
    assert ENTROPY - 0.3 < test["nll"].mean() < ENTROPY + 1.8
    yardsticks = summary["yardsticks"]["test"]
    for name in ("unigram", "bigram", "interpolated bigram"):
        nats = math.log(yardsticks[name]["value"]) * test["tokens"].mean()
        assert nats > 2 * ENTROPY
    perplexity = math.exp(test["nll"].sum() / test["tokens"].sum())
    assert summary["test"]["perplexity"]["value"] == pytest.approx(perplexity)
    assert summary["test"]["perplexity"]["terms"] == test["tokens"].sum()
    assert summary["test"]["word_perplexity"]["signature"].startswith("word_perplexity|per:word|")
    assert (test["bytes"] == test["text"].str.len() - 1).all()
    validation = [event["validation"]["loss"] for event in events if "validation" in event]
    best = math.log(summary["validation"]["perplexity"]["value"])
    assert best == pytest.approx(min(validation), rel=1e-5)

    # What follows from the prompt is right, then the text goes on and ends.
    samples = [event["samples"] for event in events if "samples" in event]
    assert len(samples) == len(validation)
    for sample, first, step in zip(samples[-1], (2, 0), (1, 0), strict=True):
        assert sample["text"].startswith(following(first, step) + " ")
        assert sample["text"].endswith(".")
        assert sample["ended"]
        assert f"{sample['prompt']}▸{sample['text']} ■" in finished.err

    # Plain transformers loads it, and writes the same.
    model, info = AutoModelForCausalLM.from_pretrained(runs / "a/model", output_loading_info=True)
    assert type(model).__name__ == "GPT2LMHeadModel"
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert (model.generation_config.eos_token_id, model.generation_config.pad_token_id) == (0, 0)
    tokenizer = AutoTokenizer.from_pretrained(runs / "a/model")
    write = pipeline("text-generation", model=model, tokenizer=tokenizer)
    for sample in samples[-1]:
        written = write(sample["prompt"], do_sample=False, max_new_tokens=60)[0]["generated_text"]
        assert written == sample["prompt"] + sample["text"]

    readme = (runs / "a/README.md").read_text(encoding="utf-8")
    assert (
        f"| perplexity per token | {summary['validation']['perplexity']['value']:.2f} (" in readme
    )
    prompt = ('"…", do_sample=True', '"c1", do_sample=False')
    printed = ast.literal_eval(use_run(runs / "a", prompt))
    assert printed[0]["generated_text"] == "c1" + samples[-1][0]["text"]

    # Fine-tuned further it starts from where it was, in every implementation.
    for name, *options in (
        ("full", "--method", "full", "--implementation", "hf"),
        ("lora", "--method", "lora", "--implementation", "scratch"),
        ("dora", "--method", "dora", "--implementation", "hf"),
    ):
        tuned = run_recipe(
            "gpt2_generation", "--dataset", language, "--run-id", name, "--model", runs / "a/model",
            *SMALL, "--train.max-steps", "2", *options,
        )  # fmt: skip
        assert tuned.status == 0, tuned.err
        before = read(runs / name)[0]["yardsticks"]["test"]["before training"]
        assert before["value"] == pytest.approx(perplexity, rel=1e-4)
        reloaded = AutoModelForCausalLM.from_pretrained(runs / name / "model")
        changed = [
            key
            for key, value in reloaded.state_dict().items()
            if not torch.equal(value, model.state_dict()[key])
        ]
        assert changed
        if name != "full":
            assert all("attn.c_attn.weight" in key for key in changed)
            adapter = json.loads((runs / name / "adapter/adapter_config.json").read_text())
            assert adapter["use_dora"] == (name == "dora")

    # As it is: the same model, scored again, nothing trained.
    plain = run_recipe(
        "gpt2_generation", "--dataset", language, "--run-id", "frozen", "--model", runs / "a/model",
        *SMALL, "--method", "frozen",
    )  # fmt: skip
    assert plain.status == 0, plain.err
    frozen, events = read(runs / "frozen")
    for split in ("validation", "test"):
        value = summary[split]["perplexity"]["value"]
        assert frozen[split]["perplexity"]["value"] == pytest.approx(value, rel=1e-5)
    assert frozen["model"]["parameters_trained"] == 0
    training = frozen["training"]
    assert (training["steps"], training["epochs"], training["seconds"]) == (0, 0, 0)
    assert [event["step"] for event in events] == [0]
    kept = AutoModelForCausalLM.from_pretrained(runs / "frozen/model").state_dict()
    assert all(value.equal(model.state_dict()[key]) for key, value in kept.items())
    assert "as it is: not trained" in (runs / "frozen/README.md").read_text(encoding="utf-8")


def test_mistakes_are_said_before_anything_is_written(
    run_recipe: Recipe, language: Path, tmp_path: Path
) -> None:
    for message, *options in (
        ("--stride 64: expected a number from 1 to 63", "--stride", "64"),
        ("--samples.top_p 2", "--samples.top_p", "2"),
        ("--shape.heads 3 does not divide", "--shape.heads", "3"),
        ("--block_size 1: expected", "--block-size", "1"),
        ("(--documents file), too few", "--documents", "file"),
    ):
        finished = run_recipe("gpt2_generation", "--dataset", language, *SMALL, *NEW, *options)
        assert finished.status == 2
        assert message in finished.error.replace("\n", " ")
    assert not (tmp_path / "results").exists()
    dry = run_recipe("gpt2_generation", "--dataset", language, *SMALL, *NEW, "--dry-run")
    assert dry.status == 0, dry.err
    assert "per epoch" in dry.out
    assert not (tmp_path / "results").exists()
    assert np.isfinite(float(dry.out.split("loss before training")[1].split()[1]))

"""Any texts and pairs with any model: what is learned, what is saved, what is refused."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
import transformers
from safetensors.torch import load_file
from sklearn.metrics import f1_score

Recipe = Callable[..., Any]
NAME = "text_classification"
TINY = (
    "--method", "from_scratch", "--shape.layers", "2", "--shape.hidden-size", "32",
    "--shape.heads", "2", "--shape.dropout", "0", "--shape.initializer-range", "0.3",
)  # fmt: skip


def write(file: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return file


def run_of(tmp_path: Path, run_id: str = "a") -> tuple[Path, dict[str, Any], pandas.DataFrame]:
    run = tmp_path / "results/runs" / NAME / run_id
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return run, summary, pandas.read_parquet(run / "predictions/test.parquet")


def follow_readme(run: Path) -> dict[str, Any]:
    """Run the code of a run's README in its folder; returns its names."""
    readme = (run / "README.md").read_text(encoding="utf-8")
    assert "pairs of" in readme
    assert "我想把钱退回来。" in readme  # a second text
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(run)
        exec(readme.split("```python\n")[1].split("```")[0], names)
    return names


# Pairs

COLOURS = ("red", "blue", "green", "white")
THINGS = ("car", "house", "shirt", "bird", "door", "cup", "hat", "boat", "lamp", "dog")


def same_or_different(rows: int, seed: int) -> list[tuple[str, str, str]]:
    """Two phrases with a colour each. Every phrase stands in one pair of either label."""
    generator = random.Random(seed)
    size = len(COLOURS)

    def phrases() -> list[str]:
        found: dict[str, None] = {}  # no phrase twice
        while len(found) < rows // 2:
            things = generator.choices(THINGS, k=3)
            found[f"{COLOURS[len(found) % size]} {' '.join(things)}"] = None
        return list(found)

    first, second = phrases(), phrases()
    found = [(*pair, "same") for pair in zip(first, second, strict=True)]
    for start in range(0, len(first), size):  # every colour once: exchange them, none stays
        order = list(range(size))
        while any(place == colour for place, colour in enumerate(order)):
            generator.shuffle(order)
        found += [(first[start + i], second[start + order[i]], "different") for i in range(size)]
    return found


def best_by_one_text(rows: Sequence[Sequence[str]], side: int) -> float:
    """Accuracy of the best possible answer to one of the texts, by trying all."""
    of_text: dict[str, Counter[str]] = {}
    for row in rows:
        of_text.setdefault(row[side], Counter())[row[2]] += 1
    return sum(max(counts.values()) for counts in of_text.values()) / len(rows)


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Three files of pairs, each half same and half different."""
    folder = tmp_path / "colours"
    folder.mkdir()
    for seed, (name, size) in enumerate({"train": 1600, "validation": 160, "test": 320}.items()):
        rows = same_or_different(size, seed)
        assert [best_by_one_text(rows, side) for side in (0, 1)] == [0.5, 0.5]
        write(folder / f"{name}.csv", ("first", "second", "label"), rows)
    return folder


def test_what_only_both_texts_together_tell_is_learned_and_saved(
    run_recipe: Recipe, tmp_path: Path, colours: Path
) -> None:
    finished = run_recipe(
        NAME, "--dataset", colours, "--text-column", "first", "--pair-column", "second",
        "--run-id", "a", *TINY, "--train.epochs", "5", "--train.learning-rate", "0.003",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run, summary, table = run_of(tmp_path)
    assert summary["test"]["accuracy"]["value"] > 0.9
    assert summary["data"]["pairs"] is True
    assert list(table.columns)[:3] == ["id", "text", "pair"]
    rows = same_or_different(320, 2)
    assert list(zip(table["text"], table["pair"], strict=True)) == [row[:2] for row in rows]

    names = follow_readme(run)
    inputs = [{"text": row[0], "text_pair": row[1]} for row in rows]
    answers = [answer["label"] for answer in names["classify"](inputs)]
    labels = summary["data"]["label_names"]
    assert answers == [labels[i] for i in table["prediction"]]


@pytest.mark.parametrize("method", ["full", "lora", "dora", "frozen"])
@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_every_method_saves_what_answers_pairs_as_it_did(
    run_recipe: Recipe, tmp_path: Path, exact_bert: Path, method: str, implementation: str
) -> None:
    rows = [("好酒店" + "书" * (i % 5), "坏电脑"[: 1 + i % 3] + "东" * (i % 7), i % 2)
            for i in range(70)]  # fmt: skip
    file = write(tmp_path / "pairs.csv", ("text", "other", "label"), rows)
    finished = run_recipe(
        NAME, "--dataset", file, "--pair-column", "other", "--model", exact_bert, "--run-id", "a",
        "--method", method, "--implementation", implementation, "--train.epochs", "1",
        "--train.learning-rate", "0.01", "--lora.dropout", "0",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run, _, table = run_of(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(run / "model")
    with torch.no_grad():
        if method == "frozen":
            encoder = transformers.AutoModel.from_pretrained(run / "model").eval()
            head = load_file(run / "model/classifier.safetensors")
            features = torch.stack([
                encoder(**tokenizer(*pair, return_tensors="pt")).last_hidden_state[0].mean(0)
                for pair in zip(table["text"], table["pair"], strict=True)
            ])  # fmt: skip
            features = torch.nn.functional.normalize(features)
            logits = features @ head["weight"].T + head["bias"]
        else:
            auto = transformers.AutoModelForSequenceClassification
            model = auto.from_pretrained(run / "model").eval()
            logits = torch.cat([
                model(**tokenizer(*pair, return_tensors="pt")).logits
                for pair in zip(table["text"], table["pair"], strict=True)
            ])  # fmt: skip
    assert np.allclose(logits.softmax(-1), np.stack(table["probabilities"]), atol=1e-5)
    assert follow_readme(run).keys() >= {"encoder" if method == "frozen" else "classify"}


# Models


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_a_decoder_answers_a_padded_text_as_it_answers_it_alone(
    run_recipe: Recipe, tmp_path: Path, tiny_bert: Path, reviews: Path, implementation: str
) -> None:
    """GPT-2 reads the label off the last token that is no padding; it has no padding token."""
    folder = tmp_path / "gpt2"
    config = transformers.GPT2Config(
        vocab_size=37, n_positions=32, n_embd=16, n_layer=2, n_head=2, initializer_range=0.2
    )
    transformers.GPT2Model(config).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(tiny_bert / name, folder)
    finished = run_recipe(
        NAME, "--dataset", reviews, "--model", folder, "--run-id", "a", "--implementation",
        implementation, "--train.epochs", "8", "--train.learning-rate", "0.01",
        "--train.batch-size", "8",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run, summary, table = run_of(tmp_path)
    assert summary["validation"]["accuracy"]["value"] + summary["test"]["accuracy"]["value"] > 1.5
    tokenizer = transformers.AutoTokenizer.from_pretrained(run / "model")
    assert tokenizer.padding_side == "right"
    auto = transformers.AutoModelForSequenceClassification
    model = auto.from_pretrained(run / "model").eval()
    with torch.no_grad():
        alone = torch.cat(
            [model(**tokenizer(t, return_tensors="pt")).logits for t in table["text"]]
        )
    assert np.allclose(alone.softmax(-1), np.stack(table["probabilities"]), atol=1e-5)


# Settings


def test_class_weights_decide_by_bayes_rule(
    run_recipe: Recipe, tmp_path: Path, tiny_bert: Path
) -> None:
    """A sign that is right once in three times: not enough against 9 to 1, enough once it counts.

    Of 10 rare rows 8 have the sign 好, of 90 common ones 18. P(rare | sign) = 8 / 26 < 1/2; with
    balanced weights, 5 and 5/9, it is 40 / (40 + 10) > 1/2, and without the sign 10 / 50 < 1/2.
    """
    counts = {("好酒店", "rare"): 8, ("坏酒店", "rare"): 2,
              ("好酒店", "common"): 18, ("坏酒店", "common"): 72}  # fmt: skip
    rows = [row for row, count in counts.items() for _ in range(count)]
    folder = tmp_path / "signs"
    folder.mkdir()
    for name, hundreds in (("train", 4), ("validation", 1), ("test", 2)):
        write(folder / f"{name}.csv", ("text", "label"), rows * hundreds)
    scores = {}
    for run_id, weights in (("plain", "null"), ("balanced", "balanced"),
                            ("given", '{"rare": 5, "common": 0.5556}')):  # fmt: skip
        finished = run_recipe(
            NAME, "--dataset", folder, "--model", tiny_bert, "--class-weights", weights,
            "--run-id", run_id, "--dropout", "0", "--train.learning-rate", "0.003",
            "--train.epochs", "3", "--keep-leaks",
        )  # fmt: skip
        assert finished.status == 0, finished.err
        _, summary, table = run_of(tmp_path, run_id)
        names = summary["data"]["label_names"]
        by_hand = [
            "rare" if weights != "null" and text[0] == "好" else "common" for text in table["text"]
        ]
        assert [names[i] for i in table["prediction"]] == by_hand
        truth = [names[i] for i in table["label"]]
        scores[run_id] = summary["test"]["macro_f1"]["value"]
        assert scores[run_id] == pytest.approx(f1_score(truth, by_hand, average="macro"))
    # By hand: F1 of common 180/190, of rare 0; then 2*144/(180+148) and 2*16/(20+52).
    assert scores["plain"] == pytest.approx((2 * 180 / 380 + 0) / 2)
    assert scores["balanced"] == scores["given"] == pytest.approx((288 / 328 + 32 / 72) / 2)


SETTINGS = {
    "label_smoothing": ("--label-smoothing", "0.3"),
    "layer_decay": ("--train.layer-decay", "0.5"),
    "ema": ("--train.ema", "0.9"),
    "freeze": ("--freeze-layers", "1"),
    "patience": ("--train.patience", "1", "--train.learning-rate", "0"),
}


def test_every_setting_changes_what_it_says(
    run_recipe: Recipe, tmp_path: Path, tiny_bert: Path, reviews: Path
) -> None:
    weights, summaries = {}, {}
    for run_id, options in {"plain": (), **SETTINGS}.items():
        finished = run_recipe(
            NAME, "--dataset", reviews, "--model", tiny_bert, "--run-id", run_id, "--dropout", "0",
            "--train.learning-rate", "0.003", "--train.epochs", "3", *options,
        )  # fmt: skip
        assert finished.status == 0, finished.err
        run, summaries[run_id], _ = run_of(tmp_path, run_id)
        weights[run_id] = load_file(run / "model/model.safetensors")
    before = load_file(tiny_bert / "model.safetensors")

    def moved(run_id: str, part: str) -> float:
        """How far the weights of a part went, a mean over them."""
        names = [n for n in before if part in n and n in weights[run_id]]
        return float(np.mean([(weights[run_id][n] - before[n]).abs().mean() for n in names]))

    assert moved("layer_decay", "embeddings") < 0.5 * moved("plain", "embeddings")
    assert (
        moved("freeze", "embeddings")
        == moved("freeze", "layer.0.")
        == 0
        < moved("freeze", "layer.1.")
    )
    assert 0 < moved("ema", "layer.1.") < moved("plain", "layer.1.")
    assert not torch.equal(
        weights["label_smoothing"]["classifier.weight"], weights["plain"]["classifier.weight"]
    )
    assert summaries["patience"]["training"]["stopped_early"] is True
    assert summaries["patience"]["training"]["steps"] < summaries["plain"]["training"]["steps"]


# What it is for


@pytest.mark.slow
def test_the_demo_reduced(run_recipe: Recipe, tmp_path: Path) -> None:
    """2,000 of its 4,000 reviews, 3 epochs of 4: guessing gives 50 %."""
    finished = run_recipe(
        NAME, "--preset", "demo", "--run-id", "a", "--train-size", "2000", "--validation-size",
        "200", "--test-size", "400", "--max-length", "64", "--train.epochs", "3",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    _, summary, _ = run_of(tmp_path)
    assert summary["test"]["accuracy"]["value"] >= 0.65


PAIRED = "text,other,label\n" + "".join(f"好{i},坏{i},{i % 2}\n" for i in range(40))


@pytest.mark.parametrize(
    ("recipe", "options", "expected"),
    [
        (NAME, ("--pair-column", "othr"), "no column 'othr'"),
        (NAME, ("--pair-column", "text"), "--text_column"),
        (NAME, ("--pair-column", "other", "--test-file", "test.csv"), "test.csv, line 3: no text"),
        (NAME, ("--pair-column", "other", "--max-length", "4"), "no room for two texts"),
        (NAME, ("--class-weights", '{"0": 1}'), "no weight is given for 1"),
        (NAME, ("--model", "distil"), "--implementation hf"),
        ("lstm_sentiment", ("--pair-column", "other"), "recipes/text_classification.py"),
        ("tfidf_sentiment", ("--pair-column", "other"), "recipes/text_classification.py"),
    ],
)
def test_mistakes_are_told_in_one_line(
    run_recipe: Recipe,
    tmp_path: Path,
    tiny_bert: Path,
    recipe: str,
    options: tuple[str, ...],
    expected: str,
) -> None:
    (tmp_path / "pairs.csv").write_text(PAIRED, encoding="utf-8")
    (tmp_path / "test.csv").write_text("text,other,label\n好,坏,1\n好, ,0\n", encoding="utf-8")
    shutil.copytree(tiny_bert, tmp_path / "distil")
    (tmp_path / "distil/config.json").write_text('{"model_type": "distilbert"}')
    model = () if recipe != NAME or "--model" in options else ("--model", tiny_bert)
    finished = run_recipe(recipe, "--dataset", "pairs.csv", *model, *options)
    assert finished.status == 2
    assert expected in finished.error
    assert not (tmp_path / "results").exists()

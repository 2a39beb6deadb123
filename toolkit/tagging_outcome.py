"""The end of a token classification run: test once, write tags and scores, show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow
from rich.table import Table

from toolkit.batching import Collate
from toolkit.console import console
from toolkit.data.tagging import TaggingData
from toolkit.data.windows import Windows
from toolkit.entity_metrics import describe_entities, entity_names
from toolkit.outcome import SPLITS, describe_training, draw_training, split_outputs
from toolkit.run import Run, describe_run
from toolkit.run_predictions import save_predictions
from toolkit.run_readme import Findings, markdown_table, run_readme, signatures
from toolkit.tagging import SentenceTags, TokenClassification
from toolkit.training.engine import FitResult


def finish_tagging(
    run: Run[Any],
    result: FitResult,
    data: TaggingData,
    windows: Windows,
    *,
    objective: TokenClassification,
    collate: Collate,
    title: str,
    model: dict[str, Any],
) -> dict[str, Any]:
    """Test once, write predictions and summary, print the result, and complete the run.

    Returns:
        The summary (schema version 1).
    """
    seen = set(entity_names(data.train["tokens"][:], data.train["tags"][:]))
    found = {}
    for split in SPLITS:
        rows, read = getattr(data, split), getattr(windows, split)
        outputs = split_outputs(run, result, split, read, objective, collate)
        predicted = SentenceTags(rows, read, data.label_names)(outputs)
        found[split] = describe_entities(rows["tokens"][:], rows["tags"][:], predicted, seen)
        if run.accelerator.is_main_process:
            _write_predictions(run, split, rows, predicted)
    summary = {
        **describe_run(run, title, "token-classification", data.summary),
        "model": model,
        "data": {
            "dataset": data.summary["source"],
            **{f"{split}_examples": len(getattr(data, split)) for split in ("train", *SPLITS)},
            "label_names": data.label_names,
            "tokens": "characters" if _are_characters(data.train["tokens"][:]) else "words",
            "space_piece_left_out": data.summary["tokenization"]["space_piece_left_out"],
            "hashes": data.summary["sha256"],
        },
        "training": describe_training(run, result),
        **found,
    }
    run.write_json("data.json", data.summary)
    if run.accelerator.is_main_process:
        draw_training(run, result.state.best_step, "entity_f1")
        run.write_text("README.md", _readme(summary))
        _print(run, summary)
    run.complete(summary)
    return summary


def _are_characters(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether most tokens are one character, as in Chinese data."""
    counts = [len(token) == 1 for tokens in sentences for token in tokens]
    return sum(counts) > len(counts) / 2


def _write_predictions(
    run: Run[Any], split: str, rows: Any, predicted: Sequence[Sequence[str]]
) -> None:
    """One row per sentence: id, tokens, gold and predicted tags."""
    table = pyarrow.table(
        {
            "id": rows["id"][:],
            "tokens": rows["tokens"][:],
            "gold": rows["tags"][:],
            "predicted": predicted,
        }
    )
    save_predictions(run, split, table)


def _print(run: Run[Any], summary: dict[str, Any]) -> None:
    table = Table(title=f"{summary['title']}: {run.directory}", title_justify="left")
    for column in ("entities", "number", "precision", "recall", "F1", "95% interval"):
        table.add_column(column, justify="left" if column == "entities" else "right")

    def add(name: str, values: dict[str, Any], interval: str = "") -> None:
        shown = [f"{values[key]:.1%}" for key in ("precision", "recall", "f1")]
        table.add_row(name, f"{values['gold']:,}", *shown, interval)

    for split in SPLITS:
        f1 = summary[split]["entity_f1"]
        interval = "{:.1%}-{:.1%}".format(*f1["interval"])
        add(split, summary[split] | {"f1": f1["value"]}, interval)
    test = summary["test"]
    for kind, values in test["types"].items():
        add(f"  test: {kind}", values)
    for part in ("seen", "unseen"):
        if test[part]["gold"]:
            add(f"  test: names {part} in training", test[part])
    console.print(table)


_USE = """from transformers import pipeline
find = pipeline("token-classification", model="model", aggregation_strategy="{strategy}")
text = "{text}"
# It has learned from {tokens}: give it {tokens}.
[entities] = find([{split}], is_split_into_words=True, delimiter="{delimiter}")
for entity in entities:
    print(entity["entity_group"], text[entity["start"] : entity["end"]], entity["score"])
"""
_USES = {
    "characters": _USE.format(
        strategy="simple",
        text="她打算六月一日去上海旅行，带了一些美元。",
        tokens="characters",
        split="list(text)",
        delimiter="",
    ),
    "words": _USE.format(
        strategy="first",  # of the pieces of a word only the first was given a label
        text="Angela Merkel was born in Hamburg .",
        tokens="words",
        split="text.split()",
        delimiter=" ",
    ),
}

_USES["characters of SentencePiece"] = """import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer
model = AutoModelForTokenClassification.from_pretrained("model").eval()
tokenizer = AutoTokenizer.from_pretrained("model")
text = "她打算六月一日去上海旅行，带了一些美元。"
# It has learned from Chinese characters without the piece that stands for a space before them.
pieces = [tokenizer(character, add_special_tokens=False)["input_ids"] for character in text]
pieces = [p[1:] if len(p) > 1 and "\u3400" <= c <= "\u9fff" else p for c, p in zip(text, pieces)]
ids = [tokenizer.cls_token_id, *(i for piece in pieces for i in piece), tokenizer.sep_token_id]
with torch.no_grad():
    labels = model(torch.tensor([ids])).logits[0].argmax(-1)
place = 1
for character, piece in zip(text, pieces):
    print(character, model.config.id2label[int(labels[place])])
    place += len(piece)
"""


def _readme(summary: dict[str, Any]) -> str:
    use = _USES[_kind(summary["data"])]
    return run_readme(summary, tagging_findings(summary), use=use, predictions="every tag")


def tagging_findings(summary: dict[str, Any]) -> Findings:
    """What was trained on what, and which entities it finds."""
    model, data, test = summary["model"], summary["data"], summary["test"]
    header = ("on test", "entities", "precision", "recall", "F1", "95% interval")
    interval = "{:.4f}-{:.4f}".format(*test["entity_f1"]["interval"])
    rows = [_row("all", test | {"f1": test["entity_f1"]["value"]}, interval)]
    rows += [_row(kind, values) for kind, values in test["types"].items()]
    rows += [
        _row(f"names {part} in training", test[part])
        for part in ("seen", "unseen")
        if test[part]["gold"]
    ]
    return Findings(
        f"{model['architecture']} ({model['name']}, method {model['method']}), trained on "
        f"{data['train_examples']:,} sentences of {data['dataset']}; tested on "
        f"{data['test_examples']:,}. Tokens are {data['tokens']}.",
        [*markdown_table(header, rows), "", *signatures([test["entity_f1"]])],
    )


def _kind(data: dict[str, Any]) -> str:
    characters = data["tokens"] == "characters"
    space_piece = characters and data["space_piece_left_out"]
    return "characters of SentencePiece" if space_piece else str(data["tokens"])


def _row(name: str, values: dict[str, Any], interval: str = "") -> list[str]:
    shown = [f"{values[key]:.4f}" for key in ("precision", "recall", "f1")]
    return [name, f"{values['gold']:,}", *shown, interval]

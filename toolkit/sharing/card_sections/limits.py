"""What a model was not tested for, from what its run recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.demo.chinese_bert import HUB_NAME as CHINESE_BERT_HUB_NAME
from toolkit.demo.chinese_bert import NAME as CHINESE_BERT
from toolkit.report import wording
from toolkit.report.markdown_blocks import escape
from toolkit.sharing.shareable import Shareable

_WRITES = ("translation", "language-modeling")
_RARE = 3  # one class so many times as frequent as another


def describe_limits(
    summary: dict[str, Any] | None, data: dict[str, Any], shareable: Shareable
) -> str:
    """A list in Markdown.

    Args:
        summary: of the run, without local paths; None for a model folder alone.
        data: the run's data.json; empty where there is none.
    """
    found = [] if summary is None else list(_of_run(summary, data))
    found += _of_folder(shareable)
    return "\n".join(f"- {line}" for line in found) or "- Nothing is known about it."


def _of_run(summary: dict[str, Any], data: dict[str, Any]) -> Iterator[str]:
    split = "test" if isinstance(summary.get("test"), dict) else "validation"
    dataset = escape(str(summary["data"]["dataset"]))
    size = summary["data"].get(f"{split}_examples", summary["data"].get(f"{split}_documents"))
    yield (
        f"Measured on {size:,} examples of {dataset} and nowhere else; on other data it can be "
        "worse. The intervals say what chance does with so many examples, not what other data do."
    )
    if split == "validation":
        yield "There was no test set: the model was chosen on what it is measured on."
    if dataset.startswith("demo:"):
        yield "The data are a demonstration: good for trying things out, not for a product."
    yield f"One training with one seed ({summary['seed']}); another seed gives other numbers."
    if summary["training"].get("steps") == 0:
        yield "It was not trained here: it is measured as it is."
    if summary["model"]["name"] == CHINESE_BERT:
        yield (
            f"Its start, {CHINESE_BERT}, is {CHINESE_BERT_HUB_NAME} with weights that were stored "
            "in 4 bits: they differ a little from those on the Hub."
        )
    yield from _of_tokens(data, split)
    yield from _of_classes(data)
    if summary["task"] in _WRITES:
        yield "What it writes can be fluent and wrong, and repeats what its training texts hold."


def _of_tokens(data: dict[str, Any], split: str) -> Iterator[str]:
    tokenization = data.get("tokenization") or {}
    counts = (tokenization.get("splits") or {}).get(split) or {}
    limit, cut = tokenization.get("max_length"), counts.get("rows_cut")
    if limit:
        yield f"Texts are cut to {limit:,} tokens" + (
            f"; of the {split} texts {cut:,} were longer." if cut else "."
        )
    unknown = counts.get("unknown_share")
    if unknown and unknown >= 0.01:
        yield f"{wording.percent(unknown)} of the {split} tokens are not in its vocabulary."


def _of_classes(data: dict[str, Any]) -> Iterator[str]:
    counts = (data.get("class_counts") or {}).get("train") or {}
    if len(counts) < 2:
        return
    rare, frequent = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[frequent] >= _RARE * max(counts[rare], 1):
        yield (
            f"Classes are of very different size: {counts[frequent]:,} training examples of "
            f"{escape(frequent)}, {counts[rare]:,} of {escape(rare)}."
        )


def _of_folder(shareable: Shareable) -> Iterator[str]:
    if shareable.remote_code:
        yield (
            "transformers has no such architecture: it is loaded with `trust_remote_code=True`, "
            "which runs the Python files of this repository. Read them first."
        )
    if shareable.library == "sklearn":
        yield "Loading a joblib file runs what is in it: load it from people you trust only."
    if shareable.library == "peft":
        yield f"This is an adapter alone: it needs its base model, {shareable.base_model}."

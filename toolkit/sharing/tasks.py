"""What a shared model does: its name on the Hub, and the Auto class that loads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.parquet

from toolkit.errors import UserError
from toolkit.sharing.source import Source

AUTO_CLASSES = {
    "text-classification": "AutoModelForSequenceClassification",
    "image-classification": "AutoModelForImageClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "text-generation": "AutoModelForCausalLM",
    "fill-mask": "AutoModelForMaskedLM",
    "pretraining": "AutoModelForPreTraining",
    "translation": "AutoModelForSeq2SeqLM",
    "features": "AutoModel",
}
"""By kind of model, which is the Hub's name of its task except for the two without one."""

HEADS = {
    "text-classification": "sequence-classification",
    "image-classification": "image-classification",
    "token-classification": "token-classification",
    "question-answering": "question-answering",
    "text-generation": "causal-lm",
    "fill-mask": "masked-lm",
    "pretraining": "pretraining",
    "translation": "seq2seq-lm",
    "features": "model",
}
"""By kind of model: what `toolkit.modeling` calls it."""

LABELLED = ("text-classification", "image-classification", "token-classification", "sklearn")
"""Kinds whose outputs have names."""

_ENDINGS = {
    "ForSequenceClassification": "text-classification",
    "ForImageClassification": "image-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForMaskedLM": "fill-mask",
    "ForPreTraining": "pretraining",
    "MTModel": "translation",
    "ForConditionalGeneration": "translation",
    "Model": "features",
}
_TAGS = {"sklearn": "text-classification", "pretraining": "fill-mask", "features": None}


@dataclass(frozen=True)
class Kind:
    """What a model does.

    Args:
        check: a key of `AUTO_CLASSES`, or "sklearn": a text classifier of scikit-learn.
        pairs: its inputs are two texts.
        chinese: its texts are.
        prefix: put before every text of a translation.
    """

    check: str
    pairs: bool = False
    chinese: bool = True
    prefix: str = ""

    @property
    def pipeline_tag(self) -> str | None:
        """The Hub's name of the task; None for an encoder alone."""
        return _TAGS.get(self.check, self.check)


def kind_of(source: Source) -> Kind:
    """What the model of a source does, judged by its files.

    Raises:
        UserError: `architectures` of its config.json names no class, or one of no known task.
    """
    prefix = str(source.summary.get("model", {}).get("prefix") or "")
    return Kind(_check_of(source), source.pairs, _is_chinese(source), prefix)


def _check_of(source: Source) -> str:
    if source.is_tfidf:
        return "sklearn"
    if source.is_frozen:
        return "image-classification" if source.reads_images else "text-classification"
    names: Any = source.config.get("architectures") or []
    for ending, check in _ENDINGS.items():
        if any(str(name).endswith(ending) for name in names):
            return check
    found = f"`architectures` is {names}" if names else "it has no `architectures`"
    raise UserError(
        f"{source.model / 'config.json'} does not say what the model does ({found}): expected the "
        "name of a class of transformers such as BertForSequenceClassification. Save the model "
        "with save_pretrained of its class."
    )


def _is_chinese(source: Source) -> bool:
    """By the texts the run was tested on, or else by the tokenizer's vocabulary."""
    texts = "".join(example_texts(source, 20))
    if texts:
        return any("\u4e00" <= character <= "\u9fff" for character in texts)
    files = (source.model / name for name in ("vocab.txt", "tokenizer.json"))
    return any("的" in file.read_text(encoding="utf-8") for file in files if file.is_file())


def example_rows(source: Source, most: int) -> list[dict[str, Any]]:
    """The first rows of the predictions of a run, on test or else on validation; none without."""
    for split in ("test", "validation"):
        file = source.folder / "predictions" / f"{split}.parquet"
        if source.summary and file.is_file():
            rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).slice(0, most).to_pylist()
            return rows
    return []


def example_texts(source: Source, most: int) -> list[str]:
    """Texts the run was tested on: sentences, tokens put together, sources of translations."""
    found = []
    for row in example_rows(source, most):
        for name in ("text", "source", "question", "context", "tokens"):
            if name in row:
                found.append(_joined(row[name]) if name == "tokens" else str(row[name]))
                break
    return found


def _joined(tokens: list[str]) -> str:
    """Characters follow each other, words have a space between."""
    return ("" if all(len(token) == 1 for token in tokens) else " ").join(tokens)

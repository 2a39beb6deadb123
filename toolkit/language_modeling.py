"""Language modelling as a task: data, loss, and what a model's bits are divided by.

Perplexities can be compared where tokenizer, text and protocol are the same. Per word (or Chinese
character) and per byte, models with different tokenizers can be compared as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from toolkit import stats
from toolkit.data.documents import Documents
from toolkit.data.packing import evaluation_windows, pack_documents, tokenize_documents
from toolkit.evaluation import Outputs
from toolkit.ignored_label import IGNORED
from toolkit.objectives import Batch, model_inputs, takes
from toolkit.task_scores.measures import ratio

_CJK = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\U00020000", "\U0003ffff"))


@dataclass(frozen=True)
class HeldOut:
    """Documents to be measured by: their texts, token ids, and the windows that cover them."""

    ids: list[str]
    texts: list[str]
    tokens: list[list[int]]
    windows: Any
    words: NDArray[np.int64]  # of the part that is scored, in the unit of the data
    bytes: NDArray[np.int64]


@dataclass(frozen=True)
class LanguageModelData:
    """Blocks to train on and windows of the documents held out.

    Args:
        word: "word" (what white space separates) or "character" (where most letters are Chinese or
            Japanese): what a word is in `word_perplexity`.
    """

    train: Any
    train_tokens: list[list[int]]
    splits: dict[str, HeldOut]
    word: str
    summary: dict[str, Any]

    @property
    def validation(self) -> Any:
        """Windows to choose the best checkpoint by."""
        return self.splits["validation"].windows


def prepare(
    documents: Documents, tokenizer: Any, block_size: int, stride: int | None
) -> LanguageModelData:
    """Tokenise, pack the training documents and lay windows over the others.

    Args:
        block_size: tokens of a block and of a window.
        stride: tokens by which a window moves on; None: half of it.

    Raises:
        UserError: the tokenizer has no end of text; sizes that cannot be.
    """
    train_tokens = tokenize_documents(documents.train["text"][:], tokenizer)
    train, packing = pack_documents(train_tokens, block_size)
    word = _word_unit(documents.train["text"][:1000])
    stride = block_size // 2 if stride is None else stride
    splits = {}
    for name in ("validation", "test"):
        rows = getattr(documents, name)
        ids, texts = rows["id"][:], rows["text"][:]
        tokens = tokenize_documents(texts, tokenizer)
        scored = [
            _scored_text(text, row, tokenizer) for text, row in zip(texts, tokens, strict=True)
        ]
        splits[name] = HeldOut(
            ids, texts, tokens, evaluation_windows(tokens, block_size, stride),
            np.array([count_words(text, word) for text in scored]),
            np.array([len(text.encode()) for text in scored]),
        )  # fmt: skip
    summary = documents.summary | {
        "packing": packing,
        "evaluation": {
            "window": block_size,
            "stride": stride,
            "word": word,
            **{
                name: {
                    "windows": len(split.windows),
                    "scored_tokens": sum(len(ids) - 1 for ids in split.tokens),
                    "scored_words": int(split.words.sum()),
                    "scored_bytes": int(split.bytes.sum()),
                }
                for name, split in splits.items()
            },
        },
    }
    return LanguageModelData(train, train_tokens, splits, word, summary)


def count_words(text: str, word: str) -> int:
    """Words of a text: what white space separates, or the characters that are no white space."""
    return len(text.split()) if word == "word" else sum(not c.isspace() for c in text)


class CausalLanguageModeling:
    """Cross entropy of every token that has a label, given those before it in its document.

    Labels stand where their tokens are: the model's output before a place predicts what is there.
    """

    def count(self, batch: Batch) -> list[int]:
        """Labels that something predicts; a label in the first place is never one."""
        return [int((batch["labels"][:, 1:] != IGNORED).sum())]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Summed cross entropy [1]."""
        if takes(model, "loss_only"):  # in float32 it never holds all logits
            output = model(
                **model_inputs(batch), labels=batch["labels"], num_items_in_batch=1,
                loss_only=True, use_cache=False,
            )  # fmt: skip
            return output.loss.view(1)
        losses, _ = _predicted_losses(model, batch)
        return losses.sum().view(1)

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Per row: `nll`, the sum of its tokens in nats, and `tokens`, their number."""
        losses, predicted = _predicted_losses(model, batch)
        nll = torch.zeros(predicted.shape, device=losses.device)
        return {"nll": nll.masked_scatter(predicted, losses).sum(-1), "tokens": predicted.sum(-1)}


def _predicted_losses(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Losses [predicted] in float32, and where they stand, [batch, length - 1]."""
    targets = batch["labels"][:, 1:]
    predicted = targets != IGNORED
    # A cache would make transformers see one text where positions start again.
    inputs = model_inputs(batch) | {"use_cache": False}
    if takes(model, "logits_at"):
        nothing = torch.zeros_like(predicted[:, :1])
        logits = model(**inputs, logits_at=torch.cat([predicted, nothing], dim=1)).logits
    else:
        logits = model(**inputs).logits[:, :-1][predicted]
    return F.cross_entropy(logits.float(), targets[predicted], reduction="none"), predicted


class PerplexityMetric:
    """Nats per token and their exponential; chosen by nats, which are finite where it is not."""

    selection = "loss"
    higher_is_better = False

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Compute from the sums of `CausalLanguageModeling.outputs`."""
        nll, tokens = outputs["nll"].sum(dtype=np.float64), int(outputs["tokens"].sum())
        return {"loss": float(nll / tokens), "perplexity": perplexity(float(nll), tokens)}


def perplexity(nll: float, terms: int) -> float:
    """exp(sum / number); infinite where that has no float.

    Args:
        nll: sum of negative log-likelihoods in nats.
    """
    try:
        return math.exp(nll / terms)
    except OverflowError:
        return math.inf


def per_document(outputs: Outputs, split: HeldOut) -> NDArray[np.float64]:
    """Nats of every document from those of its windows [documents].

    Raises:
        RuntimeError: a token is missing or was counted twice.
    """
    document = np.asarray(split.windows["document"][:])
    expected = np.array([len(ids) - 1 for ids in split.tokens])
    tokens = np.bincount(document, weights=outputs["tokens"], minlength=len(expected))
    if not np.array_equal(tokens, expected):
        wrong = int(np.flatnonzero(tokens != expected)[0])
        raise RuntimeError(
            f"document {wrong} has {expected[wrong]} tokens to be scored, counted {tokens[wrong]}"
        )
    nll = outputs["nll"].astype(np.float64)
    return np.bincount(document, weights=nll, minlength=len(expected)).astype(np.float64)


def describe_scores(
    losses: dict[str, NDArray[np.float64]], split: HeldOut, data: LanguageModelData, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Perplexity, word perplexity and bits per byte of every model, as a summary holds them.

    Each has its interval, by bootstrap over documents (None with less than two), and its signature,
    which names all that the value depends on besides model and text.

    Args:
        losses: nats of every document, by the name of the model.
    """
    tokens = np.array([len(ids) - 1 for ids in split.tokens])
    protocol = data.summary["evaluation"]
    how = f"window:{protocol['window']}|stride:{protocol['stride']}|end of text:scored"
    documents = len(tokens)
    described: dict[str, dict[str, Any]] = {name: {} for name in losses}
    for metric, unit, terms in (
        ("perplexity", "token", tokens),
        ("word_perplexity", data.word, split.words),
        ("bits_per_byte", "byte", split.bytes),
    ):
        statistics = [np.stack([nll, terms], axis=1) for nll in losses.values()]
        draws = stats.score_draws(statistics, ratio, seed=seed) if documents > 1 else None
        for run, name in enumerate(losses):
            interval = None
            if draws is not None:
                interval, _ = stats.bootstrap_interval(draws[run])
            described[name][metric] = {
                "value": _value(metric, float(ratio(statistics[run].sum(0)))),
                "n": documents,
                "terms": int(terms.sum()),
                "interval": interval
                and [_value(metric, end) for end in (interval.low, interval.high)],
                "interval_method": interval and f"{interval.method}, over documents",
                "signature": f"{metric}|per:{unit}|documents:{documents}|first token:not scored|"
                f"{how}",
            }
    return described


def _value(metric: str, nats: float) -> float:
    return float(nats) / math.log(2) if metric == "bits_per_byte" else perplexity(float(nats), 1)


def _scored_text(text: str, ids: Sequence[int], tokenizer: Any) -> str:
    """The text without its first token, which nothing predicts."""
    first = tokenizer.decode(ids[:1])
    # The first bytes of a rare character are no text of their own: then the character goes.
    return text[len(first) :] if text.startswith(first) else text[1:]


def _word_unit(texts: Sequence[str]) -> str:
    letters = [character for text in texts for character in text[:1000] if character.isalpha()]
    cjk = sum(any(low <= letter <= high for low, high in _CJK) for letter in letters)
    return "character" if 2 * cjk > len(letters) else "word"

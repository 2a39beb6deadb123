"""What two implementations of one model compute differently although they give the same answers."""

from __future__ import annotations

from toolkit.comparison.compare import Comparison, Row
from toolkit.report.cost import COLUMNS, values_of

# Classes whose head reads the first token only: ours then leave the other tokens out of the last
# layer (`EncoderStack.first_token_suffices`), HuggingFace's compute them.
_FIRST_TOKEN_SUFFICES = (
    "BertForSequenceClassification",
    "RobertaForSequenceClassification",
    "ViTForImageClassification",
)
_OURS = "Scratch"
_ROUNDING = 1e-3


def note_on_operations(comparison: Comparison) -> str | None:
    """Why operations differ between implementations; None where they don't, or not for this."""
    flops = next(column for column in COLUMNS if column.key == "flops")
    found: dict[tuple[str, bool], list[float]] = {}
    for row in comparison.rows:
        whole = _architecture(row)
        name = whole.removeprefix(_OURS).removeprefix("XLM")  # the same class with other weights
        if name in _FIRST_TOKEN_SUFFICES:
            found.setdefault((name, whole.startswith(_OURS)), []).extend(values_of(row, flops))
    for (name, own), ours in found.items():
        theirs = found.get((name, False), [])
        if own and ours and theirs and _mean(ours) < (1 - _ROUNDING) * _mean(theirs):
            token = "class token" if name.startswith("ViT") else "first token"
            return (
                f"Computed: our class takes the last layer for the {token} alone, which is all "
                "that its classifier reads (in training where nothing is dropped out), "
                "HuggingFace's for every token: the same answers from fewer operations."
            )
    return None


def _architecture(row: Row) -> str:
    return str(row.run.section("model").get("architecture") or "")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)

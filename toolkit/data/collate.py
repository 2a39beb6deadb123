"""Examples to padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from toolkit.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ClassificationCollator:
    """Pad a list of examples to the longest one, on the tokenizer's own side.

    Takes examples {input_ids, label, index}; gives int64 tensors input_ids and attention_mask
    [batch, length], labels and index [batch]. token_type_ids (the examples' own, else zeros: one
    text) come only where the tokenizer's model takes them. `label` and `index` may be missing
    (prediction).

    Raises:
        UserError: the tokenizer has no padding token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if tokenizer.pad_token_id is None:
            raise UserError("the tokenizer has no padding token; set one (GPT-2: its end of text).")
        self.tokenizer = tokenizer
        self.with_types = "token_type_ids" in tokenizer.model_input_names

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One padded batch."""
        features: dict[str, list[list[int]]] = {"input_ids": [row["input_ids"] for row in examples]}
        if self.with_types:
            features["token_type_ids"] = [
                row.get("token_type_ids") or [0] * len(row["input_ids"]) for row in examples
            ]
        padded = self.tokenizer.pad(
            features, padding=True, return_attention_mask=True, return_tensors="pt"
        )
        batch = dict(padded)
        for name, source in (("labels", "label"), ("index", "index")):
            if source in examples[0]:
                batch[name] = torch.tensor([row[source] for row in examples], dtype=torch.int64)
        return batch

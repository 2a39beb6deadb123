"""Padded batch <-> its real tokens in one row: what is computed for padding is thrown away anyway.

In a batch of texts of different lengths, padded to the longest, more than half of the places are
often padding. Linear layers, norms and the feed-forward part work on every token by itself, so they
can do without; only attention must know where one text ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.utils import ModelOutput

from scratch_models.layers.masks import MASK_TENSOR_IMPLEMENTATIONS

Packing = Literal["auto", "off"]
"""``auto``: wherever a mask has padding and the same comes out; ``off``: never."""

Output = TypeVar("Output", bound=ModelOutput)
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class PackedSequences:
    """The texts of a batch, one after the other in one row; stands in the place of a mask.

    Args:
        keys: tokens of every text, in order; may be 0.
        queries: of them, those that are still computed: all, or the first of each text.
        places: [sum of keys] where each token stands in the padded batch, counted row by row; None
            where there is no padded batch.
        shape: batch and length of the padded batch.
    """

    keys: tuple[int, ...]
    queries: tuple[int, ...]
    places: Tensor | None
    shape: tuple[int, int]
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def keep(self, name: Hashable, find: Callable[[], Kept]) -> Kept:
        """What `find` gives, found once: every layer of a model asks for the same.

        It lasts as long as the batch: a tensor made without gradients must not get into another.
        """
        if name not in self._kept:
            self._kept[name] = find()
        kept: Kept = self._kept[name]
        return kept

    @classmethod
    def of_mask(cls, attention_mask: Tensor) -> PackedSequences:
        """From a mask [batch, length] of any dtype, zero hides; holes may be anywhere."""
        real = attention_mask != 0
        lengths = tuple(real.sum(dim=1).tolist())
        places = real.flatten().nonzero().squeeze(1)
        return cls(lengths, lengths, places, (real.shape[0], real.shape[1]))

    @classmethod
    def of_lengths(cls, lengths: Sequence[int] | Tensor, tokens: int) -> PackedSequences:
        """Texts that come packed already.

        Args:
            lengths: [batch] tokens of every text.
            tokens: how many there are in the row.

        Raises:
            ValueError: the lengths are negative or do not add up to that.
        """
        numbers = tuple(int(n) for n in lengths)
        if any(n < 0 for n in numbers) or sum(numbers) != tokens:
            raise ValueError(
                f"sequence_lengths {_few(numbers)} add up to {sum(numbers)}, but input_ids hold "
                f"{tokens} tokens: give the length of every text, in order, without padding."
            )
        return cls(numbers, numbers, None, (len(numbers), max(numbers, default=0)))

    @property
    def tokens(self) -> int:
        """How many real tokens there are."""
        return sum(self.keys)

    @cached_property
    def first_tokens_only(self) -> PackedSequences:
        """The same texts, of which only the first token asks."""
        first = tuple(min(n, 1) for n in self.keys)
        return PackedSequences(self.keys, first, self.places, self.shape)

    def pack(self, padded: Tensor) -> Tensor:
        """[batch, length, ...] -> [1, tokens, ...]; a batch of 1 stands for every row."""
        if self.places is None:
            raise ValueError("these sequences were never padded.")
        if padded.shape[0] != self.shape[0]:
            padded = padded.expand(self.shape[0], *padded.shape[1:])
        return padded.flatten(0, 1).index_select(0, self.places.to(padded.device))[None]

    def pad(self, packed: Tensor) -> Tensor:
        """[1, tokens, ...] -> [batch, length, ...] with zeros at padding."""
        if self.places is None:
            raise ValueError("these sequences were never padded.")
        rest = packed.shape[2:]
        flat = packed.new_zeros(self.shape[0] * self.shape[1], *rest)
        flat = flat.index_copy(0, self.places.to(packed.device), packed[0])
        return flat.unflatten(0, self.shape)

    def first(self, packed: Tensor) -> Tensor:
        """The first token of every text: [1, tokens, ...] -> [1, texts that have one, ...]."""
        return packed.index_select(1, self._starts.to(packed.device))

    def rows_of_first(self, first: Tensor) -> Tensor:
        """What `first` gave, as rows: [1, texts, ...] -> [batch, 1, ...]; zeros for empty texts."""
        if all(self.keys):
            return first.transpose(0, 1)
        rows = torch.tensor([n > 0 for n in self.keys], device=first.device).nonzero().squeeze(1)
        empty = first.new_zeros(len(self.keys), *first.shape[2:])
        return empty.index_copy(0, rows, first[0])[:, None]

    def positions(self, device: torch.device | None = None) -> Tensor:
        """0, 1, … anew in every text: [1, tokens]."""
        counted = [torch.arange(n, device=device) for n in self.keys]
        return torch.cat([*counted, torch.arange(0, device=device)])[None]

    @cached_property
    def _starts(self) -> Tensor:
        lengths = torch.tensor(self.keys)
        return (lengths.cumsum(0) - lengths)[lengths > 0]

    def pad_outputs(self, outputs: Output) -> Output:
        """The hidden states of an output as padded batches (attention maps are padded already)."""
        for name in ("last_hidden_state", "hidden_states"):
            value = outputs.get(name)
            if isinstance(value, Tensor):
                outputs[name] = self._pad_if_packed(value)
            elif value is not None:
                outputs[name] = tuple(v if v is None else self._pad_if_packed(v) for v in value)
        return outputs

    def _pad_if_packed(self, states: Tensor) -> Tensor:
        """The first tokens, one a row, are no longer packed."""
        return self.pad(states) if states.shape[:2] == (1, self.tokens) else states


def find_packing(
    config: PreTrainedConfig,
    attention_mask: Tensor | None,
    packing: Packing,
    first_token_matters: bool = False,
    labelled: Tensor | None = None,
) -> PackedSequences | None:
    """How to pack a batch, or None where it is to be computed as it is.

    Args:
        config: names the attention implementation. Flash and flex attention leave padding out
            themselves, in attention.
        attention_mask: as a caller passes it. One without padding, one of more than two dimensions
            or none needs no packing.
        packing: the model's setting.
        first_token_matters: a head reads position 0 of every row. Where that is padding (texts
            padded on the left, or empty) it has a value all the same, which packing does not
            compute.
        labelled: [batch, length], -100 where there is no label; padding with a label has a loss.
    """
    if packing == "off" or not isinstance(attention_mask, Tensor) or attention_mask.ndim != 2:
        return None
    if config._attn_implementation not in MASK_TENSOR_IMPLEMENTATIONS:
        return None
    # How many tokens are real is not known when a graph is recorded.
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or attention_mask.is_meta:
        return None
    real = attention_mask != 0
    if bool(real.all()):
        return None
    if first_token_matters and not bool(real[:, 0].all()):
        return None
    if labelled is not None and _labels_padding(labelled, real):
        return None
    return PackedSequences.of_mask(attention_mask)


def _labels_padding(labels: Tensor, real: Tensor) -> bool:
    if labels.shape != real.shape:
        return False  # the loss will tell
    return bool(((labels != -100) & ~real.to(labels.device)).any())


def take_packed(
    lengths: Sequence[int] | Tensor, tokens: Tensor | None, attention_mask: Tensor | None
) -> PackedSequences:
    """Texts that a caller has packed.

    Args:
        lengths: [texts] tokens of each.
        tokens: [1, tokens, ...] ids or vectors.
        attention_mask: must be None.

    Raises:
        ValueError: tokens in several rows, lengths that do not add up to them, or a mask.
    """
    if attention_mask is not None:
        raise ValueError("sequence_lengths come without attention_mask: nothing is hidden.")
    if tokens is None or tokens.shape[0] != 1:
        found = None if tokens is None else list(tokens.shape)
        raise ValueError(f"sequence_lengths belong to tokens in one row, [1, tokens], not {found}.")
    return PackedSequences.of_lengths(lengths, tokens.shape[1])


def check_packing(packing: str) -> None:
    """Raise ValueError for a setting that is neither "auto" nor "off"."""
    if packing not in ("auto", "off"):
        raise ValueError(f"packing is {packing!r}; expected 'auto' or 'off'.")


def _few(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"[{shown}{', …' if len(numbers) > 8 else ''}]"

"""A cache of keys and values that does not copy itself at every token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer


class PreallocatedLayer(DynamicLayer):
    """transformers' growing layer, with room for tokens to come.

    The same keys and values; but new ones are written behind the old ones, where transformers makes
    a longer tensor of all of them. `keys` and `values` are the filled part of the room.

    Args:
        room: tokens there will be, as far as is known; more are taken, too.
    """

    keys: Tensor | None
    values: Tensor | None

    def __init__(self, room: int = 0) -> None:
        super().__init__()
        self.room = room
        self._rooms: tuple[_Room, _Room] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Add [batch, heads, new tokens, head_dim]; returns all keys and all values."""
        if torch.is_grad_enabled() and (key_states.requires_grad or value_states.requires_grad):
            return super().update(key_states, value_states, *args, **kwargs)  # to be gone back over
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        old = self.keys.shape[-2] if self.keys.numel() else 0
        total = old + key_states.shape[-2]
        if self._rooms is None or not self._rooms[0].takes(self.keys, key_states, old):
            self._rooms = (
                _Room(self.keys, key_states, old, self._length(total)),
                _Room(self.values, value_states, old, self._length(total)),
            )
        keys, values = self._rooms
        self.keys, self.values = keys.add(key_states), values.add(value_states)
        return self.keys, self.values

    def _length(self, total: int) -> int:
        """Twice of what is needed, but for a room that is known to suffice."""
        return min(2 * total, self.room) if total <= self.room else 2 * total


class _Room:
    """Space for keys, or values, of which the first `filled` tokens are there.

    How many that is, is told by the room and not by the cache: of two copies of a cache, which
    share a room, only the one that goes on first writes behind it; the other must move.
    """

    def __init__(self, kept: Tensor | None, new: Tensor, old: int, length: int) -> None:
        self.space = new.new_empty(*new.shape[:-2], length, new.shape[-1])
        self.filled = old
        if old and kept is not None:
            self.space[:, :, :old] = kept

    def takes(self, kept: Tensor, new: Tensor, old: int) -> bool:
        """Whether `new` can be written behind what is kept: it was not re-ordered or cut."""
        space = self.space
        return (
            (old == 0 or kept.data_ptr() == space.data_ptr())
            and old == self.filled
            and old + new.shape[-2] <= space.shape[-2]
            and new.shape[:-2] == space.shape[:-2]
            and (new.dtype, new.device) == (space.dtype, space.device)
            # What was made without any trace of gradients can be written to in that mode only.
            and (not space.is_inference() or torch.is_inference_mode_enabled())
        )

    def add(self, new: Tensor) -> Tensor:
        """All of it, with `new` at the end."""
        end = self.filled + new.shape[-2]
        self.space[:, :, self.filled : end] = new
        self.filled = end
        return self.space[:, :, :end]


class PreallocatedCache(DynamicCache):
    """transformers' `DynamicCache` of `PreallocatedLayer`s.

    Args:
        config: the model's.
        room: tokens there will be.
    """

    layers: list[Any]

    def __init__(self, config: PreTrainedConfig, room: int) -> None:
        super().__init__(config=config)
        self.layers = [
            PreallocatedLayer(room) if type(layer) is DynamicLayer else layer
            for layer in self.layers
        ]


def with_room(cache: Cache, config: PreTrainedConfig, room: int) -> Cache:
    """The cache to generate with in place of one of transformers' growing ones, still empty.

    Others (static, quantised, a user's own) stay.
    """
    if type(cache) is DynamicCache and not cache.offloading and cache.get_seq_length() == 0:
        return PreallocatedCache(config, room)
    return cache

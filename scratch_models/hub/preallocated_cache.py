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
        self._rooms: tuple[Tensor, Tensor] | None = None

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
        if self._rooms is None or not self._fits(total, key_states):
            self._rooms = self._make_rooms(old, total, key_states, value_states)
        filled = []
        for room, new in zip(self._rooms, (key_states, value_states), strict=True):
            room[:, :, old:total] = new
            filled.append(room[:, :, :total])
        self.keys, self.values = filled
        return self.keys, self.values

    def _fits(self, total: int, new: Tensor) -> bool:
        """Whether what is remembered lies in the room (it was not re-ordered), with enough left."""
        assert self._rooms is not None
        assert self.keys is not None
        room = self._rooms[0]
        in_place = self.keys.numel() == 0 or self.keys.data_ptr() == room.data_ptr()
        return in_place and room.shape[0] == new.shape[0] and room.shape[-2] >= total

    def _make_rooms(
        self, old: int, total: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        length = self.room if total <= self.room else 2 * total
        rooms = []
        for new, kept in ((keys, self.keys), (values, self.values)):
            room = new.new_empty(*new.shape[:-2], length, new.shape[-1])
            if old and kept is not None:
                room[:, :, :old] = kept
            rooms.append(room)
        return rooms[0], rooms[1]


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

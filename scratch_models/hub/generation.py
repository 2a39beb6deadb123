"""`generate()` for models that have a vector for so many positions and no more."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Tensor
from transformers import GenerationConfig, GenerationMixin

from scratch_models.hub.preallocated_cache import with_room


class LimitedPositionsGenerationMixin(GenerationMixin):
    """transformers' `generate()`, stopping where the positions of a decoder end.

    transformers itself goes on and dies with an IndexError (on a GPU: takes the process along). The
    token that is generated last is not read again and needs no position, so a model with 1024 of
    them can give a text of 1025 tokens.
    """

    def _prepare_position_ids_for_generation(
        self, inputs_tensor: Tensor, model_kwargs: dict[str, Any]
    ) -> Tensor:
        position_ids: Tensor = super()._prepare_position_ids_for_generation(
            inputs_tensor, model_kwargs
        )
        tokens, positions = int(position_ids.max()) + 1, self.config.max_position_embeddings
        if tokens > positions:
            raise ValueError(
                f"the prompt has {tokens} tokens but the model has positions for {positions} only "
                f"(max_position_embeddings): truncate it to at most {positions} tokens."
            )
        return position_ids

    def _prepare_cache_for_generation(
        self,
        generation_config: GenerationConfig,
        model_kwargs: dict[str, Any],
        generation_mode: Any,
        batch_size: int,
        max_cache_length: int,
    ) -> Any:
        # The first moment at which both the prompt and the length asked for are known. Padding
        # takes no position, so it is the position of the last token that counts.
        position_ids = model_kwargs["position_ids"]
        positions = self.config.max_position_embeddings
        free = positions - 1 - int(position_ids.max())
        most, asked = position_ids.shape[-1] + free + 1, max_cache_length + 1
        if asked > most:
            warnings.warn(
                f"generation stops at {most} tokens, prompt included, not at the {asked} asked "
                f"for: the model has {positions} positions (max_position_embeddings).",
                stacklevel=3,
            )
            generation_config.max_length -= asked - most
            max_cache_length = most - 1
        super()._prepare_cache_for_generation(
            generation_config, model_kwargs, generation_mode, batch_size, max_cache_length
        )
        cache = model_kwargs.get("cache")
        # A cache that the caller brought is the caller's.
        if cache is not None and not getattr(cache, "_is_user_defined", False):
            model_kwargs["cache"] = with_room(cache, self.config, max_cache_length)

"""From token ids to vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scratch_models.layers.positions import LearnedPositions


class TokenPositionSegmentEmbeddings(nn.Module):
    """The sum of token, segment and position embeddings (BERT, §3 and figure 2), normalised.

    Args:
        token: one vector a vocabulary entry.
        position: one vector a position.
        segment: one vector a segment ("sentence A", "sentence B").
        norm: layer norm over the sum.
        dropout: probability, after the norm.
    """

    def __init__(
        self,
        token: nn.Embedding,
        position: LearnedPositions,
        segment: nn.Embedding,
        norm: nn.Module,
        dropout: float,
    ) -> None:
        super().__init__()
        self.token = token
        self.position = position
        self.segment = segment
        self.norm = norm
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        input_ids: Tensor | None = None,
        segment_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> Tensor:
        """Embed tokens, or add positions and segments to `inputs_embeds` that stand for them.

        Args:
            input_ids: [batch, length]; exactly one of this and `inputs_embeds`.
            segment_ids: [batch, length]; None is segment 0 throughout.
            position_ids: [1 or batch, length]; None is 0…length-1.
            inputs_embeds: [batch, length, hidden_size] in place of the token embeddings.

        Returns:
            [batch, length, hidden_size].

        Raises:
            ValueError: without or with two inputs, or with more tokens than positions.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("pass exactly one of input_ids and inputs_embeds.")
        tokens = self.token(input_ids) if inputs_embeds is None else inputs_embeds
        batch, length = tokens.shape[:2]
        positions = self.position(length, position_ids)
        if segment_ids is None:
            segment_ids = torch.zeros(batch, length, dtype=torch.long, device=tokens.device)
        return self.dropout(self.norm(tokens + self.segment(segment_ids) + positions))

"""Two small networks that say something at every place of a sequence, of equal size.

A Transformer put together from `scratch_models.layers`, and torch's own LSTM: both take token ids
and give logits, so that nothing but the network differs between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F
from transformers import GPT2Config

from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.cached_attention import CausalSelfAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.masks import bidirectional_mask, causal_mask
from scratch_models.layers.stack import EncoderLayer, EncoderStack, pre_norm
from toolkit.modeling import count_parameters

Sees = Literal["all", "past"]


class TransformerTagger(nn.Module):
    """Embed tokens, add positions, N Transformer layers (norm first), logits at every place.

    Args:
        vocabulary: token ids.
        classes: logits at a place.
        hidden_size: width; the feed-forward part is four times as wide.
        layers: N.
        heads: they divide the width.
        position: called with a length, gives [1, length, hidden_size] (`SinusoidalPositions`,
            `LearnedPositions`); None: the network is told no positions.
        sees: whether a place sees the whole sequence or the past and itself.
    """

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        *,
        hidden_size: int,
        layers: int,
        heads: int,
        position: nn.Module | None,
        sees: Sees,
    ) -> None:
        super().__init__()
        self.config = GPT2Config(attn_implementation="sdpa")  # names the kernel, no more
        self.mask = causal_mask if sees == "past" else bidirectional_mask
        self.token = nn.Embedding(vocabulary, hidden_size)
        self.position = position
        self.layers = EncoderStack(
            [self._layer(hidden_size, heads, sees, index) for index in range(layers)]
        )
        self.norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, classes)

    def _layer(self, hidden_size: int, heads: int, sees: Sees, index: int) -> EncoderLayer:
        attention = (
            CausalSelfAttention(hidden_size, heads, config=self.config, layer_index=index)
            if sees == "past"
            else MultiHeadAttention(hidden_size, heads, config=self.config)
        )
        return EncoderLayer(
            attention=attention,
            attention_norm=nn.LayerNorm(hidden_size),
            feed_forward=FeedForward(hidden_size, 4 * hidden_size, F.gelu),
            feed_forward_norm=nn.LayerNorm(hidden_size),
            dropout=0.0,
            residual=pre_norm,
        )

    def forward(self, input_ids: Tensor) -> Tensor:
        """[batch, length] -> logits [batch, length, classes]."""
        hidden_states = self.token(input_ids)
        if self.position is not None:
            hidden_states = hidden_states + self.position(input_ids.shape[1])
        mask = self.mask(self.config, hidden_states, None)
        return self.head(self.norm(self.layers(hidden_states, mask)))


class LSTMTagger(nn.Module):
    """Embed tokens, an LSTM (Hochreiter and Schmidhuber 1997), logits at every place.

    Args:
        vocabulary: token ids.
        classes: logits at a place.
        embedding_size: width of the token embedding.
        hidden_size: width of the LSTM.
        layers: LSTM layers.
    """

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        *,
        embedding_size: int,
        hidden_size: int,
        layers: int = 1,
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, embedding_size)
        self.lstm = nn.LSTM(embedding_size, hidden_size, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden_size, classes)

    def forward(self, input_ids: Tensor) -> Tensor:
        """[batch, length] -> logits [batch, length, classes]."""
        return self.head(self.lstm(self.token(input_ids))[0])


def trained_size(model: nn.Module) -> int:
    """Parameters that training changes: fixed positions do not count."""
    return count_parameters(model)["parameters_trained"]


def width_of_size(build: Callable[[int], nn.Module], wanted: int, widest: int = 4096) -> int:
    """The width whose model has the number of parameters that is nearest to the one wanted.

    Args:
        build: a model of a width; it grows with the width.
        wanted: parameters that training changes.
        widest: no width beyond is tried.

    Raises:
        ValueError: even the widest is too small.
    """
    low, high = 1, widest
    if trained_size(build(high)) < wanted:
        raise ValueError(f"width {widest} has less than {wanted:,} parameters")
    while low < high:  # the narrowest that has at least as many
        middle = (low + high) // 2
        low, high = (low, middle) if trained_size(build(middle)) >= wanted else (middle + 1, high)
    near = [width for width in (low - 1, low) if width >= 1]
    return min(near, key=lambda width: abs(trained_size(build(width)) - wanted))

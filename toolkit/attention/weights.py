"""The attention weights of one input: every layer and head, of any model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from scratch_models import ScratchPreTrainedModel
from toolkit.attention.tokens import Tokens
from toolkit.errors import UserError

Kind = Literal["encoder", "decoder", "cross"]
"""Who looks at whom: all at all (BERT, ViT), each at what stands before it and at itself (GPT-2,
what a translator writes), or what is written at what is translated."""

_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class AttentionMaps:
    """How much every query takes from every key, in one attention of a model.

    Args:
        kind: which attention.
        weights: float32 [layers, heads, queries, keys] on the CPU; the rows sum to 1.
        queries: the tokens that attend.
        keys: those that are attended to; the same but for `cross`.

    Raises:
        ValueError: weights that do not fit the tokens, or rows that do not sum to 1.
    """

    kind: Kind
    weights: Tensor
    queries: Tokens
    keys: Tokens

    def __post_init__(self) -> None:
        if self.weights.ndim != 4 or self.weights.shape[2:] != (len(self.queries), len(self.keys)):
            raise ValueError(
                f"weights of the shape {tuple(self.weights.shape)} for {len(self.queries)} queries "
                f"and {len(self.keys)} keys"
            )
        worst = float((self.weights.double().sum(-1) - 1).abs().max())
        if not worst <= _SUM_TOLERANCE:  # NaN is no smaller
            raise ValueError(f"weights of a query differ by {worst:.3g} from a sum of 1")

    @property
    def layers(self) -> int:
        """How many."""
        return self.weights.shape[0]

    @property
    def heads(self) -> int:
        """Of every layer."""
        return self.weights.shape[1]


def collect(
    model: nn.Module,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    target: Tokens | None = None,
    written: Tokens | None = None,
) -> dict[Kind, AttentionMaps]:
    """The attention of a model to one input, from one pass without dropout or gradients.

    HuggingFace's classes compute it with their `eager` attention, the only one that returns
    weights, and get back what they had; ours return weights whatever the implementation. The mode
    (train, eval) stays as it was.

    Args:
        model: with any head or none, ours, HuggingFace's, or an adapter's.
        inputs: of its `forward`, a batch of one row without padding: `input_ids` (and
            `token_type_ids`), `pixel_values`; with a decoder `decoder_input_ids` too.
        tokens: labels of the row.
        target: labels of `decoder_input_ids`.
        written: labels of what the decoder writes at each of its places, the queries of `cross`;
            None: those of `target`, what it reads there.

    Returns:
        `encoder` or `decoder`; of an encoder-decoder `encoder`, `decoder` and `cross`.

    Raises:
        UserError: a model without attention, or whose attention is no table of all queries by all
            keys.
    """
    found = stacked_weights(model, inputs)
    return with_labels(type(model).__name__, found, tokens, target, written)


def with_labels(
    name: str,
    found: Mapping[Kind, Tensor],
    tokens: Tokens,
    target: Tokens | None = None,
    written: Tokens | None = None,
) -> dict[Kind, AttentionMaps]:
    """The first row of `stacked_weights`; arguments and errors as of `collect`.

    Args:
        name: of the model, in messages.
    """
    decoder = tokens if target is None else target
    sides: dict[Kind, tuple[Tokens, Tokens]] = {
        "encoder": (tokens, tokens),
        "decoder": (decoder, decoder),
        "cross": (decoder if written is None else written, tokens),
    }
    maps: dict[Kind, AttentionMaps] = {}
    for kind, weights in found.items():
        queries, keys = sides[kind]
        if weights.shape[3:] != (len(queries), len(keys)):
            raise UserError(
                f"{name}: its attention is {weights.shape[3]} queries by {weights.shape[4]} keys "
                f"where the input has {len(queries)} and {len(keys)} tokens. Only attention "
                "between all tokens can be shown."
            )
        try:
            maps[kind] = AttentionMaps(kind, weights[:, 0], queries, keys)
        except ValueError as error:
            raise UserError(
                f"{name}, {kind} attention: {error}. Only shares of the tokens can be shown; some "
                "models (gpt-oss) give a part to a sink that is no token."
            ) from error
    return maps


def stacked_weights(model: nn.Module, inputs: Mapping[str, Any]) -> dict[Kind, Tensor]:
    """The same of a batch of several rows, without labels and unchecked.

    Padding keeps whatever rows the model gives it: numbers without a meaning, or zeros.

    Returns:
        By kind float32 [layers, batch, heads, queries, keys] on the CPU.

    Raises:
        UserError: as `collect`.
    """
    bare = _without_adapter(model)
    device = next(bare.parameters()).device
    moved = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in inputs.items()}
    with _returning_weights(bare), torch.inference_mode():
        try:
            outputs = model(**moved, output_attentions=True, return_dict=True)
        except TypeError as error:
            if "output_attentions" not in str(error):
                raise
            raise _without_attention(model) from error
    if getattr(outputs, "encoder_attentions", None) or getattr(outputs, "cross_attentions", None):
        given = {
            "encoder": outputs.encoder_attentions,
            "decoder": outputs.decoder_attentions,
            "cross": outputs.cross_attentions,
        }
        return {kind: _stack(model, layers) for kind, layers in given.items()}  # type: ignore[misc]
    weights = _stack(model, getattr(outputs, "attentions", None))
    return {"decoder" if _looks_back_only(weights) else "encoder": weights}


def _stack(model: nn.Module, layers: Sequence[Tensor | None] | None) -> Tensor:
    """[layers, batch, heads, queries, keys] of what the layers returned; some may have none."""
    found = [layer.detach().float().cpu() for layer in layers or () if layer is not None]
    if not found:
        raise _without_attention(model)
    shapes = {tuple(layer.shape) for layer in found}
    if len(shapes) > 1 or found[0].ndim != 4:
        named = ", ".join(map(str, sorted(shapes)))
        raise UserError(
            f"{type(model).__name__}: its layers attend in different ways (weights of the shapes "
            f"{named}); only layers with the same heads and tokens can be shown together."
        )
    return torch.stack(found)


def _without_attention(model: nn.Module) -> UserError:
    return UserError(
        f"{type(model).__name__} returns no attention weights: it has no attention, as an LSTM or "
        "a ResNet, or computes it without them. Give a Transformer, such as BERT, GPT-2 or ViT."
    )


def _looks_back_only(weights: Tensor) -> bool:
    """Whether nothing is taken from later tokens."""
    return weights.shape[-2] == weights.shape[-1] and not bool(weights.triu(1).any())


def _without_adapter(model: Any) -> Any:
    """The model that an adapter is on, its layers with the updates still in them."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextmanager
def _returning_weights(model: Any) -> Iterator[None]:
    """Let a model return its weights inside the block, without dropout."""
    was_training = model.training
    before = getattr(model.config, "_attn_implementation", None)
    # sdpa and the flash kernels never build the weights: transformers then returns an empty tuple.
    switches = not isinstance(model, ScratchPreTrainedModel) and before not in (None, "eager")
    model.eval()
    try:
        if switches:
            model.set_attn_implementation("eager")
        yield
    finally:
        if switches:
            model.set_attn_implementation(before)
        model.train(was_training)

"""Floating point operations of what torch's own counter leaves out, or counts otherwise.

As there: a multiplication and an addition are two, other work (norms, softmax, activations) is
none, and attention is counted whole, whatever a mask hides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import torch

aten = torch.ops.aten
Shape = Sequence[int]


def attention(query: Shape, key: Shape, value: Shape, *args: Any, **kwargs: Any) -> int:
    """QK^T and the weights times V.

    Args:
        query: [batch, heads, queries, head_dim].
        key, value: [batch, heads, keys, head_dim].
    """
    scores = prod(query[:-1]) * key[-2]
    return 2 * scores * (query[-1] + value[-1])


def attention_backward(
    grad: Shape, query: Shape, key: Shape, value: Shape, *args: Any, **kwargs: Any
) -> int:
    """QK^T again, and the gradients of weights, V, Q and K."""
    scores = prod(query[:-1]) * key[-2]
    return 2 * scores * (3 * query[-1] + 2 * value[-1])


def recurrent_layer(
    inputs: Shape, input_weight: Shape, hidden_weight: Shape, *args: Any, **kwargs: Any
) -> int:
    """One layer in one direction: both matrices once for each position.

    Args:
        inputs: [time, batch, input_size].
        input_weight: [gates * hidden_size, input_size], and likewise `hidden_weight`.
    """
    return 2 * prod(inputs[:-1]) * (prod(input_weight) + prod(hidden_weight))


def recurrent_layer_backward(*args: Any, **kwargs: Any) -> int:
    """The gradients of what the matrices are multiplied with, and of the matrices themselves."""
    return 2 * recurrent_layer(*args)


def cudnn_recurrent(inputs: Shape, weights: Sequence[Shape], *args: Any, **kwargs: Any) -> int:
    """All layers and directions.

    Args:
        inputs: [time, batch, input_size] or [positions, input_size] of packed sequences.
        weights: matrices [gates * hidden_size, ...], and biases, which are vectors.
    """
    return 2 * prod(inputs[:-1]) * sum(prod(weight) for weight in weights if len(weight) == 2)


def cudnn_recurrent_backward(*args: Any, **kwargs: Any) -> int:
    """The last argument says whether the gradients of the weights are wanted too."""
    wanted = args[-1]
    return cudnn_recurrent(*args) * (2 if wanted[3] else 1)


def convolution_backward(
    grad: Shape,
    inputs: Shape,
    weight: Shape,
    biases: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    wanted: Sequence[bool],
    **kwargs: Any,
) -> int:
    """The gradients of inputs and weights, as far as they are `wanted`: each costs a convolution.

    torch counts that of the weights without dividing by the number of groups.

    Args:
        inputs: [batch, channels, *places].
        weight: [channels, channels of a group, *kernel].
    """
    places = (inputs if transposed else grad)[2:]
    return 2 * inputs[0] * prod(places) * prod(weight) * (bool(wanted[0]) + bool(wanted[1]))


def matrix_vector(matrix: Shape, vector: Shape, *args: Any, **kwargs: Any) -> int:
    """[rows, columns] times [columns]."""
    return 2 * prod(matrix)


def matrix_vector_added(added: Shape, matrix: Shape, *args: Any, **kwargs: Any) -> int:
    """Likewise, with a vector added."""
    return 2 * prod(matrix)


def chunked_cross_entropy(states: Shape, weight: Shape, *args: Any, **kwargs: Any) -> int:
    """Logits and, where they are wanted, the gradients that are made together with them.

    Args:
        states: [tokens, hidden_size].
        weight: [vocabulary, hidden_size].
    """
    states_wanted, weight_wanted, _ = args[-3:]
    return 2 * prod(states) * weight[0] * (1 + bool(states_wanted) + bool(weight_wanted))


FORMULAS: dict[Any, Callable[..., int]] = {
    aten._scaled_dot_product_flash_attention_for_cpu: attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
    aten.mkldnn_rnn_layer: recurrent_layer,
    aten.mkldnn_rnn_layer_backward: recurrent_layer_backward,
    aten._cudnn_rnn: cudnn_recurrent,
    aten._cudnn_rnn_backward: cudnn_recurrent_backward,
    aten.convolution_backward: convolution_backward,
    aten.mv: matrix_vector,
    aten.addmv: matrix_vector_added,
}
"""By operator; its formula is given shapes in place of tensors."""

with suppress(ImportError):  # of older versions of PyTorch
    import torch.nn.modules.linear_cross_entropy  # registers the operator

    FORMULAS[torch.ops.torch_nn._linear_cross_entropy_batch_chunked] = chunked_cross_entropy

_WITHOUT_FORMULA = (
    "_addmm_activation", "_cdist_forward", "_fft_c2c", "_fft_c2r", "_fft_r2c", "_grouped_mm",
    "_int_mm", "_lstm_mps", "_native_multi_head_attention",
    "_scaled_dot_product_attention_math_for_mps",
    "_scaled_grouped_mm", "_sparse_addmm", "_sparse_mm", "_sparse_semi_structured_linear",
    "_transformer_encoder_layer_fwd", "_trilinear", "_weight_int4pack_mm", "_weight_int8pack_mm",
    "addbmm", "grid_sampler_2d", "grid_sampler_3d", "miopen_rnn", "mps_linear",
)  # fmt: skip
UNCOUNTED = {getattr(aten, name) for name in _WITHOUT_FORMULA if hasattr(aten, name)}
"""Operators of torch that multiply much and have no formula: with one of them nothing is known."""

FREE_NAMESPACES = ("aten", "prim", "prims", "profiler", "c10d", "_c10d_functional")
"""Operators of others may do anything: without a formula nothing is known."""

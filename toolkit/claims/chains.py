"""How much of a computation has to wait: the longest chain of products of matrices."""

from __future__ import annotations

import re
from typing import Any

from torch import Tensor

_PRODUCT = re.compile(r"(Addmm|Mm|Bmm|Baddbmm)Backward\d+")


def longest_chain(output: Tensor) -> int:
    """Products of matrices that wait for one another on the way to `output`, at most.

    Read from the graph that autograd keeps, so an operation that hides its products (torch's fused
    LSTM, fused attention) counts for none: compute with such kernels off.

    Raises:
        ValueError: `output` keeps no graph.
    """
    if output.grad_fn is None:
        raise ValueError("the tensor was computed without gradients: it keeps no graph")
    longest: dict[Any, int] = {}
    waiting = [output.grad_fn]
    while waiting:  # without recursion: a chain may be thousands long
        node = waiting[-1]
        before = [found for found, _ in node.next_functions if found is not None]
        unseen = [found for found in before if found not in longest]
        if unseen:
            waiting += unseen
            continue
        waiting.pop()
        own = int(_PRODUCT.fullmatch(node.name()) is not None)
        longest[node] = own + max((longest[found] for found in before), default=0)
    return longest[output.grad_fn]

"""Claim 5: attention trains in parallel, a recurrent network one token after the other."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from scipy.stats import binom
from torch import Tensor, nn
from torch.nn import functional as F

from scratch_models.layers.positions import SinusoidalPositions
from toolkit.bench.interleaved import Spread, run_once, time_in_turn
from toolkit.claims.chains import longest_chain
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.claims.points import above, verdict_of
from toolkit.claims.sequence_models import (
    LSTMTagger,
    TransformerTagger,
    trained_size,
    width_of_size,
)
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Figure, Paragraph, Table
from toolkit.stats import CONFIDENCE

LSTM, TRANSFORMER = "LSTM", "Transformer"
KINDS = (LSTM, TRANSFORMER)
VOCABULARY = 256

Seconds = Mapping[str, Mapping[int, Sequence[float]]]
"""By network and length, one number a round."""


@dataclass(frozen=True)
class Sizes:
    """What is timed."""

    lengths: Sequence[int]
    tokens: int
    hidden_size: int
    layers: int
    heads: int
    rounds: int


FULL = Sizes((16, 32, 64, 128, 256, 512, 1024), 2048, 128, 2, 4, 15)
QUICK = Sizes((4, 16), 32, 16, 1, 2, 3)


def build(kind: str, sizes: Sizes) -> TransformerTagger | LSTMTagger:
    """A model of language of a kind; the LSTM as wide as makes it as large as the Transformer."""
    width = sizes.hidden_size
    transformer = TransformerTagger(
        VOCABULARY, VOCABULARY, hidden_size=width, layers=sizes.layers, heads=sizes.heads,
        position=SinusoidalPositions(max(sizes.lengths), width), sees="past",
    )  # fmt: skip
    if kind == TRANSFORMER:
        return transformer

    def lstm(hidden_size: int) -> LSTMTagger:
        return LSTMTagger(VOCABULARY, VOCABULARY, embedding_size=width, hidden_size=hidden_size)

    return lstm(width_of_size(lstm, trained_size(transformer), widest=16 * width))


def next_token_loss(model: nn.Module, input_ids: Tensor) -> Tensor:
    """Mean cross-entropy of every next token; input_ids [batch, length]."""
    logits = model(input_ids)[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), input_ids[:, 1:].flatten())


def step(model: nn.Module, optimizer: torch.optim.Optimizer, input_ids: Tensor) -> None:
    """One whole step of training: forward, backward, update."""
    optimizer.zero_grad()
    next_token_loss(model, input_ids).backward()
    optimizer.step()


def products_in_turn(model: TransformerTagger | LSTMTagger, length: int) -> int:
    """The longest chain of products of matrices in the forward pass of one sequence."""
    input_ids = torch.zeros(1, length, dtype=torch.long)
    if isinstance(model, LSTMTagger):
        with warnings.catch_warnings(action="ignore"), torch.backends.mkldnn.flags(enabled=False):
            # oneDNN's LSTM is one operation. (torch warns of a GPU that is not there.)
            return longest_chain(model(input_ids))
    kernel = model.config._attn_implementation
    model.config._attn_implementation = "scratch"  # written out: the others are one operation
    try:
        return longest_chain(model(input_ids))
    finally:
        model.config._attn_implementation = kernel


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Compute with so many threads in the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def time_steps(
    models: Mapping[str, nn.Module], sizes: Sizes, seed: int, advance: Callable[[int], None]
) -> dict[str, dict[int, list[float]]]:
    """Seconds of a step of every network at every length, in turn.

    Args:
        advance: called after every step that was timed.
    """
    generator = torch.Generator().manual_seed(seed)
    steps: dict[str, Callable[[], None]] = {}
    for length in sizes.lengths:
        batch = (sizes.tokens // length, length)
        input_ids = torch.randint(VOCABULARY, batch, generator=generator)
        for kind, model in models.items():
            optimizer = torch.optim.AdamW(
                [weight for weight in model.parameters() if weight.requires_grad], lr=1e-4
            )
            steps[f"{kind} {length}"] = _bound(model, optimizer, input_ids)
    run_once(steps)
    seconds = time_in_turn(steps, sizes.rounds, advance)
    return {
        kind: {length: seconds[f"{kind} {length}"] for length in sizes.lengths} for kind in models
    }


def _bound(
    model: nn.Module, optimizer: torch.optim.Optimizer, input_ids: Tensor
) -> Callable[[], None]:
    return lambda: step(model, optimizer, input_ids)


def by_round(first: Sequence[float], second: Sequence[float]) -> Spread:
    """first / second: median over rounds, and its interval."""
    return median_interval([a / b for a, b in zip(first, second, strict=True)])


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Spread:
    """The median and bounds that hold the true one, whatever the distribution (order statistics).

    As many values as the binomial distribution allows are left out at either end; of less than six
    none, so that the bounds are the range and hold less than 95%.
    """
    ordered = sorted(values)
    # The true median lies below all but k values with the chance that k coins of n show heads, or
    # fewer; and above them with the same.
    left_out = 0
    while binom.cdf(left_out + 1, len(ordered), 0.5) <= (1 - confidence) / 2:
        left_out += 1
    return Spread(statistics.median(ordered), ordered[left_out], ordered[-1 - left_out])


def growth(seconds: Mapping[int, Sequence[float]]) -> list[float]:
    """Time at the longest length over that at the shortest, by round."""
    longest, shortest = max(seconds), min(seconds)
    return [a / b for a, b in zip(seconds[longest], seconds[shortest], strict=True)]


def decide(slower: Spread, grows: Spread) -> Verdict:
    """The verdict by the rule of `CLAIM.test`, from two numbers that are to be above 1.

    Args:
        slower: LSTM over Transformer at the longest length, by round.
        grows: growth of the LSTM's time over that of the Transformer's.
    """
    return verdict_of([above(one.lowest, one.highest, 1.0) for one in (slower, grows)])


def measure(measuring: Measuring) -> Finding:
    """Time both networks at every length, with all threads and with one, and count chains."""
    sizes = QUICK if measuring.quick else FULL
    torch.manual_seed(measuring.seed)
    models = {kind: build(kind, sizes) for kind in KINDS}
    measuring.advance(0.0, "counting chains")
    chains = {
        kind: {length: products_in_turn(model, length) for length in sizes.lengths}
        for kind, model in models.items()
    }
    numbers = sorted({1, torch.get_num_threads()})
    total, done = len(numbers) * sizes.rounds * len(KINDS) * len(sizes.lengths), 0
    timed: dict[int, dict[str, dict[int, list[float]]]] = {}

    def advance(count: int) -> None:
        nonlocal done
        done += count
        measuring.advance(done / total, "steps of both in turn")

    for number in numbers:
        with threads(number):
            timed[number] = time_steps(models, sizes, measuring.seed, advance)
    return report(sizes, chains, timed)


def report(
    sizes: Sizes, chains: Mapping[str, Mapping[int, int]], timed: Mapping[int, Seconds]
) -> Finding:
    """What was found.

    Args:
        chains: products in turn, by network and length.
        timed: by number of threads; the largest one decides.
    """
    number = max(timed)
    seconds, longest = timed[number], max(sizes.lengths)
    slower = by_round(seconds[LSTM][longest], seconds[TRANSFORMER][longest])
    growths = {kind: growth(seconds[kind]) for kind in KINDS}
    grows = by_round(growths[LSTM], growths[TRANSFORMER])
    chain = " and ".join(f"{chains[kind][longest]:,} in the {kind}" for kind in KINDS)
    grown = " and ".join(
        f"{statistics.median(growths[kind]):.2f} times in the {kind}" for kind in KINDS
    )
    models = {kind: build(kind, sizes) for kind in KINDS}
    return Finding(
        verdict=decide(slower, grows),
        sentence=(
            f"At {longest:,} tokens {chain} products of matrices have to wait for one another "
            f"(counted). A step of training then takes the LSTM {_range(slower)} times as long as "
            f"the Transformer on this CPU ({_threads(number)}); from {min(sizes.lengths)} to "
            f"{longest:,} tokens, with as many in a batch, time grows {grown} (ratio "
            f"{_range(grows)})."
        ),
        setting=_setting(sizes, models, number),
        blocks=_blocks(sizes, chains, timed),
        data={
            "lengths": list(sizes.lengths),
            "tokens_in_a_batch": sizes.tokens,
            "parameters": {kind: trained_size(model) for kind, model in models.items()},
            "products_in_turn": {kind: list(found.values()) for kind, found in chains.items()},
            "seconds": {
                f"{count} threads": {kind: list(one.values()) for kind, one in found.items()}
                for count, found in timed.items()
            },
            "lstm_over_transformer": _values(slower),
            "growth_of_lstm_over_growth_of_transformer": _values(grows),
        },
        number=f"LSTM / Transformer at {longest:,} tokens: {_range(slower)} times the time",
    )


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def _range(spread: Spread) -> str:
    return f"{spread.median:.2f} [{spread.lowest:.2f}, {spread.highest:.2f}]"


def _values(spread: Spread) -> dict[str, float]:
    return {"median": spread.median, "lowest": spread.lowest, "highest": spread.highest}


def _setting(sizes: Sizes, models: Mapping[str, nn.Module], number: int) -> dict[str, str]:
    lstm = models[LSTM]
    assert isinstance(lstm, LSTMTagger)
    return {
        "Transformer": f"decoder, layers: {sizes.layers}, width {sizes.hidden_size}, "
        f"{sizes.heads} heads, {trained_size(models[TRANSFORMER]):,} parameters, PyTorch's fused "
        "attention",
        "LSTM": f"PyTorch's own (oneDNN on a CPU), 1 layer of width {lstm.lstm.hidden_size}, "
        f"{trained_size(lstm):,} parameters",
        "a step": f"forward, backward and AdamW's update of a model of language with {VOCABULARY} "
        f"tokens, float32; {sizes.tokens:,} tokens in every batch, the longer the fewer sequences",
        "time": f"{sizes.rounds} rounds, both networks and all lengths in turn, order reversed "
        "from round to round; numbers in brackets are 95% intervals of the median over rounds "
        "(order statistics)",
        "threads": f"{number} for the verdict",
        "what it does not tell": "a CPU of few cores is busy with one product of matrices at a "
        "time, so that a long chain costs it little. A GPU computes thousands of rows at once and "
        "waits at every step of a chain; it was not measured here.",
    }


def _blocks(
    sizes: Sizes, chains: Mapping[str, Mapping[int, int]], timed: Mapping[int, Seconds]
) -> list[Block]:
    number = max(timed)

    def milliseconds(kind: str, count: int, length: int) -> Spread:
        return median_interval([1000 * value for value in timed[count][kind][length]])

    series = []
    for kind in KINDS:
        spreads = [milliseconds(kind, number, length) for length in sizes.lengths]
        series.append(
            Series(
                kind, sizes.lengths, [one.median for one in spreads],
                [one.lowest for one in spreads], [one.highest for one in spreads],
            )
        )  # fmt: skip
    rows = [
        [
            f"{length:,}",
            *(f"{chains[kind][length]:,}" for kind in KINDS),
            *(
                f"{milliseconds(kind, count, length).median:.1f}"
                for count in sorted(timed)
                for kind in KINDS
            ),
        ]
        for length in sizes.lengths
    ]
    header = [
        "tokens of a sequence",
        *(f"{kind}: products in turn" for kind in KINDS),
        *(f"{kind}: ms, {_threads(count)}" for count in sorted(timed) for kind in KINDS),
    ]
    return [
        Figure(
            "parallel",
            lambda: line_plot(series, "tokens of a sequence", "ms a step", log_x=True),
            "Time of a step of training against the length of sequences, LSTM and Transformer",
            f"{sizes.tokens:,} tokens in every batch, {_threads(number)}. Bars are 95% "
            "intervals of the median over rounds.",
        ),
        Table(header, rows, numeric=range(1, len(header))),
        Paragraph(
            "Products in turn: the longest chain of products of matrices that wait for one another "
            "in the forward pass, read from PyTorch's graph. Times are medians over rounds.",
            "caption",
        ),
    ]


CLAIM = Claim(
    number=5,
    name="parallel",
    statement="Attention trains in parallel, a recurrent network one token after the other",
    source="Vaswani et al. 2017, “Attention Is All You Need” (arXiv:1706.03762), sections 1 and 4, "
    "table 1 (sequential operations)",
    test="A step of training of an LSTM and of a Transformer of equal size (within 2%) is timed "
    "with the same number of tokens in every batch and sequences of growing length, in turn, by "
    "median. For the claim speak: at the longest the LSTM takes more time than the Transformer, "
    "and from the shortest to the longest its time grows by more; each with the whole 95% interval "
    "of the median ratio over rounds above 1. One of the two: in part. Against it speaks that "
    "neither interval goes above 1. (The chain of products that wait for one another is counted "
    "beside it and decides nothing: it is the reason for the claim, not its result.)",
    measure=measure,
)

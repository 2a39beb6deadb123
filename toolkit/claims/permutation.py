"""Claim 2: without positions the encoder cannot tell order; with them it can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import torch
from torch import Tensor
from transformers import BertConfig

from scratch_models import ScratchBertModel
from scratch_models.layers.positions import interleaved_sinusoids
from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.plots import Series, line_plot
from toolkit.report.blocks import Block, Cell, Figure, Paragraph, Table

Model = Callable[[Tensor], Tensor]

ROUNDING, CLEAR = 1e-10, 1e-3
"""Shares of the largest output: below the first is rounding (float64), above the second a
difference that anybody sees."""
NONE, LEARNED, SINUSOIDAL, CAUSAL = (
    "no positions", "learned positions", "sinusoidal positions", "no positions, causal mask",
)  # fmt: skip
VOCABULARY, WIDTH, HEADS, LAYERS, SHORT = 100, 32, 4, 3, 5


@dataclass(frozen=True)
class Sizes:
    """How much is permuted: `moved` tokens of `length`, `draws` permutations of each number."""

    length: int
    moved: Sequence[int]
    draws: int
    models: int


FULL, QUICK = Sizes(64, (2, 4, 8, 16, 32, 64), 20, 3), Sizes(8, (2, 8), 3, 1)


def differences(model: Model, ids: Tensor, orders: Tensor) -> list[float]:
    """max |f(Px) - P f(x)| over max |f(x)| by permutation: 0 where f is permutation-equivariant.

    Args:
        model: token ids [batch, length] -> [batch, length, …].
        ids: [length].
        orders: permutations of 0…length-1 [permutations, length].
    """
    straight, permuted = model(ids[None])[0], model(ids[orders])
    apart = (permuted - straight[orders]).abs().flatten(1).amax(dim=1)
    return [float(one) for one in apart / straight.abs().max()]


def moving(length: int, moved: int, generator: torch.Generator) -> Tensor:
    """A permutation [length] in which exactly `moved` (at least 2) places get another token."""
    places = torch.randperm(length, generator=generator)[:moved]
    order = torch.arange(length)
    order[places] = places.roll(1)  # a cycle through all of them leaves none where it was
    return order


def encoders(seed: int, length: int) -> dict[str, Model]:
    """The same random encoder without positions, with either kind, and with a causal mask."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=4 * WIDTH, max_position_embeddings=length,
        initializer_range=0.2, attn_implementation="scratch",
    )  # fmt: skip
    model = ScratchBertModel(config, add_pooling_layer=False).double().eval()
    tables = {
        NONE: torch.zeros(length, WIDTH),
        LEARNED: model.embeddings.position.weight.detach().clone(),
        SINUSOIDAL: interleaved_sinusoids(torch.arange(length), WIDTH),
    }

    def encoder(positions: str, causal: bool) -> Model:
        def encode(ids: Tensor) -> Tensor:
            mask = None
            if causal:
                ordered = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
                mask = ordered.expand(len(ids), 1, -1, -1)
            with torch.no_grad():
                model.embeddings.position.weight.copy_(tables[positions])
                states: Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
            return states

        return encode

    return {
        NONE: encoder(NONE, causal=False),
        LEARNED: encoder(LEARNED, causal=False),
        SINUSOIDAL: encoder(SINUSOIDAL, causal=False),
        CAUSAL: encoder(NONE, causal=True),
    }


def decide(found: Mapping[str, Sequence[float]]) -> Verdict:
    """By the rule of the claim, from every difference of every kind of encoder."""
    blind = max(found[NONE]) <= ROUNDING
    told = min(min(found[LEARNED]), min(found[SINUSOIDAL])) >= CLEAR
    if blind and told:
        return Verdict.HOLDS
    return Verdict.PARTLY if blind or told else Verdict.FAILS


def measure(measuring: Measuring) -> Finding:
    """Every permutation of a few tokens, and random ones of many."""
    chosen = QUICK if measuring.quick else FULL
    by_moved: dict[str, list[list[float]]] = {
        name: [[] for _ in chosen.moved] for name in (NONE, LEARNED, SINUSOIDAL, CAUSAL)
    }
    short: dict[str, list[float]] = {name: [] for name in by_moved}
    for number in range(chosen.models):
        # Seeds of models of one measurement lie far from those of the next seed.
        generator = torch.Generator().manual_seed(measuring.seed_of(number))
        ids = torch.randperm(VOCABULARY, generator=generator)[: chosen.length]
        for place, (name, model) in enumerate(
            encoders(measuring.seed_of(number), chosen.length).items()
        ):
            share = (number + place / len(by_moved)) / chosen.models
            measuring.advance(share, f"model {number + 1}: {name}")
            short[name] += differences(model, ids[:SHORT], all_orders(SHORT))
            for column, moved in zip(by_moved[name], chosen.moved, strict=True):
                orders = [moving(chosen.length, moved, generator) for _ in range(chosen.draws)]
                column += differences(model, ids, torch.stack(orders))
    together = {
        name: [*short[name], *(one for column in columns for one in column)]
        for name, columns in by_moved.items()
    }
    largest, smallest = (
        {name: extreme(values) for name, values in together.items()} for extreme in (max, min)
    )
    told = min(smallest[LEARNED], smallest[SINUSOIDAL])
    return Finding(
        verdict=decide(together),
        sentence=(
            f"Without positions the outputs of {len(together[NONE]):,} permuted inputs are the "
            f"permuted outputs, up to {largest[NONE]:.2g} of the largest (float64: sums are taken "
            f"in another order); with positions every permutation changes them, by {told:.2g} at "
            "least. A causal mask alone tells order too: without positions, by "
            f"{smallest[CAUSAL]:.1g} to {largest[CAUSAL]:.2g}."
        ),
        setting={
            "model": f"ScratchBertModel with random weights (initializer range 0.2), {LAYERS} "
            f"layers, width {WIDTH}, {HEADS} heads, float64, no dropout; "
            f"{chosen.models} draws of weights",
            "inputs": "different tokens (with equal ones a permutation may change nothing)",
            "permutations": f"all of {SHORT} tokens but the one that changes nothing; of "
            f"{chosen.length} tokens {chosen.draws} random cycles of each length "
            f"{', '.join(map(str, chosen.moved))}",
        },
        blocks=_blocks(chosen.moved, by_moved, together),
        data=_data(chosen, by_moved, short),
        number=f"largest difference {largest[NONE]:.2g} without positions, smallest {told:.2g} "
        "with",
    )


def all_orders(length: int) -> Tensor:
    """Every permutation that changes something [length! - 1, length]."""
    return torch.tensor(list(permutations(range(length)))[1:])


def _data(
    chosen: Sizes, by_moved: Mapping[str, list[list[float]]], short: Mapping[str, list[float]]
) -> dict[str, Any]:
    return {
        "tokens": chosen.length,
        "tokens_moved": list(chosen.moved),
        "difference": {
            name: {
                "largest_by_tokens_moved": [max(values) for values in by_moved[name]],
                "smallest_by_tokens_moved": [min(values) for values in by_moved[name]],
                f"largest_of_all_of_{SHORT}": max(short[name]),
                f"smallest_of_all_of_{SHORT}": min(short[name]),
            }
            for name in by_moved
        },
    }


def _blocks(
    moved: Sequence[int],
    by_moved: Mapping[str, list[list[float]]],
    together: Mapping[str, Sequence[float]],
) -> list[Block]:
    def middle(values: Sequence[float]) -> float:
        return sorted(values)[len(values) // 2]

    lines = [
        Series(
            name, moved, [middle(values) for values in columns],
            [min(values) for values in columns], [max(values) for values in columns],
        )
        for name, columns in by_moved.items()
    ]  # fmt: skip
    rows: list[list[Cell | str]] = [
        [name, f"{len(values):,}", *(f"{f(values):.2g}" for f in (min, middle, max))]
        for name, values in together.items()
    ]
    return [
        Figure(
            "permutation",
            lambda: line_plot(lines, "tokens that change place", "difference", log_x=True,
                              log_y=True),
            "How much the output of a permuted input differs from the permuted output, by the "
            "number of tokens that change place",
            "Largest difference of any output, as a share of the largest output. Points are "
            "medians, bars go from the smallest to the largest of all permutations and models.",
        ),
        Table(["encoder", "permutations", "smallest", "median", "largest"], rows,
              numeric=range(1, 5)),
        Paragraph(
            f"Differences below {ROUNDING:.0e} count as rounding, above {CLEAR:.0e} as seen.",
            "caption",
        ),
    ]  # fmt: skip


CLAIM = Claim(
    number=2,
    name="permutation",
    statement="Without positions a Transformer's encoder is permutation-equivariant; with them it "
    "is not",
    source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.5: “since our model contains no "
    "recurrence and no convolution” it needs positions to make use of order",
    test="For random encoders f and permutations P the largest |f(Px) − P f(x)| is measured as a "
    "share of the largest |f(x)|, in float64. For the claim speak both: without positions no "
    f"permutation gives more than {ROUNDING:.0e} (rounding), and with learned or sinusoidal "
    f"positions every permutation that moves a token gives at least {CLEAR:.0e}. One of the two: "
    "in part; neither: against. A causal mask without positions is measured beside it and decides "
    "nothing.",
    measure=measure,
)

"""What claims compute, against scipy, autograd, brute force and computation by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as scipy_entropy
from torch import Tensor, nn

from scratch_models.layers.attention import MultiHeadAttention
from toolkit.claims import depth, heads, permutation, quadratic, scaling
from toolkit.claims.claim import Verdict
from toolkit.claims.date_reading import Dates, accuracy, digits_of, encode, split
from toolkit.claims.exponents import Exponent, fit_exponent, slope
from toolkit.claims.head_similarity import (
    head_cka,
    head_divergence,
    input_divergence,
    js_divergence,
    linear_cka,
    recorded_outputs,
    subspace_overlap,
    without_heads,
)
from toolkit.claims.over_seeds import Spread
from toolkit.claims.points import Point, above, verdict_of
from toolkit.stats import Interval

DRAWN = torch.Generator().manual_seed(0)
SOME = torch.randn(6, 9, generator=DRAWN, dtype=torch.float64).mul(2).softmax(-1)


def test_entropy_is_scipys() -> None:
    assert torch.allclose(scaling.entropy(SOME), torch.tensor(scipy_entropy(SOME.numpy(), axis=1)))
    assert scaling.entropy(torch.tensor([1.0, 0.0])) == 0


def test_norms_of_gradients_are_autograds() -> None:
    query = torch.randn(3, 4, generator=DRAWN, dtype=torch.float64)
    key = torch.randn(5, 4, generator=DRAWN, dtype=torch.float64)
    scale = 0.7

    def weigh(one: Tensor) -> Tensor:
        return (scale * key @ one).softmax(-1)

    weights = torch.stack([weigh(one) for one in query])
    by_query = scaling.query_gradient_norm(weights, key, scale)
    by_scores = scaling.jacobian_norm(weights)
    for place, one in enumerate(query):
        jacobian = torch.autograd.functional.jacobian(weigh, one)
        assert float(by_query[place]) == pytest.approx(float(jacobian.norm()), rel=1e-9)
        scores = scale * key @ one
        jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
        assert float(by_scores[place]) == pytest.approx(float(jacobian.norm()), rel=1e-9)


def spread(mean: float, half: float) -> Spread:
    return Spread(mean, mean - half, mean + half, [mean])


@pytest.mark.parametrize(
    ("scaled", "plain", "verdict"),
    [
        ((1.0, 0.95), (1.0, 0.01), Verdict.HOLDS),
        ((1.0, 0.95), (1.0, 0.5), Verdict.PARTLY),
        ((1.0, 0.3), (1.0, 0.01), Verdict.PARTLY),
        ((1.0, 0.3), (1.0, 0.5), Verdict.FAILS),
        ((1.0, 0.8), (1.0, 0.1), Verdict.UNDECIDED),
    ],
)
def test_rule_of_scaling(
    scaled: tuple[float, float], plain: tuple[float, float], verdict: Verdict
) -> None:
    def pair(values: tuple[float, float]) -> list[Spread]:
        return [spread(value, 0.005) for value in values]

    assert scaling.decide(pair(scaled), pair(plain)) is verdict


def test_differences_of_known_functions() -> None:
    ids = torch.tensor([3, 1, 4, 5])
    orders = permutation.all_orders(4)
    assert len(orders) == 23

    def square(x: Tensor) -> Tensor:  # of each token for itself: equivariant
        return (x.double() ** 2)[..., None]

    def placed(x: Tensor) -> Tensor:  # token times its place
        return (x * torch.arange(x.shape[1]))[..., None].double()

    assert permutation.differences(square, ids, orders) == [0.0] * 23
    by_hand = []
    for order in orders:
        straight = ids * torch.arange(4)
        moved = ids[order] * torch.arange(4)
        by_hand.append(float((moved - straight[order]).abs().max() / straight.abs().max()))
    assert permutation.differences(placed, ids, orders) == pytest.approx(by_hand)
    assert min(by_hand) > 0


@pytest.mark.parametrize("moved", [2, 3, 7])
def test_cycles_move_exactly_as_many_tokens_as_asked(moved: int) -> None:
    order = permutation.moving(7, moved, torch.Generator().manual_seed(1))
    assert sorted(order.tolist()) == list(range(7))
    assert int((order != torch.arange(7)).sum()) == moved


def test_rule_of_permutations() -> None:
    blind, told = [0.0, 1e-15], [0.4, 0.01]
    kinds = (permutation.NONE, permutation.LEARNED, permutation.SINUSOIDAL)

    def rule(*values: list[float]) -> Verdict:
        return permutation.decide(dict(zip(kinds, values, strict=True)))

    assert rule(blind, told, told) is Verdict.HOLDS
    assert rule(told, told, told) is Verdict.PARTLY
    assert rule(blind, told, [0.4, 1e-5]) is Verdict.PARTLY
    assert rule(told, blind, told) is Verdict.FAILS


@pytest.mark.parametrize("exponent", [1.0, 2.0, 2.5])
def test_the_exponent_of_exact_costs(exponent: float) -> None:
    sizes = [10.0, 20.0, 50.0]
    costs = [3e-6 * size**exponent for size in sizes]
    assert slope(sizes, costs) == pytest.approx(exponent)
    found = fit_exponent(sizes, [costs] * 4)
    assert found.value == pytest.approx(exponent)
    assert (found.interval.low, found.interval.high) == pytest.approx((exponent, exponent))


def test_intervals_of_exponents_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(3)
    sizes = np.array([100.0, 200.0, 400.0, 800.0])
    held = 0
    for _ in range(60):
        rounds = sizes**2 * generator.lognormal(0, 0.1, (25, 4))
        found = fit_exponent(list(sizes), rounds.tolist())
        held += found.interval.low < 2 < found.interval.high
        assert 0.01 < found.interval.high - found.interval.low < 0.3
    assert 50 <= held <= 60  # of 57 expected


@pytest.mark.parametrize("costs", [[1.0], [1.0, 0.0], [1.0, math.nan]])
def test_costs_without_an_exponent(costs: list[float]) -> None:
    with pytest.raises(ValueError, match="costs above 0"):
        slope([1.0, 2.0][: len(costs)], costs)


def test_operations_are_those_of_the_formulas() -> None:
    n, d = 16, quadratic.WIDTH
    parts = quadratic.parts(n, torch.Generator().manual_seed(0))
    with torch.no_grad():
        counted = {name: quadratic.count(program) for name, program in parts.items()}
    assert counted[quadratic.ATTENTION] == counted[quadratic.FUSED] == 4 * n * n * d
    assert counted[quadratic.FEED_FORWARD] == 2 * 2 * n * d * 4 * d
    assert counted[quadratic.LAYER] == 24 * n * d * d + 4 * n * n * d
    assert torch.allclose(parts[quadratic.ATTENTION](), parts[quadratic.FUSED](), atol=1e-5)


def test_where_a_square_passes_a_line() -> None:
    sizes = [1.0, 10.0, 100.0]
    square, line = [x * x for x in sizes], [32 * x for x in sizes]
    assert quadratic.crossing(sizes, square, line) == pytest.approx(32)
    assert quadratic.crossing(sizes, line, line) is None
    assert quadratic.crossing(sizes, sizes, line) is None


@pytest.mark.parametrize(
    ("counted", "written_out", "fused", "verdict"),
    [
        (2.0, (1.9, 2.1), (1.85, 2.0), Verdict.HOLDS),
        (2.0, (2.3, 2.5), (1.85, 2.0), Verdict.PARTLY),
        (2.0, (2.3, 2.5), (1.1, 1.2), Verdict.FAILS),
        (2.0, (1.5, 2.5), (1.5, 2.5), Verdict.UNDECIDED),
        (1.5, (1.9, 2.1), (1.85, 2.0), Verdict.FAILS),
    ],
)
def test_rule_of_the_square(
    counted: float,
    written_out: tuple[float, float],
    fused: tuple[float, float],
    verdict: Verdict,
) -> None:
    def exponent(bounds: tuple[float, float]) -> Exponent:
        return Exponent(sum(bounds) / 2, Interval(*bounds, "made up"))

    assert quadratic.decide(counted, exponent(written_out), exponent(fused)) is verdict


def test_js_divergence_is_the_square_of_scipys_distance() -> None:
    ours = js_divergence(SOME[:3], SOME[3:])
    for place in range(3):
        theirs = jensenshannon(SOME[place].numpy(), SOME[place + 3].numpy(), base=2) ** 2
        assert float(ours[place]) == pytest.approx(theirs, abs=1e-7)
    apart = js_divergence(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    assert float(apart) == pytest.approx(1)


def test_divergences_of_heads_and_of_texts() -> None:
    one, other = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    # two texts, two heads, one place: heads differ in the first text, the first head moves
    weights = torch.stack([torch.stack([one, other]), torch.stack([other, other])])[:, :, None]
    assert head_divergence(weights) == pytest.approx(0.5)
    assert input_divergence(weights) == pytest.approx(0.5)


def test_cka_does_not_see_turns_and_is_the_centred_formula() -> None:
    a = torch.randn(20, 3, generator=DRAWN, dtype=torch.float64)
    b = torch.randn(20, 4, generator=DRAWN, dtype=torch.float64)
    turned = a @ torch.linalg.qr(torch.randn(3, 3, generator=DRAWN, dtype=torch.float64))[0] + 5
    assert linear_cka(a, turned) == pytest.approx(1)
    centre = torch.eye(20, dtype=torch.float64) - 1 / 20
    k, m = centre @ a @ a.T @ centre, centre @ b @ b.T @ centre
    assert linear_cka(a, b) == pytest.approx(float((k * m).sum() / k.norm() / m.norm()))
    assert head_cka(torch.stack([a, turned, a], dim=1)) == pytest.approx(1)


def test_overlap_is_that_of_scipys_angles() -> None:
    a = torch.randn(8, 2, generator=DRAWN, dtype=torch.float64)
    b = torch.randn(8, 2, generator=DRAWN, dtype=torch.float64)
    expected = float(np.mean(np.cos(subspace_angles(a.numpy(), b.numpy())) ** 2))
    assert subspace_overlap(a, b) == pytest.approx(expected)
    assert subspace_overlap(a, 3 * a) == pytest.approx(1)


def test_pruned_heads_say_nothing_and_come_back() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    states = torch.randn(1, 3, 8)
    whole = attention(states)[0]
    with recorded_outputs([attention]) as outputs:
        attention(states)
    said = outputs[0]
    assert said.shape == (1, 3, 2, 4)
    with without_heads(attention, [1]):
        pruned = attention(states)[0]
    first_only = said.clone()
    first_only[:, :, 1] = 0
    assert torch.allclose(pruned, attention.output(first_only.flatten(-2)), atol=1e-6)
    assert torch.equal(attention(states)[0], whole)


def test_dates_as_digits() -> None:
    assert digits_of("2064年11月22日星期六") == "20641122"
    assert digits_of("1900年1月1日") == "19000101"
    with pytest.raises(ValueError, match="no Chinese date"):
        digits_of("下午3:00")
    dates = encode([("ab", "20641122"), ("b", "19000101")])
    assert dates.ids.tolist() == [[*range(1, 9), 9, 10], [*range(1, 9), 10, 0]]
    assert dates.digits[1].tolist() == [1, 9, 0, 0, 0, 1, 0, 1]
    assert dates.vocabulary == 11


def test_no_day_is_on_both_sides() -> None:
    phrases = [(f"{style} {day}", f"190001{day:02d}") for day in range(1, 29) for style in "abc"]
    dates = encode(phrases)
    training, test = split(dates, 10, seed=1)
    days = [{tuple(one.tolist()) for one in part.digits} for part in (training, test)]
    assert not days[0] & days[1]
    assert len(training) + len(test) == len(dates)
    assert 10 <= len(test) <= 12  # whole days of three phrases


def test_all_digits_must_be_right() -> None:
    class Says(nn.Module):
        def forward(self, ids: Tensor) -> Tensor:
            return torch.eye(10)[torch.tensor([1, 9, 0, 0, 0, 1, 0, 1])].expand(len(ids), 8, 10)

    dates = encode([("a", "19000101"), ("b", "19000102")])
    assert accuracy(Says(), dates) == 0.5
    assert accuracy(Says(), Dates(dates.ids[:1], dates.digits[:1], 11)) == 1.0


def alike(divergence: float, cka: float) -> heads.Alike:
    return heads.Alike([divergence] * 2, [0.0] * 2, [cka] * 2, [0.0] * 2)


def test_rule_of_heads() -> None:
    def run(seed: int, grown: float, one_left: float) -> heads.Run:
        shake = 0.001 * seed
        return heads.Run(
            alike(0.1, 0.9), alike(0.1 + grown + shake, 0.9 - grown - shake),
            heads.Pruned(0.95, [], [one_left + shake, 0.2]),
        )  # fmt: skip

    def rule(grown: float, one_left: float) -> list[Point]:
        return list(heads.decide([run(seed, grown, one_left) for seed in range(3)])[0].values())

    assert rule(0.3, 0.5) == [Point.FOR] * 3
    assert rule(0.3, 0.945) == [Point.FOR, Point.FOR, Point.AGAINST]
    assert rule(-0.3, 0.945) == [Point.AGAINST] * 3


def test_gradients_of_the_first_and_the_last_layer() -> None:
    torch.manual_seed(0)
    model = depth.Stack(2, depth.POST)
    ids, labels = depth.first_tokens(torch.randint(10, (4, 8)))
    assert labels.tolist() == [[int(row[0])] * 8 for row in ids]
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
    loss.backward()
    norms = [
        math.sqrt(
            sum(float(p.grad.square().sum()) for p in layer.parameters() if p.grad is not None)
        )
        for layer in model.layers
    ]
    found = depth.gradient_ratio(model, ids, labels)
    assert found == pytest.approx(norms[0] / norms[1], rel=1e-5)


def test_residual_orders() -> None:
    x, nothing = torch.randn(2, 4), nn.Identity()
    norm = nn.LayerNorm(4)
    double = 2 * x
    assert torch.equal(depth.neither(x, lambda s: 2 * s, norm, nothing), double)
    assert torch.equal(depth.residual_only(x, lambda s: 2 * s, norm, nothing), 3 * x)
    assert torch.equal(depth.norm_only(x, lambda s: 2 * s, norm, nothing), norm(double))
    names = [name for name, _ in depth.Stack(1, depth.NEITHER).named_parameters()]
    assert not [name for name in names if "norm" in name]


def trained(*accuracy: float) -> depth.Trained:
    return depth.Trained(accuracy, [0.0] * len(accuracy), [1.0] * len(accuracy), depth.RATE)


@pytest.mark.parametrize(
    ("deep", "verdict"),
    [
        ({depth.POST: 1.0, depth.PRE: 1.0, depth.NEITHER: 0.1}, Verdict.HOLDS),
        ({depth.POST: 0.1, depth.PRE: 1.0, depth.NEITHER: 0.1}, Verdict.PARTLY),
        ({depth.POST: 0.1, depth.PRE: 0.1, depth.NEITHER: 1.0}, Verdict.FAILS),
        ({depth.POST: 0.7, depth.PRE: 0.7, depth.NEITHER: 0.7}, Verdict.UNDECIDED),
    ],
)
def test_rule_of_depth(deep: dict[str, float], verdict: Verdict) -> None:
    found = {
        order: {2: trained(1.0, 0.95), 9: trained(deep.get(order, 1.0))} for order in depth.ORDERS
    }
    assert verdict_of(list(depth.decide(found).values())) is verdict


def test_what_shallow_stacks_do_not_learn_says_nothing_of_deep_ones() -> None:
    found = {order: {2: trained(0.1), 9: trained(0.1)} for order in depth.ORDERS}
    assert list(depth.decide(found).values())[2] is Point.OPEN
    assert trained(1.0, 0.2).learned is Point.OPEN


def test_points() -> None:
    assert above(0.1, 0.3) is Point.FOR
    assert above(-0.1, 0.3) is Point.OPEN
    assert above(0.1, 0.3, 0.5) is Point.AGAINST
    assert verdict_of([Point.FOR, Point.OPEN]) is Verdict.PARTLY
    assert verdict_of([Point.AGAINST, Point.OPEN]) is Verdict.UNDECIDED


def test_a_spread_is_the_t_interval() -> None:
    found = Spread.of([1.0, 2.0, 3.0])
    half = 4.302652729911275 / math.sqrt(3)  # t of 2 degrees of freedom; standard deviation 1
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 2 - half, 2 + half))
    assert found.written(2) == "2 [\N{MINUS SIGN}0.48, 4.5]"
    assert spread(62, 64).written(2) == "62 [\N{MINUS SIGN}2, 130]"  # no exponent
    assert spread(0.5, 0.25).written(3, 100, " points") == "50 points [25, 75]"

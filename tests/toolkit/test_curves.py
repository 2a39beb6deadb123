"""Averages of curves, computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.curves import average_over_seeds, average_point_by_point


def test_two_runs_measured_at_different_seconds():
    # First run: (0, 0) (10, 10) (20, 10). Second: (5, 0) (15, 20) (25, 20). Both cover 5 to 20.
    average = average_over_seeds([([0, 10, 20], [0, 10, 10]), ([5, 15, 25], [0, 20, 20])])
    assert average.x.tolist() == [5, 10, 15, 20]
    # The first reads 5, 10, 10, 10 there; the second 0, 10, 20, 20.
    assert average.mean.tolist() == [2.5, 10, 15, 15]
    assert average.low.tolist() == [0, 10, 10, 10]
    assert average.high.tolist() == [5, 10, 20, 20]
    assert average.runs == 2


def test_same_steps_give_plain_statistics():
    steps = [1, 2, 3]
    values = np.random.default_rng(0).normal(size=(5, 3))
    average = average_over_seeds([(steps, row) for row in values])
    np.testing.assert_array_equal(average.x, steps)
    np.testing.assert_allclose(average.mean, values.mean(axis=0), rtol=1e-15)
    np.testing.assert_array_equal(average.low, values.min(axis=0))
    np.testing.assert_array_equal(average.high, values.max(axis=0))


def test_one_run_is_itself_and_the_last_of_several_values_at_a_place_counts():
    average = average_over_seeds([([1, 2, 2, 3], [5, 6, 7, 8])])
    assert (average.x.tolist(), average.mean.tolist()) == ([1, 2, 3], [5, 7, 8])
    assert average.low.tolist() == average.high.tolist() == [5, 7, 8]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_gap_in_one_run_is_a_gap_up_to_its_neighbours(bad):
    whole = ([0, 1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 1, 1])
    broken = ([0, 2, 4, 6], [3, 3, bad, 3])
    average = average_over_seeds([whole, broken])
    gap = math.nan
    np.testing.assert_array_equal(average.mean, [2, 2, 2, gap, gap, gap, 2])
    np.testing.assert_array_equal(average.low, [1, 1, 1, gap, gap, gap, 1])
    np.testing.assert_array_equal(average.high, [3, 3, 3, gap, gap, gap, 3])


@pytest.mark.parametrize("curves", [[([1, 2], [0, 0]), ([3, 4], [0, 0])], [([], []), ([1], [1])]])
def test_runs_without_a_common_range_give_nothing(curves):
    average = average_over_seeds(curves)
    for values in (average.x, average.mean, average.low, average.high):
        assert values.shape == (0,)


def test_one_common_place():
    average = average_over_seeds([([1, 2], [0, 4]), ([2, 3], [6, 0])])
    assert (average.x.tolist(), average.mean.tolist()) == ([2], [5])


curve = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True).flatmap(
    lambda x: st.tuples(
        st.just(sorted(x)),
        st.lists(st.integers(-100, 100), min_size=len(x), max_size=len(x)),
    )
)


def read_off(x: list[int], y: list[int], place: float) -> float:
    """Straight lines between the points, written out."""
    for (x0, y0), (x1, y1) in zip(zip(x, y, strict=True), zip(x[1:], y[1:], strict=True),
                                  strict=False):  # fmt: skip
        if x0 <= place <= x1:
            return y0 + (y1 - y0) * (place - x0) / (x1 - x0)
    assert x == [place]
    return y[0]


@given(st.lists(curve, min_size=1, max_size=4))
def test_against_brute_force(curves):
    average = average_over_seeds(curves)
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    places = sorted({p for x, _ in curves for p in x if first <= p <= last})
    assert average.x.tolist() == places
    for index, place in enumerate(places):
        values = [read_off(x, y, place) for x, y in curves]
        assert average.mean[index] == pytest.approx(sum(values) / len(values), abs=1e-9)
        assert average.low[index] == pytest.approx(min(values), abs=1e-9)
        assert average.high[index] == pytest.approx(max(values), abs=1e-9)


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([], "no curves"),
        ([([1, 2], [1, 2]), ([2, 1], [1, 2])], "curve 1: x must be finite and not fall"),
        ([([1, math.nan], [1, 2])], "curve 0: x must be finite"),
        ([([1, 2], [1])], r"curve 0: x has shape \(2,\), y \(1,\)"),
    ],
)
def test_what_cannot_be_averaged_is_refused(curves, message):
    with pytest.raises(ValueError, match=message):
        average_over_seeds(curves)


def test_points_that_belong_together_are_averaged_where_they_are():
    """Evaluations at other seconds: nothing is read off between them, and no end is cut off."""
    curves = [([10, 20, 30], [0.5, 0.7, 0.9]), ([12, 26, 40, 50], [0.7, 0.7, 0.8, 1.0])]
    found = average_point_by_point(curves)
    assert found.x.tolist() == [11, 23, 35]
    assert found.mean == pytest.approx([0.6, 0.7, 0.85])
    assert found.low == pytest.approx([0.5, 0.7, 0.8])
    assert found.high == pytest.approx([0.7, 0.7, 0.9])
    assert found.runs == 2
    gap = average_point_by_point([([1, 2], [1.0, math.inf]), ([1, 2], [3.0, 4.0])])
    assert gap.mean[0] == 2
    assert math.isnan(gap.mean[1])
    for wrong in ([], [([1, 2], [1])]):
        with pytest.raises(ValueError, match="curve"):
            average_point_by_point(wrong)

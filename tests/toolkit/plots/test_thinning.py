"""Thinned curves look like the whole ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from toolkit.plots.thinning import column_bounds, thinned, thinned_band

POINTS = st.lists(
    st.tuples(st.integers(0, 50), st.one_of(st.floats(-5, 5), st.just(np.nan))),
    min_size=2,
    max_size=60,
)


@given(POINTS, st.integers(1, 8))
def test_first_last_lowest_and_highest_of_every_column_stay(points, columns):
    x = np.sort(np.array([p[0] for p in points], float))
    y = np.array([p[1] for p in points])
    kept = thinned(x, y, columns)
    assert (np.diff(kept) > 0).all()
    bounds = column_bounds(x, columns)
    assert [place for a, b in bounds for place in range(a, b)] == list(range(len(x)))
    for start, stop in bounds:
        inside = kept[(kept >= start) & (kept < stop)]
        whole, part = y[start:stop], y[inside]
        assert np.isnan(part).any() == np.isnan(whole).any()
        finite = whole[np.isfinite(whole)]
        if len(finite):
            left = part[np.isfinite(part)]
            assert (left[0], left[-1]) == (finite[0], finite[-1])
            assert (left.min(), left.max()) == (finite.min(), finite.max())


@given(POINTS, st.integers(1, 8))
def test_a_band_reaches_as_far_and_breaks_where_it_did(points, columns):
    x = np.sort(np.array([p[0] for p in points], float))
    low = np.array([p[1] for p in points])
    high = low + np.abs(np.sin(np.arange(len(x))))
    kept = thinned_band(x, low, high, columns)
    for start, stop in column_bounds(x, columns):
        inside = kept[(kept >= start) & (kept < stop)]
        assert np.isnan(low[inside]).any() == np.isnan(low[start:stop]).any()
        if np.isfinite(low[start:stop]).any():
            assert np.nanmin(low[inside]) == np.nanmin(low[start:stop])
            assert np.nanmax(high[inside]) == np.nanmax(high[start:stop])


def drawn(x, y) -> np.ndarray:
    figure = Figure(figsize=(4, 2), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot(x, y, linewidth=0.72, antialiased=False, color="black")
    axes.set_xlim(0, len(x) and 1)
    axes.set_ylim(-4, 4)
    axes.axis("off")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., 0] < 128


def test_a_noisy_curve_gives_the_same_picture():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 8000)
    y = rng.standard_normal(8000)
    y[3000:3400] = np.nan
    kept = thinned(x, y, 400)
    assert len(kept) <= 4 * 400 + 3
    whole, thin = drawn(x, y), drawn(x[kept], y[kept])
    assert whole.mean() > 0.3
    assert (whole != thin).mean() < 0.01
    # The measure tells a worse way apart: every fifth point.
    assert (whole != drawn(x[::5], y[::5])).mean() > 0.05

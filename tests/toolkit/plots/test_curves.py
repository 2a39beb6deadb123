"""What is drawn is what was measured, for any number of methods, runs and points."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex

from toolkit.plots import COLOURS, Band, Series, figure_as_svg, learning_curve, seed_curves

NAMES = ("full fine-tuning", "冻结的中文特征加逻辑回归，在一万三千条酒店、图书与电子产品评论上训练")


def tick_labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def band(name="A", x=(0, 10, 20), mean=(0.5, 0.6, 0.7), spread=0.1, runs=3) -> Band:
    mean = np.asarray(mean, float)
    return Band(name, x, mean, mean - spread, mean + spread, runs)


def lines_of(figure):
    """Of every method its line, without the markers drawn above it."""
    return [line for line in figure.axes[0].lines if line.get_marker() in ("", "None", None)]


def outline(collection) -> set[tuple[float, float]]:
    return {tuple(point) for path in collection.get_paths() for point in path.vertices.round(9)}


def test_learning_curve_shows_every_point_with_its_interval():
    curves = [Series("A", [500, 1000], [0.79, 0.82], [0.77, 0.80], [0.80, 0.83])]
    figure = learning_curve(curves)
    line, _, bars = figure.axes[0].containers[0]
    np.testing.assert_allclose(line.get_xdata(orig=False), [500, 1000])
    np.testing.assert_allclose(line.get_ydata(orig=False), [0.79, 0.82])
    ends = [segment[:, 1].tolist() for segment in bars[0].get_segments()]
    assert ends == [pytest.approx([0.77, 0.80]), pytest.approx([0.80, 0.83])]
    figure.draw_without_rendering()
    assert tick_labels(figure.axes[0].xaxis) == ["500", "1,000"]
    assert figure.axes[0].get_xscale() == "log"


def test_methods_differ_in_more_than_colour():
    figure = learning_curve([Series(str(i), [1, 2], [0.1, 0.2]) for i in range(7)])
    lines = [container[0] for container in figure.axes[0].containers]
    assert len({to_hex(line.get_color()) for line in lines}) == 7
    assert len({line.get_marker() for line in lines}) == 7
    # Set apart sideways, by less than a tenth: the bars must not hide each other.
    places = [line.get_xdata()[0] for line in lines]
    assert len(set(places)) == 7
    assert all(abs(place - 1) < 0.1 for place in places)


def test_tick_labels_that_would_touch_are_left_out():
    figure = learning_curve([Series("A", [1000, 1900, 2000], [0.1, 0.2, 0.3])])
    figure.draw_without_rendering()
    assert tick_labels(figure.axes[0].xaxis) == ["1,000", "2,000"]


def test_mean_and_band_are_drawn_as_given():
    figure = seed_curves([band()], "optimizer step", "validation loss")
    (axes,) = figure.axes
    line, marks = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), [[0, 0.5], [10, 0.6], [20, 0.7]])
    np.testing.assert_array_equal(marks.get_xydata(), line.get_xydata())
    assert outline(axes.collections[0]) == {
        (0, 0.4), (10, 0.5), (20, 0.6), (0, 0.6), (10, 0.7), (20, 0.8)
    }  # fmt: skip
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("optimizer step", "validation loss")


def test_one_run_has_no_band_and_the_legend_says_so():
    figure = seed_curves([band("A", runs=1), band("B", runs=3)], "step", "loss")
    assert len(figure.axes[0].collections) == 1
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["A (1 run)", "B"]
    alone = seed_curves([band("A", runs=1)], "step", "loss")
    assert [text.get_text() for text in alone.legends[0].get_texts()] == ["A"]


def test_target_line_and_percent(svg_texts):
    figure = seed_curves([band()], "step", "accuracy", target=0.825, percent=True)
    (line,) = [line for line in figure.axes[0].lines if set(line.get_ydata()) == {0.825}]
    low, high = figure.axes[0].get_ylim()
    assert low < line.get_ydata()[0] < high
    assert {"target", "82.5%", "60%", "80%"} <= set(svg_texts(figure))
    assert "3.25" in svg_texts(seed_curves([band()], "step", "perplexity", target=3.25))


def test_values_that_are_not_finite_are_gaps_in_line_and_band():
    figure = seed_curves(
        [band(x=range(6), mean=[1, math.inf, 3, math.nan, 5, 6], spread=1)], "step", "loss"
    )
    line, marks = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), [1, math.nan, 3, math.nan, 5, 6])
    np.testing.assert_array_equal(marks.get_xdata(), [0, 2, 4, 5])
    finite = {y for _, y in outline(figure.axes[0].collections[0])}
    assert finite == {0, 2, 4, 6, 5, 7}


def test_a_point_between_gaps_of_a_long_curve_is_seen():
    mean = np.ones(1000)
    mean[499], mean[501] = math.nan, math.nan
    _, marks = seed_curves([band(x=range(1000), mean=mean)], "step", "loss").axes[0].lines
    assert 500 in marks.get_xdata()
    assert len(marks.get_xdata()) <= 7


def test_a_method_without_any_value_is_named_as_such():
    figure = seed_curves([band("A"), band("B", mean=[math.nan] * 3)], "step", "loss")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B (no values)"]
    assert seed_curves([Band("A", [], [], [], [], 2)], "step", "loss", log_x=True).legends


def test_log_axis_leaves_out_what_it_cannot_show(svg_texts):
    figure = seed_curves([band(x=(0, 10, 10_000))], "seconds", "loss", log_x=True)
    np.testing.assert_array_equal(lines_of(figure)[0].get_xdata(), [10, 10_000])
    assert {"10", "100", "1,000", "10,000", "seconds (log scale)"} <= set(svg_texts(figure))


@pytest.mark.parametrize("count", [2, 7, 20])
def test_lines_differ_and_each_has_marks_of_its_own(count):
    bands = [band(str(i), range(100), np.linspace(0, i, 100)) for i in range(count)]
    figure = seed_curves(bands, "step", "loss")
    marks = [line for line in figure.axes[0].lines if line not in lines_of(figure)]
    places = [tuple(line.get_xdata()) for line in marks]
    assert len(set(places)) == count
    assert len({(line.get_marker(), to_hex(line.get_markerfacecolor())) for line in marks}) == count


@pytest.mark.parametrize("count", [1, 3, 7, 20])
def test_thousands_of_noisy_points_make_a_small_file(count):
    rng = np.random.default_rng(0)
    bands = [
        band(f"method {i}", np.arange(5000) * 10.0, i + rng.standard_normal(5000))
        for i in range(count)
    ]
    figure = seed_curves(bands, "optimizer step", "training loss")
    assert len(figure_as_svg(figure)) < 150_000
    for line, one in zip(lines_of(figure), bands, strict=True):
        assert (line.get_ydata().min(), line.get_ydata().max()) == (one.mean.min(), one.mean.max())
        assert (line.get_xdata()[0], line.get_xdata()[-1]) == (0, 49_990)
    for collection, one in zip(figure.axes[0].collections, bands, strict=True):
        ends = [y for _, y in outline(collection)]
        assert min(ends) == pytest.approx(one.low.min(), abs=1e-8)
        assert max(ends) == pytest.approx(one.high.max(), abs=1e-8)


def test_same_curves_same_file_and_no_text_on_another(overlaps):
    def figure():
        return seed_curves(
            [band(NAMES[i % 2] + str(i), range(100), np.linspace(0.4, 0.7, 100)) for i in range(7)],
            "training seconds", "validation accuracy", target=0.6, percent=True,
        )  # fmt: skip

    assert figure_as_svg(figure()) == figure_as_svg(figure())
    assert overlaps(figure()) == []


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="no curves"):
        seed_curves([], "step", "loss")
    with pytest.raises(ValueError, match="A: x must be finite and not fall"):
        seed_curves([band(x=(0, 20, 10))], "step", "loss")
    with pytest.raises(ValueError, match="A: x must be finite and not fall"):
        seed_curves([band(x=(0, math.nan, 10))], "step", "loss")
    with pytest.raises(ValueError, match=r"A: .* lengths \[2, 3\]"):
        Band("A", [0, 1], [0, 1], [0, 1], [0, 1, 2], 3)
    with pytest.raises(ValueError, match="0 runs"):
        Band("A", [0], [0], [0], [0], 0)


def test_a_line_may_have_the_look_of_another_place():
    """So that a method looks the same in every picture, whoever is missing there."""
    bands = [Band("B", [1, 2], [1, 2], [1, 2], [1, 2], 1, number=1)]
    axes = seed_curves(bands, "x", "y").axes[0]
    assert {line.get_color() for line in axes.lines} == {COLOURS[1]}
    figure = learning_curve([Series("B", [1, 2], [0.1, 0.2], number=1)], "test F1", percent=False)
    assert figure.axes[0].lines[0].get_color() == COLOURS[1]
    assert figure.axes[0].get_ylabel() == "test F1"
    assert figure.axes[0].yaxis.get_major_formatter()(0.25) == "0.25"

"""Rows show their values, intervals and seeds, in the unit of the metric."""

import math

import numpy as np
import pytest

from toolkit.plots import Bar, difference_plot, figure_as_svg, forest_plot

LONG = "google-bert/bert-base-chinese-whole-word-masking，在酒店评论上微调并平均三个种子"


def intervals(figure) -> list[list[float]]:
    """Ends of the intervals from top to bottom."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "|"]
    lines.sort(key=lambda line: line.get_ydata()[0])
    return [list(line.get_xdata()) for line in lines]


def values(figure) -> list[float]:
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return [x for line in lines if line.get_markerfacecolor() != "white" for x in line.get_xdata()]


def signed(difference: float) -> str:
    return f"{100 * difference:+.1f}"


def test_forest_plot_lists_the_first_on_top(svg_texts):
    figure = forest_plot([Bar("best", 0.845, 0.82, 0.86), Bar("other", 0.8, 0.78, 0.82)])
    axes = figure.axes[0]
    assert axes.yaxis_inverted()
    first, second = axes.get_yticks()
    assert first < second
    assert intervals(figure) == [[0.82, 0.86], [0.78, 0.82]]
    assert values(figure) == [0.845, 0.8]
    words = svg_texts(figure)
    assert words.index("best") < words.index("other")
    assert {"84.5%", "80.0%", "80%", "test accuracy, 95% interval"} <= set(words)
    assert not figure.legends


def test_values_in_any_unit(svg_texts):
    figure = forest_plot(
        [Bar("GPT-2", 31.312, 30.1, 32.4)], "test perplexity", "{:.2f}".format,
        interval_name="95% interval over documents",
    )  # fmt: skip
    words = svg_texts(figure)
    assert {"31.31", "31", "32"} <= set(words)
    assert "test perplexity, 95% interval over documents" in " ".join(words)


def test_interval_over_seeds_and_single_seeds_are_drawn_below_and_named(svg_texts):
    bars = [
        Bar("A", 0.8, 0.7, 0.9, seeds=(0.79, 0.8, 0.81), seed_low=0.75, seed_high=0.85),
        Bar("B", 0.6, 0.5, 0.7),
    ]
    figure = forest_plot(bars, seed_interval_name="t interval over 3 seeds")
    assert intervals(figure) == [[0.7, 0.9], [0.75, 0.85], [0.5, 0.7]]
    (dots,) = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    assert list(dots.get_xdata()) == [0.79, 0.8, 0.81]
    widths = [line.get_linewidth() for line in figure.axes[0].lines if line.get_marker() == "|"]
    assert widths[1] < widths[0]
    first = "95% interval over test examples"
    assert {first, "t interval over 3 seeds", "single seeds"} <= set(svg_texts(figure))


def test_seeds_alone_need_no_interval_over_them(svg_texts):
    figure = forest_plot([Bar("A", 0.8, 0.7, 0.9, seeds=np.array([0.79, 0.81]))])
    assert "single seeds" in svg_texts(figure)
    assert intervals(figure) == [[0.7, 0.9]]


def test_what_is_not_finite_is_left_out(svg_texts):
    figure = forest_plot([Bar("A", math.nan, math.nan, math.inf), Bar("B", 0.5, 0.4, 0.6)])
    assert intervals(figure) == [[0.4, 0.6]]
    assert "–" in svg_texts(figure)


def test_differences_have_zero_in_the_middle_and_sides_in_words(svg_texts):
    bars = [Bar("full − TF-IDF", 0.045, 0.021, 0.069)]
    figure = difference_plot(
        bars, "difference in points", signed, left="TF-IDF better", right="full better"
    )
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    assert low == -high
    assert high > 0.069
    (zero,) = [line for line in axes.lines if list(line.get_xdata()) == [0, 0]]
    assert zero.get_visible()
    assert intervals(figure) == [[0.021, 0.069]]
    words = svg_texts(figure)
    assert {"← TF-IDF better", "full better →", "+4.5", "-5", "0", "+5"} <= set(words)
    # The words stand on the sides they speak of.
    figure.draw_without_rendering()
    middle = axes.transData.transform((0, 0))[0]
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert boxes["← TF-IDF better"].x1 < middle < boxes["full better →"].x0


@pytest.mark.parametrize("value", [0.0, math.nan])
def test_no_difference_at_all_can_be_drawn(value):
    figure = difference_plot([Bar("A − A", value, value, value)], "difference", signed)
    low, high = figure.axes[0].get_xlim()
    assert low == -high < 0


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_no_name_runs_into_another(rows, overlaps):
    bars = [
        Bar(LONG if i % 2 else f"method {i}", 0.1 * i, -0.2, 0.3 + i, (0.1, 0.2), -0.1, 0.3)
        for i in range(rows)
    ]
    assert overlaps(forest_plot(bars)) == []
    figure = difference_plot(bars, "difference in accuracy, points", signed, left=LONG, right=LONG)
    assert overlaps(figure) == []
    again = difference_plot(bars, "difference in accuracy, points", signed, left=LONG, right=LONG)
    assert figure_as_svg(figure) == figure_as_svg(again)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        forest_plot([])
    with pytest.raises(ValueError, match="no rows"):
        difference_plot([], "difference", signed)

"""Every group shows every method's value, however many groups and methods there are."""

import math
import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from toolkit.plots import GroupValues, figure_as_svg, grouped_bars

CLASSES = ["体育", "娱乐", "家居", "彩票", "房产", "教育", "时尚", "社会新闻与法治"]


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def methods(count: int, groups: int) -> list[GroupValues]:
    rng = np.random.default_rng(count)
    made = []
    for index in range(count):
        values = rng.uniform(0.5, 0.9, groups)
        made.append(GroupValues(f"method {index}", values, values - 0.03, values + 0.04))
    return made


def test_values_and_intervals_stand_at_their_groups(svg_texts):
    series = [
        GroupValues("A", [0.8, 0.7], [0.75, 0.6], [0.85, 0.8]),
        GroupValues("B", [0.6, math.nan]),
    ]
    figure = grouped_bars(["short", "long"], series, percent, "accuracy")
    (axes,) = figure.axes
    first, second = axes.lines
    assert list(first.get_ydata()) == [0.8, 0.7]
    np.testing.assert_array_equal(second.get_ydata(), [0.6, math.nan])
    np.testing.assert_array_equal(first.get_xdata().round(), [0, 1])
    assert (first.get_xdata() < second.get_xdata()).all()
    (bars,) = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert [s[:, 1].tolist() for s in bars.get_segments()] == [[0.75, 0.85], [0.6, 0.8]]
    assert {"short", "long", "accuracy", "A", "B", "60%", "80%"} <= set(svg_texts(figure))


def test_a_value_outside_its_interval_is_no_error():
    """A percentile interval need not hold the value."""
    grouped_bars(["a"], [GroupValues("A", [0.5], [0.6], [0.7])], percent, "F1")


@pytest.mark.parametrize(("count", "groups"), [(2, 8), (7, 8), (20, 3)])
def test_all_is_drawn_without_running_together(count, groups, overlaps, svg_texts):
    classes = CLASSES[-groups:]
    series = methods(count, groups)
    figure = grouped_bars(classes, series, percent, "F1")
    for index, one in enumerate(series):
        drawn = np.concatenate([panel.lines[index].get_ydata() for panel in figure.axes])
        np.testing.assert_array_equal(drawn, one.values)
    limits = {panel.get_ylim() for panel in figure.axes}
    assert len(limits) == 1
    assert set("".join(classes)) <= set("".join(svg_texts(figure)))
    assert overlaps(figure) == []
    # Neighbouring dots are at least 5 of 400 pixels apart.
    for panel in figure.axes:
        places = np.sort(np.concatenate([line.get_xdata() for line in panel.lines]))
        pixels = panel.transData.transform(np.column_stack([places, places]))[:, 0]
        assert np.diff(pixels).min() / figure.bbox.width * 400 >= 5
    again = grouped_bars(classes, series, percent, "F1")
    assert figure_as_svg(figure) == figure_as_svg(again)


CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
WORDS = ["characteristically", "electroencephalography", "part", "left-handed person", "x", "y"]


@pytest.mark.parametrize("groups", [CIFAR10, WORDS, ["named_entity_recognition", "tagging"]])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_word_of_a_name_is_broken(groups, count, overlaps, svg_texts):
    figure = grouped_bars(groups, methods(count, len(groups)), percent, "recall")
    written = svg_texts(figure)
    for group in groups:
        for word in re.split(r"(?<=[ _-])", group):
            assert any(word.strip() in text for text in written), f"{word} is broken"
    assert overlaps(figure) == []


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="no groups"):
        grouped_bars([], methods(1, 0), percent, "F1")
    with pytest.raises(ValueError, match="no methods"):
        grouped_bars(["a"], [], percent, "F1")
    with pytest.raises(ValueError, match="method 0: 2 values for 1 groups"):
        grouped_bars(["a"], methods(1, 2), percent, "F1")

"""Methods can be told apart, ticks say what they stand for, nothing global is left behind."""

import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from toolkit import plots
from toolkit.plots.style import format_ticks, look, luminance, number_tick, text_colour


def test_seven_methods_differ_in_colour_and_in_marker_and_in_dash():
    looks = [look(index) for index in range(7)]
    for part in ("color", "marker", "linestyle"):
        assert len({str(one[part]) for one in looks}) == 7, part


def test_twenty_methods_are_told_apart_without_colour():
    looks = [look(index) for index in range(20)]
    assert len({(one["marker"], one.get("markerfacecolor")) for one in looks}) == 20
    assert len({(one["color"], str(one["linestyle"])) for one in looks}) == 20


def test_every_colour_stands_out_from_white():
    for colour in plots.COLOURS:
        assert 1.05 / (luminance(colour) + 0.05) >= 2.0, colour


def test_luminance_by_hand():
    assert luminance("#FFFFFF") == pytest.approx(1)
    assert luminance("#000000") == 0
    # A middle grey of 0x77: ((0x77/255 + 0.055) / 1.055) ** 2.4
    assert luminance("#777777") == pytest.approx(0.184475, abs=1e-6)
    assert luminance("#00FF00") == pytest.approx(0.7152)


def test_text_stands_out_from_any_ground():
    """The better of black and white reaches a contrast of sqrt(21) = 4.58 everywhere."""
    for grey in np.linspace(0, 1, 101):
        ground = (grey, grey, grey)
        light, dark = sorted((luminance(ground), luminance(text_colour(ground))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.58
    assert text_colour("#FFFFFF") == "#000000"
    assert text_colour("#0072B2") == "#FFFFFF"


def labels_between(low: float, high: float, formatter) -> list[str]:
    axes = Figure().subplots()
    axes.set_xlim(low, high)
    format_ticks(axes.xaxis, formatter)
    return [label.get_text() for label in axes.get_xticklabels()]


@pytest.mark.parametrize(
    ("low", "high", "formatter", "expected"),
    [
        (0.78, 0.86, "{:.1%}".format, ["78%", "80%", "82%", "84%", "86%"]),
        (-0.021, 0.021, "{:+.2f}".format, ["-0.02", "-0.01", "0", "+0.01", "+0.02"]),
        (30.0, 41.0, "{:.2f}".format, ["30", "35", "40"]),
        (1000, 3000, "{:,.0f}".format, ["1,000", "1,500", "2,000", "2,500", "3,000"]),
    ],
)
def test_ticks_are_written_as_values_are_without_needless_decimals(low, high, formatter, expected):
    assert labels_between(low, high, formatter) == expected


def test_ticks_never_say_the_same_twice():
    """Every 0.05% with one decimal would read 80.0%, 80.0%, 80.1%, 80.2%, 80.2%."""
    labels = labels_between(0.8, 0.802, "{:.1%}".format)
    assert labels == ["80%", "80.1%", "80.2%"]


def test_numbers_of_an_axis():
    values = (12000, 2.5e6, 0.25, 0, -3)
    assert [number_tick(v) for v in values] == ["12,000", "2.5M", "0.25", "0", "-3"]


def test_no_global_state(tmp_path):
    before = dict(matplotlib.rcParams)
    plots.save_figure(plots.forest_plot([plots.Bar("a", 0.5, 0.4, 0.6)]), tmp_path / "a.svg")
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys; from toolkit import plots;"
        "plots.forest_plot([plots.Bar('a', .5, .4, .6)]);"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"False\s*", done.stdout)


def test_colours_are_those_of_the_palette():
    assert {to_hex(colour) for colour in plots.COLOURS} <= {
        "#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
    }  # fmt: skip

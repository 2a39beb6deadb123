"""What is drawn is what was measured; text stays text; nothing global is left behind."""

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from toolkit import plots
from toolkit.plots import (
    Bar,
    Series,
    cjk_font,
    forest_plot,
    learning_curve,
    save_figure,
    training_curves,
)

CURVES = [
    Series(
        "fine-tuned <BERT>",
        [500, 1000, 2000],
        [0.79, 0.82, 0.84],
        [0.77, 0.8, 0.82],
        [0.81, 0.84, 0.86],
    ),
    Series("TF-IDF", [500, 2000], [0.77, 0.83]),
]


def tick_labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def texts_of_svg(path) -> str:
    root = ElementTree.parse(path).getroot()
    return "\n".join("".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text"))


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


def test_svg_keeps_text_as_text_and_is_repeatable(tmp_path, recwarn):
    curves = [*CURVES, Series("微调", [500, 1000], [0.7, 0.75])]
    first = save_figure(learning_curve(curves), tmp_path / "new" / "a.svg")
    second = save_figure(learning_curve(curves), tmp_path / "b.svg")
    words = texts_of_svg(first)
    for word in ("fine-tuned <BERT>", "TF-IDF", "微调", "1,000", "test accuracy"):
        assert word in words
    assert first.read_bytes() == second.read_bytes()
    assert len(recwarn) == 0


def test_png_is_legible_at_400_pixels(tmp_path):
    path = save_figure(learning_curve(CURVES), tmp_path / "a.png")
    width = Image.open(path).width
    # 10 pt at 200 dpi is 28 pixels; shown 400 pixels wide it must still be 10 or more.
    assert 10 / 72 * 200 * 400 / width >= 10


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"as \.svg or \.png"):
        save_figure(learning_curve(CURVES), tmp_path / "a.jpg")


def test_missing_cjk_font_is_said_once_and_only_for_png_with_chinese(
    tmp_path, monkeypatch, recwarn
):
    said = []
    monkeypatch.setattr(plots, "notify", said.append)
    monkeypatch.setattr(plots, "cjk_font", lambda: None)
    plots._say_that_no_cjk_font_is_there.cache_clear()
    chinese = [Series("微调", [500, 1000], [0.7, 0.75])]
    save_figure(learning_curve(CURVES), tmp_path / "a.png")
    save_figure(learning_curve(chinese), tmp_path / "a.svg")
    assert said == []
    save_figure(learning_curve(chinese), tmp_path / "b.png")
    save_figure(learning_curve(chinese), tmp_path / "c.png")
    assert len(said) == 1
    assert "fonts-noto-cjk" in said[0]
    assert len(recwarn) == 0
    plots._say_that_no_cjk_font_is_there.cache_clear()


@pytest.mark.skipif(cjk_font() is None, reason="no CJK font installed (fonts-noto-cjk)")
def test_png_draws_different_chinese_characters_differently(tmp_path):
    pictures = []
    for word in ("微调", "冻结"):
        curve = learning_curve([Series(word, [500, 1000], [0.7, 0.75])])
        path = save_figure(curve, tmp_path / f"{len(pictures)}.png")
        pictures.append(np.asarray(Image.open(path)))
    assert not np.array_equal(*pictures)


def test_training_curves_show_both_and_leave_gaps_for_nan(tmp_path):
    loss = [(10, 0.7), (20, math.nan), (30, 0.5)]
    figure = training_curves(loss, [(10, 0.6), (30, 0.8)], "validation macro F1", best_step=30)
    above, below = figure.axes
    np.testing.assert_array_equal(above.lines[0].get_ydata(), [0.7, math.nan, 0.5])
    np.testing.assert_array_equal(below.lines[0].get_xdata(), [10, 30])
    assert below.get_ylabel() == "validation macro F1"
    assert all(panel.lines[1].get_xdata()[0] == 30 for panel in (above, below))
    assert "kept" in texts_of_svg(save_figure(figure, tmp_path / "a.svg"))
    assert len(training_curves(loss).axes) == 1


def test_forest_plot_lists_the_first_on_top(tmp_path):
    figure = forest_plot([Bar("best", 0.845, 0.82, 0.86), Bar("other", 0.8, 0.78, 0.82)])
    axes = figure.axes[0]
    assert tick_labels(axes.yaxis) == ["best", "other"]
    figure.draw_without_rendering()
    assert "80%" in tick_labels(axes.xaxis)
    assert axes.yaxis_inverted()
    ends = [container[2][0].get_segments()[0][:, 0].tolist() for container in axes.containers]
    assert ends == [pytest.approx([0.82, 0.86]), pytest.approx([0.78, 0.82])]
    words = texts_of_svg(save_figure(figure, tmp_path / "a.svg"))
    assert "84.5%" in words
    assert "80.0%" in words


def test_every_colour_stands_out_from_white():
    for colour in plots.COLOURS:
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        channels = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
        ]
        luminance = np.dot(channels, [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) >= 2.0, colour


def test_no_global_state(tmp_path):
    before = dict(matplotlib.rcParams)
    save_figure(learning_curve(CURVES), tmp_path / "a.svg")
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys; from toolkit import plots;"
        "plots.forest_plot([plots.Bar('a', .5, .4, .6)]);"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"False\s*", done.stdout)

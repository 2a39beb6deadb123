"""Lines over places on either kind of axis."""

from __future__ import annotations

import pytest

from toolkit.plots import Series, figure_as_svg, line_plot


def test_every_measured_place_is_a_tick_and_every_line_is_named() -> None:
    lines = [Series("one", [64, 512, 4096], [1, 2, 3]), Series("two", [64, 512], [3, 2])]
    svg = figure_as_svg(line_plot(lines, "tokens", "ms", log_x=True, log_y=True))
    for words in ("64", "512", "4,096", "one", "two", "tokens (log scale)", "ms (log scale)"):
        assert f">{words}<" in svg


def test_error_bars_are_the_bounds() -> None:
    figure = line_plot([Series("a", [1, 2], [0.5, 0.6], [0.4, 0.5], [0.7, 0.6])], "x", "share",
                       percent=True)  # fmt: skip
    [axes] = figure.axes
    [bars] = axes.containers[0].lines[2]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [pytest.approx([0.4, 0.7]), pytest.approx([0.5, 0.6])]
    assert "50%" in figure_as_svg(figure)


def test_what_a_log_axis_cannot_show_does_not_break_it() -> None:
    figure = line_plot([Series("a", [1, 2], [0.0, 1e-15], [0, 0], [1, 1])], "x", "y", log_y=True)
    assert figure_as_svg(figure).count("<svg") == 1


def test_no_lines() -> None:
    with pytest.raises(ValueError, match="no lines"):
        line_plot([], "x", "y")

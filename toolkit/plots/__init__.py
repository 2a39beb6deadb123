"""Pictures of training and comparison, readable at a width of 400 pixels and without colour vision.

Every function returns a `matplotlib.figure.Figure`; none touches pyplot, so nothing global is left
behind and no display is needed. The same content gives the same file, byte for byte.

    style       colours, markers and dashes; settings of a figure; ticks
    fonts       Chinese characters: which font has them, how wide they are
    labels      names of rows, columns and lines, wrapped
    saving      figures as files
    training    one run
    curves      several methods as lines, over seeds
    lines       values at places as lines, axes linear or logarithmic
    intervals   several methods as values with intervals
    groups      the same by length or class
    matrices    which class was taken for which
"""

from toolkit.plots.curves import Band, Series, learning_curve, seed_curves
from toolkit.plots.fonts import cjk_font
from toolkit.plots.groups import GroupValues, grouped_bars
from toolkit.plots.intervals import Bar, difference_plot, forest_plot
from toolkit.plots.lines import line_plot
from toolkit.plots.matrices import MOST_CLASSES, confusion_matrices
from toolkit.plots.saving import figure_as_svg, save_figure
from toolkit.plots.style import COLOURS, LINES, MARKERS, WIDTH
from toolkit.plots.training import learning_rate_curve, training_curves

__all__ = [
    "COLOURS",
    "LINES",
    "MARKERS",
    "MOST_CLASSES",
    "WIDTH",
    "Band",
    "Bar",
    "GroupValues",
    "Series",
    "cjk_font",
    "confusion_matrices",
    "difference_plot",
    "figure_as_svg",
    "forest_plot",
    "grouped_bars",
    "learning_curve",
    "learning_rate_curve",
    "line_plot",
    "save_figure",
    "seed_curves",
    "training_curves",
]

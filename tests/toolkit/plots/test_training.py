"""What is drawn of a training is what was logged."""

import math

import numpy as np

from toolkit.plots import learning_rate_curve, training_curves


def test_training_curves_show_both_and_leave_gaps_for_nan(svg_texts):
    loss = [(10, 0.7), (20, math.nan), (30, 0.5)]
    figure = training_curves(loss, [(10, 0.6), (30, 0.8)], "validation macro F1", best_step=30)
    above, below = figure.axes
    np.testing.assert_array_equal(above.lines[0].get_ydata(), [0.7, math.nan, 0.5])
    np.testing.assert_array_equal(below.lines[0].get_xdata(), [10, 30])
    assert below.get_ylabel() == "validation macro F1"
    assert all(panel.lines[1].get_xdata()[0] == 30 for panel in (above, below))
    assert "kept" in svg_texts(figure)
    assert len(training_curves(loss).axes) == 1


def test_the_suggested_learning_rate_is_marked(svg_texts):
    figure = learning_rate_curve([(1e-5, 2.0), (1e-3, 1.0)], [(1e-5, 2.0), (1e-3, 1.0)], 1e-4)
    assert figure.axes[0].lines[2].get_xdata()[0] == 1e-4
    assert " 0.0001" in svg_texts(figure)

"""Holm's adjustment against statsmodels and by hand."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from toolkit.stats import holm


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 and never falling: 0.04, 0.06, 0.06, 0.06.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.3]) == pytest.approx([0.3])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_holm_equals_statsmodels(scale):
    p_values = np.random.default_rng(0).random(60) * scale
    p_values[10:20] = p_values[0]  # ties
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values.tolist()) == pytest.approx(expected)

"""Labels: one name for one class however it is written, one order, weights by scikit-learn."""

import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from toolkit.data.labels import balanced_class_weights, class_counts, label_name, label_order
from toolkit.errors import UserError


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(("1", "1"), (" 1 ", "1"), (1, "1"), (1.0, "1"), ("1.0", "1"), ("+1", "1"), ("-1", "-1")),
        *((-100, "-100"), (0.0, "0"), ("-0.0", "0"), ("1.10", "1.10"), (3.5, "3.5"), ("10", "10")),
        *((True, "true"), ("True", "true"), ("FALSE", "false"), (np.int64(2), "2")),
        *(
            ("\u3000正面 ", "正面"),
            ("正面\u200b", "正面"),
            ("Positive", "Positive"),
            ("007", "007"),
            ("NA", "NA"),
        ),
        *((Decimal(1), "1"), (Decimal("2.50"), "2.5"), (Decimal("1E+2"), "100")),
        *(
            ("１", "1"),
            ("－1", "－1"),
            ("３.５０", "3.50"),
            ("2.000", "2"),
            ("٣", "3"),
            ("１级", "１级"),
        ),
        *((np.float32("nan"), None), (Decimal("nan"), None), (np.float32(2), "2")),
        *((None, None), ("", None), (" \t", None), (math.nan, None)),
    ],
)
def test_name(written, name):
    assert label_name(written) == name


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x"])
def test_what_cannot_name_a_class_is_refused(value):
    with pytest.raises(ValueError, match="cannot be a label"):
        label_name(value)


@given(st.lists(st.integers(-200, 200), min_size=1))
def test_numbers_are_ordered_by_value(values):
    assert label_order(map(str, values)) == [str(value) for value in sorted(set(values))]


def test_text_is_sorted_and_one_word_makes_all_text():
    assert label_order(["正面", "负面", "正面"]) == sorted(["正面", "负面"])
    assert label_order(["10", "9", "n"]) == ["10", "9", "n"]


def test_counts_name_classes_without_rows():
    assert class_counts([0, 0, 2], ["a", "b", "c"]) == {"a": 2, "b": 0, "c": 1}
    assert class_counts([], ["a"]) == {"a": 0}


@given(st.lists(st.integers(0, 3), min_size=1).filter(lambda labels: set(labels) == {0, 1, 2, 3}))
def test_balanced_weights_are_scikit_learns(labels):
    expected = compute_class_weight("balanced", classes=np.arange(4), y=np.array(labels))
    np.testing.assert_allclose(balanced_class_weights(labels, "abcd"), expected, rtol=1e-15)


def test_balanced_weights_of_a_rare_class():
    labels = [1] * 95 + [0] * 5
    assert Counter(labels) == {1: 95, 0: 5}
    np.testing.assert_allclose(
        balanced_class_weights(labels, ["bad", "good"]), [10.0, 0.526316], atol=1e-6
    )
    with pytest.raises(UserError, match=r"--class_weights balanced: no training row .* unsure, so"):
        balanced_class_weights(labels, ["bad", "good", "unsure"])

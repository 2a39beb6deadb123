"""Every combination of a matrix, and none but those."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import UserError
from toolkit.experiment.matrix import expand_matrix

LORA = {"label": "LoRA", "options": {"method": "lora", "train.learning_rate": "1e-3"}}


def test_a_matrix_by_hand() -> None:
    cells = expand_matrix(
        {
            "recipe": "bert_sentiment",
            "preset": "demo",
            "seeds": [0, 1],
            "options": {"train.epochs": 2, "train.learning-rate": "1e-4"},
            "vary": {
                "model": [{"label": "e5-small", "value": "demo:chinese-bert"}, "bert"],
                "method": ["full", LORA],
                "train.ema": [None, 0.999],
            },
            "title": "{model}, {method} (ema {train.ema})",
            "name": "{method} of {model}, {train.ema}",
            "exclude": [
                {"model": "bert", "train.ema": None}, {"method": "LoRA", "train.ema": 0.999},
            ],
        },
        "lab.yaml: matrix",
    )  # fmt: skip
    assert list(cells) == [
        "full of e5-small, null", "full of e5-small, 0.999", "LoRA of e5-small, null",
        "full of bert, 0.999",
    ]  # fmt: skip
    assert cells["full of e5-small, 0.999"] == {
        "recipe": "bert_sentiment", "preset": "demo", "seeds": [0, 1],
        "title": "e5-small, full (ema 0.999)",
        "options": {"train.epochs": 2, "train.learning-rate": "1e-4",
                    "model": "demo:chinese-bert", "method": "full", "train.ema": 0.999},
    }  # fmt: skip
    assert cells["LoRA of e5-small, null"]["options"] == {  # its own rate, not the matrix's
        "train.epochs": 2, "model": "demo:chinese-bert", "method": "lora",
        "train.learning_rate": "1e-3", "train.ema": None,
    }  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(["a", "b.c", "d"]),
        st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True),
        min_size=1,
    ),
    st.data(),
)
def test_all_combinations_but_the_excluded_ones(vary: dict[str, list[int]], data: Any) -> None:
    exclusion = st.dictionaries(st.sampled_from(list(vary)), st.integers(0, 4), min_size=1)
    drawn = data.draw(st.lists(exclusion, max_size=3))
    exclude = [e for e in drawn if all(e[axis] in vary[axis] for axis in e)]
    wanted = [
        combination
        for values in itertools.product(*vary.values())
        if (combination := dict(zip(vary, values, strict=True)))
        and not any(e.items() <= combination.items() for e in exclude)
    ]
    content = {"recipe": "r", "vary": vary, "exclude": exclude}
    if wanted:
        found = expand_matrix(content, "here")
        assert [cell["options"] for cell in found.values()] == wanted
        names = [", ".join(map(str, combination.values())) for combination in wanted]
        assert list(found) == [cell["title"] for cell in found.values()] == names
    else:
        with pytest.raises(UserError, match="no combination is left"):
            expand_matrix(content, "here")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"vary": {}}, "vary: expected at least one option with its values"),
        ({"vary": {"a": []}}, "vary: a: expected a list of values, found []"),
        ({"vary": {"a": 5}}, "vary: a: expected a list of values, found 5"),
        ({"vary": {"a": [1, "1"]}}, "vary: a: '1' stands there 2 times"),
        ({"vary": {"seed": [1, 2]}}, "seeds are no methods to be compared; list them under"),
        ({"vary": {"a": [{"value": 1, "lable": "x"}]}}, "vary: a: unknown key 'lable'"),
        ({"vary": {"a": [{"label": "x"}]}}, "vary: a: expected a value, {label: ..., value: ...}"),
        ({"vary": {"a": [{"options": {"b": 1}}]}}, "vary: a: expected a value, {label: ..."),
        ({"vary": {"a": [{"label": "x", "options": 5}]}}, "vary: a: options: expected keys and"),
        ({"vary": {"a": [LORA], "method": ["full"]}}, "'method' is set by a and by method"),
        ({"name": "{b}"}, "name: nothing varies 'b'; there are a"),
        ({"title": "{}"}, "title: nothing varies ''; there are a"),
        ({"name": "the same"}, "name: two combinations are called 'the same'"),
        ({"exclude": [{"b": 1}]}, "exclude: nothing varies 'b'; there are a"),
        ({"exclude": [{"a": 3}]}, "exclude: a is never '3'; it is ['1', '2']"),
        ({"exclude": [{}]}, "exclude: expected axes and their labels, found {}"),
        ({"exclude": {"a": 1}}, "exclude: expected a list, found {'a': 1}"),
        ({"exclude": [{"a": 1}, {"a": 2}]}, "exclude: no combination is left"),
        ({"vary": 5}, "vary: expected keys and values, found 5"),
        ({"cells": {}}, "unknown key 'cells'; known: recipe, preset"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], expected: str) -> None:
    content = {"recipe": "r", "vary": {"a": [1, 2]}, **changes}
    with pytest.raises(UserError) as caught:
        expand_matrix(content, "lab.yaml: matrix 2")
    assert str(caught.value).startswith("lab.yaml: matrix 2: ")
    assert expected in str(caught.value)


@pytest.mark.parametrize("content", [5, None, ["recipe"]])
def test_what_is_no_matrix(content: Any) -> None:
    with pytest.raises(UserError, match="here: expected recipe, options, vary; found"):
        expand_matrix(content, "here")

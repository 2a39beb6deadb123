"""Names are wrapped without losing anything; every name comes with its own mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from toolkit.plots.fonts import width_in_ems
from toolkit.plots.labels import legend_below, wrapped


@pytest.mark.parametrize(
    ("text", "ems", "lines"),
    [
        ("fine-tuned", 14, ["fine-tuned"]),
        ("冻结的中文特征", 4, ["冻结的中", "文特征"]),
        ("BERT 中文", 4.4, ["BERT", "中文"]),
        # A closing mark stays with what it closes, an opening one with what follows.
        ("中文（特征）。", 3, ["中文", "（特", "征）。"]),
        ("  a \n b\t", 5, ["a b"]),
        ("", 5, [""]),
    ],
)
def test_wrapping_by_hand(text, ems, lines):
    assert wrapped(text, ems) == lines


def test_words_stay_whole_where_they_can():
    assert wrapped("TF-IDF + logistic regression", 9) == ["TF-IDF +", "logistic", "regression"]


def test_long_words_part_after_their_own_marks():
    assert wrapped("google-bert/bert-base-chinese", 7) == ["google-bert/", "bert-base-", "chinese"]
    assert wrapped("aaaaaaaaaa", 3.3) == ["aaaaa", "aaaaa"]


def test_too_many_lines_end_in_an_ellipsis():
    assert wrapped("社会新闻与法治生活", 4, most=2) == ["社会新闻", "与法治…"]
    assert wrapped("社会新闻与法治", 4, most=2) == ["社会新闻", "与法治"]


@given(
    st.text(st.sampled_from("ab mW.-/_中文，（）"), max_size=40),
    st.floats(3, 12),
)
def test_nothing_is_lost_and_no_line_is_too_wide(text, ems):
    lines = wrapped(text, ems)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        # Marks that may not begin a line can stand out, as they do in print.
        assert width_in_ems(line.rstrip("，）.")) <= ems or line.strip("，（）.") == ""


def test_names_that_matplotlib_keeps_to_itself_are_in_the_legend(svg_texts):
    figure = Figure(layout="constrained")
    handles = figure.subplots().plot([0, 1], [[1, 2, 3], [3, 4, 5]])
    legend_below(figure, handles, ["_private", "$5 or $6", "<b>"])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["_private", "$5 or $6", "<b>"]
    assert len(figure.legends[0].legend_handles) == 3


def test_many_short_names_stand_in_two_columns_and_long_ones_do_not():
    def columns(names: list[str]) -> int:
        figure = Figure(layout="constrained")
        handles = figure.subplots().plot([0, 1], [range(len(names))] * 2)
        legend_below(figure, handles, names)
        return figure.legends[0]._ncols

    assert columns([f"method {i}" for i in range(6)]) == 2
    assert columns(["a", "b"]) == 1
    assert columns([f"a method with a rather long name {i}" for i in range(6)]) == 1

"""Cells hold the counts, shaded by the share of their row, and can be read."""

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex

from toolkit.plots import MOST_CLASSES, confusion_matrices, figure_as_svg
from toolkit.plots.style import luminance

CHINESE = ["体育", "娱乐", "家居", "彩票", "房产", "教育", "时尚", "时政", "星座", "游戏",
           "社会新闻与法治", "科技"]  # fmt: skip


def counts(classes: int, seed: int, most: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, most, (classes, classes))


def cells(axes, classes: int) -> list:
    """The texts in the cells, row by row."""
    inside = [text for text in axes.texts if text.get_position() in
              {(column, row) for row in range(classes) for column in range(classes)}
              and text.get_text()[0].isdigit() and not hasattr(text, "anncoords")]  # fmt: skip
    return sorted(inside, key=lambda text: text.get_position()[::-1])


def test_counts_and_shares_by_hand():
    matrix = np.array([[6, 2], [0, 0]])
    (axes,) = confusion_matrices([matrix], ["BERT"], ["bad", "good"]).axes
    assert [text.get_text() for text in cells(axes, 2)] == ["6", "2", "0", "0"]
    (mesh,) = [c for c in axes.collections if isinstance(c, QuadMesh)]
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), [0.75, 0.25, 0, 0])
    # True classes from top to bottom.
    assert axes.yaxis_inverted()


def test_lists_will_do_and_words_are_there(svg_texts):
    figure = confusion_matrices([[[1, 2], [3, 4]]], ["BERT"], ["差评", "好评"])
    words = svg_texts(figure)
    assert {"BERT", "差评", "好评", "true", "predicted"} <= set(words)
    assert words.count("差评") == 2


def test_numbers_stand_out_from_their_shade():
    for seed in range(3):
        matrix = counts(5, seed)
        (axes,) = confusion_matrices([matrix], ["A"], list("abcde")).axes
        mesh = next(c for c in axes.collections if isinstance(c, QuadMesh))
        mesh.update_scalarmappable()
        for text, ground in zip(cells(axes, 5), mesh.get_facecolors(), strict=True):
            light, dark = sorted((luminance(ground), luminance(text.get_color())), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5
            assert to_hex(text.get_color()) in ("#000000", "#ffffff")


@pytest.mark.parametrize(
    ("classes", "matrices", "in_a_row"),
    [(2, 1, 1), (2, 2, 2), (2, 3, 3), (3, 7, 3), (12, 2, 1)],
)
def test_as_many_stand_in_a_row_as_can_be_read(classes, matrices, in_a_row):
    figure = confusion_matrices(
        [counts(classes, i) for i in range(matrices)], [f"method {i}" for i in range(matrices)],
        [f"c{i}" for i in range(classes)],
    )  # fmt: skip
    heights = [round(axes.get_position().y0, 6) for axes in figure.axes]
    assert heights.count(heights[0]) == in_a_row
    assert heights == sorted(heights, reverse=True)


@pytest.mark.parametrize("classes", [1, 2, 3, 5, 8, MOST_CLASSES])
@pytest.mark.parametrize("most", [1000, 10**6])
def test_no_text_runs_into_another_or_out_of_its_cell(classes, most, overlaps):
    titles = ["全参数微调的中文预训练模型，三个种子", "LoRA"]
    matrices = [counts(classes, i, most) for i in range(2)]
    figure = confusion_matrices(matrices, titles, CHINESE[-classes:])
    assert overlaps(figure) == []
    for axes in figure.axes:
        for text in cells(axes, classes):
            box = text.get_window_extent().transformed(axes.transData.inverted())
            column = text.get_position()[0]
            assert column - 0.5 <= box.x0 < box.x1 <= column + 0.5


def test_counts_that_find_no_room_are_written_in_short():
    matrix = np.full((12, 12), 54321)
    matrix[0, :4] = [987, 4321, 7654321, 0]
    (axes,) = confusion_matrices([matrix], ["A"], CHINESE).axes
    first = [text.get_text() for text in cells(axes, 12)[:5]]
    assert first == ["987", "4.3k", "7.7M", "0", "54k"]
    (axes,) = confusion_matrices([matrix[:2, :2]], ["A"], CHINESE[:2]).axes
    assert [text.get_text() for text in cells(axes, 2)] == ["987", "4,321", "54,321", "54,321"]


def test_same_matrices_same_file():
    def svg() -> str:
        return figure_as_svg(confusion_matrices([counts(3, 0)], ["A"], ["a", "b", "c"]))

    assert svg() == svg()


@pytest.mark.parametrize(
    ("matrices", "titles", "names", "message"),
    [
        ([], [], ["a"], "no matrices"),
        ([counts(13, 0)], ["A"], list("abcdefghijklm"), "13 classes; .* more than 12"),
        ([counts(2, 0)], ["A"], ["a", "b", "c"], r"A: shape \(2, 2\) for 3 classes"),
        ([counts(2, 0)], ["A", "B"], ["a", "b"], "2 titles for 1 matrices"),
        ([[[1, -1], [0, 0]]], ["A"], ["a", "b"], "A: negative"),
    ],
)
def test_what_does_not_fit_together_is_refused(matrices, titles, names, message):
    with pytest.raises(ValueError, match=message):
        confusion_matrices(matrices, titles, names)

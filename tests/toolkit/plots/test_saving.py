"""Text stays text, the same picture gives the same file, Chinese text is shown whole."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from toolkit.plots import (
    Bar,
    Series,
    cjk_font,
    figure_as_svg,
    forest_plot,
    learning_curve,
    save_figure,
    saving,
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
CHINESE = [Series("微调", [500, 1000], [0.7, 0.75])]


def test_svg_keeps_text_as_text_and_is_repeatable(tmp_path, recwarn, svg_texts):
    curves = [*CURVES, *CHINESE]
    first = save_figure(learning_curve(curves), tmp_path / "new" / "a.svg")
    second = save_figure(learning_curve(curves), tmp_path / "b.svg")
    words = svg_texts(learning_curve(curves))
    for word in ("fine-tuned <BERT>", "TF-IDF", "微调", "1,000", "test accuracy"):
        assert word in words
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text(encoding="utf-8") == figure_as_svg(learning_curve(curves))
    assert len(recwarn) == 0


def test_a_dollar_sign_is_no_formula(svg_texts):
    assert "cost $5_a vs $6_b" in svg_texts(forest_plot([Bar("cost $5_a vs $6_b", 0.5, 0.4, 0.6)]))


def test_numbers_of_paths_are_short_and_words_are_left_alone():
    figure = Figure()
    axes = figure.subplots()
    (line,) = axes.plot([0, 1 / 3, 1], [0, 1 / 7, 1])
    axes.set_title('accuracy 0.123456789 d="1.23456"')
    svg = figure_as_svg(figure)
    assert "0.123456789" in svg
    paths = [
        p.get("d") for p in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")
    ]
    assert not any(re.search(r"\.\d{3}", path) for path in paths)
    # The line goes where it went, in points of the file, whose y counts from the top.
    steps = np.diff(axes.transData.transform(line.get_xydata()), axis=0) * (72, -72) / figure.dpi
    drawn = [np.array(path.split()[1:], float).reshape(-1, 2)
             for path in paths if re.fullmatch(r"M[\d. -]*", path)]  # fmt: skip
    assert any(p.shape == (3, 2) and np.allclose(np.diff(p, axis=0), steps, atol=0.02)
               for p in drawn)  # fmt: skip


def test_paths_keep_their_curves_and_ends():
    path = "M 1.23456 2.0 \nL 3 4 \nL 5 6 \nQ 7 8 9.999 10 \nL 11 12 \nz\nM 0 0 \nL -0.001 1e-05 \n"
    short = "M 1.23 2 3 4 5 6 Q 7 8 10 10 L 11 12 z M 0 0 -0 0"
    assert saving._short_path(path) == short


def test_png_is_legible_at_400_pixels(tmp_path):
    path = save_figure(learning_curve(CURVES), tmp_path / "a.png")
    width = Image.open(path).width
    # 10 pt at 200 dpi is 28 pixels; shown 400 pixels wide it must still be 10 or more.
    assert 10 / 72 * 200 * 400 / width >= 10


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"as \.svg or \.png"):
        save_figure(learning_curve(CURVES), tmp_path / "a.jpg")


@pytest.fixture
def no_cjk_font(monkeypatch):
    monkeypatch.setattr("toolkit.plots.saving.cjk_font", lambda: None)
    monkeypatch.setattr("toolkit.plots.style.cjk_font", lambda: None)


def test_missing_cjk_font_is_said_once_and_only_for_png_with_chinese(
    tmp_path, monkeypatch, recwarn, no_cjk_font
):
    said = []
    monkeypatch.setattr(saving, "notify", said.append)
    saving._say_that_no_cjk_font_is_there.cache_clear()
    save_figure(learning_curve(CURVES), tmp_path / "a.png")
    save_figure(learning_curve(CHINESE), tmp_path / "a.svg")
    assert said == []
    save_figure(learning_curve(CHINESE), tmp_path / "b.png")
    save_figure(learning_curve(CHINESE), tmp_path / "c.png")
    assert len(said) == 1
    assert "fonts-noto-cjk" in said[0]
    assert len(recwarn) == 0
    saving._say_that_no_cjk_font_is_there.cache_clear()


def test_svg_has_room_for_chinese_text_that_could_not_be_measured(no_cjk_font):
    """Every line of a name ends where the axes begin; an em a character it reaches to the left."""
    svg = figure_as_svg(forest_plot([Bar("在维基百科上训练的长短期记忆网络", 0.5, 0.4, 0.6)]))
    root = ElementTree.fromstring(svg)
    lines = [
        text for text in root.iter("{http://www.w3.org/2000/svg}text")
        if re.search(r"[一-龥]", text.text or "")
    ]  # fmt: skip
    assert len(lines) == 2
    for line in lines:
        assert "text-anchor: end" in line.get("style")
        assert float(line.get("x")) - 10 * len(line.text) >= 0


@pytest.mark.skipif(cjk_font() is None, reason="no CJK font installed (fonts-noto-cjk)")
def test_png_draws_different_chinese_characters_differently(tmp_path):
    pictures = []
    for word in ("微调", "冻结"):
        curve = learning_curve([Series(word, [500, 1000], [0.7, 0.75])])
        path = save_figure(curve, tmp_path / f"{len(pictures)}.png")
        pictures.append(np.asarray(Image.open(path)))
    assert not np.array_equal(*pictures)

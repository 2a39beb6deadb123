"""A font with Chinese characters is found where there is one; widths are about right without."""

import pytest
from matplotlib.font_manager import findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font

from toolkit.plots import fonts
from toolkit.plots.fonts import cjk_font, has_wide, width_in_ems


@pytest.mark.skipif(
    not any("CJK" in path for path in findSystemFonts()),
    reason="no CJK font installed (fonts-noto-cjk)",
)
def test_a_font_installed_after_matplotlib_made_its_list_is_found(monkeypatch):
    old = [font for font in fontManager.ttflist if "dejavu" in font.fname.lower()]
    monkeypatch.setattr(fontManager, "ttflist", old)
    cjk_font.cache_clear()
    assert cjk_font() == "Noto Sans CJK SC"
    cjk_font.cache_clear()


def test_without_one_there_is_none_and_broken_files_do_not_matter(monkeypatch, tmp_path):
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [str(broken)])
    old = [font for font in fontManager.ttflist if "dejavu" in font.fname.lower()]
    monkeypatch.setattr(fontManager, "ttflist", old)
    cjk_font.cache_clear()
    assert cjk_font() is None
    cjk_font.cache_clear()


@pytest.mark.parametrize(
    "text",
    [
        "full fine-tuning better",
        "google-bert/bert-base-chinese",
        "TF-IDF + logistic regression",
        "test perplexity (lower is better), 95% interval",
        "CNN FROM RANDOM WEIGHTS",
        "1,234,567",
    ],
)
def test_width_of_text_is_about_what_the_font_says(text):
    font = FT2Font(findfont("DejaVu Sans"))
    font.set_size(100, 72)
    font.set_text(text)
    true = font.get_width_height()[0] / 64 / 100
    assert width_in_ems(text) == pytest.approx(true, rel=0.12)


def test_chinese_characters_are_an_em_wide():
    assert width_in_ems("微调（好）") == 5
    assert has_wide("BERT 微调")
    assert not has_wide("BERT é —")
    assert width_in_ems("e\u0301") == width_in_ems("e")

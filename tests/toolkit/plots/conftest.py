"""Reading back what is in a picture."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from toolkit.plots import figure_as_svg


@pytest.fixture
def svg_texts() -> Callable[[Figure], list[str]]:
    """The texts of a figure's SVG in the order in which they are drawn."""

    def texts(figure: Figure) -> list[str]:
        root = ElementTree.fromstring(figure_as_svg(figure))
        return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]

    return texts


@pytest.fixture
def overlaps() -> Callable[[Figure], list[tuple[str, str]]]:
    """Pairs of texts of a figure that run into each other."""

    def pairs(figure: Figure) -> list[tuple[str, str]]:
        figure.draw_without_rendering()
        texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
        boxes = [(t.get_text(), t.get_window_extent().padded(-1.5)) for t in texts]
        return [
            (name, other)
            for place, (name, box) in enumerate(boxes)
            for other, other_box in boxes[:place]
            if box.overlaps(other_box)
        ]

    return pairs

"""`demo:digits`: 1,797 handwritten digits of 8x8 pixels in 17 shades of gray.

scikit-learn ships them (the test part of "Optical Recognition of Handwritten Digits", UCI machine
learning repository, CC BY 4.0; Alpaydin and Kaynak 1998). No two of them are equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

NAME = "demo:digits"
LABEL_NAMES = [str(digit) for digit in range(10)]
HELD_OUT_SIZES = {"validation": 180, "test": 450}

BRIGHTEST = 16  # of the 17 shades


def read_digits() -> tuple[NDArray[np.uint8], list[str]]:
    """The images [1797, 8, 8], black 0 to white 255, and the label of each (`LABEL_NAMES`)."""
    digits = load_digits()
    images = np.round(digits.images * (255 / BRIGHTEST)).astype(np.uint8)
    return images, [str(label) for label in digits.target]

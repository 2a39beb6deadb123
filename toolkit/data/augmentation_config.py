"""How training images are changed."""

from dataclasses import dataclass

from toolkit.config import check_range
from toolkit.errors import UserError


@dataclass
class AugmentationSettings:
    """Random changes of the training images; anew in every epoch, the same in a resumed run."""

    crop_padding: int = 4
    """Shift by up to so many pixels in each direction, black coming in; 0: not at all."""
    flip: bool = True
    """Mirror half of the images left to right; wrong where that changes the class (digits)."""
    randaugment: int = 0
    """RandAugment operations on every image; 0: none, usual is 2."""
    randaugment_magnitude: int = 9
    """Strength of RandAugment from 0 to 30."""
    erasing: float = 0.0
    """Share of images in which a random rectangle is made the mean colour."""
    mixup: float = 0.0
    """Mix pairs of images with weights from Beta(alpha, alpha), this alpha; 0: not at all. Where
    CutMix is on too, half of the batches get the one and half the other."""
    cutmix: float = 0.0
    """Likewise for CutMix: a rectangle of one image is pasted into the other."""

    def check(self) -> None:
        """Refuse settings out of their range.

        Raises:
            UserError: names the setting, its value and what is expected.
        """
        for key in ("crop_padding", "randaugment", "mixup", "cutmix"):
            if getattr(self, key) < 0:
                raise UserError(
                    f"--augmentation.{key} {getattr(self, key)}: expected a number of at least 0"
                )
        check_range("augmentation.randaugment_magnitude", self.randaugment_magnitude, 0, 30)
        check_range("augmentation.erasing", self.erasing, 0, 1)

"""Where the images come from: the settings every image recipe shares."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.data.split_config import SplitConfig

if TYPE_CHECKING:
    from toolkit.data.images import ImageData


@dataclass
class ImageDataConfig(SplitConfig):
    """Labelled images in three splits."""

    dataset: str = "demo:digits"
    """Folder with one folder per class (also below train, validation, test), table of images or of
    their paths (csv, json, parquet, ...), folder of such tables, Hub name, or demo:digits."""
    image_column: str | None = None
    """Column of a table with the images or their paths; null: found by its name."""
    label_column: str | None = None
    """Column of a table with the label; null: found by its name."""
    image_size: int | None = None
    """Height and width in pixels that images of different sizes are brought to when they are read;
    null: the model's size, else all images must have the same. Images of one smaller size keep it
    in store and are enlarged for the model."""
    skip_damaged: bool = False
    """Go on without the files that cannot be read as images."""

    def load_data(self, model_size: tuple[int, int] | None = None) -> "ImageData":
        """Read, check and split the data.

        Args:
            model_size: height and width the model asks for, where it asks for any.

        Raises:
            UserError: whatever is wrong with it, with file and row.
        """
        from toolkit.data.encoding import text_encoding
        from toolkit.data.images import load_images

        size = (self.image_size, self.image_size) if self.image_size is not None else model_size
        with text_encoding(self.encoding):
            return load_images(
                self.dataset,
                image_column=self.image_column,
                label_column=self.label_column,
                size=size,
                train_size=self.train_size,
                validation_size=self.validation_size,
                test_size=self.test_size,
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
                skip_damaged=self.skip_damaged,
            )

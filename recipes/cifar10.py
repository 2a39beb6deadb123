"""CIFAR-10: a Vision Transformer against a convolutional network.

Both from random weights, or a pretrained ViT fine-tuned:

    accelerate launch recipes/cifar10.py --model resnet
    accelerate launch recipes/cifar10.py --model vit
    accelerate launch recipes/cifar10.py --preset vit_base
    toolkit compare results/runs/cifar10/RUN results/runs/cifar10/OTHER

Offline, a minute on a laptop: accelerate launch recipes/cifar10.py --preset demo
"""

from dataclasses import dataclass, field
from typing import Literal

from toolkit.config import Invocation, RunConfig, TrainConfig, check_range
from toolkit.data.augmentation import Augmentation
from toolkit.data.augmentation_config import AugmentationSettings
from toolkit.data.image_collate import ImageCollator, measure_preprocessing
from toolkit.data.image_config import ImageDataConfig
from toolkit.engine import fit
from toolkit.entry import run_recipe
from toolkit.evaluation import ClassificationMetric
from toolkit.image_modeling import (
    NEW_MODELS,
    ResNetShape,
    ViTShape,
    load_preprocessing,
    new_image_model,
)
from toolkit.image_outcome import describe_image_training, print_cost
from toolkit.modeling import load_pretrained
from toolkit.objectives import Classification
from toolkit.outcome import Outcome, describe_model, finish_classification, save_model, score_splits
from toolkit.run import start_run


@dataclass
class Config(ImageDataConfig, RunConfig):
    """Which model to train, and how its images are changed."""

    model: str = "resnet"
    """resnet or vit: a new one of the size below; or a pretrained model: folder or Hub name."""
    implementation: Literal["scratch", "hf"] = "scratch"
    """Our own classes, or HuggingFace's; those have no ResNet for small images."""
    dataset: str = "uoft-cs/cifar10"
    """Hub name, folder of train.parquet and test.parquet, folder of class folders, demo:digits."""
    vit: ViTShape = field(default_factory=ViTShape)
    """For --model vit."""
    resnet: ResNetShape = field(default_factory=ResNetShape)
    """For --model resnet."""
    augmentation: AugmentationSettings = field(default_factory=AugmentationSettings)
    """Random changes of the training images."""
    label_smoothing: float = 0.0
    """Share of every label that is spread over all classes."""
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            epochs=30, batch_size=128, learning_rate=1e-3, weight_decay=0.05, schedule="cosine"
        )
    )
    """How to train; the defaults suit a new model."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "cifar10")
    config = run.config
    check_range("label_smoothing", config.label_smoothing, 0, 1)
    augmentation = Augmentation(config.augmentation, config.seed)

    # A pretrained model brings its size and colours; a new one gets those of the images.
    pretrained = config.model not in NEW_MODELS
    if pretrained:
        preprocessing = load_preprocessing(config.model)
        data = config.load_data(preprocessing.size)
        model, _ = load_pretrained(
            config.model, "image-classification", implementation=config.implementation,
            label_names=data.label_names,
        )  # fmt: skip
    else:
        data = config.load_data()
        preprocessing = measure_preprocessing(data, config.image_size)
        model = new_image_model(
            config.model, config.vit, config.resnet, preprocessing.size, data.label_names,
            config.implementation,
        )  # fmt: skip
    method = "full" if pretrained else "from_scratch"
    described = describe_model(model, config.model, config.implementation, method)

    # Training images are augmented, the others never.
    collate = ImageCollator(preprocessing, augmentation, len(data.label_names))
    collate_plain = ImageCollator(preprocessing)
    objective = Classification(config.label_smoothing)
    metric = ClassificationMetric(len(data.label_names))
    result = fit(
        run, model, data, objective=objective, collate=collate, collate_validation=collate_plain,
        metric=metric,
    )  # fmt: skip

    # The best weights on validation are tested once.
    scores = score_splits(run, result, data, objective, collate_plain)
    save_model(run, result.model, preprocessing.processor())
    title = config.title or f"{config.model}, {method}"
    outcome = Outcome(title, described, describe_image_training(run, result), scores)
    print_cost(finish_classification(run, data, outcome, "image-classification"))


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

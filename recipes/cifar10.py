"""CIFAR-10: a Vision Transformer against a convolutional network.

Both from random weights, or a pretrained ViT fine-tuned:

    accelerate launch recipes/cifar10.py --model resnet
    accelerate launch recipes/cifar10.py --model vit
    accelerate launch recipes/cifar10.py --preset vit_base
    toolkit compare results/runs/cifar10/RUN results/runs/cifar10/OTHER

Offline, a minute on a laptop: accelerate launch recipes/cifar10.py --preset demo
"""

from dataclasses import dataclass, field

from toolkit.classification import fit_classifier_on_features, train_classifier
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.data.augmentation import Augmentation
from toolkit.data.augmentation_config import AugmentationSettings
from toolkit.data.image_collate import ImageCollator, measure_preprocessing
from toolkit.data.image_config import ImageDataConfig
from toolkit.entry import run_recipe
from toolkit.evaluation import ClassificationMetric
from toolkit.fine_tuning import FineTuningConfig, Method
from toolkit.frozen import image_features
from toolkit.image_modeling import (
    NEW_MODELS,
    ResNetShape,
    ViTShape,
    check_method,
    load_preprocessing,
    new_image_model,
)
from toolkit.image_outcome import describe_image_training, print_cost
from toolkit.loss_config import ClassificationLossConfig
from toolkit.outcome import describe_model, finish_classification
from toolkit.run import start_run
from toolkit.unused_settings import say_unused


@dataclass
class Config(ImageDataConfig, FineTuningConfig, ClassificationLossConfig, RunConfig):
    """Which model to train, and how its images are changed."""

    model: str = "resnet"
    """resnet or vit: a new one of the size below; or a pretrained model: folder or Hub name."""
    method: Method | None = None
    """For a pretrained model: train all weights, LoRA or DoRA updates, or (frozen) logistic
    regression on its features; null: full for a pretrained model, from_scratch for a new one."""
    dataset: str = "uoft-cs/cifar10"
    """Hub name, folder of train.parquet and test.parquet, folder of class folders, demo:digits."""
    vit: ViTShape = field(default_factory=ViTShape)
    """For --model vit."""
    resnet: ResNetShape = field(default_factory=ResNetShape)
    """For --model resnet."""
    augmentation: AugmentationSettings = field(default_factory=AugmentationSettings)
    """Random changes of the training images."""
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
    method = config.method or ("from_scratch" if config.model in NEW_MODELS else "full")
    check_method(config.model, method)
    say_unused(run, method, trains=method != "frozen")
    augmentation = Augmentation(config.augmentation, config.seed)

    # A pretrained model brings its size and colours; a new one gets those of the images.
    if method == "from_scratch":
        data = config.load_data()
        preprocessing = measure_preprocessing(data, config.image_size)
        model = new_image_model(
            config.model, config.vit, config.resnet, preprocessing.size, data.label_names,
            config.implementation,
        )  # fmt: skip
    else:
        preprocessing = load_preprocessing(config.model)
        data = config.load_data(preprocessing.size)
        head = "model" if method == "frozen" else "image-classification"
        model, new_modules = config.load(config.model, head, label_names=data.label_names)
        if method != "frozen":  # which trains no part of the encoder
            model = config.choose_trained(model, method, new_modules)
    run.record_data(data.summary)
    described = describe_model(model, config.model, config.implementation, method)

    # Training images are augmented, the others never; the best on validation is tested once.
    processor, collate_plain = preprocessing.processor(), ImageCollator(preprocessing)
    if method == "frozen":
        outcome = fit_classifier_on_features(
            run, model, data, described, processor, collate=collate_plain, features=image_features
        )
    else:
        outcome = train_classifier(
            run, model, data, described, processor,
            collate=ImageCollator(preprocessing, augmentation, len(data.label_names)),
            collate_plain=collate_plain, objective=config.classification(data),
            metric=ClassificationMetric(len(data.label_names)),
            describe=describe_image_training,
        )  # fmt: skip
    print_cost(finish_classification(run, data, outcome, "image-classification"))


if __name__ == "__main__":
    run_recipe(main, Config, __file__)

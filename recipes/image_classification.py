"""Label your own images with any image model.

    accelerate launch recipes/image_classification.py --dataset photos/ --method lora
    accelerate launch recipes/image_classification.py --dataset photos.csv --image-size 64
        --method from_scratch --model resnet

photos/ holds one folder per class (or train, validation and test, which hold them); photos.csv has
the columns image (path of the file) and label. Offline, a minute on a laptop: --preset demo
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
    """What to train on what."""

    model: str = "google/vit-base-patch16-224-in21k"
    """Model folder or Hub name; with --method from_scratch: resnet or vit."""
    method: Method = "full"
    """Train all weights; train LoRA or DoRA updates; keep the model and fit logistic regression on
    its features; or train a new model from random weights."""
    vit: ViTShape = field(default_factory=ViTShape)
    """For --method from_scratch --model vit."""
    resnet: ResNetShape = field(default_factory=ResNetShape)
    """For --method from_scratch --model resnet."""
    augmentation: AugmentationSettings = field(default_factory=AugmentationSettings)
    """Random changes of the training images; none for --method frozen."""
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(epochs=5, learning_rate=5e-5, schedule="cosine")
    )
    """How to train; the defaults suit fine-tuning, a new model needs a rate around 1e-3."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "image_classification")
    config = run.config
    say_unused(run, config.method, trains=config.method != "frozen")
    check_method(config.model, config.method)
    augmentation = Augmentation(config.augmentation, config.seed)

    # A pretrained model brings its size and colours; a new one gets those of the images.
    if config.method == "from_scratch":
        data = config.load_data()
        preprocessing = measure_preprocessing(data, config.image_size)
        model = new_image_model(
            config.model, config.vit, config.resnet, preprocessing.size, data.label_names,
            config.implementation,
        )  # fmt: skip
    else:
        preprocessing = load_preprocessing(config.model)
        data = config.load_data(preprocessing.size)
        head = "model" if config.method == "frozen" else "image-classification"
        model, new_modules = config.load(config.model, head, label_names=data.label_names)
        if config.method != "frozen":  # which trains no part of the encoder
            model = config.choose_trained(model, config.method, new_modules)
    run.record_data(data.summary)
    described = describe_model(model, config.model, config.implementation, config.method)
    processor, collate_plain = preprocessing.processor(), ImageCollator(preprocessing)

    # Train; the best checkpoint on validation is tested once.
    if config.method == "frozen":
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

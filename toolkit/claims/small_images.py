"""Claim 10: on small image data a CNN beats a ViT at equal budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import ViTConfig

from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.claims.points import above, verdict_of
from toolkit.claims.sequence_models import trained_size
from toolkit.claims.short_training import Recipe, right_answers, train
from toolkit.compute import FlopCounter
from toolkit.demo.digits import BRIGHTEST, HELD_OUT_SIZES, LABEL_NAMES, read_digits
from toolkit.image_modeling import ResNetShape, ViTShape, new_resnet
from toolkit.modeling import new_model
from toolkit.plots import learning_curve
from toolkit.plots.curves import Series
from toolkit.report.blocks import Block, Figure, Paragraph, Table

CNN, VIT = "CNN", "ViT"
KINDS = (CNN, VIT)
HEAD = "image-classification"
RATES = (1e-3, 3e-3, 1e-2)
WEIGHT_DECAY = 0.05


@dataclass(frozen=True)
class Sizes:
    """How much is trained; `cnn_steps` set the budget."""

    training_images: Sequence[int]
    cnn: ResNetShape
    vit: ViTShape
    batch: int
    cnn_steps: int
    rates: Sequence[float]
    seeds: int


FULL = Sizes(
    (100, 300, 1000),
    ResNetShape(widths=[24, 48, 96], depths=[1, 1, 1]),
    ViTShape(patch_size=2, layers=4, hidden_size=52, heads=4),
    32,
    250,
    RATES,
    4,
)
QUICK = Sizes(
    (20, 40),
    ResNetShape(widths=[4, 8], depths=[1, 1]),
    ViTShape(patch_size=2, layers=1, hidden_size=16, heads=2),
    8,
    3,
    RATES[:2],
    2,
)


class Images(NamedTuple):
    """Pixels [images, 3, height, width] of mean 0 and variance 1 in training, and classes."""

    pixels: Tensor
    labels: Tensor

    def rows(self, chosen: Tensor) -> Images:
        """Some of them."""
        return Images(self.pixels[chosen], self.labels[chosen])


class Splits(NamedTuple):
    """What is trained on, what rates are chosen by, what is measured."""

    train: Images
    validation: Images
    test: Images


def read_splits() -> Splits:
    """The embedded digits, the three splits always the same; gray is repeated as three colours."""
    images, labels = read_digits()
    pixels = torch.from_numpy(images).float() / (255 / BRIGHTEST)
    classes = torch.tensor([LABEL_NAMES.index(label) for label in labels])
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(0))
    held_out = [HELD_OUT_SIZES["test"], HELD_OUT_SIZES["validation"]]
    test, validation, rest = order.split([*held_out, len(order) - sum(held_out)])
    mean, deviation = pixels[rest].mean(), pixels[rest].std()
    coloured = ((pixels - mean) / deviation)[:, None].expand(-1, 3, -1, -1).contiguous()
    everything = Images(coloured, classes)
    return Splits(everything.rows(rest), everything.rows(validation), everything.rows(test))


class Logits(nn.Module):
    """A model of images as a function from pixels to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        """[batch, 3, height, width] -> [batch, classes]."""
        return self.model(pixel_values=pixels).logits


def build(kind: str, sizes: Sizes, image_size: tuple[int, int]) -> Logits:
    """A new network of a kind."""
    if kind == CNN:
        return Logits(new_resnet(sizes.cnn, LABEL_NAMES, "scratch"))
    return Logits(
        new_model("a new ViT", vit_config(sizes.vit, image_size), HEAD, "scratch", LABEL_NAMES)
    )


def vit_config(shape: ViTShape, image_size: tuple[int, int]) -> ViTConfig:
    """A ViT of a shape whose first weights have a standard deviation of 1 / sqrt(width).

    ViT's own 0.02 suits a width of 768. One so narrow hardly begins to learn from it in a few
    hundred steps: the comparison would be of first weights, not of architectures.
    """
    return ViTConfig(
        image_size=image_size[0],
        patch_size=shape.patch_size,
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=round(shape.feed_forward * shape.hidden_size),
        initializer_range=shape.hidden_size**-0.5,
    )


def step_flops(model: nn.Module, batch: Images) -> int:
    """Floating point operations of a step: forward and backward, products and convolutions.

    A multiplication and an addition are two. The update of the weights is not counted.
    """
    model.train()
    with FlopCounter() as counter:
        F.cross_entropy(model(batch.pixels), batch.labels).backward()
    if counter.flops is None:  # tests would see it; a budget must not be a guess
        raise RuntimeError(f"operations without a formula: {sorted(counter.unknown)}")
    return counter.flops


def steps_of_budget(budget: int, flops: int) -> int:
    """The number of steps whose operations come nearest to the budget, at least 1."""
    return max(1, round(budget / flops))


@dataclass(frozen=True)
class Budget:
    """What each network may compute in a training: `steps` of `flops` each."""

    flops: Mapping[str, int]
    steps: Mapping[str, int]

    def total(self, kind: str) -> int:
        """Operations of a whole training."""
        return self.flops[kind] * self.steps[kind]


def find_budget(sizes: Sizes, data: Splits) -> Budget:
    """The CNN's steps, and as many of the ViT as cost the same."""
    batch = data.train.rows(torch.arange(sizes.batch))
    size = _image_size(data)
    flops = {kind: step_flops(build(kind, sizes, size), batch) for kind in KINDS}
    budget = flops[CNN] * sizes.cnn_steps
    return Budget(flops, {kind: steps_of_budget(budget, flops[kind]) for kind in KINDS})


def _image_size(data: Splits) -> tuple[int, int]:
    height, width = data.train.pixels.shape[-2:]
    return height, width


def some_images(images: Images, count: int, seed: int) -> Images:
    """So many of them, by seed."""
    order = torch.randperm(len(images.labels), generator=torch.Generator().manual_seed(seed))
    return images.rows(order[:count])


def decide(better: Sequence[Spread]) -> Verdict:
    """The verdict by the rule of `CLAIM.test`, from CNN minus ViT at every number of images."""
    return verdict_of([above(one.low, one.high) for one in better])


class _Trainer:
    """Trains and tests networks within the budget; counts how much of the measurement is done."""

    def __init__(self, sizes: Sizes, data: Splits, measuring: Measuring) -> None:
        self.sizes, self.data, self.measuring = sizes, data, measuring
        self.budget = find_budget(sizes, data)
        self.runs = len(KINDS) * (len(sizes.rates) + sizes.seeds * len(sizes.training_images))
        self.done = 0

    def accuracy(self, kind: str, count: int, rate: float, seed: int, tested: Images) -> float:
        """Of a network that was trained on so many images."""
        torch.manual_seed(seed)
        model = build(kind, self.sizes, _image_size(self.data))
        images = some_images(self.data.train, count, seed)
        words = f"{kind}, {count} images"

        def draw(generator: torch.Generator) -> Images:
            return images.rows(torch.randperm(count, generator=generator)[: self.sizes.batch])

        def advance(share: float) -> None:
            self.measuring.advance((self.done + share) / self.runs, words)

        recipe = Recipe(self.budget.steps[kind], rate, WEIGHT_DECAY)
        train(model, draw, recipe, seed, advance)
        self.done += 1
        return float(right_answers(model, *tested).mean())


def measure(measuring: Measuring) -> Finding:
    """Choose each network's learning rate on validation, then train on every number of images."""
    sizes = QUICK if measuring.quick else FULL
    data = read_splits()
    trainer = _Trainer(sizes, data, measuring)
    middle = sizes.training_images[len(sizes.training_images) // 2]
    # A seed of its own: what is chosen by it is tested with others.
    validation_seed = measuring.seed + 2_000_000
    rates: dict[str, float] = {}
    for kind in KINDS:
        tried = {
            rate: trainer.accuracy(kind, middle, rate, validation_seed, data.validation)
            for rate in sizes.rates
        }
        rates[kind] = max(tried, key=lambda rate: tried[rate])
    found: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for count in sizes.training_images:
        for kind in KINDS:
            found[kind].append(
                [
                    trainer.accuracy(kind, count, rates[kind], measuring.seed_of(seed), data.test)
                    for seed in range(sizes.seeds)
                ]
            )
    return report(sizes, data, trainer.budget, rates, found)


def report(
    sizes: Sizes,
    data: Splits,
    budget: Budget,
    rates: Mapping[str, float],
    found: Mapping[str, Sequence[Sequence[float]]],
) -> Finding:
    """What was found, from the test accuracies by network, number of images and seed."""
    spreads = {kind: [Spread.of(values) for values in found[kind]] for kind in KINDS}
    better = [
        Spread.of([mine - theirs for mine, theirs in zip(*pair, strict=True)])
        for pair in zip(found[CNN], found[VIT], strict=True)
    ]
    by_count = "; ".join(
        f"{count:,} images: {cnn.mean:.1%} and {vit.mean:.1%}, difference "
        f"{difference.written(3, 100)} points"
        for count, cnn, vit, difference in zip(
            sizes.training_images, spreads[CNN], spreads[VIT], better, strict=True
        )
    )
    parameters = {kind: trained_size(build(kind, sizes, _image_size(data))) for kind in KINDS}
    return Finding(
        verdict=decide(better),
        sentence=f"Test accuracy of CNN and ViT from random weights, trained with the same number "
        f"of operations on {by_count}.",
        setting={
            "data": "scikit-learn's handwritten digits, 8x8 pixels, 10 classes; "
            f"{len(data.test.labels)} test images, the same for all; no augmentation",
            "CNN": f"ResNet with a stem for small images, widths {sizes.cnn.widths}, depths "
            f"{sizes.cnn.depths}, {parameters[CNN]:,} parameters",
            "ViT": f"patches of {sizes.vit.patch_size}x{sizes.vit.patch_size}, layers: "
            f"{sizes.vit.layers}, width {sizes.vit.hidden_size}, {parameters[VIT]:,} parameters; "
            "first weights of standard deviation 1 / √width, as ViT's own 0.02 is for wide ones",
            "budget": "operations of forward and backward passes, counted as they run: "
            + ", ".join(
                f"{kind} {budget.steps[kind]} steps of {sizes.batch} images, "
                f"{budget.total(kind) / 1e9:.3g} GFLOP"
                for kind in KINDS
            )
            + "; the same whatever the number of training images",
            "training": "AdamW, gradients clipped at 1, the rate rising for a tenth of the steps "
            "and falling to 0, for both",
            "learning rate": "chosen on validation for each of the two, with a seed of its own, "
            f"from {', '.join(f'{rate:g}' for rate in sizes.rates)}: "
            + ", ".join(f"{kind} {rate:g}" for kind, rate in rates.items()),
            "seeds": f"{sizes.seeds}: weights, batches and which images are trained on (the same "
            "for both); intervals are t intervals over seeds",
            "larger": "CIFAR-10 with ResNet-18 and a ViT: results/cifar10-vit-vs-cnn",
        },
        blocks=_blocks(sizes, spreads, better),
        data={
            "training_images": list(sizes.training_images),
            "parameters": parameters,
            "steps": dict(budget.steps),
            "training_flops": {kind: budget.total(kind) for kind in KINDS},
            "learning_rate": dict(rates),
            "accuracy": {kind: [one.to_dict() for one in spreads[kind]] for kind in KINDS},
            "cnn_minus_vit": [one.to_dict() for one in better],
        },
        number="CNN minus ViT: "
        + ", ".join(
            f"{one.written(3, 100)} points at {count:,}"
            for count, one in zip(sizes.training_images, better, strict=True)
        ),
    )


def _blocks(
    sizes: Sizes, spreads: Mapping[str, Sequence[Spread]], better: Sequence[Spread]
) -> list[Block]:
    series = [
        Series(
            kind,
            sizes.training_images,
            [one.mean for one in spreads[kind]],
            [max(0.0, one.low) for one in spreads[kind]],
            [min(1.0, one.high) for one in spreads[kind]],
        )
        for kind in KINDS
    ]
    rows = [
        [
            f"{count:,}",
            *(spreads[kind][place].written(3, 100) for kind in KINDS),
            better[place].written(3, 100),
        ]
        for place, count in enumerate(sizes.training_images)
    ]
    return [
        Figure(
            "small_images",
            lambda: learning_curve(series),
            "Test accuracy of CNN and ViT against the number of training images",
            "Both from random weights, with the same number of operations; bars are 95% intervals "
            "over seeds.",
        ),
        Table(
            ["training images", "CNN, %", "ViT, %", "CNN minus ViT, points"],
            rows,
            numeric=(1, 2, 3),
        ),
        Paragraph("Test accuracy with 95% t intervals over seeds.", "caption"),
    ]


CLAIM = Claim(
    number=10,
    name="small_images",
    statement="On small image data a CNN beats a ViT at equal budget",
    source="Dosovitskiy et al. 2021, “An Image is Worth 16x16 Words” (arXiv:2010.11929), sections "
    "1 and 4.3: Transformers lack inductive biases of CNNs and do not generalise well when trained "
    "on insufficient amounts of data",
    test="A small ResNet and a small ViT are trained from random weights on the same few images "
    "with the same number of floating point operations (forward and backward, within 2%), each "
    "with the learning rate that is best for it on validation. For the claim speaks a difference "
    "CNN minus ViT in test accuracy whose 95% interval over seeds (paired) lies above 0, at every "
    "number of training images; at some of them: in part. Against it speak intervals that are "
    "nowhere above 0, at all of them.",
    measure=measure,
)

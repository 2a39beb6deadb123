"""Every architecture with every head, tiny: a test that names one of `_CASES` runs for each.

A new architecture is found by its folder, its sizes in its `parity_grid.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils import logging

from scratch_models import ScratchPreTrainedModel
from scratch_models.hub.architecture import HEADS, Architecture, architectures

Batch = dict[str, Any]
Pair = tuple[ScratchPreTrainedModel, PreTrainedModel]

# Sizes of architectures that transformers has not, and so need no parity grid.
_SIZES: dict[str, dict[str, Any]] = {
    "scratch_lstm": {"vocab_size": 61, "embedding_size": 12, "hidden_size": 10, "num_layers": 2},
    "scratch_cifar_resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 2]},
    "scratch_paper_transformer": {
        "vocab_size": 61,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": 24,
        "init_std": 0.3,
    },
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One head of one architecture.

    Args:
        architecture: as its folder describes it.
        head: a key of its `classes`.
    """

    architecture: Architecture
    head: str

    def __str__(self) -> str:
        return f"{self.architecture.model_type}-{self.head}"

    @property
    def own_class(self) -> Any:
        return self.architecture.load(self.head)

    @property
    def reference_class(self) -> Any:
        """HuggingFace's class; None without one."""
        name = self.own_class.huggingface_class
        return None if name is None else getattr(transformers, name)

    @property
    def auto_class(self) -> Any:
        return getattr(transformers, HEADS[self.head])

    @property
    def reads_images(self) -> bool:
        return self.own_class.main_input_name == "pixel_values"

    @property
    def has_attention(self) -> bool:
        return self.own_class._supports_sdpa

    def config(self, dropout: bool = False, **changes: Any) -> PreTrainedConfig:
        """A tiny config with three labels; without `dropout`, all dropouts are off."""
        sizes = _SIZES.get(self.architecture.model_type)
        if sizes is None:
            grid = self.architecture.part("parity_grid")
            sizes = {**grid.TINY, **getattr(grid, "HEAD_CHANGES", {}).get(self.head, {})}
        if "num_labels" not in changes and "id2label" not in changes:
            changes["num_labels"] = 2 if self.head == "question-answering" else 3
        settings = {**sizes, **changes}
        if "id2label" in changes:
            settings.pop("num_labels", None)
        config = self.own_class.config_class(**settings)
        if not dropout:
            rates = {k for k, v in config.to_dict().items() if "drop" in k and type(v) is float}
            for name in rates | {"classifier_dropout"}:
                setattr(config, name, 0.0)
        return config

    def fresh(self, seed: int = 0, attn: str | None = None, **changes: Any) -> Any:
        """Our model with random weights, in evaluation mode."""
        torch.manual_seed(seed)
        return self._build(self.own_class, attn, **changes)

    def reference(self, seed: int = 0, attn: str | None = None, **changes: Any) -> Any:
        """HuggingFace's model with random weights, biases and statistics, in evaluation mode."""
        torch.manual_seed(seed)
        model = self._build(self.reference_class, attn, **changes)
        with torch.no_grad():
            for name, tensor in model.state_dict(keep_vars=True).items():
                if name.endswith("running_var"):
                    tensor.uniform_(0.5, 1.5)
                elif tensor.is_floating_point() and (tensor.ndim == 1 or "bias" in name):
                    tensor.add_(torch.randn_like(tensor) * 0.3)
        return model

    def pair(self, attn: str | None = None, **changes: Any) -> Pair:
        """Our model and HuggingFace's with equal weights, in evaluation mode.

        Ours computes padding, too, so that all numbers can be compared.
        """
        reference = self.reference(attn=attn, **changes)
        scratch = self._build(self.own_class, attn, **changes)
        scratch.load_state_dict(reference.state_dict())
        scratch.set_packing("off")
        return scratch, reference

    def _build(self, model_class: Any, attn: str | None, **changes: Any) -> Any:
        attention = {"attn_implementation": attn} if attn and self.has_attention else {}
        return model_class._from_config(self.config(**changes), **attention).eval()

    def batch(self, config: PreTrainedConfig, labels: bool = True, seed: int = 0) -> Batch:
        """Four texts padded on the right, or four images, with labels where the head has some."""
        draws = torch.Generator().manual_seed(seed)
        if self.reads_images:
            size = getattr(config, "image_size", 32)
            inputs = {"pixel_values": torch.randn(4, 3, size, size, generator=draws)}
        else:
            inputs = _texts(config, draws)
        if config.is_encoder_decoder and (self.head == "model" or not labels):
            inputs["decoder_input_ids"] = _texts(config, draws)["input_ids"]
        return inputs | (self._labels(config, inputs, draws) if labels else {})

    def _labels(self, config: PreTrainedConfig, inputs: Batch, draws: torch.Generator) -> Batch:
        def draw(high: int, *shape: int) -> Tensor:
            return torch.randint(high, shape, generator=draws)

        if self.head == "model":
            return {}
        if self.head in ("sequence-classification", "image-classification"):
            return {"labels": draw(config.num_labels, 4)}
        if self.head == "question-answering":
            return {"start_positions": draw(3, 4), "end_positions": draw(3, 4)}
        kinds = config.num_labels if self.head == "token-classification" else 50
        padding = inputs["attention_mask"] == 0
        token_labels = draw(kinds, *padding.shape).masked_fill(padding, -100)
        if self.head == "pretraining":
            return {"labels": token_labels, "next_sentence_label": draw(2, 4)}
        return {"labels": token_labels}


def _texts(config: PreTrainedConfig, draws: torch.Generator) -> Batch:
    mask = torch.arange(9)[None] < torch.tensor([9, 6, 3, 9])[:, None]
    ids = torch.randint(3, 50, (4, 9), generator=draws)
    padding = config.pad_token_id or 0
    return {"input_ids": ids.masked_fill(~mask, padding), "attention_mask": mask.long()}


ALL = [Case(found, head) for found in architectures().values() for head in found.classes]
_MOST_PARTS = ("pretraining", "seq2seq-lm", "causal-lm", "image-classification")


def _one_a_folder(cases: list[Case]) -> list[Case]:
    """The head with most parts of every architecture: for tests that are dear."""
    order = {head: number for number, head in enumerate((*_MOST_PARTS, *HEADS))}
    found: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: order[case.head]):
        found.setdefault(case.architecture.model_type, case)
    return list(found.values())


_CASES: dict[str, list[Case]] = {
    "case": ALL,
    "twin": [case for case in ALL if case.reference_class is not None],
    "headed": [case for case in ALL if case.head != "model"],
    "body": [case for case in ALL if case.head == "model"],
    "text": [case for case in ALL if not case.reads_images],
    "attending": [case for case in ALL if case.has_attention],
}
_NO_PIPELINE = ("pretraining", "question-answering", "seq2seq-lm")  # not since transformers 5
_CASES["own"] = [case for case in _CASES["headed"] if case.reference_class is None]
_CASES["piped"] = [
    case
    for case in _CASES["twin"]
    if case.head not in _NO_PIPELINE and not case.own_class.config_class().is_encoder_decoder
]
_CASES["own_piped"] = [case for case in _CASES["own"] if case.head not in _NO_PIPELINE]
_CASES["smoothed"] = [  # Trainer smooths one kind of labels, called `labels`
    case
    for case in _CASES["twin"]
    if case.head not in ("model", "pretraining", "question-answering")
]
_CASES["translator"] = [case for case in ALL if case.head == "seq2seq-lm"]
_CASES["classifier"] = [case for case in ALL if case.head.endswith("classification")]
_CASES["text_twin"] = [case for case in _CASES["twin"] if not case.reads_images]
_CASES["attending_twin"] = [case for case in _CASES["twin"] if case.has_attention]
_CASES["one_twin"] = _one_a_folder([case for case in _CASES["twin"] if case.head != "model"])
_CASES["one_head"] = _one_a_folder(_CASES["headed"])


_CASES["quick_body"] = [case for case in _CASES["body"] if case.architecture.model_type == "vit"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in sorted(_CASES.keys() & set(metafunc.fixturenames)):
        metafunc.parametrize(name, _CASES[name], ids=str)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What transformers logs, which does not reach pytest otherwise."""
    library = logging.get_logger("transformers")
    level = library.level
    library.addHandler(caplog.handler)
    logging.set_verbosity_warning()
    yield caplog
    library.removeHandler(caplog.handler)
    library.setLevel(level)


@pytest.fixture
def gradients() -> Callable[[PreTrainedModel], dict[str, Tensor]]:
    """The gradients a model holds, by the names of its parameters."""

    def collect(model: PreTrainedModel) -> dict[str, Tensor]:
        named = model.named_parameters()
        return {name: p.grad.clone() for name, p in named if p.grad is not None}

    return collect


def training_loss(output: Any) -> Tensor:
    """The loss; for bodies, which have none, a number that every value has a part in."""
    if getattr(output, "loss", None) is not None:
        return output.loss
    weights = torch.linspace(-1, 1, output.last_hidden_state.numel())
    total = (output.last_hidden_state.flatten() * weights).mean()
    pooled = getattr(output, "pooler_output", None)
    return total if pooled is None else total + (pooled.flatten() * 0.1).mean()


@pytest.fixture(name="training_loss")
def training_loss_fixture() -> Callable[[Any], Tensor]:
    return training_loss

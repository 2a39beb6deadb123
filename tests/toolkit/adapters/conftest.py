"""Tiny models of every architecture, as HuggingFace saves them, and adapters trained on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from scratch_models import scratch_class

ENCODER = {
    "vocab_size": 61,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 24,
    "initializer_range": 0.3,
}
SIZES: dict[str, dict[str, Any]] = {
    "bert": ENCODER,
    "roberta": ENCODER,
    "gpt2": {
        "vocab_size": 61,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 24,
        "initializer_range": 0.3,
        "pad_token_id": 0,
    },
    "vit": {**ENCODER, "image_size": 16, "patch_size": 8},
    "marian": {
        "vocab_size": 61,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 24,
        "init_std": 0.3,
        "pad_token_id": 0,
        "decoder_start_token_id": 0,
        "eos_token_id": 1,
    },
}
HEADS = {
    "bert": ["sequence-classification", "masked-lm", "model"],
    "roberta": ["sequence-classification"],
    "gpt2": ["causal-lm", "sequence-classification"],
    "vit": ["image-classification", "model"],
    "marian": ["seq2seq-lm"],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`architecture` runs over every model type, `kind` over every model type and head."""
    if "architecture" in metafunc.fixturenames:
        metafunc.parametrize("architecture", HEADS)
    if "kind" in metafunc.fixturenames:
        kinds = [(model_type, head) for model_type, heads in HEADS.items() for head in heads]
        metafunc.parametrize("kind", kinds, ids=[f"{name}-{head}" for name, head in kinds])


@pytest.fixture(autouse=True)
def seed_and_one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Folder of a tiny model that HuggingFace's class of an architecture and head has saved."""
    written: dict[tuple[str, str], Path] = {}

    def write(model_type: str, head: str) -> Path:
        if (model_type, head) not in written:
            own_class = scratch_class(model_type, head)
            config = own_class.config_class(**SIZES[model_type])
            with torch.random.fork_rng():
                torch.manual_seed(0)
                model = getattr(transformers, str(own_class.huggingface_class))(config)
                with torch.no_grad():
                    for parameter in model.parameters():
                        if parameter.ndim == 1:  # a bias of 0 would hide a swapped one
                            parameter.add_(torch.randn_like(parameter) * 0.3)
            folder = tmp_path_factory.mktemp(f"{model_type}-{head}")
            model.save_pretrained(folder)
            written[model_type, head] = folder
        return written[model_type, head]

    return write


@pytest.fixture
def load(folders: Callable[..., Path]) -> Callable[..., Any]:
    """A tiny model in evaluation mode: ours, or HuggingFace's own class."""

    def build(model_type: str, head: str, implementation: str = "scratch", **kwargs: Any) -> Any:
        own_class = scratch_class(model_type, head)
        theirs = getattr(transformers, str(own_class.huggingface_class))
        model_class = own_class if implementation == "scratch" else theirs
        if implementation == "scratch":
            kwargs.setdefault("packing", "off")  # outputs of padding are compared, too
        return model_class.from_pretrained(folders(model_type, head), **kwargs).eval()

    return build


@pytest.fixture
def heads() -> dict[str, list[str]]:
    return HEADS


@pytest.fixture
def trained() -> Callable[..., Any]:
    """Give everything that is trained random values, as if it had been: B starts at 0."""

    def change(model: nn.Module) -> Any:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.requires_grad and "magnitude" in name:
                    parameter.mul_(torch.rand_like(parameter) + 0.5)
                elif parameter.requires_grad:
                    parameter.normal_(std=0.2)
        return model.eval()

    return change


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return SimpleNamespace(directory=tmp_path, accelerator=SimpleNamespace(is_main_process=True))


@pytest.fixture
def tokenizer() -> Any:
    """Only asked to save itself."""

    def save_pretrained(folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{}")

    return SimpleNamespace(save_pretrained=save_pretrained)


@pytest.fixture
def outputs() -> Callable[..., Tensor]:
    """Logits (hidden states of a body) for the same small batch."""

    def compute(model: Any, grad: bool = False) -> Tensor:
        config = model.config
        generator = torch.Generator().manual_seed(1)
        if config.model_type == "vit":
            batch = {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
        else:
            ids = torch.randint(2, 53, (2, 7), generator=generator)
            batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            batch["attention_mask"][1, 5:] = 0
            if config.model_type == "marian":
                batch["decoder_input_ids"] = ids.flip(1)
        with torch.set_grad_enabled(grad):
            result = model(**batch)
        return result.logits if hasattr(result, "logits") else result.last_hidden_state

    return compute

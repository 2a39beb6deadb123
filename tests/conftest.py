"""What all tests share: no network, no waiting for one, and tiny inputs to train on."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GOOD, BAD = "好棒佳妙赞美喜优", "坏差烂糟臭慢脏劣"
OTHER = "今天酒店房间服务早餐书本电脑东西"


def pytest_configure(config: pytest.Config) -> None:
    # HuggingFace's libraries read it when they are imported. Only a run that asks for the tests
    # marked `hub` may look for the Hub.
    expression = config.option.markexpr or ""
    if "hub" not in expression.replace("not hub", ""):
        os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Tests run beside each other, one a core: more threads would wait for one another. Read
        # when torch is imported, here and in the processes that tests start.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def fresh_accelerator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """accelerate keeps its device and precision in global state; give each test its own."""
    import torch
    from accelerate.state import AcceleratorState, GradientState

    def reset() -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()

    # One thread, as in the processes these tests start: sums in another order are other bits.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    reset()
    yield
    reset()
    torch.set_num_threads(threads)


def easy_reviews(rows: int, seed: int = 0) -> list[tuple[str, int]]:
    """Texts of very different length; a third of their characters gives the label away."""
    generator = random.Random(seed)
    found: dict[str, int] = {}
    while len(found) < rows:
        label = len(found) % 2
        letters = [generator.choice(OTHER) for _ in range(generator.randint(3, 24))]
        for place in generator.sample(range(len(letters)), len(letters) // 3):
            letters[place] = generator.choice(GOOD if label else BAD)
        found.setdefault("".join(letters), label)
    return list(found.items())


@pytest.fixture(scope="session")
def write_reviews() -> Callable[..., Path]:
    """Write a csv of easy reviews."""

    def write(
        file: Path, rows: int, seed: int = 0, names: tuple[str, ...] = ("负面", "正面")
    ) -> Path:
        lines = [f"{text},{names[label]}" for text, label in easy_reviews(rows, seed)]
        file.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
        return file

    return write


@pytest.fixture(scope="session")
def write_tiny_bert() -> Callable[..., Path]:
    """Write a BERT folder with random weights and a character vocabulary, as HuggingFace does."""

    def write(folder: Path, head: str = "BertForPreTraining", **changes: Any) -> Path:
        import torch
        import transformers

        folder.mkdir(parents=True)
        characters = sorted(set(GOOD + BAD + OTHER))
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        settings = {"tokenizer_class": "BertTokenizer", "model_max_length": 32}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        sizes: dict[str, Any] = {
            "vocab_size": len(vocabulary),
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 32,
            "initializer_range": 0.2,
        }
        with torch.random.fork_rng():
            torch.manual_seed(0)
            config = transformers.BertConfig(**{**sizes, **changes})
            getattr(transformers, head)(config).save_pretrained(folder)
        return folder

    return write

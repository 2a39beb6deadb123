"""Tiny models of every kind that reads, and the command called as the command line does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ..report.conftest import browser, read_page  # noqa: F401  (fixtures)

CHINESE = "房间很干净，the room is clean"


def assert_close(actual: Tensor, expected: Tensor, atol: float = 1e-6) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]) -> Path:
    """A body without a head."""
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "bert", "BertModel")


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model whose vocabulary splits Chinese characters."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from toolkit.data.byte_bpe import train_byte_bpe

    tokenizer = train_byte_bpe(["the room is clean"] * 3, 300)
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(tokenizer), n_positions=64, n_embd=16, n_layer=3, n_head=2,
                initializer_range=0.3, bos_token_id=0, eos_token_id=0,
            )
        )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It translates by chance."""
    from transformers import MarianConfig, MarianMTModel

    from toolkit.data.joint_bpe import train_joint_bpe

    tokenizer = train_joint_bpe(["3 plus 12", "7 plus 7", "3加12", "10加1"], 300)
    folder = tmp_path_factory.mktemp("models") / "marian"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MarianMTModel(
            MarianConfig(
                vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=2,
                encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
                decoder_attention_heads=4, max_position_embeddings=40, init_std=0.5,
                pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
                decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=None,
            )
        )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It sees 8 x 12 pixels as 2 x 3 patches."""
    from toolkit.data.image_collate import Preprocessing
    from toolkit.image_modeling import ViTShape, new_vit

    folder = tmp_path_factory.mktemp("models") / "vit"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        shape = ViTShape(patch_size=4, layers=2, hidden_size=16, heads=2)
        model: Any = new_vit(shape, (8, 12), ["one", "two"], "hf")
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    Preprocessing((8, 12), [0.5] * 3, [0.25] * 3).processor().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of another size than the model sees."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    file = tmp_path_factory.mktemp("photos") / "photo.png"
    Image.fromarray(pixels).save(file)
    return file


@dataclass(frozen=True)
class Finished:
    """How the command ended."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Its only error message."""
        assert self.status == 2, self.err
        assert self.err.count("error: ") == 1, self.err
        return self.err[self.err.index("error: ") :]


@pytest.fixture
def attention(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Finished]:
    """`attention(model, text, ...)` calls the command in an empty folder."""

    def run(*argv: object) -> Finished:
        import toolkit.cli

        monkeypatch.chdir(tmp_path)
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            toolkit.cli.main(["attention", *map(str, argv)])
        captured = capsys.readouterr()
        return Finished(int(caught.value.code or 0), captured.out, captured.err)

    return run


def data_of(page: str) -> dict[str, Any]:
    """What the script of a page is given."""
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    data: dict[str, Any] = json.loads(found)
    return data

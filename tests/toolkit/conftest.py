"""Directories of finished runs, made in a moment from random weights, as recipes leave them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

TEXTS = ["今天房间好棒", "差", "酒店服务坏，早餐劣，房间糟", "电脑慢书本烂", "赞美佳妙"]
NAMES = ["负面", "中性", "正面"]
ENCODER = "AutoModelForSequenceClassification"


@pytest.fixture(scope="session")
def write_run() -> Callable[..., Path]:
    """`write_run(folder, task, name, method, **columns of the predictions)` -> run directory.

    Its folder `model` is left to the caller.
    """

    def write(
        folder: Path, task: str, name: str = "new", method: str = "from_scratch",
        names: list[str] | None = None, **columns: Any,
    ) -> Path:  # fmt: skip
        model = {"name": name, "method": method, "implementation": "scratch", "prefix": ""}
        summary = {
            "schema_version": 1, "title": f"{name}, {method}", "task": task, "status": "complete",
            "model": model, "data": {"label_names": names, "pairs": "pair" in columns} if names
            else {}, "training": {}, "environment": {}, "test": {}, "validation": {},
        }  # fmt: skip
        (folder / "predictions").mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(summary, ensure_ascii=False), "utf-8")
        (folder / "config.yaml").write_text("seed: 1\n", "utf-8")
        table = pyarrow.table(columns or {"text": TEXTS})
        pyarrow.parquet.write_table(table, folder / "predictions" / "test.parquet")
        return folder

    return write


@pytest.fixture(scope="session")
def tiny_checkpoint(
    tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]
) -> Path:
    """A pretrained BERT, with a pooler and the heads of pretraining."""
    return write_tiny_bert(tmp_path_factory.mktemp("checkpoint") / "tiny-bert")


@pytest.fixture(scope="session")
def bert_run(
    tmp_path_factory: pytest.TempPathFactory,
    write_run: Callable[..., Path],
    tiny_checkpoint: Path,
) -> Path:
    """Three labels, saved by our class."""
    import torch

    from toolkit.modeling import load_pretrained, load_tokenizer

    run = write_run(
        tmp_path_factory.mktemp("runs") / "bert", "text-classification", str(tiny_checkpoint),
        "full", NAMES,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model: Any = load_pretrained(
            str(tiny_checkpoint), "sequence-classification", label_names=NAMES
        ).model
        torch.nn.init.normal_(model.classifier.weight)
    model.save_pretrained(run / "model")
    load_tokenizer(str(tiny_checkpoint)).save_pretrained(run / "model")
    return run


@pytest.fixture(scope="session")
def lstm_run(
    tmp_path_factory: pytest.TempPathFactory,
    write_run: Callable[..., Path],
    tiny_checkpoint: Path,
) -> Path:
    """Two layers, so that both kinds of inputs of a layer occur."""
    import torch

    from scratch_models import ScratchLSTMConfig, ScratchLSTMForSequenceClassification
    from toolkit.modeling import load_tokenizer

    run = write_run(
        tmp_path_factory.mktemp("runs") / "lstm", "text-classification", "LSTM", names=NAMES
    )
    tokenizer = load_tokenizer(str(tiny_checkpoint))
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = ScratchLSTMForSequenceClassification(
            ScratchLSTMConfig(
                vocab_size=len(tokenizer), embedding_size=6, hidden_size=5, num_layers=2,
                initializer_range=1.0, id2label=dict(enumerate(NAMES)),
                label2id={name: index for index, name in enumerate(NAMES)},
            )
        )  # fmt: skip
    model.save_pretrained(run / "model")
    tokenizer.save_pretrained(run / "model")
    return run


@pytest.fixture(scope="session")
def frozen_run(
    tmp_path_factory: pytest.TempPathFactory,
    write_run: Callable[..., Path],
    tiny_checkpoint: Path,
) -> Path:
    """Logistic regression of scikit-learn on BERT's features; its probabilities are recorded."""
    import torch
    from safetensors.numpy import save_file

    from toolkit.frozen import build_classifier, linear_weights, mean_pooled_features
    from toolkit.modeling import load_pretrained, load_tokenizer

    tokenizer = load_tokenizer(str(tiny_checkpoint))
    encoder: Any = load_pretrained(str(tiny_checkpoint), "model").model.eval()
    with torch.no_grad():
        batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
        features = mean_pooled_features(encoder, dict(batch))["features"].numpy()
    classifier = build_classifier(30.0).fit(features, np.array([2, 0, 0, 1, 2]))
    run = write_run(
        tmp_path_factory.mktemp("runs") / "frozen", "text-classification", str(tiny_checkpoint),
        "frozen", NAMES, text=TEXTS, probabilities=list(classifier.predict_proba(features)),
    )  # fmt: skip
    encoder.save_pretrained(run / "model")
    tokenizer.save_pretrained(run / "model")
    weight, bias = linear_weights(classifier)
    save_file({"weight": weight, "bias": bias}, run / "model" / "classifier.safetensors")
    return run


@pytest.fixture(scope="session")
def lora_run(
    tmp_path_factory: pytest.TempPathFactory,
    write_run: Callable[..., Path],
    tiny_checkpoint: Path,
) -> Path:
    """An adapter with updates that are not zero, and the merged model."""
    import torch

    from toolkit.adapters import LoraSettings, add_lora
    from toolkit.fine_tuning import save_trained
    from toolkit.modeling import load_pretrained, load_tokenizer

    run = write_run(
        tmp_path_factory.mktemp("runs") / "lora", "text-classification", str(tiny_checkpoint),
        "lora", NAMES,
    )  # fmt: skip
    model, new = load_pretrained(str(tiny_checkpoint), "sequence-classification", label_names=NAMES)
    adapted = add_lora(model, LoraSettings(rank=2), new)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(3)
        for name, parameter in adapted.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.normal_(0, 0.5)
    started: Any = SimpleNamespace(directory=run, accelerator=SimpleNamespace(is_main_process=True))
    save_trained(started, adapted.eval(), load_tokenizer(str(tiny_checkpoint)))
    return run


@pytest.fixture(scope="session")
def resnet_run(tmp_path_factory: pytest.TempPathFactory, write_run: Callable[..., Path]) -> Path:
    """Our ResNet for small images, its running means not those of new weights."""
    import torch

    from toolkit.data.image_collate import Preprocessing
    from toolkit.image_modeling import ResNetShape, new_resnet

    run = write_run(
        tmp_path_factory.mktemp("runs") / "resnet", "image-classification", "resnet", names=NAMES,
        image=["0", "1"],
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(4)
        shape = ResNetShape(widths=[4, 6], depths=[1, 2])
        model: Any = new_resnet(shape, NAMES, "scratch")
        model.train()(pixel_values=torch.randn(8, 3, 12, 12))
    model.save_pretrained(run / "model")
    Preprocessing((12, 12), [0.5] * 3, [0.25] * 3).processor().save_pretrained(run / "model")
    return run


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[[Path], Path]:
    """A copy of a folder, to be damaged."""
    return lambda folder: Path(shutil.copytree(folder, tmp_path / f"copy of {folder.name}"))

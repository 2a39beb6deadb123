"""Models whose architecture transformers lacks: their source is put into the folder.

transformers copies the files that `auto_map` in config.json names and imports each by itself, so
they may import torch, transformers and each other, nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.sharing import remote

_HERE = Path(remote.__file__).parent
_OUR_BASE = "from scratch_models.hub.base import ScratchPreTrainedModel\n"
_CONFIG_IMPORT = "from transformers import PreTrainedConfig\n"
_BOTH_IMPORTS = "from transformers import PreTrainedConfig, PreTrainedModel\n"
_PLAIN_BASE = '''

class ScratchPreTrainedModel(PreTrainedModel):
    """What this model needs of the base class it was written with."""

    accepts_loss_kwargs = False  # losses are means: Trainer divides when it accumulates
'''


@dataclass(frozen=True)
class RemoteCode:
    """What is added to a folder so that `trust_remote_code=True` loads it.

    Args:
        files: name and source of every file.
        auto_map: of config.json: Auto class -> "file.Class".
        architecture: name of the model's class.
    """

    files: dict[str, str]
    auto_map: dict[str, str]
    architecture: str

    def write(self, folder: Path) -> None:
        """Write the files."""
        for name, source in self.files.items():
            (folder / name).write_text(source, encoding="utf-8")

    def added_to(self, config: dict[str, Any]) -> dict[str, Any]:
        """The fields of config.json with these classes named."""
        return config | {"auto_map": self.auto_map, "architectures": [self.architecture]}


def lstm_code() -> RemoteCode:
    """The LSTM baseline: its own source with as much of our base class as it needs."""
    from scratch_models.baselines.lstm import modeling

    source, name = Path(modeling.__file__), "ScratchLSTMForSequenceClassification"
    return RemoteCode(
        {"modeling_lstm.py": without_our_base(source.read_text(encoding="utf-8"))},
        {
            "AutoConfig": "modeling_lstm.ScratchLSTMConfig",
            "AutoModelForSequenceClassification": f"modeling_lstm.{name}",
        },
        name,
    )


def cifar_resnet_code() -> RemoteCode:
    """The ResNet for small images, as HuggingFace's with another stem."""
    return RemoteCode(
        {"modeling_cifar_resnet.py": _source("cifar_resnet")},
        {
            "AutoConfig": "modeling_cifar_resnet.CifarResNetConfig",
            "AutoModel": "modeling_cifar_resnet.CifarResNetModel",
            "AutoModelForImageClassification": (
                "modeling_cifar_resnet.CifarResNetForImageClassification"
            ),
        },
        "CifarResNetForImageClassification",
    )


def frozen_code(encoder_type: str, images: bool) -> RemoteCode:
    """A linear classifier on the features of an encoder.

    Args:
        encoder_type: `model_type` of the encoder; that of our ResNet brings its source along.
    """
    source = _source("frozen_classifier")
    files = {}
    if encoder_type == "scratch_cifar_resnet":
        files = cifar_resnet_code().files
        source += _REGISTER_CIFAR
    name = "FrozenImageClassifier" if images else "FrozenTextClassifier"
    head = "ImageClassification" if images else "SequenceClassification"
    return RemoteCode(
        files | {"modeling_frozen_classifier.py": source},
        {
            "AutoConfig": "modeling_frozen_classifier.FrozenClassifierConfig",
            f"AutoModelFor{head}": f"modeling_frozen_classifier.{name}",
        },
        name,
    )


_REGISTER_CIFAR = """

from .modeling_cifar_resnet import CifarResNetConfig, CifarResNetModel  # noqa: E402

AutoConfig.register("scratch_cifar_resnet", CifarResNetConfig, exist_ok=True)
AutoModel.register(CifarResNetConfig, CifarResNetModel, exist_ok=True)
"""


def without_our_base(source: str) -> str:
    """Source of a model that takes nothing of ours but `ScratchPreTrainedModel`, standing alone.

    Raises:
        ValueError: it takes more of this package than that.
    """
    replaced = ((_OUR_BASE, _PLAIN_BASE), (_CONFIG_IMPORT, _BOTH_IMPORTS))
    absent = [old for old, _ in replaced if source.count(old) != 1]
    for old, new in replaced:
        source = source.replace(old, new)
    left = [line for line in source.splitlines() if "scratch_models" in line and "import" in line]
    if absent or left:
        raise ValueError(f"this source cannot stand alone: without {absent}, with {left}")
    return source


def _source(name: str) -> str:
    return (_HERE / f"{name}.py").read_text(encoding="utf-8")

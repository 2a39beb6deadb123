"""LoRA and DoRA adapters through peft: training, exchange with HuggingFace's classes, merging."""

from toolkit.adapters.exchange import load_adapter, save_adapter
from toolkit.adapters.merging import merge
from toolkit.adapters.targets import LoraSettings
from toolkit.adapters.training import add_lora

__all__ = ["LoraSettings", "add_lora", "load_adapter", "merge", "save_adapter"]

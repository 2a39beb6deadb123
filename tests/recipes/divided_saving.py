"""Save models that two processes have divided, and the same whole: `divided_saving.py FOLDER`."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from accelerate import Accelerator
from fsdp2_on_cpu import divide
from torch.distributed.tensor import DTensor

import scratch_models
from toolkit.adapters import LoraSettings, add_lora
from toolkit.config import TrainConfig
from toolkit.fine_tuning import save_trained
from toolkit.training.optimizers import build_optimizer
from toolkit.training.sharding import gather_whole, prepare
from toolkit.translation_models import portable

BERT = transformers.BertConfig(
    vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
    max_position_embeddings=32, initializer_range=0.2, num_labels=3,
)  # fmt: skip
GPT2 = transformers.GPT2Config(
    vocab_size=31, n_embd=16, n_layer=2, n_head=2, n_positions=32, initializer_range=0.2,
    bos_token_id=1, eos_token_id=1,
)  # fmt: skip
MARIAN: dict[str, Any] = {
    "vocab_size": 31, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "pad_token_id": 0,
    "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "max_position_embeddings": 32, "eos_token_id": 1,
    "decoder_start_token_id": 0, "forced_eos_token_id": None,
}  # fmt: skip
IMAGE = transformers.ViTConfig(
    image_size=8, patch_size=4, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=24, initializer_range=0.2,
)  # fmt: skip


def lora(model: Any) -> Any:
    """With updates that are not zero, and a classifier trained whole where there is one."""
    new = ["classifier"] if hasattr(model, "classifier") else []
    adapted = add_lora(model, LoraSettings(), new)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    return adapted


CASES: dict[str, Callable[[], Any]] = {
    "bert": lambda: scratch_models.ScratchBertForSequenceClassification(BERT),
    "bert_hf": lambda: transformers.BertForSequenceClassification(BERT),
    "bert_tied": lambda: scratch_models.ScratchBertForMaskedLM(BERT),
    "gpt2": lambda: scratch_models.ScratchGPT2LMHeadModel(GPT2),
    "gpt2_hf": lambda: transformers.GPT2LMHeadModel(GPT2),
    "bert_lora": lambda: lora(scratch_models.ScratchBertForSequenceClassification(BERT)),
    "gpt2_lora_hf": lambda: lora(transformers.GPT2LMHeadModel(GPT2)),
    "translator": lambda: scratch_models.ScratchPaperTransformerForConditionalGeneration(
        scratch_models.ScratchPaperTransformerConfig(**MARIAN)
    ),
    "vit": lambda: scratch_models.ScratchViTForImageClassification(IMAGE),
}


def inputs(name: str) -> dict[str, torch.Tensor]:
    if name == "vit":
        return {"pixel_values": torch.zeros(2, 3, 8, 8)}
    ids = torch.arange(2, 12).view(2, 5)
    return {"input_ids": ids} | ({"decoder_input_ids": ids} if name == "translator" else {})


def main(folder: Path) -> None:
    accelerator = Accelerator()
    processor = SimpleNamespace(save_pretrained=lambda folder: None)
    for name, build in CASES.items():
        torch.manual_seed(0)
        model = build()
        for place in ("whole", "divided"):
            run: Any = SimpleNamespace(accelerator=accelerator, directory=folder / place / name)
            if place == "whole":
                save_trained(run, copy.deepcopy(model), processor, convert=portable)
                continue
            model, _ = prepare(divide(accelerator), model, build_optimizer(model, TrainConfig()))
            parameters = list(model.parameters())
            assert all(isinstance(parameter, DTensor) for parameter in parameters)
            assert any(p.to_local().numel() < p.numel() for p in parameters)
            with torch.no_grad():
                model.eval()(**inputs(name))  # leaves what is no layer's gathered
            assert (gather_whole(accelerator, model) is None) != accelerator.is_main_process
            save_trained(run, model, processor, convert=portable)
            with torch.no_grad():
                model(**inputs(name))  # it is still the divided one


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""What two models write: tokens chosen in every way, and the memory they choose them with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.differences import row_of_pairs
from scratch_models.parity.inputs import Batch, example_prompts, real_positions
from scratch_models.parity.report import ParityRow

NEW_TOKENS = 8
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "greedy without cache": {"use_cache": False},
    "greedy, static cache": {"cache_implementation": "static", "disable_compile": True},
    "beams": {"num_beams": 3},
    "beams without cache": {"num_beams": 3, "use_cache": False},
    "sampled": {"do_sample": True, "top_k": 0},
}
"""Arguments of `generate`, beside `_PLAIN`."""
_PLAIN: dict[str, Any] = {"num_beams": 1, "do_sample": False, "use_cache": True}
"""What a checkpoint's generation_config.json may have otherwise."""
_STAGE = "generation"


def compare_generation(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, seed: int = 0
) -> list[ParityRow]:
    """The tokens both choose and the logits they choose them by; nothing for other models.

    And the logits of our model reading a text piece by piece with a cache, beside those of
    HuggingFace's reading it at once.
    """
    if not reference.can_generate():
        return []
    prompts = example_prompts(reference.config, seed)
    prompts = {name: tensor.to(reference.device) for name, tensor in prompts.items()}
    rows = []
    for way, arguments in WAYS.items():
        ours, theirs = (_generate(m, prompts, arguments, seed) for m in (scratch, reference))
        rows.append(_ids_row(f"{way}: ids", ours.sequences, theirs.sequences))
        logits = torch.stack(ours.logits), torch.stack(theirs.logits)
        rows.append(row_of_pairs(_STAGE, f"{way}: logits", [logits]))
    text = theirs.sequences
    inputs = _complete_inputs(reference, prompts, text)
    with torch.no_grad():
        pair = _in_pieces(scratch.eval(), inputs), reference.eval()(**inputs).logits
    mask = "decoder_attention_mask" if reference.config.is_encoder_decoder else "attention_mask"
    ours, theirs = (logits[inputs[mask].bool()] for logits in pair)
    rows.append(row_of_pairs(_STAGE, "piece by piece and at once: logits", [(ours, theirs)]))
    return rows


def _generate(model: PreTrainedModel, prompts: Batch, arguments: dict[str, Any], seed: int) -> Any:
    config = model.config
    room = config.max_position_embeddings - prompts["input_ids"].shape[1]
    new_tokens = min(NEW_TOKENS, room)
    torch.manual_seed(seed)  # the same draws on both sides
    return model.eval().generate(
        **prompts,
        **{**_PLAIN, **arguments},
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens // 2,  # a random model may end at once
        pad_token_id=config.pad_token_id or 0,
        output_logits=True,
        return_dict_in_generate=True,
    )


def _ids_row(name: str, ours: Tensor, theirs: Tensor) -> ParityRow:
    different = int((ours != theirs).sum()) if ours.shape == theirs.shape else math.inf
    return ParityRow(_STAGE, name, float(different), 0.0)


def _complete_inputs(model: PreTrainedModel, prompts: Batch, text: Tensor) -> Batch:
    """Arguments of `forward` for a generated text and what it was generated from."""
    if model.config.is_encoder_decoder:
        mask = torch.ones_like(text)
        return prompts | {"decoder_input_ids": text, "decoder_attention_mask": mask}
    new = torch.ones_like(text[:, prompts["input_ids"].shape[1] :])
    mask = torch.cat([prompts["attention_mask"], new], dim=1)
    return {
        "input_ids": text,
        "attention_mask": mask,
        "position_ids": real_positions(mask),
    }


def _in_pieces(model: PreTrainedModel, inputs: Batch) -> Tensor:
    """Logits [batch, length, vocab] of a text read in pieces of several lengths, with a cache."""
    decoder = "decoder_" if model.config.is_encoder_decoder else ""
    per_token = (f"{decoder}input_ids", "position_ids")
    mask_name = f"{decoder}attention_mask"
    fixed: Batch = {}
    if decoder:
        source = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        fixed = {
            "encoder_outputs": model.get_encoder()(**source),
            "attention_mask": source["attention_mask"],
        }
    cache, logits = None, []
    for start, end in _pieces(inputs[f"{decoder}input_ids"].shape[1]):
        piece = {name: inputs[name][:, start:end] for name in per_token if name in inputs}
        piece[mask_name] = inputs[mask_name][:, :end]
        output = model(**fixed, **piece, cache=cache, use_cache=True)
        cache = output.cache
        logits.append(output.logits)
    return torch.cat(logits, dim=1)


def _pieces(length: int) -> Iterator[tuple[int, int]]:
    """Where pieces of 3, 1, 2, 3, 1, 2, … tokens start and end."""
    start, sizes = 0, (3, 1, 2)
    number = 0
    while start < length:
        end = min(start + sizes[number % len(sizes)], length)
        yield start, end
        start, number = end, number + 1

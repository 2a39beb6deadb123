"""Is a from-scratch model equal to HuggingFace's? Compare them in everything that can be observed.

Both sides read the same checkpoint, see the same batches and use the same attention kernel. What is
compared, each as a row with the largest absolute difference:

- the weights as loaded, the hidden states after every layer, the attention maps of every layer
  (HuggingFace's from its eager attention, as its fused kernels return none), outputs and loss;
- the gradient of every parameter;
- losses, outputs and parameters after ten SGD, then ten AdamW steps with the model's own dropout;
- what each side saves: names, bits and config.json.

Tolerances, for float32: values may differ by 1e-5, or by 1e-5 of the largest reference value of the
row where that is above 1. Gradients may be small, so theirs is 1e-5 of the largest value of the row
(at least 1e-6 of the largest of the model), never more than the above. Counts must be 0.

The bias of the keys shifts all scores of a query alike and so has no gradient at all; AdamW divides
the rounding noise by itself and makes steps of it. It is compared by gradient and after SGD only.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import torch
import transformers
from safetensors import safe_open
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from scratch_models.hub.auto import HEADS, scratch_class
from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity_inputs import Batch, example_batches

TOLERANCE = 1e-5
STEPS = 10


@dataclass(frozen=True)
class ParityRow:
    """One comparison.

    Args:
        stage: what kind of value (`hidden states`, `gradients`, …).
        name: which one.
        difference: the largest absolute difference; infinite where shapes differ or one is missing.
        tolerance: the largest difference that still passes.
    """

    stage: str
    name: str
    difference: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """True within the tolerance; never for NaN and infinity."""
        return math.isfinite(self.difference) and self.difference <= self.tolerance


@dataclass
class ParityReport:
    """The comparison of one model with its counterpart."""

    model: str
    scratch_class: str
    huggingface_class: str
    attn_implementation: str
    parameters: int
    missing: list[str] = field(default_factory=list)
    """Weights the checkpoint does not hold, made equal at random before comparing."""
    rows: list[ParityRow] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if there are rows and every one of them passed."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    @property
    def failures(self) -> list[ParityRow]:
        """The rows that missed."""
        return [row for row in self.rows if not row.passed]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON (an infinite or undefined difference becomes None)."""
        rows = [
            {
                "stage": row.stage,
                "name": row.name,
                "difference": row.difference if math.isfinite(row.difference) else None,
                "tolerance": row.tolerance,
                "passed": row.passed,
            }
            for row in self.rows
        ]
        return {
            "model": self.model,
            "scratch_class": self.scratch_class,
            "huggingface_class": self.huggingface_class,
            "attn_implementation": self.attn_implementation,
            "parameters": self.parameters,
            "missing_weights": self.missing,
            "passed": self.passed,
            "rows": rows,
        }


@dataclass
class ParityPair:
    """One checkpoint in both classes, and what transformers said while loading it."""

    scratch: ScratchPreTrainedModel
    reference: PreTrainedModel
    head: str
    info: dict[str, Any]
    reference_info: dict[str, Any]


def load_pair(
    name: str | os.PathLike, head: str | None = None, attn_implementation: str = "sdpa"
) -> ParityPair:
    """Load a checkpoint, in the precision it is stored in, into our class and HuggingFace's.

    Args:
        name: a folder or a name on the Hub, of an architecture there is a from-scratch model of.
        head: a key of `scratch_models.hub.auto.HEADS`; None is the one the checkpoint names.
        attn_implementation: used on both sides.

    Raises:
        ValueError: for an architecture or head without from-scratch model.
        OSError: from transformers, where there is no such checkpoint.
    """
    config = transformers.AutoConfig.from_pretrained(name)
    head = head or checkpoint_head(config)
    own_class = scratch_class(config.model_type, head)
    if own_class.huggingface_class is None:
        raise ValueError(f"{own_class.__name__} has no counterpart in transformers to equal.")
    reference_class = getattr(transformers, own_class.huggingface_class)
    how: dict[str, Any] = {
        "attn_implementation": attn_implementation,
        "dtype": "auto",
        "output_loading_info": True,
    }
    scratch, info = own_class.from_pretrained(name, **how)
    reference, reference_info = reference_class.from_pretrained(name, **how)
    return ParityPair(scratch, reference, head, info, reference_info)


def check_pair(pair: ParityPair, name: str, device: str = "cpu", seed: int = 0) -> ParityReport:
    """Compare a loaded pair in every respect; trains both models.

    Args:
        pair: from `load_pair`.
        name: of the checkpoint, for the report.
        device: where to compute.
        seed: of the example batches.
    """
    scratch, reference = pair.scratch, pair.reference
    report = ParityReport(
        model=name,
        scratch_class=type(scratch).__name__,
        huggingface_class=type(reference).__name__,
        attn_implementation=scratch.config._attn_implementation,
        parameters=scratch.num_parameters(),
        missing=sorted(pair.info["missing_keys"]),
    )
    report.rows += compare_loading(scratch, reference, pair.info, pair.reference_info)
    report.rows += compare_saving(scratch, reference)
    # Saved in the checkpoint's own precision, computed in single precision.
    scratch, reference = scratch.float().to(device), reference.float().to(device)
    batches = [
        {key: tensor.to(device) for key, tensor in batch.items()}
        for batch in example_batches(scratch.config, pair.head, seed)
    ]
    report.rows += compare_computing(scratch, reference, batches)
    return report


def check_checkpoint(
    name: str | os.PathLike,
    head: str | None = None,
    attn_implementation: str = "sdpa",
    device: str = "cpu",
    seed: int = 0,
) -> ParityReport:
    """`load_pair` and `check_pair` in one."""
    return check_pair(load_pair(name, head, attn_implementation), str(name), device, seed)


def checkpoint_head(config: PreTrainedConfig) -> str:
    """The head a checkpoint was saved with, by `architectures` in its config; else the body."""
    for architecture in config.architectures or []:
        for head, auto_class in HEADS.items():
            if architecture.endswith(auto_class.removeprefix("AutoModel") or "Model"):
                return head
    return "model"


def compare_computing(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Forward, backward and training of two models with equal weights; trains both.

    Args:
        scratch: ours.
        reference: HuggingFace's.
        batches: keyword arguments of `forward`, with labels unless the models are bodies.
    """
    rows = compare_forward(scratch, reference, batches)
    rows += compare_gradients(scratch, reference, batches)
    rows += compare_training(scratch, reference, batches, "SGD")
    rows += compare_training(scratch, reference, batches, "AdamW")
    return rows


def compare_loading(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    info: dict[str, Any],
    reference_info: dict[str, Any],
) -> list[ParityRow]:
    """Did both read the same weights from a checkpoint? Then make the absent ones equal.

    A head the checkpoint does not hold is random on both sides; ours is given HuggingFace's values.
    """
    expected = to_own_names(scratch, reference.state_dict())
    missing = set(info["missing_keys"])
    reference_missing = set(
        to_own_names(scratch, {key: torch.empty(0) for key in reference_info["missing_keys"]})
    )
    tied = set(scratch.all_tied_weights_keys or {})
    own = scratch.state_dict()
    loaded = {key: tensor for key, tensor in own.items() if key not in missing}
    rows = [
        _count("loading", "found by one side only", (missing ^ reference_missing) - tied),
        _count("loading", "held by one side only", set(own) ^ set(expected)),
        _row("loading", "values as loaded", loaded, expected, exact=True),
    ]
    with torch.no_grad():
        for key in missing & expected.keys():
            if own[key].shape == expected[key].shape:  # else no copy: the rows to come show it
                own[key].copy_(expected[key])
    return rows


def compare_forward(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Hidden states, attention maps, outputs and loss, without dropout."""
    scratch.eval()
    reference.eval()
    pairs: dict[tuple[str, str], list[tuple[Tensor | None, Tensor | None]]] = {}
    with torch.no_grad():
        for batch in batches:
            flags = {"output_hidden_states": True, "output_attentions": True}
            ours = scratch(**batch, **flags)
            theirs = reference(**batch, output_hidden_states=True)
            maps = _eager_attentions(reference, batch)
            layers = zip_longest(ours.hidden_states, theirs.hidden_states)
            for number, pair in enumerate(layers):
                name = f"layer {number}" if number else "embeddings"
                pairs.setdefault(("hidden states", name), []).append(pair)
            for number, pair in enumerate(zip_longest(ours.attentions, maps), start=1):
                pairs.setdefault(("attention maps", f"layer {number}"), []).append(pair)
            for key, tensor in theirs.items():
                if isinstance(tensor, Tensor):
                    pairs.setdefault(("outputs", key), []).append((ours.get(key), tensor))
            loss = (training_loss(ours), training_loss(theirs))
            pairs.setdefault(("outputs", "loss"), [])[:0] = [loss]
    return [_row_of_pairs(stage, name, pair) for (stage, name), pair in pairs.items()]


def _eager_attentions(reference: PreTrainedModel, batch: Batch) -> tuple[Tensor, ...]:
    implementation = reference.config._attn_implementation
    reference.set_attn_implementation("eager")
    try:
        return reference(**batch, output_attentions=True).attentions
    finally:
        reference.set_attn_implementation(implementation)


def compare_gradients(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """The gradient of every parameter for the summed loss of all batches, without dropout."""
    ours = _gradients(scratch, batches)
    theirs = to_own_names(scratch, _gradients(reference, batches))
    names = [n for n, _ in scratch.named_parameters() if n in ours or n in theirs]
    largest = max((_largest(theirs[name]) for name in names if name in theirs), default=0.0)
    rows = []
    # In the order of the model: sorted by name, layer 10 would stand before layer 2.
    for name in names:
        difference, scale = _difference(ours.get(name), theirs.get(name))
        limit = min(max(scale, 0.1 * largest), max(scale, 1.0))
        rows.append(ParityRow("gradients", name, difference, TOLERANCE * limit))
    for model in (scratch, reference):
        model.zero_grad(set_to_none=True)
    return rows


def _gradients(model: PreTrainedModel, batches: list[Batch]) -> dict[str, Tensor]:
    model.eval()
    model.zero_grad(set_to_none=True)
    for batch in batches:
        training_loss(model(**batch)).backward()
    return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def compare_training(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    batches: list[Batch],
    optimizer: str,
) -> list[ParityRow]:
    """Ten steps of `optimizer` ("SGD", "AdamW") on both sides, with dropout from the same seed."""
    losses = train(scratch, batches, optimizer)
    reference_losses = train(reference, batches, optimizer)
    stage = f"after {STEPS} {optimizer} steps"
    rows = [_row(stage, "losses", {"": losses}, {"": reference_losses})]
    scratch.eval()
    reference.eval()
    with torch.no_grad():
        ours, theirs = scratch(**batches[0]), reference(**batches[0])
    tensors = {key: value for key, value in theirs.items() if isinstance(value, Tensor)}
    rows.append(_row(stage, "outputs", {key: ours.get(key) for key in tensors}, tensors))
    parameters = dict(scratch.named_parameters())
    expected = to_own_names(scratch, dict(reference.named_parameters()))
    for name, parameter in parameters.items():
        if optimizer == "AdamW" and name.endswith(".key.bias"):
            continue
        rows.append(_row(stage, name, {"": parameter}, {"": expected.get(name)}))
    return rows


def train(model: PreTrainedModel, batches: list[Batch], optimizer: str) -> Tensor:
    """Train for `STEPS` steps, taking the batches in turn; the loss before every step, [STEPS]."""
    learning_rate = {"SGD": 1e-3, "AdamW": 1e-4}[optimizer]
    step_rule = getattr(torch.optim, optimizer)(model.parameters(), lr=learning_rate, fused=True)
    model.train()
    losses = []
    for step in range(STEPS):
        torch.manual_seed(step)  # the same dropout on both sides
        loss = training_loss(model(**batches[step % len(batches)]))
        loss.backward()
        step_rule.step()
        model.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses)


def training_loss(output: Any) -> Tensor:
    """The loss of a head; for a body the mean product of its outputs with fixed random numbers."""
    if output.get("loss") is not None:
        return output.loss
    generator = torch.Generator().manual_seed(0)
    tensors = [output.last_hidden_state]
    if output.get("pooler_output") is not None:
        tensors.append(output.pooler_output)
    products = [t * torch.randn(t.shape, generator=generator).to(t) for t in tensors]
    return torch.stack([product.mean() for product in products]).sum()


def compare_saving(scratch: ScratchPreTrainedModel, reference: PreTrainedModel) -> list[ParityRow]:
    """What both sides write: names, bits (with type and shape) and the entries of config.json."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        scratch.save_pretrained(ours)
        reference.save_pretrained(theirs)
        own, expected = _saved_tensors(ours), _saved_tensors(theirs)
        different = {
            key for key in own.keys() & expected.keys() if not _same_bits(own, expected, key)
        }
        config, expected_config = _saved_config(ours), _saved_config(theirs)
        entries = config.keys() | expected_config.keys()
        changed = {key for key in entries if config.get(key) != expected_config.get(key)}
    return [
        _count("saving", "names only one writes", own.keys() ^ expected.keys()),
        _count("saving", "weights not equal in bits", different),
        _count("saving", "config.json entries", changed),
    ]


def _saved_tensors(folder: str) -> dict[str, str]:
    """Every weight name in a folder and the file that holds it."""
    files = [os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".safetensors")]
    return {key: file for file in files for key in _keys(file)}


def _keys(file: str) -> Iterator[str]:
    with safe_open(file, framework="pt") as weights:
        yield from weights.keys()


def _same_bits(own: dict[str, str], expected: dict[str, str], key: str) -> bool:
    with safe_open(own[key], framework="pt") as a, safe_open(expected[key], framework="pt") as b:
        x, y = a.get_tensor(key), b.get_tensor(key)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return torch.equal(x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8))


def _saved_config(folder: str) -> dict[str, Any]:
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def _row(
    stage: str,
    name: str,
    ours: Mapping[str, Tensor | None],
    theirs: Mapping[str, Tensor | None],
    exact: bool = False,
) -> ParityRow:
    row = _row_of_pairs(stage, name, [(ours[key], theirs.get(key)) for key in ours])
    return ParityRow(stage, name, row.difference, 0.0) if exact else row


def _row_of_pairs(
    stage: str, name: str, pairs: Sequence[tuple[Tensor | None, Tensor | None]]
) -> ParityRow:
    measured = [_difference(ours, theirs) for ours, theirs in pairs]
    # max() would lose a NaN that does not stand first.
    differences = [math.inf if math.isnan(d) else d for d, _ in measured]
    scale = max([1.0, *(scale for _, scale in measured)])
    return ParityRow(stage, name, max(differences, default=math.inf), TOLERANCE * scale)


def _difference(ours: Tensor | None, theirs: Tensor | None) -> tuple[float, float]:
    """The largest absolute difference of two tensors and the largest value of the second."""
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return math.inf, 0.0
    if theirs.numel() == 0:
        return 0.0, 0.0
    scale = _largest(theirs.detach())
    if torch.equal(ours, theirs):
        return 0.0, scale
    return _largest(ours.detach() - theirs.detach()), scale


def _largest(tensor: Tensor) -> float:
    """The largest absolute value, without a second tensor of that size; NaN if there is one."""
    lowest, highest = torch.aminmax(tensor)
    return float(torch.maximum(-lowest, highest))


def _count(stage: str, name: str, items: set[str]) -> ParityRow:
    shown = f" ({', '.join(sorted(items)[:3])}{', …' if len(items) > 3 else ''})" if items else ""
    return ParityRow(stage, name + shown, float(len(items)), 0.0)

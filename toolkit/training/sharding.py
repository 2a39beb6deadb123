"""Models whose weights are divided among processes: FSDP2 (`fully_shard`) and DeepSpeed ZeRO-3.

How they are divided, and how one whole model is made of the parts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch.optim import Optimizer

_WRAPPERS = ("_checkpoint_wrapped_module", "_orig_mod")
"""Where activation checkpointing and torch.compile keep the module they wrap."""


def prepare(
    accelerator: Accelerator, model: nn.Module, optimizer: Optimizer
) -> tuple[nn.Module, Optimizer]:
    """`accelerator.prepare`; FSDP2 divides models of every architecture.

    The layers that a model says must not be split are gathered one at a time, all else with the
    model itself. accelerate alone makes units of the token embeddings and the output layer, too;
    in models like BERT (embeddings inside of a unit), Marian (one table in four places) or ResNet
    (no embeddings) that divides weights twice, or fails.
    """
    if not accelerator.is_fsdp2:
        return accelerator.prepare(model, optimizer)
    plugin = accelerator.state.fsdp_plugin
    if plugin.transformer_cls_names_to_wrap is None:  # the launcher was not told
        plugin.transformer_cls_names_to_wrap = _layer_classes(model)
    ends = ("get_input_embeddings", "get_output_embeddings")
    for name in ends:
        setattr(model, name, lambda: None)
    try:
        return accelerator.prepare(model, optimizer)
    finally:
        for name in ends:
            vars(model).pop(name)


def prepare_evaluation(accelerator: Accelerator, model: nn.Module) -> nn.Module:
    """A model that is not trained, whole on the device of every process, however it is launched."""
    # evaluation_mode: DistributedDataParallel takes no model without gradients. device_placement:
    # with FSDP accelerate leaves models where they are, for it to move their parts.
    prepared: nn.Module = accelerator.prepare_model(
        model.requires_grad_(False), device_placement=True, evaluation_mode=True
    )
    return prepared


def prepare_generation(model: nn.Module) -> bool:
    """Whether processes must generate in step (``synced_gpus``): they then gather layers together.

    An encoder that `generate` calls by itself finds the weights that belong to no layer gathered.
    """
    from torch.distributed.fsdp import FSDPModule

    if isinstance(model, FSDPModule):
        model.unshard()
    return is_divided(model)


def _layer_classes(model: nn.Module) -> list[str]:
    """Names of classes not to be split, whose weights are used nowhere else."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    units = [module for module in model.modules() if type(module).__name__ in names]
    places: dict[int, int] = {}
    for _, parameter in model.named_parameters(remove_duplicate=False):
        places[id(parameter)] = places.get(id(parameter), 0) + 1
    shared = {type(unit).__name__ for unit in units
              if any(places[id(parameter)] > 1 for parameter in unit.parameters())}  # fmt: skip
    return sorted({type(unit).__name__ for unit in units} - shared)


def is_divided(model: nn.Module) -> bool:
    """Whether no process has all weights, so that all must compute together."""
    from torch.distributed.fsdp import FSDPModule

    return any(isinstance(module, FSDPModule) for module in model.modules()) or _by_deepspeed(model)


def gather_whole(accelerator: Accelerator, model: Any) -> Any:
    """The model with all its weights on the main process, None on the others.

    Collective over all processes. A model that is not divided is returned as it is; of a divided
    one the result is a copy on the CPU in the plain classes, to be changed and saved like any
    other. Weights that are tied are one weight there too.
    """
    if not is_divided(model):
        return model if accelerator.is_main_process else None
    weights = _gather_weights(accelerator, model)
    return _plain_copy(model, weights) if accelerator.is_main_process else None


def _by_deepspeed(model: nn.Module) -> bool:
    return any(hasattr(parameter, "ds_id") for parameter in model.parameters())


def _gather_weights(accelerator: Accelerator, model: nn.Module) -> dict[str, torch.Tensor]:
    """All weights by name, on the CPU; empty or without meaning except on the main process."""
    if _by_deepspeed(model):
        gathered = accelerator.get_state_dict(accelerator.deepspeed_engine_wrapped.engine)
        return {name: value.cpu() for name, value in (gathered or {}).items()}
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights: dict[str, Any] = get_model_state_dict(model, options=options)
    return weights


def _plain_copy(model: nn.Module, weights: dict[str, torch.Tensor]) -> Any:
    """New modules of the same structure around whole weights; what else they hold is shared."""
    # By identity: of tied weights the gathered ones may have one name only.
    whole: dict[int, torch.Tensor] = {}
    for name, tensor in _named_tensors(model):
        if name in weights:
            whole.setdefault(id(tensor), weights[name])
    parameters: dict[int, nn.Parameter] = {}
    modules: dict[int, nn.Module] = {}

    def copy_parameter(parameter: nn.Parameter) -> nn.Parameter:
        if id(parameter) not in parameters:
            parameters[id(parameter)] = nn.Parameter(
                whole[id(parameter)], requires_grad=parameter.requires_grad
            )
        return parameters[id(parameter)]

    def copy_buffer(buffer: torch.Tensor) -> torch.Tensor:
        return whole.get(id(buffer), buffer.detach().cpu())

    def copy_module(module: nn.Module) -> nn.Module:
        module = _unwrapped(module)
        if id(module) not in modules:
            kind = plain_class(module)
            copied = modules[id(module)] = kind.__new__(kind)
            # Without hooks: those of FSDP belong to the divided weights.
            vars(copied).update(vars(module) | vars(nn.Module()))
            copied.training = module.training
            copied._non_persistent_buffers_set = set(module._non_persistent_buffers_set)
            vars(copied).pop("forward", None)  # accelerate's, which would run the divided model
            for name, parameter in module._parameters.items():
                copied._parameters[name] = None if parameter is None else copy_parameter(parameter)
            for name, buffer in module._buffers.items():
                copied._buffers[name] = None if buffer is None else copy_buffer(buffer)
            for name, child in module._modules.items():
                copied._modules[name] = None if child is None else copy_module(child)
        return modules[id(module)]

    return copy_module(model)


def _named_tensors(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers under all their names, which say nothing of wrappers."""
    module = _unwrapped(module)
    for tensors in (module._parameters, module._buffers):
        yield from (
            (prefix + name, tensor) for name, tensor in tensors.items() if tensor is not None
        )
    for name, child in module._modules.items():
        if child is not None:
            yield from _named_tensors(child, f"{prefix}{name}.")


def _unwrapped(module: nn.Module) -> nn.Module:
    for name in _WRAPPERS:
        if (inner := module._modules.get(name)) is not None:
            return _unwrapped(inner)
    return module


def plain_class(module: nn.Module) -> type[nn.Module]:
    """Its class, before which `fully_shard` puts one of its own, `FSDP<class>`."""
    from torch.distributed.fsdp import FSDPModule

    kinds: list[Any] = [kind for kind in type(module).__mro__ if not issubclass(kind, FSDPModule)]
    return kinds[0]

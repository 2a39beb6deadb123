"""The optimizer: which parameters are decayed, and how fast each layer learns."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import nn
from torch.optim import Optimizer

from toolkit.config import TrainConfig
from toolkit.errors import UserError
from toolkit.training.depth import parameter_depths

SHARE = "share_of_learning_rate"
"""Key of a parameter group: its learning rate is this times that of the schedule."""


def build_optimizer(model: nn.Module, train: TrainConfig) -> Optimizer:
    """The optimizer of the parameters that are trained; biases and norms are not decayed.

    Norms and biases are the vectors among the parameters (Devlin et al. 2019, appendix A.2, and
    HuggingFace's Trainer exempt the same ones).

    Raises:
        UserError: no parameter is left to train; layer-wise decay of a model without layers.
    """
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not trained:
        raise UserError("every parameter of the model is frozen: nothing is left to train.")
    shares = learning_rate_shares(model, train.layer_decay)
    groups = defaultdict(list)
    for name, parameter in trained.items():
        groups[parameter.ndim > 1, shares[name]].append(parameter)
    described = [
        {"params": members, "weight_decay": train.weight_decay * decayed, SHARE: share}
        for (decayed, share), members in sorted(groups.items(), reverse=True, key=lambda g: g[0])
    ]
    if train.optimizer == "sgd":
        return torch.optim.SGD(
            described, lr=train.learning_rate, momentum=0.9, nesterov=True, fused=True
        )
    return torch.optim.AdamW(
        described,
        lr=train.learning_rate,
        betas=(0.9, train.adam_beta2),
        fused=True,
    )


def learning_rate_shares(model: nn.Module, layer_decay: float | None) -> dict[str, float]:
    """Share of the learning rate of every parameter, by name.

    What comes after the layers learns at the full rate, each layer at ``layer_decay`` times that
    of the one above it, the embeddings slowest: the discriminative fine-tuning of Howard and Ruder
    2018 (ULMFiT, arXiv:1801.06146, section 3.2).

    Raises:
        UserError: a decay is asked for and the model has no list of layers.
    """
    names = [name for name, _ in model.named_parameters()]
    if layer_decay is None:
        return dict.fromkeys(names, 1.0)
    depths = parameter_depths(model)
    if depths is None:
        raise UserError(
            f"--train.layer_decay {layer_decay}: {type(model).__name__} has no layers to tell "
            "apart. Leave it out."
        )
    return {name: layer_decay ** depths.from_top[name] for name in names}


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Give every parameter group its share of the schedule's rate; all of it, if it has none."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get(SHARE, 1.0)

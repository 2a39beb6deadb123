"""FSDP2 through accelerate without a GPU: `fsdp2_on_cpu.py RECIPE.py OPTIONS` runs a recipe.

accelerate itself knows FSDP on GPUs alone, and gives DistributedDataParallel on a CPU. Told that
its processes are of the type FSDP, it does on a CPU what it does there: divide, train, save, load.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any

from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

import toolkit.run


def divide(accelerator: Accelerator) -> Accelerator:
    """Let it prepare models with the settings of recipes/accelerate/fsdp2.yaml."""
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        reshard_after_forward=True,
        state_dict_type="SHARDED_STATE_DICT",
        cpu_ram_efficient_loading=False,
    )
    kind: dict[str, Any] = {"distributed_type": DistributedType.FSDP}
    PartialState._shared_state.update(kind)
    AcceleratorState._shared_state.update(kind, fsdp_plugin=plugin)
    assert accelerator.is_fsdp2
    return accelerator


if __name__ == "__main__":
    start = toolkit.run.start_accelerator
    toolkit.run.start_accelerator = lambda config: divide(start(config))
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")

"""Print the setup that a launcher gives to a recipe; started by `accelerate launch`."""

from __future__ import annotations

import json
from pathlib import Path
from sys import argv

from toolkit.accelerating import start_accelerator
from toolkit.config import RunConfig

accelerator = start_accelerator(RunConfig())
setup = {
    "type": accelerator.distributed_type.value,
    "fsdp2": accelerator.is_fsdp2,
    "processes": accelerator.num_processes,
    "precision": accelerator.mixed_precision,
    "device": accelerator.device.type,
}
if accelerator.is_main_process:
    Path(argv[1]).write_text(json.dumps(setup), encoding="utf-8")
accelerator.end_training()

"""The files of recipes/accelerate/ are what accelerate understands, and start what they say."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DistributedType, prepare_multi_gpu_env

RECIPES = Path(__file__).parents[2] / "recipes"
FOLDER = RECIPES / "accelerate"
KINDS = {
    "cpu": DistributedType.NO,
    "gpu": DistributedType.NO,
    "ddp": DistributedType.MULTI_GPU,
    "fsdp2": DistributedType.FSDP,
    "deepspeed_zero2": DistributedType.DEEPSPEED,
    "deepspeed_zero3": DistributedType.DEEPSPEED,
    "multi_node": DistributedType.MULTI_GPU,
}
PREFIXES = {"fsdp_config": "fsdp_", "deepspeed_config": "", "dynamo_config": "dynamo_"}
"""Sections whose keys are flags of `accelerate launch`, and what these begin with."""


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return content


def command(name: str) -> list[str]:
    """The words of the first comment line."""
    first = (FOLDER / f"{name}.yaml").read_text("utf-8").splitlines()[0]
    return shlex.split(first.removeprefix("# "))


def launch_arguments(name: str) -> Any:
    """What `accelerate launch` makes of the command in a file and of the file."""
    words = command(name)
    assert words[:4] == ["accelerate", "launch", "--config_file", f"recipes/accelerate/{name}.yaml"]
    parsed = launch_command_parser().parse_args(["--config_file", str(FOLDER / f"{name}.yaml"),
                                                 *words[4:]])  # fmt: skip
    return _validate_launch_command(parsed)[0]


def test_every_file_is_known() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_accelerate_reads_it(name: str) -> None:
    config = load_config_from_file(str(FOLDER / f"{name}.yaml"))  # raises for unknown keys
    assert isinstance(config, ClusterConfig)
    assert config.distributed_type == KINDS[name]
    assert config.use_cpu == (name == "cpu")
    # Of sections accelerate takes any key, and forgets those it does not know.
    flags = vars(launch_command_parser().parse_args(["script.py"]))
    for section, prefix in PREFIXES.items():
        for key in read(name).get(section, {}):
            assert (key if key.startswith(prefix) else prefix + key) in flags


@pytest.mark.parametrize("name", KINDS)
def test_its_command_starts_a_recipe_with_a_preset_that_exists(name: str) -> None:
    arguments = launch_arguments(name)
    recipe = RECIPES.parent / arguments.training_script
    assert recipe.is_file()
    options = arguments.training_script_args
    if options:
        assert options[0] == "--preset"
        assert (RECIPES / "presets" / recipe.stem / f"{options[1]}.yaml").is_file()
    assert arguments.mixed_precision == ("no" if name == "cpu" else "bf16")
    used = {
        "multi_gpu": arguments.multi_gpu,
        "use_fsdp": arguments.use_fsdp,
        "use_deepspeed": arguments.use_deepspeed,
    }
    expected = {DistributedType.MULTI_GPU: "multi_gpu", DistributedType.FSDP: "use_fsdp",
                DistributedType.DEEPSPEED: "use_deepspeed"}.get(KINDS[name])  # fmt: skip
    assert used == {flag: flag == expected for flag in used}


def test_fsdp2_reaches_the_processes() -> None:
    environment = prepare_multi_gpu_env(launch_arguments("fsdp2"))
    assert environment["ACCELERATE_USE_FSDP"] == "true"
    assert environment["FSDP_VERSION"] == "2"
    assert environment["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"
    assert environment["FSDP_STATE_DICT_TYPE"] == "SHARDED_STATE_DICT"
    # Models from random weights, and BatchNorm's buffers, are no checkpoint's.
    assert environment["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "false"


@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_stages(stage: int) -> None:
    arguments = launch_arguments(f"deepspeed_zero{stage}")
    assert arguments.zero_stage == stage
    assert arguments.gradient_accumulation_steps == 1  # the recipes accumulate themselves
    assert arguments.zero3_save_16bit_model == (True if stage == 3 else None)


def test_two_machines() -> None:
    arguments = launch_arguments("multi_node")
    assert (arguments.num_machines, arguments.num_processes) == (2, 16)
    assert (arguments.machine_rank, arguments.main_process_ip) == (0, "ADDRESS")
    prepare_multi_gpu_env(arguments)
    assert (arguments.nnodes, arguments.nproc_per_node, arguments.node_rank) == ("2", "8", 0)
    assert (arguments.rdzv_backend, arguments.rdzv_endpoint) == ("static", "ADDRESS:29500")


def test_slurm_starts_a_launcher_on_every_machine(tmp_path: Path) -> None:
    """With stand-ins for what a cluster has; `srun` runs its command on two machines."""
    programs = {
        "scontrol": 'printf "node7\\nnode8\\n"',
        "srun": '[ "$1" = --kill-on-bad-exit=1 ] && shift\n'
        "for SLURM_NODEID in 0 1; do export SLURM_NODEID; "
        '"$@"; done',
        "accelerate": 'printf "%s\\n" "$*"',
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "node[7-8]",
        "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "4",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", FOLDER / "slurm.sh", "recipes/bert_sentiment.py", "--title", "two words"],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for rank, line in enumerate(lines):
        assert line == (
            "launch --config_file recipes/accelerate/multi_node.yaml --num_machines 2 "
            f"--num_processes 8 --machine_rank {rank} --main_process_ip node7 "
            "--main_process_port 29500 recipes/bert_sentiment.py --title two words"
        )
        parsed = launch_command_parser().parse_args(line.split()[1:])
        assert parsed.training_script == "recipes/bert_sentiment.py"

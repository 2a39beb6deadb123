"""What a run ran on: versions, hardware, commit. Written to ``environment.json``."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from toolkit.fingerprint import fingerprint
from toolkit.git_state import git_state

if TYPE_CHECKING:
    from accelerate import Accelerator

PACKAGES = (
    "torch", "transformers", "accelerate", "datasets", "peft", "tokenizers", "scikit-learn",
    "numpy", "scratch-models-toolkit",
)  # fmt: skip

VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NCCL_ALGO", "NCCL_PROTO",
    "PYTHONHASHSEED", "HF_HUB_OFFLINE",
)  # fmt: skip
"""What can change speed or results. By name: other variables may hold passwords and paths."""


def describe_environment() -> dict[str, Any]:
    """Versions, hardware and the state of the code, as plain JSON values."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "packages": {name: _version(name) for name in PACKAGES},
        "git": git_state(),
        "code": code_fingerprint(),
    }


def describe_processes(accelerator: Accelerator) -> dict[str, Any]:
    """How accelerate connects processes and devices: the part that its launcher decides."""
    return {
        "num_processes": accelerator.num_processes,
        "distributed_type": accelerator.distributed_type.value,
        "mixed_precision": accelerator.mixed_precision,
        "dynamo": accelerator.state.dynamo_plugin.backend.value,
        "device": accelerator.device.type,
    }


def peak_memory_bytes(device: str | None = None) -> int:
    """Largest memory held so far: of the GPU, or resident, of this process.

    Args:
        device: cuda or cpu; None: the GPU where there is one.
    """
    if device == "cuda" or (device is None and torch.cuda.is_available()):
        return torch.cuda.max_memory_allocated()
    # Linux: ru_maxrss there is that of the starting process, where it is more.
    if (peak := _process_status("VmHWM")) is not None:
        return peak
    import resource  # not on Windows

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def resident_memory_bytes() -> int | None:
    """What this process holds in main memory now; None where the system does not say."""
    return _process_status("VmRSS")


def _process_status(field: str) -> int | None:
    """Bytes of a field of Linux's ``/proc/self/status``."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    for line in status.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def code_fingerprint() -> str:
    """SHA-256 over the Python files of the two packages and the recipes: equal code, equal hash."""
    root = Path(__file__).resolve().parents[1]
    return fingerprint(root, ("scratch_models", "toolkit", "recipes"))

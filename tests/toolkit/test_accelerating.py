"""What a launcher asks for is done, or refused in words: never something else in silence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate.utils import DistributedType

import toolkit.accelerating
from toolkit.accelerating import _check_processes, _tell_deepspeed, start_accelerator
from toolkit.config import RunConfig, TrainConfig
from toolkit.errors import UserError

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


def pretend(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], package: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A100")
    for name in ("is_torchao_available", "is_transformer_engine_available"):
        monkeypatch.setattr(toolkit.accelerating, name, lambda: package)


def test_fp8_without_gpu_and_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(toolkit.accelerating, "is_torchao_available", lambda: False)
    monkeypatch.setattr(toolkit.accelerating, "is_transformer_engine_available", lambda: False)
    with pytest.raises(UserError) as refused:
        start_accelerator(RunConfig(train=TrainConfig(mixed_precision="fp8")))
    assert str(refused.value) == (
        "fp8 needs a GPU of compute capability 8.9 or higher (Ada, Hopper) and the package torchao "
        "or transformer_engine; there is no GPU here, and neither package is installed. Try "
        "--train.mixed_precision bf16, or leave it out."
    )


@pytest.mark.parametrize(
    ("capability", "package", "found", "not_found"),
    [
        ((8, 0), True, "A100 has 8.0", "neither"),
        ((8, 0), False, "A100 has 8.0, and neither package", "no GPU"),
        ((9, 0), False, "neither package is installed", "A100"),
    ],
)
def test_fp8_is_refused_with_what_is_missing(
    capability: tuple[int, int],
    package: bool,
    found: str,
    not_found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend(monkeypatch, capability, package)
    with pytest.raises(UserError) as refused:
        start_accelerator(RunConfig(train=TrainConfig(mixed_precision="fp8")))
    assert found in str(refused.value)
    assert not_found not in str(refused.value)


def test_fp8_of_the_launcher_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp8")
    with pytest.raises(UserError, match="fp8 needs a GPU"):
        start_accelerator(RunConfig())
    # The setting of the run comes before the launcher's.
    accelerator = start_accelerator(RunConfig(train=TrainConfig(mixed_precision="bf16")))
    assert accelerator.mixed_precision == "bf16"


@pytest.mark.parametrize("capability", [(8, 9), (9, 0), (12, 0)])
def test_fp8_where_it_can_be_computed_is_left_to_accelerate(
    capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def start(**settings: Any) -> Any:
        asked.update(settings)
        return SimpleNamespace(
            mixed_precision="fp8", device=torch.device("cuda"), num_processes=1,
            distributed_type=DistributedType.NO,
        )  # fmt: skip

    pretend(monkeypatch, capability, package=True)
    monkeypatch.setattr(toolkit.accelerating, "Accelerator", start)
    start_accelerator(RunConfig(train=TrainConfig(mixed_precision="fp8")))
    assert asked["mixed_precision"] == "fp8"


def test_fsdp_on_a_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(UserError, match="FSDP, which divides models among GPUs, and none is used"):
        start_accelerator(RunConfig())


def test_the_first_version_of_fsdp_is_refused() -> None:
    accelerator: Any = SimpleNamespace(distributed_type=DistributedType.FSDP, is_fsdp2=False)
    with pytest.raises(UserError, match="set fsdp_version: 2"):
        toolkit.accelerating._check_sharding(accelerator)


@pytest.mark.parametrize(
    ("gpus", "command"),
    [
        (False, "On CPU use: ACCELERATE_USE_CPU=true torchrun --nproc_per_node 4 <recipe"),
        (True, "accelerate launch --config_file recipes/accelerate/ddp.yaml --num_processes 4 "),
    ],
)
def test_unconnected_processes_are_told_how_to_connect(
    gpus: bool, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus)
    accelerator: Any = SimpleNamespace(num_processes=1)
    with pytest.raises(UserError) as refused:
        _check_processes(accelerator)
    assert "4 processes were started, but each of them works alone" in str(refused.value)
    assert command in str(refused.value)
    assert ("On CPU" in str(refused.value)) == (not gpus)
    accelerator.num_processes = 4
    _check_processes(accelerator)


@pytest.mark.parametrize(("clip", "told"), [(0.5, 0.5), (None, 0.0)])
def test_deepspeed_learns_batch_size_and_clipping(clip: float | None, told: float) -> None:
    config = {"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto"}
    plugin = SimpleNamespace(is_auto=lambda key: config[key] == "auto", deepspeed_config=config)
    accelerator: Any = SimpleNamespace(
        distributed_type=DistributedType.DEEPSPEED, deepspeed_plugin=plugin
    )
    _tell_deepspeed(accelerator, TrainConfig(batch_size=7, max_grad_norm=clip))
    assert config == {"train_micro_batch_size_per_gpu": 7, "gradient_clipping": told}

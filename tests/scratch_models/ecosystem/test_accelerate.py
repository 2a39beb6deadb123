"""accelerate prepares our models, saves and loads their state, lays them out over devices."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator, cpu_offload, infer_auto_device_map

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


def test_state_is_saved_and_loaded_with_ties(one_head, tmp_path) -> None:
    accelerator = Accelerator(cpu=True)
    model = one_head.fresh(seed=1).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer = accelerator.prepare(model, optimizer)
    batch = one_head.batch(model.config)

    def step() -> None:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()

    step()
    accelerator.save_state(tmp_path)
    parameters = model.num_parameters()
    step()
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    step()
    accelerator.load_state(tmp_path)
    assert model.num_parameters() == parameters
    step()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_parts_not_to_be_split_are_classes_of_the_model(case) -> None:
    model = case.fresh()
    classes = {type(module).__name__ for module in model.modules()}
    names = set(model._no_split_modules or [])
    assert names or not model._supports_sdpa
    assert names <= classes


def test_a_model_is_laid_out_over_devices_without_cutting_a_part(case) -> None:
    model = case.fresh()
    whole = [
        name
        for name, module in model.named_modules()
        if type(module).__name__ in (model._no_split_modules or [])
    ]
    size = model.get_memory_footprint()
    layout = infer_auto_device_map(
        model,
        max_memory={0: size * 2 // 3, "cpu": 10 * size},
        no_split_module_classes=model._no_split_modules,
    )
    for place in layout:
        assert not any(place.startswith(f"{name}.") for name in whole), place


def test_weights_can_wait_on_another_device(one_head) -> None:
    model = one_head.fresh()
    batch = one_head.batch(model.config)
    with torch.no_grad():
        expected = model(**batch)
        found = cpu_offload(model, execution_device=torch.device("cpu"))(**batch)
    for key, value in expected.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(found[key], value), key


def test_device_map_auto_loads_every_weight(one_head, tmp_path) -> None:
    model = one_head.fresh()
    model.save_pretrained(tmp_path)
    loaded = one_head.own_class.from_pretrained(tmp_path, device_map="auto")
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name].cpu(), tensor), name

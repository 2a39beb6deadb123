"""A checkpoint is complete or absent, and gives back everything it was given."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from torch import nn

import toolkit.training.checkpoint
from toolkit.training.checkpoint import CheckpointStore, SaveError, find_damage
from toolkit.training.ema import WeightAverage

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


def restore_newest(store: CheckpointStore) -> dict[str, Any] | None:
    newest = store.newest()
    if newest is None:
        return None
    store.restore(newest)
    return store.state(newest)


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[..., tuple[CheckpointStore, nn.Module, Any]]:
    def make(keep: int = 1) -> tuple[CheckpointStore, nn.Module, Any]:
        accelerator = Accelerator()
        net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        model, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=0.1))
        return CheckpointStore([tmp_path / "checkpoints"], accelerator, keep), model, optimizer

    return make


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def step(model: nn.Module, optimizer: Any) -> None:
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_everything_comes_back(make_store: Any) -> None:
    store, model, optimizer = make_store()
    step(model, optimizer)
    store.save(1, {"step": 1, "note": "第一"}, best_step=None)
    saved = {name: value.clone() for name, value in model.state_dict().items()}
    drawn = draw()
    step(model, optimizer)
    after = {name: value.clone() for name, value in model.state_dict().items()}
    assert restore_newest(store) == {"step": 1, "note": "第一"}
    assert all(value.equal(saved[name]) for name, value in model.state_dict().items())
    assert draw() == drawn
    step(model, optimizer)  # AdamW's moments too: the same second step
    assert all(value.equal(after[name]) for name, value in model.state_dict().items())


def test_random_states_come_back_where_accelerate_gives_up_on_them(make_store: Any) -> None:
    """It swallows every error there and would go on with other dropout masks."""
    store, *_ = make_store()
    store.save(1, {}, None)
    drawn = draw()
    (store.folders[0] / "step-1" / "random_states_0.pkl").unlink()
    store.restore(1)
    assert draw() == drawn


def test_the_manifest_lists_every_file_with_size_and_hash(make_store: Any) -> None:
    store, *_ = make_store()
    store.save(1, {}, None)
    folder = store.folders[0] / "step-1"
    manifest = json.loads((folder / "manifest.json").read_text())
    files = {path.name: path for path in folder.iterdir() if path.name != "manifest.json"}
    assert manifest.keys() == files.keys()
    for name, path in files.items():
        content = path.read_bytes()
        assert manifest[name]["bytes"] == len(content)
        assert manifest[name]["sha256"] == hashlib.sha256(content).hexdigest()


def test_steps_are_numbers_and_other_things_are_not_checkpoints(tmp_path: Path) -> None:
    store = CheckpointStore([tmp_path / "none"], None)  # type: ignore[arg-type]
    assert store.steps() == []
    store = CheckpointStore([tmp_path], None)  # type: ignore[arg-type]
    for name in ("step-100", "step-9", "step-20", ".step-300.partial", "step-x", "best", "step-7a"):
        (tmp_path / name).mkdir()
    assert store.steps() == [9, 20, 100]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    keep=st.integers(1, 4),
    steps=st.lists(st.integers(1, 200), min_size=1, max_size=8, unique=True).map(sorted),
    data=st.data(),
)
def test_rotation_never_removes_the_best_or_the_newest(
    tmp_path_factory: pytest.TempPathFactory, keep: int, steps: list[int], data: st.DataObject
) -> None:
    store = CheckpointStore([tmp_path_factory.mktemp("c")], None, keep)  # type: ignore[arg-type]
    best: int | None = None
    for number, current in enumerate(steps):
        (store.folders[0] / f"step-{current}").mkdir()
        if data.draw(st.booleans()):
            best = current
        store._clear_old({current, best}, store.folders[0] / f"step-{current}")
        expected = set(steps[max(0, number + 1 - keep) : number + 1])
        assert set(store.steps()) == expected | ({best} if best is not None else set())


def test_an_interrupted_save_leaves_the_previous_checkpoint_and_no_new_name(
    make_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends between writing the files and giving them their name."""
    store, *_ = make_store()
    store.save(1, {"step": 1}, None)
    for moment in ("_write_manifest", "sha256_of"):
        with monkeypatch.context() as broken:

            def stop(*args: Any) -> None:
                raise KeyboardInterrupt

            broken.setattr(toolkit.training.checkpoint, moment, stop)
            with pytest.raises(KeyboardInterrupt):
                store.save(2, {"step": 2}, None)
        assert store.steps() == [1]
        assert restore_newest(store) == {"step": 1}
    store.save(2, {"step": 2}, None)  # over what was left lying there
    assert store.steps() == [2]
    assert find_damage(store.folders[0] / "step-2") is None
    assert [path.name for path in store.folders[0].iterdir()] == ["step-2"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        RuntimeError("[enforce fail] . PytorchStreamWriter failed writing file data/1"),
        SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
    ],
)
def test_a_full_disk_ends_the_save_and_not_the_checkpoint(
    make_store: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store, *_ = make_store()
    store.save(1, {"step": 1}, None)

    def no_space(*args: Any, **kwargs: Any) -> None:
        raise error

    with monkeypatch.context() as full:
        full.setattr(torch, "save", no_space)
        with pytest.raises(SaveError) as caught:
            store.save(2, {"step": 2}, None)
    said = str(caught.value)
    assert f"checkpoint step-2 could not be saved in {store.folders[0]}: {error}. It takes" in said
    assert os.listdir(store.folders[0]) == ["step-1"]
    assert restore_newest(store) == {"step": 1}


def test_an_error_that_is_not_the_disks_is_not_hidden(
    make_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, *_ = make_store()
    monkeypatch.setattr(toolkit.training.checkpoint, "_random_state", lambda: {}["python"])
    with pytest.raises(KeyError):
        store.save(1, {}, None)


def test_without_room_nothing_is_written(make_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, model, optimizer = make_store()
    step(model, optimizer)
    # 8 + 3 weights, AdamW's two averages of each and four step counters, all float32.
    assert store.bytes_needed() == (3 * 11 + 4) * 4 + 100_000
    free = SimpleNamespace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: free)
    with pytest.raises(SaveError, match=r"the disk is too full\. It takes 0\.1 MiB, and 0\.1 MiB"):
        store.save(1, {}, None)
    assert os.listdir(store.folders[0]) == []
    free.free = 100_148
    store.save(1, {"step": 1}, None)
    assert restore_newest(store) == {"step": 1}


def test_the_room_for_a_moving_average_counts(make_store: Any) -> None:
    store, model, _ = make_store()
    before = store.bytes_needed()
    store.accelerator.register_for_checkpointing(WeightAverage(model, 0.9))
    assert store.bytes_needed() == before + 11 * 4


def test_a_damaged_one_does_not_hide_that_of_the_same_step_on_another_disk(
    make_store: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, *_ = make_store()
    store.folders.append(tmp_path / "other" / "checkpoints")
    store.save(1, {"step": 1}, None)
    store.save(2, {"step": 2}, None)
    (store.folders[0] / "step-2" / "model.safetensors").write_bytes(b"")
    full = {store.folders[0]: 0, store.folders[1]: 10**9}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=full[folder]))
    store.save(2, {"step": 2, "again": True}, None)
    assert restore_newest(store) == {"step": 2, "again": True}
    assert [os.listdir(folder) for folder in store.folders] == [[], ["step-2"]]


def test_one_that_only_an_interruption_has_made_takes_no_others_place(make_store: Any) -> None:
    """After 20, 30 and 45: left alone, the run has 20 and 30 when it comes to 40."""
    store, *_ = make_store(keep=2)
    for number, scheduled in [(20, True), (30, True), (35, False)]:
        store.save(number, {"step": number, "scheduled": scheduled}, None)
    assert store.steps() == [20, 30, 35]
    assert store.scheduled() == [20, 30]
    store.save(40, {"step": 40, "scheduled": True}, None)
    assert store.steps() == [30, 40]


@pytest.mark.parametrize("manifest", ["[]", "null", '"x"', "{}", '{"model.safetensors": 3}',
                                      '{"model.safetensors": {"bytes": 1}}'])  # fmt: skip
def test_a_manifest_of_another_shape_is_damage(make_store: Any, manifest: str) -> None:
    store, *_ = make_store()
    store.save(1, {"step": 1}, None)
    (store.folders[0] / "step-1" / "manifest.json").write_text(manifest)
    assert "manifest.json" in str(find_damage(store.folders[0] / "step-1"))


def test_what_a_killed_save_has_left_is_cleared_away(make_store: Any) -> None:
    store, *_ = make_store()
    (store.folders[0] / ".step-7.partial").mkdir(parents=True)
    store.save(9, {"step": 9}, None)
    assert os.listdir(store.folders[0]) == ["step-9"]


def test_where_the_first_folder_is_full_the_second_is_taken(
    make_store: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    """Both hold one series: the newest counts, wherever it lies, and old ones go from both."""
    store, *_ = make_store()
    store.folders.append(tmp_path / "other" / "checkpoints")
    usage = {store.folders[0]: 10**9, store.folders[1]: 10**9}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=usage[folder]))
    store.save(1, {"step": 1}, None)
    usage[store.folders[0]] = 0
    store.save(2, {"step": 2}, 1)
    assert "saved in" in capsys.readouterr().err
    assert [os.listdir(folder) for folder in store.folders] == [["step-1"], ["step-2"]]
    assert store.steps() == [1, 2]
    assert restore_newest(store) == {"step": 2}
    usage[store.folders[0]] = 10**9
    store.save(3, {"step": 3}, 3)
    assert [os.listdir(folder) for folder in store.folders] == [["step-3"], []]
    usage.update(dict.fromkeys(usage, 0))
    with pytest.raises(SaveError) as caught:
        store.save(4, {}, 3)
    assert str(caught.value).count("the disk is too full") == 2
    assert restore_newest(store) == {"step": 3}


def test_files_reach_the_disk_before_they_get_their_name(
    make_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, *_ = make_store()
    events: list[str] = []
    real_fsync, real_rename = os.fsync, Path.rename

    def fsync(descriptor: int) -> None:
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real_fsync(descriptor)

    def rename(self: Path, target: Path) -> Path:
        events.append(f"rename to {Path(target).name}")
        return real_rename(self, target)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc to see which file is flushed")
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    store.save(1, {}, None)
    named = events.index("rename to step-1")
    folder = store.folders[0] / "step-1"
    assert {path.name for path in folder.iterdir()} <= set(events[:named])
    assert ".step-1.partial" in events[:named]
    assert events[named + 1 :] == ["checkpoints"]  # the folder that holds the name


def test_saving_a_step_again_replaces_a_broken_one(make_store: Any) -> None:
    store, *_ = make_store(keep=2)
    store.save(1, {"step": 1}, None)
    store.save(2, {"step": 2}, None)
    (store.folders[0] / "step-2" / "manifest.json").unlink()
    assert restore_newest(store) == {"step": 1}
    store.save(2, {"step": 2, "again": True}, None)
    assert restore_newest(store) == {"step": 2, "again": True}


def test_without_a_complete_checkpoint_there_is_nothing_to_restore(
    make_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    store, *_ = make_store()
    assert restore_newest(store) is None
    (store.folders[0] / "step-3").mkdir(parents=True)
    assert restore_newest(store) is None
    assert "skipping checkpoint step-3: manifest.json is missing" in capsys.readouterr().err
    assert find_damage(store.folders[0] / "step-4") == "it does not exist"

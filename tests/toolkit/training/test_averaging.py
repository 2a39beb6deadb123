"""The mean of checkpoints, and when it is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from scratch_models import (
    ScratchPaperTransformerConfig,
    ScratchPaperTransformerForConditionalGeneration,
)
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.errors import UserError
from toolkit.run import Run, start_run
from toolkit.training.averaging import average_if_better, keep_for_average, mean_weights
from toolkit.training.checkpoint import CheckpointStore
from toolkit.training.engine import FitResult
from toolkit.training.train_state import TrainState

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


def test_mean_of_files_by_hand(tmp_path: Path) -> None:
    files = []
    for number in range(3):
        file = tmp_path / f"{number}.safetensors"
        weight = torch.tensor([1.0, 2.0]) * (number + 1)
        save_file({"w": weight, "h": weight.half(), "n": torch.tensor([number])}, file)
        files.append(file)
    mean = mean_weights(files)
    assert mean["w"].tolist() == [2.0, 4.0]
    assert (mean["h"].dtype, mean["h"].tolist()) == (torch.float16, [2.0, 4.0])
    assert mean["n"].tolist() == [2]
    with pytest.raises(UserError, match="FSDP"):
        mean_weights([*files, tmp_path / "no.safetensors"])


@pytest.fixture
def run(tmp_path: Path) -> Run[RunConfig]:
    run = start_run(Invocation(RunConfig(output_dir=str(tmp_path), run_id="a"), None), "recipe")
    run.begin()
    return run


def test_training_keeps_what_is_averaged(run: Run[RunConfig]) -> None:
    keep_for_average(run, 0)
    assert run.config.train.keep_checkpoints == 1
    keep_for_average(run, 4)
    assert run.config.train.keep_checkpoints == 4
    run.config.train.keep_checkpoints = 9
    keep_for_average(run, 4)
    assert run.config.train.keep_checkpoints == 9
    for count in (1, -1):
        with pytest.raises(UserError, match=f"--average {count}"):
            keep_for_average(run, count)


def test_one_average_at_a_time(run: Run[RunConfig]) -> None:
    run.config.train.ema = 0.9
    keep_for_average(run, 0)
    with pytest.raises(UserError, match=r"--average 3 and --train.ema 0.9: choose one"):
        keep_for_average(run, 3)


class FirstWeight:
    """Objective and metric in one: the first weight of the embedding; less of it is better."""

    selection = "weight"
    higher_is_better = False

    def outputs(self, model: Any, batch: Any) -> dict[str, torch.Tensor]:
        return {"weight": model.lm_head.weight[0, :1].expand(len(batch["index"]))}

    def __call__(self, outputs: dict[str, np.ndarray]) -> dict[str, float]:
        return {"weight": float(outputs["weight"].mean())}


@pytest.mark.parametrize(("best", "taken"), [(5.0, True), (1.0, False)])
def test_the_better_one_on_validation_is_taken(
    run: Run[RunConfig], best: float, taken: bool
) -> None:
    run.config.train = TrainConfig(keep_checkpoints=3)
    config = ScratchPaperTransformerConfig(
        vocab_size=11, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=9,
    )  # fmt: skip
    model = run.accelerator.prepare(ScratchPaperTransformerForConditionalGeneration(config))
    store = CheckpointStore(run.checkpoint_folders, run.accelerator, keep=3)
    for step in (9, 10, 20, 100):  # the newest two by number are 20 and 100
        torch.nn.init.constant_(model.lm_head.weight, float(step))
        store.save(step, {}, None)
    torch.nn.init.constant_(model.lm_head.weight, best)  # what training gave back
    state = TrainState(best_metrics={"weight": best * 20})
    result = FitResult(model, state, 100, "lowest", None)
    task = FirstWeight()
    rows = datasets.Dataset.from_dict({"x": [1, 2, 3]})

    def collate(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return {"index": torch.tensor([row["index"] for row in examples])}

    after, record = average_if_better(
        run, result, 2, validation=rows, objective=task, collate=collate, metric=task
    )
    assert record == {
        "steps": [20, 100], "average": {"weight": 60.0}, "best_single": {"weight": best * 20},
        "taken": taken,
    }  # fmt: skip
    expected = 60.0 if taken else best
    for weight in (after.model.lm_head.weight, after.model.get_input_embeddings().weight):
        assert (weight == expected).all()  # tied weights stay tied
    assert (after.validation is not None) == taken


def test_nothing_is_averaged_of_one_checkpoint(
    run: Run[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    result = FitResult(torch.nn.Linear(1, 1), TrainState(), 1, "x", None)
    unused: Any = None
    for count in (0, 3):
        same, record = average_if_better(
            run, result, count, validation=[], objective=unused, collate=unused, metric=unused
        )
        assert (same, record) == (result, None)
    assert "nothing to average" in capsys.readouterr().err

"""A pass over a data set: every row once, in order, and metrics against scikit-learn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from torch import nn

import toolkit.evaluation
from toolkit.errors import UserError
from toolkit.evaluation import ClassificationMetric, PretrainingMetric, predict


def rows(count: int, with_length: bool) -> datasets.Dataset:
    generator = np.random.default_rng(count)
    columns: dict[str, Any] = {"value": list(range(count))}
    if with_length:
        columns["length"] = generator.integers(1, 50, count).tolist()
    return datasets.Dataset.from_dict(columns)


def collate(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    return {"value": torch.tensor([row["value"] for row in examples])}


class Probe(nn.Module):
    """Twice the value, and whether it was called as a model under evaluation."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        assert not self.training
        assert not torch.is_grad_enabled()
        return 2 * value


def compute(model: nn.Module, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    doubled = model(batch["value"])
    return {"double": doubled, "pair": torch.stack([batch["value"], doubled], -1)}


@settings(max_examples=30, deadline=None)
@given(
    count=st.integers(1, 40), batch_size=st.integers(1, 16), processes=st.integers(1, 5),
    with_length=st.booleans(),
)  # fmt: skip
def test_every_row_once_in_order_for_any_batch_size_and_processes(
    count: int, batch_size: int, processes: int, with_length: bool
) -> None:
    data, shares = rows(count, with_length), []
    for rank in range(processes):
        member = SimpleNamespace(
            process_index=rank, num_processes=processes, device=torch.device("cpu")
        )
        with pytest.MonkeyPatch.context() as patch:
            # Stop before the exchange: what this process would send.
            def send(parts: list[Any]) -> list[Any]:
                shares.append(parts)
                raise StopIteration

            patch.setattr(toolkit.evaluation, "gather_object", send)
            try:
                alone = predict(
                    Probe(), data, compute=compute, collate=collate, accelerator=member,  # type: ignore[arg-type]
                    batch_size=batch_size,
                )  # fmt: skip
                assert processes == 1
                assert alone["double"].tolist() == [2 * i for i in range(count)]
                assert alone["pair"].shape == (count, 2)
                return
            except StopIteration:
                pass
    assert len({len(share) for share in shares}) == 1
    joined = toolkit.evaluation._in_row_order([p for share in shares for p in share], count)
    assert joined["double"].tolist() == [2 * i for i in range(count)]
    assert joined["pair"].tolist() == [[i, 2 * i] for i in range(count)]
    assert "index" not in joined


@pytest.mark.usefixtures("fresh_accelerator")
def test_training_mode_is_given_back_and_progress_counted() -> None:
    model, done = Probe().train(), []
    predict(
        model, rows(10, True), compute=compute, collate=collate, accelerator=Accelerator(),
        batch_size=4, advance=done.append,
    )  # fmt: skip
    assert model.training
    assert done == [4, 4, 2]


def computes_at_most(most: int, sizes: list[int]) -> Any:
    """`compute` on a device that holds so many rows; notes how many it was asked for."""

    def small(model: nn.Module, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        sizes.append(len(batch["value"]))
        if sizes[-1] > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ...")
        return compute(model, batch)

    return small


@pytest.mark.usefixtures("fresh_accelerator")
def test_batches_that_do_not_fit_are_divided(capsys: pytest.CaptureFixture[str]) -> None:
    sizes: list[int] = []
    outputs = predict(
        Probe(), rows(20, True), compute=computes_at_most(2, sizes), collate=collate,
        accelerator=Accelerator(), batch_size=8,
    )  # fmt: skip
    assert outputs["double"].tolist() == [2 * i for i in range(20)]
    assert sizes == [8, 4] + [2] * 10
    said = capsys.readouterr().err
    assert "8 rows do not fit into memory" in said
    assert "goes on with at most 2 at a time" in said


@pytest.mark.usefixtures("fresh_accelerator")
def test_a_row_that_does_not_fit_is_an_error_with_advice() -> None:
    with pytest.raises(UserError, match=r"1 rows do not fit .*--train\.eval_batch_size"):
        predict(
            Probe(), rows(5, False), compute=computes_at_most(0, []), collate=collate,
            accelerator=Accelerator(), batch_size=4,
        )  # fmt: skip


@pytest.mark.parametrize("processes", [1, 2])
def test_other_errors_and_several_processes_divide_nothing(processes: int) -> None:
    member = SimpleNamespace(process_index=0, num_processes=processes, device=torch.device("cpu"))
    sizes: list[int] = []

    def broken(model: nn.Module, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        sizes.append(len(batch["value"]))
        raise RuntimeError("shapes differ" if processes == 1 else "CUDA out of memory.")

    with pytest.raises(RuntimeError if processes == 1 else UserError, match=r"shapes|2 rows do"):
        predict(
            Probe(), rows(8, False), compute=broken, collate=collate, accelerator=member,  # type: ignore[arg-type]
            batch_size=2,
        )  # fmt: skip
    assert sizes == [2]


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [([0, 1, 1], "1 of them twice"), ([0, 1], "1 never"), ([0, 1, 2, 2], "1 of them twice")],
)
def test_a_row_too_many_or_too_few_is_an_error(seen: list[int], complaint: str) -> None:
    part = {"index": np.array(seen), "x": np.zeros(len(seen))}
    with pytest.raises(RuntimeError, match=complaint):
        toolkit.evaluation._in_row_order([part], 3)


def test_classification_metric_is_scikit_learns_over_all_labels() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2, 2, 0])
    predictions = np.array([0, 1, 1, 1, 2, 0, 2, 0])
    outputs = {"logits": np.eye(4)[predictions], "labels": labels, "loss": np.arange(8.0)}
    values = ClassificationMetric(4)(outputs)
    assert values["accuracy"] == accuracy_score(labels, predictions) == 0.75
    everything = list(range(4))
    expected = f1_score(labels, predictions, labels=everything, average="macro", zero_division=0)
    assert values["macro_f1"] == pytest.approx(expected)
    assert values["loss"] == 3.5


def test_pretraining_metric_is_a_mean_over_tokens_not_over_examples() -> None:
    outputs = {
        "loss": np.array([0.4, 1.5, 0.0]), "masked": np.array([3, 5, 0]),
        "correct": np.array([2, 1, 0]), "next_correct": np.array([1, 0, 1]),
    }  # fmt: skip
    values = PretrainingMetric()(outputs)
    assert values["masked_loss"] == pytest.approx(1.9 / 8)
    assert values["masked_accuracy"] == pytest.approx(3 / 8)
    assert values["next_sentence_accuracy"] == pytest.approx(2 / 3)
    assert not PretrainingMetric.higher_is_better

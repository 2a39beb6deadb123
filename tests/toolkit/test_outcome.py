"""What is written down at the end of a run."""

from __future__ import annotations

from pathlib import Path

import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyarrow import parquet
from scipy.special import softmax

from toolkit.outcome import Scores, write_predictions


@settings(max_examples=50, deadline=None)
@given(arrays(np.float32, (4, 3), elements=st.floats(-1e4, 1e4, width=32)))
def test_probabilities_are_scipys_softmax_even_of_large_logits(logits: np.ndarray) -> None:
    scores = Scores.from_logits(logits)
    assert scores.probabilities.dtype == np.float64
    assert np.allclose(scores.probabilities, softmax(logits.astype(np.float64), axis=1))
    assert np.allclose(scores.probabilities.sum(1), 1)


def test_predictions_file(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_dict(
        {"id": ["a-1", "b-2", "c-3"], "text": ["好", "坏\n，\"'", "😀"], "label": [0, 1, 1]}
    )
    scores = Scores(np.array([[0.75, 0.25], [1.0, 0.0], [0.25, 0.75]]))
    write_predictions(tmp_path / "predictions" / "test.parquet", rows, scores)
    table = parquet.read_table(tmp_path / "predictions" / "test.parquet")
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert types == {
        "id": "string", "text": "string", "label": "int64", "prediction": "int64",
        "probabilities": types["probabilities"], "loss": "double",
    }  # fmt: skip
    assert types["probabilities"].startswith("list<")
    assert "double" in types["probabilities"]
    content = table.to_pydict()
    assert content["text"] == rows["text"][:]
    assert content["prediction"] == [0, 0, 1]
    assert content["probabilities"][0] == [0.75, 0.25]
    assert content["loss"][0] == pytest.approx(-np.log(0.75))
    assert np.isfinite(content["loss"][1])  # a probability of 0 for the truth
    assert content["loss"][1] > 700

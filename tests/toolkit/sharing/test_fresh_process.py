"""A process that knows nothing of this package finds what is wrong with a folder."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from toolkit.sharing.fresh_process import SharingError, check_shareable
from toolkit.sharing.shareable import write_shareable


@pytest.mark.parametrize("run", ["lstm_run", pytest.param("frozen_run", marks=pytest.mark.slow)])
def test_source_in_the_folder_is_loaded(
    run: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both loaded with trust_remote_code and used by a pipeline (the lines of `usage`)."""
    folder = request.getfixturevalue(run)
    shared = write_shareable(folder, tmp_path / "shared")
    assert "trust_remote_code=True" in shared.usage
    difference = check_shareable(shared, folder)
    assert difference == 0 if run == "lstm_run" else difference < 1e-6
    assert "in a fresh process, offline, without this package" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("run", ["bert_run", "lora_run", "resnet_run"])
def test_other_runs_are_equal(run: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(run)
    assert check_shareable(write_shareable(folder, tmp_path / "shared"), folder) < 1e-5


@pytest.mark.slow
def test_an_adapter_is_put_on_its_base_from_the_cache(
    lora_run: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "hub" / "models--owner--tiny-bert"
    shutil.copytree(tiny_checkpoint, cache / "snapshots" / "abc")
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    run = Path(shutil.copytree(lora_run, tmp_path / "run"))
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    summary["model"]["name"] = "owner/tiny-bert"
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    shared = write_shareable(run, tmp_path / "shared")
    assert shared.library == "peft"
    assert check_shareable(shared, run) < 1e-5


@pytest.mark.slow
def test_a_lost_label_name_is_found(bert_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(bert_run, tmp_path / "shared")
    file = shared.folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["id2label"]["1"] = "LABEL_1"
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(SharingError, match=r"its labels are .*LABEL_1.*those of the run .*中性"):
        check_shareable(shared, bert_run)


@pytest.mark.slow
def test_a_lost_tokenizer_is_found(bert_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(bert_run, tmp_path / "shared")
    (shared.folder / "tokenizer.json").unlink()
    with pytest.raises(SharingError, match=r"tokenizer|cannot be loaded"):
        check_shareable(shared, bert_run)


def test_one_changed_weight_is_found(bert_run: Path, tmp_path: Path) -> None:
    """Also of a token that no text has."""
    shared = write_shareable(bert_run, tmp_path / "shared")
    file = shared.folder / "model.safetensors"
    weights = load_file(file)
    weights["bert.embeddings.word_embeddings.weight"][4, 0] += 1e-3  # [MASK]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(SharingError, match=r"word_embeddings\.weight is not as"):
        check_shareable(shared, bert_run)


@pytest.mark.slow
def test_a_weight_of_a_converted_model_is_found(frozen_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(frozen_run, tmp_path / "shared")
    file = shared.folder / "model.safetensors"
    weights = load_file(file)
    weights["classifier.weight"][0] += 0.01
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(SharingError, match=r"its logits differ by .* at most .* is rounding"):
        check_shareable(shared, frozen_run)
    del weights["classifier.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(SharingError, match=r"weights are missing .* classifier\.weight"):
        check_shareable(shared, frozen_run)


@pytest.mark.slow
@pytest.mark.parametrize("usage", ["import toolkit", "import scratch_models.hub", "1 / 0"])
def test_lines_of_usage_that_fail_are_found(bert_run: Path, tmp_path: Path, usage: str) -> None:
    shared = write_shareable(bert_run, tmp_path / "shared")
    with pytest.raises(SharingError, match=r"lines of usage do not work: (ModuleNot|ZeroDiv)"):
        check_shareable(dataclasses.replace(shared, usage=usage), bert_run)


def test_a_process_that_takes_too_long_is_stopped(bert_run: Path, tmp_path: Path) -> None:
    shared = write_shareable(bert_run, tmp_path / "shared")
    with pytest.raises(SharingError, match=r"took more than 0\.01 s; was stopped"):
        check_shareable(shared, bert_run, timeout=0.01)


def test_the_tolerance_is_relative_and_nan_is_refused(bert_run: Path, tmp_path: Path) -> None:
    import numpy as np

    from toolkit.sharing.fresh_process import _largest_difference

    shared = write_shareable(bert_run, tmp_path / "shared")

    def compared(theirs: list[float], ours: list[float]) -> float:
        return _largest_difference(
            shared, {"logits 0": np.array(theirs)}, {"logits 0": np.array(ours)}
        )

    assert compared([1000.09, 1.0], [1000.0, 1.0]) == pytest.approx(0.09)
    with pytest.raises(SharingError, match=r"differ by 0\.11"):
        compared([1000.11, 1.0], [1000.0, 1.0])
    with pytest.raises(SharingError, match=r"differ by 0\.0002"):
        compared([0.0002], [0.0])
    with pytest.raises(SharingError, match="not all finite"):
        compared([float("nan")], [0.0])
    with pytest.raises(SharingError, match="another shape"):
        compared([1.0, 2.0], [1.0])

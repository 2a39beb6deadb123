"""What onnxruntime computes is what PyTorch does, for any batch and length."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from toolkit.cli import main
from toolkit.errors import UserError
from toolkit.export.unpacked_lstm import without_packing

TEXTS = ["好棒", "今天酒店服务坏，早餐劣，房间糟糟糟", "差"]


def test_the_lstm_without_packing_is_the_same(lstm_run: Path) -> None:
    from scratch_models import ScratchLSTMForSequenceClassification

    model = ScratchLSTMForSequenceClassification.from_pretrained(lstm_run / "model").eval()
    ids = torch.randint(1, 20, (4, 9), generator=torch.Generator().manual_seed(0))
    lengths, before = torch.tensor([[9], [4], [1], [5]]), torch.tensor([[0], [0], [0], [3]])
    places = torch.arange(9)
    mask = ((places >= before) & (places < before + lengths)).long()  # the last padded in front
    with torch.no_grad():
        expected = model(ids, attention_mask=mask).logits
        found = without_packing(model)(ids, attention_mask=mask).logits
        again = model(ids, attention_mask=mask).logits
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert torch.equal(again, expected)  # the model itself is not changed


@pytest.mark.parametrize("run", ["bert_run", pytest.param("lstm_run", marks=pytest.mark.slow)])
def test_a_text_classifier(
    run: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    pytest.importorskip("onnxscript", reason="the extra 'export' is not installed")
    from toolkit.modeling import load_pretrained, load_tokenizer

    folder, out = request.getfixturevalue(run), tmp_path / "onnx"
    with pytest.raises(SystemExit) as end:
        main(["export", str(folder), "--format", "onnx", "--output", str(out), "--json", "-"])
    assert end.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert said["equal"]
    assert said["largest difference"] < 1e-5
    checked = json.loads((out / "check.json").read_text(encoding="utf-8"))
    assert checked["largest_difference"] == said["largest difference"]
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"]["1"] == "中性"

    model = load_pretrained(str(folder / "model"), "sequence-classification").model.eval()
    tokenizer = load_tokenizer(str(folder / "model"))
    session = onnxruntime.InferenceSession(str(out / "model.onnx"))
    for texts in ([TEXTS[0]], TEXTS, TEXTS * 5):  # none of these sizes was seen by the exporter
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        inputs = {each.name: batch[each.name].numpy() for each in session.get_inputs()}
        [logits] = session.run(None, inputs)
        with torch.no_grad():
            expected = model(**batch).logits
        torch.testing.assert_close(torch.from_numpy(logits), expected, atol=1e-5, rtol=0)

    # The lines of the README, in its folder.
    [code] = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text("utf-8"), re.DOTALL)
    here = os.getcwd()
    os.chdir(out)
    try:
        exec(code, {})
    finally:
        os.chdir(here)
    batch = tokenizer(["房间很干净，服务也好。"], return_tensors="pt")
    with torch.no_grad():
        best = int(model(**batch).logits.argmax())
    assert capsys.readouterr().out.strip() == ["负面", "中性", "正面"][best]


def test_a_file_that_computes_something_else_ends_with_1(
    bert_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    from toolkit.export import onnx_model

    def another(model: torch.nn.Module, *rest: object) -> tuple[float, list[list[int]]]:
        return 2e-4, [[1, 3]]

    monkeypatch.setattr(onnx_model, "write_graph", lambda *rest: None)
    monkeypatch.setattr(onnx_model, "_compare", another)
    with pytest.raises(SystemExit) as end:
        main(["export", str(bert_run), "--format", "onnx", "--output", str(tmp_path / "onnx")])
    assert end.value.code == 1
    captured = capsys.readouterr()
    assert "logits differ by 2.0e-04, at most 1e-04 is rounding" in captured.err
    assert "equal: False" in captured.out
    assert "The folder is left as it is, to be looked at; do not use it." in " ".join(
        captured.err.split()
    )
    assert (tmp_path / "onnx" / "README.md").is_file()


def test_a_missing_package_is_named(
    bert_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolkit.export.onnx_model import export_onnx

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs the package onnx .*pip install -e '\.\[export\]'"):
        export_onnx(bert_run, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_a_translator_is_refused(write_run: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="the extra 'export' is not installed")
    from toolkit.export.onnx_model import export_onnx

    run = write_run(tmp_path / "run", "translation")
    (run / "model").mkdir()
    (run / "model" / "config.json").write_text('{"architectures": ["MarianMTModel"]}')
    with pytest.raises(UserError, match=r"a model of the kind translation.*--format transformers"):
        export_onnx(run, tmp_path / "onnx")


@pytest.mark.parametrize("there", [False, True])
def test_an_export_that_fails_leaves_nothing(
    bert_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    pytest.importorskip("onnxscript", reason="the extra 'export' is not installed")
    from toolkit.export import onnx_model

    def fail(model: torch.nn.Module, example: object, file: Path) -> None:
        file.write_bytes(b"half")
        raise RuntimeError("no such operator")

    folder = tmp_path / "export" / "onnx"
    if there:
        folder.mkdir(parents=True)
    monkeypatch.setattr(onnx_model, "write_graph", fail)
    for _ in range(2):  # the second try finds the folder as the first did
        with pytest.raises(UserError, match="cannot be exported: no such operator"):
            onnx_model.export_onnx(bert_run, folder)
        assert (tmp_path / "export").exists() is there
        assert not list(tmp_path.rglob("*.onnx"))
        assert folder.is_dir() is there


def test_the_readme_shows_the_title_as_it_is() -> None:
    from toolkit.export.onnx_readme import onnx_readme
    from toolkit.sharing.tasks import Kind

    page = onnx_readme("a_b_c <b> | *x*\n# y", Kind("text-classification"), ["input_ids"], 0.0)
    assert page.splitlines()[0] == r"# a\_b\_c &lt;b&gt; \| \*x\* \# y, as ONNX"


def test_json_that_cannot_be_written_is_noticed_before(
    bert_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["export", str(bert_run), "--format", "transformers", "--output",
              str(tmp_path / "out"), "--json", str(tmp_path)])  # fmt: skip
    assert end.value.code == 2
    assert f"--json {tmp_path}: expected a file" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()

"""`--push-to-hub` of a recipe: refused before training, or done after it; never in silence."""

from __future__ import annotations

import importlib.util
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

READ_TOKEN = "hf_loopbackTokenThatMayOnlyReadAaa"
TOKEN = "hf_loopbackTokenOfTheTestsNoSecret1"

Recipe = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("copied_model", "fresh_accelerator")


@pytest.fixture
def recipe(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    repository: Path,
    write_tiny_bert: Callable[..., Path],
    write_reviews: Callable[..., Path],
) -> Recipe:
    """Call bert_sentiment with three steps of a tiny model; exit code, output, remarks."""
    from toolkit.entry import run_recipe

    file = repository / "recipes" / "bert_sentiment.py"
    specification = importlib.util.spec_from_file_location("recipe_of_the_push_tests", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, specification.name, module)
    specification.loader.exec_module(module)
    model = write_tiny_bert(tmp_path / "tiny-bert")
    reviews = write_reviews(tmp_path / "reviews.csv", 60)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        data = [] if "--resume" in arguments else [
            "--dataset", str(reviews), "--model", str(model), "--run-id", "a",
            "--train.max-steps", "3", "--train.batch-size", "8",
        ]  # fmt: skip
        monkeypatch.setattr(sys, "argv", [str(file), *data, *arguments])
        capsys.readouterr()
        status = 0
        try:
            run_recipe(module.main, module.Config, str(file))
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def run_folder(tmp_path: Path) -> Path:
    return tmp_path / "results" / "runs" / "bert_sentiment" / "a"


def test_trained_and_pushed(hub: Any, recipe: Recipe, tmp_path: Path) -> None:
    status, out, err = recipe("--push-to-hub", "lin/reviews", "--private")
    assert status == 0, err
    assert hub.repositories["lin/reviews"].private
    # Made before training, filled after it.
    assert err.index(f"{hub.url}/lin/reviews (private) can be written to") < err.index("training")
    assert out.index("accuracy") < out.index("Pushed and checked")
    weights = (run_folder(tmp_path) / "model" / "model.safetensors").read_bytes()
    assert hub.files("lin/reviews")["model.safetensors"] == weights
    settings = yaml.safe_load((run_folder(tmp_path) / "config.yaml").read_text(encoding="utf-8"))
    assert (settings["push_to_hub"], settings["private"]) == ("lin/reviews", True)  # for --resume
    for file in run_folder(tmp_path).rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()
    assert TOKEN not in out + err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("401", "the Hub does not know the token (401"),
        ("403", "the token may not do this (403"),
        ("read", "the token of lin may only read"),
        ("nobody", "the connection to http://127.0.0.1:"),
        ("offline", "offline mode is set (HF_HUB_OFFLINE)"),
    ],
)
def test_refused_before_training(
    hub: Any,
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    says: str,
) -> None:
    from huggingface_hub import constants

    name = "lin/reviews"
    if change == "401":
        monkeypatch.setenv("HF_TOKEN", "hf_x")
    elif change == "403":
        name = "wang/reviews"
    elif change == "read":
        monkeypatch.setenv("HF_TOKEN", READ_TOKEN)
    elif change == "nobody":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", nobody)
    else:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    status, out, err = recipe("--push-to-hub", name)
    assert status == 2
    assert says in err
    assert "Nothing was trained." in err
    assert "Traceback" not in err
    assert not (tmp_path / "results").exists()
    for token in (TOKEN, READ_TOKEN, "hf_x"):
        assert token not in out + err


def test_a_push_that_fails_after_training(hub: Any, recipe: Recipe, tmp_path: Path) -> None:
    hub.fail("POST", "/commit/", times=99, status=500)
    status, out, err = recipe("--push-to-hub", "lin/reviews")
    assert status == 1
    assert "accuracy" in out
    assert "the run is complete, but it was not pushed: uploading to lin/reviews" in err
    assert "    toolkit push results/runs/bert_sentiment/a lin/reviews\n" in err
    run = run_folder(tmp_path)
    for name in ("summary.json", "model/model.safetensors", "share/README.md"):
        assert (run / name).is_file()
    assert TOKEN not in out + err


def test_a_hub_that_a_loader_gave_up_is_asked_again(
    hub: Any, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    import toolkit.sharing.recipe_push as module

    push_run = module.push_run

    def after_a_failed_probe(*arguments: Any) -> int:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        return push_run(*arguments)

    monkeypatch.setattr("toolkit.run.push_run", after_a_failed_probe)
    assert recipe("--push-to-hub", "lin/reviews")[0] == 0


def test_a_dry_run_asks_for_the_token_and_makes_nothing(hub: Any, recipe: Recipe) -> None:
    status, _, err = recipe("--push-to-hub", "lin/reviews", "--dry-run")
    assert status == 0
    assert "--push-to-hub lin/reviews: the token of lin may write" in err
    assert hub.repositories == {}


def test_private_without_a_name(recipe: Recipe) -> None:
    status, _, err = recipe("--private")
    assert status == 2
    assert "give --push-to-hub USER/NAME too" in err


def test_without_the_setting_nothing_is_asked(hub: Any, recipe: Recipe) -> None:
    status, _, _ = recipe()
    assert status == 0
    assert not any("/api/" in request for request in hub.requests)


def test_an_experiment_does_not_push(tmp_path: Path, repository: Path) -> None:
    from toolkit.errors import UserError
    from toolkit.experiment.reading import read_cell

    file = repository / "recipes" / "experiments" / "x.yaml"
    content = {"recipe": "tfidf_sentiment", "options": {"push_to_hub": "lin/reviews"}}
    with pytest.raises(UserError, match=r"replace each other there\. Push the one you choose"):
        read_cell(file, "x.yaml: cell a", "a", content, [1, 2])


def test_a_push_that_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same words as of `toolkit push`."""
    from toolkit.config import RunConfig
    from toolkit.sharing.recipe_push import push_run

    def stopped(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.sharing.pushing.push", stopped)
    monkeypatch.setattr("toolkit.network.go_online", lambda: None)
    assert push_run(tmp_path, RunConfig(push_to_hub="lin/reviews")) == 130
    assert (
        f"the run is complete; the push was interrupted. Everything is still in {tmp_path}. "
        f"Push it with:\n    toolkit push {tmp_path} lin/reviews\n"
    ) in capsys.readouterr().err

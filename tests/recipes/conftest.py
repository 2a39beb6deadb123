"""Run recipes on tiny inputs: in this process, and in processes that can be killed."""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"
PRELOADED = [
    "torch", "transformers", "transformers.models.bert.modeling_bert", "datasets", "accelerate",
    "sklearn.linear_model", "scratch_models", "toolkit.compare", "toolkit.engine",
    "toolkit.frozen", "toolkit.adapters", "toolkit.data.text_classification",
]  # fmt: skip

CHILD = """
import os, runpy, sys
output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.dup2(output, 1); os.dup2(output, 2)
os.environ.update(environment)
import torch
torch.set_num_threads(1)
sys.argv = argv
sys.path.insert(0, os.path.dirname(argv[0]))
runpy.run_path(argv[0], run_name="__main__")
"""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the server import the libraries while the first tests run."""
    if any("start_process" in getattr(item, "fixturenames", ()) for item in session.items):
        multiprocessing.set_forkserver_preload(PRELOADED)
        forkserver.ensure_running()


@dataclass(frozen=True)
class Finished:
    """How a recipe ended."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Its only error message."""
        assert "Traceback" not in self.err, self.err
        errors = [line for line in self.err.splitlines() if line.startswith("error")]
        assert len(errors) == 1, self.err
        return errors[0]


@pytest.fixture
def run_recipe(
    fresh_accelerator: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Callable[..., Finished]:
    """Call a recipe as the command line does, in this process, from an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, *argv: object) -> Finished:
        from accelerate.state import AcceleratorState, GradientState

        import toolkit.entry

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        file = RECIPES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(file), *map(str, argv)])
        module = load_module(file)
        capsys.readouterr()
        status = 0
        try:
            toolkit.entry.run_recipe(module.main, module.Config, str(file))
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return Finished(status, captured.out, captured.err)

    return run


@pytest.fixture
def use_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the Python of a run's README in its folder, as its reader would; gives what it prints.

    `use_run(folder, (old, new), ...)` with changes of the code, such as another text.
    """

    def use(folder: Path, *changes: tuple[str, str]) -> str:
        import scratch_models

        readme = (folder / "README.md").read_text(encoding="utf-8")
        [code] = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
        for old, new in changes:
            assert code.count(old) == 1
            code = code.replace(old, new)
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            try:
                exec(code, {})
            finally:
                scratch_models.disable()
        return capsys.readouterr().out

    return use


def load_module(file: Path) -> Any:
    import importlib.util

    name = f"recipe_{file.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def start_process() -> Callable[..., Any]:
    """Start a recipe in a process of its own.

    The processes are forked from a server that has imported the libraries once, so that each starts
    in a moment.
    """
    context = multiprocessing.get_context("forkserver")

    def start(log: Path, name: str, *argv: object, **environment: str) -> Any:
        variables = {
            "argv": [str(RECIPES / f"{name}.py"), *map(str, argv)],
            "log": str(log),
            "environment": {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", **environment},
        }
        process = context.Process(target=exec, args=(CHILD, variables))
        process.start()
        return process

    return start


@pytest.fixture(scope="session")
def tiny_bert(
    tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]
) -> Path:
    """With dropout: a resumed run must restore the random states."""
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def exact_bert(
    tmp_path_factory: pytest.TempPathFactory, write_tiny_bert: Callable[..., Path]
) -> Path:
    """Without dropout: two ways to compute the same can be compared."""
    return write_tiny_bert(
        tmp_path_factory.mktemp("models") / "exact-bert",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


@pytest.fixture(scope="session")
def reviews(tmp_path_factory: pytest.TempPathFactory, write_reviews: Callable[..., Path]) -> Path:
    """185 reviews: 37 are held out for validation and test, which leaves an uneven tail."""
    return write_reviews(tmp_path_factory.mktemp("data") / "reviews.csv", 185)


RUNS = {
    "full": ("bert_sentiment", "--method", "full"),
    "hf": ("bert_sentiment", "--method", "full", "--implementation", "hf"),
    "lora": (
        "bert_sentiment", "--method", "lora", "--lora.targets",
        '["query", "value", "output", "up", "down"]', "--lora.alpha", "8", "--lora.dropout", "0",
        "--train.learning-rate", "0.003", "--train.epochs", "12",
    ),
    "frozen": ("bert_sentiment", "--method", "frozen"),
    "from_scratch": (
        "bert_sentiment", "--method", "from_scratch", "--shape.layers", "1",
        "--shape.hidden_size", "16", "--shape.heads", "2", "--shape.dropout", "0",
    ),
    "lstm": ("lstm_sentiment", "--embedding-size", "16", "--hidden-size", "8"),
    "tfidf": ("tfidf_sentiment",),
}  # fmt: skip
TRAINING = (
    "--train.epochs", "4", "--train.batch-size", "8", "--train.learning-rate", "0.01",
    "--train.log-every", "1",
)  # fmt: skip


@pytest.fixture(scope="session")
def runs(
    start_process: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
    exact_bert: Path,
    reviews: Path,
) -> dict[str, Path]:
    """The run directories of one run of every recipe and method, on the same rows."""
    root = tmp_path_factory.mktemp("runs")
    started, folders = {}, {}
    for name, (recipe, *options) in RUNS.items():
        model = ("--model", exact_bert) if recipe == "bert_sentiment" else ()
        arguments = ("--dataset", reviews, "--output-dir", root, "--run-id", name, *model)
        log = root / f"{name}.log"
        started[name] = start_process(log, recipe, *arguments, *TRAINING, *options)
        folders[name] = root / recipe / name
    for name, process in started.items():
        process.join(120)
        assert process.exitcode == 0, (root / f"{name}.log").read_text(encoding="utf-8")
    return folders

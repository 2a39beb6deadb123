"""Run recipes on tiny inputs: in this process, and in processes that can be killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"
PRELOADED = [
    "torch", "transformers", "transformers.models.bert.modeling_bert", "datasets", "accelerate",
    "sklearn.linear_model", "scratch_models", "toolkit.comparison.compare",
    "toolkit.training.engine", "toolkit.frozen", "toolkit.adapters",
    "toolkit.data.text_classification",
]  # fmt: skip

CHILD = """
import os, runpy, signal, sys
# Where the tests run in the background of a shell, Ctrl-C is ignored by all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
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
        # The server's environment is that of its start; a test may have set a cache since.
        cache = {n: os.environ[n] for n in ("XDG_CACHE_HOME",) if n in os.environ}
        variables = {
            "argv": [str(RECIPES / f"{name}.py"), *map(str, argv)],
            "log": str(log),
            "environment": {
                "ACCELERATE_USE_CPU": "true",
                "OMP_NUM_THREADS": "1",
                **cache,
                **environment,
            },
        }
        process = context.Process(target=exec, args=(CHILD, variables))
        process.start()
        return process

    return start


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture(scope="session")
def start_connected(start_process: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Start processes of a recipe (or another script) as torchrun does.

    `start_connected(log, *arguments, recipe=..., number=2, VARIABLE=...)`
    """

    def start(
        log: Path,
        *argv: object,
        recipe: str = "bert_sentiment",
        number: int = 2,
        **environment: str,
    ) -> list[Any]:
        shared = {
            "WORLD_SIZE": str(number), "LOCAL_WORLD_SIZE": str(number),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), **environment,
        }  # fmt: skip
        ranks = map(str, range(number))
        return [
            start_process(log, recipe, *argv, RANK=rank, LOCAL_RANK=rank, **shared)
            for rank in ranks
        ]

    return start


@pytest.fixture(scope="session")
def join() -> Callable[..., list[int]]:
    """Wait for processes: `join(processes, log, seconds=90)` gives their exit codes.

    The test fails where one of them hangs.
    """

    def wait(processes: list[Any], log: Path, seconds: float = 90) -> list[int]:
        end = time.monotonic() + seconds
        for process in processes:
            process.join(max(end - time.monotonic(), 0))
        if any(process.is_alive() for process in processes):
            for process in processes:
                process.kill()
            pytest.fail("processes hang:\n" + log.read_text(encoding="utf-8"))
        return [process.exitcode for process in processes]

    return wait


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


BERT = ("--method", "from_scratch", "--shape.layers", "1", "--shape.hidden-size", "16",
        "--shape.heads", "2", "--shape.vocabulary", "300")  # fmt: skip
VIT = ("--vit.layers", "1", "--vit.hidden-size", "16", "--vit.heads", "2")
SIZES = ("--train-size", "100", "--validation-size", "17", "--test-size", "15")
TINY = {
    "translation": (
        "--dataset", "sums", *SIZES, "--shape.encoder_layers", "1",
        "--shape.decoder_layers", "1", "--shape.d_model", "16", "--shape.feed_forward", "24",
        "--shape.heads", "2", "--shape.vocabulary", "300", "--max_length", "64",
        "--train.batch_tokens", "500", "--translate_validation", "3", "--generation.beams", "2",
        "--generation.length_ratio", "0", "--label_smoothing", "0.1",
    ),
    "question_answering": (
        "--dataset", "questions.json", *SIZES, *BERT, "--max-length", "18", "--overlap", "4",
        "--max-question", "8", "--max-answer", "4",
    ),
    "token_classification": (
        "--dataset", "demo:entities", *SIZES, *BERT, "--max-length", "16", "--overlap", "4",
        "--unknown-share", "0.1",
    ),
    "gpt2_generation": (
        "--dataset", "demo:reviews", *SIZES, *BERT, "--block-size", "32", "--samples.prompts",
        '["房间"]', "--samples.max-new-tokens", "5",
    ),
    "cifar10": (
        "--dataset", "demo:digits", *SIZES, *VIT, "--model", "vit", "--train.ema", "0.9",
        "--augmentation.randaugment", "2", "--augmentation.erasing", "0.3",
        "--label-smoothing", "0.1",
    ),
    "image_classification": (
        "--dataset", "demo:digits", *SIZES, *VIT, "--model", "vit", "--method", "from_scratch",
    ),
}  # fmt: skip
SHAPE = {"cifar10": "vit", "image_classification": "vit"}
DEFAULT = ("question_answering",)
"""The others take as long and show the same of other recipes: they are marked slow."""


@pytest.fixture(params=[
    pytest.param(name, marks=() if name in DEFAULT else pytest.mark.slow) for name in TINY
])  # fmt: skip
def tiny_recipe(request: pytest.FixtureRequest) -> str:
    """Name of a recipe that `tiny` has settings for."""
    return str(request.param)


def write_sums(folder: Path) -> None:
    """Parallel files: "3 plus 12" and "3加12"."""
    folder.mkdir()
    pairs = [(a, b) for a in range(12) for b in range(11)]
    for language, word in (("en", " plus "), ("zh", "加")):
        lines = "".join(f"{a}{word}{b}\n" for a, b in pairs)
        (folder / f"train.{language}").write_text(lines, encoding="utf-8")


def write_questions(file: Path) -> None:
    """A number stands somewhere in a text that may be longer than a window; or none does."""
    generator = random.Random(0)
    articles = []
    for number in range(132):
        text = "".join(generator.choices("今天去了又从来的很好", k=generator.randint(2, 14)))
        answers = []
        if number % 4:
            answers = [{"text": f"{number}", "answer_start": len(text)}]
            text += f"{number}"
        question = {"id": f"{number}", "question": "什么数？", "answers": answers}
        articles.append({"paragraphs": [{"context": f"{text}好。", "qas": [question]}]})
    file.write_text(json.dumps({"version": "x", "data": articles}), encoding="utf-8")


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_sums(folder / "sums")
    write_questions(folder / "questions.json")
    return folder


@pytest.fixture
def tiny(tiny_data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[object, ...]]:
    """Arguments with which a recipe takes a second: `tiny(recipe, dropout)`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny_data / "cache"))  # of images

    def arguments(recipe: str, dropout: float) -> tuple[object, ...]:
        data = [tiny_data / word if (tiny_data / word).exists() else word for word in TINY[recipe]]
        return (
            *data, f"--{SHAPE.get(recipe, 'shape')}.dropout", dropout, "--run-id", "a",
            "--train.learning-rate", "0.002", "--train.log-every", "1",
        )  # fmt: skip

    return arguments


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

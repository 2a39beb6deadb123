"""What is cached is whole, and built once however many ask for it."""

import multiprocessing
import os
import signal
import time

import pytest

from toolkit.data.cache import build_once, cache_root
from toolkit.errors import UserError


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "scratch-models-toolkit"


def write_slowly(folder, log, seconds):
    with open(log, "a") as file:
        file.write("built\n")
    (folder / "first").write_text("1")
    time.sleep(seconds)
    (folder / "second").write_text("2")


class Builder:
    """Picklable, so that other processes can build."""

    def __init__(self, log, seconds=0.3):
        self.log, self.seconds = str(log), seconds

    def __call__(self, folder):
        write_slowly(folder, self.log, self.seconds)


def ask(builder, results):
    folder = build_once("thing", builder)
    results.put(sorted(path.name for path in folder.iterdir()))


def start(builder, results):
    process = multiprocessing.get_context("fork").Process(target=ask, args=(builder, results))
    process.start()
    return process


def test_root_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "scratch-models-toolkit"


def test_processes_that_ask_at_once_build_once_and_see_everything(tmp_path):
    builder, results = Builder(tmp_path / "log"), multiprocessing.get_context("fork").Queue()
    processes = [start(builder, results) for _ in range(3)]
    assert [results.get(timeout=20) for _ in processes] == [["first", "second"]] * 3
    for process in processes:
        process.join()
    assert (tmp_path / "log").read_text() == "built\n"
    build_once("thing", lambda folder: pytest.fail("built again"))


def test_a_killed_build_leaves_nothing_that_counts(tmp_path, cache_folder):
    results = multiprocessing.get_context("fork").Queue()
    process = start(Builder(tmp_path / "log", seconds=30), results)
    while not list(cache_folder.glob(".thing.*/first")):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (cache_folder / "thing").exists()
    folder = build_once("thing", Builder(tmp_path / "log", seconds=0))
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]
    assert {path.name for path in cache_folder.iterdir()} == {"thing", "thing.lock"}


def test_a_failing_build_is_our_own_error_and_leaves_nothing(cache_folder):
    def fail(folder):
        (folder / "half").write_text("x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build_once("thing", fail)
    assert [path.name for path in cache_folder.iterdir()] == ["thing.lock"]


def test_files_can_be_read_by_others(tmp_path):
    folder = build_once("thing", Builder(tmp_path / "log", seconds=0))
    assert oct(folder.stat().st_mode)[-3:] == "755"
    assert oct((folder / "first").stat().st_mode)[-3:] == "644"


def test_a_cache_that_cannot_be_written_is_said(tmp_path, cache_folder):
    cache_folder.parent.write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"cannot write .*thing.*XDG_CACHE_HOME"):
        build_once("thing", Builder(tmp_path / "log"))

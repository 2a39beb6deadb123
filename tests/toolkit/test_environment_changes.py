"""What has changed since a run began, in words."""

from __future__ import annotations

from typing import Any

from toolkit.environment_changes import environment_changes

THEN: dict[str, Any] = {
    "processor": "A",
    "threads": 4,
    "gpus": [],
    "packages": {"torch": "2.9.0", "peft": None, "numpy": "2.0"},
    "git": {"commit": "a" * 40, "dirty": False},
    "code": "0123456789ab" + "c" * 52,
    "variables": {"OMP_NUM_THREADS": "4"},
    "command": "python x.py",
}


def said(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [change.in_words for change in environment_changes(then, now)]


def test_nothing_changed() -> None:
    assert said(THEN, THEN | {"command": "python y.py"}) == []


def test_every_change_is_named_once() -> None:
    now = {
        "processor": "B",
        "threads": 4,
        "gpus": ["H200", "H200"],
        "packages": {"torch": "2.10.0", "peft": "0.18", "numpy": "2.0"},
        "git": {"commit": "b" * 40, "dirty": True},
        "code": "d" * 64,
        "variables": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    }
    assert said(THEN, now) == [
        "processor: A then, B now",
        "gpus: none then, H200, H200 now",
        "torch: 2.9.0 then, 2.10.0 now",
        "peft: none then, 0.18 now",
        "git commit: aaaaaaaaaaaa then, bbbbbbbbbbbb now",
        "uncommitted changes: no then, yes now",
        "code of the project (fingerprint): 0123456789ab then, dddddddddddd now",
        "variable OMP_NUM_THREADS: 4 then, none now",
        "variable CUBLAS_WORKSPACE_CONFIG: none then, :4096:8 now",
    ]


def test_sections_that_only_one_version_records_are_passed_over() -> None:
    assert said({"threads": 1}, THEN | {"threads": 1}) == []


def test_a_copy_without_a_checkout_has_no_commit() -> None:
    assert said({"git": None}, {"git": {"commit": "c", "dirty": False}}) == [
        "git commit: none then, c now",
        "uncommitted changes: none then, no now",
    ]

"""What all tests share: no network, and no waiting for one."""

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # HuggingFace's libraries read it when they are imported. Only a run that asks for the tests
    # marked `hub` may look for the Hub.
    expression = config.option.markexpr or ""
    if "hub" not in expression.replace("not hub", ""):
        os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[1]

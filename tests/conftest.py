"""What all tests share: no network, and no waiting for one."""

import os
from pathlib import Path

import pytest

# Read at import by HuggingFace's libraries; tests of the Hub itself (mark `hub`) choose for themselves.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[1]

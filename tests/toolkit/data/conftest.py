import pytest
from hypothesis import settings

# The slowest example on a busy machine says nothing about the code.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(scope="session")
def bert_tokenizer(tmp_path_factory):
    """A BERT tokenizer loaded from a folder: single Chinese characters, a few Latin pieces."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    characters = "一上不乱了京全北口合四在太好头家宽差我是来牛用的空面饭，。！"
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *characters,
        "a",
        "b",
        "##b",
        "1",
        "##2",
    ]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    return AutoTokenizer.from_pretrained(folder)

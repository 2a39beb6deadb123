"""Questions and contexts to windows: what the positions of answers stand for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.batching import Rows
from toolkit.data.answer_windows import (
    NO_ANSWER,
    AnswerCollator,
    Tokens,
    answer_tokens,
    context_windows,
    tokenize_questions,
)
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.data.question_answering import QuestionData
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.errors import UserError

CONTEXT = "我在北京大学 read 3 books，2010年8月。hello world again"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_wordpiece([CONTEXT + "什么？哪里"] * 2, 200)


def asked(*rows: tuple[str, str, int, int]) -> QuestionData:
    """Of question, context, start and end of the answer."""
    questions, contexts, starts, ends = map(list, zip(*rows, strict=True))
    spans = zip(contexts, starts, ends, strict=True)
    table = datasets.Dataset.from_dict(
        {
            "id": list(map(str, range(len(rows)))), "question": questions, "context": contexts,
            "answers": [[c[s:e]] if s >= 0 else [] for c, s, e in spans],
            "start": starts, "end": ends,
        }
    )  # fmt: skip
    return QuestionData(table, table, table, "zh", {})


@given(st.integers(0, 200), st.integers(1, 50), st.floats(0, 0.99))
def test_windows_cover_the_context_and_overlap_as_asked(
    length: int, room: int, share: float
) -> None:
    overlap = int(share * room)
    windows = context_windows(length, room, overlap)
    assert windows[0][0] == 0
    assert windows[-1][1] == length
    for (_, stop), (start, _) in pairwise(windows):
        assert stop - start == overlap
    assert all(stop - start <= room for start, stop in windows)
    assert all(stop < length for _, stop in windows[:-1])  # none more than it takes


@settings(max_examples=40)
@given(
    start=st.integers(0, len(CONTEXT) - 1), size=st.integers(1, 12), limit=st.integers(12, 40),
    overlap=st.integers(0, 6),
)  # fmt: skip
def test_positions_are_the_answer_where_a_window_holds_it_whole(
    tokenizer: Any, start: int, size: int, limit: int, overlap: int
) -> None:
    end = min(start + size, len(CONTEXT))
    data = asked(("在哪里？", CONTEXT, start, end))
    room = limit - 3 - 4
    if overlap >= room:
        with pytest.raises(UserError, match="the overlap must be smaller"):
            tokenize_questions(data, tokenizer, limit, overlap=overlap, max_question=4)
        return
    _, windows = tokenize_questions(data, tokenizer, limit, overlap=overlap, max_question=4)
    whole = tokenizer(CONTEXT, add_special_tokens=False, return_offsets_mapping=True)
    inside = [i for i, (a, b) in enumerate(whole["offset_mapping"]) if a < end and b > start]
    first = 0  # of the window, in tokens of the context
    held = 0
    for row in windows.validation:
        assert len(row["input_ids"]) == row["length"] <= limit
        shown = row["input_ids"][
            row["context_start"] : row["context_start"] + row["context_length"]
        ]
        assert shown == whole["input_ids"][first : first + row["context_length"]]
        complete = inside and all(first <= i < first + row["context_length"] for i in inside)
        if complete:
            held += 1
            assert row["start"] == row["context_start"] + inside[0] - first
            assert row["end"] == row["context_start"] + inside[-1] - first
            begin = row["begins"][row["start"] - row["context_start"]]
            stop = row["ends"][row["end"] - row["context_start"]]
            assert CONTEXT[start:end].strip() in CONTEXT[begin:stop]
        else:
            assert row["start"] == row["end"] == NO_ANSWER
        first += row["context_length"] - overlap
    if inside and inside[-1] - inside[0] < overlap:
        assert held >= 1  # what is no longer than the overlap is whole somewhere


def test_windows_are_the_tokenizers_own_pairs(tokenizer: Any) -> None:
    data = asked(("在哪里？", CONTEXT, 2, 6), ("什么？", "北京", -1, -1))
    _, windows = tokenize_questions(data, tokenizer, 64, overlap=8, max_question=16)
    batch = AnswerCollator(tokenizer)(Rows(windows.test).__getitems__([0, 1]))
    expected = tokenizer(
        ["在哪里？", "什么？"], [CONTEXT, "北京"], padding=True, return_tensors="pt"
    )
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        assert (batch[name] == expected[name]).all(), name
    start, end = batch["labels"][0].tolist()
    assert tokenizer.decode(batch["input_ids"][0, start : end + 1]).replace(" ", "") == "北京大学"
    assert batch["labels"][1].tolist() == [NO_ANSWER, NO_ANSWER]
    assert batch["context_mask"].sum(1).tolist() == [windows.test[0]["context_length"], 2]
    assert batch["index"].tolist() == [0, 1]


def test_answers_between_tokens() -> None:
    tokens = Tokens([5, 6, 7, 8], [0, 2, 2, 6], [2, 2, 5, 8])  # the second shows nothing
    assert answer_tokens(tokens, 1, 4) == (0, 2)
    assert answer_tokens(tokens, 2, 3) == (2, 2)
    assert answer_tokens(tokens, 5, 6) is None


def test_long_questions_are_cut_and_counted(
    tokenizer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data = asked(("在" * 30 + "哪里？", CONTEXT, 2, 6))
    data, windows = tokenize_questions(data, tokenizer, 24, overlap=4, max_question=8)
    assert data.summary["tokenization"]["splits"]["train"]["questions_cut"] == 1
    assert windows.train[0]["context_start"] == 1 + 8 + 1
    assert "questions cut to 8 tokens" in capsys.readouterr().err


def test_tokenizers_without_a_first_token_are_refused() -> None:
    tokenizer = train_byte_bpe([CONTEXT], 300)
    with pytest.raises(UserError, match="no token before a question"):
        tokenize_questions(asked(("什么？", CONTEXT, 2, 6)), tokenizer, 64, overlap=8)

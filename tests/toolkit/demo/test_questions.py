"""The generated questions: answers stand in their paragraphs, once, where they are said to be."""

from __future__ import annotations

import pytest

from toolkit.demo import questions
from toolkit.demo.questions import PARAGRAPHS, QUESTIONS_PER_PARAGRAPH, read_questions

Splits = dict[str, list[questions.Example]]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return read_questions()


def test_answers_are_where_they_are_said_to_be(splits: Splits) -> None:
    for split, examples in splits.items():
        assert len(examples) == PARAGRAPHS[split] * QUESTIONS_PER_PARAGRAPH
        for example in examples:
            if example.answer:
                assert example.context.startswith(example.answer, example.start)
            else:
                assert example.start == -1
        unanswerable = sum(not example.answer for example in examples) / len(examples)
        assert 0.15 < unanswerable < 0.3


def test_no_paragraph_stands_in_two_splits(splits: Splits) -> None:
    contexts = [{example.context for example in examples} for examples in splits.values()]
    assert sum(map(len, contexts)) == len(set().union(*contexts)) == sum(PARAGRAPHS.values())


def test_what_is_asked_without_answer_is_not_told(splits: Splits) -> None:
    told = {
        question: [fact[1] for fact in questions.FACTS if question in fact[2]]
        for fact in questions.FACTS
        for question in fact[2]
    }
    for example in splits["test"]:
        (ways,) = told[example.question]
        shown = any(
            way.replace("{}", "") in example.context.replace(example.answer or "\0", "")
            for way in ways
        )
        assert shown == bool(example.answer) or not way_is_telling(ways)


def way_is_telling(ways: tuple[str, ...]) -> bool:
    """A way with words on both sides of the slot is not one string once another fact fills it."""
    return all(way.startswith("{}") or way.endswith("{}") for way in ways)


def test_the_same_questions_every_time(splits: Splits) -> None:
    assert read_questions() == splits

"""`demo:questions`: questions about generated Chinese paragraphs, a fifth of them without answer.

A paragraph tells of an exhibition: when it opens and closes, where it is and where its pieces come
from, languages, currencies, numbers. There are two facts of most kinds, so that the words around an
answer decide, and a question that asks for what the paragraph leaves out has no answer. Names and
dates are those of the Unicode CLDR through Babel; three in ten of the names in validation and test
are of those that training never shows. The same Babel gives the same questions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from toolkit.demo.entities import UNSEEN_SHARE, is_held_out, random_date, read_names

NAME = "demo:questions"
PARAGRAPHS = {"train": 4000, "validation": 150, "test": 300}
QUESTIONS_PER_PARAGRAPH = 3
UNANSWERABLE_SHARE = 0.2

# Kind of the answer; how the paragraph says it; how it is asked for.
FACTS = (
    ("DATE", ("{}开幕", "开幕的日子是{}", "从{}开始"), ("什么时候开幕？", "从哪一天开始？")),
    ("DATE", ("{}闭幕", "闭幕的日子是{}", "到{}结束"), ("什么时候闭幕？", "到哪一天结束？")),
    ("PLACE", ("在{}举行", "举办地是{}"), ("在哪里举行？", "举办地是哪里？")),
    ("PLACE", ("展品来自{}", "展出的作品由{}提供"), ("展品来自哪里？", "作品由谁提供？")),
    ("LANGUAGE", ("讲解使用{}", "导游只说{}"), ("讲解使用什么语言？", "导游说什么语言？")),
    ("LANGUAGE", ("目录以{}印刷", "图册是{}的"), ("目录以什么语言印刷？", "图册是什么语言的？")),
    ("CURRENCY", ("门票用{}支付", "买票只收{}"), ("门票用什么支付？", "买票收什么货币？")),
    (
        "CURRENCY",
        ("奖金以{}发放", "获奖者得到一笔{}"),
        ("奖金以什么发放？", "获奖者得到什么货币？"),
    ),
    ("NUMBER", ("共有{}件展品", "展品多达{}件"), ("共有多少件展品？", "展品有多少件？")),
    ("NUMBER", ("接待了{}名观众", "观众有{}人"), ("接待了多少名观众？", "观众有多少人？")),
)
OPENINGS = ("这次展览", "本届展览", "据介绍，展览", "今年的展览")
CLOSINGS = ("欢迎参观。", "请提前预约。", "场内不能拍照。", "")


@dataclass(frozen=True)
class Example:
    """A question; `answer` is "" and `start` -1 where the context does not tell."""

    question: str
    context: str
    answer: str
    start: int


def read_questions() -> dict[str, list[Example]]:
    """Questions by split; no paragraph stands in two of them.

    Raises:
        UserError: Babel is not installed.
    """
    names = {kind: read_names(kind) for kind in ("PLACE", "LANGUAGE", "CURRENCY")}
    known = {kind: [n for n in found if not is_held_out(n)] for kind, found in names.items()}
    unseen = {kind: [n for n in found if is_held_out(n)] for kind, found in names.items()}
    written: set[str] = set()
    splits = {}
    for split, count in PARAGRAPHS.items():
        generator = random.Random(f"{NAME} {split}")
        examples: list[Example] = []
        while len(examples) < count * QUESTIONS_PER_PARAGRAPH:
            values = [_value(kind, generator, known, unseen, split) for kind, _, _ in FACTS]
            context, told = _paragraph(values, generator)
            if context not in written and len(set(values)) == len(values):
                written.add(context)
                examples += _ask(values, context, told, generator)
        splits[split] = examples
    return splits


def _value(
    kind: str,
    generator: random.Random,
    known: dict[str, list[str]],
    unseen: dict[str, list[str]],
    split: str,
) -> str:
    if kind == "DATE":
        return random_date(generator)
    if kind == "NUMBER":
        return str(generator.randrange(20, 20_000))
    from_unseen = split != "train" and generator.random() < UNSEEN_SHARE
    return generator.choice((unseen if from_unseen else known)[kind])


def _paragraph(values: list[str], generator: random.Random) -> tuple[str, dict[int, int]]:
    """A text that tells three to five of the facts; where the value of each begins in it."""
    chosen = generator.sample(range(len(FACTS)), generator.randint(3, 5))
    text = generator.choice(OPENINGS)
    starts: dict[int, int] = {}
    for place, fact in enumerate(chosen):
        before, after = generator.choice(FACTS[fact][1]).split("{}")
        starts[fact] = len(text) + len(before)
        text += before + values[fact] + after
        text += "。" if place == len(chosen) - 1 else generator.choice(("，", "，", "。"))
    return text + generator.choice(CLOSINGS), starts


def _ask(
    values: list[str], context: str, starts: dict[int, int], generator: random.Random
) -> list[Example]:
    told = list(starts)
    untold = [fact for fact in range(len(FACTS)) if fact not in starts]
    asked: list[int] = []
    while len(asked) < QUESTIONS_PER_PARAGRAPH:
        pool = untold if generator.random() < UNANSWERABLE_SHARE else told
        fact = generator.choice(pool)
        if fact not in asked:
            asked.append(fact)
    return [
        Example(
            generator.choice(FACTS[fact][2]),
            context,
            values[fact] if fact in starts else "",
            starts.get(fact, -1),
        )
        for fact in asked
    ]

"""`demo:entities`: Chinese sentences with places, languages, currencies and dates, from CLDR.

The names are those of the Unicode CLDR through Babel, the sentences around them are ours. A fifth
of the places, languages and currencies never stands in a training sentence; three in ten of those
in validation and test sentences are of that fifth, so that a model must read and not only remember.
Tokens are characters. The same Babel gives the same sentences.
"""

from __future__ import annotations

import hashlib
import importlib.util
import random
import re
from collections.abc import Callable
from datetime import date, timedelta

from toolkit.errors import UserError

NAME = "demo:entities"
KINDS = ("CURRENCY", "DATE", "LANGUAGE", "PLACE")
SIZES = {"train": 6000, "validation": 500, "test": 1000}
HELD_OUT_SHARE = 0.2  # of the names, which training never shows
UNSEEN_SHARE = 0.3  # of the names in held-out sentences that are chosen among those

TEMPLATES = (
    "{DATE}，{PLACE}的代表用{LANGUAGE}致辞。",
    "他在{PLACE}住了三年，学会了{LANGUAGE}。",
    "会议定于{DATE}在{PLACE}召开，费用以{CURRENCY}支付。",
    "我们把{CURRENCY}换成了{CURRENCY}，汇率不算好。",
    "从{PLACE}飞到{PLACE}要十个小时，{DATE}出发。",
    "这本词典收录了{LANGUAGE}和{LANGUAGE}的常用词。",
    "{PLACE}的官方语言是{LANGUAGE}，货币是{CURRENCY}。",
    "她打算{DATE}去{PLACE}旅行，带了一些{CURRENCY}。",
    "{DATE}以前，请把译成{LANGUAGE}的合同寄到{PLACE}。",
    "商店只收{CURRENCY}，不收{CURRENCY}。",
    "在{PLACE}，会说{LANGUAGE}的人不到一半。",
    "{PLACE}队和{PLACE}队将于{DATE}比赛。",
    "据报道，{CURRENCY}对{CURRENCY}的汇率在{DATE}下跌。",
    "老师问：谁会说{LANGUAGE}？没有人回答。",
    "{DATE}是{PLACE}的国庆日，银行不营业。",
    "这部电影用{LANGUAGE}拍摄，{DATE}在{PLACE}首映。",
    "票价是二十{CURRENCY}，比去年贵了一点。",
    "天气很好，我们沿着河走了{NUMBER}步。",
    "这家店的语言课程要{NUMBER}元，货币兑换也收费。",
    "会议的第{NUMBER}号文件没有写明日期和地点。",
    "请用{LANGUAGE}填写表格，{DATE}交到前台。",
    "{PLACE}和{PLACE}的边界有三百公里长。",
    "虽然只学了两个月，他的{LANGUAGE}已经很流利。",
    "这枚{CURRENCY}硬币是在{PLACE}铸造的。",
)
_SLOT = re.compile(r"\{(\w+)\}")
Sentence = tuple[list[str], list[str]]


def read_entities() -> dict[str, list[Sentence]]:
    """Tokens and BIO tags of every sentence, by split; no sentence stands in two of them.

    Raises:
        UserError: Babel is not installed.
    """
    names = {kind: read_names(kind) for kind in KINDS if kind != "DATE"}
    known = {kind: [n for n in found if not is_held_out(n)] for kind, found in names.items()}
    unseen = {kind: [n for n in found if is_held_out(n)] for kind, found in names.items()}
    written: set[str] = set()
    splits = {}
    for split, size in SIZES.items():
        generator = random.Random(f"{NAME} {split}")

        def choose(kind: str, split: str = split, generator: random.Random = generator) -> str:
            if kind == "DATE":
                return random_date(generator)
            if kind == "NUMBER":
                return str(generator.randrange(2, 10_000))
            from_unseen = split != "train" and generator.random() < UNSEEN_SHARE
            return generator.choice((unseen if from_unseen else known)[kind])

        sentences: list[Sentence] = []
        while len(sentences) < size:
            sentence = fill(generator.choice(TEMPLATES), choose)
            text = "".join(sentence[0])
            if text not in written:
                written.add(text)
                sentences.append(sentence)
        splits[split] = sentences
    return splits


def read_names(kind: str) -> list[str]:
    """Chinese names of a kind, sorted, without those that say more in brackets.

    Raises:
        UserError: Babel is not installed.
    """
    if importlib.util.find_spec("babel") is None:
        raise UserError(
            f"{NAME} needs the package Babel, which is not installed: "
            "pip install 'scratch-models-toolkit[demo]'"
        )
    from babel import Locale

    locale = Locale("zh")
    tables = {
        # Two letters: a country or region, no continent. X: for testing, Z: unknown.
        "PLACE": {
            code: name
            for code, name in locale.territories.items()
            if len(code) == 2 and code[0] not in "XZ"
        },
        "LANGUAGE": locale.languages,
        "CURRENCY": {code: name for code, name in locale.currencies.items() if code != "XXX"},
    }
    names = {name for name in tables[kind].values() if re.fullmatch(r"[\u4e00-\u9fff·]+", name)}
    return sorted(names)


def is_held_out(name: str) -> bool:
    """True for the fixed share of names that training sentences do not have."""
    return hashlib.sha256(name.encode()).digest()[0] < 256 * HELD_OUT_SHARE


def random_date(generator: random.Random) -> str:
    """A day as Chinese writes it: with year, without, with the day of the week, or that alone."""
    from babel.dates import format_date

    day = date(1950, 1, 1) + timedelta(days=generator.randrange(36_525))
    form = generator.choice(("long", "full", "MMMd", "EEEE", "y年M月", "MMMM"))
    return str(format_date(day, "M月d日" if form == "MMMd" else form, locale="zh"))


def fill(template: str, choose: Callable[[str], str]) -> Sentence:
    """The characters of a template with its slots filled, and their BIO tags."""
    tokens: list[str] = []
    tags: list[str] = []
    for number, part in enumerate(_SLOT.split(template)):
        text = choose(part) if number % 2 else part
        tokens += text
        if number % 2 and part in KINDS:
            tags += [f"B-{part}"] + [f"I-{part}"] * (len(text) - 1)
        else:
            tags += ["O"] * len(text)
    return tokens, tags

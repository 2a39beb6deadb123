"""Cuts side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from toolkit.data.inspection.visible import visible
from toolkit.tokens.cutting import Cut, Cutter, Token, count_words

MOST_TOKENS = 60
"""Rows of a table of tokens; --json has them all."""
_STYLES = {"text": "", "special": "dim", "unknown": "bold red"}


def print_kinds(cutters: Sequence[Cutter], notes: Sequence[str], console: Console) -> None:
    """What each tokenizer is; every kind is explained once."""
    for cutter, note in zip(cutters, notes, strict=True):
        lower = ", makes everything lower case" if cutter.lowercases else ""
        limit = f", its model takes at most {cutter.limit:,} of them" if cutter.limit else ""
        console.print(
            f"[bold]{escape(cutter.name)}[/bold]: {escape(cutter.kind.name)}, "
            f"{cutter.size:,} tokens{limit}{lower}{escape(note)}."
        )
    for kind in dict.fromkeys(cutter.kind for cutter in cutters):
        console.print(f"[bold]{escape(kind.name)}[/bold]: {escape(kind.explanation)}.")


def labels(cutters: Sequence[Cutter]) -> list[str]:
    """Names for the heads of columns: of paths the last part, or as much as tells them apart."""
    names = [
        Path(cutter.name).parts if "/" in cutter.name else (cutter.name,) for cutter in cutters
    ]
    for length in range(1, max(map(len, names)) + 1):
        short = ["/".join(parts[-length:]) for parts in names]
        if len(set(short)) == len(short):
            return short
    return [cutter.name for cutter in cutters]


def print_text(cutters: Sequence[Cutter], cuts: Sequence[Cut], console: Console) -> None:
    """A text: how many tokens of which kind, then the tokens of every tokenizer."""
    console.print()
    console.print(Text(f"“{visible(cuts[0].text, 200)}”", style="bold"))
    names = labels(cutters)
    console.print(_counts(names, cutters, cuts))
    tables = [_tokens(name, cut) for name, cut in zip(names, cuts, strict=True)]
    console.print(Columns(tables, padding=(0, 2)))
    for name, cutter, cut in zip(names, cutters, cuts, strict=True):
        for line in remarks(cutter, cut):
            console.print(f"{name}: {line}", markup=False)


def remarks(cutter: Cutter, cut: Cut) -> list[str]:
    """What the tables do not show."""
    said = []
    if not cut.given_back:
        what = ", ".join(cut.changes)
        said.append(f"decoding gives “{visible(cut.decoded, 200)}” back: {what}.")
    if lost := [token.text for token in cut.unknown if token.text]:
        said.append(f"unknown: {', '.join(map(visible, lost))}.")
    if cut.offsets_by != "the tokenizer":
        missing = sum(token.start is None and token.role != "special" for token in cut.tokens)
        found = f"; {missing} were not found there" if missing else ""
        said.append(
            "it does not say where its tokens are in the text; places were found by looking for "
            f"them{found}."
        )
    if cutter.limit is not None and len(cut.tokens) > cutter.limit:
        said.append(
            f"{len(cut.tokens):,} tokens are more than the {cutter.limit:,} its model takes: the "
            "end would be cut off."
        )
    if len(cut.tokens) > MOST_TOKENS:
        said.append(
            f"the first {MOST_TOKENS} of {len(cut.tokens):,} tokens are shown; --json has all."
        )
    return said


def _counts(names: Sequence[str], cutters: Sequence[Cutter], cuts: Sequence[Cut]) -> Table:
    table = Table()
    table.add_column("")
    for name in names:
        table.add_column(escape(name), overflow="fold")
    rows = {
        "kind": [cutter.kind.name for cutter in cutters],
        "cut": [" | ".join(token.shown for token in _inner(cut)) for cut in cuts],
        "tokens of the text": [f"{cut.of_text:,}" for cut in cuts],
        "special tokens beside": [f"{len(cut.tokens) - cut.of_text}" for cut in cuts],
        "unknown": [f"{len(cut.unknown)}" for cut in cuts],
        "tokens a character": [_ratio(cut.per_character) for cut in cuts],
        "tokens a word": [_ratio(cut.per_word) for cut in cuts],
        "decoding gives the text back": [
            "yes" if cut.given_back else f"no: {', '.join(cut.changes)}" for cut in cuts
        ],
    }
    if count_words(cuts[0].text) is None:
        del rows["tokens a word"]
    for what, cells in rows.items():
        table.add_row(what, *(escape(cell) for cell in cells))
    return table


def _inner(cut: Cut) -> list[Token]:
    inner = [token for token in cut.tokens if token.role != "special"]
    return inner[:MOST_TOKENS]


def _tokens(name: str, cut: Cut) -> Table:
    table = Table(title=escape(name), title_justify="left")
    table.add_column("token")
    table.add_column("id", justify="right")
    table.add_column("characters", justify="right")
    table.add_column("of the text")
    for token in cut.tokens[:MOST_TOKENS]:
        cells = (token.shown, str(token.id), _place(token), _stands_for(token))
        table.add_row(*(escape(cell) for cell in cells), style=_STYLES[token.role])
    return table


def _place(token: Token) -> str:
    if token.role == "special":
        return ""
    return "?" if token.start is None else f"{token.start}–{token.end}"


def _stands_for(token: Token) -> str:
    if token.role == "special":
        return "(special)"
    if token.text is None:
        return "unknown" if token.role == "unknown" else "?"
    what = visible(token.text) or "(a space put before)"
    if token.role == "unknown":
        return f"{what} (unknown)"
    return f"{what} (a part)" if token.split else what


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

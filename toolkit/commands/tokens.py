"""`toolkit tokens MODEL TEXT`: how tokenizers cut a text, side by side."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.tokens.cutting import Cutter

HELP = (
    "Show how a tokenizer cuts a text, beside another one: tokens, ids, which characters each "
    "stands for, what is unknown, whether decoding gives the text back. "
    "toolkit tokens demo:chinese-bert unhappiness 他把书送给了她。"
)

WORDS = "texts"
"""Argument whose words may also stand behind options."""

EXAMPLES = ("unhappiness", "他把书送给了她。")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit tokens`."""
    from toolkit.demo.vocabularies import LEARNT_FROM, NAMES, SIZE

    parser.add_argument(
        "model",
        metavar="MODEL",
        help="run, model or tokenizer folder, tokenizer.json, Hub name, demo:chinese-bert, "
        f"{' or '.join(NAMES)} ({SIZE:,} tokens each, {LEARNT_FROM})",
    )
    parser.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help="what to cut; -: standard input, one text a line (default: the examples "
        f"{' and '.join(EXAMPLES)})",
    )
    parser.add_argument("--file", metavar="FILE", help="one text a line; -: standard input")
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="MODEL",
        help="another tokenizer to show beside it; may be given several times (default: those of "
        "demo:wordpiece and demo:byte-bpe that are of another kind)",
    )
    beside.add_argument("--alone", action="store_true", help="show no other beside it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Cut and show; 0."""
    texts = _texts(args)
    cutters = _cutters(args)
    cuts = [[cutter.cut(text) for cutter in cutters] for text in texts]
    if args.json:
        from toolkit.json_values import write_json
        from toolkit.tokens.values import as_values

        write_json(as_values(cutters, [_note(cutter) for cutter in cutters], cuts), "-")
        return 0
    from toolkit.console import console
    from toolkit.tokens.terminal import print_kinds, print_text

    print_kinds(cutters, [_note(cutter) for cutter in cutters], console)
    for of_text in cuts:
        print_text(cutters, of_text, console)
    return 0


def _texts(args: argparse.Namespace) -> list[str]:
    from toolkit.tokens.cutting import check_text

    if args.texts and args.file is not None:
        raise UserError("give texts or --file, not both.")
    if args.file is not None:
        return _lines(args.file)
    if args.texts == ["-"]:
        return _lines("-")
    for text in args.texts:
        check_text(text)
    return list(args.texts) or list(EXAMPLES)


def _lines(file: str) -> list[str]:
    """The lines of a file, without empty ones."""
    where = "standard input" if file == "-" else file
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        # str.splitlines would cut at characters of a text, too: form feeds, U+2028.
        lines = re.split("\r\n|\r|\n", content.decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"--file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{where} is no UTF-8 (byte {error.start + 1}): expected texts, one a line. Save it "
            "as UTF-8."
        ) from error
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise UserError(f"{where} holds no text: expected one a line.")
    return texts


def _cutters(args: argparse.Namespace) -> list[Cutter]:
    from toolkit.progress import working
    from toolkit.tokens.cutting import Cutter
    from toolkit.tokens.opening import open_tokenizer

    cutters: list[Cutter] = []

    def add(names: Sequence[str]) -> None:
        for name in names:
            with working(f"opening the tokenizer of {name}"):
                cutters.append(Cutter(name, open_tokenizer(name)))

    add([args.model, *args.against])
    if not args.against and not args.alone:
        add(_of_another_kind(cutters[0]))
    return cutters


def _of_another_kind(cutter: Cutter) -> list[str]:
    """The embedded vocabularies that cut in another way."""
    from toolkit.demo.vocabularies import BYTE_BPE, WORDPIECE
    from toolkit.tokens import kinds

    embedded = {kinds.WORDPIECE.name: WORDPIECE, kinds.BYTE_BPE.name: BYTE_BPE}
    return [name for kind, name in embedded.items() if kind != cutter.kind.name]


def _note(cutter: Any) -> str:
    from toolkit.demo.vocabularies import LEARNT_FROM, NAMES

    return f", {LEARNT_FROM}" if cutter.name in NAMES else ""

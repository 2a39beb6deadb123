"""Bytes to text: the encodings Chinese files come in, or a refusal that names the byte."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from toolkit.console import notify
from toolkit.data.file_log import note_file
from toolkit.errors import UserError

_BYTE_ORDER_MARKS = [  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]

# The most frequent characters of written Chinese, simplified and traditional, and its punctuation.
_FREQUENT = frozenset(
    "的一是不了在人有我他这個个们們来來上大为為和国國地到以说說时時要就出会會可也你对對生能而子那得于於"
    "着下自之年过過发發后後作里用道行所然家种事成方多经經么麼去好没沒很房酒店服务務,，。！？、的差客旅"
)

_asked: ContextVar[str | None] = ContextVar("encoding", default=None)


@contextmanager
def text_encoding(name: str | None) -> Iterator[None]:
    """Read all text files inside the block as the user says; None: as `decode` finds out.

    Raises:
        UserError: no encoding of that name.
    """
    if name is not None:
        try:
            # base64 and the like are codecs too, but of no text.
            b"    ".decode(name, errors="ignore")
        except LookupError:
            raise UserError(
                f"--encoding {name}: no such encoding; known are utf-8, gb18030, big5, utf-16, "
                "utf-16-le, cp1252, shift_jis, euc-kr and what Python knows besides."
            ) from None
    token = _asked.set(name)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_encoding() -> str | None:
    """That of the `text_encoding` we are in."""
    return _asked.get()


_SAMPLE = 1 << 16  # bytes that UTF-16 is told by
_FEW_CONTROLS = 0.02  # of all bytes; random ones have 0.11
_MANY_ZEROS, _FEW_ZEROS = 0.4, 0.1  # of the bytes at even, or at odd places


def decode(content: bytes, path: Path) -> str:
    """Text of a file: by its byte order mark, else UTF-8, else GB18030 (which includes GBK).

    UTF-8 comes first because much UTF-8 text is also valid, and wrong, GB18030. Inside
    `text_encoding` the encoding asked for is the only one that is tried.

    Raises:
        UserError: neither fits, or one fits by accident only (damaged UTF-8, Big5, UTF-16).
    """
    text, encoding = _decode(content, path)
    note_file(path, encoding=encoding)
    return text


def _decode(content: bytes, path: Path) -> tuple[str, str]:
    _refuse_other_formats(content, path)
    asked = _asked.get()
    if asked is not None:
        return _decode_as_asked(content, asked, path), asked
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _decode_as(content, encoding, path), encoding
    _refuse_utf16(content, path)
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        return _decode_without_utf8(content, path, error), "gb18030"


def half_character(text: str) -> str | None:
    """What is wrong with a text that no file can hold (JSON can spell one); None: nothing."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"holds half a character (a surrogate, character {error.start + 1})"
    return None


def check_line_ends(text: str, path: Path) -> None:
    """Refuse a text whose lines no line feed ends: it would be one line.

    Raises:
        UserError: says how to mend it.
    """
    if "\r" in text and "\n" not in text:
        raise UserError(
            f"{path}: its lines end in carriage returns alone, as old Macs wrote them. "
            f"For example: tr '\\r' '\\n' < {path.name} > mended-{path.name}"
        )


_FIRST_BYTES = {
    b"PK\x03\x04": "a zip archive or a sheet of Excel. Unpack it, or save it as 'CSV UTF-8'",
    b"\xd0\xcf\x11\xe0": "a sheet or document of Office. Save the sheet as 'CSV UTF-8'",
    b"\x1f\x8b": "packed by gzip. Give it a name that ends in .gz",
    b"PAR1": "a parquet file. Give it a name that ends in .parquet",
    b"BZh": "packed by bzip2. Unpack it",
    b"\xfd7zXZ": "packed by xz. Unpack it",
    b"7z\xbc\xaf": "a 7z archive. Unpack it",
    b"Rar!": "a rar archive. Unpack it",
    b"%PDF-": "a PDF. Save its text as UTF-8",
}


def _refuse_other_formats(content: bytes, path: Path) -> None:
    """Refuse what is no text, whatever its name says."""
    for first, kind in _FIRST_BYTES.items():
        # "PAR1" and the like may be words; no text has control characters so soon.
        if content.startswith(first) and any(byte < 9 for byte in content[:_SAMPLE]):
            raise UserError(f"{path} is no text file: it is {kind}.")


def _decode_as_asked(content: bytes, encoding: str, path: Path) -> str:
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: {_place(content, error.start)} is not valid in --encoding {encoding}. "
            "Leave the option out, name another encoding, or mend that line."
        ) from error


def _refuse_utf16(content: bytes, path: Path) -> None:
    """Refuse what is UTF-16 by its zero bytes: half of every ASCII character is one.

    A few anywhere are U+0000, a character of the text like any other.
    """
    sample = content[:_SAMPLE]
    if sample.count(0) < 2:
        return
    even, odd = sample[::2].count(0) / len(sample[::2]), sample[1::2].count(0) / len(sample[1::2])
    if max(even, odd) < _MANY_ZEROS:
        return
    first = f"{path} holds many zero bytes (the first is {_place(content, content.index(0))})"
    if min(even, odd) >= _FEW_ZEROS:
        raise UserError(f"{first}: it is damaged, or not a text file. Save it again as UTF-8.")
    raise UserError(
        f"{first}: UTF-16 without a byte order mark. "
        f"{_advice('UTF-16LE' if odd > even else 'UTF-16BE', path)}"
    )


def _decode_as(content: bytes, encoding: str, path: Path) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} begins as {encoding} but {_place(content, error.start)} is not valid in it. "
            "Save the file again as UTF-8."
        ) from error


def _decode_without_utf8(content: bytes, path: Path, utf8_error: UnicodeDecodeError) -> str:
    place = _place(content, utf8_error.start)
    if _is_damaged_utf8(content):
        raise UserError(
            f"{path}: {place} is not valid UTF-8, while the rest of the file is UTF-8. "
            "Mend that line, or save the file again as UTF-8."
        )
    for encoding in ("UTF-16LE", "UTF-16BE"):
        if b"\x00" in content and _reads_better_as(
            encoding, content, content.decode("gb18030", errors="replace")
        ):
            raise UserError(
                f"{path} is not UTF-8 ({place} is not valid) and looks like UTF-16 without a byte "
                f"order mark. {_advice(encoding, path)}"
            )
    try:
        text = content.decode("gb18030")
    except UnicodeDecodeError as error:
        if _is_binary(content):
            raise UserError(
                f"{path} is not a text file: it is full of control characters. Expected a text "
                "file, such as csv, tsv, json or txt."
            ) from error
        raise UserError(
            f"{path} is neither UTF-8 ({place} is not valid) nor GB18030 "
            f"({_place(content, error.start)} is not valid). {_advice('ITS-ENCODING', path)}"
        ) from error
    if _reads_better_as("cp950", content, text):
        raise UserError(
            f"{path} is not UTF-8 ({place} is not valid) and looks like Big5. "
            f"{_advice('BIG5', path)}"
        )
    notify(f"{path} is not UTF-8; read as GB18030.")
    return text


def _is_binary(content: bytes) -> bool:
    """More bytes that no text has (control characters) than any damaged text."""
    sample = content[:_SAMPLE]
    controls = sum(byte < 9 or 13 < byte < 32 for byte in sample)
    return controls > _FEW_CONTROLS * len(sample)


def _is_damaged_utf8(content: bytes) -> bool:
    """More whole multi-byte characters than stray bytes: no GB18030 text looks like that."""
    decoded = content.decode("utf-8", errors="surrogateescape")
    stray = sum("\udc80" <= character <= "\udcff" for character in decoded)
    return sum(character > "\x7f" for character in decoded) - stray > stray


def _reads_better_as(encoding: str, content: bytes, as_gb18030: str) -> bool:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return _count_frequent(text) > _count_frequent(as_gb18030)


def _count_frequent(text: str) -> int:
    return sum(character in _FREQUENT and character > "\x7f" for character in text)


def _place(content: bytes, offset: int) -> str:
    line = content.count(b"\n", 0, offset) + 1
    return f"byte {offset} (0x{content[offset]:02x}, line {line})"


def _advice(encoding: str, path: Path) -> str:
    command = f"iconv -f {encoding} -t UTF-8 {path.name} > utf8-{path.name}"
    flag = "" if encoding == "ITS-ENCODING" else f" {encoding.lower()}"
    return (
        f"Save it as UTF-8, for example: {command}. Or let a recipe read it as it is: "
        f"--encoding{flag or ' NAME'}"
    )

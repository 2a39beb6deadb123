"""Encodings of Chinese files: UTF-8 first, then GB18030, never the other way; the rest refused."""

import codecs
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.document_config import DocumentDataConfig
from toolkit.data.encoding import decode, text_encoding
from toolkit.data.files import read_table
from toolkit.data.tagging import load_tagging
from toolkit.data.texts import load_texts
from toolkit.data.translation_config import TranslationDataConfig
from toolkit.errors import UserError

NAME = Path("reviews.csv")
REVIEWS = "text,label\n空调坏了没人修,0\n房间很干净，早餐也不错,1\n位置好找，性价比高,1\n"
TRADITIONAL = "text,label\n房間很乾淨，早餐也不錯,1\n空調壞了沒人修,0\n"
CHINESE = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "gbk", "gb2312", "gb18030", "utf-16", "utf-32"]
)
def test_encodings_that_can_be_told_are_read_right(encoding):
    assert decode(REVIEWS.encode(encoding), NAME) == REVIEWS


def test_both_byte_orders_of_utf16_are_read_by_their_mark():
    assert decode(codecs.BOM_UTF16_BE + REVIEWS.encode("utf-16-be"), NAME) == REVIEWS
    assert decode(codecs.BOM_UTF16_LE + REVIEWS.encode("utf-16-le"), NAME) == REVIEWS


def test_characters_that_only_gb18030_has_are_read():
    text = REVIEWS + "名字里有个𠮷字，服务好😀,1\n"
    assert decode(text.encode("gb18030"), NAME) == text


def test_reading_as_gb18030_is_said(capsys):
    decode(REVIEWS.encode("gbk"), NAME)
    assert "reviews.csv is not UTF-8; read as GB18030" in capsys.readouterr().err
    decode(REVIEWS.encode(), NAME)
    assert capsys.readouterr().err == ""


def test_traditional_characters_in_gbk_are_read():
    assert decode(TRADITIONAL.encode("gbk"), NAME) == TRADITIONAL


@given(CHINESE)
def test_utf8_is_never_taken_for_gb18030(text):
    assert decode(text.encode(), NAME) == text


def test_one_bad_byte_in_utf8_is_named_with_byte_and_line():
    content = REVIEWS.encode()
    bad = content.index("位".encode())
    damaged = content[:bad] + b"\xff\xfe" + content[bad + 2 :]
    with pytest.raises(
        UserError, match=rf"byte {bad} \(0xff, line 4\) is not valid UTF-8"
    ) as error:
        decode(damaged, NAME)
    assert "reviews.csv" in str(error.value)


def test_a_file_cut_inside_a_character_is_refused():
    with pytest.raises(UserError, match="is not valid UTF-8"):
        decode(REVIEWS.encode()[:-5] + "高".encode()[:2], NAME)


def test_big5_is_recognised_and_refused_with_the_command():
    with pytest.raises(UserError, match=r"looks like Big5.*iconv -f BIG5 -t UTF-8 reviews\.csv"):
        decode(TRADITIONAL.encode("cp950"), NAME)


def test_bytes_of_no_encoding_are_refused():
    with pytest.raises(UserError, match=r"neither UTF-8 \(byte 11 .* nor GB18030"):
        decode(b"text,label\n\xff\xff\xff,1\n", NAME)


def test_utf16_without_mark_is_refused():
    with pytest.raises(UserError, match=r"zero bytes.*UTF-16 without a byte order mark"):
        decode("text,label\nok,1\n".encode("utf-16-le"), NAME)


@pytest.mark.parametrize(
    ("encoding", "named"), [("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")]
)
@pytest.mark.parametrize("text", ["text,label\nok,1\n", REVIEWS, "好的服务和酒店\n"])
def test_utf16_without_mark_is_refused_with_its_byte_order(encoding, named, text):
    with pytest.raises(UserError, match=rf"UTF-16 without a byte order.*iconv -f {named} -t"):
        decode(text.encode(encoding), NAME)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("place", [1, 3, 14, 3000])
def test_a_zero_character_is_one_like_any_other(encoding, place):
    text = REVIEWS * 100
    text = text[:place] + "\0" + text[place:]
    assert decode(text.encode(encoding), NAME) == text


def test_a_file_of_zero_bytes_is_no_text():
    with pytest.raises(UserError, match=r"first is byte 5 \(0x00, line 2\)\): it is damaged"):
        decode(b"text\n" + bytes(500), NAME)
    with pytest.raises(UserError, match="many zero bytes"):
        decode("text,label\nok,1\n".encode("utf-32-le"), NAME)


def test_utf16_that_ends_in_half_a_character_is_refused():
    with pytest.raises(UserError, match="begins as utf-16 but byte"):
        decode(REVIEWS.encode("utf-16")[:-1], NAME)


def test_the_encoding_asked_for_is_the_one_that_is_read():
    content = "這家酒店很好，服務也不錯".encode("big5")
    with text_encoding("big5"):
        assert decode(content, NAME) == "這家酒店很好，服務也不錯"
    with text_encoding("utf-16-le"):  # its mark is no character of the text
        assert decode("\ufeff好".encode("utf-16-le"), NAME) == "好"
    with pytest.raises(UserError, match=r"looks like Big5.*--encoding big5$"):
        decode(content, NAME)


def test_an_encoding_that_does_not_fit_is_refused_with_byte_and_line():
    with (
        text_encoding("big5"),
        pytest.raises(UserError, match=r"byte 3 \(0xff, line 2\) is not valid in --encoding big5"),
    ):
        decode(b"ab\n\xff", NAME)


@pytest.mark.parametrize("name", ["gbk2312", "base64"])
def test_what_is_no_encoding_of_texts_is_refused(name):
    with (
        pytest.raises(UserError, match=f"--encoding {name}: no such encoding"),
        text_encoding(name),
    ):
        pass


def test_what_is_no_text_at_all_is_said():
    content = random.Random(0).randbytes(3000)
    with pytest.raises(UserError, match=r"reviews\.csv is not a text file"):
        decode(content, NAME)


@pytest.mark.parametrize(
    ("read", "line"),
    [
        (read_table, "text,label\r好,1\r"),
        (lambda path: load_texts(str(path)), "一\r二\r"),
        (lambda path: load_tagging(str(path)), "王 B-PER\r在 O\r"),
        (lambda path: DocumentDataConfig(dataset=str(path)).load_data(), "一\r二\r"),
        (
            lambda path: TranslationDataConfig(
                source_file=str(path), target_file=str(path)
            ).load_data(),
            "一\r二\r",
        ),
    ],
)
def test_lines_that_only_carriage_returns_end_are_refused_by_every_reader(tmp_path, read, line):
    name = "a.csv" if "," in line else "a.conll" if "B-" in line else "a.txt"
    (tmp_path / name).write_text(line, "utf-8", newline="")
    with pytest.raises(UserError, match="end in carriage returns alone"):
        read(tmp_path / name)

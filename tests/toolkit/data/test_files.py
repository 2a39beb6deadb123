"""Files are read letter for letter, or refused with their name and the line."""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.file_log import FileRead, files_read
from toolkit.data.files import read_table
from toolkit.errors import UserError

# Every character but surrogates (no text) and, for csv, NUL; the awkward ones often.
AWKWARD = "好，。“”'\",;\t\n\r \u2028\u0085\u3000\u200b\ufeff𠮷😀éNA"
TEXT = st.text(
    st.one_of(st.sampled_from(AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=30
)
CELLS = st.one_of(TEXT, st.sampled_from(["NA", "null", "nan", "None", "", "#N/A", "1e5", "007"]))
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def write(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def rows_of(table):
    return list(zip(table.columns["text"], table.columns["label"], strict=True))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@given(rows=ROWS)
def test_what_csv_writes_is_read_back(folder, name, quoting, rows):
    rows = [(a.replace("\0", ""), b.replace("\0", "")) for a, b in rows]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=quoting).writerows([("text", "label"), *rows])
    table = read_table(write(folder / name, buffer.getvalue().encode()))
    assert rows_of(table) == rows


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz"])
@pytest.mark.parametrize("ascii_only", [True, False])
@given(rows=ROWS)
def test_what_json_writes_line_by_line_is_read_back(folder, name, ascii_only, rows):
    lines = [json.dumps({"text": a, "label": b}, ensure_ascii=ascii_only) for a, b in rows]
    table = read_table(write(folder / name, "\n".join(lines).encode()))
    assert rows_of(table) == rows


@pytest.mark.parametrize("wrap", [lambda records: records, lambda records: {"data": records}])
@given(rows=ROWS)
def test_what_json_writes_as_a_list_is_read_back(folder, wrap, rows):
    records = [{"text": a, "label": b} for a, b in rows]
    content = json.dumps(wrap(records), ensure_ascii=False, indent=1).encode()
    assert rows_of(read_table(write(folder / "a.json", content))) == rows


@given(rows=ROWS)
def test_what_pyarrow_writes_is_read_back(folder, rows):
    path = folder / "a.parquet"
    pq.write_table(pa.table({"text": [a for a, _ in rows], "label": [b for _, b in rows]}), path)
    assert rows_of(read_table(path)) == rows
    assert rows_of(read_table(write(folder / "a.parquet.gz", path.read_bytes()))) == rows


@given(rows=ROWS)
def test_tsv_has_no_quoting(folder, rows):
    table_break = str.maketrans("", "", "\t\n\r\0")
    rows = [(a.translate(table_break), b.translate(table_break)) for a, b in rows]
    lines = [f"{a}\t{b}" for a, b in [("text", "label"), *rows]]
    assert rows_of(read_table(write(folder / "a.tsv", "\n".join(lines).encode()))) == rows
    windows = "\r\n".join(lines).encode() + b"\r\n"
    assert rows_of(read_table(write(folder / "b.tsv.gz", windows))) == rows


def test_quoted_fields_of_several_lines_keep_their_line_ends_and_places(tmp_path):
    content = 'text,label\r\n"a,\nb",1\r\n"说""不""\r\n好",0\r\n  \r\n普通,1\r\n'
    table = read_table(write(tmp_path / "a.csv", content.encode()))
    assert rows_of(table) == [("a,\nb", "1"), ('说"不"\r\n好', "0"), ("普通", "1")]
    assert [table.place(row).rsplit(" ", 1)[1] for row in range(3)] == ["2", "4", "7"]


def test_one_column_is_a_table_and_its_empty_texts_are_rows(tmp_path):
    table = read_table(write(tmp_path / "a.csv", 'text\n好\n""\n坏\n'.encode()))
    assert table.columns == {"text": ["好", "", "坏"]}


@pytest.mark.parametrize(
    ("name", "content", "rows", "said"),
    [
        ("a.csv", "text\n好\n\n坏\n", ["好", "", "坏"], ""),
        ("a.csv", "text\n好\n坏", ["好", "坏"], ""),
        ("a.csv", "text\r\n好\r\n\r\n", ["好"], "a.csv: 1 empty line at its end is no row"),
        ("a.csv", 'text\n好\n""\n\n\n', ["好", ""], "a.csv: 2 empty lines at its end are no rows"),
        ("a.csv", 'text\n好\n\n""\n', ["好", "", ""], ""),
        ("a.tsv", "text\n好\n\n坏\n", ["好", "", "坏"], ""),
        ("a.tsv", "text\n好\n\n\n", ["好"], "a.tsv: 2 empty lines at its end are no rows"),
    ],
)
def test_empty_lines_of_one_column(tmp_path, capsys, name, content, rows, said):
    assert read_table(write(tmp_path / name, content.encode())).columns == {"text": rows}
    remark = capsys.readouterr().err
    assert said in remark
    assert bool(said) == bool(remark)


def test_empty_lines_of_several_columns_are_no_rows(tmp_path, capsys):
    for name, mark in (("a.csv", ","), ("a.tsv", "\t")):
        content = f"text{mark}n\n好{mark}1\n\n坏{mark}2\n\n\n".encode()
        table = read_table(write(tmp_path / name, content))
        assert table.columns == {"text": ["好", "坏"], "n": ["1", "2"]}
    assert capsys.readouterr().err == ""


def test_json_keeps_types_and_fills_what_a_record_lacks(tmp_path):
    content = '{"text": "a", "label": true}\n\n{"label": 1.5}\n'
    table = read_table(write(tmp_path / "a.jsonl", content.encode()))
    assert table.columns == {"text": ["a", None], "label": [True, 1.5]}
    assert table.place(1).endswith("a.jsonl, line 3")


def test_json_lines_under_the_name_json_are_read(tmp_path):
    content = '{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n'
    assert rows_of(read_table(write(tmp_path / "a.json", content.encode()))) == [("a", 1), ("b", 0)]


def test_json_by_column_as_pandas_writes_it_is_read(tmp_path):
    frame = pandas.DataFrame({"text": ["好", "坏"], "label": [1, 0]})
    frame.to_json(tmp_path / "a.json")
    assert rows_of(read_table(tmp_path / "a.json")) == [("好", 1), ("坏", 0)]
    nested = (
        '{"text": {"zh": "好"}, "label": {"zh": 1}}'  # one row, which the reader of texts refuses
    )
    assert len(read_table(write(tmp_path / "b.json", nested.encode()))) == 1


def packed(kind):
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a.csv", "text,label\n好,1\n")
    elif kind == "parquet":
        pq.write_table(pa.table({"text": ["好"], "label": [1]}), buffer)
    else:
        buffer.write({"gzip": gzip, "bzip2": bz2, "xz": lzma}[kind].compress("text\n好\n".encode()))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["zip", "parquet", "gzip", "bzip2", "xz"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_what_is_no_text_is_called_what_it_is(tmp_path, name, kind):
    with pytest.raises(UserError, match=rf"is no text file: it is .*{kind}"):
        read_table(write(tmp_path / name, packed(kind)))


def test_a_text_may_begin_as_an_archive_does(tmp_path):
    content = "PAR1,BZh\n好,1\n".encode()
    assert read_table(write(tmp_path / "a.csv", content)).columns == {"PAR1": ["好"], "BZh": ["1"]}


def test_columns_of_parquet_in_any_storage_are_cells(tmp_path):
    texts = ["好", "NA", None]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        table = pa.table({"text": pa.array(texts, pa.string()).cast(kind), "label": [0, 1, 1]})
        pq.write_table(table, tmp_path / "a.parquet")
        assert read_table(tmp_path / "a.parquet").columns["text"] == texts
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    pq.write_table(twice, tmp_path / "b.parquet")
    with pytest.raises(UserError, match="two columns have the same name: text, text"):
        read_table(tmp_path / "b.parquet")


def test_links_are_followed_and_those_that_lead_nowhere_said(tmp_path):
    (tmp_path / "link.csv").symlink_to(write(tmp_path / "a.csv", b"text,label\na,1\n"))
    assert rows_of(read_table(tmp_path / "link.csv")) == [("a", "1")]
    (tmp_path / "gone.csv").symlink_to(tmp_path / "b.csv")
    with pytest.raises(UserError, match=r"gone\.csv is a link to .*b\.csv, where nothing is"):
        read_table(tmp_path / "gone.csv")


def test_a_text_longer_than_csvs_own_limit_is_read(tmp_path):
    long = "好" * 200_000
    table = read_table(write(tmp_path / "a.csv", f"text,label\n{long},1\n".encode()))
    assert table.columns["text"] == [long]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text,label\n好,早餐不错,1\n", r"a\.csv, line 2: 3 fields, expected 2"),
        ("a.csv", 'text,label\n"a\nb",1\n好\n', r"line 4: 1 fields, expected 2"),
        ("a.csv", 'text,label\n好,1\n"没有结束,0\n坏,1\n', r"line 3: not well-formed CSV"),
        ("a.csv", 'text,label\n"他说"不,1\n', r"line 2: not well-formed CSV"),
        ("a.csv", "text\n好,很好\n", r"line 2: 2 fields, expected 1 \(text\)"),
        ("a.csv", "text,text\n好,1\n", "two columns have the same name"),
        ("a.csv", "text,label\n", "a header but no rows"),
        ("a.csv", "", r"a\.csv is empty"),
        ("a.csv", " \n\n", r"a\.csv is empty"),
        ("a.csv.gz", "", r"a\.csv\.gz is empty"),
        ("a.tsv", "text\tlabel\n好\t早餐\t1\n", r"a\.tsv, line 2: 3 fields, expected 2"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b"\n', r"a\.jsonl, line 2: not JSON"),
        ("a.jsonl", '{"text": "a"}\n["b", 1]\n', r'line 2: found \["b", 1\], expected an object'),
        ("a.json", '[{"text": "a"},\n {"text": }]', r"a\.json, line 2, character 11: not JSON"),
        ("a.json", "[]", "no rows"),
        ("a.json", '{"data": {"a": 1}}', "expected a list of objects"),
        ("a.parquet", "text,label\n", "not a readable parquet file"),
        (
            "a.csv",
            "text,label\n好\r,1\n坏,0\n",
            r"line 2: .*\(a carriage return outside of quotes\)",
        ),
        ("a.json", "[" * 100_000, r"a\.json, line 1, character 1: not JSON \(lists in lists"),
        (
            "a.jsonl",
            '{"a": 1}\n{"a": ' + "9" * 5000 + "}\n",
            r"a\.jsonl, line 2: not JSON \(a number of",
        ),
        (
            "a.json",
            '{"train": [{"text": "a"}], "test": [{"text": "b"}]}',
            r"splits \(train, test\)",
        ),
        ("a.xlsx", "x", r"unknown kind; expected one of \.csv, \.tsv"),
        ("a", "x", "unknown kind"),
    ],
)
def test_malformed_files_are_refused_with_the_place(tmp_path, name, content, message):
    with pytest.raises(UserError, match=message):
        read_table(write(tmp_path / name, content.encode()))


def test_broken_gzip_is_refused(tmp_path):
    whole = gzip.compress(b"text,label\n" + b"abc,1\n" * 1000)
    for content in (whole[: len(whole) // 2], b"text,label\na,1\n", whole[:-4] + b"0000"):
        (tmp_path / "a.csv.gz").write_bytes(content)
        with pytest.raises(UserError, match=r"cannot read .*a\.csv\.gz"):
            read_table(tmp_path / "a.csv.gz")


def test_missing_file_suggests_its_neighbours(tmp_path):
    (tmp_path / "reviews.csv").write_text("x")
    with pytest.raises(UserError, match=r"no such file or folder: .*Did you mean reviews\.csv\?"):
        read_table(tmp_path / "review.csv")


@pytest.mark.parametrize("name", ["reviews", "reviews.xlsx", "no/such/reviews", "a.csv"])
def test_that_nothing_is_there_is_said_before_its_kind_is_judged(tmp_path, name):
    with pytest.raises(UserError, match=rf"no such file or folder: .*{name}\."):
        read_table(tmp_path / name)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";"])
@given(rows=ROWS)
def test_separators_and_line_ends_of_csv_are_told(folder, end, delimiter, rows):
    rows = [(a.replace("\0", ""), b.replace("\0", "")) for a, b in rows]
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator=end
    )
    writer.writerows(rows)
    content = f"text{delimiter}label{end}{buffer.getvalue()}"
    assert rows_of(read_table(write(folder / "c.csv", content.encode()))) == rows


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".json.gz", ".parquet"])
@given(texts=st.lists(CELLS, min_size=1, max_size=5))
def test_a_single_column_is_read_back(folder, suffix, texts):
    texts = [text.replace("\0", "") for text in texts]
    if suffix.startswith(".csv"):
        buffer = io.StringIO(newline="")
        csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([["text"], *([text] for text in texts)])
        content = buffer.getvalue().encode()
    elif suffix == ".parquet":
        sink = io.BytesIO()
        pq.write_table(pa.table({"text": texts}), sink)
        content = sink.getvalue()
    else:
        records = [{"text": text} for text in texts]
        lines = suffix == ".jsonl"
        content = ("\n".join(map(json.dumps, records)) if lines else json.dumps(records)).encode()
    assert read_table(write(folder / f"one{suffix}", content)).columns == {"text": texts}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text\n好\r坏\n", r"a\.csv, line 2: not well-formed CSV"),
        ("a.csv", "text,label\r好,1\r坏,0\r", r"a\.csv: its lines end in carriage returns alone"),
        ("a.xlsx", "PK", r"unknown kind.*'CSV UTF-8'"),
    ],
)
def test_carriage_returns_end_no_line_and_sheets_are_no_tables(tmp_path, name, content, message):
    with pytest.raises(UserError, match=message):
        read_table(write(tmp_path / name, content.encode()))


def test_class_ids_without_a_name_are_refused_with_the_row(tmp_path):
    label = {"names": ["负面", "正面"], "_type": "ClassLabel"}
    metadata = json.dumps({"info": {"features": {"label": label}}})
    table = pa.table({"text": ["好", "坏", "空"], "label": [1, 0, 2]})
    path = tmp_path / "a.parquet"
    pq.write_table(table.replace_schema_metadata({"huggingface": metadata}), path)
    with pytest.raises(UserError, match=r"a\.parquet, row 3: label is 2, but the file names 2"):
        read_table(path)


def test_files_that_are_read_are_noted_with_encoding_and_delimiter(tmp_path):
    path = write(tmp_path / "a.csv", "text;label\n好;1\n坏;0\n".encode("gb18030"))
    bad = write(tmp_path / "b.tsv", "text\tlabel\n好\n".encode())
    with files_read() as log:
        read_table(path)
        with pytest.raises(UserError):
            read_table(bad)
    read_table(path)  # of whom nobody asks
    assert log == {
        path: FileRead(path, "csv", "gb18030", ";", 2),
        bad: FileRead(bad, "tsv", "utf-8", "\t", None),
    }


def test_columns_without_name_and_content_are_none(tmp_path):
    content = "\ufefftext,label,,\n好,1,,\n坏,0, ,\n"
    table = read_table(write(tmp_path / "a.csv", b"\xef\xbb\xbf" + content.encode()))
    assert table.columns == {"text": ["好", "坏"], "label": ["1", "0"]}
    index = read_table(write(tmp_path / "b.csv", ",text,\n0,好,\n1,坏,\n".encode()))
    assert index.columns == {"": ["0", "1"], "text": ["好", "坏"]}
    with pytest.raises(UserError, match="two columns have the same name"):
        read_table(write(tmp_path / "c.csv", ",text,\n0,好,x\n".encode()))


@pytest.mark.parametrize(
    ("mark", "delimiter"),
    [("sep=;", ";"), ("sep=,", ","), ("SEP=\t", "\t"), ('"sep=|"', "|")],
)
def test_the_line_by_which_excel_names_its_separator_is_no_header(
    tmp_path, capsys, mark, delimiter
):
    body = f'text{delimiter}label\r\n"一,二;三\t|\n四"{delimiter}1\r\n坏{delimiter}0\r\n'
    path = write(tmp_path / "a.csv", f"\ufeff{mark}\r\n{body}".encode())
    with files_read() as log:
        table = read_table(path)
    assert rows_of(table) == [("一,二;三\t|\n四", "1"), ("坏", "0")]
    assert [table.place(row).rsplit(" ", 1)[1] for row in range(2)] == ["3", "5"]
    assert log[path].delimiter == delimiter
    assert "as its first line says" in capsys.readouterr().err
    broken = write(tmp_path / "b.csv", f"{mark}\n{body}一{delimiter}二{delimiter}三\n".encode())
    with pytest.raises(UserError, match=r"b\.csv, line 6: 3 fields, expected 2"):
        read_table(broken)


def test_a_column_may_be_called_sep(tmp_path):
    assert rows_of(read_table(write(tmp_path / "a.csv", b"text,label,sep=;\na,1,x\n"))) == [
        ("a", "1")
    ]

"""Reprs, texts and HTML of Table, Column, ParquetFile, FileMetaData, ParquetSchema, RecoveryReport and Explanation."""

from __future__ import annotations

import datetime as dt
import decimal
import html.parser
import tracemalloc
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq import Column, FileDecryptionProperties, FileEncryptionProperties, ParquetFile, Table
from fastpq import format as fmt
from fastpq.arrays.layouts import BinaryOffsets, BinaryViews
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.common.display import Grid, Heading, Share, View, counted, of_bytes, shorten, to_html, to_text
from fastpq.convert.caller_input import table_from
from fastpq.format.parquet import BoundingBox
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.filtered.explain import Explanation
from fastpq.recovery.losses import Loss, RecoveryReport
from fastpq.rewriting.report import DroppedIndex, DroppedMetadata, RewritingReport

EVIL = "<script>alert('1')</script>&\"\x1b[31m\n"
LONG = "ab\x00é" * (1 << 18)


class Tags(html.parser.HTMLParser):
    """Tags and text of an HTML text; it must be balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] != "style":
            self.text += data + " "


def checked(shown: Any) -> tuple[str, str]:
    """The repr and the text of the HTML, which hold no more than a few lines and no markup of their own."""
    if isinstance(shown, Table | Column | ListColumn | StructColumn):       # str has values
        checked_lines(str(shown))
    text, tags = repr(shown), Tags(shown._repr_html_())
    assert set(tags.tags) <= {"div", "style", "span", "table", "thead", "tbody", "tr", "th", "td", "pre", "i"}
    checked_lines(text)
    assert len(shown._repr_html_()) <= 80_000
    return text, tags.text


def checked_lines(text: str) -> None:
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 1_200
    assert all(line.isprintable() for line in text.splitlines())


# ---- exact


def small() -> Table:
    return table_from({"id": np.array([1, 20, 300]), "name": ["a", None, "b"], "tags": [["x"], [], None]})


def test_table() -> None:
    table = small()
    assert str(table) == (
        f"<Table: 3 rows, 3 columns, {table.nbytes} B>\n"
        "     id  name    tags\n"
        "  INT64  String  list<String>\n"
        "      1  'a'     ['x']\n"
        "     20  null    []\n"
        "    300  'b'     null"
    )
    assert repr(table) == "\n".join(str(table).splitlines()[:3])
    assert repr(Table({}, num_rows=4)) == "<Table: 4 rows, 0 columns, 0 B>"
    assert checked(table)[1].split()[:8] == ["Table", "3", "rows", "3", "columns", f"{table.nbytes}", "B", "id"]
    assert str(Table({}, num_rows=4)) == "<Table: 4 rows, 0 columns, 0 B>"
    assert str(table.slice(0, 0)).splitlines()[1:] == ["     id  name    tags", "  INT64  String  list<String>"]
    assert str(table_from({"n": np.arange(7)})).splitlines()[-2:] == ["      4", "  … and 2 more rows"]


def test_columns() -> None:
    table = small()
    assert repr(table["id"]) == "<Column: INT64, 3 values>"
    assert repr(table["name"]) == "<Column: String, 3 values>"
    assert repr(table["tags"]) == "<ListColumn: list<String>, 3 lists>"
    assert repr(table_from({"s": [{"a": "secret"}]})["s"]) == "<StructColumn: struct<a: String>, 1 struct>"
    assert str(table["id"]) == "<Column: INT64, 3 values>\n  1, 20, 300"
    assert str(table["name"]) == "<Column: String, 3 values, 1 null>\n  'a', null, 'b'"
    assert str(table["tags"]) == "<ListColumn: list<String>, 3 lists, 1 null>\n  ['x'], [], null"
    assert str(table_from({"n": np.arange(12)})["n"]) == "<Column: INT64, 12 values>\n  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"
    assert str(table_from({"n": np.arange(0)})["n"]) == "<Column: INT64, 0 values>"


def test_values_of_every_kind() -> None:
    table = table_from({
        "decimal": [decimal.Decimal("1.50"), None], "day": [dt.date(2024, 2, 29), None], "uuid": [uuid.UUID(int=7), None],
        "moment": np.array(["2024-01-01T00:00:01", "NaT"], "datetime64[ms]"), "bytes": [b"\x00a", None],
        "struct": [{"a": 1, "b": [None, "x"]}, None], "bool": [True, None],
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    })
    shown = {name: str(column).splitlines()[1].strip() for name, column in table.items()}
    assert shown["decimal"] == "1.50, null"
    assert shown["day"] == "2024-02-29, null"
    assert shown["uuid"] == f"{str(uuid.UUID(int=7))[:23]}…, null"
    assert shown["moment"].startswith("2024-01-01 00:00:01, ")
    assert shown["bytes"] == "b'\\x00a', null"
    assert shown["struct"] == "{a: 1, b: [null, 'x']}, null"
    assert shown["bool"] == "True, null"
    assert shown["map"] == "{'k': 1}, null"
    for column in table.values():
        checked(column)


@pytest.mark.parametrize("layout", ["as_views", "as_offsets", "as_dictionary"])
def test_layouts_of_strings(layout: str) -> None:
    column = table_from({"s": ["short", "x" * 40, None, "é" * 200, ""]})["s"]
    assert isinstance(column, Column)
    shown = getattr(column, layout)()
    assert str(shown) == (
        f"<Column: String, 5 values, 1 null>\n  'short', '{'x' * 22}…, null, '{'é' * 22}…, ''"
    )
    assert "'" + "é" * 62 + "…" in Tags(shown._repr_html_()).text
    assert str(shown.slice(3)).endswith(f"\n  '{'é' * 22}…, ''")


def test_schema() -> None:
    assert repr(small().schema) == (
        "<ParquetSchema: 3 columns>\n"
        "  message schema {\n"
        "    required int64 id;\n"
        "    optional binary name (STRING);\n"
        "    optional group tags (LIST) {\n"
        "      repeated group list {\n"
        "        required binary element (STRING);\n"
        "      }\n"
        "    }\n"
        "  }"
    )
    assert str(small().schema) in small().schema._repr_html_().replace("&#x27;", "'")


@pytest.fixture
def file(tmp_path: Path) -> ParquetFile:
    data = {"id": np.arange(100), "price": np.arange(100) / 4}
    fastpq.write_table(data, tmp_path / "a.parquet", row_group_size=50, compression=None)
    return ParquetFile(tmp_path / "a.parquet")


def test_file_and_metadata(file: ParquetFile, tmp_path: Path) -> None:
    size = (tmp_path / "a.parquet").stat().st_size
    name = shorten(str(tmp_path / "a.parquet"), 160)
    facts = f"100 rows, 2 row groups, 2 columns, by {file.metadata.created_by}, plaintext"
    columns = "  column  type\n  id      required int64\n  price   required double"
    expected = f"<ParquetFile: {name}, {of_bytes(size)}, {facts}>\n{columns}"
    assert repr(file) == expected
    requests = file.io
    assert repr(file.metadata).splitlines()[0] == f"<FileMetaData: {facts}>"
    groups = [file.metadata.row_group(index) for index in range(2)]
    cells = [line.split() for line in repr(file.metadata).splitlines()[1:]]
    assert cells[0] == ["row", "group", "rows", "stored", "uncompressed", "offset"]
    assert [row[:2] + row[-1:] for row in cells[1:]] == [["0", "50", "4"], ["1", "50", f"{groups[1].file_offset:,}"]]
    checked(file)
    checked(file.metadata)
    assert file.io == requests      # nothing more is read for it
    file.close()
    assert repr(file) == expected.replace("plaintext>", "plaintext, closed>")
    checked(file)
    checked(file.metadata)
    checked(file.schema)


def test_explanation(file: ParquetFile) -> None:
    shown = file.explain([("id", "<", 10)])
    assert repr(shown).splitlines()[0].startswith("<Explanation: 1 of 2 row groups, ")
    assert [line.split()[0] for line in repr(shown).splitlines()[2:]] == ["0", "1"]
    assert repr(shown).splitlines()[3].endswith("id < 10: no row by statistics")
    assert "50 of 50" in checked(shown)[1]
    assert repr(Explanation([])) == "<Explanation: 0 of 0 row groups, 0 B of 0 B>"


def test_recovery_report() -> None:
    assert repr(RecoveryReport("footer")) == "<RecoveryReport: read by footer, 0 losses>\n  nothing is lost"
    loss = Loss(1, "a.b", 1_000, 2_000, "the page's CRC-32 does not match")
    assert repr(RecoveryReport("checkpoint", (loss,), ((10, 2_500),), "no footer")) == (
        "<RecoveryReport: read by checkpoint, 1 loss, 2.5 kB unread>\n"
        "  column  row group            rows   lost  reason\n"
        "  a.b             1  1,000 to 1,999  1,000  the page's CRC-32 does not match\n"
        "  no footer"
    )
    many = RecoveryReport("footer", tuple(replace(loss, column=f"{EVIL}{number}") for number in range(10_000)))
    text, shown = checked(many)
    assert "… and 9,995 more losses" in text
    assert "<script>" in shown      # as text


def test_rewriting_report() -> None:
    complete = RewritingReport(copied_pages=3, decoded_pages=1)
    assert "nothing was left out" in Tags(complete._repr_html_()).text
    assert "3 pages copied" in Tags(complete._repr_html_()).text
    index = DroppedIndex("file.parquet", 2, EVIL, "offset index", EVIL)
    report = RewritingReport((index,) * 300, (DroppedMetadata(EVIL, ""),))
    tags = Tags(report._repr_html_())
    assert "<script" not in report._repr_html_()
    assert "… and 201 more parts" in tags.text
    assert len(report._repr_html_()) <= 200_000


# ---- any names, any values, any size


def test_names_and_values_are_escaped(tmp_path: Path) -> None:
    table = table_from({EVIL: [EVIL, None], "list": [[EVIL], []], "struct": [{EVIL: EVIL}, {EVIL: ""}], "b": [EVIL.encode()] * 2})
    fastpq.write_table(table, tmp_path / f"{EVIL.replace('/', '_')}.parquet", key_value_metadata={EVIL: EVIL})
    with ParquetFile(tmp_path / f"{EVIL.replace('/', '_')}.parquet") as file:
        shown = [table, *table.columns, table.schema, file, file.metadata, file.explain([((EVIL,), "==", EVIL)])]
        for each in shown:
            text, _ = checked(each)
            assert "<script" not in each._repr_html_()
            assert "\x1b" not in text + each._repr_html_()
        assert "<script>alert(" in checked(table)[1]


def test_ten_thousand_columns(tmp_path: Path) -> None:
    values = np.arange(3)
    table = Table({f"column {number} {'long ' * 50}": table_from({"a": values})["a"] for number in range(10_000)})
    fastpq.write_table(table, tmp_path / "wide", write_page_index=False, write_statistics=False)
    text, _ = checked(table)
    assert "… and 9,988 more columns" in text
    with ParquetFile(tmp_path / "wide") as file:
        for shown in (file, file.metadata, file.schema):
            checked(shown)
        assert "… and 9,992 more columns" in repr(file)


@pytest.mark.parametrize("layout", ["as_views", "as_offsets", "as_dictionary"])
def test_long_values_are_not_decoded(layout: str) -> None:
    column = table_from({"s": [LONG] * 20})["s"]
    assert isinstance(column, Column)
    column = getattr(column, layout)()
    nested = table_from({"l": [[LONG] * 50] * 3, "s": [{"a": LONG}] * 3, "deep": [[[[[[[1]]]]]]] * 3})
    checked(small())        # imports on first use take memory too
    for shown in (column, Table({"s": column}), nested, *nested.columns):
        tracemalloc.start()
        checked(shown)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < len(LONG) // 4


def test_broken_columns_are_shown_all_the_same() -> None:
    text = table_from({"s": ["a" * 50, "b"]}).flat("s").as_views()
    assert isinstance(text.values, BinaryViews)
    lost = replace(text, values=BinaryViews(text.values.views, []))
    assert str(lost) == "<Column: String, 2 values>\n  <broken>, 'b'"
    offsets = replace(text, values=BinaryOffsets(np.array([0, 1, 9], np.int32), np.frombuffer(b"\xffb", np.uint8)))
    assert str(offsets).splitlines()[1].startswith("  '\ufffd', 'b'")


# ---- encrypted files


def test_nothing_of_columns_without_a_key(tmp_path: Path) -> None:
    keys = FileEncryptionProperties(b"footerkey1234567", {"secret": b"columnkey1234567"})
    data = {"open": np.arange(10), "secret": [f"classified {number}" for number in range(10)]}
    fastpq.write_table(data, tmp_path / "a", encryption_properties=keys)
    opening = FileDecryptionProperties(b"footerkey1234567")
    with ParquetFile(tmp_path / "a", decryption_properties=opening) as file:
        table = file.read(["open"])
        shown: list[Any] = [file, file.metadata, file.schema, table, file.explain([("open", "<", 3)], ["open"]), file.recovery]
        for each in shown:
            for text in (*checked(each), each._repr_html_(), str(each)):
                assert "classified" not in text
                assert "footerkey" not in text
                assert "columnkey" not in text
        assert "encrypted with AES_GCM_V1" in repr(file)
    for properties in (keys, opening):
        assert "key1234567" not in repr(properties)


def test_reprs_hold_no_values(tmp_path: Path) -> None:
    """Logs and crash reports take the repr, also of what was read of an encrypted column."""
    columns = dict.fromkeys(("s", "n", "f", "l", "r"), b"columnkey1234567")
    keys = FileEncryptionProperties(b"footerkey1234567", columns)
    data = {"s": ["classified"] * 9, "n": [777_333_111] * 9, "f": [777_333_111.5] * 9, "l": [["classified"]] * 9,
            "r": [{"a": "classified"}] * 9}
    fastpq.write_table(data, tmp_path / "a", encryption_properties=keys)
    opening = FileDecryptionProperties(b"footerkey1234567", columns)
    with ParquetFile(tmp_path / "a", decryption_properties=opening) as file:
        table = file.read()
        text = table.flat("s")
        chunks = [file.metadata.row_group(0).column(index) for index in range(file.metadata.num_columns)]
        shown = [table, *table.columns, text.as_offsets().values, text.as_views().values,
                 text.as_dictionary().values, text.values, file.recovery, file, file.metadata, *chunks,
                 *(chunk.statistics for chunk in chunks)]
        assert bytes(chunks[0].metadata.statistics.min_value) == b"classified"      # type: ignore[union-attr, arg-type]
        for each in shown:
            for secret in ("classified", "777", " 99 108", repr(np.int64(777_333_111).tobytes())):
                assert secret not in repr(each), type(each)
        assert "classified" in str(table)
        assert "777333111" in str(table["n"])
        assert "classified" in table._repr_html_()
    index = fmt.ColumnIndex(null_pages=[False], min_values=[b"classified"], max_values=[b"z"], boundary_order=0)
    assert "min_values=[<10 bytes>]" in repr(index)
    assert repr(BoundingBox(xmin=777.5, xmax=1.0, ymin=1.0, ymax=1.0)).startswith("BoundingBox(xmin=<float>, ")


# ---- broken files and half-made objects


def with_broken_schema(path: Path) -> None:
    """A file whose schema element has more children than there are elements."""
    fastpq.write_table({"id": np.arange(10)}, path)
    with ParquetFile(path) as file:
        footer = fmt.decode(fmt.FileMetaData, file.metadata._footer)[0]
    footer.schema[0].num_children = 7
    stored = fmt.encode(footer)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:start] + stored + len(stored).to_bytes(4, "little") + b"PAR1")


def test_a_broken_schema_is_shown(tmp_path: Path) -> None:
    with_broken_schema(tmp_path / "a")
    with ParquetFile(tmp_path / "a") as file:
        with pytest.raises(fastpq.FormatError):
            _ = file.schema
        for shown in (file, file.metadata):
            for text in checked(shown):
                assert "10 rows" in text
                assert "broken schema" in text
        assert len(repr(file).splitlines()) == 1
        assert len(repr(file.metadata).splitlines()) == 3       # with its row group


def test_any_footer_that_opens_is_shown(tmp_path: Path) -> None:
    fastpq.write_table({"id": np.arange(3), "l": [["x"], [], None]}, tmp_path / "a", write_page_index=False)
    data = (tmp_path / "a").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    opened = 0
    for place in range(start, len(data) - 8):
        for mask in (1, 0x10, 0x80):
            altered = bytearray(data)
            altered[place] ^= mask
            try:
                file = ParquetFile(bytes(altered))
            except fastpq.ParquetError:
                continue
            opened += 1
            for shown in (file, file.metadata):
                assert repr(shown)
                assert shown._repr_html_()
    assert opened > 100


@pytest.mark.parametrize("kind", [ParquetFile, FileMetaData])
def test_half_made_objects_are_shown(kind: Any) -> None:
    half = kind.__new__(kind)
    assert repr(half) == {ParquetFile: "<ParquetFile: not open>", FileMetaData: "<FileMetaData: not read>"}[kind]
    assert "not " in checked(half)[1]


# ---- the pieces


def test_pieces() -> None:
    assert [of_bytes(number) for number in (0, 999, 1_000, 12_345, 999_499, 999_999, 5 * 10**18)] == [
        "0 B", "999 B", "1.0 kB", "12.3 kB", "999 kB", "1.0 MB", "5.0 EB"]
    assert [counted(1, "row"), counted(0, "row"), counted(2_000, "loss")] == ["1 row", "0 rows", "2,000 losses"]
    assert shorten("a\nb\x1b", 10) == "a\\nb\\x1b"
    assert shorten("abcdef", 4) == "abc…"
    view = View("X", ["f"], Grid([Heading("a"), Heading("b", "t", True)], [("1", Share("half", 0.5))], "n"), ["l"], "end")
    assert to_text(view) == "<X: f>\n  a     b\n        t\n  1  half\n  n\n  l\n  end"
    assert 'style="width:50%"' in to_html(view)

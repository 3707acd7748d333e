"""Text that is not UTF-8, which Arrow data and files of other writers may have."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

BAD = b"caf\xe9"        # Latin-1
REPAIRED = "caf\ufffd"
LONG = b"a text that is longer than twelve bytes \xff\xfe"
VALUES = [b"plain", None, BAD, "é".encode(), LONG, b""]
TEXTS = [None if value is None else value.decode("utf-8", "replace") for value in VALUES]
TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def text_of(values: list[bytes | None], type_: pa.DataType) -> pa.Array:
    """Return bytes as text, without a check."""
    if pa.types.is_dictionary(type_):
        codes = pa.array([None if value is None else number for number, value in enumerate(values)], pa.int32())
        return pa.DictionaryArray.from_arrays(codes, text_of([value or b"" for value in values], pa.string()))
    layouts = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return pa.array(values, layouts[type_]).view(type_)


def nested(kind: str, text: pa.Array) -> pa.Array:
    if kind == "flat":
        return text
    if kind == "list":
        return pa.ListArray.from_arrays(pa.array(range(len(text) + 1), pa.int32()), text)
    if kind == "struct":
        return pa.StructArray.from_arrays([text], ["text"])
    keys = pa.array(range(len(text)), pa.int64())
    return pa.MapArray.from_arrays(pa.array(range(len(text) + 1), pa.int32()), keys, text)


def plain(kind: str, value: Any) -> Any:
    return {"flat": lambda: value, "list": lambda: [value], "struct": lambda: {"text": value}, "map": lambda: value}[kind]()


def written(data: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    fastpq.write_table(data, target, **options)
    return target.getvalue()


def foreign(column: pa.Array, **options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table({"t": column}), target, **options)
    return target.getvalue()


def listed(kind: str, column: Any) -> list[Any]:
    values = column.to_pylist()
    return [dict(value)[number] for number, value in enumerate(values)] if kind == "map" else values


@pytest.mark.parametrize("kind", ["flat", "list", "struct", "map"])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_writing(tmp_path: Path, kind: str, type_: pa.DataType) -> None:
    data = pa.table({"t": nested(kind, text_of(VALUES, type_)), "n": range(len(VALUES))})
    for use_dictionary in (True, False):
        options = {"use_dictionary": use_dictionary}
        with pytest.raises(fastpq.SchemaError, match=r'is not UTF-8: invalid_utf8="replace".*column t'):
            written(data, **options)
        raw = written(data, invalid_utf8="replace", **options)
        assert listed(kind, fastpq.read_table(raw)["t"]) == [plain(kind, text) for text in TEXTS]
        assert listed(kind, pq.read_table(pa.BufferReader(raw))["t"]) == [plain(kind, text) for text in TEXTS]
        raw = written(data, invalid_utf8="binary", **options)
        assert listed(kind, fastpq.read_table(raw)["t"]) == [plain(kind, value) for value in VALUES]
        assert listed(kind, pq.read_table(pa.BufferReader(raw))["t"]) == [plain(kind, value) for value in VALUES]
        path = tmp_path / "x.parquet"
        path.write_bytes(raw)
        if kind == "flat":
            assert pl.read_parquet(path)["t"].to_list() == VALUES
            assert [value for (value,) in duckdb.execute(f"select t from '{path}'").fetchall()] == VALUES


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY"])
def test_a_place_in_any_page_of_any_encoding(encoding: str) -> None:
    """Pages are checked as they are encoded. The message names the value in the row group."""
    options: dict[str, Any] = {"data_page_size": 2000, "use_dictionary": encoding == "RLE_DICTIONARY"}
    if encoding != "RLE_DICTIONARY":
        options["column_encoding"] = {"t": encoding}
    values: list[bytes | None] = [b"prefix " + str(number).encode() * (1 + number % 60) for number in range(1000)]
    for place in (0, 1, 500, 999):
        for bad in (b"\x80", b"prefix " * 20 + b"\xc3", b"prefix " + "é".encode() + b"\xff" * 9):
            changed = [*values[:place], bad, *values[place + 1:]]
            with pytest.raises(fastpq.SchemaError, match=f"value {place} is not UTF-8"):
                written(pa.table({"t": text_of(changed, pa.string_view())}), **options)
    accents = [value + "é€𝄞".encode() * (number % 50 == 0) for number, value in enumerate(values) if value is not None]
    raw = written(pa.table({"t": text_of([*accents], pa.string())}), **options)
    assert pq.read_table(pa.BufferReader(raw))["t"].to_pylist() == [value.decode() for value in accents]


@pytest.mark.parametrize("mode", ["replace", "binary"])
def test_valid_text_is_not_changed(mode: str) -> None:
    data = pa.table({"t": ["a", None, "é"]})
    assert written(data, invalid_utf8=mode) == written(data)


def test_what_is_not_written_may_be_invalid() -> None:
    """Values under nulls, and rows outside of a slice, do not count. Unused entries of a dictionary that is written whole do."""
    text = text_of(VALUES, pa.string())
    assert fastpq.read_table(written(pa.table({"t": text.slice(0, 2)})))["t"].to_pylist() == ["plain", None]
    under_nulls = pa.StructArray.from_arrays([text], ["text"], mask=pa.array([False, True, True, False, True, False]))
    assert fastpq.read_table(written(pa.table({"t": under_nulls})))["t"].to_pylist()[2] is None
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), text_of([b"a", BAD], pa.string()))
    with pytest.raises(fastpq.SchemaError, match="not UTF-8"):
        written(pa.table({"t": unused}))


def test_several_tables() -> None:
    good, bad = pa.table({"t": ["a"]}), pa.table({"t": text_of([BAD], pa.string())})
    target = io.BytesIO()
    with fastpq.ParquetWriter(target, invalid_utf8="binary") as writer:
        writer.write_table(bad)
        writer.write_table(good)
    assert fastpq.read_table(target.getvalue())["t"].to_pylist() == [BAD, b"a"]
    target = io.BytesIO()
    with pytest.raises(fastpq.SchemaError, match="not UTF-8"), fastpq.ParquetWriter(target, invalid_utf8="binary") as writer:
        writer.write_table(good)
        writer.write_table(bad)
    stream = pa.RecordBatchReader.from_batches(good.schema, [*good.to_batches(), *bad.to_batches()])
    with pytest.raises(fastpq.SchemaError, match="not UTF-8"):
        written(stream)
    raw = written(pa.RecordBatchReader.from_batches(good.schema, [*good.to_batches(), *bad.to_batches()]), invalid_utf8="replace")
    assert fastpq.read_table(raw)["t"].to_pylist() == ["a", REPAIRED]


@pytest.mark.parametrize("kind", ["flat", "list", "struct", "map"])
@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("type_", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_reading(tmp_path: Path, kind: str, strings: Any, use_dictionary: bool, type_: pa.DataType) -> None:
    raw = foreign(nested(kind, text_of(VALUES * 50, type_)), use_dictionary=use_dictionary)
    path = tmp_path / "x.parquet"
    path.write_bytes(raw)
    for where in (raw, path, tmp_path):
        with pytest.raises(fastpq.FormatError, match="not UTF-8"):
            fastpq.read_table(where, strings=strings)
        for mode, values in (("replace", TEXTS), ("binary", VALUES)):
            expected = [plain(kind, value) for value in values * 50]
            options: Any = {"invalid_utf8": mode, "strings": strings}
            table = fastpq.read_table(where, **options)
            assert listed(kind, table["t"]) == expected
            arrow = pa.table(table)
            arrow.validate(full=True)
            assert listed(kind, arrow["t"]) == expected
    for mode, values in (("replace", TEXTS), ("binary", VALUES)):
        expected = [plain(kind, value) for value in values * 50]
        with fastpq.ParquetFile(path, invalid_utf8=mode, strings=strings) as file:      # type: ignore[arg-type]
            batches = [batch["t"] for batch in file.iter_batches(300)]
            assert [value for batch in batches for value in listed(kind, batch)] == expected
            streamed = pa.RecordBatchReader.from_stream(file).read_all()
            streamed.validate(full=True)
            if kind != "map":
                assert file.take([4, 2])["t"].to_pylist() == [expected[4], expected[2]]
            if kind == "flat":
                assert file.to_pandas()["t"].tolist()[2] == expected[2]
        with fastpq.ParquetFile(path, invalid_utf8=mode, on_error="null") as file:      # type: ignore[arg-type]
            assert listed(kind, file.read()["t"]) == expected


def test_filters_compare_stored_bytes() -> None:
    raw = foreign(text_of(VALUES, pa.string()), row_group_size=2)
    for mode in ("replace", "binary"):
        with fastpq.ParquetFile(raw, invalid_utf8=mode) as file:
            assert file.count([("t", "==", "plain")]) == 1
            assert file.read(filters=[("t", ">=", "a")]).num_rows == 4
    with fastpq.ParquetFile(raw, invalid_utf8="replace") as file:
        assert file.read(filters=[("t", ">", "b")])["t"].to_pylist() == ["plain", REPAIRED, "é"]
        assert file.min_max("t") == ("", "é")
    with fastpq.ParquetFile(raw, invalid_utf8="binary") as file:
        assert file.count([("t", "==", BAD)]) == 1
        assert file.min_max("t") == (b"", "é".encode())


def test_written_again() -> None:
    raw = foreign(text_of(VALUES, pa.string()))
    for mode, values in (("replace", TEXTS), ("binary", VALUES)):
        again = written(fastpq.read_table(raw, invalid_utf8=mode))      # type: ignore[arg-type]
        assert fastpq.read_table(again)["t"].to_pylist() == values
        assert pq.read_table(pa.BufferReader(again))["t"].to_pylist() == values


def test_wrong_option() -> None:
    with pytest.raises(ValueError, match='invalid_utf8 must be "error" or "replace" or "binary"'):
        written({"a": ["b"]}, invalid_utf8="ignore")
    with pytest.raises(ValueError, match='invalid_utf8 must be "error", "replace" or "binary"'):
        fastpq.read_table(written({"a": ["b"]}), invalid_utf8="ignore")     # type: ignore[arg-type]

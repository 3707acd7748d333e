"""Values that their columns cannot have: no table with them is returned."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.arrays.flat_column import fixed_values


def with_schema(data: bytes, element: int, **changes: Any) -> bytes:
    """The file with other fields of a SchemaElement."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, data[-8 - length : -8])[0]
    for name, value in changes.items():
        setattr(footer.schema[element], name, value)
    stored = fmt.encode(footer)
    return data[: -8 - length] + stored + len(stored).to_bytes(4, "little") + b"PAR1"


def decimals(digits: int) -> dict[str, Any]:
    return {"logicalType": fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=0, precision=digits)), "precision": digits, "scale": 0}


DECIMAL_TYPES = {
    "INT32": (pa.decimal128(9), {"store_decimal_as_integer": True}),
    "INT64": (pa.decimal128(18), {"store_decimal_as_integer": True}),
    "FIXED-16": (pa.decimal128(38), {}),
    "FIXED-32": (pa.decimal256(76), {}),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", DECIMAL_TYPES)
def test_decimals_over_their_precision(kind: str, sign: int, dictionary: bool, nested: bool) -> None:
    type_, options = DECIMAL_TYPES[kind]
    for digits in (1, 5, type_.precision - 1):
        fits, too_large = sign * (10**digits - 1), sign * 10**digits
        for value, valid in ((fits, True), (too_large, False)):
            values = pa.array([0, None, value, -1], type_)
            if nested:
                values = pa.ListArray.from_arrays(pa.array([0, 4], pa.int32()), values)
            sink = io.BytesIO()
            pq.write_table(pa.table({"d": values}), sink, use_dictionary=dictionary, **options)
            data = with_schema(sink.getvalue(), 3 if nested else 1, **decimals(digits))
            if valid:
                table = fastpq.read_table(data)
                pa.table(table).validate(full=True)
            else:
                with pytest.raises(fastpq.FormatError, match=f"more than {digits} digits"):
                    fastpq.read_table(data)
                with pytest.raises(fastpq.FormatError, match=f"more than {digits} digits"):
                    fastpq.read_table(data, decimals="decimal128")
                for width in ("stored", "decimal128"):
                    as_stored = fastpq.read_table(data, properties=fastpq.ReaderProperties(verify_decimals=False), decimals=width)
                    stored = as_stored["d"].to_pylist()
                    assert (stored[0] if nested else stored)[2] == too_large


@pytest.mark.parametrize("rows", [1, 3, 300])
@pytest.mark.parametrize("precision", [1, 4, 11, 18, 21, 33])
def test_decimals_over_their_stored_bytes(precision: int, rows: int) -> None:
    """Arrow data whose values have more bytes than their precision asks for, at any place of a chunk."""
    stored = ((10**precision).bit_length() + 8) // 8
    for value in (1 << 8 * stored - 1, -(1 << 8 * stored - 1) - 1, 1 << 126, -(1 << 126)):
        for place in {0, rows // 2, rows - 1}:
            values = [5] * place + [value] + [-5] * (rows - place - 1)
            data = b"".join(number.to_bytes(16, "little", signed=True) for number in values)
            array = pa.Array.from_buffers(pa.decimal128(precision, 0), rows, [None, pa.py_buffer(data)])
            with pytest.raises(fastpq.SchemaError, match="physical type cannot hold"):
                fastpq.write_table(pa.table({"d": array}), io.BytesIO(), use_dictionary=False)


@pytest.mark.parametrize("layout", ["plain", "view"])
def test_decimals_of_bytes_and_in_the_file(layout: str) -> None:
    sink = io.BytesIO()
    if layout == "view":        # a required column that is a view of the file
        column = pa.field("d", pa.decimal128(9), nullable=False)
        table = pa.table({"d": pa.array([1, 12345], pa.decimal128(9))}, schema=pa.schema([column]))
        pq.write_table(table, sink, use_dictionary=False, compression="none", store_decimal_as_integer=True)
        data = sink.getvalue()
    else:
        fastpq.write_table({"d": np.array([b"\x01", b"\x30\x39"], object)}, sink)
        data = sink.getvalue()
    assert fastpq.read_table(with_schema(data, 1, **decimals(5)))["d"].to_pylist()[1] == 12345
    with pytest.raises(fastpq.FormatError, match="more than 4 digits"):
        fastpq.read_table(with_schema(data, 1, **decimals(4)))


@pytest.mark.parametrize("encoding", ["PLAIN", "RLE_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("bad", [b"\xff", b"short\xc3", b"longer than twelve bytes \xed\xa0\x80", b"\xc0\x80"])
@pytest.mark.parametrize("annotation", ["STRING", "JSON", "ENUM"])
def test_text_that_is_not_utf8(encoding: str, bad: bytes, annotation: str) -> None:
    sink = io.BytesIO()
    fastpq.write_table({"t": np.array([b"good", bad, "gr\u00fc\u00df".encode()], object)}, sink, column_encoding={"t": encoding})
    kinds = {"STRING": fmt.StringType(), "JSON": fmt.JsonType(), "ENUM": fmt.EnumType()}
    data = with_schema(sink.getvalue(), 1, logicalType=fmt.LogicalType(**{annotation: kinds[annotation]}))
    with pytest.raises(fastpq.FormatError, match="UTF-8"):
        fastpq.read_table(data)
    assert fastpq.read_table(sink.getvalue())["t"].to_pylist()[1] == bad


# Time types with the ticks of a day.
TIME_TYPES = {
    "ms": (pa.time32("ms"), 86_400 * 10**3),
    "us": (pa.time64("us"), 86_400 * 10**6),
    "ns": (pa.time64("ns"), 86_400 * 10**9),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("layout", ["plain", "dictionary", "delta", "view"])
@pytest.mark.parametrize("unit", TIME_TYPES)
def test_times_outside_of_a_day(unit: str, layout: str, nested: bool) -> None:
    type_, day = TIME_TYPES[unit]
    for value, valid in ((0, True), (day - 1, True), (day, False), (-1, False), (-day, False)):
        numbers = pa.array([0, value, 1] if layout == "view" else [0, None, value, 1], pa.int32() if unit == "ms" else pa.int64())
        values = numbers.cast(type_)
        if nested:
            values = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        table = pa.table({"t": values}, schema=pa.schema([pa.field("t", values.type, nullable=layout != "view")]))
        encoding = {"column_encoding": "DELTA_BINARY_PACKED"} if layout == "delta" else {}
        sink = io.BytesIO()
        pq.write_table(table, sink, use_dictionary=layout == "dictionary", compression="none", **encoding)
        data = sink.getvalue()
        if valid:
            pa.table(fastpq.read_table(data)).validate(full=True)
        else:
            with pytest.raises(fastpq.FormatError, match="a TIME outside of a day"):
                fastpq.read_table(data)
            as_stored = fastpq.read_table(data, properties=fastpq.ReaderProperties(verify_times=False))
            (read,) = [leaf for _, leaf in as_stored["t"].leaves()]
            assert value in fixed_values(read).tolist()


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("unit", TIME_TYPES)
def test_times_outside_of_a_day_are_not_written(unit: str, statistics: bool) -> None:
    type_, day = TIME_TYPES[unit]
    numbers = pa.array([0, None, day - 1, day], pa.int32() if unit == "ms" else pa.int64())
    fastpq.write_table(pa.table({"t": numbers[:3].cast(type_)}), io.BytesIO(), write_statistics=statistics)
    with pytest.raises(fastpq.SchemaError, match=f"a TIME of {day} {unit} is outside of a day"):
        fastpq.write_table(pa.table({"t": numbers.cast(type_)}), io.BytesIO(), write_statistics=statistics)


@pytest.mark.parametrize(
    ("kind", "nullable"), [("int", True), ("int", False), ("text", True), ("text", False), ("struct", True), ("list", True)]
)
def test_values_of_unknown_columns_are_null(kind: str, nullable: bool) -> None:
    """UNKNOWN says "always null": stored values are null for every way of reading, as they are for pyarrow."""
    leaf = pa.field("x", pa.string() if kind == "text" else pa.int32(), nullable)
    stored = ["a", "b", "c"] if kind == "text" else [1, 2, 3]
    values: pa.Array = pa.array([*stored[:2], None if nullable else stored[2]], leaf.type)
    if kind == "struct":
        values = pa.StructArray.from_arrays([values], fields=[leaf])
    elif kind == "list":
        values = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3], pa.int32()), values, pa.list_(leaf))
    sink = io.BytesIO()
    outer = pa.field("d", values.type, nullable)
    pq.write_table(pa.table([values], pa.schema([outer])), sink, row_group_size=2, store_schema=False, write_page_index=True)
    element = {"int": 1, "text": 1, "struct": 2, "list": 3}[kind]
    data = with_schema(sink.getvalue(), element, logicalType=fmt.LogicalType(UNKNOWN=fmt.NullType()), converted_type=None)
    for strings in ("views", "offsets", "dictionary"):
        with fastpq.ParquetFile(data, strings=strings) as file:
            truth = pq.read_table(pa.BufferReader(data))["d"].to_pylist()
            table = file.read()
            assert table["d"].to_pylist() == truth == pa.table(table)["d"].to_pylist()
            assert [row for batch in file.iter_batches(2) for row in batch["d"].to_pylist()] == truth
            again = io.BytesIO()
            fastpq.write_table(table, again)
            assert fastpq.read_table(again.getvalue())["d"].to_pylist() == truth
            if kind != "list":
                assert (file.count([(0, "is null")]), file.count([(0, "is not null")])) == (3, 0)
                assert file.read(filters=[(0, "is null")])["d"].to_pylist() == truth
                assert file.count([(0, "in", [1])] if kind != "text" else [(0, "in", ["a"])]) == 0
            if kind in ("int", "text"):
                assert file.null_count("d") == 3

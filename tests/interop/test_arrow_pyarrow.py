"""Tables and columns exchanged with pyarrow through the Arrow C interfaces, type by type."""

from __future__ import annotations

import datetime as dt
import gc
import itertools
import threading
import time
import weakref
from collections.abc import Callable
from decimal import Decimal as Dec
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastpq.arrays.table import Column, Table
from fastpq.arrow import export_array, export_schema, export_stream, import_column, import_table
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.schema.types import (
    ColumnType,
    Decimal,
    Enum,
    Interval,
    Time,
    Type,
    Unknown,
)
from tests.interop.arrow_cases import (
    CASES,
    FLBA,
    INT32,
    INT64,
    MS,
    NOON,
    WORDS,
    Array,
    Stream,
    array_of,
    fixed,
    little,
    pattern,
    stored,
)
from tests.leaks import leaking_lines
from tests.narrowing import flat


def pieces(array: pa.Array, *lengths: int) -> pa.ChunkedArray:
    out, start = [], 0
    for length in lengths:
        out.append(array.slice(start, length))
        start += length
    return pa.chunked_array([*out, array.slice(start)])


SHAPES: dict[str, Callable[[pa.Array], pa.ChunkedArray]] = {
    "whole": lambda array: pa.chunked_array([array]),
    "sliced": lambda array: pa.chunked_array([array.slice(3, 40)]),
    "sliced at a byte": lambda array: pa.chunked_array([array.slice(8, 40)]),
    "chunked": lambda array: pieces(array, 5, 0, 1, 17, 8),
    "empty": lambda array: pa.chunked_array([array.slice(0, 0)]),
    "no chunks": lambda array: pa.chunked_array([], array.type),
    "only nulls": lambda array: pa.chunked_array([pa.nulls(9, array.type)]),
}


@pytest.mark.parametrize("nulls", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize("name", CASES)
def test_pyarrow_in_and_out(name: str, nulls: bool) -> None:
    case = CASES[name]
    array = array_of(case, pattern(case.values, nulls))
    expected = pattern(case.stored, nulls)
    for shape, shaped in SHAPES.items():
        data = shaped(array)
        if shape == "only nulls" and isinstance(array.type, pa.BaseExtensionType):
            continue  # pa.nulls does not make them
        table = import_table(pa.table({"before": pa.nulls(len(data)), "c": data}))
        column = table["c"]
        assert column.type == case.type
        rows = {"whole": expected, "chunked": expected, "sliced": expected[3:43], "sliced at a byte": expected[8:48]}
        assert stored(column) == rows.get(shape, [None] * 9 if shape == "only nulls" else [])
        assert column.null_count == data.null_count
        back = pa.table(Stream(table))
        back.validate(full=True)
        assert back.column("c").type == (case.back or case.given)
        assert back.column("c").to_pylist() == data.to_pylist()
        assert back.column("before").type == pa.null()


@pytest.mark.parametrize("name", CASES)
def test_pyarrow_arrays_and_chunked_arrays(name: str) -> None:
    case = CASES[name]
    array = array_of(case, pattern(case.values, nulls=True))
    for source in (array, pieces(array, 4, 9)):
        column = flat(import_column(source))
        assert stored(column) == pattern(case.stored, nulls=True)
        back = pa.array(Array(column))
        back.validate(full=True)
        assert back.to_pylist() == array.to_pylist()
    assert pa.field(Array(column)).type == back.type


def test_required_fields_stay_required() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())])
    table = import_table(pa.table([[1, 2], [3, 4]], schema=schema))
    assert (table["a"].nullable, table["b"].nullable) == (False, True)
    assert pa.schema(pa.table(Stream(table)).schema) == schema
    assert pa.table(Stream(table)).schema == schema


def test_types_that_only_we_have() -> None:
    months = np.frombuffer(bytes(range(24)), "V12")
    for column, type_, values in (
        (Column(ColumnType(Type.INT96), np.array([MS * 10**6])), pa.timestamp("ns"), [NOON]),
        (Column(fixed(Interval(), FLBA, 12), months), pa.binary(12), [bytes(range(12)), bytes(range(12, 24))]),
        (Column(fixed(Enum(), Type.BYTE_ARRAY), flat(import_column(pa.array(["x"]))).values), pa.string(), ["x"]),
        (Column(fixed(Time("us", utc=True), Type.INT64), np.array([5])), pa.time64("us"), [dt.time(0, 0, 0, 5)]),
        (Column(fixed(Unknown(), Type.INT32), np.zeros(2, np.int32), np.zeros(1, np.uint8), 2), pa.null(), [None] * 2),
        (
            Column(fixed(Decimal(20, 2), Type.BYTE_ARRAY), np.frombuffer(b"".join(little(16, -5)), "V16")),
            pa.decimal128(20, 2),
            [Dec("-0.05")],
        ),
    ):
        array = pa.array(Array(column))
        array.validate(full=True)
        assert (array.type, array.to_pylist()) == (type_, values)


REQUESTS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("requested", REQUESTS, ids=str)
@pytest.mark.parametrize("given", ["string", "large_string", "string_view", "dictionary of strings"])
def test_requested_layouts_are_given(given: str, requested: pa.DataType) -> None:
    values = pattern(WORDS, nulls=True)
    column = flat(import_column(array_of(CASES[given], values)))
    _, capsule = export_array(column, requested.__arrow_c_schema__())
    assert capsule is not None
    array = pa.array(Array(column), requested)
    array.validate(full=True)
    expected = pa.dictionary(pa.int32(), pa.string()) if isinstance(requested, pa.DictionaryType) else requested
    schema = export_array(column, requested.__arrow_c_schema__())[0]
    assert pa.DataType._import_from_c_capsule(schema) in (expected, pa.dictionary(pa.int32(), pa.large_string()))
    assert array.to_pylist() == values
    table = Table({"a": column, "n": Column(INT32, np.arange(61, dtype=np.int32))})
    schema = pa.schema([pa.field("a", requested), pa.field("n", pa.int32())])
    assert pa.table(Stream(table), schema=schema).column("a").to_pylist() == values


def test_no_value_is_copied_where_layouts_agree() -> None:
    array = pa.array([1, 2, 3], pa.int64())
    column = flat(import_column(array))
    assert isinstance(column.values, np.ndarray)
    assert column.values.ctypes.data == array.buffers()[1].address
    back = pa.array(Array(column))
    assert back.buffers()[1].address == array.buffers()[1].address
    text = pa.array(["a string of more than twelve bytes"], pa.string_view())
    back = pa.array(Array(flat(import_column(text))))
    assert [buffer.address for buffer in back.buffers()[1:3]] == [buffer.address for buffer in text.buffers()[1:3]]


def test_a_consumer_may_outlive_us_and_a_producer_may_go_first() -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    source = pa.table({"a": pa.array(range(1000)), "s": pa.array([f"value number {i}" for i in range(1000)])})
    table = import_table(source)
    del source
    gc.collect()
    values = table.flat("a").values
    alive = weakref.ref(values)
    consumer = pa.table(Stream(table))
    del table, values
    gc.collect()
    assert alive() is not None
    assert consumer.column("a").to_pylist() == list(range(1000))
    assert consumer.column("s").to_pylist()[-1] == "value number 999"
    del consumer
    gc.collect()
    assert alive() is None
    assert pa.total_allocated_bytes() <= before


def test_nothing_leaks() -> None:
    names = ("bool", "string", "string_view", "uuid", "decimal32", "dictionary of strings", "dictionary of numbers")
    source = pa.table({name: array_of(CASES[name], pattern(CASES[name].values, nulls=True)) for name in names})
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([len(source)], pa.int32()), ["a text of more than twelve bytes"])
    codes = pa.array(np.arange(len(source)) % 2, pa.int8())
    union = pa.UnionArray.from_dense(codes, pa.array(np.zeros(len(source)), pa.int32()), [pa.array(["x"]), pa.array([[1]])])
    source = source.append_column("runs", runs).append_column("union", union)
    refused = pa.table({"a": [[1]], "b": pa.nulls(1, pa.decimal128(5, -2))})

    def exchange() -> None:
        table = import_table(source)
        pa.table(Stream(table))
        export_stream(table)
        export_schema(table)
        with pytest.raises(SchemaError):
            export_stream(table, pa.schema([]).__arrow_c_schema__())
        with pytest.raises(UnsupportedError):
            import_table(refused)

    exchange()
    allocated = arrow_bytes()
    assert leaking_lines(exchange) == []
    assert arrow_bytes(allocated) == allocated


def arrow_bytes(expected: int | None = None) -> int:
    """Bytes that Arrow's pool has given out; some time is given to threads of Arrow that release the last of these."""
    for _ in range(20):
        gc.collect()
        if expected is None or pa.total_allocated_bytes() == expected:
            break
        time.sleep(0.05)
    allocated: int = pa.total_allocated_bytes()
    return allocated


@pytest.mark.parametrize("every", [1, 2, 5])
def test_a_leak_would_be_found(every: int) -> None:
    """A leak of every call, of every second and of every fifth; of Arrow's pool a single buffer."""
    kept: list[bytes] = []
    calls = itertools.count()
    [line] = leaking_lines(lambda: kept.append(bytes(1)) if next(calls) % every == 0 else None)
    assert "test_arrow_pyarrow.py" in line
    before = arrow_bytes()
    buffer = pa.array([1])
    assert pa.total_allocated_bytes() > before
    del buffer
    assert arrow_bytes(before) == before


def test_what_fills_up_is_no_leak() -> None:
    pool: list[bytes] = []
    assert leaking_lines(lambda: pool.append(bytes(len(pool) + 1)) if len(pool) < 300 else None) == []


def test_release_from_another_thread() -> None:
    values = np.arange(1000)
    alive = weakref.ref(values)
    held = [pa.table(Stream(Table({"a": Column(INT64, values)})))]
    del values
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_a_failing_python_producer_is_told() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise OSError("the disk is gone")

    with pytest.raises(SchemaError, match="the disk is gone"):
        import_table(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches()))


@pytest.mark.parametrize("name", ["a\0b", "\0", "\ud800"])
def test_names_that_arrow_cannot_carry(name: str) -> None:
    """A SchemaError before pyarrow has a stream: out of the stream the error would be pyarrow's OSError."""
    column = Column(INT64, np.arange(3))
    table = Table({"x": column, name: column})
    for export in (pa.table, Table.__arrow_c_schema__, Table.__arrow_c_stream__):
        with pytest.raises(SchemaError, match="the name"):
            export(table)

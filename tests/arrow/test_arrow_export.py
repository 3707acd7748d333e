"""Exported Arrow structures, read through raw pointers."""

from __future__ import annotations

import ctypes
import decimal
import gc
import io
import struct
import threading
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.table import BinaryOffsets, Column, Table
from fastpq.arrow import export_array, export_schema, export_stream, exporting
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, String, Type, Unknown
from tests.arrow.arrow_producer import (
    RELEASE,
    CArray,
    CSchema,
    CStream,
    capsule_pointer,
)
from tests.narrowing import present

INT32 = ColumnType(Type.INT32)
TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())


def longs(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


def raw_array(capsule: Any) -> CArray:
    return CArray.from_address(capsule_pointer(capsule, b"arrow_array"))


def raw_schema(capsule: Any) -> CSchema:
    return CSchema.from_address(capsule_pointer(capsule, b"arrow_schema"))


def release(structure: Any) -> None:
    RELEASE(structure.release)(ctypes.addressof(structure))
    assert structure.release is None


def test_exported_arrays_keep_the_values_until_released() -> None:
    values = np.arange(5, dtype=np.int32)
    alive = weakref.ref(values)
    schema, capsule = export_array(Column(INT32, values, nullable=False))
    address = values.ctypes.data
    del values
    gc.collect()
    array = raw_array(capsule)
    pointers = (ctypes.c_void_p * array.n_buffers).from_address(array.buffers)
    assert (array.length, array.null_count, array.offset, list(pointers)) == (5, 0, 0, [None, address])
    assert (raw_schema(schema).format, raw_schema(schema).flags) == (b"i", 0)
    assert alive() is not None
    release(array)
    gc.collect()
    assert alive() is None
    del capsule, schema  # destructors of released capsules do nothing more


def test_unread_capsules_release_what_they_hold() -> None:
    values = np.arange(5, dtype=np.int32)
    alive = weakref.ref(values)
    table = Table({"a": Column(INT32, values)})
    capsules = [export_stream(table), *export_array(table["a"]), export_schema(table)]
    del values, table
    gc.collect()
    assert alive() is not None
    capsules.clear()
    gc.collect()
    assert alive() is None


def test_moved_children_outlive_their_struct() -> None:
    arrays = [np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32)]
    alive = [weakref.ref(array) for array in arrays]
    stream_capsule = export_stream(Table({name: Column(INT32, array) for name, array in zip("ab", arrays, strict=True)}))
    arrays.clear()
    stream = CStream.from_address(capsule_pointer(stream_capsule, b"arrow_array_stream"))
    get_next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(stream.get_next)
    batch = CArray()
    assert get_next(ctypes.addressof(stream), ctypes.addressof(batch)) == 0
    children = (ctypes.c_void_p * 2).from_address(batch.children)
    original = CArray.from_address(present(children[0]))
    moved = CArray.from_buffer_copy(original)
    original.release = None
    release(batch)
    end = CArray()
    assert get_next(ctypes.addressof(stream), ctypes.addressof(end)) == 0
    assert end.release is None
    del stream_capsule
    gc.collect()
    assert alive[0]() is not None
    assert alive[1]() is None
    release(moved)
    gc.collect()
    assert alive[0]() is None


def test_strided_and_unaligned_columns_are_copied() -> None:
    strided = np.arange(10, dtype=np.int64)[::2]
    shifted = np.frombuffer(b"x" + longs(1, 2, 3), np.uint8)[1:].view(np.int64)
    for values in (strided, shifted):
        _, capsule = export_array(Column(ColumnType(Type.INT64), values))
        array = raw_array(capsule)
        address = present((ctypes.c_void_p * 2).from_address(array.buffers)[1])
        assert address % 8 == 0
        assert ctypes.string_at(address, values.nbytes) == values.tobytes()


def test_columns_that_are_not_what_they_say_are_refused() -> None:
    with pytest.raises(SchemaError, match="validity"):
        export_array(Column(INT32, np.zeros(9, np.int32), np.zeros(1, np.uint8), 1))
    with pytest.raises(SchemaError, match="validity"):
        export_array(Column(INT32, np.zeros(9, np.int32), None, 1))
    with pytest.raises(SchemaError, match="int64"):
        export_array(Column(INT32, np.zeros(9, np.int64)))
    with pytest.raises(SchemaError, match="offsets end at 5, but there are 3 bytes"):
        export_array(Column(TEXT, BinaryOffsets(np.array([0, 5], np.int32), np.zeros(3, np.uint8))))
    for name in ("a\0b", "\ud800"):
        with pytest.raises(SchemaError, match="the name"):
            export_stream_schema({name: Column(INT32, np.zeros(1, np.int32))})


def export_stream_schema(columns: dict[str, Column]) -> Any:
    return export_schema(Table(columns))


def test_requested_schema_must_fit() -> None:
    table = Table({"a": Column(INT32, np.zeros(1, np.int32))})
    for request in (export_schema(Table({})), export_schema(table["a"])):
        with pytest.raises(SchemaError, match="requested Arrow schema"):
            export_stream(table, request)
    with pytest.raises(SchemaError, match="capsule named"):
        export_stream(table, "not a capsule")


def test_null_type_has_no_buffers() -> None:
    column = Column(ColumnType(Type.INT32, logical=Unknown()), np.zeros(3, np.int32), np.zeros(1, np.uint8), 3)
    schema, capsule = export_array(column)
    array = raw_array(capsule)
    assert (raw_schema(schema).format, array.length, array.null_count, array.n_buffers) == (b"n", 3, 3, 0)


@pytest.mark.parametrize("cores", [1, 3])
def test_columns_are_exported_by_several_threads(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(exporting, "LEAST_PARALLEL", 0)
    monkeypatch.setattr(exporting, "resolve_threads", lambda _: cores)
    names: set[str] = set()
    leaf_node = exporting._leaf_node

    def watched(*arguments: Any) -> Any:
        names.add(threading.current_thread().name)
        return leaf_node(*arguments)

    monkeypatch.setattr(exporting, "_leaf_node", watched)
    amounts = [decimal.Decimal(number) / 100 for number in range(-500, 500)]
    texts = [f"a text longer than a view holds, {number}" for number in range(1000)]
    made = pa.table({"amount": pa.array(amounts, pa.decimal128(9, 2)), "text": texts, "wide": pa.array(texts, pa.large_string())})
    stored = io.BytesIO()
    pq.write_table(made, stored)
    assert pa.table(fastpq.read_table(stored)).equals(made)
    assert {name.startswith("fastpq") for name in names} == {cores > 1}
    broken = Column(INT32, np.zeros(9, np.int32))._with(null_count=1)      # unchecked
    with pytest.raises(SchemaError, match="9 bits for 1 nulls") as caught:
        export_stream(Table({"sound": Column(INT32, np.zeros(9, np.int32)), "broken": broken}))
    assert caught.value.context["column"] == "broken"


def test_json_that_was_a_dictionary_when_it_was_written() -> None:
    """pyarrow refuses a dictionary as arrow.json. Values in structs become dictionaries only when they are exported."""
    values = pa.array(['{"a": 1}', '{"a": 1}'], pa.json_())
    made = pa.table({"flat": values, "in_struct": pa.StructArray.from_arrays([values], ["value"])})
    for table in (made, made.slice(0, 0)):
        first, second = io.BytesIO(), io.BytesIO()
        fastpq.write_table(table, first)
        fastpq.write_table(fastpq.read_table(first, strings="dictionary"), second)
        assert pa.table(fastpq.read_table(second)).to_pylist() == table.to_pylist()

"""Read rows that the JVM has gathered into columns (Gatherer.java) as Arrow record batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastpq.spark.core import FormatError
from fastpq.spark.jvm.batch_layout import BITS, FIXED, LIST, MAP, NO_PLACE, NULLS, PARTS, STRUCT, TEXT
from fastpq.spark.tables.spark_types import small_decimals

_OFFSET = 4         # bytes of one offset


def gathered_schema(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema for gathered batches.

    It is Spark's Arrow schema, except that each decimal type is as narrow as its digits allow.
    """
    return pa.schema([part.with_type(small_decimals(part.type)) for part in schema])


def batch_of(numbers: Sequence[int], memory: NDArray[np.uint8], schema: pa.Schema) -> pa.RecordBatch:
    """Copy a batch out of shared memory, because the JVM soon fills that memory again.

    Args:
        numbers: row count, size of all columns in bytes, and each column's layout (fastpq.spark.jvm.batch_layout).
        memory: shared memory that holds the columns.
        schema: schema that gathered_schema returned.
    """
    rows, size, *layouts = numbers
    copy = pa.py_buffer(memory[:size].copy())
    reader = _Reader(layouts, copy)
    arrays = [reader.array(part.type) for part in schema]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Reader:
    """Reads columns one after the other from their descriptions (fastpq.spark.jvm.batch_layout)."""

    def __init__(self, numbers: Sequence[int], memory: pa.Buffer) -> None:
        self._numbers = iter(numbers)
        self._memory = memory

    def array(self, type_: pa.DataType) -> pa.Array:
        layout, rows, nulls, validity, *parts = (next(self._numbers) for _ in range(4 + PARTS))
        if layout == NULLS:
            return pa.nulls(rows, type_)
        bitmap = None if validity == NO_PLACE else self._at(validity, -(-rows // 8))
        buffers, children = [bitmap], []
        if layout == FIXED:
            buffers.append(self._at(parts[0], rows * parts[1]))
        elif layout == BITS:
            buffers.append(self._at(parts[0], -(-rows // 8)))
        elif layout in (TEXT, LIST, MAP):
            buffers.append(offsets := self._at(parts[0], _OFFSET * (rows + 1)))
            if layout == TEXT:
                buffers.append(self._at(parts[1], _last(offsets)))
            else:
                children.append(self.array(type_.value_type) if layout == LIST else self._entries(type_))
        elif layout == STRUCT:
            children += [self.array(type_.field(number).type) for number in range(parts[0])]
        else:
            raise FormatError(f"a column of layout {layout}: the jar and fastpq are of different versions")
        return pa.Array.from_buffers(type_, rows, buffers, nulls, children=children)

    def _entries(self, type_: pa.MapType) -> pa.Array:
        keys, values = self.array(type_.key_type), self.array(type_.item_type)
        return pa.StructArray.from_arrays([keys, values], fields=[type_.key_field, type_.item_field])

    def _at(self, place: int, size: int) -> pa.Buffer:
        return self._memory.slice(place, size)


def _last(offsets: pa.Buffer) -> int:
    return int(np.frombuffer(offsets, np.int32)[-1])

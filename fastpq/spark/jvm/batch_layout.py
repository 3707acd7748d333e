"""BatchLayout describes columns, so that the JVM can read them in shared memory (Vectors.java).

The buffers hold the values. The numbers say how each column is laid out, and where its buffers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import types as st

from fastpq.spark.core import AnyColumn, BinaryViews, Column, ListColumn, MapType, StructColumn, UnsupportedError, pt

NULLS, FIXED, BITS, TEXT, VIEWS, LIST, MAP, STRUCT, MISSING = range(9)
NO_PLACE = -1
PARTS = 4       # numbers per column that depend on the layout, after the four that every column has
Bytes = NDArray[np.uint8]


class BatchLayout:
    """The layout for one batch of columns.

    Eight numbers describe a column: the layout, the row count, the null count, the validity bitmap's place or NO_PLACE, and four
    that depend on the layout. After these eight come the places of view buffers, then the numbers for the nested columns. A place
    is a byte offset in the shared memory. Until ``placed`` is called, ``numbers`` holds each buffer's index instead of its place.

    Attributes:
        numbers: numbers that describe all columns.
        buffers: bytes of all columns.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.buffers: list[Bytes] = []
        self._pointers: list[int] = []      # indices in ``numbers`` where places stand
        self._buffer_indices: dict[int, int] = {}    # buffer index by address: columns of views may share a page

    def placed(self, places: list[int]) -> list[int]:
        """Replace each buffer index with the buffer's place, and return the numbers."""
        for index in self._pointers:
            self.numbers[index] = places[self.numbers[index]]
        self._pointers = []
        return self.numbers

    # ---- fastpq columns

    def add_column(self, column: AnyColumn, type_: st.DataType) -> bool:
        """Describe a decoded column if the JVM can read its values as they are, without a conversion.

        Args:
            column: the decoded values.
            type_: type that Spark wants.

        Returns:
            False if the values must be converted first. Nothing is added then.
        """
        if not _agrees(column, type_):
            return False
        self._add(column)
        return True

    def _add(self, column: AnyColumn) -> None:
        validity = column.validity if column.null_count else None
        match column:
            case Column(values=BinaryViews(views, buffers)):
                self._column(VIEWS, column, validity, views, len(buffers))
                for buffer in buffers:
                    self._buffer(buffer)
            case Column():
                assert isinstance(column.values, np.ndarray)
                self._column(FIXED, column, validity, column.values, column.values.dtype.itemsize)
            case ListColumn():
                self._column(MAP if isinstance(column.type, MapType) else LIST, column, validity, column.offsets)
                for child in (column.elements,) if column.pairs is None else column.pairs.children:
                    self._add(child)
            case StructColumn():
                self._column(STRUCT, column, validity, len(column.children))
                for child in column.fields():
                    self._add(child)

    # ---- Arrow columns

    def add(self, array: pa.Array) -> None:
        """Describe an Arrow array.

        Raises:
            UnsupportedError: Spark has no such type.
        """
        if array.offset:
            array = pa.concat_arrays([array])
        kinds, type_, buffers = pa.types, array.type, array.buffers()
        validity = _bytes(buffers[0]) if array.null_count and buffers else None
        if kinds.is_null(type_) or (array.null_count == len(array) and len(array)):
            self._column(NULLS, array, None)
        elif kinds.is_boolean(type_):
            self._column(BITS, array, validity, _bytes(buffers[1]))
        elif kinds.is_string(type_) or kinds.is_binary(type_):
            self._column(TEXT, array, validity, _bytes(buffers[1]), _bytes(buffers[2]))
        elif kinds.is_map(type_):
            self._column(MAP, array, validity, _bytes(buffers[1]))
            self.add(array.keys)
            self.add(array.items)
        elif kinds.is_list(type_):
            self._column(LIST, array, validity, _bytes(buffers[1]))
            self.add(array.values)
        elif kinds.is_struct(type_):
            self._column(STRUCT, array, validity, type_.num_fields)
            for number in range(type_.num_fields):
                self.add(array.field(number))
        elif kinds.is_primitive(type_) or kinds.is_decimal128(type_):
            self._column(FIXED, array, validity, _bytes(buffers[1]), type_.bit_width // 8)
        else:
            raise UnsupportedError(f"{type_} on the way into the JVM")

    def add_missing(self, rows: int) -> None:
        """Describe a column that the file does not have. The JVM fills in its values.

        Args:
            rows: row count.
        """
        self.numbers += [MISSING, rows, rows, NO_PLACE, *[0] * PARTS]

    # ---- numbers

    def _column(self, layout: int, values: Any, validity: NDArray[Any] | None, *parts: NDArray[Any] | int) -> None:
        self.numbers += [layout, len(values), values.null_count]
        if validity is None:
            self.numbers.append(NO_PLACE)
        else:
            self._buffer(validity)
        for part in parts:
            if isinstance(part, int):
                self.numbers.append(part)
            else:
                self._buffer(part)
        self.numbers += [0] * (PARTS - len(parts))

    def _buffer(self, array: NDArray[Any]) -> None:
        data = np.ascontiguousarray(array).view(np.uint8)
        address = data.__array_interface__["data"][0] if len(data) else 0
        index = self._buffer_indices.get(address)
        if index is None or len(self.buffers[index]) < len(data):
            index = self._buffer_indices[address] = len(self.buffers)
            self.buffers.append(data)
        self._pointers.append(len(self.numbers))
        self.numbers.append(index)


def _bytes(buffer: pa.Buffer | None) -> Bytes:
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _agrees(column: AnyColumn, type_: st.DataType) -> bool:
    """Return whether a column has the Spark type's layout, so that the JVM can read its values as they are."""
    match column, type_:
        case ListColumn(), st.ArrayType() if column.pairs is None:
            return column.offsets.dtype == np.int32 and _agrees(column.elements, type_.elementType)
        case ListColumn(), st.MapType() if column.pairs is not None:
            key, value = column.pairs.children
            return column.offsets.dtype == np.int32 and _agrees(key, type_.keyType) and _agrees(value, type_.valueType)
        case StructColumn(), st.StructType():
            return column.type.annotation is None and _fields_agree(column, type_.fields)
        case Column(), _:
            return is_stored_as(column, type_)
    return False


def _fields_agree(column: StructColumn, fields: Sequence[st.StructField]) -> bool:
    if [part.name for part in column.type.fields] != [part.name for part in fields]:
        return False
    return all(
        part.nullable and _agrees(child, part.dataType) for child, part in zip(column.children, fields, strict=True)
    )


def is_stored_as(column: Column, type_: st.DataType) -> bool:
    """Return whether a column stores its values exactly as the Spark type does, with the same units and scale."""
    column_type = column.type
    if isinstance(column.values, BinaryViews):
        if isinstance(column_type.logical, pt.String | pt.Enum | pt.Json):
            return isinstance(type_, st.StringType)
        return column_type.logical is None and isinstance(type_, st.BinaryType)
    match column_type.logical, type_:
        case None, st.BooleanType():
            return column_type.physical == pt.Type.BOOLEAN
        case (None | pt.Integer(32, True)), st.IntegerType():
            return column_type.physical == pt.Type.INT32
        case (None | pt.Integer(64, True)), st.LongType():
            return column_type.physical == pt.Type.INT64
        case None, st.FloatType():
            return column_type.physical == pt.Type.FLOAT
        case None, st.DoubleType():
            return column_type.physical == pt.Type.DOUBLE
        case (pt.Integer(8, True), st.ByteType()) | (pt.Integer(16, True), st.ShortType()) | (pt.Date(), st.DateType()):
            return True
        case pt.Decimal(precision, scale), st.DecimalType():
            return scale == type_.scale and precision <= type_.precision
        case pt.Timestamp(unit, utc), st.TimestampType() | st.TimestampNTZType():
            return unit == "us" and utc == isinstance(type_, st.TimestampType)
    return False

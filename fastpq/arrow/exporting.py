"""Columns and tables as Arrow schemas, arrays and streams for a consumer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrow.capsules_in import take_schema
from fastpq.arrow.capsules_out import array_capsule, schema_capsule, stream_capsule
from fastpq.arrow.convert import widen_decimals
from fastpq.arrow.formats import EXTENSION_METADATA, EXTENSION_NAME, PARQUET_VARIANT, extension_metadata
from fastpq.arrow.nodes import NULLABLE, ArrayNode, SchemaNode
from fastpq.errors import ParquetError, SchemaError
from fastpq.nested.types import MapType, element_of
from fastpq.table import (
    AnyColumn,
    BinaryOffsets,
    BinaryViews,
    Column,
    DictionaryValues,
    ListColumn,
    StructColumn,
    Table,
)
from fastpq.types import Decimal, Type, Unknown

_INT32_MAX = 2**31 - 1
_VARIANT = {EXTENSION_NAME: PARQUET_VARIANT, EXTENSION_METADATA: b""}


def export_schema(data: Table | AnyColumn) -> Any:
    """The schema of a table (a struct) or of a column.

    Returns:
        A PyCapsule "arrow_schema".
    """
    if isinstance(data, Table):
        return schema_capsule(_table_schema(_columns(data, None)))
    return schema_capsule(_schema_node("", _chosen_layout(data, None)))


def export_array(column: AnyColumn, requested_schema: Any = None) -> tuple[Any, Any]:
    """A column as an Arrow array.

    Args:
        column: values that stay shared with the consumer where the layouts agree: all but booleans, which become bits,
            and decimals of 4 or 8 bytes, which become decimal128.
        requested_schema: a PyCapsule "arrow_schema" or None; what it says about offsets, views and dictionaries is
            heeded, anything else is left to the consumer to cast, as the PyCapsule interface has it.

    Returns:
        PyCapsules "arrow_schema" and "arrow_array".

    Raises:
        SchemaError: the column is not what its type says, or the capsule was consumed already.
    """
    request = None if requested_schema is None else take_schema(requested_schema)
    chosen = _chosen_layout(column, request)
    return schema_capsule(_schema_node("", chosen)), array_capsule(_array_node(chosen))


def export_stream(table: Table, requested_schema: Any = None) -> Any:
    """A table as an Arrow stream of one struct array; arguments and errors as in export_array.

    Returns:
        A PyCapsule "arrow_array_stream".

    Raises:
        SchemaError: also, ``requested_schema`` is no struct of as many fields as the table has columns.
    """
    request = None if requested_schema is None else take_schema(requested_schema)
    columns = _columns(table, request)
    batch = ArrayNode(table.num_rows, 0, (None,), tuple(_named(_array_node, name, column) for name, column in columns))
    for (name, _), child in zip(columns, batch.children, strict=True):
        if child.length != batch.length:
            raise SchemaError(f"a column of {child.length} values in a table of {batch.length} rows", column=name)
    return stream_capsule(_table_schema(columns), [batch])


def _columns(table: Table, request: SchemaNode | None) -> list[tuple[str, AnyColumn]]:
    """Names and columns in the layouts to be exported."""
    fields: list[SchemaNode | None] = [None] * len(table.names)
    if request is not None:
        if request.format != "+s" or len(request.children) != len(fields):
            raise SchemaError(
                f"the requested Arrow schema (format {request.format!r}, {len(request.children)} fields) "
                f"is not that of a table of {len(fields)} columns"
            )
        fields = list(request.children)
    return [(name, _chosen_layout(table[name], field)) for name, field in zip(table.names, fields, strict=True)]


def _table_schema(columns: list[tuple[str, AnyColumn]]) -> SchemaNode:
    return SchemaNode("+s", flags=0, children=tuple(_schema_node(name, column) for name, column in columns))


def _named(export: Any, name: str, column: AnyColumn) -> Any:
    try:
        return export(column)
    except ParquetError as error:
        raise error.at(column=name) from None


# ---- layouts


def _chosen_layout(column: AnyColumn, request: SchemaNode | None) -> AnyColumn:
    """``column``, its leaves in the binary layouts that are asked for, or in their own."""
    if isinstance(column, StructColumn):
        wanted = request.children if request is not None and len(request.children) == len(column.children) else ()
        children = [
            _chosen_layout(child, wanted[number] if wanted else None) for number, child in enumerate(column.children)
        ]
        return replace(column, children=tuple(children))
    if isinstance(column, ListColumn):
        inner = request.children[0] if request is not None and len(request.children) == 1 else None
        return replace(column, elements=_chosen_layout(column.elements, inner))
    return _chosen_leaf(column, request)


def _chosen_leaf(column: Column, request: SchemaNode | None) -> Column:
    if column.type.arrow_format in ("vu", "vz") and request is not None:
        if request.dictionary is not None:
            column = column if isinstance(column.values, DictionaryValues) else column.as_dictionary()
        elif request.format in ("vu", "vz"):
            column = column if isinstance(column.values, BinaryViews) else column.as_views()
        elif request.format in ("u", "z", "U", "Z"):
            column = _with_offsets(column, wide=request.format in "UZ")
    if isinstance(column.values, DictionaryValues):
        # consumers take dictionaries of offsets everywhere, those of views hardly anywhere, and a dictionary is small
        dictionary = column.values.dictionary
        if not isinstance(dictionary.values, BinaryOffsets):
            values = DictionaryValues(column.values.codes, dictionary.as_offsets())
            return Column(column.type, values, column.validity, column.null_count, column.nullable)
    return column


def _with_offsets(column: Column, *, wide: bool) -> Column:
    """``column`` with int64 offsets, or with int32 ones where its data allows."""
    if not isinstance(column.values, BinaryOffsets):
        column = column.as_offsets(wide=True) if wide else column.as_offsets()
    values = column.values
    assert isinstance(values, BinaryOffsets)
    if not wide and int(values.offsets[-1]) > _INT32_MAX:
        return column
    offsets = values.offsets.astype(np.int64 if wide else np.int32, copy=False)
    return Column(column.type, BinaryOffsets(offsets, values.data), column.validity, column.null_count, column.nullable)


# ---- schema


def _schema_node(name: str, column: AnyColumn) -> SchemaNode:
    flags = NULLABLE if column.nullable or column.null_count else 0
    if isinstance(column, StructColumn):
        children = zip(column.type.fields, column.children, strict=True)
        nodes = tuple(_schema_node(field.name, child) for field, child in children)
        return SchemaNode("+s", name, flags, _VARIANT if column.type.annotation == "VARIANT" else None, nodes)
    if isinstance(column, ListColumn):
        element = _schema_node(element_of(column.type).name, column.elements)
        if isinstance(column.type, MapType):
            return SchemaNode("+m", name, flags, children=(_with_required_key(element, column.elements),))
        return SchemaNode("+L" if column.offsets.dtype == np.int64 else "+l", name, flags, children=(element,))
    text = _format(column)
    if isinstance(column.values, DictionaryValues):
        return SchemaNode("i", name, flags, dictionary=SchemaNode(_format(column.values.dictionary)))
    return SchemaNode(text, name, flags, extension_metadata(column.type))


def _with_required_key(entry: SchemaNode, entries: AnyColumn) -> SchemaNode:
    """Arrow's maps have no null keys; that some files declare them optional does not matter as long as none is null."""
    key, value = entry.children
    if isinstance(entries, StructColumn) and entries.children[0].null_count:
        raise SchemaError("a map with null keys, which Arrow does not have")
    return replace(entry, flags=0, children=(replace(key, flags=key.flags & ~NULLABLE), value))


def _format(column: Column) -> str:
    text = column.type.arrow_format
    if isinstance(column.values, BinaryOffsets) and text in ("vu", "vz"):
        kind = text[-1]
        return kind.upper() if column.values.offsets.dtype == np.int64 else kind
    return text


# ---- arrays


def _array_node(column: AnyColumn) -> ArrayNode:
    length = len(column)
    if isinstance(column, StructColumn):
        children = tuple(_array_node(child) for child in column.children)
        return ArrayNode(length, column.null_count, (_validity(column, length),), children)
    if isinstance(column, ListColumn):
        return _list_node(column, length)
    return _leaf_node(column, length)


def _list_node(column: ListColumn, length: int) -> ArrayNode:
    dtype = column.offsets.dtype
    if isinstance(column.type, MapType) and dtype == np.int64:      # Arrow has no large maps
        if int(column.offsets[-1]) > _INT32_MAX:
            raise SchemaError(f"a map column of {column.offsets[-1]} pairs, more than Arrow's 32-bit offsets reach")
        dtype = np.dtype(np.int32)
    offsets = _buffer(column.offsets.astype(dtype, copy=False), dtype)
    return ArrayNode(length, column.null_count, (_validity(column, length), offsets), (_array_node(column.elements),))


def _leaf_node(column: Column, length: int) -> ArrayNode:
    values = column.values
    if isinstance(column.type.logical, Unknown):
        return ArrayNode(length, length)
    validity = _validity(column, length)
    if isinstance(values, DictionaryValues):
        codes = _buffer(values.codes, np.dtype(np.int32))
        return ArrayNode(length, column.null_count, (validity, codes), dictionary=_array_node(values.dictionary))
    if isinstance(values, BinaryOffsets):
        offsets = _buffer(values.offsets, np.dtype(np.int64 if values.offsets.dtype == np.int64 else np.int32))
        if int(offsets[-1]) > values.data.nbytes:
            raise SchemaError(f"offsets end at {offsets[-1]} in {values.data.nbytes} bytes of data")
        return ArrayNode(length, column.null_count, (validity, offsets, _buffer(values.data, np.dtype(np.uint8))))
    if isinstance(values, BinaryViews):
        return ArrayNode(length, column.null_count, (validity, *_view_buffers(values)))
    return ArrayNode(length, column.null_count, (validity, _fixed_values(column, values)))


def _validity(column: AnyColumn, length: int) -> NDArray[np.uint8] | None:
    if column.null_count == 0:
        return None
    if column.validity is None or column.validity.nbytes < (length + 7) // 8:
        raise SchemaError(f"{column.null_count} nulls among {length} values, and no validity bitmap of that length")
    return _buffer(column.validity, np.dtype(np.uint8))


def _view_buffers(values: BinaryViews) -> list[NDArray[Any]]:
    buffers = [_buffer(buffer, np.dtype(np.uint8)) for buffer in values.buffers]
    sizes = np.array([buffer.nbytes for buffer in buffers], dtype=np.int64)
    return [_buffer(values.views, np.dtype("V16"), alignment=8), *buffers, sizes]


def _fixed_values(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    dtype = column.type.dtype
    assert dtype is not None
    if isinstance(column.type.logical, Decimal):
        if column.type.physical in (Type.INT32, Type.INT64):
            return widen_decimals(_buffer(values, dtype))
        return _buffer(values, dtype, alignment=16)
    if dtype == np.bool_:
        return np.packbits(_buffer(values, dtype), bitorder="little")
    return _buffer(values, dtype)


def _buffer(array: NDArray[Any], dtype: np.dtype[Any], alignment: int | None = None) -> NDArray[Any]:
    """``array``, or a copy where its memory is not contiguous or not aligned as consumers expect it."""
    if array.dtype != dtype:
        raise SchemaError(f"a column holds {array.dtype} where its type asks for {dtype}")
    array = np.ascontiguousarray(array)
    alignment = alignment or dtype.alignment
    return array.copy() if alignment > 1 and array.ctypes.data % alignment else array

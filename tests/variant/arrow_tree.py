"""pyarrow's nested arrays as the shredded columns of fastpq.variant and back: the part of a nested reader and writer."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from fastpq import format as fmt
from fastpq.arrays.table import Column
from fastpq.arrow import import_column
from fastpq.schema.tree import ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import Decimal, Type
from fastpq.schema.variant_group import check_variant
from fastpq.variant import Shredded, ShreddedArray, ShreddedObject, VariantColumn
from fastpq.variant.shredding_schema import ShreddingSchema
from tests.narrowing import flat


def bitmap(array: pa.Array) -> np.ndarray | None:
    if not array.null_count:
        return None
    return np.packbits(np.asarray(array.is_valid()), bitorder="little")


def leaf(array: pa.Array, column: ColumnDescriptor) -> Column:
    """A column of the type that the file has, which Arrow may not tell."""
    found = flat(import_column(array))
    logical = column.logical_type
    if isinstance(logical, Decimal) and column.physical_type in (Type.INT32, Type.INT64):
        assert isinstance(found.values, np.ndarray)
        values = found.values.view("<i8").reshape(-1, 2)[:, 0].astype(column.type.dtype)
        return Column(column.type, values, found.validity, found.null_count)
    return Column(column.type, found.values, found.validity, found.null_count)


def child(group: SchemaNode, name: str) -> Any:
    assert isinstance(group, GroupNode)
    nodes = group.named(name)
    return nodes[0] if nodes else None


def pair(array: pa.StructArray, group: SchemaNode) -> Shredded:
    value_node, typed_node = child(group, "value"), child(group, "typed_value")
    value = None if value_node is None else leaf(array.field("value"), value_node)
    typed: Any = None
    if typed_node is not None:
        inner = array.field("typed_value")
        if isinstance(typed_node, ColumnDescriptor):
            typed = leaf(inner, typed_node)
        elif typed_node.is_list:
            elements = typed_node.children[0].children[0]
            typed = ShreddedArray(np.asarray(inner.offsets), pair(inner.values, elements), bitmap(inner))
        else:
            parts = {node.element.name: pair(inner.field(node.element.name), node) for node in typed_node.children}
            typed = ShreddedObject(len(inner), parts, bitmap(inner))
    return Shredded(len(array), value, typed, bitmap(array))


def struct_of(array: pa.Array) -> pa.StructArray:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def column_of(array: pa.Array, group: GroupNode) -> VariantColumn:
    array = struct_of(array)
    check_variant(group)
    metadata = leaf(array.field("metadata"), child(group, "metadata"))
    shredded = pair(array, group)
    return VariantColumn.from_shredded(metadata, shredded, bitmap(array))


def node_at(path: Path, *names: str) -> SchemaNode:
    with fastpq.ParquetFile(path) as file:
        node: SchemaNode = file.schema.root
        for name in names:
            assert isinstance(node, GroupNode)
            [node] = node.named(name)
    return node


def read_variants(path: Path, name: str) -> VariantColumn:
    """A top-level variant column of a file of one row group."""
    group = node_at(path, name)
    assert isinstance(group, GroupNode)
    [chunk] = pq.read_table(path).column(name).chunks
    return column_of(chunk, group)


def to_arrow(column: Column) -> pa.Array:
    array = pa.array(column)
    kind = array.type
    if pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    return array.cast(pa.string()) if pa.types.is_string_view(kind) else array


def pair_to_arrow(shredded: Shredded) -> dict[str, pa.Array]:
    parts = {}
    if shredded.value is not None:
        parts["value"] = to_arrow(shredded.value)
    match shredded.typed_value:
        case None:
            pass
        case Column() as column:
            parts["typed_value"] = to_arrow(column)
        case ShreddedObject(length, fields, validity):
            arrays = [struct(pair_to_arrow(inner)) for inner in fields.values()]
            parts["typed_value"] = struct(dict(zip(fields, arrays, strict=True)), mask(validity, length))
        case ShreddedArray(offsets, elements, validity) as lists:
            absent = mask(validity, len(lists))
            parts["typed_value"] = pa.ListArray.from_arrays(
                pa.array(offsets.astype(np.int32)), struct(pair_to_arrow(elements)), mask=absent
            )
    return parts


def mask(validity: np.ndarray | None, length: int) -> pa.Array | None:
    """True where null."""
    if validity is None:
        return None
    return pa.array(~np.unpackbits(validity, count=length, bitorder="little").astype(bool))


def struct(parts: dict[str, pa.Array], absent: pa.Array | None = None) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=absent)


def write_variants(path: Path, column: VariantColumn, schema: ShreddingSchema = None) -> None:
    """Write a column "v" with pyarrow, and put the annotations into the footer that pyarrow does not know."""
    shredded = column.shred(schema)
    parts = {"metadata": to_arrow(column.metadata).cast(pa.binary()), **pair_to_arrow(shredded)}
    absent = None
    if schema is None:
        assert shredded.value is not None
        absent = mask(shredded.value.validity, len(column)) if shredded.value.null_count else None
    elif column.value.null_count:
        absent = mask(column.value.validity, len(column))
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": struct(parts, absent)}), sink, store_schema=False)
    path.write_bytes(annotated(sink.getvalue()))


def annotated(data: bytes) -> bytes:
    """The same file with a VARIANT annotation on its first column."""
    size = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - size], data[-8 - size : -8]
    metadata, _ = fmt.decode(fmt.FileMetaData, footer)
    metadata.schema[1].logicalType = fmt.LogicalType(VARIANT=fmt.VariantType(specification_version=1))
    serialized = fmt.encode(metadata)
    return body + serialized + len(serialized).to_bytes(4, "little") + b"PAR1"

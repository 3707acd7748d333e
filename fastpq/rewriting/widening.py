"""Widening: leaves that get a type which holds all their values, int64 or float64. Only their pages are decoded."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastpq import format as fmt
from fastpq.column.shred import LeafToWrite, leaves_to_write
from fastpq.convert.fitting import fit
from fastpq.convert.schemas import resolved
from fastpq.errors import SchemaError
from fastpq.metadata.file_metadata import RowGroupMetaData
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.one_file import EncodedLeaf
from fastpq.rewriting.similar_file import specs_like
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import shape_field, shape_of
from fastpq.schema.types import ColumnType, Float16, Integer, Type

INT64, DOUBLE = ColumnType(Type.INT64), ColumnType(Type.DOUBLE)


def with_wider_types(schema: ParquetSchema, types: Mapping[str, Any]) -> ParquetSchema:
    """Return a schema in which some leaves have wider types.

    Args:
        schema: the schema.
        types: new types by dotted path. Integers with at most 32 bits become int64, and narrower floats float64. A leaf that has
            the type already stays.

    Raises:
        SchemaError: there is no such leaf, or a type does not hold all its values.
    """
    elements = [copy.copy(element) for element in schema.elements]
    missing = dict(types)
    for element, node in zip(elements, schema.nodes(), strict=True):
        if node is schema.root or node.name not in missing:
            continue
        new_type, _ = resolved(missing.pop(node.name))
        if isinstance(node, ColumnDescriptor) and node.type == new_type:
            continue
        if not isinstance(node, ColumnDescriptor) or new_type not in (INT64, DOUBLE) or not _holds(new_type, node.type):
            old = node.type if isinstance(node, ColumnDescriptor) else "group of columns"
            raise SchemaError(
                f"a column of {old} does not become {new_type}: integers become int64, floats float64", column=node.name
            )
        element.type = fmt.Type(new_type.physical)
        element.type_length = element.converted_type = element.logicalType = None
    if missing:
        raise SchemaError(f"there is no column {', '.join(sorted(missing))}: the columns are {', '.join(schema.names[:20])}")
    return ParquetSchema.from_thrift(elements)


def widened_leaves(file: OpenFile, schema: ParquetSchema, names: Mapping[str, Any]) -> dict[int, EncodedLeaf]:
    """Return the leaves whose chunks are encoded with another type, by number.

    Args:
        file: the old file.
        schema: its schema with the wider types.
        names: the leaves' dotted paths.
    """
    old_columns = file.metadata.schema.columns
    specs = specs_like(file.metadata, schema) if names else []
    return {
        column.index: EncodedLeaf(partial(_widened, file, old_columns[column.index], column), specs[column.index], decodes=True)
        for column in schema.columns
        if column.name in names and column.type != old_columns[column.index].type
    }


def widened_types(schema: ParquetSchema, names: Mapping[str, Any]) -> dict[str, ColumnType]:
    """Return the new types of the flat columns among some leaves, by name."""
    return {column.name: column.type for column in schema.columns if column.name in names and column.top is column}


def _widened(file: OpenFile, old: ColumnDescriptor, new: ColumnDescriptor, group: RowGroupMetaData) -> LeafToWrite:
    """Decode a leaf of a row group, and convert its values."""
    [column] = FileReader(file).read(ReadRequest([old], [(group.index, None)]), None, None).columns
    wide_column = fit(column, shape_field(shape_of(new.top, [new.index])), None)
    [leaf] = leaves_to_write(wide_column, new.top.nullable)
    return leaf


def _holds(wide: ColumnType, narrow: ColumnType) -> bool:
    """Return whether a type holds all values of another one."""
    if wide == INT64:
        return narrow.physical == Type.INT32 and (narrow.logical is None or isinstance(narrow.logical, Integer))
    return narrow.physical == Type.FLOAT or isinstance(narrow.logical, Float16)

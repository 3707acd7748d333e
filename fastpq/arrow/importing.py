"""Import of Arrow arrays and streams as columns and tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, Table
from fastpq.arrow.capsules_in import ForeignArray, ForeignStream, take_array, take_schema
from fastpq.arrow.fields import ImportedField, field_of
from fastpq.arrow.flat_import import read_validity
from fastpq.arrow.hints import texts_of, with_field
from fastpq.errors import SchemaError


def import_table(source: Any) -> Table:
    """Read a table through ``__arrow_c_stream__``, or a struct array through ``__arrow_c_array__``.

    Args:
        source: an object with one of these methods. Several batches are concatenated. A single batch is not copied where the
            layouts of Arrow and Column agree; its memory lives as long as the columns.

    Returns:
        The Table. Text is not checked to be UTF-8.

    Raises:
        UnsupportedError: a column of an unsupported type; the error names the column.
        SchemaError: the source has neither method, is no table, was consumed already, or fails, or a check finds a breach of
            the C data interface.
        LimitError: not enough memory for a column.
    """
    schema, arrays = _open(source)
    fields = _fields(schema)
    num_rows = 0
    parts: list[list[AnyColumn]] = [[] for _ in fields]
    for array in arrays:
        num_rows += array.length
        for part, column in zip(parts, _take_fields(array, fields), strict=True):
            part.append(column)
    columns = [
        (node.name, with_field(_joined(field, part), node))
        for node, field, part in zip(schema.children, fields, parts, strict=True)
    ]
    return Table(columns, num_rows=num_rows, metadata=texts_of(schema.metadata))


def import_batches(source: Any) -> Iterator[Table]:
    """The batches of ``__arrow_c_stream__`` as tables, each read when it is taken; one empty table for no batches.

    Args:
        source: an object with the method; otherwise as for import_table.
    """
    schema, arrays = _open(source)
    fields, metadata = _fields(schema), texts_of(schema.metadata)
    first = True
    for array in itertools.chain(arrays, [None]):
        if array is None and not first:
            return
        num_rows = 0 if array is None else array.length
        read = [[] for _ in fields] if array is None else [[column] for column in _take_fields(array, fields)]
        columns = [
            (node.name, with_field(_joined(field, part), node))
            for node, field, part in zip(schema.children, fields, read, strict=True)
        ]
        yield Table(columns, num_rows=num_rows, metadata=metadata)
        first = False


def _fields(schema: FieldNode) -> list[ImportedField]:
    if schema.format != "+s" or schema.dictionary is not None:
        raise SchemaError(f"one column (Arrow format {schema.format!r}) is no table: give {{name: values}}")
    return [field_of(child) for child in schema.children]


def import_column(source: Any) -> AnyColumn:
    """Read a column through ``__arrow_c_array__`` or ``__arrow_c_stream__``; otherwise as import_table."""
    schema, arrays = _open(source)
    field = field_of(schema)
    return with_field(_joined(field, [field.read(array, 0, array.length) for array in arrays]), schema)


def _joined(field: ImportedField, parts: list[AnyColumn]) -> AnyColumn:
    column = field.joined(parts)
    if column.null_count and not column.nullable:
        raise SchemaError(f"a field declared without nulls has {column.null_count} nulls", column=field.name or None)
    return column


def _open(source: Any) -> tuple[FieldNode, Iterable[ForeignArray]]:
    if hasattr(source, "__arrow_c_stream__"):
        stream = ForeignStream(source.__arrow_c_stream__())
        return stream.schema, stream
    if hasattr(source, "__arrow_c_array__"):
        schema, array = source.__arrow_c_array__()
        return take_schema(schema), [take_array(array)]
    raise SchemaError(f"{type(source).__name__} has neither __arrow_c_stream__ nor __arrow_c_array__")


def _take_fields(batch: ForeignArray, fields: Sequence[ImportedField]) -> list[AnyColumn]:
    """The columns of one struct array without nulls."""
    offset, length = batch.offset, batch.length
    if length > 0 and read_validity(batch, offset, length)[1]:
        raise SchemaError("a row of the struct is null as a whole, which a table cannot hold")
    if batch.n_children != len(fields):
        raise SchemaError(f"an Arrow struct of {len(fields)} fields has {batch.n_children} children")
    if batch.n_buffers != 1:
        raise SchemaError(f"an Arrow struct has 1 buffer, not {batch.n_buffers}")
    # Each column of a table owns its array, so that dropping one column frees its memory.
    children = batch.take_children()
    return [field.read(child, offset, length) for field, child in zip(fields, children, strict=True)]

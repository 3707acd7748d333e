"""Import of Arrow arrays and streams as columns and tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, Table
from fastpq.arrow.capsules_in import ForeignArray, ForeignStream, take_array, take_schema
from fastpq.arrow.fields import field_of
from fastpq.arrow.flat_import import read_validity
from fastpq.arrow.hints import texts_of
from fastpq.arrow.imported_field import ImportedField
from fastpq.errors import SchemaError


def import_table(source: Any) -> Table:
    """Read a table through ``__arrow_c_stream__``, or a struct array through ``__arrow_c_array__``.

    Args:
        source: an object that has one of these methods. Several batches are concatenated. A single batch is not copied where
            the layouts of Arrow and Column agree. Its memory then lives as long as the columns.

    Returns:
        The table. Text is not checked for valid UTF-8.

    Raises:
        UnsupportedError: a column has an unsupported type. The error names the column.
        SchemaError: the source has neither method, is not a table, was consumed already, fails, or breaks a rule in the C data
            interface.
        LimitError: there is not enough memory for a column.
    """
    schema, arrays = _open(source)
    fields = _fields(schema)
    num_rows = 0
    parts: list[list[AnyColumn]] = [[] for _ in fields]
    for array in arrays:
        num_rows += array.length
        for part, column in zip(parts, _take_fields(array, fields), strict=True):
            part.append(column)
    return _table(schema, fields, parts, num_rows)


def import_batches(source: Any) -> Iterator[Table]:
    """Yield the batches from ``__arrow_c_stream__`` as tables. Each batch is read when the caller asks for it.

    A stream without batches gives one empty table.

    Args:
        source: an object that has this method. Otherwise it is as for import_table.
    """
    schema, arrays = _open(source)
    fields = _fields(schema)
    first = True
    for array in itertools.chain(arrays, [None]):
        if array is None and not first:
            return
        num_rows = 0 if array is None else array.length
        parts = [[] for _ in fields] if array is None else [[column] for column in _take_fields(array, fields)]
        yield _table(schema, fields, parts, num_rows)
        first = False


def _table(schema: FieldNode, fields: list[ImportedField], parts: list[list[AnyColumn]], num_rows: int) -> Table:
    """Return a table with columns that are joined from parts."""
    columns = [
        (field.name, _join_parts(field, part)) for field, part in zip(fields, parts, strict=True)
    ]
    return Table._made(columns, num_rows).with_metadata(texts_of(schema.metadata))


def _fields(schema: FieldNode) -> list[ImportedField]:
    if schema.format != "+s" or schema.dictionary is not None:
        raise SchemaError(f"one column (Arrow format {schema.format!r}) is not a table: use {{name: values}}")
    return [field_of(child) for child in schema.children]


def import_column(source: Any) -> AnyColumn:
    """Read a column through ``__arrow_c_array__`` or ``__arrow_c_stream__``. Otherwise this is like import_table."""
    schema, arrays = _open(source)
    field = field_of(schema)
    return _join_parts(field, [field.read(array, 0, array.length) for array in arrays])


def _join_parts(field: ImportedField, parts: list[AnyColumn]) -> AnyColumn:
    column = parts[0] if len(parts) == 1 and not field.needs_all_values else field.join(parts)
    if column.null_count and not column.nullable:
        raise SchemaError(f"a field that is declared without nulls has {column.null_count} nulls", column=field.name or None)
    return column


def _open(source: Any) -> tuple[FieldNode, Iterable[ForeignArray]]:
    if hasattr(source, "__arrow_c_stream__"):
        stream = ForeignStream(source.__arrow_c_stream__())
        return stream.schema, stream
    if hasattr(source, "__arrow_c_array__"):
        schema, array = source.__arrow_c_array__()
        return take_schema(schema), [take_array(array)]
    raise SchemaError(f"a {type(source).__name__} is not Arrow data: it has no __arrow_c_stream__ and no __arrow_c_array__")


def _take_fields(batch: ForeignArray, fields: Sequence[ImportedField]) -> list[AnyColumn]:
    """Return a struct array's columns. The array must not have nulls."""
    offset, length = batch.offset, batch.length
    if length > 0 and read_validity(batch, offset, length)[1]:
        raise SchemaError("a row of the struct is null as a whole, which a table cannot represent")
    if batch.n_children != len(fields):
        raise SchemaError(f"an Arrow struct of {len(fields)} fields has {batch.n_children} children")
    if batch.n_buffers != 1:
        raise SchemaError(f"an Arrow struct must have 1 buffer, not {batch.n_buffers}")
    # Each column in a table owns its array, so that a column's memory is freed with the column.
    children = batch.take_children()
    return [field.read(child, offset, length) for field, child in zip(fields, children, strict=True)]

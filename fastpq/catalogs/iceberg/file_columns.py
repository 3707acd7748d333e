"""Columns of a data file as the columns of an Iceberg table, by field id (section "Column Projection" of Iceberg's spec)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import AnyColumn, Column
from fastpq.arrow.capsules_in import take_schema
from fastpq.convert.caller_input import column_from
from fastpq.convert.fitting import fit
from fastpq.convert.nulls import null_column
from fastpq.convert.schemas import resolved
from fastpq.errors import ParquetError, SchemaError, UnsupportedError
from fastpq.schema.nested_types import Field
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema, int96_types
from fastpq.schema.shape import shape_field, shape_of
from fastpq.schema.tree import SchemaNode
from fastpq.schema.types import ColumnType, Decimal, Integer, Time, Type


class TableField:
    """A table's top-level column.

    Args:
        field: the PyIceberg NestedField.

    Attributes:
        field_id: the field id.
        field: the column's name, type and nullability.
    """

    def __init__(self, field: Any) -> None:
        from pyiceberg.schema import Schema

        self._iceberg_field = field
        self.field_id: int = field.field_id
        self._arrow_schema = Schema(field).as_arrow()
        node = take_schema(self._arrow_schema.__arrow_c_schema__()).children[0]
        type_, self._arrow = resolved(node)
        self.field = Field(field.name, type_, not field.required)
        self._is_settled = False

    @property
    def name(self) -> str:
        """The column's name in the table."""
        return self.field.name

    def empty(self) -> AnyColumn:
        """Return the column without rows."""
        return null_column(self.field.type, 0)._with(nullable=self.field.nullable)

    def constant(self, value: Any, count: int) -> AnyColumn:
        """Return the column for a file that does not have it.

        Args:
            value: what stands in each row, as PyIceberg stores it, or None for nulls.
            count: how many rows there are.

        Raises:
            SchemaError: there is no value, but the column is required.
        """
        if value is None:
            if not self.field.nullable and count:
                raise SchemaError("a data file lacks a required column that has no default", column=self.name)
            return null_column(self.field.type, count)._with(nullable=self.field.nullable)
        import pyarrow as pa

        array = pa.array([value], type=self._arrow_schema.field(0).type)
        return self.fitted(column_from(array, name=self.name).take(np.zeros(count, np.int64)))

    @property
    def default(self) -> Any:
        """The value in files that were written before the column was added, or None."""
        return self._iceberg_field.initial_default

    def fitted(self, column: AnyColumn) -> AnyColumn:
        """Return a file's column with the table's type and nullability.

        Raises:
            SchemaError: a value does not fit, or a required column has nulls.
        """
        try:
            if isinstance(column, Column):
                self._settle(column.type)
            fitted_column = fit(column, self.field, self._arrow)
        except ParquetError as error:
            raise error.at(column=self.name) from None
        if fitted_column.null_count and not self.field.nullable:
            raise SchemaError("a required column has nulls", column=self.name)
        return fitted_column._with(nullable=self.field.nullable)

    def _settle(self, file_type: ColumnType) -> None:
        """Store values as the first file does, so that they need not be converted. Later files become as the first."""
        if not self._is_settled and isinstance(self.field.type, ColumnType) and _is_same(file_type, self.field.type):
            self.field = Field(self.name, file_type, self.field.nullable)
        self._is_settled = True

    def may_round(self, node: SchemaNode, file_schema: ParquetSchema) -> bool:
        """Return whether the file's values may compare otherwise than the table's: floats that became doubles, for example.

        Args:
            node: the column in the file's schema.
            file_schema: the file's schema.
        """
        if not isinstance(self.field.type, ColumnType) or not isinstance(node, ColumnDescriptor):
            every, types = range(len(file_schema.columns)), int96_types(file_schema.columns, "ns")
            return shape_field(shape_of(node, every, types)).type != self.field.type
        both_whole = _is_whole(node.type) and _is_whole(self.field.type)
        return not (node.type == self.field.type or both_whole or _is_same(node.type, self.field.type))

    def check_nested(self, node: SchemaNode) -> None:
        """Refuse nested fields whose names or places in the file differ from those in the table.

        Args:
            node: the column in the file's schema.

        Raises:
            UnsupportedError: a nested field was renamed or dropped, has no id, or was added with a default.
        """
        expected_fields = dict(_nested_fields(self._iceberg_field.field_type, self.field_id))
        file_fields = dict(_nested_nodes(node, self.field_id, self.name))
        for field_id, (parent, name) in file_fields.items():
            expected_parent, expected_name, _ = expected_fields.get(field_id, (None, name, None))
            if expected_parent != parent or expected_name not in (name, None):
                raise UnsupportedError(
                    f"the nested field {name} (field id {field_id}) was renamed or dropped after a file was written",
                    column=self.name,
                )
        for field_id, (_, added_name, default) in expected_fields.items():
            if field_id not in file_fields and default is not None:
                raise UnsupportedError(f"the nested field {added_name} was added with a default", column=self.name)


def _is_whole(type_: ColumnType) -> bool:
    """Return whether values are integers, or decimals."""
    is_integer = type_.logical is None and type_.physical in (Type.INT32, Type.INT64)
    return is_integer or isinstance(type_.logical, Integer | Decimal)


def _is_same(one: ColumnType, other: ColumnType) -> bool:
    """Return whether two types differ at most in how they are stored: the physical type of decimals, the flags of times."""
    match one.logical, other.logical:
        case Decimal(), Decimal():
            return one.logical == other.logical
        case Time(unit, _), Time(other_unit, _):
            return unit == other_unit
    return False


def _nested_fields(type_: Any, parent: int) -> Iterator[tuple[int, tuple[int, str | None, Any]]]:
    """Yield the id of each field inside a PyIceberg type, with its parent's id, its name and its default.

    Elements, keys and values have no name of their own.
    """
    from pyiceberg.types import ListType, MapType, StructType

    children: Sequence[tuple[int, str | None, Any, Any]] = ()
    if isinstance(type_, StructType):
        children = [(field.field_id, field.name, field.field_type, field.initial_default) for field in type_.fields]
    elif isinstance(type_, ListType):
        children = [(type_.element_id, None, type_.element_type, None)]
    elif isinstance(type_, MapType):
        children = [(type_.key_id, None, type_.key_type, None), (type_.value_id, None, type_.value_type, None)]
    for field_id, name, child_type, default in children:
        yield field_id, (parent, name, default)
        yield from _nested_fields(child_type, field_id)


def _nested_nodes(node: SchemaNode, parent: int, column: str) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the id of each node below a node, with the id of the nearest node above that has one, and its name."""
    for child in getattr(node, "children", ()):
        field_id = child.element.field_id
        if field_id is not None:
            yield field_id, (parent, child.element.name)
        elif not getattr(child, "children", ()):
            raise UnsupportedError("a nested field of a data file has no field id", column=column)
        yield from _nested_nodes(child, parent if field_id is None else field_id, column)


def nodes_by_id(file: ParquetFile, name_mapping: Any) -> dict[int, SchemaNode]:
    """Return a file's top-level columns by field id.

    Args:
        file: the open file.
        name_mapping: the table's NameMapping, for files without any field id, or None.

    Raises:
        SchemaError: the file has no ids, and the table has no name mapping. Or two columns have one id.
    """
    nodes = file.schema.root.children
    if any(node.has_field_ids for node in nodes):
        pairs = [(node.element.field_id, node) for node in nodes if node.element.field_id is not None]
    elif name_mapping is not None:
        ids = {name: mapped.field_id for mapped in name_mapping for name in mapped.names}
        pairs = [(ids[node.element.name], node) for node in nodes if ids.get(node.element.name) is not None]
    elif nodes:
        raise SchemaError("a data file has no field ids, and the table has no name mapping (schema.name-mapping.default)")
    else:
        pairs = []
    by_id = dict(pairs)
    if len(by_id) < len(pairs):
        raise SchemaError("two columns of a data file have the same field id")
    return by_id


def partition_constants(data_file: Any, specs: Mapping[int, Any]) -> dict[int, Any]:
    """Return the values that all rows of a data file have, by the ids of columns that the table is partitioned by.

    Args:
        data_file: a PyIceberg DataFile.
        specs: the table's partition specs by id.
    """
    from pyiceberg.transforms import IdentityTransform

    spec = specs.get(getattr(data_file, "spec_id", None) or 0)
    if spec is None:
        return {}
    values = {
        field.source_id: data_file.partition[place]
        for place, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform)
    }
    return {field_id: value for field_id, value in values.items() if value is not None}


def nested_ids(field: Any) -> set[int]:
    """Return the ids of all fields inside a PyIceberg NestedField."""
    return {field_id for field_id, _ in _nested_fields(field.field_type, field.field_id)}

"""Columns that a dataset read asks for: whole columns, or only some values inside structs and lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.table import AnyColumn
from fastpq.datasets.unify import DatasetField, conform, field_of_column
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import DataType, ListType, MapType, StructType, element_of
from fastpq.schema.parquet_schema import ColumnKey, ParquetSchema, SchemaNode, int96_types
from fastpq.schema.shape import LeafShape, Shape, StructShape, shape_field, shape_of

# Path of a leaf in memory: the name of its column, then the field names inside the column. "" stands for list or map elements.
Place: TypeAlias = tuple[str, ...]


class RequestedColumn(NamedTuple):
    """A result column.

    Attributes:
        field: name, type and nullability in the result.
        places: the requested leaves, or None for all.
    """

    field: DatasetField
    places: frozenset[Place] | None = None

    def keys_in(self, schema: ParquetSchema) -> Iterator[ColumnKey]:
        """Yield the keys by which the column is read from a file: its requested leaves, or the whole column.

        The whole column is read if the file lacks one of the leaves. Its other leaves then show which structs are null.
        """
        name = self.field.field.name
        leaves: dict[Place, int] = {}
        if self.places is not None:
            for node in schema.root.named(name):
                leaves |= {place: index for index, place in _places_of(node, schema)}
        if self.places is not None and self.places <= leaves.keys():
            yield from sorted(leaves[place] for place in self.places)
        else:
            yield (name,)       # a path, since a name may hold dots

    def is_held_by(self, column: AnyColumn, own: DatasetField) -> bool:
        """Return whether a column that was read from a file can be the result column as it is.

        This is a quick check. It may return False for a column to which ``conformed`` makes no change. The arguments are as for
        ``conformed``.
        """
        field = self.field.field
        return (
            self.places is None and own is self.field and column.type is field.type and column.nullable == field.nullable
            and (field.nullable or not column.null_count)
        )

    def conformed(self, column: AnyColumn, own: DatasetField) -> AnyColumn:
        """Return the result column for a column that was read from a file.

        Args:
            column: the column as read by ``keys_in``.
            own: the whole column's field in the file.

        Raises:
            SchemaError: see ``conform``.
        """
        if self.places is None:
            return conform(column, own, self.field)
        column = pruned(column, self.field.field.type)
        # INT96 units depend on the values
        return conform(column, field_of_column(self.field.field.name, column), self.field.in_units_of(column.type))


class CachedKeys(NamedTuple):
    """The keys by which columns are read from the files that share a schema object.

    Attributes:
        schema: the schema.
        own: the files' columns by name.
        result_columns: the result columns by name.
        keys: the keys, or None for all columns.
    """

    schema: ParquetSchema
    own: Mapping[str, DatasetField]
    result_columns: Mapping[str, RequestedColumn]
    keys: list[ColumnKey] | None

    def is_for(
        self, schema: ParquetSchema, own: Mapping[str, DatasetField], result_columns: Mapping[str, RequestedColumn]
    ) -> bool:
        """Return whether the keys are for these three objects. Other objects with equal values do not count."""
        return schema is self.schema and own is self.own and result_columns is self.result_columns


def keys_of(columns: Iterable[RequestedColumn], schema: ParquetSchema) -> list[ColumnKey] | None:
    """Return the keys by which columns are read from files with a schema. None stands for all columns in their order."""
    keys: list[ColumnKey] = [key for column in columns for key in column.keys_in(schema)]
    try:
        numbers = [leaf.index for leaf in schema.select(keys)]
    except SchemaError:         # the read raises it with the path of the file
        return keys
    return None if numbers and numbers == [*range(len(schema))] else [*numbers]


def requested_columns(
    keys: Iterable[Any], fields: Mapping[str, DatasetField], schema: ParquetSchema
) -> dict[str, RequestedColumn]:
    """Return the requested columns by name, in the order of their first keys.

    Args:
        keys: names of whole columns, and paths to values inside columns, dotted or as tuples.
        fields: the dataset's columns.
        schema: schema of these columns.

    Raises:
        SchemaError: a column is unknown.
    """
    leaves: dict[str, set[int] | None] = {}      # None for a whole column
    nodes: dict[str, SchemaNode] = {}
    for key in keys:
        if isinstance(key, str) and key in fields:
            leaves[key] = None
            continue
        if not isinstance(key, str | tuple):
            raise SchemaError(f"a column key of a dataset must be a str or a tuple, not {key!r}")
        for leaf in schema.select([key]):
            name = leaf.top.element.name
            nodes[name] = leaf.top
            column_leaves = leaves.setdefault(name, set())
            if column_leaves is not None:
                column_leaves.add(leaf.index)
    types = int96_types(schema.columns, "ns") if nodes else {}
    return {
        name: RequestedColumn(fields[name]) if numbers is None or name not in nodes else
        _inside(nodes[name], numbers, fields[name], schema, types)
        for name, numbers in leaves.items()
    }


def _inside(
    node: SchemaNode, numbers: set[int], field: DatasetField, schema: ParquetSchema, types: Mapping[int, Any]
) -> RequestedColumn:
    """Return a requested column for some of a column's leaves. If they are all of its leaves, the whole column is requested."""
    places = dict(_places_of(node, schema))
    if numbers >= places.keys():
        return RequestedColumn(field)
    inner = shape_field(shape_of(node, numbers, types))
    return RequestedColumn(DatasetField(inner), frozenset(places[number] for number in numbers))


def _places_of(node: SchemaNode, schema: ParquetSchema) -> Iterator[tuple[int, Place]]:
    """Yield the number and the place of each leaf in a column."""
    shape = shape_of(node, range(len(schema.columns)))
    yield from _places(shape, (shape.name,))


def _places(shape: Shape, place: Place) -> Iterator[tuple[int, Place]]:
    if isinstance(shape, LeafShape):
        yield shape.column.index, place
    elif isinstance(shape, StructShape):
        for child in shape.children:
            yield from _places(child, (*place, child.name))
    else:
        yield from _places(shape.element, (*place, ""))      # the name of an element differs between writers


def pruned(column: AnyColumn, type_: DataType) -> AnyColumn:
    """Return a column without the struct fields that a type does not have."""
    if column.type == type_:
        return column
    if isinstance(column, StructColumn) and isinstance(type_, StructType):
        field_types = {field.name: field.type for field in type_.fields}
        pairs = zip(column.type.fields, column.children, strict=True)
        inside = [(field, pruned(child, field_types[field.name])) for field, child in pairs if field.name in field_types]
        fields = tuple(replace(field, type=child.type) for field, child in inside)
        return column._with(type=replace(column.type, fields=fields), children=tuple(child for _, child in inside))
    if isinstance(column, ListColumn) and isinstance(type_, ListType | MapType):
        elements = pruned(column.elements, element_of(type_).type)
        if isinstance(type_, MapType) and isinstance(column.type, MapType):
            return column._with(type=MapType(*cast(StructType, elements.type).fields), elements=elements)
        return column._with(type=ListType(replace(element_of(type_), type=elements.type)), elements=elements)
    return column

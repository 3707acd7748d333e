"""Units of INT96 timestamps in memory, chosen by the values: the finest unit in which all values of a read fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from fastpq.arrays.table import Table
from fastpq.column.layout import OutsideUnitError
from fastpq.read.file_reader import Batches, OpenFile, Wanted
from fastpq.schema.nested_types import DataType, Field, ListType, MapType, StructType, element_of
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import LeafShape, ListShape, Shape, StructShape, shape_of
from fastpq.schema.types import ColumnType, Timestamp, TimeUnitName, Type

if TYPE_CHECKING:
    from fastpq.filters.predicate import Condition, Predicate

# Units of timestamps, the finest first. Every INT96 timestamp fits milliseconds.
UNITS: tuple[TimeUnitName, ...] = tuple(reversed(get_args(TimeUnitName)))
Place: TypeAlias = tuple[str, ...]      # of a leaf: names of its column and of the fields inside, ``element`` in lists
# Rows decoded at a time in the search for values out of range.
_ROWS = 65_536


def int96_leaves(wanted: Wanted) -> list[ColumnDescriptor]:
    """The INT96 columns of a read, those of its filters included; each once."""
    filtered = [leaf.column for leaf in _conditions(wanted.predicate)]
    columns = {column.index: column for column in (*wanted.columns, *filtered)}
    return [column for column in columns.values() if column.element.type == Type.INT96]


def with_units_of(file: OpenFile, out: Mapping[str, Any], columns: Iterable[ColumnDescriptor]) -> OpenFile:
    """The open file with the INT96 units of the caller's datetime64 arrays; unchanged unless the unit is ``"auto"``.

    Args:
        file: the file.
        out: arrays by name of the column.
        columns: the columns of the read.
    """
    if file.int96_unit != "auto":
        return file
    units: dict[int, TimeUnitName] = {}
    for column in columns:
        array = out.get(column.path[0])     # of lists too
        if column.element.type == Type.INT96 and isinstance(array, np.ndarray) and array.dtype.kind == "M":
            named = np.datetime_data(array.dtype)[0]
            units.update((column.index, unit) for unit in UNITS if unit == named)
    return file._replace(int96_units={**file.int96_units, **units}) if units else file


def fitted(file: OpenFile, wanted: Wanted, reader_of: Callable[[OpenFile], Batches]) -> OpenFile:
    """The open file with the finest fitting unit of each INT96 column of a read; the columns are decoded for this, in batches.

    Args:
        file: the file, with the units tried first.
        wanted: columns and rows of the read; rows that the filter rules out are included.
        reader_of: returns a reader of the file in given units.
    """
    units = {leaf.index: _finest(file, leaf, wanted, reader_of) for leaf in int96_leaves(wanted)}
    if not units:
        return file
    return file._replace(int96_units={**file.int96_units, **units})


def _finest(
    file: OpenFile, leaf: ColumnDescriptor, wanted: Wanted, reader_of: Callable[[OpenFile], Batches]
) -> TimeUnitName:
    *finer, coarsest = UNITS[UNITS.index(file.int96_units.get(leaf.index, UNITS[0])) :]
    alone = wanted._replace(columns=[leaf], predicate=None)
    for unit in finer:
        reader = reader_of(file._replace(int96_units={leaf.index: unit}))
        try:
            for _ in reader.batches(alone, _ROWS, None):
                pass
        except OutsideUnitError:
            continue
        return unit
    return coarsest


def units_for_filter(
    file: OpenFile,
    wanted: Wanted,
    bind: Callable[[OpenFile], Predicate | None],
    reader_of: Callable[[OpenFile], Batches],
) -> OpenFile:
    """The open file with its INT96 units for a filtered read: the fitting units if a filter value lies outside of nanoseconds.

    In nanoseconds, no value of a column equals a filter value outside of their range: the filter would be decided without the
    stored values.

    Args:
        file: the file.
        wanted: columns and rows of the read.
        bind: returns the predicate for a file's units.
        reader_of: returns a reader of the file in given units.
    """
    tried = _conditions(wanted.predicate)
    if file.int96_unit != "auto" or not any(leaf.column.element.type == Type.INT96 for leaf in tried):
        return file
    coarser_ones = [_conditions(bind(file._replace(int96_unit=unit, int96_units={}))) for unit in UNITS[1:]]
    by_range = any(_is_constant(a) != _is_constant(b) for other in coarser_ones for a, b in zip(tried, other, strict=True))
    return fitted(file, wanted, reader_of) if by_range else file


def _conditions(predicate: Predicate | None) -> list[Condition]:
    from fastpq.filters.predicate import leaves

    return [] if predicate is None else [*leaves(predicate)]


def _is_constant(condition: Condition) -> bool:
    """Whether a condition has the same answer for all values other than null."""
    from fastpq.filters.predicate import Membership, NullTest

    return isinstance(condition, NullTest) or (isinstance(condition, Membership) and not condition.keys)


def leaves_by_place(schema: ParquetSchema) -> Iterator[tuple[Place, ColumnDescriptor]]:
    """The leaves of a schema with their places in memory."""
    every = range(len(schema.columns))
    for node in schema.root.children:
        shape = shape_of(node, every)
        yield from _leaves_of(shape, (shape.name,))


def _leaves_of(shape: Shape, place: Place) -> Iterator[tuple[Place, ColumnDescriptor]]:
    match shape:
        case LeafShape():
            yield place, shape.column
        case StructShape():
            for child in shape.children:
                yield from _leaves_of(child, (*place, child.name))
        case ListShape():
            yield from _leaves_of(shape.element, (*place, element_of(shape.type).name))


def units_in(type_: DataType, place: Place) -> Iterator[tuple[Place, TimeUnitName]]:
    """Place and unit of each INT96 timestamp in the in-memory type of a column, or of a field at a place."""
    match type_:
        case ColumnType(Type.INT96, logical=Timestamp(unit)):
            yield place, unit
        case StructType(fields):
            for field in fields:
                yield from units_in(field.type, (*place, field.name))
        case ListType() | MapType():
            element = element_of(type_)
            yield from units_in(element.type, (*place, element.name))


def in_units(field: Field, place: Place, units: Mapping[Place, TimeUnitName]) -> Field:
    """A field, at its place, with INT96 timestamps in given units."""

    def inside(fields: Iterable[Field]) -> tuple[Field, ...]:
        return tuple(in_units(child, (*place, child.name), units) for child in fields)

    match field.type:
        case ColumnType(Type.INT96) as leaf if place in units:
            return replace(field, type=replace(leaf, logical=Timestamp(units[place])))
        case StructType(fields) as struct:
            return replace(field, type=replace(struct, fields=inside(fields)))
        case ListType(element):
            return replace(field, type=ListType(*inside([element])))
        case MapType() as map_:
            (entry,) = inside([map_.entry])
            assert isinstance(entry.type, StructType)
            return replace(field, type=MapType(*entry.type.fields))
    return field


def coarser(one: TimeUnitName, other: TimeUnitName) -> TimeUnitName:
    """The coarser one of two units."""
    return max(one, other, key=UNITS.index)


def units_of(tables: Iterable[Table]) -> dict[Place, TimeUnitName]:
    """The coarsest unit of each INT96 column of tables, by place; empty where all tables agree."""
    found: dict[Place, set[TimeUnitName]] = {}
    for table in tables:
        for name, column in table.items():
            for place, unit in units_in(column.type, (name,)):
                found.setdefault(place, set()).add(unit)
    if all(len(units) == 1 for units in found.values()):
        return {}
    return {place: max(units, key=UNITS.index) for place, units in found.items()}

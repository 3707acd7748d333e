"""Chooses the unit that an INT96 column has in memory: the finest unit that fits all values that a read decodes.

The values are decoded as they are stored, 12 bytes each, and are converted when all of them are known. For a whole flat column,
``int96_reading`` tries nanoseconds first. Filters, batches and the caller's arrays need the unit before the read. For them,
``with_units`` decodes the columns one more time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fastpq.arrays.layouts import Array
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.column.stored_values import int96_ticks, int96_units
from fastpq.errors import UnsupportedError
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Timestamp, TimeUnitName, Type

if TYPE_CHECKING:
    from fastpq.read.open_file import OpenFile, ReadRequest

# Ticks per second for each unit, the finest unit first. Every INT96 timestamp fits milliseconds.
_TICKS: dict[TimeUnitName, int] = {"ns": 10**9, "us": 10**6, "ms": 10**3}
_UNITS: dict[int, TimeUnitName] = {ticks: unit for unit, ticks in _TICKS.items()}


def int96_type(unit: TimeUnitName) -> ColumnType:
    """Return the type in memory that INT96 timestamps have in a unit."""
    return ColumnType(Type.INT96, None, Timestamp(unit))


def finest_type(parts: Iterable[tuple[Array, Array | None]]) -> ColumnType:
    """Return the type in memory that has the finest unit in which all INT96 timestamps fit.

    Args:
        parts: arrays of stored values, each with its validity bitmap, or None without nulls.
    """
    return int96_type(_UNITS[min((int96_units(values, validity) for values, validity in parts), default=_TICKS["ns"])])


def converted(values: Array, validity: Array | None, type_: ColumnType) -> Array:
    """Return stored INT96 timestamps in a type's unit, as bytes."""
    return int96_ticks(values, validity, _ticks_of(type_))


def with_units(
    file: OpenFile, request: ReadRequest, columns: Iterable[ColumnDescriptor],
    tables_of: Callable[[ReadRequest], Iterable[Table]],
) -> tuple[OpenFile, ReadRequest]:
    """Return the file and the request with units for some INT96 columns. To find the units, decode these columns once.

    Args:
        file: the open file.
        request: rows to read. Rows that the predicate leaves out count too.
        columns: columns whose unit must be known before the read. Columns that need no unit are ignored.
        tables_of: reads a request as tables, each with the finest unit that fits its own rows.
    """
    awaiting = {column.index: column for column in columns if file.awaits_unit(column)}
    if not awaiting:
        return file, request
    units = dict(file.int96_units)
    has_ranges = any(rows is not None for _, rows in request.groups)
    for number, column in awaiting.items():
        alone = request._replace(columns=[column], predicate=None, is_selective=has_ranges)
        types = (leaf.type for table in tables_of(alone) for _, leaf in table.columns[0].leaves())
        units[number] = _unit_of(min(types, key=_ticks_of, default=int96_type("ns")))
    file = file._replace(int96_units=units)
    return file, request.bound_to(file)


def units_of_arrays(arrays: Mapping[str, Any], columns: Iterable[ColumnDescriptor]) -> dict[int, TimeUnitName]:
    """Return the unit of each datetime64 array that a column is read into, by leaf number. Other columns are left out."""
    dtypes = {column.index: getattr(arrays.get(column.path[0]), "dtype", None) for column in columns}
    return {
        number: cast(TimeUnitName, np.datetime_data(dtype)[0])
        for number, dtype in dtypes.items()
        if isinstance(dtype, np.dtype) and dtype.kind == "M" and np.datetime_data(dtype)[0] in _TICKS
    }


def joined_tables(tables: Sequence[Table]) -> Table:
    """Return the rows of all tables as one table. The tables differ only in INT96 units, and the coarsest ones are used."""
    return Table.concat(in_common_units(tables))


def in_common_units(tables: Sequence[Table]) -> Sequence[Table]:
    """Return the tables with the same INT96 units, the coarsest ones. The tables differ only in these units."""
    if len({tuple(column.type for column in table.columns) for table in tables}) == 1:
        return tables
    columns = [in_one_unit(columns) for columns in zip(*(table.columns for table in tables), strict=True)]
    return [table._of(own) for table, own in zip(tables, zip(*columns, strict=True), strict=True)]


def in_one_unit(columns: Sequence[AnyColumn]) -> list[AnyColumn]:
    """Return columns in which each INT96 leaf has the same unit, the coarsest that it has in one of them.

    Args:
        columns: at least one. Their types differ only in INT96 units.
    """
    if len({column.type for column in columns}) == 1:
        return list(columns)
    types = [[leaf.type for _, leaf in column.leaves()] for column in columns]
    coarsest = [min(each, key=_ticks_of) if each[0].physical is Type.INT96 else None for each in zip(*types, strict=True)]
    return [map_leaves(partial(_coarsened, types=iter(coarsest)), column) for column in columns]


def with_exact_int96(table: Table) -> Table:
    """Return a table that is written to another file, with all digits of its INT96 timestamps.

    Raises:
        UnsupportedError: a column has microseconds or milliseconds, because some timestamps do not fit nanoseconds. Others may
            have lost digits.
    """
    for name, column in table.items():
        for _, leaf in column.leaves():
            if leaf.type.physical is Type.INT96 and leaf.type.length is None and _ticks_of(leaf.type) < _TICKS["ns"]:
                message = "INT96 timestamps outside of the years 1677 to 2262, beside which others would lose digits"
                raise UnsupportedError(f'{message}: coerce_int96_timestamp_unit="stored" keeps their bytes', column=name)
    return table


def _coarsened(column: Column, types: Iterator[ColumnType | None]) -> Column:
    """Return INT96 timestamps in the next type, which has the same or a coarser unit. They are rounded to earlier times."""
    type_ = next(types)
    if type_ is None or type_ == column.type:
        return column
    return column._with(type=type_, values=cast(Array, column.values) // (_ticks_of(column.type) // _ticks_of(type_)))


def _ticks_of(type_: ColumnType) -> int:
    """Return how many ticks per second an INT96 column's type has."""
    return _TICKS[_unit_of(type_)]


def _unit_of(type_: ColumnType) -> TimeUnitName:
    return cast(Timestamp, type_.logical).unit

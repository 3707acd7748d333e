"""Smallest and largest values of the columns of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from fastpq.arrays.concat import concat_columns
from fastpq.arrays.table import Column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.datasets.unify import conform
from fastpq.errors import UnsupportedError
from fastpq.filters.answers import extreme_values
from fastpq.read.int96 import UNITS
from fastpq.schema.types import ColumnType, Timestamp

if TYPE_CHECKING:
    from fastpq.datasets.dataset_answers import DatasetAnswers


def partition_extremes(dataset: DatasetAnswers, name: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a partition column among files with rows."""
    numbers: dict[Any, list[int]] = {}
    for number, values in enumerate(dataset._values):
        if values[name] is not None:
            numbers.setdefault(values[name], []).append(number)

    def first_with_rows(ascending: Iterable[Any]) -> Any:
        return next((value for value in ascending if any(_rows_of(dataset, number) for number in numbers[value])), None)

    known = sorted(number for number in numbers if number == number)      # not NaN
    return first_with_rows(known), first_with_rows(reversed(known))


def _rows_of(dataset: DatasetAnswers, number: int) -> int:
    if not dataset._has_rows:
        return 0
    if dataset._own[number] is None:
        with dataset._opened.opened(number) as file:
            dataset._look(number, file)
    return dataset._rows[number]


def column_extremes(dataset: DatasetAnswers, name: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a column of the files, in the type of the dataset."""
    field = dataset._fields[name]
    if not isinstance(field.field.type, ColumnType):
        raise UnsupportedError("statistics of a nested column", column=name)

    def extremes(number: int) -> Column | None:
        if not dataset._has_rows:
            return None
        with dataset._opened.opened(number) as file:
            own = dataset._look(number, file)
            if name not in own:
                return None
            leaf = file.schema.select([(name,)])[0]
            column, type_ = file._extremes(leaf.index), own[name].field.type
            if column is None:
                return None
            assert isinstance(type_, ColumnType)
            if column.type != type_ and not own[name].is_stored_as(field):      # INT96 in a coarser unit
                column = cast(Column, column_from_numpy(column.to_numpy(), type=type_, name=name))
            converted = conform(column, own[name], field)
            assert isinstance(converted, Column)
            return converted

    columns = [column for column in dataset._opened.each(range(len(dataset._files)), extremes) if column is not None]
    if not columns:
        return None, None
    return extreme_values(concat_columns(_in_one_unit(columns), name))


def _in_one_unit(columns: list[Column]) -> list[Column]:
    """Columns of INT96 timestamps in the coarsest of their units; other columns as they are."""
    types = {column.type for column in columns}
    if len(types) == 1:
        return columns
    coarsest = max(types, key=lambda type_: UNITS.index(cast(Timestamp, type_.logical).unit))
    dtype = f"datetime64[{cast(Timestamp, coarsest.logical).unit}]"
    return [cast(Column, column_from_numpy(column.to_numpy().astype(dtype), type=coarsest)) for column in columns]

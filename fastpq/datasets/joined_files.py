"""Joins the tables from several files into one table, cuts them into batches, and finds their first or last rows and extremes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fastpq.arrays.concat import concat_columns
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.table import VIEW_DTYPE, CodedViews, Column, Table
from fastpq.filters.answers import extreme_values
from fastpq.read.int96 import in_one_unit, joined_tables
from fastpq.read.missing_keys import MISSING_KEYS, names_in_report, with_report
from fastpq.read.opener import StringLayout


def joined_bytes(table: Table) -> int:
    """Return how many bytes a table takes after it is joined with others. Views are counted, because codes may become views."""
    coded_columns = (column for column in table.columns if isinstance(column, Column) and isinstance(column.values, CodedViews))
    return table.nbytes + sum(VIEW_DTYPE.itemsize * len(column) for column in coded_columns)


def joined_files(tables: Sequence[Table], strings: StringLayout) -> Table:
    """Return the rows from several files as one table. In the layout "dictionary", a text or bytes column has one dictionary.

    Args:
        tables: a table for each file, at least one.
        strings: layout for variable-length values.
    """
    table = joined_tables(tables)
    if any(MISSING_KEYS in part.metadata for part in tables[1:]):
        table = with_report(table, [name for part in tables[1:] for name in names_in_report(part)])
    if strings != "dictionary" or len(tables) == 1:
        return table
    return table._of(map_leaves(_in_one_dictionary, column) for column in table.columns)


def _in_one_dictionary(column: Column) -> Column:
    return column.as_dictionary() if column.type.is_variable else column


def in_batches(tables: Iterable[Table], size: int, strings: StringLayout) -> Iterator[Table]:
    """Yield the rows as tables that have ``size`` rows each. The last may have fewer. A table of this size stays as it is.

    Args:
        tables: tables with the same columns.
        size: row count.
        strings: layout for variable-length values.
    """
    waiting: list[Table] = []
    count = 0
    for table in tables:
        start = 0
        while count + table.num_rows - start >= size:
            stop = start + size - count
            whole = start == 0 and stop == table.num_rows
            yield joined_files([*waiting, table if whole else table.slice(start, stop)], strings)
            waiting, count, start = [], 0, stop
        if start < table.num_rows:
            waiting.append(table.slice(start) if start else table)
            count += table.num_rows - start
    if waiting:
        yield joined_files(waiting, strings)


def end_of_tables(tables: Iterable[Table], n: int, is_head: bool) -> list[Table]:
    """Return the first or the last n rows of consecutive tables. For the first rows, later tables are not requested."""
    end_tables: deque[Table] = deque()
    count = 0
    for table in tables:
        end_tables.append(table)
        count += table.num_rows
        if is_head and count >= n:
            break
        while not is_head and count - end_tables[0].num_rows >= n:
            count -= end_tables.popleft().num_rows
    if count > n and is_head:
        end_tables[-1] = end_tables[-1].slice(0, end_tables[-1].num_rows - (count - n))
    elif count > n:
        end_tables[0] = end_tables[0].slice(count - n)
    return list(end_tables)


def extremes_of_columns(columns: Sequence[Column], name: str) -> tuple[Any, Any]:
    """Return a column's smallest and largest value in all files.

    Args:
        columns: the smallest and the largest value in each file, as a column.
        name: column name, for errors.
    """
    if not columns:
        return None, None
    whole = concat_columns(in_one_unit(columns), name)
    assert isinstance(whole, Column)
    return extreme_values(whole)


def extremes_of_partitions(values: Sequence[Any], rows_in: Callable[[int], int]) -> tuple[Any, Any]:
    """Return a partition column's smallest and largest value in the files that have rows.

    Args:
        values: the partition value of each file, or None if the file has none.
        rows_in: returns how many rows the file with a number has. It may have to open the file, so it is called for few files.
    """
    numbers: dict[Any, list[int]] = {}
    for number, value in enumerate(values):
        if value is not None:
            numbers.setdefault(value, []).append(number)

    def first_with_rows(ascending: Iterable[Any]) -> Any:
        return next((value for value in ascending if any(map(rows_in, numbers[value]))), None)

    ascending = sorted(value for value in numbers if value == value)      # without NaN
    return first_with_rows(ascending), first_with_rows(reversed(ascending))

"""Arrow fields, and orders of dictionary entries, that the tables of several files share.

Arrow's ordered dictionaries are ordered categories in pandas. A column of a dataset has an order only if the dictionaries of all
files agree: each is a part of the longest one, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.nodes import ORDERED, FieldNode
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.convert.pandas_metadata import PANDAS_KEY, without_categories
from fastpq.datasets.arrow_trees import ArrowTree
from fastpq.datasets.opened_files import OpenedFiles
from fastpq.read.arrow_dictionaries import common_order, in_order

# Entries of ordered dictionaries by column name. None for a column whose files disagree.
Orders: TypeAlias = Mapping[str, Column | None]


def with_common_fields(tables: Iterable[Table], files: OpenedFiles, *, is_one_file: bool) -> Iterator[Table]:
    """Yield tables whose columns have the same Arrow fields and dictionary orders, whatever each table's file says.

    Args:
        tables: tables with the same columns.
        files: the files. Their fields are looked up when the first table comes, since its file is open then. A column without
            such fields keeps those that it has in the first table.
        is_one_file: whether all tables are from one file, whose index types suit its dictionaries.
    """
    common: dict[str, ArrowTree] = {}
    orders: Orders = {}
    for table in tables:
        if not common:
            common = {name: files.arrow_trees.get(name, ArrowTree.of(column)) for name, column in table.items()}
            if not is_one_file:
                common = {name: tree.with_wide_indices() for name, tree in common.items()}
                orders = orders_of_files(files, [name for name, tree in common.items() if claims_order(tree.field)])
        table = table._of(common[name].applied_to(column) for name, column in table.items())
        yield with_shared_orders(table, orders) if orders else table


def claims_order(field: FieldNode | None) -> bool:
    """Return whether an Arrow field says that its dictionary is ordered."""
    return field is not None and field.dictionary is not None and bool(field.flags & ORDERED)


def orders_of_tables(tables: Sequence[Table]) -> Orders:
    """Return the common entries of columns that have an ordered dictionary in some tables."""
    names = [name for name in tables[0].names if any(claims_order(table[name].arrow) for table in tables)]
    return {name: common_order([_entries_of(table[name]) for table in tables]) for name in names}


def orders_of_files(files: OpenedFiles, names: Sequence[str]) -> Orders:
    """Return the common entries of some columns. The dictionary pages of these columns are read in all files."""
    if not names:
        return {}

    def look(number: int) -> Table:
        with files.with_columns(number) as (file, own):
            return file.read([name for name in names if name in own], row_groups=[])

    tables: Iterator[Table] = iter(files.each(look))
    own_entries: dict[str, list[Column | None]] = {name: [] for name in names}
    for table in tables:
        for name in table.names:
            own_entries[name].append(_entries_of(table[name]))
    return {name: common_order(entries) for name, entries in own_entries.items()}


def with_shared_orders(table: Table, orders: Orders) -> Table:
    """Return a table whose ordered dictionaries have the common entries. Where the files disagree, they have no order.

    A column with other entries than its file has loses the categories in the metadata of pandas, which are those of the file.
    """
    other_names = [name for name, entries in orders.items() if name in table and not _has_entries(table[name], entries)]
    table = table._of(_ordered(column, orders[name]) if name in orders else column for name, column in table.items())
    text = table.metadata.get(PANDAS_KEY)
    if text is None or not other_names:
        return table
    return table.with_metadata({**table.metadata, PANDAS_KEY: without_categories(text, other_names)})


def with_common_orders(tables: Sequence[Table], strings: str) -> Sequence[Table]:
    """Return tables whose ordered dictionaries have common entries, so that they are still ordered when they are joined."""
    if len(tables) < 2 or strings == "dictionary" or not (orders := orders_of_tables(tables)):
        return tables
    return [with_shared_orders(table, orders) for table in tables]


def _entries_of(column: AnyColumn) -> Column | None:
    values = column.values if isinstance(column, Column) else None
    return values.dictionary if isinstance(values, DictionaryValues) and values.is_ordered else None


def _has_entries(column: AnyColumn, entries: Column | None) -> bool:
    own_entries = _entries_of(column)
    return own_entries is not None and entries is not None and (own_entries is entries or own_entries.equals(entries))


def _ordered(column: AnyColumn, entries: Column | None) -> AnyColumn:
    if not isinstance(column, Column) or not column.type.is_variable:
        return column
    if entries is not None:
        return in_order(column, entries, True)
    if not isinstance(column.values, DictionaryValues):
        return column
    return column._with(values=DictionaryValues(column.values.codes, column.values.dictionary))

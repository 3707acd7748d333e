"""Arrow's ordered dictionaries of a file: the order of the entries is the order of the file's dictionary pages."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.table import AnyColumn, Column, DictionaryValues, Table
from fastpq.errors import ParquetError
from fastpq.read.dictionaries import read_dictionaries, stored_dictionary_size
from fastpq.read.file_reader import OpenFile
from fastpq.read.plan import plan_read
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode


def with_orders(
    table: Table, nodes: Iterable[SchemaNode], file: OpenFile, known: dict[int, Column | None]
) -> Table:
    """A table with the ordered dictionaries that its Arrow fields claim, where the file keeps their order; flat columns alone.

    Args:
        table: columns of the file, with their Arrow fields.
        nodes: schema nodes of the columns.
        file: the file.
        known: entries of ordered dictionaries, by number of the column; completed here.
    """

    def ordered(column: AnyColumn, node: SchemaNode) -> AnyColumn:
        if column.is_nested or not _claims_order(column) or not isinstance(node, ColumnDescriptor):
            return column
        if node.index not in known:
            known[node.index] = order_of_entries(file, node)
        entries = known[node.index]
        return column if entries is None else in_order(column, entries)

    return table._of(map(ordered, table.columns, nodes))


def _claims_order(column: Column) -> bool:
    """Whether the Arrow field of a column is an ordered dictionary of text or bytes."""
    field = column.arrow
    return field is not None and field.dictionary is not None and bool(field.flags & ORDERED) and column.type.is_variable


def order_of_entries(file: OpenFile, leaf: ColumnDescriptor) -> Column | None:
    """The entries of a column's dictionary in order; None where the dictionary pages of the file do not agree, or are broken.

    Every row group has a dictionary page of its own. The pages agree where each is a part of the longest, in its order, and where
    all values are in dictionaries.

    Args:
        file: the file.
        leaf: a flat column.
    """
    try:
        chunks = plan_read(file.metadata, [leaf], None, file.source.size).chunks
        if not chunks or not all(stored_dictionary_size(chunk.column, chunk.metadata) for chunk in chunks):
            return None
        found = read_dictionaries(file.opener([leaf], "views"), chunks)
    except ParquetError:        # of a row group outside of the read, perhaps
        return None
    pages = [page for page in found if isinstance(page, Column)]
    if len(pages) < len(found):
        return None
    longest = max(pages, key=len)
    known = longest.to_pylist()
    return longest if all(_is_part(page.to_pylist(), known) for page in pages) else None


def _is_part(part: list[object], whole: list[object]) -> bool:
    """Whether the entries of one dictionary stand in another one, in the same order."""
    rest = iter(whole)
    return all(entry in rest for entry in part)


def in_order(column: Column, entries: Column) -> Column:
    """The column as an ordered dictionary; unchanged where a value is no entry.

    Args:
        column: a column of text or bytes.
        entries: the entries in order.
    """
    coded = column.as_dictionary()
    values = coded.values
    assert isinstance(values, DictionaryValues)
    places = {entry: place for place, entry in enumerate(entries.to_pylist())}
    own = values.dictionary.to_pylist()
    if len(places) < len(entries) or not all(entry in places for entry in own):
        return column
    codes = np.array([places[entry] for entry in own] or [0], np.int32)[values.codes]
    if column.null_count:
        codes[~column.validity_mask()] = 0
    return coded._with(values=DictionaryValues(codes, entries, True))

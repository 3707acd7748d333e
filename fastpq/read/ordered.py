"""Arrow's dictionaries of a file: entries, used or not, and their order are those of the dictionary pages."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fastpq.arrays.binary import encode_dictionary
from fastpq.arrays.concat import concat_values
from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, Column, DictionaryValues, Table
from fastpq.errors import ParquetError
from fastpq.read.dictionaries import read_dictionaries, stored_dictionary_size
from fastpq.read.file_reader import OpenFile
from fastpq.read.plan import plan_read
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

# Most stored bytes of the dictionary pages of a column read for the entries of a dictionary without an order.
_MOST_UNORDERED = 1 << 20


def with_orders(
    table: Table, nodes: Iterable[SchemaNode], file: OpenFile, known: dict[int, Column | None]
) -> Table:
    """A table with the dictionaries that its Arrow fields claim, where the file's dictionary pages agree; flat columns alone.

    Pages of dictionaries without an order are read up to a bound of bytes; longer ones have their entries by first appearance.

    Args:
        table: columns of the file, with their Arrow fields.
        nodes: schema nodes of the columns.
        file: the file.
        known: entries of dictionaries, by number of the column; completed here.
    """

    def ordered(column: AnyColumn, node: SchemaNode) -> AnyColumn:
        if column.is_nested or not _claims_dictionary(column) or not isinstance(node, ColumnDescriptor):
            return column
        claims_order = column.arrow is not None and bool(column.arrow.flags & ORDERED)
        if node.index not in known:
            known[node.index] = order_of_entries(file, node, None if claims_order else _MOST_UNORDERED)
        entries = known[node.index]
        return column if entries is None else in_order(column, entries, claims_order)

    return table._of(map(ordered, table.columns, nodes))


def _claims_dictionary(column: Column) -> bool:
    """Whether the Arrow field of a column is a dictionary of text or bytes."""
    field = column.arrow
    return field is not None and field.dictionary is not None and column.type.is_variable


def order_of_entries(file: OpenFile, leaf: ColumnDescriptor, most: int | None = None) -> Column | None:
    """The entries of a column's dictionary in order; None where the dictionary pages of the file do not agree, or are broken.

    Every row group has a dictionary page of its own. The pages agree where each is a part of the longest, in its order, and where
    all values are in dictionaries.

    Args:
        file: the file.
        leaf: a flat column.
        most: most stored bytes of dictionary pages to read; None for all.
    """
    try:
        chunks = plan_read(file.metadata, [leaf], None, file.source.size).chunks
        sizes = [stored_dictionary_size(chunk.column, chunk.metadata) for chunk in chunks]
        if not chunks or not all(sizes) or (most is not None and sum(sizes) > most):
            return None
        found = read_dictionaries(file.opener([leaf], "views"), chunks)
    except ParquetError:        # of a row group outside of the read, perhaps
        return None
    pages = [page for page in found if isinstance(page, Column)]
    if len(pages) < len(found):
        return None
    longest = max(pages, key=len)
    others = [page for page in pages if not page.equals(longest)]
    known = longest.to_pylist() if others else []
    return longest if all(_is_part(page.to_pylist(), known) for page in others) else None


def _is_part(part: list[object], whole: list[object]) -> bool:
    """Whether the entries of one dictionary stand in another one, in the same order."""
    rest = iter(whole)
    return all(entry in rest for entry in part)


def in_order(column: Column, entries: Column, is_ordered: bool) -> Column:
    """The column with a dictionary of given entries; unchanged where a value is no entry.

    Args:
        column: a column of text or bytes.
        entries: the entries in order.
        is_ordered: whether their order has a meaning.
    """
    joined = concat_values([entries.as_views().values, column.as_views().values])
    codes, rows = encode_dictionary(SliceReader(joined, None))
    codes = codes[len(entries) :]
    if column.null_count:
        codes[~column.validity_mask()] = 0
    known = int(np.searchsorted(rows, len(entries)))        # rows of first appearance ascend
    if known < len(entries) or (len(codes) and int(codes.max()) >= max(known, 1)):
        return column
    return column._with(values=DictionaryValues(codes, entries, is_ordered))

"""Restores the dictionaries that Arrow fields describe, from dictionary pages: all entries in order, even unused ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.dtypes import StringDType

from fastpq.arrays.binary import encode_dictionary
from fastpq.arrays.concat import concat_values
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import from_string_dtype
from fastpq.arrays.table import AnyColumn, BinaryOffsets, Column, DictionaryValues, Table
from fastpq.arrow.canonical import enum_categories
from fastpq.errors import ParquetError
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.dictionary_columns import stored_dictionary_size
from fastpq.read.filtered.dictionary_evidence import read_dictionaries
from fastpq.read.open_file import OpenFile
from fastpq.read.plan import plan_read
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

# An unordered dictionary is restored if the column's dictionary pages have at most this many stored bytes.
_MOST_UNORDERED = 1 << 20


def with_orders(
    table: Table, nodes: Iterable[SchemaNode], file: OpenFile, entries_by_column: dict[int, Column | None]
) -> Table:
    """Return a table whose flat columns have the file's dictionaries.

    A column gets its dictionary if the Arrow field is a dictionary, and if the dictionary pages of all row groups agree. The
    pages of an unordered dictionary are read only if they are small. The entries of a larger one stay in the order in which they
    first appear. Polars Enum columns, including nested ones, get the categories from their Arrow fields.

    Args:
        table: columns of the file, with their Arrow fields.
        nodes: schema nodes of the table's columns.
        file: the file.
        entries_by_column: dictionary entries that earlier calls restored, by column number. This call adds more.
    """
    table = table._of(map_leaves(_with_categories, column) for column in table.columns)
    claims: dict[int, bool] = {}        # whether the Arrow field says that the dictionary is ordered, by column number
    leaves: list[ColumnDescriptor] = []
    for column, node in zip(table.columns, nodes, strict=True):
        if not column.is_nested and isinstance(node, ColumnDescriptor) and _claims_dictionary(column) and not _is_enum(column):
            claims[node.index] = column.arrow is not None and bool(column.arrow.flags & ORDERED)
            leaves.append(node)
    missing = {leaf: None if claims[leaf.index] else _MOST_UNORDERED for leaf in leaves if leaf.index not in entries_by_column}
    entries_by_column |= {leaf.index: entries for leaf, entries in zip(missing, orders_of_entries(file, missing), strict=True)}

    def ordered(column: AnyColumn, node: SchemaNode) -> AnyColumn:
        if not isinstance(node, ColumnDescriptor) or node.index not in claims or column.is_nested:
            return column
        entries = entries_by_column[node.index]
        restored_column = column if entries is None else in_order(column, entries, claims[node.index])
        if restored_column is not column or file.strings == "dictionary":
            return restored_column
        return file.opener([node]).strings_of(column.as_views())

    return table._of(map(ordered, table.columns, nodes))


def _is_enum(column: Column) -> bool:
    """Return whether a column has an Enum's dictionary."""
    return isinstance(column.values, DictionaryValues) and column.values.is_ordered


def _with_categories(column: Column) -> Column:
    """Return a Polars Enum column with the ordered categories from its Arrow field. Return other columns unchanged."""
    categories = enum_categories(column.arrow) if column.type.is_text else None
    if categories is None:
        return column
    values = np.array(categories, StringDType())
    offsets, data, _ = from_string_dtype(values)
    return in_order(column, Column(column.type, BinaryOffsets(offsets, data), nullable=False), True)


def _claims_dictionary(column: Column) -> bool:
    """Return whether a column's Arrow field is a dictionary of text or bytes."""
    field = column.arrow
    return field is not None and field.dictionary is not None and column.type.is_variable


def orders_of_entries(file: OpenFile, most: Mapping[ColumnDescriptor, int | None]) -> list[Column | None]:
    """Return the ordered entries of each column's dictionary, or None if the file's dictionary pages disagree or are broken.

    Every row group has its own dictionary page. The pages agree if all values are in dictionaries, and if each page is a part
    of the longest one, in the same order. One round of requests reads the pages for all columns and row groups.

    Args:
        file: the file.
        most: largest number of stored dictionary page bytes to read for each flat column, or None for any number.
    """
    chunks = [_chunks_with_dictionaries(file, leaf, bound) for leaf, bound in most.items()]
    columns = [leaf for leaf, of_leaf in zip(most, chunks, strict=True) if of_leaf]
    if not columns:
        return [None] * len(chunks)
    try:
        pages = read_dictionaries(file.opener(columns, "views"), [chunk for of_leaf in chunks for chunk in of_leaf])
    except ParquetError:        # one column's page is broken, and the other columns may still have their order
        return [common_order(_read_alone(file, of_leaf)) for of_leaf in chunks]
    rest = iter(pages)
    return [common_order([*itertools.islice(rest, len(of_leaf))]) for of_leaf in chunks]


def _chunks_with_dictionaries(file: OpenFile, leaf: ColumnDescriptor, most: int | None) -> Sequence[ChunkPlan]:
    """Return a column's chunks. Return none if a value may be outside the dictionaries, or if dictionaries are too large.

    Args:
        file: the file.
        leaf: the column.
        most: largest number of stored dictionary page bytes in all chunks. None for any number.
    """
    try:
        chunks = plan_read(file.metadata, [leaf], None, file.source.size).chunks
        sizes = [stored_dictionary_size(chunk.column, chunk.metadata) for chunk in chunks]
    except ParquetError:        # perhaps a row group that the read leaves out is broken
        return []
    return chunks if all(sizes) and (most is None or sum(sizes) <= most) else []


def _read_alone(file: OpenFile, chunks: Sequence[ChunkPlan]) -> list[Column | str]:
    """Return one column's dictionaries, or none if a page is broken."""
    try:
        return read_dictionaries(file.opener([chunk.column for chunk in chunks], "views"), chunks)
    except ParquetError:
        return []


def common_order(dictionaries: Sequence[Column | str | None]) -> Column | None:
    """Return the longest dictionary if the others are parts of it, in the same order. Otherwise return None.

    Args:
        dictionaries: the dictionaries. One that is not a column is unknown, and then there is no common order.
    """
    pages = [page for page in dictionaries if isinstance(page, Column)]
    if not dictionaries or len(pages) < len(dictionaries):
        return None
    longest = max(pages, key=len)
    others = [page for page in pages if not page.equals(longest)]
    entries = longest.to_pylist() if others else []
    return longest if all(_is_part(page.to_pylist(), entries) for page in others) else None


def _is_part(part: list[object], whole: list[object]) -> bool:
    """Return whether ``whole`` has all entries that ``part`` has, in the same order."""
    rest = iter(whole)
    return all(entry in rest for entry in part)


def in_order(column: Column, entries: Column, is_ordered: bool) -> Column:
    """Return a column with a dictionary that has the given entries, or the same column if one of its values is not among them.

    Args:
        column: a text or bytes column.
        entries: the entries in order.
        is_ordered: whether their order has a meaning.
    """
    dictionary_values = column.values if isinstance(column.values, DictionaryValues) else None
    values = column if dictionary_values is None else dictionary_values.dictionary
    all_values = concat_values([entries.as_views().values, values.as_views().values])
    codes, rows = encode_dictionary(SliceReader(all_values, None))
    codes = codes[len(entries) :]
    if dictionary_values is not None and len(values):
        codes = codes[dictionary_values.codes]
    elif dictionary_values is not None:         # nulls alone
        codes = dictionary_values.codes.copy()
    if column.null_count:
        codes[~column.validity_mask()] = 0
    different = int(np.searchsorted(rows, len(entries)))        # the rows where entries first appear ascend
    if different < len(entries) or (len(codes) and int(codes.max()) >= max(different, 1)):
        return column
    return column._with(values=DictionaryValues(codes, entries, is_ordered))

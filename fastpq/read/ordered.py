"""Dictionaries of Arrow fields, restored from the dictionary pages: all entries in their order, unused entries included."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.dtypes import StringDType

from fastpq.arrays.binary import encode_dictionary
from fastpq.arrays.concat import concat_values
from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import from_string_dtype
from fastpq.arrays.table import AnyColumn, BinaryOffsets, Column, DictionaryValues, ListColumn, StructColumn, Table
from fastpq.arrow.polars_enums import enum_categories
from fastpq.errors import ParquetError
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.coded import stored_dictionary_size
from fastpq.read.dictionaries import read_dictionaries
from fastpq.read.file_reader import OpenFile
from fastpq.read.plan import plan_read
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

# Most stored bytes of the dictionary pages of a column read for the entries of a dictionary without an order.
_MOST_UNORDERED = 1 << 20


def with_orders(
    table: Table, nodes: Iterable[SchemaNode], file: OpenFile, known: dict[int, Column | None]
) -> Table:
    """A table whose flat columns have the file's dictionaries, if their Arrow fields claim one and the dictionary pages agree.

    Pages of dictionaries without an order are read up to a bound of bytes; longer ones have their entries by first appearance.
    Columns of Polars' Enum type, nested ones too, have the categories of the Arrow field.

    Args:
        table: columns of the file, with their Arrow fields.
        nodes: schema nodes of the columns.
        file: the file.
        known: entries of dictionaries, by number of the column; completed here.
    """
    table = table._of(map(_with_categories, table.columns))
    claims: dict[int, bool] = {}        # whether the order is claimed, by number of a column with a dictionary
    leaves: dict[int, ColumnDescriptor] = {}
    for column, node in zip(table.columns, nodes, strict=True):
        if not column.is_nested and isinstance(node, ColumnDescriptor) and _claims_dictionary(column) and not _is_enum(column):
            claims[node.index] = column.arrow is not None and bool(column.arrow.flags & ORDERED)
            leaves[node.index] = node
    missing = {leaf: None if claims[number] else _MOST_UNORDERED for number, leaf in leaves.items() if number not in known}
    known |= {leaf.index: entries for leaf, entries in zip(missing, orders_of_entries(file, missing), strict=True)}

    def ordered(column: AnyColumn, node: SchemaNode) -> AnyColumn:
        if not isinstance(node, ColumnDescriptor) or node.index not in claims or column.is_nested:
            return column
        entries = known[node.index]
        found = column if entries is None else in_order(column, entries, claims[node.index])
        return found if found is not column or file.strings == "dictionary" else file.opener([node]).strings_of(column.as_views())

    return table._of(map(ordered, table.columns, nodes))


def _is_enum(column: Column) -> bool:
    """Whether a column has the dictionary of an Enum."""
    return isinstance(column.values, DictionaryValues) and column.values.is_ordered


def _with_categories(column: AnyColumn) -> AnyColumn:
    """A column whose leaves of Polars' Enum type have the categories of their Arrow fields, in order."""
    match column:
        case StructColumn():
            return column._with(children=tuple(map(_with_categories, column.children)))
        case ListColumn():
            return column._with(elements=_with_categories(column.elements))
    categories = enum_categories(column.arrow) if column.type.is_text else None
    if categories is None:
        return column
    values = np.array(categories, StringDType())
    offsets, data, _ = from_string_dtype(values)
    return in_order(column, Column(column.type, BinaryOffsets(offsets, data), nullable=False), True)


def _claims_dictionary(column: Column) -> bool:
    """Whether the Arrow field of a column is a dictionary of text or bytes."""
    field = column.arrow
    return field is not None and field.dictionary is not None and column.type.is_variable


def orders_of_entries(file: OpenFile, most: Mapping[ColumnDescriptor, int | None]) -> list[Column | None]:
    """The entries of each column's dictionary in order; None where the dictionary pages of the file do not agree, or are broken.

    Every row group has a dictionary page of its own. The pages agree where each is a part of the longest, in its order, and where
    all values are in dictionaries. The pages of all columns and row groups are read with one round of requests.

    Args:
        file: the file.
        most: most stored bytes of dictionary pages to read of each flat column; None for all.
    """
    chunks = [_chunks_with_dictionaries(file, leaf, bound) for leaf, bound in most.items()]
    wanted = [leaf for leaf, of_leaf in zip(most, chunks, strict=True) if of_leaf]
    if not wanted:
        return [None] * len(chunks)
    try:
        pages = read_dictionaries(file.opener(wanted, "views"), [chunk for of_leaf in chunks for chunk in of_leaf])
    except ParquetError:        # of one column: the others may have their order
        return [_order_of(_read_alone(file, of_leaf)) for of_leaf in chunks]
    rest = iter(pages)
    return [_order_of([*itertools.islice(rest, len(of_leaf))]) for of_leaf in chunks]


def _chunks_with_dictionaries(file: OpenFile, leaf: ColumnDescriptor, most: int | None) -> Sequence[ChunkPlan]:
    """The chunks of a column; none where a value may be outside of the dictionaries, or the dictionaries have too many bytes."""
    try:
        chunks = plan_read(file.metadata, [leaf], None, file.source.size).chunks
        sizes = [stored_dictionary_size(chunk.column, chunk.metadata) for chunk in chunks]
    except ParquetError:        # of a row group outside of the read, perhaps
        return []
    return chunks if all(sizes) and (most is None or sum(sizes) <= most) else []


def _read_alone(file: OpenFile, chunks: Sequence[ChunkPlan]) -> list[Column | str]:
    """The dictionaries of one column; none where one of the pages is broken."""
    try:
        return read_dictionaries(file.opener([chunk.column for chunk in chunks], "views"), chunks)
    except ParquetError:
        return []


def _order_of(found: Sequence[Column | str]) -> Column | None:
    """The longest of the dictionaries of a column, if the others are parts of it in its order; None without dictionaries."""
    pages = [page for page in found if isinstance(page, Column)]
    if not found or len(pages) < len(found):
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
    coded = column.values if isinstance(column.values, DictionaryValues) else None
    values = column if coded is None else coded.dictionary
    joined = concat_values([entries.as_views().values, values.as_views().values])
    codes, rows = encode_dictionary(SliceReader(joined, None))
    codes = codes[len(entries) :]
    if coded is not None and len(values):
        codes = codes[coded.codes]
    elif coded is not None:         # nulls alone
        codes = coded.codes.copy()
    if column.null_count:
        codes[~column.validity_mask()] = 0
    known = int(np.searchsorted(rows, len(entries)))        # rows of first appearance ascend
    if known < len(entries) or (len(codes) and int(codes.max()) >= max(known, 1)):
        return column
    return column._with(values=DictionaryValues(codes, entries, is_ordered))

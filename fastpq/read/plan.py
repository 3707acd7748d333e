"""ReadPlan: the columns, column chunks, pages and byte ranges of a read, from metadata and page indexes; pure, no I/O."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.format.plain_chunk import stored_path
from fastpq.format.slots import untracked
from fastpq.index.page_locations import choose_pages
from fastpq.index.ranges import Int64s, RowRanges
from fastpq.io.coalescing import Range
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.chunk_plan import ChunkPlan, plan_plain_chunks
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode
from fastpq.stats.quirks import chunk_slack, v2_is_always_compressed

if TYPE_CHECKING:
    from fastpq.index.page_index import OffsetIndex


class PageSelection(NamedTuple):
    """Some pages of a column chunk.

    Attributes:
        rows: rows of the row group in the selected pages.
        ranges: (offset, length) in the file of the dictionary page, if any, and of runs of data pages, ascending.
        directory: shape (pages, 4), int64: ordinal, stored size, values and rows of each selected data page; -1 where unknown.
        num_pages: number of all data pages of the chunk.
    """

    rows: RowRanges
    ranges: list[Range]
    directory: Int64s
    num_pages: int

    @property
    def num_bytes(self) -> int:
        """Stored bytes of the selected pages."""
        return sum(length for _, length in self.ranges)

    @property
    def has_dictionary(self) -> bool:
        """Whether the ranges include the dictionary page: they hold more bytes than the data pages."""
        return self.num_bytes > int(self.directory[:, 1].sum())


class ColumnPlan(NamedTuple):
    """A column of the output.

    Attributes:
        node: the schema node of the column, directly under the root.
        leaves: leaves to read below the node, in the order of the schema, each with its chunks in row order.
    """

    node: SchemaNode
    leaves: list[tuple[ColumnDescriptor, list[ChunkPlan]]]

    @property
    def name(self) -> str:
        return self.node.element.name

    @property
    def chunks(self) -> list[ChunkPlan]:
        return [chunk for _, chunks in self.leaves for chunk in chunks]

    @property
    def flat(self) -> tuple[ColumnDescriptor, list[ChunkPlan]] | None:
        """The only leaf of a flat column, with its chunks; None for a nested column."""
        return self.leaves[0] if self.leaves[0][0].is_flat else None


class ReadPlan(NamedTuple):
    """A read of some columns.

    Attributes:
        num_rows: number of rows in the output.
        columns: columns of the output, in order.
        names: their names.
    """

    num_rows: int
    columns: list[ColumnPlan]
    names: list[str]

    @property
    def chunks(self) -> list[ChunkPlan]:
        return [chunk for column in self.columns for chunk in column.chunks]


def plan_read(
    metadata: FileMetaData,
    columns: Sequence[ColumnDescriptor],
    row_groups: Iterable[int] | None,
    file_size: int,
) -> ReadPlan:
    """Plan a read of all rows of row groups.

    Args:
        metadata: footer of the file.
        columns: leaves to read; the leaves of one nested column become one column, at the place of the first leaf.
        row_groups: indices in the order of the output, negative ones counted from the end; None for all.
        file_size: size of the file in bytes.

    Raises:
        SchemaError: a row group outside the file.
        UnsupportedError: an encrypted chunk in another file.
        FormatError: metadata contradict each other or the file's size.
    """
    counts = metadata.row_counts
    groups: list[tuple[int, int, int]] = []
    num_rows = 0
    for index in choose_row_groups(metadata.num_row_groups, row_groups):
        if counts[index] < 0:
            raise FormatError(f"a row group of {counts[index]} rows", row_group=index)
        if counts[index]:
            groups.append((index, counts[index], num_rows))
            num_rows += counts[index]
    if groups and metadata.decryptor.asks_for_keys:
        group = metadata.row_group(groups[0][0])
        metadata.decryptor.ask_for_keys(group.column(column.index).chunk for column in columns)
    planned = [untracked((column, untracked(plan_chunks(metadata, column, groups, file_size)))) for column in columns]
    outputs: dict[SchemaNode, ColumnPlan] = {}
    for leaf in planned:
        node = leaf[0].top
        output = outputs.get(node)
        if output is None:
            outputs[node] = untracked(ColumnPlan(node, untracked([leaf])))
        else:
            output.leaves.append(leaf)
    for output in outputs.values():
        if len(output.leaves) > 1:
            output.leaves.sort(key=lambda leaf: leaf[0].index)
    return ReadPlan(num_rows, [*outputs.values()], [node.element.name for node in outputs])


class GroupRows(NamedTuple):
    """Some rows of a row group, at least one.

    Attributes:
        row_group: index of the row group.
        rows: the rows, counted within the row group.
        offset_indexes: places of pages, by column number; absent for columns without a usable OffsetIndex.
    """

    row_group: int
    rows: RowRanges
    offset_indexes: Mapping[int, OffsetIndex]


def plan_rows(
    metadata: FileMetaData, columns: Sequence[ColumnDescriptor], groups: Sequence[GroupRows], file_size: int
) -> ReadPlan:
    """Plan a read of some rows of some row groups, in the order of the groups.

    Args, raises: as ``plan_read``.
    """
    whole = plan_read(metadata, columns, [group.row_group for group in groups], file_size)
    offsets = np.cumsum([0, *(group.rows.count for group in groups)]).tolist()

    def planned(chunk: ChunkPlan, group: GroupRows, offset: int) -> ChunkPlan:
        return plan_pages(chunk, group.offset_indexes.get(chunk.column.index), group.rows, offset)

    outputs = [
        ColumnPlan(
            output.node,
            [(leaf, [*map(planned, chunks, groups, offsets)]) for leaf, chunks in output.leaves],
        )
        for output in whole.columns
    ]
    return ReadPlan(offsets[-1], outputs, whole.names)


def plan_pages(chunk: ChunkPlan, offset_index: OffsetIndex | None, rows: RowRanges, row_offset: int) -> ChunkPlan:
    """Plan a read of some rows of a chunk: only pages with wanted rows are read.

    Args:
        chunk: plan of the whole chunk.
        offset_index: places of the chunk's pages, checked; None if unknown, and all pages are read.
        rows: wanted rows of the row group, at least one.
        row_offset: number of the first wanted row in the output.

    Returns:
        The plan of the wanted rows.
    """
    if rows.is_every:
        return chunk.of_rows(row_offset, chunk.num_rows, chunk.num_values)
    nested = chunk.column.max_repetition_level > 0
    chosen = None if offset_index is None else choose_pages(offset_index.locations, rows, chunk.start, nested)
    if offset_index is None or chosen is None:
        return chunk.of_rows(row_offset, rows.count, chunk.num_values, kept=rows)
    covered, ranges, directory, kept = chosen
    pages = PageSelection(covered, ranges, directory, offset_index.num_pages)
    return chunk.of_rows(row_offset, rows.count, chunk.num_values if nested else covered.count, pages, kept)


def choose_row_groups(count: int, wanted: Iterable[int] | None) -> list[int]:
    """Indices of the wanted row groups, from 0 and in the wanted order.

    Args:
        count: number of row groups of the file.
        wanted: indices, negative ones counted from the end; None for all row groups.

    Raises:
        SchemaError: a row group outside the file, or no list.
    """
    if wanted is None:
        return list(range(count))
    if isinstance(wanted, int):
        raise SchemaError(f"row_groups is a list of indices: [{wanted}] is row group {wanted}")
    asked: Any = wanted
    if not isinstance(asked, Iterable) or isinstance(asked, str):
        raise SchemaError(f"row_groups is a list of indices, not {asked!r}")
    chosen = []
    for given in asked:
        try:
            index = operator.index(given)
        except TypeError:
            raise SchemaError(f"row_groups is a list of indices, and {given!r} is none") from None
        if not -count <= index < count:
            raise SchemaError(f"row group {index} of a file that has {count}")
        chosen.append(index % count)
    return chosen


def plan_chunks(
    metadata: FileMetaData, column: ColumnDescriptor, groups: list[tuple[int, int, int]], file_size: int
) -> list[ChunkPlan]:
    """Plans of all rows of a column's chunks.

    Args:
        metadata: footer of the file.
        column: descriptor of the column.
        groups: index, number of rows and number of the first row in the output, of each row group.
        file_size: size of the file in bytes.

    Raises:
        UnsupportedError, FormatError: as ``plan_chunk``.
    """
    if metadata.decryptor.seals_every_chunk:
        return [plan_chunk(metadata, index, column, offset, file_size) for index, _, offset in groups]
    writer = metadata.created_by
    return plan_plain_chunks(
        metadata, metadata.chunk_entries, column, stored_path(column.path), groups, file_size, chunk_slack(writer),
        v2_is_always_compressed(writer), lambda index, offset: plan_chunk(metadata, index, column, offset, file_size),
    )


def plan_chunk(metadata: FileMetaData, row_group: int, column: ColumnDescriptor, offset: int, file_size: int) -> ChunkPlan:
    """The plan of all rows of a chunk, after a check of its metadata against the schema and the file's size.

    Args:
        metadata: footer of the file.
        row_group: index of the row group.
        column: descriptor of the chunk's column.
        offset: number of the chunk's first row in the output.
        file_size: size of the file in bytes.

    Raises:
        UnsupportedError: an encrypted chunk in another file.
        FormatError: metadata contradict the schema or the file's size.
    """
    group = metadata.row_group(row_group)
    num_rows, chunk = group.num_rows, group.column(column.index)
    path = chunk.chunk.file_path
    try:
        is_encrypted = chunk.is_encrypted
        start, length = chunk.byte_range
        stored = chunk.metadata
        if path and is_encrypted:
            raise UnsupportedError(f"an encrypted column chunk in another file ({path!r})")
        if stored.type != column.element.type:
            raise FormatError(f"a chunk of {stored.type!r} in a column of {column.physical_type.name}")
        if stored.num_values < num_rows:
            raise FormatError(f"{stored.num_values} values in a row group of {num_rows} rows")
        if not path and (length > file_size or start > file_size - length):     # the size of another file is unknown here
            raise FormatError(f"the chunk's bytes ({length} at {start}) lie outside the file of {file_size}")
    except (FormatError, UnsupportedError) as error:
        raise error.at(column=column.name, row_group=row_group) from None
    if not path:
        length = min(length + chunk_slack(metadata.created_by), file_size - start)
    num_values = stored.num_values if column.max_repetition_level else num_rows
    return ChunkPlan(
        column, row_group, offset, num_rows, num_values, start, length, chunk, stored.codec, is_encrypted,
        bool(stored.dictionary_page_offset), v2_is_always_compressed(metadata.created_by), path or None,
    )

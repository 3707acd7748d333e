"""Plans reads: chooses columns, column chunks, pages and byte ranges from metadata and page indexes. Planning does no I/O."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastpq.errors import FormatError, ParquetError, SchemaError, UnsupportedError
from fastpq.index.page_locations import choose_pages
from fastpq.index.ranges import RowRanges
from fastpq.metadata.file_metadata import MAX_INT64, FileMetaData, decryptor_of
from fastpq.read.chunk_plan import ChunkPlan, ChunkPlanner, PageSelection
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode
from fastpq.stats.writer_bugs import chunk_slack, v2_is_always_compressed

if TYPE_CHECKING:
    from fastpq.index.page_index import OffsetIndex


class ColumnPlan(NamedTuple):
    """Plan for an output column.

    Attributes:
        node: the column's schema node, directly under the root.
        leaves: the leaves to read below the node, in schema order, each with its chunks in row order.
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
        """A flat column's only leaf, with its chunks, or None for a nested column."""
        return self.leaves[0] if self.leaves[0][0].is_flat else None


class ReadPlan(NamedTuple):
    """Plan for a read of some columns.

    Attributes:
        num_rows: number of rows in the output.
        columns: output columns, in order.
        names: their names.
    """

    num_rows: int
    columns: list[ColumnPlan]
    names: list[str]

    @property
    def chunks(self) -> list[ChunkPlan]:
        return [chunk for column in self.columns for chunk in column.chunks]


def plan_read(
    metadata: FileMetaData, columns: Sequence[ColumnDescriptor], row_groups: Iterable[int] | None, file_size: int
) -> ReadPlan:
    """Plan a read of all rows in some row groups.

    Args:
        metadata: the file's footer.
        columns: leaves to read. The leaves of one nested column become one column, in the place of the first leaf.
        row_groups: row group indices in output order, or None for all. Negative ones count from the end.
        file_size: file size in bytes.

    Raises:
        SchemaError: a row group outside the file.
        UnsupportedError: an encrypted chunk in another file.
        FormatError: metadata contradict each other or the file size.
    """
    counts = metadata.row_counts
    groups: list[tuple[int, int, int]] = []
    num_rows = 0
    for index in choose_row_groups(metadata.num_row_groups, row_groups):
        if counts[index] < 0:
            raise FormatError(f"the row group has {counts[index]} rows", row_group=index)
        if counts[index]:
            groups.append((index, counts[index], num_rows))
            num_rows += counts[index]
    if num_rows > MAX_INT64:
        raise FormatError(f"the row groups of a read have {num_rows} rows")
    if groups and decryptor_of(metadata).may_prefetch_keys:
        group = metadata.row_group(groups[0][0])
        decryptor_of(metadata).prefetch_keys(group.column(column.index).chunk for column in columns)
    outputs = planner_of(metadata, groups, file_size).columns(columns, ColumnPlan)
    return ReadPlan(num_rows, outputs, [output.node.element.name for output in outputs])


class GroupRows(NamedTuple):
    """Some rows in a row group, at least one.

    Attributes:
        row_group: row group index.
        rows: the rows, counted within the row group.
        offset_indexes: page locations, by column number. Columns without a usable OffsetIndex are absent.
    """

    row_group: int
    rows: RowRanges
    offset_indexes: Mapping[int, OffsetIndex]


def plan_rows(
    metadata: FileMetaData, columns: Sequence[ColumnDescriptor], groups: Sequence[GroupRows], file_size: int
) -> ReadPlan:
    """Plan a read of some rows in some row groups, in the given row group order.

    Args, raises: as ``plan_read``.
    """
    whole = plan_read(metadata, columns, [group.row_group for group in groups], file_size)
    offsets = np.cumsum([0, *(group.rows.count for group in groups)]).tolist()

    def plan_rows_of(chunk: ChunkPlan, group: GroupRows, offset: int) -> ChunkPlan:
        return plan_pages(chunk, group.offset_indexes.get(chunk.column.index), group.rows, offset)

    outputs = [
        ColumnPlan(output.node, [(leaf, [*map(plan_rows_of, chunks, groups, offsets)]) for leaf, chunks in output.leaves])
        for output in whole.columns
    ]
    return ReadPlan(offsets[-1], outputs, whole.names)


def plan_pages(chunk: ChunkPlan, offset_index: OffsetIndex | None, rows: RowRanges, row_offset: int) -> ChunkPlan:
    """Plan a read of some rows in a chunk. Only pages with requested rows are read.

    Args:
        chunk: plan for the whole chunk.
        offset_index: checked page locations, or None if they are unknown. All pages are read then.
        rows: requested rows, counted within the row group, at least one.
        row_offset: number of the first requested row in the output.
    """
    if rows.is_every:
        return chunk.of_rows(row_offset, chunk.num_rows, chunk.num_values)
    nested = chunk.column.max_repetition_level > 0
    selection = None if offset_index is None else choose_pages(offset_index.locations, rows, chunk.start, nested)
    if offset_index is None or selection is None:
        return chunk.of_rows(row_offset, rows.count, chunk.num_values, kept=rows)
    covered_rows, ranges, directory, kept_rows = selection
    pages = PageSelection(covered_rows, ranges, directory, offset_index.num_pages)
    return chunk.of_rows(row_offset, rows.count, chunk.num_values if nested else covered_rows.count, pages, kept_rows)


def choose_row_groups(count: int, row_groups: Iterable[int] | None) -> list[int]:
    """Return the indices of the requested row groups, counted from 0, in the requested order.

    Args:
        count: the file's row group count.
        row_groups: row group indices, or None for all. Negative ones count from the end.

    Raises:
        SchemaError: a row group is outside the file, or ``row_groups`` is not a list of integers.
    """
    if row_groups is None:
        return list(range(count))
    if isinstance(row_groups, int):
        raise SchemaError(f"row_groups must be a list of integers: [{row_groups}] is row group {row_groups}")
    items: Any = row_groups
    if not isinstance(items, Iterable) or isinstance(items, str):
        raise SchemaError(f"row_groups must be a list of integers, not {items!r}")
    indices = []
    for item in items:
        try:
            index = operator.index(item)
        except TypeError:
            raise SchemaError(f"row_groups must be a list of integers: {item!r} is not one") from None
        if not -count <= index < count:
            raise SchemaError(f"there is no row group {index}: the file has {count}")
        indices.append(index % count)
    return indices


def planner_of(metadata: FileMetaData, groups: list[tuple[int, int, int]], file_size: int) -> ChunkPlanner:
    """Return a ChunkPlanner for columns of a file.

    Args:
        metadata: the file's footer.
        groups: for each row group, its index, its row count, and the number of its first row in the output.
        file_size: file size in bytes.
    """
    decryptor, writer = decryptor_of(metadata), metadata.created_by

    def check(column: ColumnDescriptor, index: int, under_footer_key: bool) -> None:
        try:
            decryptor.check_column(column.path, is_under_footer_key=under_footer_key)
        except ParquetError as error:
            raise error.at(column=column.name, row_group=index) from None

    def open_metadata(column: ColumnDescriptor, index: int, key_metadata: bytes | None, module: bytes) -> bytes | None:
        ordinal = metadata.row_group_ordinals[index]
        return decryptor.open_own_metadata(column.path, key_metadata, ordinal, column.index, module)

    def plan_other(column: ColumnDescriptor, index: int, offset: int) -> ChunkPlan:
        return plan_chunk(metadata, index, column, offset, file_size)

    entries = None if decryptor.seals_every_chunk else metadata._chunk_entries
    return ChunkPlanner(
        metadata, entries, groups, file_size, chunk_slack(writer), v2_is_always_compressed(writer),
        check if decryptor.may_refuse_columns else None, open_metadata if decryptor.has_keys else None, plan_other)


def plan_chunk(metadata: FileMetaData, row_group: int, column: ColumnDescriptor, offset: int, file_size: int) -> ChunkPlan:
    """Check a chunk's metadata against the schema and the file size, and return a plan for all of its rows.

    Args:
        metadata: the file's footer.
        row_group: row group index.
        column: the chunk's column.
        offset: number of the chunk's first row in the output.
        file_size: file size in bytes.

    Raises:
        UnsupportedError: an encrypted chunk in another file.
        FormatError: metadata contradict the schema or the file size.
    """
    group = metadata.row_group(row_group)
    num_rows, chunk = group.num_rows, group.column(column.index)
    path = chunk.chunk.file_path
    try:
        is_encrypted = chunk.is_encrypted
        start, length = chunk.byte_range
        chunk_metadata = chunk.metadata
        if path and is_encrypted:
            raise UnsupportedError(f"the encrypted column chunk is in another file ({path!r})")
        if chunk_metadata.type != column.element.type:
            raise FormatError(f"a chunk of {chunk_metadata.type!r} in a column of {column.physical_type.name}")
        if chunk_metadata.num_values < num_rows:
            raise FormatError(f"{chunk_metadata.num_values} values in a row group of {num_rows} rows")
        if not path and (length > file_size or start > file_size - length):     # the size of another file is unknown here
            raise FormatError(f"the chunk's bytes ({length} at {start}) are outside the file of {file_size}")
    except (FormatError, UnsupportedError) as error:
        raise error.at(column=column.name, row_group=row_group) from None
    if not path:
        length = min(length + chunk_slack(metadata.created_by), file_size - start)
    num_values = chunk_metadata.num_values if column.max_repetition_level else num_rows
    return ChunkPlan(
        column, row_group, offset, num_rows, num_values, start, length, chunk, chunk_metadata.codec, is_encrypted,
        bool(chunk_metadata.dictionary_page_offset), v2_is_always_compressed(metadata.created_by), path or None,
    )

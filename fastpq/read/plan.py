"""What a read touches: metadata and projection to row ranges and byte ranges; pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.index.page_locations import choose_pages
from fastpq.index.ranges import Int64s, RowRanges
from fastpq.metadata.file_metadata import ColumnChunkMetaData, FileMetaData
from fastpq.read.costs import MOST_IDLE_ROWS
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode
from fastpq.stats.quirks import chunk_slack, v2_is_always_compressed

if TYPE_CHECKING:
    from fastpq.index.page_index import OffsetIndex


class PageSelection(NamedTuple):
    """Some pages of a column chunk.

    Attributes:
        rows: the rows of the row group that they hold.
        ranges: (offset, length) in the file of the dictionary page, if any, and of runs of data pages, ascending.
        directory: shape (pages, 4), int64: ordinal, stored size, values and rows of each data page (-1 where not
            known).
        num_pages: data pages of the chunk in all.
    """

    rows: RowRanges
    ranges: list[tuple[int, int]]
    directory: Int64s
    num_pages: int

    @property
    def num_bytes(self) -> int:
        """Bytes of the pages in the file."""
        return sum(length for _, length in self.ranges)

    @property
    def has_dictionary(self) -> bool:
        """Whether something stands before the data pages."""
        return self.num_bytes > int(self.directory[:, 1].sum())


class ChunkPlan(NamedTuple):
    """One column chunk of a read.

    Attributes:
        column: the descriptor of its column.
        row_group: index of its row group.
        row_offset: where its rows begin in the output.
        num_rows: how many there are.
        num_values: how many values its pages hold, of a nested column with all nulls and empty lists; at most so many where
            pages of a nested column are left out.
        start, length: its bytes in the file.
        metadata: its metadata.
        v2_is_compressed: whether its data pages V2 are compressed, whatever their headers say.
        pages: which of its pages are read; None for all.
        kept: shape (n, 2), int64: which rows of those pages are kept, as ascending ranges; None for all.
    """

    column: ColumnDescriptor
    row_group: int
    row_offset: int
    num_rows: int
    num_values: int
    start: int
    length: int
    metadata: ColumnChunkMetaData
    v2_is_compressed: bool = False
    pages: PageSelection | None = None
    kept: Int64s | None = None

    def of_rows(
        self,
        row_offset: int,
        num_rows: int,
        num_values: int,
        pages: PageSelection | None = None,
        kept: Int64s | None = None,
    ) -> ChunkPlan:
        """The plan of some rows of a whole chunk."""
        # positional, and no _replace: a read of few rows has as many plans as columns
        return ChunkPlan(
            self.column, self.row_group, row_offset, num_rows, num_values, self.start, self.length, self.metadata,
            self.v2_is_compressed, pages, kept,
        )  # fmt: skip

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """What is read of the file: (offset, length) each."""
        return [(self.start, self.length)] if self.pages is None else self.pages.ranges

    @property
    def num_bytes(self) -> int:
        """How many bytes of the file that is."""
        return self.length if self.pages is None else self.pages.num_bytes

    @property
    def kept_rows(self) -> Int64s:
        """Which of the rows of its pages are kept, as ranges."""
        return np.array([[0, self.num_rows]], np.int64) if self.kept is None else self.kept


class ColumnPlan(NamedTuple):
    """One column of the output.

    Attributes:
        node: the schema's node directly under the root.
        leaves: the leaves of it that are read, in the order of the schema, each with its chunks in row order.
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
        """The leaf where the column is one itself and not repeated."""
        return self.leaves[0] if self.leaves[0][0].is_flat else None


class ReadPlan(NamedTuple):
    """A read of some columns of some row groups: num_rows rows."""

    num_rows: int
    columns: list[ColumnPlan]

    @property
    def chunks(self) -> list[ChunkPlan]:
        return [chunk for column in self.columns for chunk in column.chunks]


def plan_read(
    metadata: FileMetaData,
    columns: Sequence[ColumnDescriptor],
    row_groups: Iterable[int] | None,
    file_size: int,
) -> ReadPlan:
    """Plan a read.

    Args:
        metadata: the file's.
        columns: which leaves to read; those of one nested column become one column, at the place of the first.
        row_groups: indices in the order of the output; None for all. Negative ones count from the end.
        file_size: in bytes.

    Raises:
        SchemaError: a row group that the file does not have.
        UnsupportedError: two columns of one name, or an encrypted chunk in another file.
        FormatError: metadata that contradict each other or the file's size.
    """
    chosen = choose_row_groups(metadata.num_row_groups, row_groups)
    groups = [metadata.row_group(index) for index in chosen]
    offsets = [0]
    for index, group in zip(chosen, groups, strict=True):
        if group.num_rows < 0:
            raise FormatError(f"a row group of {group.num_rows} rows", row_group=index)
        offsets.append(offsets[-1] + group.num_rows)
    planned: dict[SchemaNode, ColumnPlan] = {}
    for column in columns:
        chunks = [
            plan_chunk(group.column(column.index), column, index, offset, group.num_rows, file_size, metadata.created_by)
            for index, group, offset in zip(chosen, groups, offsets, strict=False)
            if group.num_rows
        ]
        node = column.top
        planned.setdefault(node, ColumnPlan(node, [])).leaves.append((column, chunks))
    outputs = list(planned.values())
    if len({output.name for output in outputs}) < len(outputs):
        raise UnsupportedError("reading two columns of one name at a time: choose one by its number")
    for output in outputs:
        output.leaves.sort(key=lambda leaf: leaf[0].index)
    return ReadPlan(offsets[-1], outputs)


class GroupRows(NamedTuple):
    """Some rows of a row group.

    Attributes:
        row_group: its index.
        rows: at least one.
        offset_indexes: where the pages of columns are, by number; columns whose pages are not known are left out.
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
    return ReadPlan(offsets[-1], outputs)


def plan_pages(chunk: ChunkPlan, offset_index: OffsetIndex | None, rows: RowRanges, row_offset: int) -> ChunkPlan:
    """The plan of some rows of a chunk, of which no pages are read but those that hold them.

    Args:
        chunk: the plan of the whole chunk.
        offset_index: where its pages are, checked; None where that is not known.
        rows: the rows of its row group that are wanted, at least one.
        row_offset: where they begin in the output.

    Returns:
        A plan of those rows.
    """
    if rows.is_every:
        return chunk.of_rows(row_offset, chunk.num_rows, chunk.num_values)
    nested = chunk.column.max_repetition_level > 0
    chosen = None if offset_index is None else choose_pages(offset_index.locations, rows, chunk.start, nested)
    if offset_index is None or chosen is None:
        return chunk.of_rows(row_offset, rows.count, chunk.num_values, kept=rows.bounds)
    covered, ranges, directory, kept = chosen
    pages = PageSelection(covered, ranges, directory, offset_index.num_pages)
    return chunk.of_rows(row_offset, rows.count, chunk.num_values if nested else covered.count, pages, kept)


class LoosePlan(NamedTuple):
    """A column of which some rows are read that are not wanted.

    Attributes:
        plan: its plan.
        num_rows: how many rows that gives.
        kept: which of these are wanted; None for all.
    """

    plan: ColumnPlan
    num_rows: int
    kept: Int64s | None


def loosen(column: ColumnPlan) -> LoosePlan:
    """Let a flat column read rows between wanted ones where these are close to each other: it costs less to decode and drop
    them than to start anew. No page is read for their sake."""
    chunks = column.leaves[0][1]
    num_rows = sum(chunk.num_rows for chunk in chunks)
    if all(chunk.kept is None or len(chunk.kept) < 2 for chunk in chunks):
        return LoosePlan(column, num_rows, None)
    exact = [RowRanges(chunk.kept_rows, chunk.num_values) for chunk in chunks]
    wide = [rows.merged(MOST_IDLE_ROWS) for rows in exact]
    if column.flat is None or all(len(one.bounds) == len(other.bounds) for one, other in zip(exact, wide, strict=True)):
        return LoosePlan(column, num_rows, None)
    loose: list[ChunkPlan] = []
    kept: list[Int64s] = []
    offset = 0
    for chunk, rows, read in zip(chunks, exact, wide, strict=True):
        loose.append(chunk._replace(row_offset=offset, num_rows=read.count, kept=None if chunk.kept is None else read.bounds))
        kept.append(RowRanges(rows.within(read), read.count).rows() + offset)
        offset += read.count
    return LoosePlan(ColumnPlan(column.node, [(column.leaves[0][0], loose)]), offset, np.concatenate(kept))


def choose_row_groups(count: int, wanted: Iterable[int] | None) -> list[int]:
    """Indices of row groups, in the order wanted; None for all, negative ones count from the end.

    Raises:
        SchemaError: there is no such row group.
    """
    if wanted is None:
        return list(range(count))
    chosen = []
    for index in wanted:
        if not -count <= index < count:
            raise SchemaError(f"row group {index} of a file that has {count}")
        chosen.append(index % count)
    return chosen


def plan_chunk(
    chunk: ColumnChunkMetaData,
    column: ColumnDescriptor,
    row_group: int,
    offset: int,
    num_rows: int,
    file_size: int,
    created_by: str | None,
) -> ChunkPlan:
    """The plan of all rows of a chunk.

    Args:
        chunk: its metadata.
        column: the descriptor of its column.
        row_group: index of its row group.
        offset: where its rows begin in the output.
        num_rows: of its row group.
        file_size: in bytes.
        created_by: of the file.

    Raises:
        UnsupportedError: a chunk in another file.
        FormatError: metadata that contradict the schema or the file's size.
    """
    try:
        start, length = _checked_range(chunk, column, num_rows, file_size)
    except (FormatError, UnsupportedError) as error:
        raise error.at(column=column.name, row_group=row_group) from None
    if not chunk.file_path:
        length = min(length + chunk_slack(created_by), file_size - start)
    num_values = num_rows if column.max_repetition_level == 0 else chunk.num_values
    compressed = v2_is_always_compressed(created_by)
    return ChunkPlan(column, row_group, offset, num_rows, num_values, start, length, chunk, compressed)


def _checked_range(chunk: ColumnChunkMetaData, column: ColumnDescriptor, num_rows: int, file_size: int) -> tuple[int, int]:
    """Where the chunk's bytes are; its metadata agree with the schema and the file's size."""
    if chunk.file_path and chunk.is_encrypted:
        raise UnsupportedError(f"an encrypted column chunk in another file ({chunk.file_path!r})")
    if chunk.physical_type != column.physical_type:
        raise FormatError(f"a chunk of {chunk.physical_type!r} in a column of {column.physical_type.name}")
    if chunk.num_values < num_rows:
        raise FormatError(f"{chunk.num_values} values in a row group of {num_rows} rows")
    start, length = chunk.byte_range
    if not chunk.file_path and (length > file_size or start > file_size - length):     # another file's is known when it is read
        raise FormatError(f"the chunk's bytes ({length} at {start}) lie outside the file of {file_size}")
    return start, length

"""What a read touches: metadata and projection to row ranges and byte ranges; pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.metadata import ColumnChunkMetaData, FileMetaData
from fastpq.schema import ColumnDescriptor, SchemaNode

# Old parquet-mr leaves the dictionary page's header out of total_compressed_size (PARQUET-816). Pages are read until the
# values are complete, so that bytes behind a chunk do no harm.
HEADER_SLACK = 100


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """One column chunk of a read.

    Attributes:
        column: the descriptor of its column.
        row_group: index of its row group.
        row_offset: where its rows begin in the output.
        num_rows: how many there are.
        num_values: how many values, of a nested column with all nulls and empty lists.
        start, length: its bytes in the file.
        metadata: its metadata.
    """

    column: ColumnDescriptor
    row_group: int
    row_offset: int
    num_rows: int
    num_values: int
    start: int
    length: int
    metadata: ColumnChunkMetaData


@dataclass(frozen=True, slots=True)
class ColumnPlan:
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
    def flat(self) -> tuple[ColumnDescriptor, list[ChunkPlan]] | None:
        """The leaf where the column is one itself and not repeated."""
        return self.leaves[0] if self.leaves[0][0].is_flat else None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A read of some columns of some row groups: num_rows rows."""

    num_rows: int
    columns: list[ColumnPlan]

    @property
    def chunks(self) -> list[ChunkPlan]:
        return [chunk for column in self.columns for _, chunks in column.leaves for chunk in chunks]


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
        UnsupportedError: two columns of one name, or a chunk in another file.
        FormatError: metadata that contradict each other or the file's size.
    """
    chosen = _choose_row_groups(metadata.num_row_groups, row_groups)
    groups = [metadata.row_group(index) for index in chosen]
    offsets = [0]
    for index, group in zip(chosen, groups, strict=True):
        if group.num_rows < 0:
            raise FormatError(f"a row group of {group.num_rows} rows", row_group=index)
        offsets.append(offsets[-1] + group.num_rows)
    planned: dict[int, ColumnPlan] = {}
    for column in columns:
        chunks = [
            _plan_chunk(group.column(column.index), column, index, offset, group.num_rows, file_size)
            for index, group, offset in zip(chosen, groups, offsets, strict=False)
            if group.num_rows
        ]
        node = column.top
        planned.setdefault(id(node), ColumnPlan(node, [])).leaves.append((column, chunks))
    outputs = list(planned.values())
    if len({output.name for output in outputs}) < len(outputs):
        raise UnsupportedError("reading two columns of one name at a time: choose one by its number")
    for output in outputs:
        output.leaves.sort(key=lambda leaf: leaf[0].index)
    return ReadPlan(offsets[-1], outputs)


def _choose_row_groups(count: int, wanted: Iterable[int] | None) -> list[int]:
    if wanted is None:
        return list(range(count))
    chosen = []
    for index in wanted:
        if not -count <= index < count:
            raise SchemaError(f"row group {index} of a file that has {count}")
        chosen.append(index % count)
    return chosen


def _plan_chunk(
    chunk: ColumnChunkMetaData, column: ColumnDescriptor, row_group: int, offset: int, num_rows: int, file_size: int
) -> ChunkPlan:
    where = {"column": column.name, "row_group": row_group}
    if chunk.file_path:
        raise UnsupportedError(f"a column chunk in another file ({chunk.file_path!r})", **where)
    if chunk.physical_type != column.physical_type:
        raise FormatError(
            f"a chunk of {chunk.physical_type!r} in a column of {column.physical_type.name}", **where
        )
    if chunk.num_values < num_rows:
        raise FormatError(f"{chunk.num_values} values in a row group of {num_rows} rows", **where)
    try:
        start, length = chunk.byte_range
    except FormatError as error:
        raise error.at(**where) from None
    if start < 0 or length < 0 or length > file_size or start > file_size - length:
        raise FormatError(f"the chunk's bytes ({length} at {start}) lie outside the file of {file_size}", **where)
    length = min(length + HEADER_SLACK, file_size - start)
    num_values = num_rows if column.max_repetition_level == 0 else chunk.num_values
    return ChunkPlan(column, row_group, offset, num_rows, num_values, start, length, chunk)

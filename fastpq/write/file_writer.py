"""FileWriter: a file with a schema, whose tables become row groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import islice
from typing import Protocol

from fastpq import format as fmt
from fastpq.arrays.table import Table
from fastpq.column.shred import LeafToWrite, table_leaves
from fastpq.common.parallel import resolve_threads, run_parallel
from fastpq.common.progress import Meter, Span
from fastpq.errors import ParquetError, SchemaError
from fastpq.format.stored_footer import CHECKPOINT_KEY
from fastpq.io.sink import Sink
from fastpq.options import WriterProperties
from fastpq.schema.nested_types import DataType
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.shape import shape_of
from fastpq.schema.tree import ColumnDescriptor, GroupNode, SchemaNode
from fastpq.version import VERSION
from fastpq.write.choice import EncodingChoice
from fastpq.write.chunks import ChunkToWrite, encode_chunk
from fastpq.write.encoded_chunk import EncodedChunk
from fastpq.write.row_groups import PlacedChunk, RowGroups
from fastpq.write.sampling import choose_by_sample
from fastpq.write.sorting import RowOrder
from fastpq.write.spec import ColumnSpec

FORMAT_VERSION = 2
LEAST_PARALLEL = 1 << 16    # bytes of values of a chunk, on average, from which threads save time (benchmarks.small)
# Chunks whose footer entries and page indexes are made together, behind their pages, for the reason of COLUMNS_OPENED
# (fastpq.read.costs).
DESCRIBED_TOGETHER = 64


class Description(Protocol):
    """Source of the key-value metadata of a file."""

    has_key_values: bool        # whether there may be entries

    def key_values(self, paths: Sequence[tuple[str, ...]]) -> Mapping[str, str]: ...


class FileWriter:
    """Writes tables of one schema as row groups.

    Args:
        sink: the new file, with its magic.
        schema: schema of the file.
        properties: options for columns and row groups.
        specs: how each column is written.
        row_groups: the row groups of the file, none yet.
        threads: number of column chunks encoded at the same time; None for one a core.
        meter: told of the rows written; None without progress.
        description: source of the key-value metadata of each footer.

    Attributes:
        waiting_bytes: bytes of the rows that wait for a whole row group.

    Raises:
        SchemaError: options for unknown columns.
    """

    def __init__(
        self,
        sink: Sink,
        schema: ParquetSchema,
        properties: WriterProperties,
        specs: list[ColumnSpec],
        row_groups: RowGroups,
        *,
        threads: int | None,
        meter: Meter | None,
        description: Description,
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._properties = properties
        self._specs = specs
        self._row_groups = row_groups
        self._threads = threads
        self._meter = meter
        self._description = description
        self._row_order = RowOrder(schema, properties) if properties.sort_by or properties.sorting_columns else None
        self._waiting: list[Table] = []
        self._waiting_rows = self.waiting_bytes = 0

    @cached_property
    def fields(self) -> list[tuple[str, DataType]]:
        """Names and types of the columns for a reader of the schema."""
        return _fields(self._schema)

    def encodings(self) -> dict[str, EncodingChoice]:
        """The encodings chosen so far, by dotted path."""
        columns = zip(self._schema.columns, self._specs, strict=True)
        return {column.name: spec.choice for column, spec in columns if spec.choice is not None}

    def check(self, table: Table, schema: ParquetSchema) -> None:
        """Refuse a table with other columns than the file, whose columns are the columns of its first table.

        Args:
            table: the table.
            schema: schema of the table.

        Raises:
            SchemaError: other names or types, or nulls in a required column.
        """
        if schema is not self._schema and (given := _fields(schema)) != self.fields:
            differing = [f"{a} is not {b}" for a, b in zip(given, self.fields, strict=False) if a != b]
            detail = differing[0] if differing else f"{len(given)} columns, not {len(self.fields)}"
            raise SchemaError(f"the table does not have the file's schema: {detail}")
        for node, column in zip(self._schema.root.children, table.columns, strict=True):
            if not node.nullable and column.null_count:
                raise SchemaError(
                    "nulls in a column that the first table or the schema made required", column=node.element.name
                )

    def write(self, table: Table) -> None:
        """Write the waiting rows, then a checked table, each as row groups of their own."""
        if self._waiting:
            self._write_waiting()
        self._write_rows(table)

    def add(self, table: Table) -> None:
        """Let the rows of a checked table wait for a whole row group; its arrays may be changed afterwards."""
        self._waiting_rows += table.num_rows
        self.waiting_bytes += _table_bytes(table)
        if self._waiting_rows < self._properties.row_group_size and self.waiting_bytes < self._properties.row_group_bytes:
            self._waiting.append(_copied(table))
            return
        table = Table.concat([*self._waiting, table])
        whole = table.num_rows - table.num_rows % self._row_group_rows(table.num_rows, _table_bytes(table))
        if whole:
            self._write_rows(table.slice(0, whole))
        rest = table.slice(whole)
        self._waiting = [_copied(rest)] if rest.num_rows else []
        self._waiting_rows, self.waiting_bytes = rest.num_rows, _table_bytes(rest)

    def flush(self) -> None:
        """Write the waiting rows as row groups of their own."""
        if self._waiting:
            self._write_waiting()

    def write_last(self, table: Table) -> None:
        """Write the waiting rows and a checked table, then the end of the file."""
        self.write(table)
        self.close()

    def close(self) -> None:
        """Write the waiting rows and the footer, and put the file in its place."""
        if self._waiting:
            self._write_waiting()
        self._write_footer({})
        if self._meter is not None:
            self._meter.finish()
        self._sink.commit()

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self.waiting_bytes = 0
        self._write_rows(Table.concat(waiting))

    def _write_rows(self, table: Table) -> None:
        table_bytes = _table_bytes(table)
        size = self._row_group_rows(table.num_rows, table_bytes)
        if self._row_order is not None:
            table = self._row_order.apply(table, size)
        leaves = table_leaves(table, self._schema)
        if table.num_rows and any(spec.choice is None for spec in self._specs):
            self._choose_encodings(leaves, table.num_rows, size)
        starts = range(0, table.num_rows, size)
        order = None if self._row_order is None else self._row_order.sorting_columns
        entries = [
            fmt.RowGroup(
                columns=[], total_byte_size=0, num_rows=min(size, table.num_rows - start), sorting_columns=order
            )
            for start in starts
        ]
        groups, columns = self._row_groups, [*zip(leaves, self._schema.paths, self._specs, strict=True)]
        wanted = (
            ChunkToWrite(leaf, path, spec, groups.cipher(ordinal, index), ordinal, start, min(start + size, table.num_rows))
            for ordinal, start in enumerate(starts, groups.next_ordinal(len(starts)))
            for index, (leaf, path, spec) in enumerate(columns)
        )
        # with threads, chunks are encoded ahead of the file, across row groups
        threads = 1 if table_bytes < LEAST_PARALLEL * len(starts) * len(leaves) else resolve_threads(self._threads)
        if threads == 1:
            chunks = (encode_chunk(chunk, self._sink.write_together) for chunk in wanted)
        else:
            from fastpq.write.ahead import write_ahead

            chunks = write_ahead(wanted, self._sink, threads)
        every = self._properties.checkpoint_every
        with closing(chunks):
            for entry in entries:
                span = None if self._meter is None else self._meter.span(entry.num_rows)
                groups.add(entry, self._place(islice(chunks, len(leaves)), span))
                self._sink.flush()
                if every and len(groups) % every == 0:
                    self._write_footer({CHECKPOINT_KEY: str(len(groups))})
                    self._sink.persist()

    def _place(self, chunks: Iterable[EncodedChunk], span: Span | None) -> list[PlacedChunk]:
        """Write the pages of a row group, and tell of progress after each chunk."""
        placed: list[PlacedChunk] = []
        starts: list[tuple[EncodedChunk, int]] = []
        for done, chunk in enumerate(chunks, 1):
            starts.append((chunk, chunk.place(self._sink)))
            if span is not None:
                span.reach(done, len(self._specs))
            if len(starts) == DESCRIBED_TOGETHER or done == len(self._specs):
                placed += [chunk.placed(start) for chunk, start in starts]
                starts.clear()
        return placed

    def _choose_encodings(self, leaves: list[LeafToWrite], num_rows: int, size: int) -> None:
        """Choose the encodings still open by samples of the leaves."""

        def choose(index: int) -> EncodingChoice | None:
            try:
                return choose_by_sample(leaves[index], self._specs[index], num_rows, size)
            except ParquetError as error:
                error.at(column=self._schema.columns[index].name)
                raise

        undecided = [index for index, spec in enumerate(self._specs) if spec.choice is None]
        for index, choice in zip(undecided, run_parallel(choose, undecided, resolve_threads(self._threads)), strict=True):
            if choice is not None:
                self._specs[index] = self._specs[index].with_choice(choice)

    def _row_group_rows(self, num_rows: int, table_bytes: int) -> int:
        """Rows of a row group within both of its bounds, rows and bytes, for rows of so many bytes."""
        most = self._properties.row_group_size
        bytes_a_row = table_bytes / max(num_rows, 1)
        by_bytes = int(self._properties.row_group_bytes / bytes_a_row) if bytes_a_row else most
        return max(1, min(most, by_bytes))

    def _write_footer(self, added: Mapping[str, str]) -> None:
        """Write a footer of the row groups so far; a reader needs no other one."""
        described = {**self._description.key_values(self._schema.paths), **added} if self._description.has_key_values else added
        self._row_groups.write_footer(
            fmt.FileMetaData(
                version=FORMAT_VERSION,
                schema=self._schema.elements,
                num_rows=0,
                row_groups=[],
                key_value_metadata=[fmt.KeyValue(key=key, value=value) for key, value in described.items()] or None,
                created_by=f"fastpq version {VERSION}",
                column_orders=[spec.column_order for spec in self._specs],
            )
        )


def _table_bytes(table: Table) -> int:
    return sum(column.used_bytes() for column in table.columns)


def _copied(table: Table) -> Table:
    return Table.concat([table, table.slice(0, 0)])     # a concatenation of one table would be the table itself


def _fields(schema: ParquetSchema) -> list[tuple[str, DataType]]:
    """Names and types of the columns for a reader of the schema."""
    shapes = [shape_of(node, _leaf_numbers(node)) for node in schema.root.children]
    return [(shape.name, shape.type) for shape in shapes]


def _leaf_numbers(node: SchemaNode) -> range:
    """Numbers of the leaves at or below a node."""
    if isinstance(node, ColumnDescriptor):
        return range(node.index, node.index + 1)
    assert isinstance(node, GroupNode)
    return range(node.first, node.last)

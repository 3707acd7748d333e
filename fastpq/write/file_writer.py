"""FileWriter: a file with a schema, whose tables become row groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from fastpq import format as fmt
from fastpq.arrays.memory import idle_bytes, release
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
from fastpq.write.chunk_metadata import entry_pattern
from fastpq.write.chunks import ChunkToWrite, EncodedChunk, encode_chunk
from fastpq.write.row_groups import PlacedChunk, RowGroups
from fastpq.write.sampling import choose_by_sample
from fastpq.write.sorting import RowOrder
from fastpq.write.spec import ColumnSpec

if TYPE_CHECKING:
    from fastpq.write.plain_entry import EntryPattern
    from fastpq.write.row_group_appending import AppendedFile
    from fastpq.write.row_group_in_parts import RowGroupInParts

FORMAT_VERSION = 2
LEAST_PARALLEL = 1 << 16    # average bytes per chunk from which on threads save time (benchmarks.small)
# Number of chunks whose footer entries and page indexes are made together, after their pages are written. The reason is the one
# for COLUMNS_OPENED (fastpq.read.costs).
CHUNKS_PER_DESCRIPTION = 64
MOST_IDLE = 64 << 20         # bytes of idle memory that a writer may leave behind when it closes


class Description(Protocol):
    """The source for a file's key-value metadata."""

    has_key_values: bool        # whether there may be entries

    def key_values(self, paths: Sequence[tuple[str, ...]]) -> Mapping[str, str]: ...


class FileWriter:
    """Writes tables with one schema as row groups.

    Args:
        sink: the new file, which has its magic already.
        schema: file schema.
        properties: options for columns and row groups.
        specs: how each column is written.
        row_groups: the file's row groups, still empty.
        threads: how many column chunks are encoded at the same time. None takes one for each core.
        meter: receives the number of written rows; None without progress.
        description: source for the key-value metadata in each footer.
        appended: the existing file that gets the rows, or None for a new file.

    Attributes:
        last_row_group_bytes: stored size of the last row group in bytes. 0 if there is none.

    Raises:
        SchemaError: options for unknown columns, or content-defined chunks in an encrypted file.
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
        appended: AppendedFile | None = None,
    ) -> None:
        if properties.use_content_defined_chunking and not row_groups.is_plaintext:
            raise SchemaError(
                "use_content_defined_chunking has no use in an encrypted file: every page has a nonce of its own, so that equal "
                "pages are different bytes"
            )
        self._appended = appended
        self._sink = sink
        self._schema = schema
        self._properties = properties
        self._specs = specs
        self._row_groups = row_groups
        self._threads = threads
        self._meter = meter
        self._description = description
        self._row_order = RowOrder(schema, properties) if properties.sort_by or properties.sorting_columns else None
        self._idle_before = idle_bytes()
        # The current row group: the rows that are already encoded, if there are some, then the others. The counts include both.
        self._row_group_in_work: RowGroupInParts | None = None
        self._waiting: list[Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._encoded_bytes = 0         # what the encoded rows took before they were encoded
        self.last_row_group_bytes = self._written_rows = 0
        # The EntryPattern for each spec, by the spec's id. The spec is kept too, so that no other object gets this id.
        self._patterns: dict[int, tuple[ColumnSpec, EntryPattern | None]] = {}

    @property
    def waiting(self) -> tuple[int, int]:
        """How many rows wait until they fill a row group, and their bytes. Some may be encoded already."""
        return self._waiting_rows, self._waiting_bytes

    @property
    def held_bytes(self) -> int:
        """Memory that the current row group's rows take, in bytes."""
        page_bytes = 0 if self._row_group_in_work is None else self._row_group_in_work.bytes_in_memory
        return self._waiting_bytes - self._encoded_bytes + page_bytes

    @cached_property
    def fields(self) -> list[tuple[str, DataType]]:
        """Names and types of the columns, as a reader of the schema has them."""
        return _fields(self._schema)

    def encodings(self) -> dict[str, EncodingChoice]:
        """Return the encodings that were chosen so far, by dotted path."""
        columns = zip(self._schema.columns, self._specs, strict=True)
        return {column.name: spec.choice for column, spec in columns if spec.choice is not None}

    def check(self, table: Table, schema: ParquetSchema) -> None:
        """Refuse a table whose columns differ from those in the file's first table.

        Args:
            table: the table.
            schema: the table's schema.

        Raises:
            SchemaError: different names or types, or nulls in a required column.
        """
        if schema is not self._schema and (fields := _fields(schema)) != self.fields:
            raise _mismatch(fields, self.fields)
        for node, column in zip(self._schema.root.children, table.columns, strict=True):
            if not node.nullable and column.null_count:
                raise SchemaError(
                    "nulls in a column that the first table or the schema made required", column=node.element.name
                )

    def write(self, table: Table) -> None:
        """Write the waiting rows and then a checked table, each as their own row groups."""
        self.flush()
        self._write_rows([table])

    def add(self, table: Table) -> None:
        """Keep a checked table's rows until they fill a row group. The caller may change the arrays afterwards.

        If many rows wait, most are encoded already. The row group then takes little more memory than its stored bytes.
        """
        self._add(table, _copy, in_parts=True)

    def add_constant(self, table: Table) -> None:
        """Like ``add``, for a table whose memory nobody changes. The memory is kept, not copied."""
        self._add(table, lambda table: table, in_parts=True)

    def add_resident(self, table: Table) -> None:
        """Like ``add_constant``, for a table that stays in memory anyway. Its row groups are encoded when they are complete."""
        self._add(table, lambda table: table, in_parts=False)

    def _add(self, table: Table, keep: Callable[[Table], Table], *, in_parts: bool) -> None:
        self._waiting_rows += table.num_rows
        self._waiting_bytes += _table_bytes(table)
        if self._waiting_rows < self._properties.row_group_size and self._waiting_bytes < self._properties.row_group_bytes:
            self._waiting.append(table)
            if in_parts:
                self._encode_waiting_rows()
            if self._waiting and self._waiting[-1] is table:
                self._waiting[-1] = keep(table)
            return
        size = self._row_group_rows(self._waiting_rows, self._waiting_bytes)
        rest = [*self._waiting, table]
        self._waiting = []
        if self._row_group_in_work is not None:
            last, rest = _split(rest, max(0, size - self._row_group_in_work.num_rows))
            self._end_encoded_rows(last)
        num_rows = sum(part.num_rows for part in rest)
        whole, rest = _split(rest, num_rows - num_rows % size)
        if whole:
            self._write_rows(whole)
        self._waiting = [*map(keep, rest)]
        self._waiting_rows, self._waiting_bytes = sum(part.num_rows for part in rest), sum(map(_table_bytes, rest))

    def _encode_waiting_rows(self) -> None:
        """Encode the waiting rows that fill pages. Leave them if something needs the whole row group together."""
        from fastpq.write.row_group_in_parts import RowGroupInParts, may_be_in_parts, part_bytes

        properties = self._properties
        num_rows = self._waiting_rows - (0 if self._row_group_in_work is None else self._row_group_in_work.num_rows)
        num_bytes = self._waiting_bytes - self._encoded_bytes
        enough = part_bytes(
            len(self._specs), num_bytes / max(num_rows, 1), properties.data_page_rows, properties.data_page_size
        )
        if num_bytes < enough or self._row_order is not None:
            return
        if self._row_group_in_work is None:
            if not may_be_in_parts(self._waiting[0], self._specs):
                return
            ordinal = self._row_groups.next_ordinal(1)
            ciphers = [self._row_groups.cipher(ordinal, number) for number in range(len(self._specs))]
            self._row_group_in_work = RowGroupInParts(self._schema, self._specs, ciphers, ordinal, self._sink.folder)
        surplus = num_rows % properties.data_page_rows
        part, rest = _split(self._waiting, num_rows - surplus if surplus < num_rows else num_rows)
        self._waiting = [*map(_copy, rest)]     # a slice would keep its whole table in memory
        part_size = num_bytes - sum(map(_table_bytes, rest))
        self._row_group_in_work.add(part, self._threads_for(part_size, 1))
        self._encoded_bytes += part_size

    def _end_encoded_rows(self, last: Sequence[Table]) -> None:
        """Write the row group whose first rows are encoded already. The tables have its last rows."""
        row_group, self._row_group_in_work, self._encoded_bytes = self._row_group_in_work, None, 0
        assert row_group is not None
        chunks = row_group.chunks(last, self._threads_for(sum(map(_table_bytes, last)), 1))
        self._add_row_group(fmt.RowGroup(columns=[], total_byte_size=0, num_rows=row_group.num_rows), chunks)

    def flush(self) -> None:
        """Write the waiting rows as their own row groups."""
        waiting_tables = self.taken_rows()
        if self._row_group_in_work is not None:
            self._waiting_rows = self._waiting_bytes = 0
            self._end_encoded_rows(waiting_tables)
        elif waiting_tables:
            self._write_rows(waiting_tables)

    def taken_rows(self) -> list[Table]:
        """Return the waiting rows that are not encoded, and forget them. They are not written to this file."""
        waiting_tables, self._waiting = self._waiting, []
        self._waiting_rows = 0 if self._row_group_in_work is None else self._row_group_in_work.num_rows
        self._waiting_bytes = self._encoded_bytes
        return waiting_tables

    def write_last(self, table: Table) -> None:
        """Write the waiting rows, a checked table and the file's end."""
        self.write(table)
        self.close()

    def close(self) -> None:
        """Write the waiting rows and the footer, and put the file in its place.

        Idle memory beyond MOST_IDLE goes back to the operating system, but not what was idle before the file was opened.
        """
        self.flush()
        self._write_footer({})
        if self._meter is not None:
            self._meter.finish()
        self._sink.commit()
        release(max(MOST_IDLE, self._idle_before))

    def _write_rows(self, tables: Sequence[Table]) -> None:
        """Write some tables' rows as row groups. A row group may have rows from several tables."""
        table_bytes, num_rows = sum(map(_table_bytes, tables)), sum(table.num_rows for table in tables)
        size = self._row_group_rows(num_rows, table_bytes)
        if self._row_order is not None:
            tables = [self._row_order.apply(Table.concat(tables), size)]
        leaves = table_leaves(tables, self._schema)
        if num_rows and any(spec.choice is None for spec in self._specs):
            self._choose_encodings(leaves, num_rows, size)
        starts = range(0, num_rows, size)
        order = None if self._row_order is None else self._row_order.sorting_columns
        entries = [
            fmt.RowGroup(
                columns=[], total_byte_size=0, num_rows=min(size, num_rows - start), sorting_columns=order
            )
            for start in starts
        ]
        groups = self._row_groups
        chunks_to_write = (
            ChunkToWrite(leaf, path, spec, groups.cipher(ordinal, index), ordinal, start, min(start + size, num_rows))
            for ordinal, start in enumerate(starts, groups.next_ordinal(len(starts)))
            for index, (leaf, path, spec) in enumerate(zip(leaves, self._schema.paths, self._specs, strict=True))
        )
        # threads encode chunks before the file reaches them, across row groups
        threads = self._threads_for(table_bytes, len(starts))
        if threads == 1:
            chunks = (encode_chunk(chunk, self._sink.write_together) for chunk in chunks_to_write)
        else:
            from fastpq.write.parallel_chunks import encode_parallel

            chunks = encode_parallel(chunks_to_write, self._sink, threads)
        with closing(chunks):
            for entry in entries:
                self._add_row_group(entry, islice(chunks, len(leaves)))

    def _threads_for(self, num_bytes: int, row_groups: int) -> int:
        """Return how many threads encode row groups that have so many bytes together. One is faster for small chunks."""
        return 1 if num_bytes < LEAST_PARALLEL * row_groups * len(self._specs) else resolve_threads(self._threads)

    def _add_row_group(self, entry: fmt.RowGroup, chunks: Iterable[EncodedChunk]) -> None:
        """Write a row group's pages, and add its footer entry."""
        groups, every = self._row_groups, self._properties.checkpoint_every
        span = None if self._meter is None else self._meter.span(entry.num_rows)
        start = self._sink.size
        placed_chunks, has_one_page = self._place(chunks, span)
        # the statistics of chunks with one page say what their page indexes would say
        groups.add(entry, placed_chunks, with_page_indexes=not has_one_page or self._properties.encoding != "auto")
        self._written_rows += entry.num_rows
        self._sink.flush()
        self.last_row_group_bytes = self._sink.size - start
        if every and len(groups) % every == 0:
            self._write_footer({CHECKPOINT_KEY: str(len(groups))})
            self._sink.persist()

    def _place(self, chunks: Iterable[EncodedChunk], span: Span | None) -> tuple[list[PlacedChunk], bool]:
        """Write a row group's pages, and report progress after each chunk.

        Returns:
            The chunks with their places, and whether none has several data pages.
        """
        placed_chunks: list[PlacedChunk] = []
        starts: list[tuple[EncodedChunk, int]] = []
        has_one_page = True
        for number, chunk in enumerate(chunks, 1):
            starts.append((chunk, chunk.place(self._sink)))
            if span is not None:
                span.reach(number, len(self._specs))
            has_one_page = has_one_page and chunk.writer.num_data_pages <= 1
            if len(starts) == CHUNKS_PER_DESCRIPTION or number == len(self._specs):
                placed_chunks += [chunk.placed(start, self._pattern(chunk.spec)) for chunk, start in starts]
                starts.clear()
        return placed_chunks, has_one_page

    def _pattern(self, spec: ColumnSpec) -> EntryPattern | None:
        """Return what encodes the footer entries of ordinary chunks with this spec, or None."""
        known_spec, pattern = self._patterns.get(id(spec), (None, None))
        if known_spec is None:
            pattern = entry_pattern(spec)
            self._patterns[id(spec)] = spec, pattern
        return pattern

    def _choose_encodings(self, leaves: list[LeafToWrite], num_rows: int, size: int) -> None:
        """Choose the encodings that are still open, using samples from the leaves."""

        def choose(index: int) -> EncodingChoice | None:
            try:
                return choose_by_sample(leaves[index], self._specs[index], num_rows, size)
            except ParquetError as error:
                error.at(column=self._schema.columns[index].name)
                raise

        open_choices = [index for index, spec in enumerate(self._specs) if spec.choice is None]
        choices = run_parallel(choose, open_choices, resolve_threads(self._threads))
        for index, choice in zip(open_choices, choices, strict=True):
            if choice is not None:
                self._specs[index] = self._specs[index].with_choice(choice)

    def _row_group_rows(self, num_rows: int, table_bytes: int) -> int:
        """Return how many rows a row group gets, within its bounds for rows and bytes."""
        most = self._properties.row_group_size
        bytes_a_row = table_bytes / max(num_rows, 1)
        by_bytes = int(self._properties.row_group_bytes / bytes_a_row) if bytes_a_row else most
        return max(1, min(most, by_bytes))

    def _write_footer(self, more: Mapping[str, str]) -> None:
        """Write a footer for the row groups so far, with some more key-value metadata. A reader needs only this footer."""
        entries = {**self._description.key_values(self._schema.paths), **more} if self._description.has_key_values else more
        if self._appended is not None:
            self._row_groups.write_footer(self._appended.new_footer(self._written_rows, entries))
            return
        self._row_groups.write_footer(
            fmt.FileMetaData(
                version=FORMAT_VERSION,
                schema=self._schema.elements,
                num_rows=0,
                row_groups=[],
                key_value_metadata=[fmt.KeyValue(key=key, value=value) for key, value in entries.items()] or None,
                created_by=f"fastpq version {VERSION}",
                column_orders=[spec.column_order for spec in self._specs],
            )
        )


def missing_rows(rows: Table, properties: WriterProperties, waiting_rows: int, waiting_bytes: int) -> int:
    """Return how many more rows fill a row group, at least 1.

    Args:
        rows: the next rows.
        properties: limits of row groups.
        waiting_rows, waiting_bytes: number and bytes of the rows that the row group has already.
    """
    count = properties.row_group_size - waiting_rows
    if size := _table_bytes(rows):
        count = min(count, (properties.row_group_bytes - waiting_bytes) * rows.num_rows // size + 1)
    return max(1, count)


def _table_bytes(table: Table) -> int:
    return sum(column.used_bytes() for column in table.columns)


def _split(tables: Sequence[Table], num_rows: int) -> tuple[list[Table], list[Table]]:
    """Return the tables with the first rows, and the tables with all other rows."""
    first: list[Table] = []
    rest: list[Table] = []
    for table in tables:
        if rest or (table.num_rows > num_rows and num_rows == 0):
            rest.append(table)
        elif table.num_rows <= num_rows:
            first.append(table)
            num_rows -= table.num_rows
        else:
            first.append(table.slice(0, num_rows))
            rest.append(table.slice(num_rows))
    return first, rest


def _copy(table: Table) -> Table:
    return Table.concat([table, table.slice(0, 0)])     # a concatenation of one table would be the table itself


def _fields(schema: ParquetSchema) -> list[tuple[str, DataType]]:
    """Return the columns' names and types, as a reader of the schema has them."""
    shapes = [shape_of(node, _leaf_numbers(node)) for node in schema.root.children]
    return [(shape.name, shape.type) for shape in shapes]


def _leaf_numbers(node: SchemaNode) -> range:
    """Return the leaf numbers at or below a node."""
    if isinstance(node, ColumnDescriptor):
        return range(node.index, node.index + 1)
    assert isinstance(node, GroupNode)
    return range(node.first, node.last)


def _mismatch(fields: list[tuple[str, DataType]], file_fields: list[tuple[str, DataType]]) -> SchemaError:
    """Return the error for a table whose columns differ from the file's columns."""
    names, file_names = ([name for name, _ in each] for each in (fields, file_fields))
    if names == file_names:
        name, type_, own = next((name, one, own) for (name, one), (_, own) in zip(fields, file_fields, strict=True) if one != own)
        return SchemaError(f"the table has a column of {type_}, and the file has a column of {own}", column=name)
    missing = [name for name in file_names if name not in names]
    surplus = [name for name in names if name not in file_names]
    parts = [f"{verb} {', '.join(map(repr, some))}" for verb, some in (("lacks", missing), ("also has", surplus)) if some]
    detail = " and ".join(parts) or f"has {', '.join(map(repr, names))} in place of {', '.join(map(repr, file_names))}"
    return SchemaError(f"the table does not have the file's columns: it {detail}")

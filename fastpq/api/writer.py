"""ParquetWriter: writing one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Lock, get_ident
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from fastpq import format as fmt
from fastpq.api.writer_options import WriterOptions
from fastpq.arrays.nested_columns import used_bytes
from fastpq.arrays.nodes import FieldNode as ArrowField
from fastpq.arrays.table import Table
from fastpq.arrow.hints import arrow_fields, arrow_schema_entry, needs_arrow_schema
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.shred import LeafToWrite, leaves_to_write
from fastpq.common.parallel import resolve_threads, run_ordered, run_parallel
from fastpq.common.progress import Meter, Progress
from fastpq.convert.dataframes import PANDAS_KEY, has_arrow_dtypes, is_dataframe, table_from_dataframe
from fastpq.convert.numpy_input import table_from
from fastpq.encryption.encryptor import FileEncryptor
from fastpq.encryption.file_ciphers import open_file_encryptor
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import LimitError, ParquetError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY, CHECKPOINT_KEY
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.output import PageIndexes, write_bloom_filter
from fastpq.index.written_pages import WrittenPages
from fastpq.io.sink import open_sink
from fastpq.metadata.footer import write_footer
from fastpq.options import WriterProperties, spelled_out, with_options
from fastpq.schema.nested_types import DataType
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.shape import shape_of
from fastpq.schema.types import ColumnType
from fastpq.variant.shredding_choice import Shredder, Shredding
from fastpq.version import VERSION
from fastpq.write.choice import EncodingChoice
from fastpq.write.chunks import ColumnSpec, plan_columns
from fastpq.write.sampling import choose_by_sample
from fastpq.write.sorting import RowOrder

FORMAT_VERSION = 2
LARGEST_ROW_GROUP_ORDINAL = 32767
MAGIC_LENGTH = 4


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A column chunk whose pages are written: its plain entry in the footer, and what its indexes are made of."""

    entry: fmt.ColumnChunk
    pages: WrittenPages
    first_page: int         # offset of the first data page
    bloom_filter: SplitBlockBloomFilter | None


@spelled_out
class ParquetWriter:
    """Writes a Parquet file, all of it or none; a context manager.

    The target holds its old contents until ``close`` succeeds; an exception inside the ``with`` block leaves it as it was.

    Args:
        where: a path, a writable binary file object or a URL that fsspec knows.
        schema: column types by name, a ParquetSchema, or None to take the schema of the first table. A name without a type
            in it keeps the type that its values have.
        properties: how to write; options go before it.
        threads: number of columns that are encoded at the same time; None for one a core.
        encryption_properties: keys; None writes a plaintext file.
        shred: how variant columns are shredded, by name: a shredding schema (``fastpq.variant.shredding_schema``), or
            ``"infer"`` for one that the first table suggests.
        progress: called as ``progress(done, total)``, in rows of the tables given so far; the last call, in
            ``close``, behind the footer and before the file takes its place, is ``(total, total)``. An exception from it leaves
            the target as it was. It may call ``abort``, which ends the write with a ValueError, and no other method that writes.
        **options: any of the fields of WriterProperties:

    Raises:
        SchemaError: options that name unknown columns, or tables of another schema.
        UnsupportedError: a codec or an encoding that fastpq does not write.
    """

    def __init__(
        self,
        where: Any,
        schema: Mapping[str, ColumnType] | ParquetSchema | None = None,
        *,
        properties: WriterProperties | None = None,
        threads: int | None = None,
        encryption_properties: FileEncryptionProperties | None = None,
        shred: Mapping[str, Shredding] | None = None,
        progress: Progress | None = None,
        **options: Unpack[WriterOptions],
    ) -> None:
        self._properties = with_options(properties, options)
        self._meter = Meter(progress, holds_last=True)
        self._threads = resolve_threads(threads)
        self._encryption_properties = encryption_properties
        self._types = _types_of(schema)
        self._shredder = Shredder(shred) if shred else None
        self._described: dict[str, str] = {}       # what the first DataFrame's metadata says
        self._arrow_fields: ArrowField | None = None
        self._schema: ParquetSchema | None = schema if isinstance(schema, ParquetSchema) else None
        self._columns: list[ColumnSpec] = []
        self._row_order: RowOrder | None = None
        self._encryptor: FileEncryptor | None = None
        self._pending: list[Table] = []
        self._pending_rows = self._pending_bytes = 0
        self._row_groups: list[fmt.RowGroup] = []
        self._page_indexes = PageIndexes()
        self._num_rows = 0
        self._open = True
        self._lock = Lock()
        self._busy_thread: int | None = None    # the one that holds the lock
        self._sink = open_sink(where)
        if self._schema is not None:
            self._guarded(self._begin, self._schema)

    def write_table(self, data: Any) -> None:
        """Write rows as row groups of their own.

        Args:
            data: a Table, a dict of arrays, a structured array, a pandas DataFrame, or anything with the Arrow C data interface.
        """
        self._guarded(self._write_all, data)

    def write_batch(self, data: Any) -> None:
        """Add rows, which are written when enough for a row group have come, by number or bytes, or at the end.

        Args:
            data: as for ``write_table``; the arrays may be used again.
        """
        self._guarded(self._add, data)

    def close(self) -> None:
        """Write what is left and the footer, and put the file in its place."""
        if self._open:
            self._guarded(self._finish)

    def abort(self) -> None:
        """Give up: the target stays as it was."""
        if self._open:
            self._open = False
            self._sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if kind is None:
            self.close()
        else:
            self.abort()
        return False

    def encodings(self) -> dict[str, EncodingChoice]:
        """The encoding of each column and the reason for it, by dotted path.

        With ``encoding="auto"`` a column is in it as soon as rows have been written in which it has a value.
        """
        return {plan.descriptor.name: plan.choice for plan in self._columns if plan.choice is not None}

    def _guarded(self, action: Any, *arguments: Any) -> None:
        """Do it, one thread at a time; on any error the file is abandoned."""
        if self._busy_thread == get_ident():
            raise ValueError("the writer is busy in this thread: progress cannot write or close, only abort")
        with self._lock:
            if not self._open:
                raise ValueError("the writer is closed")
            self._busy_thread = get_ident()
            try:
                action(*arguments)
            except BaseException as error:
                self.abort()
                if isinstance(error, ParquetError):
                    error.at(path=self._sink.name)
                raise
            finally:
                self._busy_thread = None

    def _check_not_aborted(self) -> None:
        """Raises ValueError if ``abort`` was called by progress."""
        if not self._open:
            raise ValueError("the writer was aborted while it wrote")

    def _begin(self, schema: ParquetSchema) -> None:
        self._schema = schema
        self._columns = plan_columns(schema, self._properties)
        self._row_order = RowOrder(schema, self._properties)
        self._encryptor = open_file_encryptor(self._encryption_properties, [column.path for column in schema.columns])
        self._sink.write(self._encryptor.magic)

    def _take(self, data: Any) -> Table:
        """The data as a Table of the file's schema, which the first one settles."""
        with_arrow = self._properties.arrow_schema
        if is_dataframe(data):
            with_arrow = has_arrow_dtypes(data) if with_arrow is None else with_arrow
            # categories are values, and the footer's metadata are open to whoever reads the footer
            data, described = table_from_dataframe(data, with_categories=self._encryption_properties is None)
            self._described.setdefault(PANDAS_KEY, described)
        table = table_from(data, self._types)
        if self._shredder is not None:
            table = self._shredder(table)
        self._describe_arrow(table, bool(with_arrow))
        schema = table.schema
        if self._schema is None:
            self._begin(schema)
        assert self._schema is not None
        _check_schema(self._schema, table)
        self._meter.expect(table.num_rows)
        self._check_not_aborted()
        return table

    def _describe_arrow(self, table: Table, wanted: bool) -> None:
        """Keep what the first table's columns were in Arrow."""
        if self._arrow_fields is None and wanted:
            self._arrow_fields = arrow_fields(table)
        if self._arrow_fields is not None:
            return
        for name, column in table.items():
            if needs_arrow_schema(column):
                raise UnsupportedError("durations, which Parquet does not have; arrow_schema=True keeps them", column=name)

    def _key_values(self) -> dict[str, str]:
        """The footer's metadata."""
        found = self._described | dict(self._properties.key_value_metadata)
        if self._arrow_fields is not None:
            found.setdefault(ARROW_KEY, arrow_schema_entry(self._arrow_fields, found))
        return found

    def _write_all(self, data: Any) -> None:
        table = self._take(data)
        self._flush()
        self._write_rows(table)

    def _add(self, data: Any) -> None:
        table = self._take(data)
        self._pending_rows += table.num_rows
        self._pending_bytes += _used_bytes(table)
        enough = self._properties.row_group_size, self._properties.row_group_bytes
        if self._pending_rows < enough[0] and self._pending_bytes < enough[1]:
            # a copy, for the caller may fill the same arrays again
            self._pending.append(Table.concat([table, table.slice(0, 0)]))
            return
        table = Table.concat([*self._pending, table])
        whole = table.num_rows - table.num_rows % self._row_group_rows(table)
        if whole:
            self._write_rows(table.slice(0, whole))
        rest = table.slice(whole)
        self._pending = [Table.concat([rest, rest.slice(0, 0)])] if rest.num_rows else []
        self._pending_rows, self._pending_bytes = rest.num_rows, _used_bytes(rest)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        self._pending_rows = self._pending_bytes = 0
        if pending:
            self._write_rows(Table.concat(pending))

    def _write_rows(self, table: Table) -> None:
        size = self._row_group_rows(table)
        assert self._schema is not None
        assert self._row_order is not None
        table = self._row_order.apply(table, size)
        nodes = zip(table.columns, self._schema.root.children, strict=True)
        leaves = [leaf for column, node in nodes for leaf in leaves_to_write(column, node.nullable)]
        self._choose_encodings(leaves, table.num_rows, size)
        starts = range(0, table.num_rows, size)
        first = len(self._row_groups)
        if first + len(starts) > LARGEST_ROW_GROUP_ORDINAL + 1:
            raise LimitError(f"more than {LARGEST_ROW_GROUP_ORDINAL + 1} row groups: use larger ones")

        def encode(place: tuple[int, int, int]) -> ChunkWriter:
            ordinal, start, index = place
            return self._encode(index, leaves[index], ordinal, start, min(start + size, table.num_rows))

        places = [
            (ordinal, start, index) for ordinal, start in enumerate(starts, first) for index in range(len(leaves))
        ]
        # chunks are encoded ahead of the file, over the bounds of row groups
        chunks = run_ordered(encode, places, self._threads)
        every = self._properties.checkpoint_every
        for start in starts:
            num_rows = min(size, table.num_rows - start)
            self._write_row_group(self._counted(islice(chunks, len(leaves)), num_rows), num_rows)
            if every and len(self._row_groups) % every == 0:
                self._checkpoint()

    def _counted(self, chunks: Iterable[ChunkWriter], num_rows: int) -> Iterator[ChunkWriter]:
        """The chunks of a row group; each is told of as done when the next is asked for."""
        span = self._meter.span(num_rows)
        for done, chunk in enumerate(chunks, 1):
            yield chunk
            if span is not None:
                span.reach(done, len(self._columns))
                self._check_not_aborted()

    def _choose_encodings(self, leaves: list[LeafToWrite], num_rows: int, size: int) -> None:
        """Settle the encodings that are to be chosen by a sample, where there are values to choose by."""

        def choose(index: int) -> EncodingChoice | None:
            try:
                return choose_by_sample(leaves[index], self._columns[index], num_rows, size)
            except ParquetError as error:
                error.at(column=self._columns[index].descriptor.name)
                raise

        open_ones = [index for index, plan in enumerate(self._columns) if plan.choice is None and num_rows]
        for index, choice in zip(open_ones, run_parallel(choose, open_ones, self._threads), strict=True):
            if choice is not None:
                self._columns[index] = self._columns[index].with_choice(choice)

    def _row_group_rows(self, table: Table) -> int:
        """Rows of a row group within both of its bounds."""
        bytes_a_row = _used_bytes(table) / max(table.num_rows, 1)
        by_bytes = int(self._properties.row_group_bytes / bytes_a_row) if bytes_a_row else self._properties.row_group_size
        return max(1, min(self._properties.row_group_size, by_bytes))

    def _write_row_group(self, chunks: Iterable[ChunkWriter], num_rows: int) -> None:
        assert self._encryptor is not None
        assert self._row_order is not None
        ordinal = len(self._row_groups)
        offset = self._sink.tell()
        placed: list[PlacedChunk] = []
        plain_size = stored_size = 0
        for index, chunk in enumerate(chunks):
            placed.append(self._place(index, chunk))
            plain_size += chunk.uncompressed_size
            stored_size += chunk.stored_size
        self._row_groups.append(
            fmt.RowGroup(
                columns=[self._enter(index, chunk, ordinal) for index, chunk in enumerate(placed)],
                total_byte_size=plain_size,
                num_rows=num_rows,
                sorting_columns=self._encryptor.sorting_columns(self._row_order.sorting_columns),
                file_offset=offset,
                total_compressed_size=stored_size,
                ordinal=ordinal,
            )
        )
        self._num_rows += num_rows

    def _encode(self, index: int, leaf: LeafToWrite, ordinal: int, start: int, stop: int) -> ChunkWriter:
        plan = self._columns[index]
        assert self._encryptor is not None
        cipher = self._encryptor.chunk_cipher(plan.descriptor.path, ordinal, index)
        try:
            values = leaf.rows(plan.layout, start, stop)
            writer = ChunkWriter(values, plan.codec, cipher, plan.settings)
            writer.write(0, stop - start)
            writer.geospatial_statistics = plan.geospatial_statistics(values)
        except ParquetError as error:
            error.at(column=plan.descriptor.name, row_group=ordinal)
            raise
        return writer

    def _place(self, index: int, chunk: ChunkWriter) -> PlacedChunk:
        """Write a chunk's pieces."""
        start = self._sink.tell()
        for piece in chunk.pieces:
            self._sink.write(piece)
        pages = self._columns[index].written_pages(chunk)
        entry = self._columns[index].column_chunk(chunk, pages, start)
        return PlacedChunk(entry, pages, start + chunk.dictionary_page_size, chunk.bloom_filter)

    def _enter(self, index: int, placed: PlacedChunk, ordinal: int) -> fmt.ColumnChunk:
        """Write a chunk's bloom filter and keep its page index; returns its entry in the footer as it is stored."""
        assert self._encryptor is not None
        assert placed.entry.meta_data is not None
        plan = self._columns[index]
        cipher = self._encryptor.chunk_cipher(plan.descriptor.path, ordinal, index)
        if placed.bloom_filter is not None:
            write_bloom_filter(self._sink, placed.bloom_filter, placed.entry.meta_data, cipher)
        stored = self._encryptor.column_chunk(placed.entry, ordinal, index)
        if plan.has_page_index:
            self._page_indexes.add(stored, *plan.page_index(placed.pages, placed.first_page), cipher)
        return stored

    def _finish(self) -> None:
        self._flush()
        if self._schema is None:
            raise SchemaError("a file needs a schema: pass one, or write a table")
        self._write_footer({})
        self._meter.finish()
        self._check_not_aborted()
        self._open = False
        self._sink.commit()

    def _checkpoint(self) -> None:
        """Write a footer of the row groups so far, by which the file can be read if no other follows."""
        self._write_footer({CHECKPOINT_KEY: str(len(self._row_groups))})
        self._sink.persist()

    def _write_footer(self, added: dict[str, str]) -> None:
        """Write the page indexes that are not written yet and a footer of all row groups, with key-value metadata of its own."""
        assert self._schema is not None
        assert self._encryptor is not None
        self._page_indexes.write(self._sink)
        described = self._key_values() | added
        metadata = fmt.FileMetaData(
            version=FORMAT_VERSION,
            schema=self._schema.to_thrift(),
            num_rows=self._num_rows,
            row_groups=self._row_groups,
            key_value_metadata=[fmt.KeyValue(key=key, value=value) for key, value in described.items()] or None,
            created_by=f"fastpq version {VERSION}",
            column_orders=[plan.column_order for plan in self._columns],
            encryption_algorithm=self._encryptor.encryption_algorithm,
            footer_signing_key_metadata=self._encryptor.footer_signing_key_metadata,
        )
        self._sink.write(write_footer(metadata, self._encryptor))


def _used_bytes(table: Table) -> int:
    return sum(map(used_bytes, table.columns))


def _types_of(schema: Mapping[str, ColumnType] | ParquetSchema | None) -> Mapping[str, ColumnType] | None:
    if isinstance(schema, ParquetSchema):
        return {column.name: column.type for column in schema.columns if column.is_flat}
    return schema


def _types_in(schema: ParquetSchema) -> list[tuple[str, DataType]]:
    """Names and types of the columns as a reader of the schema sees them."""
    shapes = [shape_of(node, range(len(schema.columns))) for node in schema.root.children]
    return [(shape.name, shape.type) for shape in shapes]


def _check_schema(schema: ParquetSchema, table: Table) -> None:
    expected, given = _types_in(schema), _types_in(table.schema)
    if expected != given:
        differing = [f"{a} is not {b}" for a, b in zip(given, expected, strict=False) if a != b]
        detail = differing[0] if differing else f"{len(given)} columns, not {len(expected)}"
        raise SchemaError(f"the table does not have the file's schema: {detail}")
    for node in schema.root.children:
        if not node.nullable and table[node.element.name].null_count:
            raise SchemaError(
                "nulls in a column that the first table or the schema made required", column=node.element.name
            )

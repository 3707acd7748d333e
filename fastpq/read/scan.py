"""Carrying out a ReadPlan: chunk bytes to columns in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fastpq.arrays.binary import total_size
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import VIEW_DTYPE, AnyColumn, BinaryViews, Column, ListColumn, StructColumn, Table
from fastpq.codecs.catalogue import codec_for_read
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.layout import Layout, layout_of
from fastpq.column.page import PageReader
from fastpq.common.parallel import run_parallel
from fastpq.common.progress import Span
from fastpq.errors import LimitError, ParquetError
from fastpq.io.source import Source
from fastpq.options import ReaderProperties
from fastpq.read.fetch import Fetching
from fastpq.read.flat import FlatReading, FlatStream, Task
from fastpq.read.plan import ChunkPlan, ColumnPlan, ReadPlan
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType

if TYPE_CHECKING:
    from fastpq.encryption.cipher import ModuleCipher
    from fastpq.encryption.decryptor import FileDecryptor
    from fastpq.read.flat import Reading, Stream
    from fastpq.read.outputs import Outputs

Stored: TypeAlias = np.ndarray[Any, Any]         # bytes of a chunk as the file has them
StringLayout = Literal["views", "offsets", "dictionary"]

# A chunk may say that it holds this many times its stored bytes before its page headers are asked whether it does.
PLAUSIBLE_EXPANSION = 1024
ALWAYS_PLAUSIBLE = 64 << 20
# Fewer bytes, stored and decoded, are decoded sooner than threads start.
WORTH_A_THREAD = 2 << 20


class Scan:
    """Reads planned chunks of one file.

    Args:
        source: the file's bytes.
        decryptor: who opens its modules.
        properties: bounds and checks.
        strings: the layout in which variable-length values come.
        types: the in-memory types of columns where they differ from the schema's, by leaf index.
    """

    def __init__(
        self,
        source: Source,
        decryptor: FileDecryptor,
        properties: ReaderProperties,
        strings: StringLayout,
        types: Mapping[int, ColumnType],
    ) -> None:
        self.source = source
        self.decryptor = decryptor
        self.properties = properties
        self.strings = strings
        self.types = types
        self._layouts: dict[int, Layout] = {}

    def read(self, plan: ReadPlan, threads: int, out: Outputs | None = None, span: Span | None = None) -> Table:
        """All rows of the plan as one Table; chunks are decoded in parallel, those of a flat column into one output.

        Args:
            plan: what is read.
            threads: how many chunks are decoded at the same time.
            out: arrays to read columns into, checked against the plan.
            span: told of chunks that are decoded.
        """
        read = self.columns([(column, plan.num_rows) for column in plan.columns], threads, out, span)
        return Table(_named(plan, read), num_rows=plan.num_rows)

    def columns(
        self,
        wanted: Sequence[tuple[ColumnPlan, int]],
        threads: int,
        out: Outputs | None = None,
        span: Span | None = None,
    ) -> Sequence[AnyColumn]:
        """Planned columns, each of a number of rows of its own; all are fetched together."""
        chunks = [chunk for column, _ in wanted for chunk in column.chunks]
        decoded = sum(self._output_values(chunk) * self.layout(chunk.column).width for chunk in chunks)
        self._check_bytes(decoded)
        with Fetching(self.source, chunks, self.properties, streaming=False) as buffers:
            for chunk in chunks:
                self.check_plausible(chunk, buffers)
            work = max(1, sum(chunk.num_bytes for chunk in chunks))
            columns = [self._reading(column, rows, buffers, out, threads, work) for column, rows in wanted]
            tasks = [task for column in columns for task in column.tasks()]
            if decoded + sum(chunk.num_bytes for chunk in chunks) < WORTH_A_THREAD:
                threads = 1
            if self.source.is_remote:
                tasks.sort(key=lambda task: task.row)       # in the order in which bytes come
            run_parallel(_do if span is None else _do_and_tell(span, tasks), tasks, threads)
        read = run_parallel(lambda column: column.finish(), columns, threads)
        if out is not None:
            for (column, _), values in zip(wanted, read, strict=True):
                out.settle(column.name, values)
        return read

    def batches(self, plan: ReadPlan, batch_size: int, threads: int, first: int | None = None) -> Iterator[Table]:
        """The plan's rows as Tables of batch_size rows (the last may be shorter); one page a leaf is in memory.

        Args:
            first: rows of the first Table, at least one; None for batch_size.
        """
        width = sum(self.layout(leaf).width for column in plan.columns for leaf, _ in column.leaves)
        with Fetching(self.source, plan.chunks, self.properties, streaming=True) as buffers:
            streams = [self._stream(column, buffers) for column in plan.columns]
            start = 0
            while start < plan.num_rows:
                rows = min(first or batch_size, plan.num_rows - start)
                first = None
                self._check_bytes(rows * width)
                yield Table(_named(plan, run_parallel(_reader_of(rows), streams, threads)), num_rows=rows)
                start += rows

    def layout(self, column: ColumnDescriptor) -> Layout:
        """How the values of a leaf are stored and held."""
        known = self._layouts.get(column.index)
        if known is None:
            known = self._layouts[column.index] = layout_of(self.type_of(column))
        return known

    def type_of(self, column: ColumnDescriptor) -> ColumnType:
        """The type of a leaf's values in memory."""
        return self.types.get(column.index) or column.type

    def open_flat(self, chunk: ChunkPlan, stored: Stored) -> ChunkReader:
        """A ChunkReader that stands before the first value of a flat column's chunk."""
        return ChunkReader(self.pages(chunk, stored), self.layout(chunk.column), chunk.num_values)

    def locate(self, error: ParquetError, chunk: ChunkPlan) -> None:
        """Add the place of a chunk to an error."""
        error.at(path=self.source.name, column=chunk.column.name, row_group=chunk.row_group)

    def column(
        self,
        type_: ColumnType,
        values: np.ndarray[Any, Any],
        buffers: list[np.ndarray[Any, Any]],
        nulls: tuple[np.ndarray[Any, Any] | None, int],
        nullable: bool,
    ) -> Column:
        """A leaf's column, its strings in the layout that is asked for.

        Args:
            type_: its type.
            values: the bytes of its values or views.
            buffers: what the views point into.
            nulls: validity bitmap, and how many zeros it has; the bitmap is not looked at when there are none.
        """
        validity, null_count = nulls
        validity = validity if null_count else None
        if type_.dtype is not None:
            return Column(type_, values.view(type_.dtype), validity, null_count, nullable)
        views = BinaryViews(values.view(VIEW_DTYPE), buffers)
        return self._laid_out(Column(type_, views, validity, null_count, nullable))

    def laid_out(self, column: AnyColumn) -> AnyColumn:
        """A column with its strings, however deep, in the layout that is asked for."""
        match column:
            case ListColumn():
                return replace(column, elements=self.laid_out(column.elements))
            case StructColumn():
                return replace(column, children=tuple(map(self.laid_out, column.children)))
        return self._laid_out(column) if column.type.is_variable else column

    def _laid_out(self, column: Column) -> Column:
        if self.strings == "offsets":
            # a dictionary's values may be long and used often
            self._check_bytes(total_size(SliceReader(column.values, column.validity if column.null_count else None)))
            return column.as_offsets()
        return column.as_dictionary() if self.strings == "dictionary" else column

    def _reading(
        self, column: ColumnPlan, num_rows: int, buffers: Fetching, out: Outputs | None, threads: int, work: int
    ) -> Reading:
        """Args: work: bytes of all columns, among which the threads are shared out."""
        if column.flat is None:
            from fastpq.read.nested import NestedReading

            if self.source.is_remote:       # row groups are decoded as they come
                return NestedReading(self, column, buffers, len(column.leaves[0][1]))
            # views of several outputs have to be numbered anew, for longer than another thread saves
            share = 2 if any(self.type_of(leaf).is_variable for leaf, _ in column.leaves) else 1
            own = sum(chunk.num_bytes for chunk in column.chunks)
            return NestedReading(self, column, buffers, max(1, threads * own // (work * len(column.leaves) * share)))
        return FlatReading(self, column, num_rows, buffers, None if out is None else out.memory(column.name))

    def _stream(self, column: ColumnPlan, buffers: Fetching) -> Stream:
        if column.flat is not None:
            return FlatStream(self, column, buffers)
        from fastpq.read.nested import NestedStream

        return NestedStream(self, column, buffers)

    def _output_values(self, chunk: ChunkPlan) -> int:
        """How many values of a chunk come into the output, at most."""
        return chunk.num_values if chunk.column.max_repetition_level else chunk.num_rows

    def pages(self, chunk: ChunkPlan, stored: Stored) -> PageReader:
        """A PageReader that stands before the first page of a chunk."""
        layout = self.layout(chunk.column)
        return PageReader(
            stored,
            self.cipher(chunk),
            codec_for_read(chunk.metadata.codec),
            chunk.column.max_definition_level,
            chunk.column.max_repetition_level,
            layout.stored_width == 0 and layout.width == VIEW_DTYPE.itemsize,
            chunk.metadata.dictionary_page_offset is not None and (chunk.pages is None or chunk.pages.has_dictionary),
            self.properties,
            None if chunk.pages is None else chunk.pages.directory,
            chunk.v2_is_compressed,
        )

    def cipher(self, chunk: ChunkPlan) -> ModuleCipher:
        """The cipher of a chunk."""
        metadata = chunk.metadata
        return self.decryptor.chunk_cipher(metadata.chunk, metadata.row_group_ordinal, chunk.column.index)

    def _check_bytes(self, size: int) -> None:
        if size > self.properties.max_allocation:
            raise LimitError(
                f"the values take {size} bytes, over max_allocation ({self.properties.max_allocation})", path=self.source.name
            )

    def check_plausible(self, chunk: ChunkPlan, buffers: Fetching) -> None:
        """Run-length encoding makes any number of values from a few bytes; a number that the pages do not confirm is
        refused before memory is taken for it."""
        if chunk.pages is not None and chunk.column.max_repetition_level:
            return      # its output grows with what is decoded
        claimed = chunk.num_values * self.layout(chunk.column).width
        if claimed <= max(ALWAYS_PLAUSIBLE, chunk.length * PLAUSIBLE_EXPANSION):
            return
        try:
            self.pages(chunk, buffers.look(chunk)).require_values(chunk.num_values)
        except ParquetError as error:
            self.locate(error, chunk)
            raise


def _named(plan: ReadPlan, columns: Sequence[AnyColumn]) -> dict[str, AnyColumn]:
    return {column.name: values for column, values in zip(plan.columns, columns, strict=True)}


def _do(task: Task) -> None:
    task.work()


def _do_and_tell(span: Span, tasks: Sequence[Task]) -> Callable[[Task], None]:
    """Do tasks, and count the rows of each in a span of all of them."""
    span.begin(sum(task.num_rows for task in tasks))

    def work(task: Task) -> None:
        task.work()
        span.add(task.num_rows)

    return work


def _reader_of(rows: int) -> Callable[[Stream], AnyColumn]:
    return lambda stream: stream.read(rows)

"""Carrying out a ReadPlan: chunk bytes to columns in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np

from fastpq.binary import total_size
from fastpq.column.layout import Layout, layout_of
from fastpq.column.page import PageReader
from fastpq.column.reader import ChunkReader, ColumnOutput
from fastpq.compression import codec_for_read
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.file import FileDecryptor
from fastpq.errors import LimitError, ParquetError
from fastpq.format import CompressionCodec
from fastpq.parallel import run
from fastpq.plan import ChunkPlan, ReadPlan
from fastpq.properties import ReaderProperties
from fastpq.slices import SliceReader
from fastpq.source import Source
from fastpq.table import VIEW_DTYPE, BinaryViews, Column, Table
from fastpq.types import ColumnType

Stored: TypeAlias = np.ndarray[Any, Any]         # bytes of a chunk as the file has them
Strings = Literal["views", "offsets", "dictionary"]

# A chunk may say that it holds this many times its stored bytes before its page headers are asked whether it does.
PLAUSIBLE_EXPANSION = 1024
ALWAYS_PLAUSIBLE = 64 << 20


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
        strings: Strings,
        types: dict[int, ColumnType],
    ) -> None:
        self.source = source
        self.decryptor = decryptor
        self.properties = properties
        self.strings = strings
        self.types = types

    def read(self, plan: ReadPlan, threads: int) -> Table:
        """All rows of the plan as one Table; chunks are decoded in parallel into one output a column."""
        layouts = [layout_of(self._type_of(column.index, column.type)) for column, _ in plan.columns]
        self._check_allocation([(plan.num_rows, layout) for layout in layouts])
        buffers = self._fetch(plan.chunks)
        outputs: list[ColumnOutput] = []
        work: list[tuple[ChunkPlan, Layout, ColumnOutput, Stored]] = []
        for (column, chunks), layout in zip(plan.columns, layouts, strict=True):
            for chunk in chunks:
                self._check_plausible(chunk, layout, buffers[id(chunk)])
            view = self._view(chunks, layout, buffers)
            output = ColumnOutput(plan.num_rows, layout.width, column.nullable, view)
            outputs.append(output)
            if view is None:
                work += [(chunk, layout, output, buffers[id(chunk)]) for chunk in chunks]
        nulls = run(lambda item: self._decode(*item), work, threads)
        counts = dict.fromkeys(map(id, outputs), 0)
        for (_, _, output, _), count in zip(work, nulls, strict=True):
            counts[id(output)] += count
        return Table(
            {
                column.name: self._column(self._type_of(column.index, column.type), output, counts[id(output)])
                for (column, _), output in zip(plan.columns, outputs, strict=True)
            },
            num_rows=plan.num_rows,
        )

    def batches(self, plan: ReadPlan, batch_size: int, threads: int) -> Iterator[Table]:
        """The plan's rows as Tables of batch_size rows (the last may be shorter); one page a column is in memory."""
        streams = [
            _ColumnStream(self, layout_of(self._type_of(column.index, column.type)), column.nullable, chunks)
            for column, chunks in plan.columns
        ]
        for start in range(0, plan.num_rows, batch_size):
            rows = min(batch_size, plan.num_rows - start)
            self._check_allocation([(rows, stream.layout) for stream in streams])
            read = run(_reader_of(rows), streams, threads)
            yield Table(
                {
                    column.name: self._column(self._type_of(column.index, column.type), output, nulls)
                    for (column, _), (output, nulls) in zip(plan.columns, read, strict=True)
                },
                num_rows=rows,
            )

    def columns(self, chunks: list[ChunkPlan], threads: int) -> list[Column]:
        """Each chunk, or the pages planned of it, as a column of its own; all are fetched together.

        Chunks are planned at row offset 0.
        """
        layouts = [layout_of(self._type_of(chunk.column.index, chunk.column.type)) for chunk in chunks]
        self._check_allocation([(chunk.num_rows, layout) for chunk, layout in zip(chunks, layouts, strict=True)])
        buffers = self._fetch(chunks)

        def read(item: tuple[ChunkPlan, Layout]) -> Column:
            chunk, layout = item
            stored = buffers[id(chunk)]
            self._check_plausible(chunk, layout, stored)
            output = ColumnOutput(chunk.num_rows, layout.width, chunk.column.nullable)
            null_count = self._decode(chunk, layout, output, stored)
            return self._column(self._type_of(chunk.column.index, chunk.column.type), output, null_count)

        return list(run(read, zip(chunks, layouts, strict=True), threads))

    def open_chunk(self, chunk: ChunkPlan, layout: Layout, stored: Stored) -> ChunkReader:
        """A ChunkReader that stands before the chunk's first value."""
        pages = self._pages(chunk, layout, stored)
        return ChunkReader(pages, layout, chunk.num_rows)

    def fetch(self, chunk: ChunkPlan) -> Stored:
        """The stored bytes of one chunk."""
        return self._fetch([chunk])[id(chunk)]

    def _fetch(self, chunks: list[ChunkPlan]) -> dict[int, Stored]:
        ranges = [chunk.ranges for chunk in chunks]
        read = iter(
            self.source.read_ranges(
                itertools.chain.from_iterable(ranges),
                gap=self.properties.coalesce_gap,
                limit=self.properties.coalesce_size,
            )
        )
        parts = [list(itertools.islice(read, len(wanted))) for wanted in ranges]
        return {
            id(chunk): part[0] if len(part) == 1 else np.concatenate(part)
            for chunk, part in zip(chunks, parts, strict=True)
        }

    def _pages(self, chunk: ChunkPlan, layout: Layout, stored: Stored) -> PageReader:
        return PageReader(
            stored,
            self._cipher(chunk),
            codec_for_read(chunk.metadata.codec),
            chunk.column.max_definition_level > 0,
            layout.stored_width == 0 and layout.width == VIEW_DTYPE.itemsize,
            chunk.metadata.dictionary_page_offset is not None,
            self.properties,
            None if chunk.pages is None else chunk.pages.directory,
        )

    def _cipher(self, chunk: ChunkPlan) -> ModuleCipher:
        metadata = chunk.metadata
        return self.decryptor.chunk_cipher(metadata.chunk, metadata.row_group_ordinal, chunk.column.index)

    def _view(self, chunks: list[ChunkPlan], layout: Layout, buffers: dict[int, Stored]) -> np.ndarray[Any, Any] | None:
        """A column that stands in the file as it would in memory, as a view of the file."""
        if len(chunks) != 1 or chunks[0].metadata.codec != CompressionCodec.UNCOMPRESSED:
            return None
        try:
            return self.open_chunk(chunks[0], layout, buffers[id(chunks[0])]).view()
        except ParquetError as error:
            error.at(path=self.source.name, column=chunks[0].column.name, row_group=chunks[0].row_group)
            raise

    def _decode(self, chunk: ChunkPlan, layout: Layout, output: ColumnOutput, stored: Stored) -> int:
        try:
            return self.open_chunk(chunk, layout, stored).read(output, chunk.row_offset, chunk.num_rows)
        except ParquetError as error:
            error.at(path=self.source.name, column=chunk.column.name, row_group=chunk.row_group)
            raise

    def _type_of(self, index: int, declared: ColumnType) -> ColumnType:
        return self.types.get(index, declared)

    def _column(self, column_type: ColumnType, output: ColumnOutput, null_count: int) -> Column:
        validity = output.validity if null_count else None
        nullable = output.validity is not None
        if column_type.dtype is not None:
            values = output.values.view(column_type.dtype)
            return Column(column_type, values, validity, null_count, nullable)
        views = BinaryViews(output.values.view(VIEW_DTYPE), output.buffers)
        return self.laid_out(Column(column_type, views, validity, null_count, nullable))

    def laid_out(self, column: Column) -> Column:
        """A column of variable-length values in the layout that was asked for."""
        if self.strings == "offsets":
            # a dictionary's values may be long and used often
            size = total_size(SliceReader(column.values, column.validity if column.null_count else None))
            if size > self.properties.max_allocation:
                raise LimitError(f"{size} bytes of strings are over max_allocation", path=self.source.name)
            return column.as_offsets()
        return column.as_dictionary() if self.strings == "dictionary" else column

    def _check_allocation(self, wanted: list[tuple[int, Layout]]) -> None:
        size = sum(rows * layout.width for rows, layout in wanted)
        if size > self.properties.max_allocation:
            rows = max(rows for rows, _ in wanted)
            raise LimitError(
                f"{rows} rows take {size} bytes, over max_allocation ({self.properties.max_allocation})",
                path=self.source.name,
            )

    def _check_plausible(self, chunk: ChunkPlan, layout: Layout, stored: Stored) -> None:
        """Run-length encoding makes any number of values from a few bytes; a number that the pages do not confirm is
        refused before memory is taken for it."""
        claimed = chunk.num_rows * layout.width
        if claimed <= max(ALWAYS_PLAUSIBLE, chunk.length * PLAUSIBLE_EXPANSION):
            return
        try:
            self._pages(chunk, layout, stored).require_values(chunk.num_rows)
        except ParquetError as error:
            error.at(path=self.source.name, column=chunk.column.name, row_group=chunk.row_group)
            raise


class _ColumnStream:
    """The chunks of one column, read on from wherever the last read ended."""

    def __init__(self, scan: Scan, layout: Layout, nullable: bool, chunks: list[ChunkPlan]) -> None:
        self.layout = layout
        self._scan = scan
        self._nullable = nullable
        self._waiting = list(reversed(chunks))
        self._reader: ChunkReader | None = None
        self._chunk: ChunkPlan | None = None

    def read(self, rows: int) -> tuple[ColumnOutput, int]:
        """The next rows as an output of their own, and how many of them are null."""
        output = ColumnOutput(rows, self.layout.width, self._nullable)
        done = nulls = 0
        while done < rows:
            if self._reader is None or self._reader.remaining == 0:
                self._chunk = self._waiting.pop()
                stored = self._scan.fetch(self._chunk)
                self._reader = self._scan.open_chunk(self._chunk, self.layout, stored)
            count = min(rows - done, self._reader.remaining)
            try:
                nulls += self._reader.read(output, done, count)
            except ParquetError as error:
                assert self._chunk is not None
                error.at(
                    path=self._scan.source.name, column=self._chunk.column.name, row_group=self._chunk.row_group
                )
                raise
            done += count
        return output, nulls


def _reader_of(rows: int) -> Callable[[_ColumnStream], tuple[ColumnOutput, int]]:
    return lambda stream: stream.read(rows)

"""Reads one flat column: all chunks into one output (FlatReading), or some rows at a time (FlatStream).

``fastpq.read.nested`` has the same pair for nested columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastpq.arrays.concat import one_dictionary
from fastpq.arrays.flat_column import Column, DictionaryValues, Values
from fastpq.arrays.layouts import VIEW_DTYPE, Array, BinaryViews, CodedViews
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.column_output import ColumnOutput
from fastpq.errors import ParquetError, UnsupportedError
from fastpq.format.enums import CompressionCodec
from fastpq.index.ranges import Int64s, cut_ranges
from fastpq.io.source import Stored
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import AT_ONCE, LARGEST_RUN
from fastpq.read.fetch import Fetching
from fastpq.read.opener import ChunkOpener
from fastpq.schema.types import ColumnType, Integer, Type, Unknown

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn
    from fastpq.read.chunk_run import ChunkRun, RunPlan
    from fastpq.schema.parquet_schema import ColumnDescriptor


UNCOMPRESSED = CompressionCodec.UNCOMPRESSED
VERDICTS = ColumnType(Type.INT32, None, Integer(8, False))


class Task(NamedTuple):
    """A piece of a read that does not depend on the other pieces.

    Attributes:
        row: number of its first row in the output.
        num_rows: number of rows that it decodes.
        work: decodes the rows.
    """

    row: int
    num_rows: int
    work: Callable[[], None]


class FlatReading:
    """Read of a whole flat column into one output.

    Args:
        opener: opens the file's chunks.
        leaf: the column.
        chunks: its chunk plans.
        num_rows: output row count.
        slots: places of chunks in the buffers. One is drawn for each chunk, in chunk order.
        buffers: the chunks' stored bytes.
        memory: the caller's array to read into, as bytes, or None for new memory.
        as_codes: whether to read codes and a dictionary instead of views. ``reads_codes`` must be true for the column.
        as_views: whether the codes become CodedViews instead of DictionaryValues.
        judge: returns a verdict (uint8) for each value. It gets values without nulls. The result column then has the verdicts
            in place of the values, with 0 for a null.
        largest_run: upper bound, in bytes (stored + decoded), of chunks that are decoded together. -1 decodes each chunk alone.
    """

    __slots__ = (
        "_as_views", "_buffers", "_chunks", "_entries", "_has_runs", "_judge", "_largest_run", "_layout", "_leaf", "_memory",
        "_nulls", "_num_rows", "_open_runs", "_opener", "_output", "_reader", "_runs", "_slots", "_width",
    )

    def __init__(
        self, opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], num_rows: int,
        slots: Iterator[int], buffers: Fetching, memory: Array | None = None, as_codes: bool = False,
        as_views: bool = False, judge: Callable[[Column], Array] | None = None, largest_run: int = LARGEST_RUN,
    ) -> None:
        self._opener = opener
        self._buffers = buffers
        self._leaf = leaf
        self._layout = opener.layout(leaf)
        self._chunks = chunks
        if as_codes:
            self._layout = self._layout.with_codes()
        self._judge = judge
        self._largest_run = largest_run
        self._as_views = as_views
        self._entries: dict[int, tuple[int, BinaryViews]] = {}      # row count and dictionary of each run, by its first row
        self._slots = [*islice(slots, len(chunks))]
        self._reader: ChunkReader | None = None     # reads the only chunk, if that is open
        in_memory = opener.source.gives_views or not opener.source.walks_late
        is_whole = memory is None and judge is None and len(chunks) == 1 and chunks[0].kept is None
        is_stored_in_form = opener.calendar is None or opener.calendar.rule(opener.type_of(leaf)) is None
        if is_whole and in_memory and chunks[0].codec == UNCOMPRESSED and is_stored_in_form:
            memory = self._view()
        self._num_rows = num_rows
        self._width = self._layout.width if judge is None else 1
        self._memory = memory       # memory for the output, or None to take new memory
        self._open_runs: dict[int, ChunkRun] = {}      # runs that wait to be decoded, by the number of their first chunk
        self._nulls: list[int] = []     # null counts above 0, one for each chunk or run
        self._runs: list[RunPlan] = [] if len(self._chunks) == 1 else self._cut_runs()
        self._has_runs = any(len(plan.chunks) > 1 for plan in self._runs)

    def open(self) -> None:
        """Open the chunks in a local file before ``tasks`` is called. ``COLUMNS_OPENED`` gives the reason."""
        if len(self._chunks) != 1:
            several = (plan for plan in self._runs if len(plan.chunks) > 1)
            self._open_runs = {plan.first: self._opener.flat_run(plan, self._layout) for plan in several}
        elif self._opener.source.walks_late and self._reader is None:
            self._reader = self._open(self._chunks[0], self._slots[0])

    def tasks(self) -> list[Task]:
        """Return a task for each run of chunks. The output's memory is taken here, so that few columns have memory at a time."""
        self._output = ColumnOutput(self._num_rows, self._width, self._leaf.nullable, self._memory)
        if len(self._chunks) == 1:
            [chunk], [slot] = self._chunks, self._slots
            return [Task(chunk.row_offset, chunk.num_rows, partial(self._decode, chunk, slot))]
        return [Task(plan.row_offset, plan.num_rows, partial(self._decode_run, plan)) for plan in self._runs]

    def finish(self) -> AnyColumn:
        """Return the column. All tasks must be done."""
        if self._layout.codes:
            return self._coded(sum(self._nulls))
        if self._judge is not None:
            return leaf_column(
                self._opener, VERDICTS, self._output.values, [], (self._output.validity, sum(self._nulls)), self._leaf.nullable)
        return _flat_column(self._opener, self._leaf, self._output, sum(self._nulls))

    def _coded(self, null_count: int) -> Column:
        """Return a column whose codes point into one dictionary, which has all chunks' entries in order."""
        type_ = self._opener.type_of(self._leaf)
        codes = self._output.values.view(np.int32)
        parts = sorted(self._entries.items())
        entries = one_dictionary([codes[row:][:rows] for row, (rows, _) in parts], [views for _, (_, views) in parts])
        validity = self._output.validity if null_count else None
        values: Values = CodedViews(codes, entries, validity)
        if not self._as_views:
            values = DictionaryValues(codes, Column._made(type_, entries, nullable=False))
        column = Column._made(type_, values, validity=validity, null_count=null_count, nullable=self._leaf.nullable)
        if null_count and not self._as_views:
            codes[~column.validity_mask()] = 0
        return column

    def _cut_runs(self) -> list[RunPlan]:
        """Return the runs of chunks. A run has several chunks only in a local file and without a judge."""
        from fastpq.read.chunk_run import cut_runs

        alone = self._judge is not None or not self._opener.source.walks_late
        variable = self._opener.type_of(self._leaf).is_variable
        width = VIEW_DTYPE.itemsize if self._layout.codes else self._width
        return cut_runs([*self._chunks], width, variable, -1 if alone else self._largest_run, AT_ONCE)

    def _decode_run(self, plan: RunPlan) -> None:
        if len(plan.chunks) == 1:
            self._decode(plan.chunks[0], self._slots[plan.first])
            return
        run = self._open_runs.pop(plan.first, None) or self._opener.flat_run(plan, self._layout)
        try:
            nulls = run.read(self._output, plan.row_offset)
            if self._layout.codes:
                self._keep_entries(run.reader, plan.row_offset, plan.num_rows)
        except ParquetError as error:
            self._opener.place(error, plan.chunks[run.current])
            raise
        if nulls:
            self._nulls.append(nulls)

    def _open(self, chunk: ChunkPlan, slot: int) -> ChunkReader:
        stored_bytes = self._buffers.take(slot, alone=self._has_runs)
        try:
            return self._opener.flat(chunk, stored_bytes, self._layout, None if self._judge is None else self._verdicts)
        except ParquetError as error:       # no context manager: a file may have a million chunks
            self._opener.place(error, chunk)
            raise

    def _decode(self, chunk: ChunkPlan, slot: int) -> None:
        reader, self._reader = self._reader or self._open(chunk, slot), None
        try:
            if chunk.kept is None:
                if chunk.pages is None:
                    reader.share_arrays(chunk.uncompressed_size)
                nulls = reader.read(self._output, chunk.row_offset, chunk.num_rows)
            else:
                nulls = reader.read_chosen(self._output, chunk.row_offset, chunk.kept)
            if self._layout.codes:
                self._keep_entries(reader, chunk.row_offset, chunk.num_rows)
        except ParquetError as error:
            self._opener.place(error, chunk)
            raise
        if nulls:
            self._nulls.append(nulls)

    def _keep_entries(self, reader: ChunkReader, row: int, num_rows: int) -> None:
        views, buffers = reader.entries()
        if num_rows:
            self._entries[row] = num_rows, BinaryViews(views.view(VIEW_DTYPE), buffers)

    def _verdicts(self, values: Array, buffers: list[Array]) -> Array:
        """Return verdicts on decoded values. The arguments are those of leaf_column."""
        assert self._judge is not None
        return self._judge(leaf_column(self._opener, self._opener.type_of(self._leaf), values, buffers, (None, 0), False))

    def _view(self) -> Array | None:
        """Return the only chunk's values as a view of the stored bytes, or None if a copy is needed.

        If a copy is needed, the reader stays open for ``_decode``.
        """
        [chunk], [slot] = self._chunks, self._slots
        stored_bytes = self._buffers.take(slot)
        with self._opener.placed(chunk):
            reader = self._opener.flat(chunk, stored_bytes, self._layout)
            view = reader.view()
        if view is None:
            self._reader = reader
        else:
            self._chunks, self._slots = (), []
        return view


class FlatStream:
    """Read that takes a flat column in order, some rows at a time.

    Args:
        opener: opens the file's chunks.
        leaf: the column.
        chunks: its chunk plans.
        slots: places of chunks in the buffers. One is drawn for each chunk, in chunk order.
        buffers: the chunks' stored bytes.
    """

    def __init__(
        self, opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], slots: Iterator[int],
        buffers: Fetching,
    ) -> None:
        self._opener = opener
        self._leaf = leaf
        self._width = opener.layout(leaf).width
        self._parts = BatchPieces([(chunk, next(slots)) for chunk in chunks], buffers)
        self._reader: ChunkReader | None = None

    def read(self, rows: int) -> AnyColumn:
        """Return the next rows in new memory."""
        output = ColumnOutput(rows, self._width, self._leaf.nullable)
        num_done = nulls = 0
        while num_done < rows:
            chunk, stored_bytes, kept_rows = self._parts.next(rows - num_done)
            with self._opener.placed(chunk):
                if stored_bytes is not None:
                    self._reader = self._opener.flat(chunk, stored_bytes)
                assert self._reader is not None
                nulls += self._reader.read_ranges(output, num_done, kept_rows)
            num_done += count_rows(kept_rows)
        return _flat_column(self._opener, self._leaf, output, nulls)


class BatchPieces:
    """Cutter of consecutive chunks into pieces for batches. Each piece is within one chunk.

    Args:
        chunks: the chunk plans, each with its slot.
        buffers: the chunks' stored bytes.
    """

    def __init__(self, chunks: Iterable[tuple[ChunkPlan, int]], buffers: Fetching) -> None:
        self._buffers = buffers
        self._waiting_chunks = deque(chunks)
        self._rows_left = 0

    def next(self, rows: int) -> tuple[ChunkPlan, Stored | None, Int64s]:
        """Return the next rows, which are all in one chunk.

        Args:
            rows: largest number of rows to return.

        Returns:
            (the chunk's plan, its stored bytes or None if an earlier call returned them, ranges of the rows to keep). The
            ranges are counted from the position of the chunk's reader.
        """
        stored_bytes = None
        if self._rows_left == 0:
            self._chunk, slot = self._waiting_chunks.popleft()
            stored_bytes = self._buffers.take(slot)
            self._kept_rows = self._chunk.kept_rows
            self._position = 0
            self._rows_left = self._chunk.num_rows
        num_done = self._chunk.num_rows - self._rows_left
        count = min(rows, self._rows_left)
        kept_rows = cut_ranges(self._kept_rows, num_done, num_done + count)
        self._rows_left -= count
        position, self._position = self._position, int(kept_rows[-1, 1]) if count else self._position
        return self._chunk, stored_bytes, kept_rows - position


def count_rows(ranges: Int64s) -> int:
    """Count the rows in ranges."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def _flat_column(opener: ChunkOpener, leaf: ColumnDescriptor, output: ColumnOutput, null_count: int) -> Column:
    type_, values = opener.types.get(leaf.index) or leaf.type, output.values
    if type_.physical is Type.INT96 and opener.awaits_unit(leaf):
        from fastpq.read.int96 import converted, finest_type

        validity = output.validity if null_count else None
        type_ = finest_type([(values, validity)])
        values = converted(values, validity, type_)
    nullable = leaf.nullable or isinstance(type_.logical, Unknown)
    try:
        return leaf_column(opener, type_, values, output.buffers, (output.validity, null_count), nullable, in_place=True)
    except UnsupportedError as error:
        raise error.at(path=opener.source.name, column=leaf.name) from None


def leaf_column(
    opener: ChunkOpener, type_: ColumnType, values: Array, buffers: list[Array], nulls: tuple[Array | None, int],
    nullable: bool, in_place: bool = False,
) -> Column:
    """Return a column from a leaf's decoded values. Strings get the opener's layout.

    Args:
        opener: opens the file's chunks.
        type_: type that the values have in memory.
        values: the values as bytes. For strings these are the views.
        buffers: the bytes behind the views.
        nulls: validity bitmap and null count. The bitmap is not used if the count is 0.
        nullable: whether the schema allows nulls.
        in_place: whether ``values`` may be changed.

    Raises:
        UnsupportedError: a timestamp is old and in Spark's legacy calendar.
    """
    validity, null_count = nulls
    validity = validity if null_count else None
    if nullable and isinstance(type_.logical, Unknown):     # always null, whatever is stored
        null_count = len(values.view(VIEW_DTYPE if type_.dtype is None else type_.dtype))
        validity = np.zeros((null_count + 7) // 8, np.uint8)
    column_values = BinaryViews(values.view(VIEW_DTYPE), buffers) if type_.dtype is None else values.view(type_.dtype)
    rule = None if opener.calendar is None else opener.calendar.rule(type_)
    if rule is not None:
        column_values = rule.convert(column_values, validity, in_place)
    column = Column._made(type_, column_values, validity=validity, null_count=null_count, nullable=nullable)
    return column if type_.dtype is not None or opener.strings == "views" else opener.strings_of(column)

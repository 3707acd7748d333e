"""Reading one flat column: all chunks into one output (FlatReading), or some rows at a time (FlatStream).

``fastpq.read.nested`` has the same pair for nested columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from fastpq.arrays.concat import one_dictionary
from fastpq.arrays.flat_column import Column
from fastpq.arrays.layouts import VIEW_DTYPE, Array, BinaryViews, CodedViews, DictionaryValues, Values
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.column_output import ColumnOutput
from fastpq.errors import ParquetError
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
    from fastpq.read.nested import NestedReading, NestedStream
    from fastpq.schema.parquet_schema import ColumnDescriptor

    Reading: TypeAlias = "FlatReading | NestedReading"
    Stream: TypeAlias = "FlatStream | NestedStream"


UNCOMPRESSED = CompressionCodec.UNCOMPRESSED
VERDICTS = ColumnType(Type.INT32, None, Integer(8, False))


class Task(NamedTuple):
    """A piece of a read, independent of the others.

    Attributes:
        row: first decoded row, counted in the output.
        num_rows: decoded rows.
        work: decodes the rows.
    """

    row: int
    num_rows: int
    work: Callable[[], None]


class FlatReading:
    """All rows of a flat column, decoded into one output.

    Args:
        opener: opener of the file's chunks.
        leaf: the column.
        chunks: plans of its chunks.
        num_rows: rows of the output.
        slots: places of the chunks in the buffers, drawn in the order of the chunks.
        buffers: stored bytes of the chunks.
        memory: bytes of the caller's array to read into.
        coded: read codes into a dictionary, not views; for ``reads_codes`` columns.
        as_views: the codes become CodedViews, not DictionaryValues.
        judge: returns verdicts (uint8) on the values of a column without nulls; the reading is then a column of verdicts, 0 where
            null.
        largest_run: bytes, stored and decoded, of chunks decoded together; -1 for each chunk alone.
    """

    __slots__ = (
        "_as_views", "_buffers", "_chunks", "_entries", "_has_runs", "_judge", "_largest_run", "_layout", "_leaf", "_memory",
        "_nulls", "_num_rows", "_opened", "_opener", "_output", "_reader", "_runs", "_slots", "_width",
    )

    def __init__(
        self,
        opener: ChunkOpener,
        leaf: ColumnDescriptor,
        chunks: Sequence[ChunkPlan],
        num_rows: int,
        slots: Iterator[int],
        buffers: Fetching,
        memory: Array | None = None,
        coded: bool = False,
        as_views: bool = False,
        judge: Callable[[Column], Array] | None = None,
        largest_run: int = LARGEST_RUN,
    ) -> None:
        self._opener = opener
        self._buffers = buffers
        self._leaf = leaf
        self._layout = opener.layout(leaf)
        self._chunks = chunks
        if coded:
            self._layout = self._layout.coded()
        self._judge = judge
        self._largest_run = largest_run
        self._as_views = as_views
        self._entries: dict[int, tuple[int, BinaryViews]] = {}      # rows and dictionary of a run, by its first row
        self._slots = [*islice(slots, len(chunks))]
        self._reader: ChunkReader | None = None     # of the only chunk, if open
        in_memory = opener.source.gives_views or not opener.source.walks_late
        is_whole = memory is None and judge is None and len(chunks) == 1 and chunks[0].kept is None
        if is_whole and in_memory and chunks[0].codec == UNCOMPRESSED:
            memory = self._view()
        self._num_rows = num_rows
        self._width = self._layout.width if judge is None else 1
        self._memory = memory       # of the output; None for new memory
        self._opened: dict[int, ChunkRun] = {}      # runs to be decoded, by the number of the first chunk
        self._nulls: list[int] = []     # of chunks with nulls
        self._runs: list[RunPlan] = [] if len(self._chunks) == 1 else self._cut_runs()
        self._has_runs = any(len(plan.chunks) > 1 for plan in self._runs)

    def open(self) -> None:
        """Open the chunks in a local file, ahead of ``tasks``; see ``COLUMNS_OPENED``."""
        if len(self._chunks) != 1:
            several = (plan for plan in self._runs if len(plan.chunks) > 1)
            self._opened = {plan.first: self._opener.flat_run(plan, self._layout) for plan in several}
        elif self._opener.source.walks_late and self._reader is None:
            self._reader = self._open(self._chunks[0], self._slots[0])

    def tasks(self) -> list[Task]:
        """One task for each run of chunks; memory of the output is taken here, for few columns at a time."""
        self._output = ColumnOutput(self._num_rows, self._width, self._leaf.nullable, self._memory)
        if len(self._chunks) == 1:
            [chunk], [slot] = self._chunks, self._slots
            return [Task(chunk.row_offset, chunk.num_rows, partial(self._decode, chunk, slot))]
        return [Task(plan.row_offset, plan.num_rows, partial(self._decode_run, plan)) for plan in self._runs]

    def finish(self) -> AnyColumn:
        """The column, once all tasks are done."""
        if self._layout.codes:
            return self._coded(sum(self._nulls))
        if self._judge is not None:
            return leaf_column(
                self._opener, VERDICTS, self._output.values, [], (self._output.validity, sum(self._nulls)), self._leaf.nullable)
        return _flat_column(self._opener, self._leaf, self._output, sum(self._nulls))

    def _coded(self, null_count: int) -> Column:
        """The column of codes into one dictionary: the entries of all chunks, in their order."""
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
        """Consecutive chunks to decode together: of whole chunks of a local file, decoded into values."""
        from fastpq.read.chunk_run import cut_runs

        alone = self._judge is not None or not self._opener.source.walks_late
        variable = self._opener.type_of(self._leaf).is_variable
        width = VIEW_DTYPE.itemsize if self._layout.codes else self._width
        return cut_runs([*self._chunks], width, variable, -1 if alone else self._largest_run, AT_ONCE)

    def _decode_run(self, plan: RunPlan) -> None:
        if len(plan.chunks) == 1:
            self._decode(plan.chunks[0], self._slots[plan.first])
            return
        run = self._opened.pop(plan.first, None) or self._opener.flat_run(plan, self._layout)
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
        stored = self._buffers.take(slot, alone=self._has_runs)
        try:
            return self._opener.flat(chunk, stored, self._layout, None if self._judge is None else self._verdicts)
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
        """Verdicts on decoded values; parameters as of leaf_column."""
        assert self._judge is not None
        return self._judge(leaf_column(self._opener, self._opener.type_of(self._leaf), values, buffers, (None, 0), False))

    def _view(self) -> Array | None:
        """The values of the only chunk as a view of the stored bytes; None where a copy is needed.

        Without a view, the reader stays open for ``_decode``.
        """
        [chunk], [slot] = self._chunks, self._slots
        stored = self._buffers.take(slot)
        with self._opener.placed(chunk):
            reader = self._opener.flat(chunk, stored, self._layout)
            view = reader.view()
        if view is None:
            self._reader = reader
        else:
            self._chunks, self._slots = (), []
        return view


class FlatStream:
    """The rows of a flat column in order, some at a time.

    Args:
        opener: opener of the file's chunks.
        leaf: the column.
        chunks: plans of its chunks.
        slots: places of the chunks in the buffers, drawn in the order of the chunks.
        buffers: stored bytes of the chunks.
    """

    def __init__(
        self,
        opener: ChunkOpener,
        leaf: ColumnDescriptor,
        chunks: Sequence[ChunkPlan],
        slots: Iterator[int],
        buffers: Fetching,
    ) -> None:
        self._opener = opener
        self._leaf = leaf
        self._width = opener.layout(leaf).width
        self._parts = Parts([(chunk, next(slots)) for chunk in chunks], buffers)
        self._reader: ChunkReader | None = None

    def read(self, rows: int) -> AnyColumn:
        """The next rows, in memory of their own."""
        output = ColumnOutput(rows, self._width, self._leaf.nullable)
        done = nulls = 0
        while done < rows:
            chunk, stored, kept = self._parts.next(rows - done)
            with self._opener.placed(chunk):
                if stored is not None:
                    self._reader = self._opener.flat(chunk, stored)
                assert self._reader is not None
                nulls += self._reader.read_ranges(output, done, kept)
            done += count_rows(kept)
        return _flat_column(self._opener, self._leaf, output, nulls)


class Parts:
    """The rows of consecutive chunks, cut into pieces for batches; no piece spans two chunks.

    Args:
        chunks: plans of the chunks, each with its slot.
        buffers: stored bytes of the chunks.
    """

    def __init__(self, chunks: Iterable[tuple[ChunkPlan, int]], buffers: Fetching) -> None:
        self._buffers = buffers
        self._waiting = deque(chunks)
        self._left = 0

    def next(self, rows: int) -> tuple[ChunkPlan, Stored | None, Int64s]:
        """The next rows, all of one chunk.

        Args:
            rows: most rows to return.

        Returns:
            The chunk's plan; the stored bytes of the chunk, or None if an earlier call returned the bytes; and ranges of rows to
            keep, counted from the position of the chunk's reader.
        """
        stored = None
        if self._left == 0:
            self._chunk, slot = self._waiting.popleft()
            stored = self._buffers.take(slot)
            self._kept = self._chunk.kept_rows
            self._position = 0
            self._left = self._chunk.num_rows
        done = self._chunk.num_rows - self._left
        count = min(rows, self._left)
        kept = cut_ranges(self._kept, done, done + count)
        self._left -= count
        position, self._position = self._position, int(kept[-1, 1]) if count else self._position
        return self._chunk, stored, kept - position


def count_rows(kept: Int64s) -> int:
    """Number of rows in ranges."""
    return int((kept[:, 1] - kept[:, 0]).sum())


def _flat_column(opener: ChunkOpener, leaf: ColumnDescriptor, output: ColumnOutput, null_count: int) -> Column:
    type_ = opener.types.get(leaf.index) or leaf.type
    nullable = leaf.nullable or isinstance(type_.logical, Unknown)
    return leaf_column(opener, type_, output.values, output.buffers, (output.validity, null_count), nullable)


def leaf_column(
    opener: ChunkOpener,
    type_: ColumnType,
    values: Array,
    buffers: list[Array],
    nulls: tuple[Array | None, int],
    nullable: bool,
) -> Column:
    """The column of a leaf's decoded values, strings in the layout of the opener.

    Args:
        opener: opener of the file's chunks.
        type_: type of the values in memory.
        values: bytes of the values, or of the views of strings.
        buffers: the bytes behind the views.
        nulls: validity bitmap, and number of nulls; without nulls the bitmap is not used.
        nullable: whether the schema allows nulls.
    """
    validity, null_count = nulls
    validity = validity if null_count else None
    if nullable and isinstance(type_.logical, Unknown):     # always null, whatever is stored
        null_count = len(values.view(VIEW_DTYPE if type_.dtype is None else type_.dtype))
        validity = np.zeros((null_count + 7) // 8, np.uint8)
    stored = BinaryViews(values.view(VIEW_DTYPE), buffers) if type_.dtype is None else values.view(type_.dtype)
    column = Column._made(type_, stored, validity=validity, null_count=null_count, nullable=nullable)
    return column if type_.dtype is not None or opener.strings == "views" else opener.strings_of(column)

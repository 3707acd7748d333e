"""Scan: the columns of a ReadPlan, read whole or in batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING

from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.parallel import run_parallel
from fastpq.common.progress import Span
from fastpq.format.slots import untracked
from fastpq.io.source import Stored
from fastpq.read.chunk_plan import ChunkPlan, claimed_sizes
from fastpq.read.costs import (
    ALWAYS_PLAUSIBLE,
    COLUMNS_OPENED,
    LARGEST_RUN,
    PLAUSIBLE_EXPANSION,
    ROWS_WORTH_CODES,
    TASKS_A_THREAD,
    WORTH_A_TASK,
    WORTH_A_THREAD,
)
from fastpq.read.fetch import Fetching, fetching
from fastpq.read.flat import FlatReading, FlatStream, Task
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import ColumnPlan, ReadPlan

if TYPE_CHECKING:
    from fastpq.arrays.layouts import Array
    from fastpq.arrays.table import Column
    from fastpq.read.flat import Reading, Stream
    from fastpq.read.nested import NestedReading
    from fastpq.read.outputs import Outputs
    from fastpq.schema.parquet_schema import ColumnDescriptor
    from fastpq.schema.shape import Shape


@dataclass(frozen=True, slots=True)
class Scan:
    """Reads planned columns of one file.

    Attributes:
        opener: opens the file's chunks.
    """

    opener: ChunkOpener

    def read(self, plan: ReadPlan, threads: int, out: Outputs | None = None, span: Span | None = None) -> Table:
        """All rows of a plan as one Table; chunks are decoded in parallel, and all chunks of a flat column into one output.

        Args:
            plan: the columns and their chunks.
            threads: chunks decoded at the same time.
            out: arrays to read columns into, checked against the plan.
            span: counts the rows of decoded chunks.
        """
        read = self.columns([untracked((column, plan.num_rows)) for column in plan.columns], threads, out, span)
        return Table._made(list(zip(plan.names, read, strict=True)), plan.num_rows)

    def columns(
        self,
        wanted: Sequence[tuple[ColumnPlan, int]],
        threads: int,
        out: Outputs | None = None,
        span: Span | None = None,
        codes: bool = False,
        judges: Mapping[int, Callable[[Column], Array]] | None = None,
    ) -> Sequence[AnyColumn]:
        """The values of planned columns; all chunks are fetched together, and decoded in parallel.

        Args:
            wanted: plans of columns, each with the number of rows in its output.
            threads, out, span: as for ``read``.
            codes: give codes into dictionaries, whatever the layout of strings, for columns in dictionaries throughout; some
                entries may be unused.
            judges: by place in wanted, of flat columns: read verdicts (uint8) of a function of values in place of the values.
        """
        opener, source = self.opener, self.opener.source
        chunks: list[ChunkPlan] = []
        decoded = stored = 0
        doubtful: list[int] = []        # slots of chunks with many values by their metadata
        for column, rows in wanted:
            for leaf, of_leaf in column.leaves:
                values, size, large = claimed_sizes(
                    of_leaf, leaf.max_repetition_level > 0, opener.layout(leaf).width, ALWAYS_PLAUSIBLE)
                decoded += values + (-(-rows // 8) if leaf.is_flat and leaf.nullable else 0)      # and a bit for each row
                stored += size
                doubtful += [len(chunks) + number for number in large]
                chunks += of_leaf
        with opener.allowance.reserved(decoded), fetching(source, chunks, opener.properties, streaming=False) as buffers:
            for slot in doubtful:
                check_plausible(opener, chunks[slot], partial(buffers.look, slot))
            if decoded + stored < max(WORTH_A_THREAD, len(chunks) * WORTH_A_TASK):
                threads = 1
            at_once = threads == 1 and span is None and not source.is_remote
            largest_run = LARGEST_RUN if threads == 1 else min(LARGEST_RUN, (decoded + stored) // (threads * TASKS_A_THREAD))
            largest_run = largest_run if span is None else -1       # the rows of each chunk are counted
            slots = itertools.count()
            read: list[AnyColumn] = []
            together = COLUMNS_OPENED if at_once else max(1, len(wanted))
            for first in range(0, len(wanted), together):
                readings: list[Reading] = []
                for place, (column, rows) in enumerate(wanted[first : first + together], first):
                    if column.leaves[0][0].is_flat:
                        memory = None if out is None else out.memory(column.name)
                        judge = None if judges is None else judges.get(place)
                        reading: Reading = self._flat(column, rows, slots, buffers, memory, judge, codes, largest_run)
                    else:
                        reading = self._nested(column, slots, buffers, (threads, max(1, stored)))
                    readings.append(reading)
                for reading in readings[:COLUMNS_OPENED]:
                    reading.open()
                if at_once:
                    readings.reverse()
                    while readings:     # memory of one reading serves the next
                        reading = readings.pop()
                        for task in reading.tasks():
                            task.work()
                        read.append(reading.finish())
                else:
                    self._do_tasks(readings, threads, span)
                    read += run_parallel(methodcaller("finish"), readings, threads)
        if out is not None:
            read = [out.settled(column.name, values) for (column, _), values in zip(wanted, read, strict=True)]
        return read

    def _do_tasks(self, readings: Sequence[Reading], threads: int, span: Span | None) -> None:
        """Decode the values of readings; threads and span as for ``read``."""
        tasks = [task for reading in readings for task in reading.tasks()]
        if self.opener.source.is_remote:
            tasks.sort(key=attrgetter("row"))       # the order of arrival
        run_parallel(methodcaller("work") if span is None else _do_and_tell(span, tasks), tasks, threads)

    def _flat(
        self,
        column: ColumnPlan,
        rows: int,
        slots: Iterator[int],
        buffers: Fetching,
        memory: Array | None,
        judge: Callable[[Column], Array] | None,
        codes: bool,
        largest_run: int,
    ) -> FlatReading:
        """The reading of a flat column; codes as for ``columns``, other arguments as for FlatReading."""
        opener = self.opener
        leaf, chunks = column.leaves[0]
        becomes = opener.becomes_dictionary
        coded = judge is None and (codes or opener.strings == "dictionary" or bool(becomes and becomes(leaf)))
        coded = coded and self._reads_codes(leaf, chunks, codes)
        as_views = (
            not coded and judge is None and leaf.type.dtype is None and opener.strings == "views"
            and ROWS_WORTH_CODES * len(chunks) <= rows and self._has_few_values(leaf, chunks))
        return FlatReading(
            opener, leaf, chunks, rows, slots, buffers, memory, coded or as_views, as_views, judge, largest_run)

    def _reads_codes(self, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], with_unused: bool) -> bool:
        from fastpq.read.coded import reads_codes

        return reads_codes(self.opener, leaf, chunks, with_unused)

    def _has_few_values(self, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
        from fastpq.read.coded import has_few_values

        return has_few_values(self.opener, leaf, chunks)

    def batches(self, plan: ReadPlan, batch_size: int, threads: int, first: int | None = None) -> Iterator[Table]:
        """The rows of a plan as Tables of batch_size rows, with one page of each leaf in memory.

        Args:
            plan: the columns and their chunks.
            batch_size: rows of a Table; the last may have fewer.
            threads: columns decoded at the same time.
            first: rows of the first Table, at least one; None for batch_size.
        """
        width = sum(self.opener.layout(leaf).width for column in plan.columns for leaf, _ in column.leaves)
        with fetching(self.opener.source, plan.chunks, self.opener.properties, streaming=True) as buffers:
            slots = itertools.count()
            streams = [self._stream(column, slots, buffers) for column in plan.columns]
            start = 0
            while start < plan.num_rows:
                rows = min(first or batch_size, plan.num_rows - start)
                first = None
                with self.opener.allowance.reserved(rows * width):
                    read = run_parallel(_reader_of(rows), streams, threads)
                    table = Table._made(list(zip(plan.names, read, strict=True)), rows)
                yield table
                start += rows

    def _nested(
        self, column: ColumnPlan, slots: Iterator[int], buffers: Fetching, shared: tuple[int, int]
    ) -> NestedReading:
        """The reading of a nested column.

        Args:
            column: its plan.
            slots: places of the chunks in the buffers, drawn in the order of the plan.
            buffers: stored bytes of all columns.
            shared: number of threads, and stored bytes of all columns; a nested column gets threads by its share of the bytes.
        """
        from fastpq.read.nested import NestedReading

        if self.opener.source.is_remote:        # row groups are decoded as they arrive
            return NestedReading(self.opener, column, self._shape(column), slots, buffers, len(column.leaves[0][1]))
        threads, stored = shared
        parts = 1
        if threads > 1:
            # views of several outputs have to be numbered anew, for longer than another thread saves
            share = 2 if any(self.opener.type_of(leaf).is_variable for leaf, _ in column.leaves) else 1
            own = sum(chunk.num_bytes for chunk in column.chunks)
            parts = max(1, threads * own // (stored * len(column.leaves) * share))
        return NestedReading(self.opener, column, self._shape(column), slots, buffers, parts)

    def _stream(self, column: ColumnPlan, slots: Iterator[int], buffers: Fetching) -> Stream:
        leaf, chunks = column.leaves[0]
        if leaf.is_flat:
            return FlatStream(self.opener, leaf, chunks, slots, buffers)
        from fastpq.read.nested import NestedStream

        return NestedStream(self.opener, column, self._shape(column), slots, buffers)

    def _shape(self, column: ColumnPlan) -> Shape:
        from fastpq.schema.shape import shape_of

        return shape_of(column.node, [leaf.index for leaf, _ in column.leaves], self.opener.types)


def check_plausible(opener: ChunkOpener, chunk: ChunkPlan, stored: Callable[[], Stored]) -> None:
    """Confirm an implausibly large number of values by the page headers, before memory is taken for the values.

    Args:
        opener: opener of the chunk's file.
        chunk: plan of the chunk.
        stored: returns the stored bytes of the chunk.

    Raises:
        ParquetError: the pages have fewer values than the metadata claim, or are broken.
    """
    if chunk.pages is not None and chunk.column.max_repetition_level:
        return      # its output grows with the decoded values
    claimed = chunk.num_values * opener.layout(chunk.column).width
    if claimed > max(ALWAYS_PLAUSIBLE, chunk.length * PLAUSIBLE_EXPANSION):
        with opener.placed(chunk):
            opener.pages(chunk, stored()).require_values(chunk.num_values)


def _do_and_tell(span: Span, tasks: Sequence[Task]) -> Callable[[Task], None]:
    """A function to do a task and count its rows in a span.

    Args:
        span: the part of the progress for all tasks.
        tasks: all tasks.
    """
    span.begin(sum(task.num_rows for task in tasks))

    def work(task: Task) -> None:
        task.work()
        span.add(task.num_rows)

    return work


def _reader_of(rows: int) -> Callable[[Stream], AnyColumn]:
    return lambda stream: stream.read(rows)

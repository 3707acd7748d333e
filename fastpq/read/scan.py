"""Scan: the columns of a ReadPlan, read whole or in batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING

from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.parallel import run_parallel
from fastpq.common.progress import Span
from fastpq.io.source import Stored
from fastpq.read.costs import ALWAYS_PLAUSIBLE, PLAUSIBLE_EXPANSION, WORTH_A_TASK, WORTH_A_THREAD
from fastpq.read.fetch import Fetching
from fastpq.read.flat import FlatReading, FlatStream, Task
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import ChunkPlan, ColumnPlan, ReadPlan

if TYPE_CHECKING:
    from fastpq.read.flat import Reading, Stream
    from fastpq.read.outputs import Outputs


class Scan:
    """Reads planned columns of one file.

    Args:
        opener: opens the file's chunks.
    """

    def __init__(self, opener: ChunkOpener) -> None:
        self.opener = opener
        self.source = opener.source

    def read(self, plan: ReadPlan, threads: int, out: Outputs | None = None, span: Span | None = None) -> Table:
        """All rows of a plan as one Table; chunks are decoded in parallel, and all chunks of a flat column into one output.

        Args:
            plan: the columns and their chunks.
            threads: chunks decoded at the same time.
            out: arrays to read columns into, checked against the plan.
            span: counts the rows of decoded chunks.
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
        """The values of planned columns; all chunks are fetched together, and decoded in parallel.

        Args:
            wanted: plans of columns, each with the number of rows in its output.
            threads, out, span: as for ``read``.
        """
        chunks = [chunk for column, _ in wanted for chunk in column.chunks]
        decoded = sum(
            (chunk.num_values if chunk.column.max_repetition_level else chunk.num_rows) * self.opener.layout(chunk.column).width
            for chunk in chunks
        )
        stored = sum(chunk.num_bytes for chunk in chunks)
        properties, reserved = self.opener.properties, self.opener.allowance.reserved(decoded)
        with reserved, Fetching(self.source, chunks, properties, streaming=False) as buffers:
            for slot, chunk in enumerate(chunks):
                check_plausible(self.opener, chunk, partial(buffers.look, slot))
            slots = itertools.count()
            columns = [self._reading(column, rows, slots, buffers, out, (threads, max(1, stored))) for column, rows in wanted]
            if decoded + stored < max(WORTH_A_THREAD, len(chunks) * WORTH_A_TASK):
                threads = 1
            each = (task for column in columns for task in column.tasks())
            if threads == 1 and span is None and not self.source.is_remote:
                for task in each:       # no list: a file may have a million chunks
                    task.work()
            else:
                tasks = sorted(each, key=lambda task: task.row) if self.source.is_remote else [*each]   # the order of arrival
                run_parallel(methodcaller("work") if span is None else _do_and_tell(span, tasks), tasks, threads)
            read = run_parallel(lambda column: column.finish(), columns, threads)
        if out is not None:
            for (column, _), values in zip(wanted, read, strict=True):
                out.settle(column.name, values)
        return read

    def batches(self, plan: ReadPlan, batch_size: int, threads: int, first: int | None = None) -> Iterator[Table]:
        """The rows of a plan as Tables of batch_size rows, with one page of each leaf in memory.

        Args:
            plan: the columns and their chunks.
            batch_size: rows of a Table; the last may have fewer.
            threads: columns decoded at the same time.
            first: rows of the first Table, at least one; None for batch_size.
        """
        width = sum(self.opener.layout(leaf).width for column in plan.columns for leaf, _ in column.leaves)
        with Fetching(self.source, plan.chunks, self.opener.properties, streaming=True) as buffers:
            slots = itertools.count()
            streams = [self._stream(column, slots, buffers) for column in plan.columns]
            start = 0
            while start < plan.num_rows:
                rows = min(first or batch_size, plan.num_rows - start)
                first = None
                with self.opener.allowance.reserved(rows * width):
                    table = Table(_named(plan, run_parallel(_reader_of(rows), streams, threads)), num_rows=rows)
                yield table
                start += rows

    def _reading(
        self,
        column: ColumnPlan,
        num_rows: int,
        slots: Iterator[int],
        buffers: Fetching,
        out: Outputs | None,
        shared: tuple[int, int],
    ) -> Reading:
        """The reading of one column.

        Args:
            column: its plan.
            num_rows: rows of the output.
            slots: places of the chunks in the buffers, drawn in the order of the plan.
            buffers: stored bytes of all columns.
            out: arrays to read columns into.
            shared: number of threads, and stored bytes of all columns; a nested column gets threads by its share of the bytes.
        """
        if column.flat is not None:
            return FlatReading(self.opener, column, num_rows, slots, buffers, None if out is None else out.memory(column.name))
        from fastpq.read.nested import NestedReading

        if self.source.is_remote:       # row groups are decoded as they arrive
            return NestedReading(self.opener, column, slots, buffers, len(column.leaves[0][1]))
        # views of several outputs have to be numbered anew, for longer than another thread saves
        share = 2 if any(self.opener.type_of(leaf).is_variable for leaf, _ in column.leaves) else 1
        (threads, stored), own = shared, sum(chunk.num_bytes for chunk in column.chunks)
        parts = max(1, threads * own // (stored * len(column.leaves) * share))
        return NestedReading(self.opener, column, slots, buffers, parts)

    def _stream(self, column: ColumnPlan, slots: Iterator[int], buffers: Fetching) -> Stream:
        if column.flat is not None:
            return FlatStream(self.opener, column, slots, buffers)
        from fastpq.read.nested import NestedStream

        return NestedStream(self.opener, column, slots, buffers)


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


def _named(plan: ReadPlan, columns: Sequence[AnyColumn]) -> list[tuple[str, AnyColumn]]:
    return [(column.name, values) for column, values in zip(plan.columns, columns, strict=True)]


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

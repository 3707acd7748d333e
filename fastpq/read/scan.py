"""Scan: reads planned columns, whole or in batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.parallel import run_parallel
from fastpq.common.progress import Span
from fastpq.format.slots import untracked
from fastpq.io.source import Stored
from fastpq.read.chunk_plan import ChunkPlan, claimed_sizes
from fastpq.read.costs import (
    ALWAYS_PLAUSIBLE,
    COLUMNS_OPENED,
    FEWEST_SMALL,
    LARGEST_RUN,
    ROWS_WORTH_CODES,
    TASKS_A_THREAD,
    WORTH_A_TASK,
    WORTH_A_THREAD,
    is_plausible,
)
from fastpq.read.fetch import Fetching, fetching
from fastpq.read.flat import FlatReading, FlatStream, Task
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import ColumnPlan, ReadPlan

if TYPE_CHECKING:
    from fastpq.arrays.layouts import Array
    from fastpq.arrays.table import Column
    from fastpq.read.int96_reading import Int96Reading
    from fastpq.read.nested import NestedReading, NestedStream
    from fastpq.read.outputs import Outputs
    from fastpq.read.small_columns import SmallColumns
    from fastpq.schema.parquet_schema import ColumnDescriptor
    from fastpq.schema.shape import Shape

    Reading: TypeAlias = FlatReading | Int96Reading | NestedReading
    Stream: TypeAlias = FlatStream | NestedStream


class _Budget(NamedTuple):
    """Memory and bytes that a read needs according to the metadata, and how its work is shared.

    Attributes:
        chunks: all chunk plans, in slot order.
        large: slots of the chunks with many values.
        decoded_size: size of all values in memory, in bytes.
        stored_size: number of bytes to read.
        threads: number of threads that decode.
        at_once: whether one thread opens and decodes a few columns at a time, so that one column's memory serves the next.
        largest_run: upper bound, in bytes (stored + decoded), of chunks that are decoded together. -1 decodes each chunk alone.
    """

    chunks: list[ChunkPlan]
    large: list[int]
    decoded_size: int
    stored_size: int
    threads: int
    at_once: bool
    largest_run: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Reader of planned columns in one file.

    Attributes:
        opener: opens the file's chunks.
    """

    opener: ChunkOpener

    def read(self, plan: ReadPlan, threads: int, out: Outputs | None = None, span: Span | None = None) -> Table:
        """Read all rows in a plan as one Table. Chunks are decoded in parallel. A flat column's chunks share one output.

        Args:
            plan: the columns and their chunks.
            threads: how many chunks are decoded at the same time.
            out: arrays to read columns into, already checked against the plan.
            span: counts the decoded rows.
        """
        columns = self.columns([untracked((column, plan.num_rows)) for column in plan.columns], threads, out, span)
        return Table._made(list(zip(plan.names, columns, strict=True)), plan.num_rows)

    def columns(
        self, requested_columns: Sequence[tuple[ColumnPlan, int]], threads: int, out: Outputs | None = None,
        span: Span | None = None, codes: bool = False, judges: Mapping[int, Callable[[Column], Array]] | None = None,
    ) -> Sequence[AnyColumn]:
        """Read planned columns. All chunks are fetched together and decoded in parallel.

        Args:
            requested_columns: column plans, each with the output's row count.
            threads, out, span: as for ``read``.
            codes: whether columns whose values are all in dictionaries are read as codes, whatever the string layout is. Their
                dictionaries may have entries that no row uses.
            judges: functions that get a flat column's values and return verdicts (uint8), by place in ``requested_columns``.
                Such a column is read as its verdicts.
        """
        opener = self.opener
        small = None if out is not None or span is not None or codes or judges else self._small_columns(requested_columns)
        if small is not None:
            with opener.allowance.reserved(small.size):
                small.read()
            requested_columns = small.others
        budget = self._budget(requested_columns, threads, span)
        with (
            opener.allowance.reserved(budget.decoded_size + (0 if small is None else small.size)),
            fetching(opener.source, budget.chunks, opener.properties, streaming=False) as buffers,
        ):
            for slot in budget.large:
                check_plausible(opener, budget.chunks[slot], partial(buffers.look, slot))
            columns: list[AnyColumn] = []
            for readings in self._opened(requested_columns, budget, buffers, out, codes, judges or {}):
                columns += self._decoded(readings, budget, span)
        if out is not None:
            columns = [out.settled(column.name, values) for (column, _), values in zip(requested_columns, columns, strict=True)]
        return columns if small is None else small.merged(columns)

    def _small_columns(self, requested_columns: Sequence[tuple[ColumnPlan, int]]) -> SmallColumns | None:
        """Return the small columns among the requested ones, or None if there are too few to be read in another way."""
        source = self.opener.source
        if source.gives_views or not source.walks_late:
            return None
        if sum(len(column.leaves) for column, _ in requested_columns) < FEWEST_SMALL:
            return None
        from fastpq.read.small_columns import SmallColumns

        small = SmallColumns(self.opener, requested_columns)
        return small if len(small) >= FEWEST_SMALL else None

    def _budget(self, requested_columns: Sequence[tuple[ColumnPlan, int]], threads: int, span: Span | None) -> _Budget:
        """Return the budget for a read. ``threads`` is the largest number of threads that it may use."""
        opener = self.opener
        chunks: list[ChunkPlan] = []
        decoded_size = stored_size = 0
        large: list[int] = []
        for column, rows in requested_columns:
            for leaf, of_leaf in column.leaves:
                layout = opener.layout(leaf)
                values, num_bytes, numbers = claimed_sizes(
                    of_leaf, leaf.max_repetition_level > 0, layout.width + layout.converted_width, ALWAYS_PLAUSIBLE)
                decoded_size += values + (-(-rows // 8) if leaf.is_flat and leaf.nullable else 0)      # and a bit for each row
                stored_size += num_bytes
                large += [len(chunks) + number for number in numbers]
                chunks += of_leaf
        size = decoded_size + stored_size
        if size < max(WORTH_A_THREAD, len(chunks) * WORTH_A_TASK):
            threads = 1
        at_once = threads == 1 and not opener.source.is_remote
        largest_run = LARGEST_RUN if threads == 1 else min(LARGEST_RUN, size // (threads * TASKS_A_THREAD))
        if span is not None:        # each chunk's rows are counted
            at_once, largest_run = False, -1
        return _Budget(chunks, large, decoded_size, stored_size, threads, at_once, largest_run)

    def _opened(
        self, requested_columns: Sequence[tuple[ColumnPlan, int]], budget: _Budget, buffers: Fetching,
        out: Outputs | None, codes: bool, judges: Mapping[int, Callable[[Column], Array]],
    ) -> Iterator[list[Reading]]:
        """Yield the opened columns in groups: a few columns at a time if ``budget.at_once``, otherwise all together."""
        slots = itertools.count()
        together = COLUMNS_OPENED if budget.at_once else max(1, len(requested_columns))
        for first in range(0, len(requested_columns), together):
            readings: list[Reading] = []
            for place, (column, rows) in enumerate(requested_columns[first : first + together], first):
                if column.leaves[0][0].is_flat:
                    memory = None if out is None else out.memory(column.name)
                    readings.append(
                        self._flat(column, rows, slots, buffers, memory, judges.get(place), codes, budget.largest_run))
                else:
                    readings.append(self._nested(column, slots, buffers, (budget.threads, max(1, budget.stored_size))))
            for reading in readings[:COLUMNS_OPENED]:
                reading.open()
            yield readings

    def _decoded(self, readings: list[Reading], budget: _Budget, span: Span | None) -> list[AnyColumn]:
        """Decode opened columns, and return them."""
        if not budget.at_once:
            tasks = [task for reading in readings for task in reading.tasks()]
            if self.opener.source.is_remote:
                tasks.sort(key=attrgetter("row"))       # the order of arrival
            run_parallel(methodcaller("work") if span is None else _do_and_count(span, tasks), tasks, budget.threads)
            return [*run_parallel(methodcaller("finish"), readings, budget.threads)]
        columns = []
        readings.reverse()
        while readings:     # one reading's memory serves the next
            reading = readings.pop()
            for task in reading.tasks():
                task.work()
            columns.append(reading.finish())
        return columns

    def _flat(
        self, column: ColumnPlan, rows: int, slots: Iterator[int], buffers: Fetching, memory: Array | None,
        judge: Callable[[Column], Array] | None, codes: bool, largest_run: int,
    ) -> FlatReading | Int96Reading:
        """Return the reading for a flat column. ``codes`` is as for ``columns``, the other arguments as for FlatReading."""
        opener = self.opener
        leaf, chunks = column.leaves[0]
        if opener.awaits_unit(leaf):
            from fastpq.read.int96_reading import Int96Reading

            return Int96Reading(opener, leaf, chunks, rows, slots, buffers, largest_run)
        becomes = opener.becomes_dictionary
        as_codes = judge is None and (codes or opener.strings == "dictionary" or bool(becomes and becomes(leaf)))
        as_codes = as_codes and self._reads_codes(leaf, chunks, codes)
        as_views = (
            not as_codes and judge is None and leaf.type.dtype is None and opener.strings == "views"
            and ROWS_WORTH_CODES * len(chunks) <= rows and self._has_few_values(leaf, chunks))
        return FlatReading(
            opener, leaf, chunks, rows, slots, buffers, memory, as_codes or as_views, as_views, judge, largest_run)

    def _reads_codes(self, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], with_unused: bool) -> bool:
        from fastpq.read.dictionary_columns import reads_codes

        return reads_codes(self.opener, leaf, chunks, with_unused)

    def _has_few_values(self, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
        from fastpq.read.dictionary_columns import has_few_values

        return has_few_values(self.opener, leaf, chunks)

    def batches(self, plan: ReadPlan, batch_size: int, threads: int, first: int | None = None) -> Iterator[Table]:
        """Yield the rows in a plan as Tables of batch_size rows. Only one page of each leaf is in memory at a time.

        Args:
            plan: the columns and their chunks.
            batch_size: row count of a Table. The last Table may have fewer rows.
            threads: how many columns are decoded at the same time.
            first: row count of the first Table, at least one, or None for batch_size.
        """
        layouts = [self.opener.layout(leaf) for column in plan.columns for leaf, _ in column.leaves]
        width = sum(layout.width + layout.converted_width for layout in layouts)
        with fetching(self.opener.source, plan.chunks, self.opener.properties, streaming=True) as buffers:
            slots = itertools.count()
            streams = [self._stream(column, slots, buffers) for column in plan.columns]
            start = 0
            while start < plan.num_rows:
                rows = min(first or batch_size, plan.num_rows - start)
                first = None
                with self.opener.allowance.reserved(rows * width):
                    columns = run_parallel(methodcaller("read", rows), streams, threads)
                    table = Table._made(list(zip(plan.names, columns, strict=True)), rows)
                yield table
                start += rows

    def _nested(
        self, column: ColumnPlan, slots: Iterator[int], buffers: Fetching, threads_and_size: tuple[int, int]
    ) -> NestedReading:
        """Return the NestedReading for a column.

        Args:
            column: its plan.
            slots: places of chunks in the buffers, drawn in plan order.
            buffers: the stored bytes of all columns.
            threads_and_size: (number of threads, size of all columns in stored bytes). A nested column gets threads by its
                share of the bytes.
        """
        from fastpq.read.nested import NestedReading

        if self.opener.source.is_remote:        # row groups are decoded as they arrive
            return NestedReading(self.opener, column, self._shape(column), slots, buffers, len(column.leaves[0][1]))
        threads, stored_size = threads_and_size
        parts = 1
        if threads > 1:
            # joining several outputs renumbers their views, which takes longer than another thread saves
            share = 2 if any(self.opener.type_of(leaf).is_variable for leaf, _ in column.leaves) else 1
            own = sum(chunk.num_bytes for chunk in column.chunks)
            parts = max(1, threads * own // (stored_size * len(column.leaves) * share))
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


def check_plausible(opener: ChunkOpener, chunk: ChunkPlan, take: Callable[[], Stored]) -> None:
    """Check an implausibly large value count against the page headers, before memory is taken for the values.

    Args:
        opener: opens the file's chunks.
        chunk: the chunk's plan.
        take: returns the chunk's stored bytes.

    Raises:
        ParquetError: the pages have fewer values than the metadata claim, or are broken.
    """
    if chunk.pages is not None and chunk.column.max_repetition_level:
        return      # its output grows with the decoded values
    claimed_size = chunk.num_values * opener.layout(chunk.column).width
    if not is_plausible(claimed_size, chunk.length):
        with opener.placed(chunk):
            opener.pages(chunk, take()).require_values(chunk.num_values)


def _do_and_count(span: Span, tasks: Sequence[Task]) -> Callable[[Task], None]:
    """Return a function that does a task and counts its rows.

    Args:
        span: the part of the progress that belongs to all tasks together.
        tasks: all tasks.
    """
    span.begin(sum(task.num_rows for task in tasks))

    def work(task: Task) -> None:
        task.work()
        span.add(task.num_rows)

    return work

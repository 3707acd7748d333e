"""Int96Reading: reads a whole flat INT96 column in nanoseconds, which nearly always fit, or else in a coarser unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from fastpq.arrays.table import AnyColumn
from fastpq.column.layout import OutsideUnitError
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.fetch import Fetching
from fastpq.read.flat import FlatReading, Task
from fastpq.read.int96 import int96_type
from fastpq.read.opener import ChunkOpener
from fastpq.schema.parquet_schema import ColumnDescriptor


class Int96Reading:
    """Read of a whole flat INT96 column whose unit depends on its values.

    The values are decoded as nanoseconds. Entries of a dictionary page are then converted once. If a timestamp does not fit, the
    column is decoded again, as it is stored.

    Args:
        opener, leaf, chunks, num_rows, buffers, largest_run: as for FlatReading.
        slots: places of chunks in the buffers. One is drawn for each chunk.
    """

    def __init__(
        self, opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], num_rows: int, slots: Iterator[int],
        buffers: Fetching, largest_run: int,
    ) -> None:
        self._fits = True
        chunk_slots = [*islice(slots, len(chunks))]

        def read_by(opener: ChunkOpener) -> FlatReading:
            return FlatReading(opener, leaf, chunks, num_rows, iter(chunk_slots), buffers, largest_run=largest_run)

        self._reading = read_by(opener.with_type(leaf, int96_type("ns")))
        self._read_as_stored = partial(read_by, opener)

    def open(self) -> None:
        """Open chunks before ``tasks`` is called, as FlatReading does."""
        self._reading.open()

    def tasks(self) -> list[Task]:
        """Return a task for each run of chunks."""
        return [task._replace(work=partial(self._try, task)) for task in self._reading.tasks()]

    def finish(self) -> AnyColumn:
        """Return the column. All tasks must be done."""
        if not self._fits:
            self._reading = self._read_as_stored()
            for task in self._reading.tasks():
                task.work()
        return self._reading.finish()

    def _try(self, task: Task) -> None:
        try:
            if self._fits:
                task.work()
        except OutsideUnitError:
            self._fits = False

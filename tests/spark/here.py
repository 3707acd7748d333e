"""The part of a Spark session that jobs need, without Spark: tasks run in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql import types as st

Tasks = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Here:
    """Stands for a session whose tasks and reports are made here. Functions of tasks come pickled, as they do to workers."""

    def range(self, start: int, end: int, step: int, partitions: int) -> Numbers:
        """Numbers, one in each task."""
        assert (start, step, partitions) == (0, 1, end)
        return Numbers(end)

    def createDataFrame(self, rows: Sequence[tuple[Any, ...]], schema: st.StructType) -> Rows:  # noqa: N802 - Spark's name
        """Rows of a report."""
        return Rows([Row(*schema.names)(*row) for row in rows])


class Numbers:
    """Numbers below a bound.

    Args:
        end: the bound.
    """

    def __init__(self, end: int) -> None:
        self._end = end

    def mapInArrow(self, tasks: Tasks, schema: st.StructType) -> Rows:  # noqa: N802 - Spark's name
        """The rows that a task makes of each number."""
        pickled = cloudpickle.dumps(tasks)
        rows: list[Row] = []
        for number in range(self._end):
            for batch in cloudpickle.loads(pickled)(iter([pa.record_batch({"id": [number]})])):
                rows += [Row(*schema.names)(*(row[name] for name in schema.names)) for row in batch.to_pylist()]
        return Rows(rows)


class Rows:
    """Rows that are there.

    Args:
        rows: the rows.
    """

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def collect(self) -> list[Row]:
        """All rows."""
        return self._rows

"""Daft: a DataSource whose tasks read files of a dataset, with columns, filters and limits that reach the files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastpq.adapters.daft_filters import parts_of_daft
from fastpq.adapters.dataset_tasks import DatasetTask, arrow_task, part_of_schema
from fastpq.adapters.task_keys import TaskDecryption
from fastpq.common.lazy import package
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.filters.pushed_filters import pushed_filter_of_parts

pyarrow: Any = package("pyarrow", "read_daft")
daft: Any = package("daft", "read_daft")
daft_batches: Any = package("daft.recordbatch", "read_daft", "daft")
daft_sources: Any = package("daft.io.source", "read_daft", "daft")


@hides_arguments
def read_daft(
    where: Any, *, decryption_properties: TaskDecryption = None, **options: Any
) -> Any:
    """Return a Daft DataFrame that reads a dataset, with a task for each file (``daft.io.source.DataSource``).

    Columns that the query does not use are not read. Its filters rule out files, row groups and pages, and Daft applies them once
    more to the rows. Daft's own threads take any keys. On Ray, tasks run in other processes, and these need the name of a
    function: other keys are refused when Daft pickles the tasks.

    Args:
        where: as for ParquetDataset.
        decryption_properties: as for ParquetDataset, or the name of a function, ``"package.module:function"``, that takes a
            file's path and returns its keys.
        **options: other arguments of ParquetDataset.

    Raises:
        UnsupportedError: Daft or pyarrow is not installed.
        ParquetError: as ParquetDataset.
    """
    return _DaftSource(arrow_task(where, decryption_properties, options)).read()


class _DaftSource(daft_sources.DataSource):     # type: ignore[misc]
    """The files of a dataset, for Daft's planner."""

    def __init__(self, task: DatasetTask) -> None:
        self._task, self._arrow_schema = task, task.schema()

    @property
    def name(self) -> str:
        """The name in plans."""
        return "fastpq"

    @property
    def schema(self) -> Any:
        """The columns."""
        return daft.Schema.from_pyarrow_schema(self._arrow_schema)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[Any]:
        """Yield a task for each file.

        The rows have the columns of the filter too, because Daft applies it again. Their order is that of the schema.
        """
        filters, names = None, self._arrow_schema.names
        if pushdowns.filters is not None:
            column_types = self._task.dataset().schema
            parts = parts_of_daft(pushdowns.filters, column_types)
            filters, _ = pushed_filter_of_parts(parts, column_types, nan_is_unequal=False)
        if pushdowns.columns is not None:
            requested_columns = {*pushdowns.columns, *pushdowns.filter_required_column_names()}
            names = [name for name in names if name in requested_columns]
        schema = part_of_schema(self._arrow_schema, names)
        for task in self._task.split():
            yield _DaftTask(task, schema, filters)


class _DaftTask(daft_sources.DataSourceTask):       # type: ignore[misc]
    """Reads the matching rows of one file."""

    def __init__(self, task: DatasetTask, arrow_schema: Any, filters: Any) -> None:
        self._task, self._arrow_schema, self._filters = task, arrow_schema, filters

    @property
    def schema(self) -> Any:
        """The columns that are read."""
        return daft.Schema.from_pyarrow_schema(self._arrow_schema)

    async def read(self) -> AsyncIterator[Any]:
        """Yield the rows in batches. A batch is decoded in a thread, so that other tasks go on."""
        batches = self._task.batches(self._arrow_schema, self._filters)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield daft_batches.RecordBatch.from_arrow_record_batches([batch], batch.schema)

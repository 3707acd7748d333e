"""Polars: a LazyFrame over a dataset, whose columns, filters and limits reach the files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fastpq.adapters.dataset_tasks import DatasetTask, dataset_task
from fastpq.adapters.task_keys import TaskDecryption
from fastpq.api.file import DEFAULT_BATCH_SIZE
from fastpq.common.lazy import package
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.filters.pushed_filters import pushed_filter_of

if TYPE_CHECKING:
    import polars


@hides_arguments
def scan_polars(
    where: Any, *, decryption_properties: TaskDecryption = None, **options: Any
) -> polars.LazyFrame:
    """Return a Polars LazyFrame that reads a dataset when it is collected (``polars.io.plugins.register_io_source``).

    Columns that the query does not use are not read. Its filters rule out files, row groups and pages, and its limit ends the
    read. Polars applies the parts of a filter that fastpq cannot. A serialized frame never holds a key: a frame with keys cannot
    be serialized, unless decryption_properties names a function.

    Args:
        where: as for ParquetDataset.
        decryption_properties: as for ParquetDataset, or the name of a function, ``"package.module:function"``, that takes a
            file's path and returns its keys.
        **options: other arguments of ParquetDataset.

    Raises:
        UnsupportedError: Polars is not installed.
        ParquetError: as ParquetDataset.
    """
    plugins = package("polars.io.plugins", "scan_polars", "polars")
    task = dataset_task(where, decryption_properties, {"decimals": "decimal128", **options})
    schema = task.dataset().head(0).to_polars().schema
    frame: polars.LazyFrame = plugins.register_io_source(_PolarsSource(task), schema=schema, is_pure=True)
    return frame


class _PolarsSource:
    """What Polars calls for the rows of a dataset. A serialized frame holds a pickle of it."""

    def __init__(self, task: DatasetTask) -> None:
        self._task = task

    def __call__(
        self, columns: list[str] | None, predicate: polars.Expr | None, num_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        """Yield the matching rows.

        Args:
            columns: names of the columns, or None for all.
            predicate: condition on the rows, or None.
            num_rows: most rows that are needed, or None.
            batch_size: rows in a frame, or None.
        """
        dataset = self._task.dataset()
        filters, is_exact = pushed_filter_of(predicate, dataset.schema)
        rest = None if is_exact else predicate
        read_columns = columns
        if columns is not None and rest is not None:
            read_columns = list(dict.fromkeys([*columns, *rest.meta.root_names()]))
        missing = num_rows
        size = batch_size or DEFAULT_BATCH_SIZE
        for table in dataset.iter_batches(size, read_columns, filters=filters):
            frame = table.to_polars()
            if rest is not None:
                frame = frame.filter(rest)
                frame = frame if columns is None else frame.select(columns)
            frame = frame if missing is None else frame.head(missing)
            missing = None if missing is None else missing - frame.height
            yield frame
            if missing == 0:
                return

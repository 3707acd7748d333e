"""AsyncParquetDataset: many files that coroutines read as one table."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any, Self, Unpack

from fastpq.aio.async_reader import AsyncReader, each_batch
from fastpq.aio.reader_tasks import run_task
from fastpq.api.file import DEFAULT_BATCH_SIZE
from fastpq.api.reader_options import OpeningOptions
from fastpq.arrays.table import Table
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Progress
from fastpq.datasets.dataset import DatasetSchema, ParquetDataset
from fastpq.datasets.hive import Partitioning
from fastpq.datasets.keys_of_files import DatasetDecryption
from fastpq.datasets.opened_files import DatasetMetadata
from fastpq.options import takes_options
from fastpq.schema.parquet_schema import ParquetSchema

if TYPE_CHECKING:
    import pandas

    from fastpq.api import keywords
    from fastpq.datasets import dataset_explanation
else:       # types in annotations, which typing.get_type_hints resolves
    dataset_explanation = LazyModule("fastpq.datasets.dataset_explanation")
    keywords = LazyModule("fastpq.api.keywords")
    pandas = LazyModule("pandas")


@takes_options(OpeningOptions, "dataset")
class AsyncParquetDataset(AsyncReader):
    """Many files that coroutines read as one table. It is an asynchronous context manager, and can also be awaited.

    Any number of reads may go on at the same time in one event loop. A read opens and reads many remote files at the same time,
    with the requests that ParquetDataset makes. On asynchronous fsspec filesystems it takes no thread while it waits for bytes. A
    cancelled read cancels its requests. It needs the package greenlet.

    Args:
        where: as for ParquetDataset. A filesystem with ``asynchronous=True`` belongs to the caller's event loop.
        schema, filters, partitioning, decryption_properties, metadata: as for ParquetDataset.
        **options: any of the options of readers. ``threads`` is 1 by default: one file is decoded in one thread, and several
            files in several threads.

    Raises:
        FileNotFoundError, ParquetError: as for ParquetDataset, when the dataset is opened.
        UnsupportedError: greenlet is not installed.
    """

    def __init__(
        self,
        where: Any,
        *,
        schema: DatasetSchema = "union",
        filters: Any = None,
        partitioning: Partitioning = "hive",
        decryption_properties: DatasetDecryption = None,
        metadata: DatasetMetadata = None,
        **options: Unpack[keywords.DatasetReaderOptions],
    ) -> None:
        self._where = where
        self._arguments: dict[str, Any] = {
            "schema": schema, "filters": filters, "partitioning": partitioning,
            "decryption_properties": decryption_properties, "metadata": metadata, "threads": 1, **options,
        }
        self._parquet_dataset: ParquetDataset | None = None
        self._closed = False

    async def close(self) -> None:
        """Close the files that are open for later reads. Columns that were read stay valid."""
        self._closed = True
        if self._parquet_dataset is not None:
            await run_task(self._parquet_dataset._open_files.close)

    @property
    def closed(self) -> bool:
        """Whether the dataset is closed, or not open yet."""
        return self._parquet_dataset is None or self._closed

    @property
    def schema(self) -> ParquetSchema:
        """The dataset's columns.

        Raises:
            SchemaError: no type holds a column's values from all files.
        """
        return self._dataset.schema

    @property
    def files(self) -> list[str]:
        """File paths in reading order."""
        return self._dataset.files

    @property
    def partition_names(self) -> list[str]:
        """Partition column names, outermost first."""
        return self._dataset.partition_names

    async def read(
        self, columns: Iterable[str] | None = None, *, filters: Any = None, progress: Progress | None = None
    ) -> Table:
        """Read all files into memory.

        Args:
            columns, filters: as for ``ParquetDataset.read``.
            progress: as for ``ParquetDataset.read``. It is called in another thread than the event loop's.

        Raises:
            ParquetError: as for ``ParquetDataset.read``.
        """
        return await run_task(self._dataset.read, columns, filters=filters, progress=progress)

    def iter_batches(
        self, batch_size: int = DEFAULT_BATCH_SIZE, columns: Iterable[str] | None = None, **arguments: Any
    ) -> AsyncGenerator[Table]:
        """Read Tables with batch_size rows each, across files.

        ``contextlib.aclosing`` closes the file that is being read as soon as a loop ends, also if it ends early.

        Args:
            batch_size, columns: as for ``ParquetDataset.iter_batches``.
            **arguments: any other argument of ``ParquetDataset.iter_batches``.

        Raises:
            ParquetError, ValueError: as for ``ParquetDataset.iter_batches``.
        """
        return each_batch(lambda: self._dataset.iter_batches(batch_size, columns, **arguments))

    async def to_pandas(self, columns: Iterable[Any] | None = None, **arguments: Any) -> pandas.DataFrame:
        """Read the rows as a pandas DataFrame.

        Args:
            columns: as for ``ParquetDataset.to_pandas``.
            **arguments: any other argument of ``ParquetDataset.to_pandas``.

        Raises:
            ParquetError: as for ``ParquetDataset.to_pandas``.
        """
        return await run_task(self._dataset.to_pandas, columns, **arguments)

    async def take(self, indices: Any, columns: Iterable[str] | None = None) -> Table:
        """Read rows by their numbers, in any order and with repetitions.

        Args:
            indices, columns: as for ``ParquetDataset.take``.

        Raises:
            SchemaError, TypeError: as for ``ParquetDataset.take``.
        """
        return await run_task(self._dataset.take, indices, columns)

    async def head(self, n: int, columns: Iterable[str] | None = None, *, filters: Any = None) -> Table:
        """Read the first rows. Files after these rows are not read.

        Args:
            n, columns, filters: as for ``ParquetDataset.head``.

        Raises:
            ValueError, ParquetError: as for ``ParquetDataset.head``.
        """
        return await run_task(self._dataset.head, n, columns, filters=filters)

    async def tail(self, n: int, columns: Iterable[str] | None = None, *, filters: Any = None) -> Table:
        """Read the last rows. Files before these rows are not read.

        Args:
            n, columns, filters: as for ``ParquetDataset.tail``.

        Raises:
            ValueError, ParquetError: as for ``ParquetDataset.tail``.
        """
        return await run_task(self._dataset.tail, n, columns, filters=filters)

    async def sample(self, n: int, columns: Iterable[str] | None = None, *, seed: Any = None) -> Table:
        """Read n different random rows, each with the same chance, in file order.

        Args:
            n, columns, seed: as for ``ParquetDataset.sample``.

        Raises:
            SchemaError: the dataset has fewer rows.
        """
        return await run_task(self._dataset.sample, n, columns, seed=seed)

    async def count(self, filters: Any = None) -> int:
        """Count the rows that match filters.

        Args:
            filters: as for ``ParquetDataset.read``. None counts all rows.

        Raises:
            ParquetError: as for ``ParquetDataset.count``.
        """
        return await run_task(self._dataset.count, filters)

    async def min_max(self, column: str) -> tuple[Any, Any]:
        """Return the smallest and the largest value of a column in all files.

        Args:
            column: as for ``ParquetDataset.min_max``.

        Raises:
            ParquetError: as for ``ParquetDataset.min_max``.
        """
        return await run_task(self._dataset.min_max, column)

    async def null_count(self, column: str) -> int:
        """Count a column's nulls in all files.

        Args:
            column: as for ``ParquetDataset.null_count``.

        Raises:
            ParquetError: as for ``ParquetDataset.null_count``.
        """
        return await run_task(self._dataset.null_count, column)

    async def explain(
        self, filters: Any, columns: Iterable[str] | None = None
    ) -> dataset_explanation.DatasetExplanation:
        """Return which files, row groups, pages and bytes a ``read`` with filters takes, and why the others are left out.

        Args:
            filters, columns: as for ``ParquetDataset.explain``.

        Raises:
            ParquetError: as for ``ParquetDataset.explain``.
        """
        return await run_task(self._dataset.explain, filters, columns)

    async def _open(self) -> Self:
        if self._parquet_dataset is None:
            self._parquet_dataset = await run_task(ParquetDataset, self._where, **self._arguments)
        return self

    @property
    def _dataset(self) -> ParquetDataset:
        if self._parquet_dataset is None:
            raise ValueError("the dataset is not open: use `async with`, or await it")
        if self._closed:
            raise ValueError("the dataset is closed")
        return self._parquet_dataset

    def __repr__(self) -> str:
        if self._parquet_dataset is None:
            return "<AsyncParquetDataset, not open>"
        return f"<AsyncParquetDataset, {'closed' if self._closed else f'{len(self._parquet_dataset.files)} files'}>"

"""AsyncParquetFile and aread_table: reads of one file as coroutines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from fastpq.aio.async_reader import AsyncReader, each_batch
from fastpq.aio.reader_tasks import run_task
from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile, RowRangesLike
from fastpq.api.functions import read_table
from fastpq.api.reader_options import OpeningOptions
from fastpq.arrays.table import Table
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Progress
from fastpq.io.source import IOCounts
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import takes_options
from fastpq.schema.parquet_schema import ColumnKey, ParquetSchema

if TYPE_CHECKING:
    import pandas

    from fastpq.api import keywords
    from fastpq.read.filtered import explain as explaining
else:       # types in annotations, which typing.get_type_hints resolves
    explaining = LazyModule("fastpq.read.filtered.explain")
    keywords = LazyModule("fastpq.api.keywords")
    pandas = LazyModule("pandas")


@takes_options(OpeningOptions)
class AsyncParquetFile(AsyncReader):
    """A Parquet file that is read by coroutines. It is an asynchronous context manager, and can also be awaited.

    Any number of reads of any number of files may go on at the same time in one event loop. Reads of files on asynchronous fsspec
    filesystems take no thread while they wait for bytes. A cancelled read cancels its requests. It needs the package greenlet.

    Args:
        where: as for ParquetFile. A filesystem with ``asynchronous=True`` belongs to the caller's event loop.
        **options: any of the options of readers. ``threads`` is 1 by default: one read is decoded in one thread, and several
            reads in several threads.

    Raises:
        ParquetError: as for ParquetFile, when the file is opened.
        UnsupportedError: greenlet is not installed.
    """

    def __init__(self, where: Any, **options: Unpack[keywords.ReaderOptions]) -> None:
        self._where = where
        self._options: keywords.ReaderOptions = {"threads": 1, **options}
        self._parquet_file: ParquetFile | None = None

    async def close(self) -> None:
        """Close the file. Columns that were read stay valid."""
        if self._parquet_file is not None:
            await run_task(self._parquet_file.close)

    @property
    def closed(self) -> bool:
        """Whether the file is closed, or not open yet."""
        return self._parquet_file is None or self._parquet_file.closed

    @property
    def metadata(self) -> FileMetaData:
        """The footer. Row groups and column chunks are decoded on first use."""
        return self._file.metadata

    @property
    def schema(self) -> ParquetSchema:
        """The schema tree and its leaves."""
        return self._file.schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._file.num_rows

    @property
    def num_row_groups(self) -> int:
        """Number of row groups."""
        return self._file.num_row_groups

    @property
    def io(self) -> IOCounts:
        """How many reads from the file there were so far, including those of the footer, and how many bytes were read."""
        return self._file.io

    async def read(
        self,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        row_ranges: RowRangesLike | None = None,
        filters: Any = None,
        out: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """Read columns into memory.

        Args:
            columns, row_groups, row_ranges, filters, out: as for ``ParquetFile.read``.
            progress: as for ``ParquetFile.read``. It is called in another thread than the event loop's.

        Returns:
            A Table with exactly the requested columns and rows, in file order.

        Raises:
            ParquetError: as for ``ParquetFile.read``.
        """
        return await run_task(
            self._file.read, columns, row_groups=row_groups, row_ranges=row_ranges, filters=filters, out=out, progress=progress
        )

    async def to_pandas(self, columns: Iterable[ColumnKey] | None = None, **arguments: Any) -> pandas.DataFrame:
        """Read the rows as a pandas DataFrame.

        Args:
            columns: as for ``read_pandas``.
            **arguments: any other argument of ``ParquetFile.to_pandas``.

        Raises:
            ParquetError: as for ``ParquetFile.to_pandas``.
        """
        return await run_task(self._file.to_pandas, columns, **arguments)

    async def take(self, indices: Any, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read rows by their numbers, in any order and with repetitions.

        Args:
            indices, columns: as for ``ParquetFile.take``.

        Returns:
            A Table with n rows, in index order.

        Raises:
            SchemaError, TypeError: as for ``ParquetFile.take``.
        """
        return await run_task(self._file.take, indices, columns)

    async def head(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read the first rows.

        Args:
            n, columns: as for ``ParquetFile.head``.

        Raises:
            ValueError, ParquetError: as for ``ParquetFile.head``.
        """
        return await run_task(self._file.head, n, columns)

    async def tail(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read the last rows.

        Args:
            n, columns: as for ``ParquetFile.tail``.

        Raises:
            ValueError, ParquetError: as for ``ParquetFile.tail``.
        """
        return await run_task(self._file.tail, n, columns)

    async def sample(self, n: int, columns: Iterable[ColumnKey] | None = None, *, seed: Any = None) -> Table:
        """Read n different random rows, each with the same chance, in file order.

        Args:
            n, columns, seed: as for ``ParquetFile.sample``.

        Raises:
            SchemaError: the file has fewer rows.
        """
        return await run_task(self._file.sample, n, columns, seed=seed)

    async def count(self, filters: Any = None) -> int:
        """Count the rows that match filters.

        Args:
            filters: as for ``ParquetFile.read``. None counts all rows.

        Raises:
            ParquetError: as for ``ParquetFile.count``.
        """
        return await run_task(self._file.count, filters)

    async def min_max(self, column: ColumnKey) -> tuple[Any, Any]:
        """Return the smallest and the largest value of a column.

        Args:
            column: as for ``ParquetFile.min_max``.

        Raises:
            ParquetError: as for ``ParquetFile.min_max``.
        """
        return await run_task(self._file.min_max, column)

    async def explain(self, filters: Any, columns: Iterable[ColumnKey] | None = None, **arguments: Any) -> explaining.Explanation:
        """Return the row groups, pages and bytes that a ``read`` with filters would read, and the evidence for each.

        Args:
            filters, columns: as for ``read``.
            **arguments: any other argument of ``ParquetFile.explain``.

        Raises:
            ParquetError: as for ``read``.
        """
        return await run_task(self._file.explain, filters, columns, **arguments)

    def iter_batches(
        self, batch_size: int = DEFAULT_BATCH_SIZE, columns: Iterable[ColumnKey] | None = None, **arguments: Any
    ) -> AsyncGenerator[Table]:
        """Read Tables with batch_size rows each.

        ``contextlib.aclosing`` frees what the batches hold as soon as a loop ends, also if it ends early.

        Args:
            batch_size, columns: as for ``ParquetFile.iter_batches``.
            **arguments: any other argument of ``ParquetFile.iter_batches``.

        Raises:
            ParquetError, ValueError: as for ``ParquetFile.iter_batches``.
        """
        return each_batch(lambda: self._file.iter_batches(batch_size, columns, **arguments))

    async def _open(self) -> Self:
        if self._parquet_file is None:
            self._parquet_file = await run_task(ParquetFile, self._where, **self._options)
        return self

    @property
    def _file(self) -> ParquetFile:
        if self._parquet_file is None:
            raise ValueError("the file is not open: use `async with`, or await it")
        return self._parquet_file

    def __repr__(self) -> str:
        state = "not open" if self._parquet_file is None else "closed" if self._parquet_file.closed else f"{self.num_rows} rows"
        return f"<AsyncParquetFile, {state}>"


@takes_options(OpeningOptions)
async def aread_table(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    row_ranges: RowRangesLike | None = None,
    filters: Any = None,
    progress: Progress | None = None,
    **options: Unpack[keywords.ReaderOptions],
) -> Table:
    """Read a file into memory in a coroutine, as AsyncParquetFile does. Or read a directory, a glob or several files.

    Args:
        where: as for ``read_table``. A filesystem with ``asynchronous=True`` belongs to the caller's event loop.
        columns: names (dotted paths for leaves of groups) or numbers, in result order. None reads all columns. A dataset
            takes names and paths, but no numbers.
        row_groups: row group numbers, in result order. None reads all row groups.
        row_ranges: file rows as pairs ``(start, stop)``, in ascending order. None reads all rows.
        filters: conditions on rows, as in ``ParquetFile.read``.
        progress: called as ``progress(done, total)``, in rows, in another thread than the event loop's.
        **options: any reader option:

    Returns:
        A Table with the requested columns and rows, in file order.

    Raises:
        ParquetError: as for ``read_table``.
        UnsupportedError: greenlet is not installed.
    """
    own_options: keywords.ReaderOptions = {"threads": 1, **options}
    rows = {"row_groups": row_groups, "row_ranges": row_ranges, "filters": filters}
    return await run_task(read_table, where, columns, progress=progress, **rows, **own_options)

"""read_dataset: the rows of many files in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from fastpq.api.reader_options import DatasetReaderOptions, reading
from fastpq.arrays.table import Table
from fastpq.common.progress import Progress
from fastpq.datasets.dataset import DatasetSchema, ParquetDataset
from fastpq.datasets.opened_files import DatasetDecryption
from fastpq.datasets.partition_filters import RowFilters

if TYPE_CHECKING:
    import pandas


@reading
def read_dataset(
    where: Any,
    columns: Iterable[str] | None = None,
    *,
    schema: DatasetSchema = "union",
    filters: Any = None,
    progress: Progress | None = None,
    partitioning: str | None = "hive",
    decryption_properties: DatasetDecryption = None,
    **options: Unpack[DatasetReaderOptions],
) -> Table:
    """Read a dataset into memory, by a ParquetDataset.

    Args:
        where: a directory, a glob, a path, an fsspec URL of these, or a list of them.
        columns: names of whole columns, in the order of the result; None for all.
        schema: columns and types: ``"union"`` of the files that are opened, ``"first"``, or a schema, as for ParquetDataset.
        filters: as for ``ParquetFile.read``, on columns of files and of partitions: files of other partitions are not opened.
        progress: called as ``progress(done, total)``, in rows of all files; the last call is
            ``(total, total)``.
        partitioning: ``"hive"`` (``name=value`` directories) or None.
        decryption_properties: keys, or a function from a file's path to its keys, as for ParquetDataset.
        **options: any of the options of readers:

    Returns:
        A Table of the columns of the files, then the partition columns.

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: incompatible files, unknown columns or invalid filters.
        FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
    """
    dataset = ParquetDataset(
        where,
        schema=schema,
        filters=None if filters is None else RowFilters(filters),
        partitioning=partitioning,
        decryption_properties=decryption_properties,
        **options,
    )
    return dataset.read(columns, filters=filters, progress=progress)


def read_frame(
    where: Any, columns: Iterable[Any] | None, *, filters: Any, dtype_backend: Any, progress: Progress | None, **options: Any
) -> pandas.DataFrame:
    """Read a dataset as a DataFrame, for ``read_pandas``."""
    dataset = ParquetDataset(where, filters=None if filters is None else RowFilters(filters), **options)
    return dataset.to_pandas(columns, filters=filters, dtype_backend=dtype_backend, progress=progress)

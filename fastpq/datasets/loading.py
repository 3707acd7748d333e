"""read_dataset: reads many files in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from fastpq.api.reader_options import OpeningOptions
from fastpq.arrays.table import Table
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Progress
from fastpq.datasets.dataset import DatasetSchema, ParquetDataset
from fastpq.datasets.hive import Partitioning
from fastpq.datasets.keys_of_files import DatasetDecryption
from fastpq.datasets.opened_files import DatasetMetadata
from fastpq.datasets.partition_filters import RowFilters
from fastpq.filters.predicate import with_shared_lists
from fastpq.options import takes_options

if TYPE_CHECKING:
    from fastpq.api import keywords
else:       # typing.get_type_hints looks up annotation types here
    keywords = LazyModule("fastpq.api.keywords")


@takes_options(OpeningOptions, "dataset")
def read_dataset(
    where: Any,
    columns: Iterable[str] | None = None,
    *,
    schema: DatasetSchema = "union",
    filters: Any = None,
    progress: Progress | None = None,
    partitioning: Partitioning = "hive",
    decryption_properties: DatasetDecryption = None,
    metadata: DatasetMetadata = None,
    **options: Unpack[keywords.DatasetReaderOptions],
) -> Table:
    """Read a dataset into memory through a ParquetDataset.

    Args:
        where: a directory, a glob, a path, an fsspec URL for one of these, or a list of these.
        columns: column names, and dotted paths to values inside columns, in the order of the result. None reads all columns.
        schema: columns and types, as for ParquetDataset. ``"union"`` takes the columns of all files that are opened.
        filters: as for ``ParquetFile.read``. They may also name partition columns. A file whose partition cannot match is not
            opened.
        progress: called as ``progress(done, total)``, in rows of all files. The last call is ``(total, total)``.
        partitioning: ``"hive"`` (``name=value`` directories), a list of names for directories that are named by values alone, or
            None, as for ParquetDataset.
        decryption_properties: keys, or a function that returns the keys for a file's path, as for ParquetDataset.
        metadata: footers that the caller has, by path, or a function that returns a path's footer, as for ParquetDataset.
        **options: any of the options of readers:

    Returns:
        A Table of the files' columns, then the partition columns.

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: incompatible files, unknown columns or invalid filters.
        FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
    """
    dataset = ParquetDataset(
        where,
        schema=schema,
        filters=None if filters is None else RowFilters(with_shared_lists(filters)),
        partitioning=partitioning,
        decryption_properties=decryption_properties,
        metadata=metadata,
        **options,
    )
    return dataset.read(columns, filters=filters, progress=progress)


def read_frame(where: Any, columns: Iterable[Any] | None, *, filters: Any, frame: Mapping[str, Any], **options: Any) -> Any:
    """Read a dataset as a DataFrame, for ``read_pandas``. ``frame`` has the other arguments of ``ParquetDataset.to_pandas``."""
    dataset = ParquetDataset(where, filters=None if filters is None else RowFilters(with_shared_lists(filters)), **options)
    return dataset.to_pandas(columns, filters=filters, **frame)

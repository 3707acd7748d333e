"""delete_dataset_rows: deletes rows of a dataset. Partitions and statistics rule out files, which are not touched then."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fastpq.common.progress import Meter, Progress
from fastpq.datasets.dataset import ParquetDataset
from fastpq.datasets.discovery import DataFile
from fastpq.datasets.keys_of_files import DatasetDecryption, decryption_of
from fastpq.datasets.metadata_writing import settle_metadata
from fastpq.errors import UnsupportedError
from fastpq.io.location import RemotePath
from fastpq.options import ReaderProperties
from fastpq.rewriting.deleting import delete_rows
from fastpq.rewriting.report import RewritingReport


@dataclass(frozen=True, slots=True)
class DatasetDeletionReport:
    """What ``delete_dataset_rows`` has done.

    Attributes:
        deleted_rows: number of rows that are gone.
        removed_files: paths of the files that are gone, because all their rows were deleted.
        rewritten_files: for each rewritten path its RewritingReport.
        unchanged_files: number of files that had none of the rows. They were not written.
    """

    deleted_rows: int
    removed_files: tuple[str, ...]
    rewritten_files: Mapping[str, RewritingReport]
    unchanged_files: int

    def __str__(self) -> str:
        return (
            f"{self.deleted_rows} rows deleted: {len(self.rewritten_files)} files rewritten, {len(self.removed_files)} removed, "
            f"{self.unchanged_files} unchanged"
        )


def delete_dataset_rows(
    where: Any,
    filters: Any,
    *,
    decryption_properties: DatasetDecryption = None,
    properties: ReaderProperties | None = None,
    keep_metadata: Collection[str] = (),
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> DatasetDeletionReport:
    """Delete the rows of a dataset that match filters, as ``delete_rows`` does in each file.

    Partition values rule out files first. Then statistics, page indexes and bloom filters rule out row groups. Files without
    such rows are not written, and files with such rows alone are removed. Each other file is replaced in one step, and keeps its
    path and its keys. If the call is interrupted, some files are done, and a second call does the rest.

    Args:
        where: the dataset, as for ``ParquetDataset``.
        filters: which rows are deleted, as for ``ParquetDataset.read``. Partition columns may be in them.
        decryption_properties: keys for the files, a DatasetDecryptionProperties, or a function that returns the keys for a file's
            path.
        properties: limits and checks for reading.
        keep_metadata: as for ``delete_rows``.
        progress: called as ``progress(done, total)`` after each file, in files. The last call is ``(total, total)``.
        filesystem: an fsspec or pyarrow.fs filesystem for the paths, or None to find one by the URL.
        storage_options: options for the URLs' fsspec filesystem, as for pandas and Polars.
        timeout: an HTTP or S3 URL fails after this many seconds without a byte from the server.

    Returns:
        A DatasetDeletionReport.

    Raises:
        SchemaError: filters do not fit the columns. Nothing is deleted then.
        UnsupportedError: a filter is on a column that has another type in some files. Nothing is deleted then.
        FormatError, LimitError, KeyAccessError, TagVerificationError, CryptoError: a file cannot be read.
    """
    if filters is None:
        raise ValueError("filters say which rows are deleted: give some")
    dataset = ParquetDataset(
        where, decryption_properties=decryption_properties, properties=properties, filesystem=filesystem,
        storage_options=storage_options, timeout=timeout)
    checked_filters = dataset._checked(filters)
    all_changes = ((number, _change_of(dataset, number, checked_filters)) for number in range(len(dataset._files)))
    changes = {number: change for number, change in all_changes if change is not None}
    meter = Meter(progress, len(changes), holds_last=True)
    removed_files: list[str] = []
    reports: dict[str, RewritingReport] = {}
    for number, (rest, _) in changes.items():
        file = dataset._files[number]
        if rest is None:
            _remove(file)
            removed_files.append(file.path)
        else:
            keys = decryption_of(decryption_properties, file)
            reports[file.path] = delete_rows(
                file.where, file.where, rest, decryption_properties=keys, properties=properties, keep_metadata=keep_metadata)
        meter.add(1)
    if removed_files and isinstance(where, str | os.PathLike) and filesystem is None:
        settle_metadata(os.fspath(where), None)
    meter.finish()
    deleted_rows, num_unchanged = sum(matches for _, matches in changes.values()), len(dataset._files) - len(changes)
    return DatasetDeletionReport(deleted_rows, tuple(removed_files), reports, num_unchanged)


def _change_of(dataset: ParquetDataset, number: int, filters: Any) -> tuple[Any, int] | None:
    """Return the filters on the rows of a file, and how many rows match. The filters are None if all rows do.

    Return None for a file without such rows.

    Raises:
        UnsupportedError: a filter is on a column that has another type in the dataset than in this file.
    """
    with dataset._filtered_file(number, filters) as member:
        if member is None:
            return None
        if member.is_converted:
            raise UnsupportedError(
                "a filter is on a column whose type differs from file to file: delete the rows file by file",
                path=dataset.files[number],
            )
        num_rows = member.file.num_rows
        num_matches = num_rows if member.filters is None else member.file.count(member.filters)
        if not num_matches:
            return None
        return (None if num_matches == num_rows else member.filters), num_matches


def _remove(file: DataFile) -> None:
    if isinstance(file.where, RemotePath):
        file.where.fs.rm_file(file.where.path)
    else:
        os.unlink(file.where)

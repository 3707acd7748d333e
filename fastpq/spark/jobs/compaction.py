"""Merge a dataset's small files into larger files (compact_dataset)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from pyspark.sql import DataFrame, Row, SparkSession

from fastpq.spark.core import (
    FileDecryptionProperties,
    FileEncryptionProperties,
    FileMetaData,
    KeyAccessError,
    ParquetFile,
    ParquetWriter,
    SchemaError,
    Type,
    WriterProperties,
    durations_of,
    merge_files,
    options_like,
    read_metadata,
)
from fastpq.spark.jobs.reencryption import is_encrypted_file
from fastpq.spark.jobs.replacing import replace, stage_of
from fastpq.spark.jobs.running import ERROR, JobError, Progress, TaskOutcome, Work, report_of, run_tasks
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.option_keywords import CompactionKeywords
from fastpq.spark.options import EncryptionOptions, lists_options, options_as_text, write_options
from fastpq.spark.service_checks import require_service
from fastpq.spark.tables.listing import ListedFile, list_files

# Maximum source bytes that are merged into one file. A Spark partition has the same default (spark.sql.files.maxPartitionBytes).
DEFAULT_TARGET_BYTES = 128 << 20
# Mean row group size in bytes from which pages are copied without decoding. Rows of smaller row groups are rewritten.
LEAST_ROW_GROUP_BYTES = 8 << 20
_ROWS_AT_A_TIME = 100_000   # rows that are decoded at once, to limit memory


@lists_options(WriterProperties, EncryptionOptions, ServiceOptions)
def compact_dataset(
    spark: SparkSession,
    path: str,
    *,
    target_bytes: int = DEFAULT_TARGET_BYTES,
    progress: Progress | None = None,
    **options: Unpack[CompactionKeywords],
) -> DataFrame:
    """Merge a dataset's files into larger files, one task for each merged file, and replace the old files all at once.

    Files merge only if they are in the same folder and have the same schema. Pages are copied without decoding where row groups
    are large (LEAST_ROW_GROUP_BYTES on average) and all files come from one writer. Otherwise rows are written again, in row
    groups with ``rowGroupBytes`` bytes, by default 128 MiB. Unless options say otherwise, they keep the codecs and bloom filters
    of the old files, and are durable. Run a failed job again to continue with the missing files.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share, or in S3.
        target_bytes: maximum source bytes that are merged into one file. Larger files stay as they are.
        progress: called on the driver as ``progress(done, total)``, in files. The last call is ``(total, total)``. An exception
            from it cancels the job. With None, the numbers are logged.
        **options: any data source options. Lists and mappings are JSON:

    Returns:
        A row for each merged file: its first source's path, status, rows, total source bytes, seconds, error.

    Raises:
        SchemaError: options are wrong, files are encrypted but no encryption options are given, or files changed during the job.
        JobError: a file could not be read or written. The dataset stays as it was.
    """
    texts = options_as_text(options)
    if "partitionby" in {name.lower() for name in texts}:
        raise SchemaError("compacting leaves files in their partitions: there is no option partitionBy")
    settings = write_options({"path": path, **texts})
    require_service(spark, settings.service)
    stage = stage_of(path, "compact", settings.encryption, target_bytes, sorted(texts.items()))
    service, encryption = settings.service, settings.encryption
    file_rows = _described(spark, stage.root, service)
    if encryption is None and any(row.made.startswith("encrypted") for row in file_rows):
        raise SchemaError("some files are encrypted: say with options of encryption how the new ones shall be")
    groups = _groups(file_rows, target_bytes)

    def write(sources: list[str], target: Any, place: str, name: str) -> int:
        keys = None if encryption is None or service is None else service.encryption(encryption, place, name)
        return write_together(sources, target, keys, service, settings.properties)

    return replace(spark, stage, stage.replacements(groups), write, progress)


def write_together(
    sources: Sequence[str],
    target: Any,
    keys: FileEncryptionProperties | None,
    service: ServiceOptions | None,
    properties: Mapping[str, Any],
) -> int:
    """Write the rows of several files with the same schema as one file. Return the row count."""
    footers = [read_metadata(source, decryption_properties=_keys_of(source, service)) for source in sources]
    row_groups = sum(footer.num_row_groups for footer in footers)
    are_large = sum(map(_stored_bytes, footers)) >= LEAST_ROW_GROUP_BYTES * row_groups
    # pages with INT96 are always copied, because a decoded value may be outside the range of datetime64[ns]
    has_int96 = any(column.physical_type is Type.INT96 for column in footers[0].schema.columns)
    if has_int96 or (are_large and len({footer.created_by for footer in footers}) == 1):
        merge_files(sources, target, encryption_properties=keys, decryption_properties=lambda path: _keys_of(path, service))
        return sum(footer.num_rows for footer in footers)
    options = {**options_like(footers[0], keys), **properties}
    rows = 0
    with ParquetWriter(target, footers[0].schema, threads=1, encryption_properties=keys, **options) as writer:
        for source in sources:
            # the new file's ARROW:schema is a copy of the old files', so columns are read and written in Parquet's types
            with ParquetFile(source, threads=1, arrow_schema=False, decryption_properties=_keys_of(source, service)) as file:
                for table in file.iter_batches(_ROWS_AT_A_TIME):
                    writer.write_batch(table)
                    rows += table.num_rows
    return rows


def _described(spark: SparkSession, root: str, service: ServiceOptions | None) -> list[Row]:
    """Return a report row for each file. Its ``made`` holds "encrypted" or "plain", and a schema hash."""

    def describe(path: str) -> TaskOutcome:
        state = "encrypted" if is_encrypted_file(path) else "plain"
        footer = read_metadata(path, decryption_properties=_keys_of(path, service))
        schema_parts = (footer.schema_elements, footer.column_orders, durations_of(footer))
        return TaskOutcome(message=f"{state} {hashlib.sha256(repr(schema_parts).encode()).hexdigest()}")

    work: Work[ListedFile] = Work("look at files", lambda file: (file.path, file.size), lambda file: describe(file.path))
    rows = run_tasks(spark, list_files([root]), work, None)
    if failures := [row for row in rows if row.status == ERROR]:
        error = JobError(f"{len(failures)} of {len(rows)} files cannot be read. The first error: {failures[0].error}")
        error.report = report_of(spark, rows)
        raise error
    return rows


def _groups(file_rows: Iterable[Row], target_bytes: int) -> list[list[str]]:
    """Group files to merge by first fit. A group has one folder, one schema, at least two files and at most target_bytes."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in file_rows:
        schema = row.made.split()[1]
        alike.setdefault((os.path.dirname(row.path), schema), []).append(row)
    groups: list[list[str]] = []
    for rows in alike.values():
        open_groups: list[tuple[list[str], int]] = []
        for row in sorted(rows, key=lambda row: (-row.bytes, row.path)):
            for place, (paths, group_bytes) in enumerate(open_groups):
                if group_bytes + row.bytes <= target_bytes:
                    open_groups[place] = ([*paths, row.path], group_bytes + row.bytes)
                    break
            else:
                open_groups.append(([row.path], row.bytes))
        groups += [sorted(paths) for paths, _ in open_groups if len(paths) > 1]
    return groups


def _stored_bytes(footer: FileMetaData) -> int:
    """Return the total size of a file's column chunks in bytes."""
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return sum(group.column(column.index).metadata.total_compressed_size for group in groups for column in footer.schema.columns)


def _keys_of(path: str, service: ServiceOptions | None) -> FileDecryptionProperties | None:
    """Return a file's decryption properties. None for a plaintext file if there is no key service.

    With a key service, plaintext files are refused unless allowPlaintextFiles is on. Otherwise the merged file would authenticate
    the rows that come from a forged file.
    """
    if service is not None:
        return service.decryption(path)
    if is_encrypted_file(path):
        raise KeyAccessError("the file is encrypted: reading it needs the option kms.client", path=path)
    return None

"""compact_dataset: merge small files of a dataset into larger files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from pyspark.sql import DataFrame, Row, SparkSession

from fastpq.api.file import ParquetFile
from fastpq.api.functions import read_metadata
from fastpq.api.writer import ParquetWriter
from fastpq.codecs.catalogue import codec_for_read
from fastpq.common.progress import Progress
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.rewriting.files import durations_of, merge_files
from fastpq.rewriting.redaction import without_values
from fastpq.schema.types import Type
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.keywords import CompactionKeywords
from fastpq.spark.listing import ListedFile, list_files
from fastpq.spark.options import options_as_text, write_options
from fastpq.spark.probing import require_service
from fastpq.spark.replacing import replace, stage_of
from fastpq.spark.rewriting import is_encrypted_file
from fastpq.spark.running import ERROR, JobError, TaskOutcome, Work, report_of, run_tasks

# Most bytes of source files merged into one file, as of a partition in Spark (spark.sql.files.maxPartitionBytes).
DEFAULT_TARGET_BYTES = 128 << 20
# Mean bytes of a row group from which pages are copied without decoding; rows of smaller row groups are written anew.
LEAST_ROW_GROUP_BYTES = 8 << 20
_ROWS_AT_A_TIME = 100_000   # rows decoded at once, bounding memory


def compact_dataset(
    spark: SparkSession,
    path: str,
    *,
    target_bytes: int = DEFAULT_TARGET_BYTES,
    progress: Progress | None = None,
    **options: Unpack[CompactionKeywords],
) -> DataFrame:
    """Merge files of a dataset into larger files, one task for each merged file, and replace the old files all at once.

    Files merge only within a folder and with an equal schema. Pages are copied without decoding where row groups are large
    (LEAST_ROW_GROUP_BYTES on average) and all files come from one writer; otherwise rows are written anew, in row groups of
    ``rowGroupBytes``. Run a failed job again to continue with the missing files. A second run of a finished job changes nothing.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share, or in S3.
        target_bytes: most bytes of source files merged into one file; larger files stay as they are.
        progress: called on the driver as ``progress(done, total)``, in files; the last call is ``(total, total)``. An exception
            from it cancels the job. None logs the numbers.
        **options: any of the options of the data source (fastpq.spark.keywords):

            - ``compression``, ``compressionLevel``, ``columnEncoding``, ``encoding``, ``useDictionary``, ``rowGroupSize``,
              ``rowGroupBytes``, ``dataPageSize``, ``dataPageRows``, ``dataPageVersion``, ``dictionaryPageSize``,
              ``writeStatistics``, ``statisticsTruncation``, ``writePageChecksum``, ``writePageIndex``, ``floatOrder``,
              ``bloomFilter``, ``sortingColumns``, ``sortBy``, ``arrowSchema``, ``keyValueMetadata``, ``checkpointEvery``,
              ``durable``: fields of WriterProperties; lists and mappings as JSON. By default ``rowGroupBytes`` is ``134217728``,
              ``durable`` is ``True``, and codec and bloom filters are the old files' settings.
            - ``parquet.encryption.footer.key``: name of the master key of footers.
            - ``parquet.encryption.column.keys``: names of master keys and their columns: ``"key:column,column;key:column"``.
            - ``parquet.encryption.uniform.key``: name of one master key for footers and columns, in the place of both above.
            - ``parquet.encryption.algorithm``: ``"AES_GCM_V1"`` or ``"AES_GCM_CTR_V1"``. Default ``"AES_GCM_V1"``.
            - ``parquet.encryption.complete.columns``: encrypt columns without a key under the footer key. Default ``False``.
            - ``parquet.encryption.plaintext.footer``: leave footers readable, and sign them. Default ``False``.
            - ``parquet.encryption.double.wrapping``: wrap data keys by key encryption keys, and these by master keys. Default
              ``True``.
            - ``parquet.encryption.key.material.store.internally``: keep key material in the files, not beside them. Default
              ``True``.
            - ``parquet.encryption.data.key.length.bits``: 128, 192 or 256. Default ``128``.
            - ``parquet.encryption.kek.length.bits``: 128, 192 or 256. Default ``128``.
            - ``kms.client``: client of the key service: ``"package.module:Class"``, or ``"keyring"``. Without it only plaintext
              files are read.
            - ``kms.token.file``: path of a file with the access token, on each machine. Default: the environment variable
              FASTPQ_KEY_ACCESS_TOKEN.
            - ``kms.trusted.keys``: names of the master keys that files may be under, separated by commas. Default: all.
            - ``kms.instance.id``: instance of the key service; files that name an instance are refused without. Default: the
              instance of the client.
            - ``kms.instance.url``: URL of the key service. Default: the URL of the client.
            - ``cache.lifetime.seconds``: seconds for which a worker keeps clients and keys. Default ``600``.
            - ``allowPlaintextFiles``: with a key service, read plaintext files too. Default ``False``.
            - ``kms.conf.NAME``: option NAME of the client.

    Returns:
        A row for each merged file: path of its first source, status, rows, bytes of the sources, seconds, error.

    Raises:
        SchemaError: wrong options; encrypted files without options of encryption; files changed during the job.
        JobError: a file could not be read or written; the dataset stays as it was.
    """
    given = options_as_text(options)
    if "partitionby" in {name.lower() for name in given}:
        raise SchemaError("compacting leaves files in their partitions: there is no option partitionBy")
    parsed = write_options({"path": path, **given})
    require_service(spark, parsed.service)
    stage = stage_of(path, "compact", parsed.encryption, target_bytes, sorted(given.items()))
    service, encryption = parsed.service, parsed.encryption
    described = _described(spark, stage.root, service)
    if encryption is None and any(row.made.startswith("encrypted") for row in described):
        raise SchemaError("some files are encrypted: say with options of encryption how the new ones shall be")
    groups = _groups(described, target_bytes)

    def write(sources: list[str], target: Any, place: str) -> int:
        keys = None if encryption is None or service is None else service.encryption(encryption, place)
        return write_together(sources, target, keys, service, parsed.properties)

    return replace(spark, stage, stage.replacements(groups), write, progress)


def write_together(
    sources: Sequence[str],
    target: Any,
    keys: FileEncryptionProperties | None,
    service: ServiceOptions | None,
    properties: Mapping[str, Any],
) -> int:
    """Write the rows of several files of one schema as one file; returns the number of rows."""
    footers = [read_metadata(source, decryption_properties=_keys_of(source, service)) for source in sources]
    row_groups = sum(footer.num_row_groups for footer in footers)
    are_large = sum(map(_stored_bytes, footers)) >= LEAST_ROW_GROUP_BYTES * row_groups
    # pages with INT96 are copied in any case: a decoded value may lie outside datetime64[ns]
    has_int96 = any(column.physical_type is Type.INT96 for column in footers[0].schema.columns)
    if has_int96 or (are_large and len({footer.created_by for footer in footers}) == 1):
        merge_files(sources, target, encryption_properties=keys, decryption_properties=lambda path: _keys_of(path, service))
        return sum(footer.num_rows for footer in footers)
    entries = footers[0].key_values
    if keys is not None:
        closed = closed_columns(keys, [column.path for column in footers[0].schema.columns])
        entries = without_values(footers[0], closed)[0] or []
    metadata = {entry.key: entry.value for entry in entries if entry.value is not None}
    options = {"key_value_metadata": metadata, **_like(footers[0]), **properties}
    rows = 0
    with ParquetWriter(target, footers[0].schema, threads=1, encryption_properties=keys, **options) as writer:
        for source in sources:
            # the old files' metadata, copied to the new file, holds ARROW:schema: columns are written in Parquet's types
            with ParquetFile(source, threads=1, arrow_schema=False, decryption_properties=_keys_of(source, service)) as file:
                for table in file.iter_batches(_ROWS_AT_A_TIME):
                    writer.write_batch(table)
                    rows += table.num_rows
    return rows


def _described(spark: SparkSession, root: str, service: ServiceOptions | None) -> list[Row]:
    """A report row for each file; ``made`` holds "encrypted" or "plain" and a hash of the schema."""

    def describe(path: str) -> TaskOutcome:
        state = "encrypted" if is_encrypted_file(path) else "plain"
        footer = read_metadata(path, decryption_properties=_keys_of(path, service))
        known = (footer.schema_elements, footer.column_orders, durations_of(footer))
        return TaskOutcome(made=f"{state} {hashlib.sha256(repr(known).encode()).hexdigest()}")

    work: Work[ListedFile] = Work("look at files", lambda file: (file.path, file.size), lambda file: describe(file.path))
    rows = run_tasks(spark, list_files([root]), work, None)
    if failed := [row for row in rows if row.status == ERROR]:
        error = JobError(f"{len(failed)} of {len(rows)} files cannot be read. The first error: {failed[0].error}")
        error.report = report_of(spark, rows)
        raise error
    return rows


def _groups(described: Iterable[Row], target_bytes: int) -> list[list[str]]:
    """Groups of files to merge, by first fit: one folder, one schema, two files or more, at most target_bytes."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in described:
        schema = row.made.split()[1]
        alike.setdefault((os.path.dirname(row.path), schema), []).append(row)
    groups: list[list[str]] = []
    for rows in alike.values():
        open_groups: list[tuple[list[str], int]] = []
        for row in sorted(rows, key=lambda row: (-row.bytes, row.path)):
            for place, (paths, filled) in enumerate(open_groups):
                if filled + row.bytes <= target_bytes:
                    open_groups[place] = ([*paths, row.path], filled + row.bytes)
                    break
            else:
                open_groups.append(([row.path], row.bytes))
        groups += [sorted(paths) for paths, _ in open_groups if len(paths) > 1]
    return groups


def _stored_bytes(footer: FileMetaData) -> int:
    """Bytes of all column chunks of a file."""
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return sum(group.column(column.index).metadata.total_compressed_size for group in groups for column in footer.schema.columns)


def _like(footer: FileMetaData) -> dict[str, Any]:
    """Writer properties with the codecs and bloom filters of a file's first row group."""
    if not footer.num_row_groups:
        return {}
    group = footer.row_group(0)
    chunks = {column.name: group.column(column.index) for column in footer.schema.columns}
    return {
        "compression": {name: codec_for_read(chunk.codec).name for name, chunk in chunks.items()},
        "bloom_filter": {name: True for name, chunk in chunks.items() if chunk.metadata.bloom_filter_offset},
    }


def _keys_of(path: str, service: ServiceOptions | None) -> FileDecryptionProperties | None:
    """Decryption properties of a file; None for plaintext without a key service.

    A key service refuses plaintext files unless allowPlaintextFiles is on: rows of a forged file would be authenticated by the
    merged file.
    """
    if service is not None:
        return service.decryption(path)
    if is_encrypted_file(path):
        raise KeyAccessError("the file is encrypted: reading it needs the option kms.client", path=path)
    return None

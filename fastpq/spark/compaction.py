"""compact_dataset: many small files of a dataset become few large ones."""

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
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.rewriting.files import durations_of, merge_files, without_values
from fastpq.schema.types import Type
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.keywords import CompactionKeywords
from fastpq.spark.listing import list_files
from fastpq.spark.options import options_as_text, write_options
from fastpq.spark.rewriting import is_encrypted_file
from fastpq.spark.running import ERROR, JobError, TaskOutcome, Work, report_of, run_tasks
from fastpq.spark.staging import replace, replacements_of, stage_of

DEFAULT_TARGET_BYTES = 128 << 20
# Row groups of at least so many bytes are copied page by page; smaller ones are decoded and made larger.
LEAST_ROW_GROUP_BYTES = 8 << 20
_ROWS_AT_A_TIME = 100_000


def compact_dataset(
    spark: SparkSession,
    path: str,
    *,
    target_bytes: int = DEFAULT_TARGET_BYTES,
    progress: Progress | None = None,
    **options: Unpack[CompactionKeywords],
) -> DataFrame:
    """Make one file of several, a task for each that is made, and put them in the place of the old ones all at once.

    Files of one folder and one schema go together. Where their row groups are large (LEAST_ROW_GROUP_BYTES on average) and
    come from one writer, pages are copied without decoding; else rows are written anew, in row groups of ``rowGroupBytes``.
    A job that died is run again and goes on; run again after its end it changes nothing.

    Args:
        spark: the session.
        path: the dataset's folder, on a filesystem that driver and executors share.
        target_bytes: most bytes of the files that one file is made of; larger files stay as they are.
        progress: called on the driver as ``progress(done, total)``, in files; the last call is ``(total, total)``. An exception
            from it cancels the job. None logs the numbers.
        **options: any of the options of the data source (fastpq.spark.keywords):

            - ``compression``, ``compressionLevel``, ``columnEncoding``, ``encoding``, ``useDictionary``, ``rowGroupSize``,
              ``rowGroupBytes``, ``dataPageSize``, ``dataPageRows``, ``dataPageVersion``, ``dictionaryPageSize``,
              ``writeStatistics``, ``statisticsTruncation``, ``writePageChecksum``, ``writePageIndex``, ``floatOrder``,
              ``bloomFilter``, ``sortingColumns``, ``sortBy``, ``arrowSchema``, ``keyValueMetadata``, ``checkpointEvery``: fields
              of WriterProperties; lists and mappings as JSON. ``rowGroupBytes`` is ``134217728`` by default, codec and bloom
              filters are those of the old files.
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
            - ``kms.instance.id``: instance of the key service. Default: that in the files' key material.
            - ``kms.instance.url``: URL of the key service. Default: that of the client.
            - ``cache.lifetime.seconds``: seconds for which a worker keeps clients and keys. Default ``600``.
            - ``allowPlaintextFiles``: read files that are not encrypted too, beside a key service. Default ``False``.
            - ``kms.conf.NAME``: option NAME of the client.

    Returns:
        A row for each file that was made: path of the first that it is made of, status, rows, bytes before, seconds, error.

    Raises:
        SchemaError: options that do not fit; encrypted files without options of encryption; files that changed meanwhile.
        JobError: a file could not be read or made; the dataset stays as it was.
    """
    given = options_as_text(options)
    if "partitionby" in {name.lower() for name in given}:
        raise SchemaError("compacting leaves files in their partitions: there is no option partitionBy")
    parsed = write_options({"path": path, **given})
    stage = stage_of(path, "compact", target_bytes, sorted(given.items()))
    service, encryption = parsed.service, parsed.encryption
    described = _described(spark, stage.root, service)
    if encryption is None and any(row.made.startswith("encrypted") for row in described):
        raise SchemaError("some files are encrypted: say with options of encryption how the new ones shall be")
    groups = _groups(described, target_bytes)

    def write(sources: list[str], target: str) -> int:
        keys = None if encryption is None or service is None else service.encryption(encryption, target)
        return write_together(sources, target, keys, service, parsed.properties)

    return replace(spark, stage, replacements_of(stage.root, groups), write, progress)


def write_together(
    sources: Sequence[str],
    target: str,
    keys: FileEncryptionProperties | None,
    service: ServiceOptions | None,
    properties: Mapping[str, Any],
) -> int:
    """Write the rows of files of one schema as one file; returns how many there are."""
    footers = [read_metadata(source, decryption_properties=_keys_of(source, service)) for source in sources]
    row_groups = sum(footer.num_row_groups for footer in footers)
    are_large = sum(map(os.path.getsize, sources)) >= LEAST_ROW_GROUP_BYTES * row_groups
    has_int96 = any(column.physical_type is Type.INT96 for column in footers[0].schema.columns)     # only others write it
    if has_int96 or (are_large and len({footer.created_by for footer in footers}) == 1):
        merge_files(sources, target, encryption_properties=keys, decryption_properties=lambda path: _keys_of(path, service))
        return sum(footer.num_rows for footer in footers)
    entries = (footers[0].metadata.key_value_metadata if keys is None else without_values(footers[0])) or []
    metadata = {entry.key: entry.value for entry in entries if entry.value is not None}
    options = {"key_value_metadata": metadata, **_like(footers[0]), **properties}
    rows = 0
    with ParquetWriter(target, footers[0].schema, threads=1, encryption_properties=keys, **options) as writer:
        for source in sources:
            # what columns were in Arrow stands in the metadata, which are those of the old files
            with ParquetFile(source, threads=1, arrow_schema=False, decryption_properties=_keys_of(source, service)) as file:
                for table in file.iter_batches(_ROWS_AT_A_TIME):
                    writer.write_batch(table)
                    rows += table.num_rows
    return rows


def _described(spark: SparkSession, root: str, service: ServiceOptions | None) -> list[Row]:
    """For each file whether it is encrypted, and what tells its schema from others."""

    def describe(path: str) -> TaskOutcome:
        state = "encrypted" if is_encrypted_file(path) else "plain"
        footer = read_metadata(path, decryption_properties=_keys_of(path, service))
        known = (footer.schema_elements, footer.column_orders, durations_of(footer))
        return TaskOutcome(made=f"{state} {hashlib.sha256(repr(known).encode()).hexdigest()}")

    files = [file.path for file in list_files([root])]
    rows = run_tasks(spark, files, Work("look at files", lambda path: (path, os.path.getsize(path)), describe), None)
    if failed := [row for row in rows if row.status == ERROR]:
        error = JobError(f"{len(failed)} of {len(rows)} files cannot be read. The first error: {failed[0].error}")
        error.report = report_of(spark, rows)
        raise error
    return rows


def _groups(described: Iterable[Row], target_bytes: int) -> list[list[str]]:
    """Files that become one, by first fit: of one folder and one schema, at least two, within the bytes."""
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


def _like(footer: FileMetaData) -> dict[str, Any]:
    """Codec and bloom filters as a file has them."""
    if not footer.num_row_groups:
        return {}
    group = footer.row_group(0)
    chunks = {column.name: group.column(column.index) for column in footer.schema.columns}
    return {
        "compression": {name: codec_for_read(chunk.codec).name for name, chunk in chunks.items()},
        "bloom_filter": {name: True for name, chunk in chunks.items() if chunk.metadata.bloom_filter_offset},
    }


def _keys_of(path: str, service: ServiceOptions | None) -> FileDecryptionProperties | None:
    """What opens a file. With a key service a plaintext one is refused unless it is allowed: its rows would come into a file
    that authenticates them."""
    if service is not None:
        return service.decryption(path)
    if is_encrypted_file(path):
        raise KeyAccessError("the file is encrypted: reading it needs the option kms.client", path=path)
    return None

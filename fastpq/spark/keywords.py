"""Types of keyword arguments for the options of the data source, for ``**options: Unpack[...]``: Spark's names, values or text.

Names with a dot are given as ``**{"kms.client": "keyring"}``. ``kms.conf.NAME`` is passed to the client of the key service as its
option NAME. Case does not matter, and underscores in names without a dot do not matter.
"""

from __future__ import annotations

from typing import TypedDict

ServiceKeywords = TypedDict(
    "ServiceKeywords",
    {
        "kms.client": str,
        "kms.token.file": str,
        "kms.trusted.keys": str,
        "kms.instance.id": str,
        "kms.instance.url": str,
        "cache.lifetime.seconds": float | str,
        "allowPlaintextFiles": bool | str,
    },
    total=False,
)

_Encryption = TypedDict(
    "_Encryption",
    {
        "parquet.encryption.footer.key": str,
        "parquet.encryption.column.keys": str,
        "parquet.encryption.uniform.key": str,
        "parquet.encryption.algorithm": str,
        "parquet.encryption.complete.columns": bool | str,
        "parquet.encryption.plaintext.footer": bool | str,
        "parquet.encryption.double.wrapping": bool | str,
        "parquet.encryption.key.material.store.internally": bool | str,
        "parquet.encryption.data.key.length.bits": int | str,
        "parquet.encryption.kek.length.bits": int | str,
    },
    total=False,
)

class _Reading(TypedDict, total=False):
    basePath: str
    maxPartitionBytes: int | str
    minPartitions: int | str
    batchRows: int | str
    mergeSchema: bool | str
    pushFilters: bool | str
    ignoreMissingFiles: bool | str
    planningFooters: int | str
    lookupRows: int | str
    timeZone: str

class _Writing(TypedDict, total=False):
    compression: str
    compressionLevel: int | str
    columnEncoding: str
    encoding: str
    useDictionary: bool | str
    rowGroupSize: int | str
    rowGroupBytes: int | str
    dataPageSize: int | str
    dataPageRows: int | str
    dataPageVersion: str
    dictionaryPageSize: int | str
    writeStatistics: bool | str
    statisticsTruncation: int | str
    writePageChecksum: bool | str
    writePageIndex: bool | str
    floatOrder: str
    bloomFilter: str
    sortingColumns: str
    sortBy: str
    arrowSchema: bool | str
    keyValueMetadata: str
    checkpointEvery: int | str
    durable: bool | str


class EncryptionKeywords(_Encryption, ServiceKeywords, total=False):
    """Options of encryption and of the key service, for writing and rewriting encrypted files."""


class ReadKeywords(_Reading, ServiceKeywords, total=False):
    """Options of reading and of the key service."""


class CompactionKeywords(_Writing, EncryptionKeywords, total=False):
    """Options of writing, of encryption and of the key service."""

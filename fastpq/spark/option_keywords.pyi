"""Keyword arguments of Spark's jobs. ``python -m tools.keywords`` writes this file from the tables of options."""

from typing import Any, TypedDict

TABLES: dict[str, tuple[type[Any], ...]]
NO_KEYWORDS: tuple[str, ...]

def annotations_of(*tables: type[Any]) -> dict[str, str]: ...

ServiceKeywords = TypedDict(
    "ServiceKeywords",
    {
        "kms.client": str,
        "kms.instance.id": str,
        "kms.instance.url": str,
        "kms.token.file": str,
        "cache.lifetime.seconds": float | str,
        "kms.timeout": float | str,
        "kms.attempts": int | str,
        "allowPlaintextFiles": bool | str,
        "kms.trusted.keys": str,
        "tableId": str,
        "kms.audit": str,
        "kms.audit.mandatory": bool | str,
        "kms.audit.hash.key": str,
    },
    total=False,
)

_EncryptionKeywords = TypedDict(
    "_EncryptionKeywords",
    {
        "parquet.encryption.footer.key": str,
        "parquet.encryption.column.keys": str,
        "parquet.encryption.uniform.key": str,
        "parquet.encryption.algorithm": str,
        "parquet.encryption.unlisted": str,
        "parquet.encryption.plaintext.columns": str,
        "parquet.encryption.complete.columns": bool | str,
        "parquet.encryption.plaintext.footer": bool | str,
        "parquet.encryption.double.wrapping": bool | str,
        "parquet.encryption.key.material.store.internally": bool | str,
        "parquet.encryption.data.key.length.bits": int | str,
        "parquet.encryption.kek.length.bits": int | str,
    },
    total=False,
)

class EncryptionKeywords(_EncryptionKeywords, ServiceKeywords, total=False): ...

class ReadKeywords(ServiceKeywords, total=False):
    basePath: str
    maxPartitionBytes: int | str
    minPartitions: int | str
    batchRows: int | str
    mergeSchema: bool | str
    pushFilters: bool | str
    ignoreMissingFiles: bool | str
    onMissingKey: str
    timeZone: str

class CompactionKeywords(EncryptionKeywords, total=False):
    compression: str
    compressionLevel: int | str
    columnEncoding: str
    encoding: str
    compatibility: str
    useDictionary: bool | str
    rowGroupSize: int | str
    rowGroupBytes: int | str
    dataPageSize: int | str
    dataPageRows: int | str
    useContentDefinedChunking: bool | str
    dataPageVersion: str
    dictionaryPageSize: int | str
    writeStatistics: bool | str
    statisticsTruncation: int | str
    writePageChecksum: bool | str
    writePageIndex: bool | str
    writePathInSchema: bool | str
    floatOrder: str
    bloomFilter: str
    sortingColumns: str
    sortBy: str
    arrowSchema: bool | str
    fieldIds: str
    keyValueMetadata: str
    checkpointEvery: int | str
    invalidUtf8: str
    coerceTimestamps: str
    allowTruncatedTimestamps: bool | str
    storeDecimalAsInteger: bool | str
    durable: bool | str

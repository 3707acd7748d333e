"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""

from typing import TYPE_CHECKING

from fastpq.lazy import lazy_names
from fastpq.version import VERSION

if TYPE_CHECKING:
    from fastpq.datasets.dataset import ParquetDataset, read_dataset, write_dataset
    from fastpq.encodings.choice import EncodingChoice
    from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
    from fastpq.errors import (
        CryptoError,
        FormatError,
        KeyAccessError,
        LimitError,
        ParquetError,
        SchemaError,
        TagVerificationError,
        UnsupportedError,
    )
    from fastpq.file import ParquetFile
    from fastpq.filters.predicate import And, Or
    from fastpq.index.bloom_filter import SplitBlockBloomFilter
    from fastpq.index.page_index import ColumnIndex, OffsetIndex, PageLocation
    from fastpq.metadata import ColumnChunkMetaData, FileMetaData, RowGroupMetaData
    from fastpq.properties import ReaderProperties, SortingColumn, WriterProperties
    from fastpq.reading import read_metadata, read_pandas, read_schema, read_table
    from fastpq.recovery.losses import Loss, RecoveryReport
    from fastpq.recovery.table import Recovered, recover_table, unfinished_files
    from fastpq.rewriting.files import decrypt_file, encrypt_file, merge_files
    from fastpq.schema import ColumnDescriptor, ParquetSchema
    from fastpq.table import Column, ListColumn, StructColumn, Table
    from fastpq.types import ColumnType, Type
    from fastpq.writer import ParquetWriter
    from fastpq.writing import write_table

__version__ = VERSION

__all__ = [
    "And",
    "Column",
    "ColumnChunkMetaData",
    "ColumnDescriptor",
    "ColumnIndex",
    "ColumnType",
    "CryptoError",
    "EncodingChoice",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "FileMetaData",
    "FormatError",
    "KeyAccessError",
    "LimitError",
    "ListColumn",
    "Loss",
    "OffsetIndex",
    "Or",
    "PageLocation",
    "ParquetDataset",
    "ParquetError",
    "ParquetFile",
    "ParquetSchema",
    "ParquetWriter",
    "ReaderProperties",
    "Recovered",
    "RecoveryReport",
    "RowGroupMetaData",
    "SchemaError",
    "SortingColumn",
    "SplitBlockBloomFilter",
    "StructColumn",
    "Table",
    "TagVerificationError",
    "Type",
    "UnsupportedError",
    "WriterProperties",
    "__version__",
    "decrypt_file",
    "encrypt_file",
    "merge_files",
    "read_dataset",
    "read_metadata",
    "read_pandas",
    "read_schema",
    "read_table",
    "recover_table",
    "unfinished_files",
    "write_dataset",
    "write_table",
]

# The module of each public name, imported when the name is first used.
_MODULE_OF = {
    "And": "fastpq.filters.predicate",
    "Column": "fastpq.table",
    "ColumnChunkMetaData": "fastpq.metadata",
    "ColumnDescriptor": "fastpq.schema",
    "ColumnIndex": "fastpq.index.page_index",
    "ColumnType": "fastpq.types",
    "CryptoError": "fastpq.errors",
    "EncodingChoice": "fastpq.encodings.choice",
    "FileDecryptionProperties": "fastpq.encryption.properties",
    "FileEncryptionProperties": "fastpq.encryption.properties",
    "FileMetaData": "fastpq.metadata",
    "FormatError": "fastpq.errors",
    "KeyAccessError": "fastpq.errors",
    "LimitError": "fastpq.errors",
    "ListColumn": "fastpq.table",
    "Loss": "fastpq.recovery.losses",
    "OffsetIndex": "fastpq.index.page_index",
    "Or": "fastpq.filters.predicate",
    "PageLocation": "fastpq.index.page_index",
    "ParquetDataset": "fastpq.datasets.dataset",
    "ParquetError": "fastpq.errors",
    "ParquetFile": "fastpq.file",
    "ParquetSchema": "fastpq.schema",
    "ParquetWriter": "fastpq.writer",
    "ReaderProperties": "fastpq.properties",
    "Recovered": "fastpq.recovery.table",
    "RecoveryReport": "fastpq.recovery.losses",
    "RowGroupMetaData": "fastpq.metadata",
    "SchemaError": "fastpq.errors",
    "SortingColumn": "fastpq.properties",
    "SplitBlockBloomFilter": "fastpq.index.bloom_filter",
    "StructColumn": "fastpq.table",
    "Table": "fastpq.table",
    "TagVerificationError": "fastpq.errors",
    "Type": "fastpq.types",
    "UnsupportedError": "fastpq.errors",
    "WriterProperties": "fastpq.properties",
    "decrypt_file": "fastpq.rewriting.files",
    "encrypt_file": "fastpq.rewriting.files",
    "merge_files": "fastpq.rewriting.files",
    "read_dataset": "fastpq.datasets.dataset",
    "read_metadata": "fastpq.reading",
    "read_pandas": "fastpq.reading",
    "read_schema": "fastpq.reading",
    "read_table": "fastpq.reading",
    "recover_table": "fastpq.recovery.table",
    "unfinished_files": "fastpq.recovery.table",
    "write_dataset": "fastpq.datasets.dataset",
    "write_table": "fastpq.writing",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)

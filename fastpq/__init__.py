"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""

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
from fastpq.version import VERSION
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

"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""

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
from fastpq.file import ParquetFile, read_metadata, read_schema, read_table
from fastpq.metadata import ColumnChunkMetaData, FileMetaData, RowGroupMetaData
from fastpq.properties import ReaderProperties, WriterProperties
from fastpq.schema import ColumnDescriptor, ParquetSchema
from fastpq.table import Column, ListColumn, StructColumn, Table
from fastpq.types import ColumnType, Type
from fastpq.version import VERSION as __version__
from fastpq.writer import ParquetWriter, write_table

__all__ = [
    "Column",
    "ColumnChunkMetaData",
    "ColumnDescriptor",
    "ColumnType",
    "CryptoError",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "FileMetaData",
    "FormatError",
    "KeyAccessError",
    "LimitError",
    "ListColumn",
    "ParquetError",
    "ParquetFile",
    "ParquetSchema",
    "ParquetWriter",
    "ReaderProperties",
    "RowGroupMetaData",
    "SchemaError",
    "StructColumn",
    "Table",
    "TagVerificationError",
    "Type",
    "UnsupportedError",
    "WriterProperties",
    "__version__",
    "read_metadata",
    "read_schema",
    "read_table",
    "write_table",
]

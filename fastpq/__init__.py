"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""

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
from fastpq.file import ParquetFile, read_metadata, read_schema, read_table
from fastpq.metadata import ColumnChunkMetaData, FileMetaData, RowGroupMetaData
from fastpq.properties import ReaderProperties, WriterProperties
from fastpq.schema import ColumnDescriptor, ParquetSchema
from fastpq.table import Column, Table
from fastpq.types import ColumnType, Type
from fastpq.writer import ParquetWriter, write_table

__all__ = [
    "Column",
    "ColumnChunkMetaData",
    "ColumnDescriptor",
    "ColumnType",
    "CryptoError",
    "EncodingChoice",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "FileMetaData",
    "FormatError",
    "KeyAccessError",
    "LimitError",
    "ParquetError",
    "ParquetFile",
    "ParquetSchema",
    "ParquetWriter",
    "ReaderProperties",
    "RowGroupMetaData",
    "SchemaError",
    "Table",
    "TagVerificationError",
    "Type",
    "UnsupportedError",
    "WriterProperties",
    "read_metadata",
    "read_schema",
    "read_table",
    "write_table",
]

"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""

from typing import TYPE_CHECKING

from fastpq.common.extensions import register_extension
from fastpq.common.interpreters import refuse_subinterpreters
from fastpq.common.lazy import lazy_names
from fastpq.version import VERSION

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.api.functions import read_metadata, read_pandas, read_schema, read_table
    from fastpq.api.writer import ParquetWriter
    from fastpq.api.writing import write_table
    from fastpq.arrays.table import Column, ListColumn, StructColumn, Table
    from fastpq.datasets.dataset import ParquetDataset
    from fastpq.datasets.loading import read_dataset
    from fastpq.datasets.metadata_writing import write_dataset_metadata
    from fastpq.datasets.partitioning import write_dataset
    from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
    from fastpq.errors import (
        CryptoError,
        FormatError,
        KeyAccessError,
        LimitError,
        ParquetError,
        RemoteError,
        SchemaError,
        TagVerificationError,
        UnsupportedError,
    )
    from fastpq.filters.column_statistics import ColumnStatistics
    from fastpq.filters.predicate import And, Or
    from fastpq.index.bloom_filter import SplitBlockBloomFilter
    from fastpq.index.page_index import ColumnIndex, OffsetIndex, PageLocation
    from fastpq.io.multipart import abort_uploads
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
    from fastpq.options import ReaderProperties, SortingColumn, WriterProperties
    from fastpq.recovery.losses import Loss, RecoveryReport
    from fastpq.recovery.recover import Recovered, recover_table, unfinished_files
    from fastpq.rewriting.files import decrypt_file, encrypt_file, merge_files
    from fastpq.rewriting.report import RewritingReport
    from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
    from fastpq.schema.types import ColumnType, Type
    from fastpq.write.choice import EncodingChoice

refuse_subinterpreters()

__version__ = VERSION

__all__ = [
    "And",
    "Column",
    "ColumnChunkMetaData",
    "ColumnDescriptor",
    "ColumnIndex",
    "ColumnStatistics",
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
    "RemoteError",
    "RewritingReport",
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
    "abort_uploads",
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
    "write_dataset_metadata",
    "write_table",
]

# The module of each public name, imported when the name is first used.
_MODULE_OF = {
    "And": "fastpq.filters.predicate",
    "Column": "fastpq.arrays.table",
    "ColumnChunkMetaData": "fastpq.metadata.column_chunk",
    "ColumnDescriptor": "fastpq.schema.parquet_schema",
    "ColumnIndex": "fastpq.index.page_index",
    "ColumnStatistics": "fastpq.filters.column_statistics",
    "ColumnType": "fastpq.schema.types",
    "CryptoError": "fastpq.errors",
    "EncodingChoice": "fastpq.write.choice",
    "FileDecryptionProperties": "fastpq.encryption.properties",
    "FileEncryptionProperties": "fastpq.encryption.properties",
    "FileMetaData": "fastpq.metadata.file_metadata",
    "FormatError": "fastpq.errors",
    "KeyAccessError": "fastpq.errors",
    "LimitError": "fastpq.errors",
    "ListColumn": "fastpq.arrays.table",
    "Loss": "fastpq.recovery.losses",
    "OffsetIndex": "fastpq.index.page_index",
    "Or": "fastpq.filters.predicate",
    "PageLocation": "fastpq.index.page_index",
    "ParquetDataset": "fastpq.datasets.dataset",
    "ParquetError": "fastpq.errors",
    "ParquetFile": "fastpq.api.file",
    "ParquetSchema": "fastpq.schema.parquet_schema",
    "ParquetWriter": "fastpq.api.writer",
    "ReaderProperties": "fastpq.options",
    "Recovered": "fastpq.recovery.recover",
    "RecoveryReport": "fastpq.recovery.losses",
    "RemoteError": "fastpq.errors",
    "RewritingReport": "fastpq.rewriting.report",
    "RowGroupMetaData": "fastpq.metadata.file_metadata",
    "SchemaError": "fastpq.errors",
    "SortingColumn": "fastpq.options",
    "SplitBlockBloomFilter": "fastpq.index.bloom_filter",
    "StructColumn": "fastpq.arrays.table",
    "Table": "fastpq.arrays.table",
    "TagVerificationError": "fastpq.errors",
    "Type": "fastpq.schema.types",
    "UnsupportedError": "fastpq.errors",
    "WriterProperties": "fastpq.options",
    "abort_uploads": "fastpq.io.multipart",
    "decrypt_file": "fastpq.rewriting.files",
    "encrypt_file": "fastpq.rewriting.files",
    "merge_files": "fastpq.rewriting.files",
    "read_dataset": "fastpq.datasets.loading",
    "read_metadata": "fastpq.api.functions",
    "read_pandas": "fastpq.api.functions",
    "read_schema": "fastpq.api.functions",
    "read_table": "fastpq.api.functions",
    "recover_table": "fastpq.recovery.recover",
    "unfinished_files": "fastpq.recovery.recover",
    "write_dataset": "fastpq.datasets.partitioning",
    "write_dataset_metadata": "fastpq.datasets.metadata_writing",
    "write_table": "fastpq.api.writing",
}

for _role, _function in {
    "export_schema": "fastpq.arrow.exporting:export_schema",
    "export_array": "fastpq.arrow.exporting:export_array",
    "export_stream": "fastpq.arrow.exporting:export_stream",
    "export_batches": "fastpq.arrow.exporting:export_batches",
    "export_request": "fastpq.arrow.narrow_decimals:request_for_narrow_decimals",
    "column_of": "fastpq.convert.numpy_input:column_from_numpy",
    "to_pandas": "fastpq.convert.dataframes:dataframe_of_table",
    "read_dataset": "fastpq.datasets.loading:read_dataset",
    "read_frame": "fastpq.datasets.loading:read_frame",
    "statistics_of": "fastpq.filters.column_statistics:ColumnStatistics",
    "to_pylist VARIANT": "fastpq.variant.variant_column:variants_of",
    "to_pylist FILE": "fastpq.file_reference.reference:file_references",
}.items():
    register_extension(_role, _function)


def _advice(name: str) -> str:
    from fastpq.common.foreign_names import advice

    return advice(name)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _MODULE_OF, _advice)

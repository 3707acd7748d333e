"""A complete Apache Parquet codec for NumPy: reading, writing and Parquet Modular Encryption."""

from typing import TYPE_CHECKING

from fastpq.common.extensions import register_extension
from fastpq.common.interpreters import refuse_subinterpreters
from fastpq.common.lazy import lazy_names
from fastpq.version import VERSION

if TYPE_CHECKING:
    from fastpq.advice.advice_report import Advice, AdviceReport, Caution
    from fastpq.advice.advisor import advise
    from fastpq.aio.async_file import AsyncParquetFile, aread_table
    from fastpq.aio.async_writer import AsyncParquetWriter
    from fastpq.api.encryption_inspection import (
        ColumnProtection,
        EncryptionInspection,
        FileProtection,
        KeyDescription,
        inspect_encryption,
    )
    from fastpq.api.file import ParquetFile
    from fastpq.api.functions import append_table, read_metadata, read_pandas, read_schema, read_table, write_table
    from fastpq.api.writer import ParquetWriter
    from fastpq.arrays.table import Column, ListColumn, StructColumn, Table
    from fastpq.datasets.async_dataset import AsyncParquetDataset
    from fastpq.datasets.dataset import ParquetDataset
    from fastpq.datasets.key_change_report import FileKeyChange, KeyChangeReport
    from fastpq.datasets.key_changes import decrypt_dataset, encrypt_dataset, revoke, rotate_dataset
    from fastpq.datasets.loading import read_dataset
    from fastpq.datasets.metadata_writing import write_dataset_metadata
    from fastpq.datasets.new_files import WrittenFile
    from fastpq.datasets.partitioning import write_dataset
    from fastpq.datasets.row_deletion import DatasetDeletionReport, delete_dataset_rows
    from fastpq.datasets.small_files import CompactionReport, compact
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
    from fastpq.filters.combinations import And, Or
    from fastpq.index.bloom_filter import SplitBlockBloomFilter
    from fastpq.index.page_index import ColumnIndex, OffsetIndex, PageLocation
    from fastpq.io.multipart import abort_uploads
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
    from fastpq.options import ReaderProperties, SortingColumn, WriterProperties
    from fastpq.recovery.losses import Loss, RecoveryReport
    from fastpq.recovery.recover import RecoveredTable, recover_table, unfinished_files
    from fastpq.rewriting.adding_indexes import add_indexes
    from fastpq.rewriting.deleting import delete_rows
    from fastpq.rewriting.evolving import evolve_file
    from fastpq.rewriting.files import decrypt_file, encrypt_file, merge_files
    from fastpq.rewriting.projecting import project_file
    from fastpq.rewriting.rechunking import rechunk_file
    from fastpq.rewriting.recompressing import recompress_file
    from fastpq.rewriting.redacting import redact_file
    from fastpq.rewriting.report import RewritingReport
    from fastpq.rewriting.sorting_rows import sort_file
    from fastpq.rewriting.splitting import split_file
    from fastpq.rewriting.stripping import strip_file
    from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
    from fastpq.schema.types import ColumnType, Type
    from fastpq.verify.file_check import VerificationReport, verify_file
    from fastpq.verify.findings import PlaceInFile, ReaderDifference, UncheckedPart, Violation
    from fastpq.write.choice import EncodingChoice

refuse_subinterpreters()

__version__ = VERSION

__all__ = [
    "Advice",
    "AdviceReport",
    "And",
    "AsyncParquetDataset",
    "AsyncParquetFile",
    "AsyncParquetWriter",
    "Caution",
    "Column",
    "ColumnChunkMetaData",
    "ColumnDescriptor",
    "ColumnIndex",
    "ColumnProtection",
    "ColumnStatistics",
    "ColumnType",
    "CompactionReport",
    "CryptoError",
    "DatasetDeletionReport",
    "EncodingChoice",
    "EncryptionInspection",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "FileKeyChange",
    "FileMetaData",
    "FileProtection",
    "FormatError",
    "KeyAccessError",
    "KeyChangeReport",
    "KeyDescription",
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
    "PlaceInFile",
    "ReaderDifference",
    "ReaderProperties",
    "RecoveredTable",
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
    "UncheckedPart",
    "UnsupportedError",
    "VerificationReport",
    "Violation",
    "WriterProperties",
    "WrittenFile",
    "__version__",
    "abort_uploads",
    "add_indexes",
    "advise",
    "append_table",
    "aread_table",
    "compact",
    "decrypt_dataset",
    "decrypt_file",
    "delete_dataset_rows",
    "delete_rows",
    "encrypt_dataset",
    "encrypt_file",
    "evolve_file",
    "inspect_encryption",
    "merge_files",
    "project_file",
    "read_dataset",
    "read_metadata",
    "read_pandas",
    "read_schema",
    "read_table",
    "rechunk_file",
    "recompress_file",
    "recover_table",
    "redact_file",
    "revoke",
    "rotate_dataset",
    "sort_file",
    "split_file",
    "strip_file",
    "unfinished_files",
    "verify_file",
    "write_dataset",
    "write_dataset_metadata",
    "write_table",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.advice.advice_report": ("Advice", "AdviceReport", "Caution"),
    "fastpq.advice.advisor": ("advise",),
    "fastpq.aio.async_file": ("AsyncParquetFile", "aread_table"),
    "fastpq.aio.async_writer": ("AsyncParquetWriter",),
    "fastpq.api.encryption_inspection": (
        "ColumnProtection", "EncryptionInspection", "FileProtection", "KeyDescription", "inspect_encryption",
    ),
    "fastpq.api.file": ("ParquetFile",),
    "fastpq.api.functions": ("append_table", "read_metadata", "read_pandas", "read_schema", "read_table", "write_table"),
    "fastpq.api.writer": ("ParquetWriter",),
    "fastpq.arrays.table": ("Column", "ListColumn", "StructColumn", "Table"),
    "fastpq.datasets.async_dataset": ("AsyncParquetDataset",),
    "fastpq.datasets.dataset": ("ParquetDataset",),
    "fastpq.datasets.key_change_report": ("FileKeyChange", "KeyChangeReport"),
    "fastpq.datasets.key_changes": ("decrypt_dataset", "encrypt_dataset", "revoke", "rotate_dataset"),
    "fastpq.datasets.loading": ("read_dataset",),
    "fastpq.datasets.metadata_writing": ("write_dataset_metadata",),
    "fastpq.datasets.new_files": ("WrittenFile",),
    "fastpq.datasets.partitioning": ("write_dataset",),
    "fastpq.datasets.row_deletion": ("DatasetDeletionReport", "delete_dataset_rows"),
    "fastpq.datasets.small_files": ("CompactionReport", "compact"),
    "fastpq.encryption.properties": ("FileDecryptionProperties", "FileEncryptionProperties"),
    "fastpq.errors": (
        "CryptoError", "FormatError", "KeyAccessError", "LimitError", "ParquetError", "RemoteError", "SchemaError",
        "TagVerificationError", "UnsupportedError",
    ),
    "fastpq.filters.column_statistics": ("ColumnStatistics",),
    "fastpq.filters.combinations": ("And", "Or"),
    "fastpq.index.bloom_filter": ("SplitBlockBloomFilter",),
    "fastpq.index.page_index": ("ColumnIndex", "OffsetIndex", "PageLocation"),
    "fastpq.io.multipart": ("abort_uploads",),
    "fastpq.metadata.column_chunk": ("ColumnChunkMetaData",),
    "fastpq.metadata.file_metadata": ("FileMetaData", "RowGroupMetaData"),
    "fastpq.options": ("ReaderProperties", "SortingColumn", "WriterProperties"),
    "fastpq.recovery.losses": ("Loss", "RecoveryReport"),
    "fastpq.recovery.recover": ("RecoveredTable", "recover_table", "unfinished_files"),
    "fastpq.rewriting.adding_indexes": ("add_indexes",),
    "fastpq.rewriting.deleting": ("delete_rows",),
    "fastpq.rewriting.evolving": ("evolve_file",),
    "fastpq.rewriting.files": ("decrypt_file", "encrypt_file", "merge_files"),
    "fastpq.rewriting.projecting": ("project_file",),
    "fastpq.rewriting.rechunking": ("rechunk_file",),
    "fastpq.rewriting.recompressing": ("recompress_file",),
    "fastpq.rewriting.redacting": ("redact_file",),
    "fastpq.rewriting.report": ("RewritingReport",),
    "fastpq.rewriting.sorting_rows": ("sort_file",),
    "fastpq.rewriting.splitting": ("split_file",),
    "fastpq.rewriting.stripping": ("strip_file",),
    "fastpq.schema.parquet_schema": ("ColumnDescriptor", "ParquetSchema"),
    "fastpq.schema.types": ("ColumnType", "Type"),
    "fastpq.verify.file_check": ("VerificationReport", "verify_file"),
    "fastpq.verify.findings": ("PlaceInFile", "ReaderDifference", "UncheckedPart", "Violation"),
    "fastpq.write.choice": ("EncodingChoice",),
}

for _role, _function in {
    "export_schema": "fastpq.arrow.exporting:export_schema",
    "export_array": "fastpq.arrow.exporting:export_array",
    "export_stream": "fastpq.arrow.exporting:export_stream",
    "export_batches": "fastpq.arrow.exporting:export_batches",
    "export_pyarrow_request": "fastpq.arrow.original_types:request_for_original_types",
    "export_polars_request": "fastpq.arrow.view_request:request_for_views",
    "column_of": "fastpq.convert.caller_input:column_from",
    "to_pandas": "fastpq.convert.dataframes:dataframe_of_table",
    "read_dataset": "fastpq.datasets.loading:read_dataset",
    "read_frame": "fastpq.datasets.loading:read_frame",
    "empty_table": "fastpq.convert.nulls:empty_table",
    "settle_metadata": "fastpq.datasets.metadata_writing:settle_metadata_of_file",
    "statistics_of": "fastpq.filters.column_statistics:ColumnStatistics",
    "to_pylist VARIANT": "fastpq.variant.variant_column:variants_of",
    "to_pylist FILE": "fastpq.file_reference.reference:file_references",
}.items():
    register_extension(_role, _function)


def _advice(name: str) -> str:
    from fastpq.common.foreign_names import advice

    return advice(name)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF, _advice)

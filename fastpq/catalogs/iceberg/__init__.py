"""Encrypted tables of Apache Iceberg, format version 3: keys of their files, scans, and new data files.

``key_metadata`` has the data key of one file, and ``parquet_properties`` makes the properties for a Parquet file from it.
``gcm_streams`` reads and writes encrypted files that are not Parquet (AGS1): manifests, manifest lists, Puffin files.
``key_chain`` opens the keys in a table's metadata with a key service, and ``table_io`` the manifests with them. ``scan_tasks``
reads PyIceberg scans, and ``data_files`` writes data files.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.catalogs.iceberg.data_files import write_data_file
    from fastpq.catalogs.iceberg.gcm_streams import GcmStreamReader, GcmStreamWriter
    from fastpq.catalogs.iceberg.key_chain import EncryptedKey, TableKeys
    from fastpq.catalogs.iceberg.key_metadata import StandardKeyMetadata
    from fastpq.catalogs.iceberg.parquet_properties import IcebergFileProperties, file_properties
    from fastpq.catalogs.iceberg.scan_tasks import iter_scan, read_scan
    from fastpq.catalogs.iceberg.table_io import open_encrypted_table

__all__ = [
    "EncryptedKey",
    "GcmStreamReader",
    "GcmStreamWriter",
    "IcebergFileProperties",
    "StandardKeyMetadata",
    "TableKeys",
    "file_properties",
    "iter_scan",
    "open_encrypted_table",
    "read_scan",
    "write_data_file",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.catalogs.iceberg.data_files": ("write_data_file",),
    "fastpq.catalogs.iceberg.parquet_properties": ("IcebergFileProperties", "file_properties"),
    "fastpq.catalogs.iceberg.scan_tasks": ("iter_scan", "read_scan"),
    "fastpq.catalogs.iceberg.table_io": ("open_encrypted_table",),
    "fastpq.catalogs.iceberg.gcm_streams": ("GcmStreamReader", "GcmStreamWriter"),
    "fastpq.catalogs.iceberg.key_chain": ("EncryptedKey", "TableKeys"),
    "fastpq.catalogs.iceberg.key_metadata": ("StandardKeyMetadata",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)

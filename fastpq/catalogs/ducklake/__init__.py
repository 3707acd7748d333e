"""Tables of DuckLake, encrypted or not: their files with keys and deleted rows, reads, and rows that are appended.

``lake_catalog`` asks the catalog database, ``lake_reading`` reads tables, and ``lake_appending`` writes files and commits them.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.catalogs.ducklake.lake_appending import append_ducklake
    from fastpq.catalogs.ducklake.lake_catalog import DuckLakeFile
    from fastpq.catalogs.ducklake.lake_reading import ducklake_files, read_ducklake

__all__ = ["DuckLakeFile", "append_ducklake", "ducklake_files", "read_ducklake"]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.catalogs.ducklake.lake_appending": ("append_ducklake",),
    "fastpq.catalogs.ducklake.lake_catalog": ("DuckLakeFile",),
    "fastpq.catalogs.ducklake.lake_reading": ("ducklake_files", "read_ducklake"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)

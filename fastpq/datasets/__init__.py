"""Datasets: many files that are read and written as one table. Hive partition columns come from the paths.

discovery finds files, hive parses and makes partition paths, and unify finds one schema. dataset reads through opened_files, and
partition_filters tells it which files to skip. partitioning writes tables. records keeps the commits in object stores.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.datasets.discovery import COMMON_METADATA, METADATA
    from fastpq.datasets.hive import DOUBLE_TYPE, format_partitions, infer_partition_type, parse_partitions, partition_value
    from fastpq.datasets.records import visible_files, visible_matches

__all__ = [
    "COMMON_METADATA",
    "DOUBLE_TYPE",
    "METADATA",
    "format_partitions",
    "infer_partition_type",
    "parse_partitions",
    "partition_value",
    "visible_files",
    "visible_matches",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.datasets.discovery": ("COMMON_METADATA", "METADATA"),
    "fastpq.datasets.hive": ("DOUBLE_TYPE", "format_partitions", "infer_partition_type", "parse_partitions", "partition_value"),
    "fastpq.datasets.records": ("visible_files", "visible_matches"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)

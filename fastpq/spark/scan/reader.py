"""The data source's reader: the driver plans a scan's partitions, and executors read them as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.core import SchemaError
from fastpq.spark.options import ReadOptions
from fastpq.spark.scan.dataset_footers import Footers
from fastpq.spark.scan.file_scan import ScanPartition, ScanPlan
from fastpq.spark.scan.filter_trees import columns_of, from_spark
from fastpq.spark.scan.splits import plan_partitions
from fastpq.spark.tables.listing import ListedFile, list_files, partition_fields
from fastpq.spark.tables.spark_types import merged_schema
from fastpq.spark.versions import Filter


def schema_of_files(files: Sequence[ListedFile], options: ReadOptions, footers: Footers) -> st.StructType:
    """Return a dataset's Spark schema: the fields in the first file or in all files, then the partition columns.

    Raises:
        SchemaError: there are no files, or their types differ.
    """
    if not files:
        raise SchemaError(f"there is no file below {', '.join(options.paths)} to take the schema from: give one, .schema(...)")
    schema = merged_schema([footers.schema(file) for file in (files if options.merge_schema else files[:1])])
    partition = partition_fields(files, options.time_zone)
    names = {part.name for part in partition}
    return st.StructType([part for part in schema.fields if part.name not in names] + partition)


def partition_types(files: Sequence[ListedFile], schema: st.StructType, zone: str | None) -> dict[str, st.DataType]:
    """Return the types of a dataset's partition columns: from the Spark schema if it has the column, else inferred."""
    types = {part.name: part.dataType for part in schema.fields}
    return {part.name: types.get(part.name, part.dataType) for part in partition_fields(files, zone)}


def plan_scan(
    files: Sequence[ListedFile], schema: st.StructType, options: ReadOptions, footers: Footers, pruning: Any = None
) -> list[ScanPartition]:
    """Plan the partitions of a scan, one for each task.

    Args:
        files: the dataset's files.
        schema: Spark schema to read.
        options: read options.
        footers: the files' footers.
        pruning: conditions that Spark pushes down and applies again itself.

    Raises:
        SchemaError: filters use columns that the dataset does not have.
    """
    partition = partition_types(files, schema, options.time_zone)
    plan = ScanPlan(
        schema,
        tuple(partition.items()),
        options.filters,
        pruning,
        options.batch_rows,
        options.service,
        options.ignore_missing_files,
        options.time_zone,
        on_missing_key=options.on_missing_key,
    )
    if options.filters is not None and files:
        _check_filters(options, files, footers, set(partition))
    partitions = plan_partitions(files, footers.row_group_sizes, options.max_partition_bytes, options.min_partitions)
    return [ScanPartition(plan, splits) for splits in partitions]


def _check_filters(options: ReadOptions, files: Sequence[ListedFile], footers: Footers, partition: set[str]) -> None:
    missing_names = {name.lower() for name in columns_of(options.filters) - partition}
    for file in files if options.merge_schema else files[:1]:
        if not missing_names:
            return
        missing_names -= {name.lower() for name in footers.of(file).schema.names}
    if missing_names:
        raise SchemaError(f"filters on columns that the dataset has not: {', '.join(sorted(missing_names))}")


class Reader(ds.DataSourceReader):
    """Reads a dataset as Arrow batches.

    Args:
        schema: the batches' Spark schema.
        options: read options.
    """

    def __init__(self, schema: st.StructType, options: ReadOptions) -> None:
        self.schema, self.options = schema, options
        self.pruning: Any = None

    def partitions(self) -> list[ds.InputPartition]:
        if self.options.service is not None:
            self.options.service.check()
        files = list_files(self.options.paths, self.options.base_path)
        return list(plan_scan(files, self.schema, self.options, Footers(self.options.service), self.pruning))

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark replaces an empty partition list with one empty partition, which is its own object
        return partition.batches() if isinstance(partition, ScanPartition) else iter(())


class PushdownReader(Reader):
    """A Reader that uses filters from Spark's plan to skip row groups, pages and rows. Spark applies the filters again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self.pruning = from_spark(filters)
        return filters


"""Reader of the data source: the driver plans a scan's partitions, executors read them as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.errors import SchemaError
from fastpq.spark.batches import ScanPartition, ScanPlan
from fastpq.spark.filters import columns_of, from_spark
from fastpq.spark.footers import Footers
from fastpq.spark.handover import AS_IT_IS, Handover
from fastpq.spark.listing import ListedFile, list_files, partition_fields
from fastpq.spark.options import ReadOptions
from fastpq.spark.planning import plan_partitions
from fastpq.spark.types import merged_schema


def schema_of_files(files: Sequence[ListedFile], options: ReadOptions, footers: Footers) -> st.StructType:
    """Spark schema of a dataset: fields of the first file or of all files, followed by the partition columns.

    Raises:
        SchemaError: no files, or files of different types.
    """
    if not files:
        raise SchemaError(f"there is no file below {', '.join(options.paths)} to take the schema from: give one, .schema(...)")
    chosen = files if options.merge_schema else files[:1]
    found = merged_schema([footers.schema(file) for file in chosen])
    partition = partition_fields(files, options.time_zone)
    names = {part.name for part in partition}
    return st.StructType([part for part in found.fields if part.name not in names] + partition)


@dataclass(frozen=True)
class DatasetPart:
    """Part of a dataset.

    Attributes:
        files: files to read.
        row_groups: by path, the row groups to read of a file; other files are read whole.
        partition: types of the dataset's partition columns.
        limit: rows after which a task may stop; None for all.
    """

    files: Sequence[ListedFile]
    row_groups: Mapping[str, Sequence[int]]
    partition: Mapping[str, st.DataType]
    limit: int | None = None


def partition_types(files: Sequence[ListedFile], schema: st.StructType, zone: str | None) -> dict[str, st.DataType]:
    """Types of the partition columns of a dataset: those of a Spark schema where it has the columns, else as inferred."""
    asked = {part.name: part.dataType for part in schema.fields}
    return {part.name: asked.get(part.name, part.dataType) for part in partition_fields(files, zone)}


def plan_scan(
    files: Sequence[ListedFile],
    schema: st.StructType,
    options: ReadOptions,
    footers: Footers,
    pruning: Any = None,
    handover: Handover = AS_IT_IS,
    part: DatasetPart | None = None,
) -> list[ScanPartition]:
    """Plan the partitions of a scan, one for each task.

    Args:
        files: files of the dataset.
        schema: Spark schema to read.
        options: options of the read.
        footers: footers of the files.
        pruning: conditions pushed down by Spark, and applied again by Spark.
        handover: encoding of columns on the way to the JVM.
        part: part of the dataset to read; None reads all of it.

    Raises:
        SchemaError: filters on columns missing in the dataset.
    """
    if part is None:
        part = DatasetPart(files, {}, partition_types(files, schema, options.time_zone))
    plan = ScanPlan(
        schema,
        tuple(part.partition.items()),
        options.filters,
        pruning,
        options.batch_rows if part.limit is None else max(1, min(part.limit, options.batch_rows)),
        options.service,
        options.ignore_missing_files,
        options.time_zone,
        handover,
        part.limit,
    )
    if options.filters is not None and files:
        _check_filters(options, files, footers, set(part.partition))
    most, least = options.max_partition_bytes, options.min_partitions
    planned = plan_partitions(part.files, footers.row_group_sizes, most, least, part.row_groups)
    return [ScanPartition(plan, splits) for splits in planned]


def _check_filters(options: ReadOptions, files: Sequence[ListedFile], footers: Footers, known: set[str]) -> None:
    wanted = {name.lower() for name in columns_of(options.filters) - known}
    for file in files if options.merge_schema else files[:1]:
        if not wanted:
            return
        wanted -= {name.lower() for name in footers.of(file).schema.names}
    if wanted:
        raise SchemaError(f"filters on columns that the dataset has not: {', '.join(sorted(wanted))}")


class Reader(ds.DataSourceReader):
    """Reads a dataset as Arrow batches.

    Args:
        schema: Spark schema of the batches.
        options: options of the read.
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
        # Spark replaces an empty list of partitions with one empty partition of its own
        return partition.batches() if isinstance(partition, ScanPartition) else iter(())


class PushdownReader(Reader):
    """A Reader with filters from Spark's plan, to skip row groups, pages and rows; Spark applies the filters again."""

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - Spark's name
        self.pruning = from_spark(filters)
        return filters


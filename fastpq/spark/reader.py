"""The reader of the data source: planned on the driver, run in executors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.errors import SchemaError
from fastpq.spark.batches import ScanPartition, ScanPlan, open_file
from fastpq.spark.filters import columns_of, from_spark
from fastpq.spark.keyservice import KeyService
from fastpq.spark.listing import DataFile, list_files, partition_fields
from fastpq.spark.options import ReadOptions
from fastpq.spark.planning import plan_partitions
from fastpq.spark.types import merged, spark_schema


def infer_schema(options: ReadOptions) -> st.StructType:
    """The schema of a dataset: of its first file or of all, and its partition columns behind.

    Raises:
        SchemaError: there is no file, or files of different types.
    """
    files = list_files(options.paths, options.base_path)
    if not files:
        raise SchemaError(f"there is no file below {', '.join(options.paths)} to take the schema from: give one, .schema(...)")
    chosen = files if options.merge_schema else files[:1]
    found = merged([_schema_of(file, options.service) for file in chosen])
    partition = partition_fields(files)
    names = {part.name for part in partition}
    return st.StructType([part for part in found.fields if part.name not in names] + partition)


def _schema_of(file: DataFile, service: KeyService | None) -> st.StructType:
    with open_file(file.path, service) as opened:
        return spark_schema(opened.schema)


def plan_scan(
    files: Sequence[DataFile],
    schema: st.StructType,
    options: ReadOptions,
    pruning: Any = None,
    unscaled: Collection[str] = (),
) -> list[ScanPartition]:
    """What each task of a scan reads.

    Args:
        files: of the dataset.
        schema: to read as.
        options: of the read.
        pruning: conditions that Spark applies again.
        unscaled: decimals that are handed over as integers.

    Raises:
        SchemaError: filters on columns that the dataset has not.
    """
    partition = partition_fields(files)
    asked = {part.name: part.dataType for part in schema.fields}
    types = tuple((part.name, asked.get(part.name, part.dataType)) for part in partition)
    plan = ScanPlan(
        schema, types, options.filters, pruning, options.batch_rows, options.service, options.ignore_missing_files,
        frozenset(unscaled),
    )  # fmt: skip
    if options.filters is not None and files:
        _check_filters(options, files, {part.name for part in partition})

    def sizes(file: DataFile) -> list[int]:
        with open_file(file.path, options.service) as opened:
            groups = map(opened.metadata.row_group, range(opened.num_row_groups))
            return [group.total_compressed_size or group.total_byte_size for group in groups]

    planned = plan_partitions(files, sizes, options.max_partition_bytes, options.min_partitions)
    return [ScanPartition(plan, splits) for splits in planned]


def _check_filters(options: ReadOptions, files: Sequence[DataFile], known: set[str]) -> None:
    wanted = {name.lower() for name in columns_of(options.filters) - known}
    for file in files if options.merge_schema else files[:1]:
        if not wanted:
            return
        with open_file(file.path, options.service) as opened:
            wanted -= {name.lower() for name in opened.schema.names}
    if wanted:
        raise SchemaError(f"filters on columns that the dataset has not: {', '.join(sorted(wanted))}")


class Reader(ds.DataSourceReader):
    """Reads a dataset as Arrow batches.

    Args:
        schema: of the batches.
        options: of the read.
    """

    def __init__(self, schema: st.StructType, options: ReadOptions) -> None:
        self.schema, self.options = schema, options
        self.pruning: Any = None

    def partitions(self) -> list[ds.InputPartition]:
        files = list_files(self.options.paths, self.options.base_path)
        return list(plan_scan(files, self.schema, self.options, self.pruning))

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        # of no partition at all Spark makes an empty one of its own
        return partition.batches() if isinstance(partition, ScanPartition) else iter(())


class PushdownReader(Reader):
    """A reader that takes filters from Spark's plan, to leave out what they exclude; Spark applies them again."""

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - Spark's name
        self.pruning = from_spark(filters)
        return filters


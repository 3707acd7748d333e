"""The same read through mapInArrow, for places where a data source cannot go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from fastpq.spark.batches import ScanPartition
from fastpq.spark.listing import list_files
from fastpq.spark.options import read_options
from fastpq.spark.reader import infer_schema, plan_scan
from fastpq.spark.session import default_parallelism, options_of, project


def scan(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[str],
    filters: Any = None,
    schema: st.StructType | None = None,
    **options: Any,
) -> DataFrame:
    """A dataset as a DataFrame made by mapInArrow: the files and row groups are planned now, a task for each partition.

    Args, raises: as fastpq.spark.read; columns must be named.
    """
    given = options_of(path, filters, options)
    if "minpartitions" not in {name.lower() for name in given}:
        given["minPartitions"] = str(default_parallelism(spark))
    parsed = read_options(given)
    chosen = project(schema if schema is not None else infer_schema(parsed), columns)
    partitions = plan_scan(list_files(parsed.paths, parsed.base_path), chosen, parsed)
    tasks = max(len(partitions), 1)
    return spark.range(0, tasks, 1, tasks).mapInArrow(_reader_of(partitions), chosen)


def _reader_of(partitions: list[ScanPartition]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if number < len(partitions):
                    yield from partitions[number].batches()

    return read

"""read and scan: a dataset as a DataFrame, with columns and filters as arguments.

Spark prunes no columns of Python sources, and takes filters to them only where the session allows it.

A scan is planned at the call, like a scan of Spark's own sources. Files and row groups of the plan are the closure of a function
for mapInArrow. Spark takes batches faster from mapInArrow than from a data source, since planning a data source needs a further
process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from fastpq.errors import SchemaError
from fastpq.spark.batches import ScanPartition
from fastpq.spark.filters import encode_filters
from fastpq.spark.footers import Footers
from fastpq.spark.handover import Handover, plan_handover, restored
from fastpq.spark.keywords import ReadKeywords
from fastpq.spark.listing import list_files
from fastpq.spark.options import options_as_text, plain_name, read_options
from fastpq.spark.probing import require_service
from fastpq.spark.reader import plan_scan, schema_of_files
from fastpq.spark.session import partition_time_zone, pushdown_enabled, register

PUSH_FILTERS, MIN_PARTITIONS, TIME_ZONE = "pushFilters", "minPartitions", "timeZone"
BROADCAST_BYTES = 10 << 20      # largest side of a join copied by Spark to all executors (spark.sql.autoBroadcastJoinThreshold)


def read(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[str] | None = None,
    filters: Any = None,
    schema: st.StructType | None = None,
    **options: Unpack[ReadKeywords],
) -> DataFrame:
    """A dataset as a DataFrame with only the chosen columns and rows.

    The DataFrame comes from the data source if the session lets Python sources take filters from its plans, or if
    ``pushFilters`` is given; otherwise from ``scan``.

    Args:
        spark: the session.
        path: a file, a folder or a glob, or several.
        columns: names; None for all.
        filters: conditions on rows, as in fastpq.filters.predicate; row groups and pages are skipped by the same conditions.
        schema: Spark schema of the DataFrame; None takes the schema of the files.
        **options: any of the options of the data source (fastpq.spark.keywords):

            - ``basePath``: folder below which directories named ``column=value`` are partitions. Default: ``path``.
            - ``maxPartitionBytes``: most bytes of files in a Spark partition, unless a row group has more. Default ``134217728``.
            - ``minPartitions``: smaller partitions are planned where fewer would come. Default: cores of the cluster.
            - ``batchRows``: rows of an Arrow batch. Default ``100000``.
            - ``mergeSchema``: take the schema of all files, not of the first. Default ``False``.
            - ``pushFilters``: take filters from Spark's plans. Default: where the session allows it.
            - ``ignoreMissingFiles``: pass over files that vanish after planning. Default ``False``.
            - ``planningFooters``: most files whose footers are read while a scan is planned. Default ``64``.
            - ``lookupRows``: most rows that planning reads itself, in scans with the jar. Default ``1000``.
            - ``timeZone``: time zone of timestamps in the names of folders. Default: the session's.
            - ``kms.client``: client of the key service: ``"package.module:Class"``, or ``"keyring"``. Without it only plaintext
              files are read.
            - ``kms.token.file``: path of a file with the access token, on each machine. Default: the environment variable
              FASTPQ_KEY_ACCESS_TOKEN.
            - ``kms.trusted.keys``: names of the master keys that files may be under, separated by commas. Default: all.
            - ``kms.instance.id``: instance of the key service; files that name an instance are refused without. Default: the
              instance of the client.
            - ``kms.instance.url``: URL of the key service. Default: the URL of the client.
            - ``cache.lifetime.seconds``: seconds for which a worker keeps clients and keys. Default ``600``.
            - ``allowPlaintextFiles``: with a key service, read plaintext files too. Default ``False``.
            - ``kms.conf.NAME``: option NAME of the client.

    Raises:
        SchemaError: unknown columns or options, or a secret among the options.
    """
    given = _options_of(spark, path, filters, options)
    pushdown = pushdown_enabled(spark)
    if not pushdown and not _is_given(given, PUSH_FILTERS):
        return _scan(spark, given, columns, schema)
    register(spark)
    if not _is_given(given, PUSH_FILTERS):
        given[PUSH_FILTERS] = str(pushdown).lower()
    parsed = read_options(given)
    found = schema
    if found is None:
        found = schema_of_files(list_files(parsed.paths, parsed.base_path), parsed, Footers(parsed.service))
    return spark.read.format("fastpq").schema(project(found, columns)).options(**given).load()


def scan(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[str],
    filters: Any = None,
    schema: st.StructType | None = None,
    **options: Unpack[ReadKeywords],
) -> DataFrame:
    """A dataset as a DataFrame made by mapInArrow: files and row groups are planned at the call, one task for each partition.

    Args:
        spark: the session.
        path: a file, a folder or a glob, or several.
        columns: names.
        filters: conditions on rows (fastpq.filters.predicate); row groups and pages are skipped by the same conditions.
        schema: Spark schema of the DataFrame; None takes the schema of the files.
        **options: any of the options of the data source (fastpq.spark.keywords):

            - ``basePath``: folder below which directories named ``column=value`` are partitions. Default: ``path``.
            - ``maxPartitionBytes``: most bytes of files in a Spark partition, unless a row group has more. Default ``134217728``.
            - ``minPartitions``: smaller partitions are planned where fewer would come. Default: cores of the cluster.
            - ``batchRows``: rows of an Arrow batch. Default ``100000``.
            - ``mergeSchema``: take the schema of all files, not of the first. Default ``False``.
            - ``pushFilters``: take filters from Spark's plans. Default: where the session allows it.
            - ``ignoreMissingFiles``: pass over files that vanish after planning. Default ``False``.
            - ``planningFooters``: most files whose footers are read while a scan is planned. Default ``64``.
            - ``lookupRows``: most rows that planning reads itself, in scans with the jar. Default ``1000``.
            - ``timeZone``: time zone of timestamps in the names of folders. Default: the session's.
            - ``kms.client``: client of the key service: ``"package.module:Class"``, or ``"keyring"``. Without it only plaintext
              files are read.
            - ``kms.token.file``: path of a file with the access token, on each machine. Default: the environment variable
              FASTPQ_KEY_ACCESS_TOKEN.
            - ``kms.trusted.keys``: names of the master keys that files may be under, separated by commas. Default: all.
            - ``kms.instance.id``: instance of the key service; files that name an instance are refused without. Default: the
              instance of the client.
            - ``kms.instance.url``: URL of the key service. Default: the URL of the client.
            - ``cache.lifetime.seconds``: seconds for which a worker keeps clients and keys. Default ``600``.
            - ``allowPlaintextFiles``: with a key service, read plaintext files too. Default ``False``.
            - ``kms.conf.NAME``: option NAME of the client.

    Raises:
        SchemaError: unknown columns or options, or a secret among the options.
    """
    return _scan(spark, _options_of(spark, path, filters, options), columns, schema)


@dataclass(frozen=True)
class PlannedScan:
    """A planned scan, before any call to Spark.

    Attributes:
        schema: schema of the DataFrame.
        handover: encoding of its columns on the way to the JVM.
        partitions: splits of each task.
    """

    schema: st.StructType
    handover: Handover
    partitions: list[ScanPartition]


def plan(
    spark: SparkSession, options: Mapping[str, str], columns: Sequence[str] | None, schema: st.StructType | None = None
) -> PlannedScan:
    """Plan a scan: find the files, read footers, choose the handover, divide row groups among tasks."""
    parsed = read_options(options)
    require_service(spark, parsed.service)
    files, footers = list_files(parsed.paths, parsed.base_path), Footers(parsed.service)
    chosen = project(schema if schema is not None else schema_of_files(files, parsed, footers), columns)
    # statistics save time for each row handed over and cost time for each column; filters usually leave too few rows
    is_worth = parsed.filters is None and len(files) <= parsed.planning_footers
    handover = plan_handover(spark, chosen, footers.complete(files, chosen) if is_worth else ())
    return PlannedScan(chosen, handover, plan_scan(files, chosen, parsed, footers, handover=handover))


def _scan(
    spark: SparkSession, given: dict[str, str], columns: Sequence[str] | None, schema: st.StructType | None
) -> DataFrame:
    planned = plan(spark, given, columns, schema)
    tasks = max(len(planned.partitions), 1)
    numbers = spark.range(0, tasks, 1, tasks)
    if sum(split.size for partition in planned.partitions for split in partition.splits) > BROADCAST_BYTES:
        numbers = _of_unknown_size(spark, numbers)
    frame = numbers.mapInArrow(_reader_of(planned.partitions), planned.handover.schema(planned.schema))
    return restored(spark, frame, planned.schema, planned.handover)


def _of_unknown_size(spark: SparkSession, numbers: DataFrame) -> DataFrame:
    """The same DataFrame with a size unknown to Spark: Spark would take the scan for as small as its input, and broadcast it."""
    if not hasattr(spark, "_jsparkSession"):        # Spark Connect
        return numbers
    known = numbers._jdf
    unknown = spark._jsparkSession.internalCreateDataFrame(known.queryExecution().toRdd(), known.schema(), False)
    return DataFrame(unknown, spark)


def _reader_of(partitions: list[ScanPartition]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if number < len(partitions):
                    yield from partitions[number].batches()

    return read


def _options_of(spark: SparkSession, path: str | Sequence[str], filters: Any, options: Mapping[str, object]) -> dict[str, str]:
    """Options as text, with paths, filters, and by default one partition for each core."""
    given = options_as_text(options)
    given["paths"] = json.dumps([path] if isinstance(path, str) else list(path))
    if filters is not None:
        given["filters"] = encode_filters(filters)
    if not _is_given(given, MIN_PARTITIONS):
        given[MIN_PARTITIONS] = str(default_parallelism(spark))
    if not _is_given(given, TIME_ZONE) and (zone := partition_time_zone(spark)) is not None:
        given[TIME_ZONE] = zone
    return given


def _is_given(options: dict[str, str], name: str) -> bool:
    return plain_name(name) in map(plain_name, options)


def project(schema: st.StructType, columns: Sequence[str] | None) -> st.StructType:
    """The fields of a schema with the given names, in the order of the names; None takes the whole schema.

    Raises:
        SchemaError: a name missing in the schema, or a name given twice.
    """
    if columns is None:
        return schema
    if len(set(columns)) < len(columns):
        raise SchemaError(f"a column twice among {', '.join(columns)}")
    fields = {part.name: part for part in schema.fields}
    if missing := [name for name in columns if name not in fields]:
        raise SchemaError(f"there is no column {missing[0]!r}; the dataset has {', '.join(fields)}")
    return st.StructType([fields[name] for name in columns])


def default_parallelism(spark: SparkSession) -> int:
    """Cores of the cluster; 1 with Spark Connect, where the number is unknown."""
    context = getattr(spark, "_sc", None)
    return int(context.defaultParallelism) if context is not None else 1

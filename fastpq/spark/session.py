"""What a driver calls: registering the source, and reading with columns and filters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from fastpq.errors import SchemaError
from fastpq.spark import journal
from fastpq.spark.filters import encode_filters
from fastpq.spark.listing import local_path
from fastpq.spark.options import options_as_text, read_options
from fastpq.spark.reader import infer_schema
from fastpq.spark.source import FastpqDataSource, PushdownDataSource

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def pushdown_enabled(spark: SparkSession) -> bool:
    return str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"


def register(spark: SparkSession) -> None:
    """Make ``fastpq`` a format of a session; it takes filters from plans if the session lets Python sources do so now."""
    spark.dataSource.register(PushdownDataSource if pushdown_enabled(spark) else FastpqDataSource)


def read(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[str] | None = None,
    filters: Any = None,
    schema: st.StructType | None = None,
    **options: Any,
) -> DataFrame:
    """A dataset as a DataFrame that reads only some columns and rows: Spark prunes neither for Python sources.

    Args:
        spark: the session.
        path: a file, a folder or a glob, or several.
        columns: names; None for all.
        filters: which rows, as fastpq.filters.predicate has them; they also leave out row groups and pages.
        schema: to read as, instead of the one in the files.
        **options: of the source, by name: ``maxPartitionBytes=1 << 20``, ``**{"kms.client": ...}``.

    Raises:
        SchemaError: columns or options that there are not, or a secret among the options.
    """
    register(spark)
    given = options_of(path, filters, options)
    parsed = read_options(given)
    found = schema if schema is not None else infer_schema(parsed)
    if "minpartitions" not in {name.lower() for name in given}:
        given["minPartitions"] = str(default_parallelism(spark))
    given.setdefault("pushFilters", str(pushdown_enabled(spark)).lower())
    return spark.read.format("fastpq").schema(project(found, columns)).options(**given).load()


def clean(path: str, older_than: float = 0.0) -> list[str]:
    """Finish commits of a dataset that a driver left unfinished, and remove what failed jobs left.

    Args:
        path: the dataset's folder.
        older_than: seconds for which a job's files have not changed; 0 if no other job writes now.

    Returns:
        The names of the jobs.
    """
    return journal.clean(local_path(path), older_than)


def options_of(path: str | Sequence[str], filters: Any, options: dict[str, Any]) -> dict[str, str]:
    """Options as text."""
    given = options_as_text(options)
    given["paths"] = json.dumps([path] if isinstance(path, str) else list(path))
    if filters is not None:
        given["filters"] = encode_filters(filters)
    return given


def project(schema: st.StructType, columns: Sequence[str] | None) -> st.StructType:
    """The fields of some names.

    Raises:
        SchemaError: a name that the schema has not.
    """
    if columns is None:
        return schema
    fields = {part.name: part for part in schema.fields}
    if missing := [name for name in columns if name not in fields]:
        raise SchemaError(f"there is no column {missing[0]!r}; the dataset has {', '.join(fields)}")
    return st.StructType([fields[name] for name in columns])


def default_parallelism(spark: SparkSession) -> int:
    """Cores of the cluster, where the session tells; Spark Connect does not."""
    context = getattr(spark, "_sc", None)
    return int(context.defaultParallelism) if context is not None else 1

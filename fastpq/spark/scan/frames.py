"""The function that returns a dataset as a DataFrame, with columns and filters as arguments (read).

Spark does not prune the columns of Python sources, and pushes filters down to them only if the session allows it. With the jar,
Spark does both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from fastpq.spark.core import And, Or, SchemaError
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.option_keywords import ReadKeywords
from fastpq.spark.options import ReadOptions, lists_options, options_as_text, plain_name, read_options
from fastpq.spark.scan.dataset_footers import Footers
from fastpq.spark.scan.filter_trees import encode_filters, tree_of
from fastpq.spark.scan.reader import schema_of_files
from fastpq.spark.service_checks import require_service
from fastpq.spark.session import has_jar, partition_time_zone, pushdown_enabled, register
from fastpq.spark.tables.listing import list_files

PUSH_FILTERS, MIN_PARTITIONS, TIME_ZONE = "pushFilters", "minPartitions", "timeZone"


@lists_options(ReadOptions, ServiceOptions)
def read(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[str] | None = None,
    filters: Any = None,
    schema: st.StructType | None = None,
    **options: Unpack[ReadKeywords],
) -> DataFrame:
    """Return a dataset as a DataFrame with only the chosen columns and rows.

    With the jar this is ``spark.read.format("fastpq").load(path)``, with the columns and rows chosen by Spark. Without it, the
    Python source gets the columns and the filters.

    Args:
        spark: the session.
        path: a file, a folder or a glob, or several.
        columns: column names. None takes all.
        filters: row conditions as in fastpq.filters.predicate. They also skip row groups and pages.
        schema: Spark schema that the DataFrame gets. None takes the files' schema.
        **options: any data source options:

    Raises:
        SchemaError: columns or options are unknown, or an option holds a secret.
    """
    register(spark)
    paths = [path] if isinstance(path, str) else list(path)
    texts = options_as_text(options)
    if has_jar(spark):
        reader = spark.read.format("fastpq").options(**texts)
        frame = (reader if schema is None else reader.schema(schema)).load(paths)
        names = project(frame.schema, columns).names
        rows = frame if filters is None else frame.where(spark_condition(tree_of(filters), frame))
        return rows if columns is None else rows.select(*(rows[_quoted(name)] for name in names))
    texts = _options_of(spark, paths, filters, texts)
    reading = read_options(texts)
    require_service(spark, reading.service)
    if schema is None:
        schema = schema_of_files(list_files(reading.paths, reading.base_path), reading, Footers(reading.service))
    return spark.read.format("fastpq").schema(project(schema, columns)).options(**texts).load()


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def spark_condition(tree: Any, frame: DataFrame) -> Column:
    """Return a filter tree as a condition on the columns of a DataFrame.

    Raises:
        SchemaError: there is no such operator.
    """
    if isinstance(tree, And | Or):
        parts = [spark_condition(child, frame) for child in tree.children]
        whole = parts[0] if parts else f.lit(isinstance(tree, And))
        for part in parts[1:]:
            whole = whole & part if isinstance(tree, And) else whole | part
        return whole
    name, op, *values = tree
    column = frame[_quoted(name)]
    match op, values:
        case "is null", []:
            return column.isNull()
        case "is not null", []:
            return column.isNotNull()
        case ("in" | "isin" | "not in"), [several]:
            is_in = column.isin(list(several))
            return ~is_in if op == "not in" else is_in
        case "starts with", [text]:
            return column.startswith(text)
        case ("=" | "=="), [value]:
            return column == f.lit(value)
        case ("!=" | "<>"), [value]:
            return column != f.lit(value)
        case "<", [value]:
            return column < f.lit(value)
        case "<=", [value]:
            return column <= f.lit(value)
        case ">", [value]:
            return column > f.lit(value)
        case ">=", [value]:
            return column >= f.lit(value)
    raise SchemaError(f"there is no operator {op!r}")


def _options_of(spark: SparkSession, paths: Sequence[str], filters: Any, options: dict[str, str]) -> dict[str, str]:
    """Return the options together with paths and filters. By default there is one partition for each core."""
    texts = {**options, "paths": json.dumps(paths)}
    if filters is not None:
        texts["filters"] = encode_filters(filters)
    if not _is_given(texts, PUSH_FILTERS):
        texts[PUSH_FILTERS] = str(pushdown_enabled(spark)).lower()
    if not _is_given(texts, MIN_PARTITIONS):
        texts[MIN_PARTITIONS] = str(default_parallelism(spark))
    if not _is_given(texts, TIME_ZONE) and (zone := partition_time_zone(spark)) is not None:
        texts[TIME_ZONE] = zone
    return texts


def _is_given(options: dict[str, str], name: str) -> bool:
    return plain_name(name) in map(plain_name, options)


def project(schema: st.StructType, columns: Sequence[str] | None) -> st.StructType:
    """Return the schema fields with the given names, in the names' order. None takes the whole schema.

    Raises:
        SchemaError: a name is not in the schema, or is given twice.
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
    """Return the cluster's core count. 1 with Spark Connect, where it is unknown."""
    context = getattr(spark, "_sc", None)
    return int(context.defaultParallelism) if context is not None else 1

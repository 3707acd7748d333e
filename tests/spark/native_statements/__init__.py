"""Statements that fastpq's source answers like Spark's own Parquet source: one module an area, each a list of scenes."""

from tests.spark.native_statements import (
    file_columns,
    filters,
    nested,
    options,
    partitions,
    plans,
    reading,
    settings,
    streams,
    tables,
    types,
    writing,
)

AREAS = (reading, types, filters, nested, partitions, file_columns, options, settings, writing, tables, plans, streams)

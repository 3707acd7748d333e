"""PySpark names that not every supported version (4.0 to 4.3) has. fastpq imports them from here.

PySpark 4.0 lacks pushed filters, the time type, geospatial types and Arrow batches for stream writers. Before 4.2, a stream does
not tell its reader how far it has come. If PySpark lacks a name, a stand-in that no value matches takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import datasource as ds
from pyspark.sql import types as st
from pyspark.sql.pandas import types as arrow_types

from fastpq.spark.core import UnsupportedError

__all__ = [
    "DataSourceStreamArrowWriter",
    "EqualTo",
    "Filter",
    "GeographyType",
    "GeometryType",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNotNull",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "MissingType",
    "Not",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxFiles",
    "StringStartsWith",
    "SupportsTriggerAvailableNow",
    "TimeType",
    "is_geography",
    "is_geometry",
    "map_in_arrow",
    "require_streams",
    "to_arrow_schema",
]
VERSION: tuple[int, ...] = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
STREAMS_SINCE = (4, 2)


class MissingType(st.DataType):
    """A type that this PySpark lacks. No column has it."""

    MIXED_SRID = -1


class MissingFilter:
    """A filter that this PySpark lacks. No plan has it."""


if TYPE_CHECKING or VERSION >= STREAMS_SINCE:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
else:

    class ReadLimit:
        """A limit on the files in a batch."""

    class ReadAllAvailable(ReadLimit):
        """No limit."""

    class ReadMaxFiles(ReadLimit):
        """A maximum number of files."""

    class SupportsTriggerAvailableNow:
        """A reader that knows the trigger AvailableNow."""


if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceStreamArrowWriter,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        IsNull,
        LessThan,
        LessThanOrEqual,
        Not,
        StringStartsWith,
    )
    from pyspark.sql.pandas.types import is_geography, is_geometry
    from pyspark.sql.types import GeographyType, GeometryType, TimeType
else:
    DataSourceStreamArrowWriter = getattr(ds, "DataSourceStreamArrowWriter", ds.DataSourceStreamWriter)
    Filter, EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNotNull, IsNull, LessThan, LessThanOrEqual, Not, StringStartsWith = (
        getattr(ds, name, type(name, (MissingFilter,), {}))
        for name in (
            "Filter", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "IsNotNull", "IsNull", "LessThan", "LessThanOrEqual",
            "Not", "StringStartsWith",
        )
    )
    GeographyType, GeometryType, TimeType = (
        getattr(st, name, type(name, (MissingType,), {})) for name in ("GeographyType", "GeometryType", "TimeType")
    )
    is_geography, is_geometry = (
        getattr(arrow_types, name, lambda type_: False) for name in ("is_geography", "is_geometry")
    )


def to_arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema for a Spark schema, with timestamps in UTC."""
    if VERSION >= STREAMS_SINCE:
        return arrow_types.to_arrow_schema(schema, timezone="UTC")
    return arrow_types.to_arrow_schema(schema)


def require_streams() -> None:
    """Raise an UnsupportedError if this PySpark has no streams that fastpq can read and write."""
    if VERSION < STREAMS_SINCE:
        raise UnsupportedError(
            "fastpq reads and writes streams with PySpark 4.2 or later, which tells a source how far its stream has come. "
            f"This is PySpark {pyspark.__version__}"
        )


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: st.StructType
) -> DataFrame:
    """Return a DataFrame with what a function makes from a DataFrame's batches, like ``DataFrame.mapInArrow``.

    PySpark's own method needs pandas, although it uses nothing of it. Spark Connect needs pandas for everything.
    """
    if not hasattr(frame, "_jdf"):      # Spark Connect
        return frame.mapInArrow(function, schema)
    # imported here because PySpark for Spark Connect has no py4j
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    batches: Any = UserDefinedFunction(function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = batches(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)

"""Handover: cheaper types for columns on the way from Python to the JVM, restored to the schema's types by the query plan.

Decimals: Spark makes a BigInteger and a BigDecimal of each Arrow decimal, in more time than the rest of a scan takes. Decimals of
up to 18 digits travel as 64-bit unscaled integers, turned into Spark's decimals at once: an aggregate over two columns of TPC-H's
lineitem takes 0.6 of the processor time (benchmarks.spark).

Nulls: an aggregate of Spark evaluates a nullable column twice, once for the null test. A column without nulls travels as not
nullable. The restored column is nullable, as from Spark's own reader, but Spark's optimizer sees the absence of nulls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from fastpq.errors import FormatError

MOST_DIGITS = 18    # digits of a decimal; every decimal of 18 digits fits 64 bits
_ADVICE = (
    " when the scan was planned: was the file replaced since? Then read it anew; if its footer is wrong, the option "
    "planningFooters=0 lets scans not use it"
)


@dataclass(frozen=True)
class Handover:
    """Columns with another type on the way to the JVM than in the schema.

    Attributes:
        unscaled: names of decimal columns handed over as unscaled integers.
        complete: names of columns handed over as not nullable.
    """

    unscaled: frozenset[str] = frozenset()
    complete: frozenset[str] = frozenset()

    def schema(self, schema: st.StructType) -> st.StructType:
        """Spark schema on the way to the JVM; its names are numbers, since Spark takes ``d`` and ``D`` for one name."""
        if self == AS_IT_IS:
            return schema
        parts = [(self._type(part), part.nullable and part.name not in self.complete) for part in schema.fields]
        return st.StructType([st.StructField(str(number), *part) for number, part in enumerate(parts)])

    def _type(self, part: st.StructField) -> st.DataType:
        return st.LongType() if part.name in self.unscaled else part.dataType


AS_IT_IS = Handover()


def plan_handover(spark: SparkSession, schema: st.StructType, complete: Collection[str]) -> Handover:
    """The cheapest handover of a schema's columns.

    Args:
        spark: the session; a session without access to the JVM (Spark Connect) cannot restore decimals.
        schema: schema of the columns.
        complete: names of columns without nulls.
    """
    decimals = {part.name: part.dataType for part in schema.fields if isinstance(part.dataType, st.DecimalType)}
    unscaled = {name for name, decimal in decimals.items() if decimal.precision <= MOST_DIGITS and hasattr(spark, "_jvm")}
    return Handover(frozenset(unscaled), frozenset(complete))


def handed_over(handover: Handover, schema: pa.Schema, names: Sequence[str], arrays: Sequence[pa.Array]) -> pa.RecordBatch:
    """A record batch in the types of a handover.

    Args:
        handover: the scan's handover.
        schema: Arrow schema after handover.
        names: names of the columns.
        arrays: values of each column, in the column's own type or as unscaled integers of decimals.

    Raises:
        FormatError: nulls or values denied by the footers read in planning: the file was replaced, or its footer is wrong.
    """
    return pa.RecordBatch.from_arrays(list(map(_as_field, names, arrays, schema)), schema=schema)


def _as_field(name: str, array: pa.Array, field: pa.Field) -> pa.Array:
    if not field.nullable and array.null_count:
        raise unexpected_nulls(name, array.null_count)
    if pa.types.is_decimal(array.type) and not pa.types.is_decimal(field.type):
        array = digits_of(array)
    return array if array.type == field.type else array.cast(field.type, safe=False)


def unexpected_nulls(name: str, count: int) -> FormatError:
    """The error of nulls denied by the footers read in planning."""
    return FormatError(f"{count} nulls where the footer counted none{_ADVICE}", column=name)


def digits_of(decimals: pa.Decimal128Array) -> pa.Int64Array:
    """Unscaled values of decimals of up to 18 digits: the lower 64 bits of each."""
    end = decimals.offset + len(decimals)
    if not end:
        return pa.array([], pa.int64())
    validity, values = decimals.buffers()
    lower = np.ascontiguousarray(np.frombuffer(values, "<i8")[: 2 * end : 2])
    return pa.Array.from_buffers(
        pa.int64(), len(decimals), [validity, pa.py_buffer(lower)], decimals.null_count, offset=decimals.offset
    )


def restored(spark: SparkSession, frame: DataFrame, schema: st.StructType, handover: Handover) -> DataFrame:
    """A DataFrame with the types of the schema, from a DataFrame in the types of a handover.

    Args:
        spark: the session.
        frame: DataFrame as handed over.
        schema: schema to restore.
        handover: the scan's handover.
    """
    if handover == AS_IT_IS:
        return frame
    # SQL text for all columns at once: each call on a Column costs several round trips to the JVM
    decimals, texts = {}, []
    for number, part in enumerate(schema.fields):
        column = value = f"`{number}`"
        if part.name in handover.unscaled:
            decimals[str(number)] = _decimal_of(spark, f.expr(column), part.dataType)
        if part.nullable and part.name in handover.complete:
            value = f"if(isnull({column}), null, {value})"
        texts.append(value)
    found = frame.withColumns(decimals) if decimals else frame
    if any(part.metadata for part in schema.fields):
        pairs = zip(texts, schema.fields, strict=True)
        return found.select(*(f.expr(text).alias(part.name, metadata=part.metadata) for text, part in pairs))
    return found.selectExpr(*texts).toDF(*schema.names)


def _decimal_of(spark: SparkSession, digits: Column, decimal: st.DataType) -> Column:
    """A decimal column from a column of unscaled integers."""
    # imported here: PySpark for Spark Connect comes without py4j
    from py4j.java_gateway import JavaClass
    from pyspark.sql.classic.column import Column as ClassicColumn

    assert isinstance(decimal, st.DecimalType)
    client = spark.sparkContext._gateway._gateway_client    # type: ignore[union-attr]
    # classes by full name: py4j asks the JVM once for each package on a dotted path
    columns = JavaClass("org.apache.spark.sql.classic.ExpressionUtils", client)
    decimal_of = JavaClass("org.apache.spark.sql.catalyst.expressions.MakeDecimal", client)
    made = decimal_of(columns.expression(digits._jc), decimal.precision, decimal.scale, False)
    return ClassicColumn(columns.column(made))

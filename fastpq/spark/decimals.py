"""Decimals of up to 18 digits on their way to the JVM, as the 64-bit integers that their digits are.

Of every value of an Arrow decimal Spark makes a BigInteger and a BigDecimal, which takes longer than all else in a scan; of an
integer it makes its own decimal at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

MOST_DIGITS = 18    # of any decimal in 64 bits


def unscaled_decimals(spark: SparkSession, schema: st.StructType) -> dict[str, st.DecimalType]:
    """The columns that come as integers, and their types; none where the session does not reach the JVM, as in Spark Connect."""
    if not hasattr(spark, "_jvm"):
        return {}
    decimals = {part.name: part.dataType for part in schema.fields if isinstance(part.dataType, st.DecimalType)}
    return {name: decimal for name, decimal in decimals.items() if decimal.precision <= MOST_DIGITS}


def with_integers(schema: st.StructType, unscaled: Collection[str]) -> st.StructType:
    """A schema with some decimals as the integers that they come as."""
    return st.StructType(
        [
            st.StructField(part.name, st.LongType(), part.nullable, part.metadata) if part.name in unscaled else part
            for part in schema.fields
        ]
    )


def digits_of(decimals: pa.Decimal128Array) -> pa.Int64Array:
    """The unscaled values of decimals of up to 18 digits: the lower half of each."""
    end = decimals.offset + len(decimals)
    if not end:
        return pa.array([], pa.int64())
    validity, values = decimals.buffers()
    lower = np.ascontiguousarray(np.frombuffer(values, "<i8")[: 2 * end : 2])
    return pa.Array.from_buffers(
        pa.int64(), len(decimals), [validity, pa.py_buffer(lower)], decimals.null_count, offset=decimals.offset
    )


def decimals_again(
    spark: SparkSession, frame: DataFrame, schema: st.StructType, unscaled: Mapping[str, st.DecimalType]
) -> DataFrame:
    """A DataFrame with decimals for the integers that they came as.

    Args:
        spark: its session.
        frame: its columns are the fields of the schema, in their order.
        schema: what it becomes.
        unscaled: the columns that are integers still.
    """
    if not unscaled:
        return frame
    # what a session without a JVM, of Spark Connect, has not
    from py4j.java_gateway import JavaClass
    from pyspark.sql import Column
    from pyspark.sql.classic.column import Column as ClassicColumn

    gateway: Any = spark.sparkContext._gateway
    # by their names at once: going down the packages asks the JVM at every step
    columns = JavaClass("org.apache.spark.sql.classic.ExpressionUtils", gateway._gateway_client)
    decimal_of = JavaClass("org.apache.spark.sql.catalyst.expressions.MakeDecimal", gateway._gateway_client)
    column, expression = columns.column, columns.expression

    def restored(number: int, part: st.StructField) -> Column:
        found = f.col(str(number))
        if part.name in unscaled:
            decimal = unscaled[part.name]
            found = ClassicColumn(column(decimal_of(expression(found._jc), decimal.precision, decimal.scale, False)))
        return found.alias(part.name, metadata=part.metadata) if part.metadata else found.alias(part.name)

    # by number, for names may be the same to Spark but for their case
    numbered = frame.toDF(*map(str, range(len(schema.fields))))
    return numbered.select(*[restored(number, part) for number, part in enumerate(schema.fields)])

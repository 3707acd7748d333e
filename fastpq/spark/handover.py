"""How columns come to the JVM where a plan restores them: cheaper than as what they are.

Of every value of an Arrow decimal Spark makes a BigInteger and a BigDecimal, which takes longer than all else in a scan; decimals
of up to 18 digits come as the 64-bit integers that their digits are, of which it makes its own at once.

What may be null Spark computes twice in an aggregate, once to know whether it is; columns of whose values none is null come as
such. The restored columns are nullable, as Spark's own reader has them, and its optimizer sees that they are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from fastpq.errors import FormatError

MOST_DIGITS = 18    # of any decimal in 64 bits


@dataclass(frozen=True)
class Handover:
    """Which columns come otherwise than their types say.

    Attributes:
        unscaled: names of decimals that come as integers.
        complete: names of columns that come as without nulls.
    """

    unscaled: frozenset[str] = frozenset()
    complete: frozenset[str] = frozenset()

    def schema(self, schema: st.StructType) -> st.StructType:
        """What a schema comes as."""
        return st.StructType(
            [
                st.StructField(
                    part.name,
                    st.LongType() if part.name in self.unscaled else part.dataType,
                    part.nullable and part.name not in self.complete,
                    part.metadata,
                )
                for part in schema.fields
            ]
        )

    def array(self, name: str, array: pa.Array) -> pa.Array:
        """What a column's values come as.

        Raises:
            FormatError: nulls, of which the footer counted none.
        """
        if name in self.complete and array.null_count:
            raise FormatError(
                f"{array.null_count} nulls where the footer counts none: with the option planningFooters=0 counts are not used",
                column=name,
            )
        return digits_of(array) if name in self.unscaled else array


AS_IT_IS = Handover()


def unscaled_decimals(spark: SparkSession, schema: st.StructType) -> frozenset[str]:
    """The columns that can come as integers; none where the session does not reach the JVM, as in Spark Connect."""
    if not hasattr(spark, "_jvm"):
        return frozenset()
    decimals = {part.name: part.dataType for part in schema.fields if isinstance(part.dataType, st.DecimalType)}
    return frozenset(name for name, decimal in decimals.items() if decimal.precision <= MOST_DIGITS)


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


def restored(spark: SparkSession, frame: DataFrame, schema: st.StructType, handover: Handover) -> DataFrame:
    """A DataFrame with what its columns were before they were handed over.

    Args:
        spark: its session.
        frame: its columns are the fields of the schema, in their order, as they came.
        schema: what it becomes.
        handover: how they came.
    """
    if handover.schema(schema) == schema:
        return frame
    # by number, for names may be the same to Spark but for their case
    numbered = frame.toDF(*map(str, range(len(schema.fields))))
    columns = [f.col(str(number)) for number in range(len(schema.fields))]
    for number, part in enumerate(schema.fields):
        found = columns[number]
        value = _decimal_of(spark, found, part.dataType) if part.name in handover.unscaled else found
        if part.nullable and part.name in handover.complete:
            value = f.when(found.isNull(), None).otherwise(value)
        columns[number] = value.alias(part.name, metadata=part.metadata) if part.metadata else value.alias(part.name)
    return numbered.select(*columns)


def _decimal_of(spark: SparkSession, digits: Column, decimal: st.DataType) -> Column:
    """The decimals of a column of integers that are their digits."""
    # what a session without a JVM, of Spark Connect, has not
    from py4j.java_gateway import JavaClass
    from pyspark.sql.classic.column import Column as ClassicColumn

    assert isinstance(decimal, st.DecimalType)
    client = spark.sparkContext._gateway._gateway_client    # type: ignore[union-attr]
    # by their names at once: going down the packages asks the JVM at every step
    columns = JavaClass("org.apache.spark.sql.classic.ExpressionUtils", client)
    decimal_of = JavaClass("org.apache.spark.sql.catalyst.expressions.MakeDecimal", client)
    made = decimal_of(columns.expression(digits._jc), decimal.precision, decimal.scale, False)
    return ClassicColumn(columns.column(made))

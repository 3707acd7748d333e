"""How columns come to the JVM where a plan restores them: cheaper than as what they are.

Of every value of an Arrow decimal Spark makes a BigInteger and a BigDecimal, which takes longer than all else in a scan; decimals
of up to 18 digits come as the integers that their digits are, of which it makes its own at once. Integers of 64 bits come as such
of 32 where the footers' bounds say that all fit.

What may be null Spark computes twice in an aggregate, once to know whether it is; columns of whose values none is null come as
such. The restored columns are nullable, as Spark's own reader has them, and its optimizer sees that they are not.

Of each row that comes from Python Spark makes a row in memory of its own, which takes as long as decoding a few columns. Where it
is asked for, columns of fixed width come as arrays, one of each column in a row, which a compiled query walks along. What Spark
does between the scan and the query's first projection, as Python UDFs are, it does with the arrays in every row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from fastpq.errors import FormatError, UnsupportedError

MOST_DIGITS = 18    # of any decimal in 64 bits
ARRAY_ROWS = 1000   # so that the arrays of a row fit into a core's nearest cache
FIXED_WIDTH = (
    st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType, st.DoubleType, st.DateType,
    st.TimestampType, st.TimestampNTZType,
)  # fmt: skip
MIN_INT32, MAX_INT32 = -(1 << 31), (1 << 31) - 1

_ADVICE = (
    " when the scan was planned: was the file replaced since? Then read it anew; if its footer is wrong, the option "
    "planningFooters=0 lets scans not use it"
)


@dataclass(frozen=True)
class Handover:
    """Which columns come otherwise than their types say.

    Attributes:
        unscaled: names of decimals that come as their digits.
        narrow: names of columns of 64-bit integers, these digits among them, that come as 32-bit ones.
        complete: names of columns that come as without nulls.
        in_arrays: whether a row has ARRAY_ROWS rows, as an array of each column.
    """

    unscaled: frozenset[str] = frozenset()
    narrow: frozenset[str] = frozenset()
    complete: frozenset[str] = frozenset()
    in_arrays: bool = False

    def schema(self, schema: st.StructType) -> st.StructType:
        """What a schema comes as; where some of it is to be restored, numbers name it, as Spark takes ``d`` and ``D`` for one."""
        if self == AS_IT_IS:
            return schema
        parts = [(self._type(part), part.nullable and part.name not in self.complete) for part in schema.fields]
        if self.in_arrays:
            parts = [(st.ArrayType(type_, nullable), False) for type_, nullable in parts]
        return st.StructType([st.StructField(str(number), *part) for number, part in enumerate(parts)])

    def _type(self, part: st.StructField) -> st.DataType:
        if part.name in self.narrow:
            return st.IntegerType()
        return st.LongType() if part.name in self.unscaled else part.dataType


AS_IT_IS = Handover()


def plan_handover(
    spark: SparkSession, schema: st.StructType, complete: Collection[str], small: Collection[str], column_arrays: bool
) -> Handover:
    """The cheapest way of a schema's columns.

    Args:
        spark: the session; one that does not reach the JVM, as of Spark Connect, cannot restore decimals.
        schema: of the columns.
        complete: names of those without nulls.
        small: names of those whose values, or digits, fit 32 bits.
        column_arrays: whether they come in arrays.

    Raises:
        UnsupportedError: arrays of columns that have no fixed width, or without ANSI mode.
    """
    decimals = {part.name: part.dataType for part in schema.fields if isinstance(part.dataType, st.DecimalType)}
    unscaled = {name for name, decimal in decimals.items() if decimal.precision <= MOST_DIGITS and hasattr(spark, "_jvm")}
    integers = {part.name for part in schema.fields if isinstance(part.dataType, st.LongType)} | unscaled
    if column_arrays:
        _check_arrays(spark, [part for part in schema.fields if part.name not in unscaled])
    in_arrays = column_arrays and bool(schema.fields)
    return Handover(frozenset(unscaled), frozenset(integers & {*small}), frozenset(complete), in_arrays)


def _check_arrays(spark: SparkSession, parts: Sequence[st.StructField]) -> None:
    for part in parts:
        if not isinstance(part.dataType, FIXED_WIDTH):
            raise UnsupportedError(f"columnArrays for {part.dataType.simpleString()}: it is for fixed width", column=part.name)
    # else an element that is not there is a null, and every one may be for all that Spark knows: it computes twice again
    if str(spark.conf.get("spark.sql.ansi.enabled", "true")).lower() != "true":
        raise UnsupportedError("columnArrays without spark.sql.ansi.enabled: reading would not take less time")


def handed_over(handover: Handover, schema: pa.Schema, names: Sequence[str], arrays: Sequence[pa.Array]) -> pa.RecordBatch:
    """A batch as what it comes as.

    Args:
        handover: how.
        schema: what its columns come as.
        names: of the columns.
        arrays: their values, each of the column's own type, or the digits of its decimals.

    Raises:
        FormatError: nulls, or values, that the footers by which the scan was planned deny.
    """
    if not handover.in_arrays:
        return pa.RecordBatch.from_arrays(list(map(_as_field, names, arrays, schema)), schema=schema)
    values = map(_as_field, names, arrays, [field.type.value_field for field in schema])
    found = [_in_arrays(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(found, schema=schema)


def _in_arrays(values: pa.Array, type_: pa.ListType) -> pa.ListArray:
    offsets = np.minimum(np.arange(0, len(values) + ARRAY_ROWS, ARRAY_ROWS, dtype=np.int32), len(values))
    return pa.ListArray.from_arrays(offsets, values, type=type_)


def _as_field(name: str, array: pa.Array, field: pa.Field) -> pa.Array:
    if not field.nullable and array.null_count:
        raise FormatError(f"{array.null_count} nulls where the footer counted none{_ADVICE}", column=name)
    if pa.types.is_decimal(array.type) and not pa.types.is_decimal(field.type):
        array = digits_of(array)
    if array.type == field.type:
        return array
    if array.type.bit_width > field.type.bit_width:
        bounds = pc.min_max(array)
        # of which a cast that checks takes twice as long
        if any(bound.is_valid and not MIN_INT32 <= bound.as_py() <= MAX_INT32 for bound in bounds.values()):
            raise FormatError(f"values beyond the bounds that the footer had{_ADVICE}", column=name)
    return array.cast(field.type, safe=False)


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
        frame: its columns are the fields of the schema as they came.
        schema: what it becomes.
        handover: how they came.
    """
    if handover == AS_IT_IS:
        return frame
    # as text, and all at once: every call on a column asks the JVM several times
    decimals, texts = {}, []
    if handover.in_arrays:
        others = [f"`{number}`" for number in range(1, len(schema.fields))]
        frame = frame.selectExpr("posexplode(`0`) as (`place`, `value`)", *others)
    for number, part in enumerate(schema.fields):
        column = f"`{number}`"
        if handover.in_arrays:
            column = f"{column}[`place`]" if number else "`value`"
        value = f"cast({column} as bigint)" if part.name in handover.narrow else column
        if part.name in handover.unscaled:
            decimals[str(number)] = _decimal_of(spark, f.expr(value), part.dataType)
            value = column = f"`{number}`"
        if part.nullable and part.name in handover.complete:
            value = f"if(isnull({column}), null, {value})"
        texts.append(value)
    found = frame.withColumns(decimals) if decimals else frame
    if any(part.metadata for part in schema.fields):
        pairs = zip(texts, schema.fields, strict=True)
        return found.select(*(f.expr(text).alias(part.name, metadata=part.metadata) for text, part in pairs))
    return found.selectExpr(*texts).toDF(*schema.names)


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

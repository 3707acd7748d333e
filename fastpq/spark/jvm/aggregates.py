"""Aggregates of a dataset from its footers alone: count, min and max, where the statistics are exact.

Minimum and maximum of floats stay with Spark: statistics leave NaNs out, and tell -0.0 and 0.0 apart.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context
from typing import Any

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds, claims_of, exact_bounds
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema import types as pt
from fastpq.schema.tree import ColumnDescriptor, SchemaNode
from fastpq.spark.batches import columns_by_name, partition_values
from fastpq.spark.calendars import Calendar
from fastpq.spark.footers import Footers
from fastpq.spark.jvm.conditions import known_columns
from fastpq.spark.jvm.expressions import Aggregate
from fastpq.spark.jvm.survivors import Survivor
from fastpq.spark.types import spark_type

_ORDERED = (
    st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.DateType, st.TimestampType, st.TimestampNTZType,
    st.DecimalType, st.StringType, st.BinaryType,
)


class Inexact(Exception):
    """The footers do not tell the answer."""


@dataclass(frozen=True)
class Question:
    """Aggregates asked for.

    Attributes:
        groups: names of partition columns to group by.
        aggregates: the aggregates.
        table: Spark schema of the dataset.
        partition: types of the partition columns.
        zone: time zone of timestamps in paths.
    """

    groups: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    table: st.StructType
    partition: Mapping[str, st.DataType]
    zone: str | None


def answered(question: Question, found: Sequence[Survivor], footers: Footers) -> list[list[Any]] | None:
    """A row for each group, its values first, as JSON for Values.java; None where the footers do not tell the answer."""
    if not set(question.groups) <= question.partition.keys():
        return None
    groups: dict[tuple[Any, ...], list[Any]] = {}
    if not question.groups:
        groups[()] = [0 if aggregate.kind == "count" else None for aggregate in question.aggregates]
    try:
        for survivor in found:
            footer, constants = footers.of(survivor.file), partition_values(survivor.file, question.partition, question.zone)
            if not footer.num_rows:
                continue
            values = [_of_file(aggregate, question, footer, constants) for aggregate in question.aggregates]
            group = tuple(constants[name] for name in question.groups)
            known = groups.get(group)
            pairs = zip(question.aggregates, values if known is None else known, values, strict=True)
            groups[group] = values if known is None else [_merged(one.kind, a, b) for one, a, b in pairs]
        types = [*(question.partition[name] for name in question.groups), *(one.type for one in question.aggregates)]
        rows = ([*group, *values] for group, values in groups.items())
        return [[as_json(value, type_) for value, type_ in zip(row, types, strict=True)] for row in rows]
    except (Inexact, ParquetError, OSError, KeyError):
        return None


def is_collated(type_: st.DataType) -> bool:
    """Whether text of a type is compared otherwise than by its bytes."""
    return isinstance(type_, st.StringType) and type_ != st.StringType()


def as_json(value: Any, type_: st.DataType) -> Any:
    """A value other than a float in the form of Values.java: whole numbers as text, bytes in base64.

    Raises:
        Inexact: a type without such a form.
    """
    if value is None or isinstance(value, bool):
        return value
    match type_:
        case st.DecimalType() if not isinstance(value, int):
            return str(int(value.scaleb(type_.scale, _WIDE)))
        case st.DateType() if not isinstance(value, int):
            return str(value.toordinal() - _EPOCH_ORDINAL)
        case st.StringType() | st.BinaryType():
            return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
        case _ if isinstance(value, int):
            return str(value)
    raise Inexact(type_.simpleString())


_EPOCH_ORDINAL = 719_163        # of 1970-01-01
_WIDE = Context(prec=76)        # all digits of Spark's decimals, before and behind the point


def _merged(kind: str, one: Any, other: Any) -> Any:
    if kind == "count":
        return one + other
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if kind == "min" else max(one, other)


def _of_file(aggregate: Aggregate, question: Question, footer: FileMetaData, constants: Mapping[str, Any]) -> Any:
    kind, name = aggregate.kind, aggregate.column
    if aggregate.tree is None:
        return footer.num_rows
    if kind == "sum" or name is None:
        raise Inexact
    if name in constants:
        if kind != "count" and is_collated(question.table[name].dataType):
            raise Inexact
        value = constants[name]
        return (0 if value is None else footer.num_rows) if kind == "count" else value
    wanted = known_columns(question.table)[name]        # a KeyError for other types
    column = columns_by_name(footer.schema, [name]).get(name)
    if column is None:
        return 0 if kind == "count" else None
    if not isinstance(column, ColumnDescriptor) or not column.is_flat:
        raise Inexact
    if kind == "count":
        return sum(_count(footer, column, number) for number in range(footer.num_row_groups))
    if not is_ordered_alike(column, wanted):
        raise Inexact
    if isinstance(wanted, st.DateType | st.TimestampType) and Calendar(footer).is_hybrid:
        raise Inexact
    found = [bound for number in range(footer.num_row_groups) for bound in _extremes(footer, column, number)]
    if not found:
        return None
    value = min(found) if kind == "min" else max(found)
    return bool(value) if isinstance(wanted, st.BooleanType) else value


def _count(footer: FileMetaData, column: ColumnDescriptor, number: int) -> int:
    """Values other than null in a row group."""
    group = footer.row_group(number)
    try:
        nulls = chunk_bounds(claims_of(footer, column, group.column(column.index), group.num_rows))[0].null_count
    except KeyAccessError:
        raise Inexact from None
    if nulls is None:
        raise Inexact
    return group.num_rows - nulls


def _extremes(footer: FileMetaData, column: ColumnDescriptor, number: int) -> tuple[Any, ...]:
    """The least and the largest value of a row group; empty where all are null."""
    group = footer.row_group(number)
    try:
        claims = claims_of(footer, column, group.column(column.index), group.num_rows)
    except KeyAccessError:
        raise Inexact from None
    if chunk_bounds(claims)[0].all_null or not group.num_rows:
        return ()
    if (found := exact_bounds(claims)) is None:
        raise Inexact
    return found


def is_ordered_alike(column: ColumnDescriptor, wanted: st.DataType) -> bool:
    """Whether the bounds of a column are values of the Spark type, in its units and its order."""
    stored = column.type
    if not isinstance(wanted, _ORDERED) or stored.physical == pt.Type.INT96:
        return False
    if isinstance(wanted, st.BinaryType) and not (stored.logical is None and stored.physical == pt.Type.BYTE_ARRAY):
        return False
    if isinstance(wanted, st.TimestampType | st.TimestampNTZType) and getattr(stored.logical, "unit", None) != "us":
        return False
    return spark_type(stored) == wanted


def largest_digits(
    names: Collection[str], question: Question, found: Sequence[Survivor], footers: Footers
) -> dict[str, int] | None:
    """The largest absolute digits of columns of integers and decimals, by the statistics of footers and by folders.

    Args:
        names: the columns.
        question: the dataset's types.
        found: files of the dataset.
        footers: their footers.

    Returns:
        A bound for each column; None where a footer does not tell one.
    """
    bounds = dict.fromkeys(names, 0)
    try:
        for survivor in found:
            footer, constants = footers.of(survivor.file), partition_values(survivor.file, question.partition, question.zone)
            columns = columns_by_name(footer.schema, bounds)
            for name in bounds:
                if name in constants:
                    digits = _digits(constants[name], question.table[name].dataType)
                else:
                    digits = _largest_in(footer, columns.get(name), question.table[name].dataType)
                bounds[name] = max(bounds[name], digits)
    except (Inexact, ParquetError, OSError):
        return None
    return bounds


def _digits(value: Any, type_: st.DataType) -> int:
    if value is None:
        return 0
    return abs(int(value.scaleb(type_.scale, _WIDE)) if isinstance(type_, st.DecimalType) else int(value))


def _largest_in(footer: FileMetaData, column: SchemaNode | None, wanted: st.DataType) -> int:
    if column is None:
        return 0
    if not isinstance(column, ColumnDescriptor) or not column.is_flat:
        raise Inexact
    scale = getattr(column.type.logical, "scale", 0)
    if scale != getattr(wanted, "scale", 0):
        raise Inexact
    digits = 0
    for group in footer.row_groups:
        bounds, _ = chunk_bounds(claims_of(footer, column, group.column(column.index), group.num_rows))
        if bounds.all_null or not group.num_rows:
            continue
        if not isinstance(bounds.minimum, int) or not isinstance(bounds.maximum, int):
            raise Inexact
        digits = max(digits, -bounds.minimum, bounds.maximum)
    return digits

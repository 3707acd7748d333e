"""Rules for values of a type (LogicalTypes.md), and values that other readers understand differently."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastpq.index.consistency_checks import have_impossible_value
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Decimal, Time, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order
from fastpq.verify import sections
from fastpq.verify.value_block import CodedValues, FixedValues, PlainValues, Values, VariableValues

_TICKS_PER_DAY = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
# INT96 has 8 bytes for the nanoseconds of the day, then 4 for the Julian day.
_DAY_START, _EPOCH_DAY = 8, 2_440_588
_MOST_DAYS = 106_751        # from 1970-01-01 that an INT64 of nanoseconds holds

_TEXT_READERS = "pyarrow reads the bytes as text; Polars and DuckDB: an error"
_INT96_CASE = (
    "an INT96 timestamp outside of the years 1677 to 2262",
    "pyarrow reads another time, unless the unit is passed",
    "the finest unit that holds all values",
)
_CALENDAR_CASE = (
    "dates or timestamps in Spark's legacy calendar",
    "pyarrow, DuckDB and Polars read other days",
    "moves dates as Spark does, and refuses timestamps before 1900 unless legacy_calendar says otherwise",
)


def broken_rules(column: ColumnDescriptor, values: PlainValues) -> Iterator[tuple[str, str, str | None]]:
    """Yield each rule that the values of a column break: the section, a message, and what readers do or None.

    Args:
        column: the column.
        values: values as they are stored, without nulls.
    """
    type_ = column.type
    name = type(type_.logical).__name__.upper()
    if isinstance(values, VariableValues):
        if type_.is_text and values.has_invalid_text():
            yield f"{sections.LOGICAL_TYPES}, {name}", "text that is not UTF-8", _TEXT_READERS
        if not isinstance(type_.logical, Decimal):
            return
    order = order_of(type_)
    if order == Order.ORDER_NONE:
        return
    low, high = values.extremes(order)
    if low is None or high is None:
        return
    if isinstance(type_.logical, Time):
        ticks = [int.from_bytes(bound, "little", signed=True) for bound in (low, high)]
        if not 0 <= ticks[0] <= ticks[1] < _TICKS_PER_DAY[type_.logical.unit]:
            yield f"{sections.LOGICAL_TYPES}, TIME", "a time of day that is negative, or 24 hours or more", None
    elif have_impossible_value(type_, (low, high)):
        yield f"{sections.LOGICAL_TYPES}, {name}", _impossible(type_), None


def _impossible(type_: ColumnType) -> str:
    if isinstance(type_.logical, Decimal):
        return f"a decimal with more than the {type_.logical.precision} digits of the column"
    return "a value outside of the range of the type"


def reader_differences(
    metadata: FileMetaData, column: ColumnDescriptor, values: Values
) -> Iterator[tuple[str, str, str]]:
    """Yield legal values that readers understand differently: the case, what other readers do, and what fastpq does.

    Args:
        metadata: the footer.
        column: the column.
        values: values of a page.
    """
    plain = values.distinct if isinstance(values, CodedValues) else values
    if not isinstance(plain, FixedValues) or not len(plain):
        return
    if column.physical_type is Type.INT96:
        days = np.ascontiguousarray(plain.rows[:, _DAY_START:]).view("<i4").astype(np.int64) - _EPOCH_DAY
        if (np.abs(days) > _MOST_DAYS).any():
            yield _INT96_CASE
    rule = metadata.calendar.rule(column.type)
    if rule is not None and plain.width in (4, 8) and (plain.data.view(f"<i{plain.width}") < rule.first).any():
        yield _CALENDAR_CASE

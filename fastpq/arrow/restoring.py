"""Conversion of column values back to Arrow types that Parquet does not have.

| Arrow format               | Parquet type                     | restored                                               |
| -------------------------- | -------------------------------- | ------------------------------------------------------ |
| tDs, tDm, tDu, tDn         | INT64                            | always                                                 |
| tsm:ZONE, tsu:ZONE ...     | UTC TIMESTAMP with this unit     | always                                                 |
| the same with another unit | UTC TIMESTAMP                    | the zone alone                                         |
| tss:, tts                  | TIMESTAMP, TIME in milliseconds  | if all values are whole seconds                        |
| tdm                        | DATE                             | always                                                 |
| d:p,s with any width       | DECIMAL(p, s)                    | 128 and 256 bits always, 32 and 64 only by to_arrow()  |
| tiM, tiD, tin              | INTERVAL                         | if all values fit: months only, no months, 31 bits     |
| a dictionary of numbers    | the numbers                      | if the indices can count the distinct numbers          |
| +us:, +ud:                 | struct with type_id and members  | only by to_arrow(), if no row is null                  |

``fastpq.arrow.exporting`` restores the layouts of strings, binary values, lists and string dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.flat_column import fixed_values
from fastpq.arrays.nodes import TYPE_ID
from fastpq.arrays.table import Column, DictionaryValues, StructColumn
from fastpq.arrow.hints import UNION_FORMAT
from fastpq.errors import SchemaError
from fastpq.schema.types import Decimal, Integer, Interval

Restore: TypeAlias = Callable[[NDArray[Any]], NDArray[Any] | None]

_MILLISECONDS_PER_DAY = 86_400_000
_NANOSECONDS_PER_MILLISECOND = 1_000_000
DECIMAL_PRECISIONS = {32: 9, 64: 18, 128: 38, 256: 76}      # largest number of decimal digits, by width in bits
_INTERVALS = np.dtype([("months", "<u4"), ("days", "<u4"), ("milliseconds", "<u4")])
_MONTH_DAY_NANO = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_DAY_TIME = np.dtype([("days", "<i4"), ("milliseconds", "<i4")])
_MAX_INT32 = 2**31 - 1


def restoring(column: Column, text: str) -> Restore | None:
    """Return the function that converts a column's values to an Arrow format.

    Args:
        column: a column with fixed-width values.
        text: the format.

    Returns:
        A function that takes column values and returns values in the format, or None if a value does not fit. Instead of the
        function, None is returned if the format does not belong to the column type.
    """
    own = column.type.arrow_format
    if isinstance(column.type.logical, Decimal):
        bits = decimal_bits(column.type.logical, text)
        return None if bits is None else lambda values: resized_decimals(values, bits)
    if isinstance(column.type.logical, Interval):
        return _FROM_INTERVAL.get(text)
    if own == text:
        return _unchanged
    if own == "l" and text[:2] == "tD" and text[2:] in ("s", "m", "u", "n"):
        return _unchanged
    if own == "tdD" and text == "tdm":
        return _days_to_milliseconds
    if own == "ttm" and text == "tts":
        return _whole_seconds
    if own[:2] == "ts" and text[:2] == "ts" and bool(own[4:]) == bool(text[4:]):
        if own[:4] == text[:4]:
            return _unchanged
        return _whole_seconds if (own[2], text[2]) == ("m", "s") else None
    return None


def with_zone_of(own: str, text: str) -> str:
    """Return a timestamp format with the time zone of another format, whose unit is another one. Return other formats unchanged.

    pyarrow's option ``coerce_timestamps`` writes such files: ARROW:schema has the unit before the conversion.
    """
    is_zoned = own.startswith("ts") and text.startswith("ts") and bool(own[4:]) and bool(text[4:])
    return own[:4] + text[4:] if is_zoned else own


def decimal_bits(logical: Decimal, text: str) -> int | None:
    """Return a decimal format's width in bits, or None if the format does not belong to the decimal type."""
    own_format = f"d:{logical.precision},{logical.scale}"
    formats = {f"{own_format},{bits}": bits for bits, most in DECIMAL_PRECISIONS.items() if logical.precision <= most}
    return formats.get(f"{text},128" if text == own_format else text)


def _unchanged(values: NDArray[Any]) -> NDArray[Any]:
    return values


def _days_to_milliseconds(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.int64) * _MILLISECONDS_PER_DAY


def _whole_seconds(values: NDArray[Any]) -> NDArray[Any] | None:
    seconds = values // 1000
    return seconds if bool((seconds * 1000 == values).all()) else None


def resized_decimals(values: NDArray[Any], bits: int) -> NDArray[Any] | None:
    """Convert little-endian two's complement integers with any width to ``bits`` bits. Return None if one does not fit."""
    count = len(values)
    if values.dtype.kind == "V":
        words = np.ascontiguousarray(values).view(np.int64).reshape(count, values.dtype.itemsize // 8)
    else:
        words = values[:, None]
    if bits < 64:
        narrow = words[:, 0].astype(np.int32)
        return narrow if _sign_extends(narrow[:, None], words) else None
    low = words[:, : bits // 64].astype(np.int64)
    if not _sign_extends(low, words):
        return None
    out = np.empty((count, bits // 64), np.int64)
    out[:, : low.shape[1]] = low
    out[:, low.shape[1] :] = low[:, -1:] >> 63
    return out.reshape(-1) if bits == 64 else out.reshape(-1).view(f"V{bits // 8}")


def _sign_extends(low: NDArray[Any], words: NDArray[Any]) -> bool:
    """Return whether the words are the low words, extended by their sign."""
    is_equal = low == words[:, : low.shape[1]]
    is_sign = words[:, low.shape[1] :] == low[:, -1:] >> (low.dtype.itemsize * 8 - 1)
    return bool(is_equal.all()) and bool(is_sign.all())


# ---- intervals


def _to_months(values: NDArray[Any]) -> NDArray[Any] | None:
    parts = values.view(_INTERVALS)
    is_months = parts["months"].max(initial=0) <= _MAX_INT32 and not parts["days"].any() and not parts["milliseconds"].any()
    return parts["months"].astype(np.int32) if is_months else None


def _to_day_time(values: NDArray[Any]) -> NDArray[Any] | None:
    parts = values.view(_INTERVALS)
    if parts["months"].any() or max(parts["days"].max(initial=0), parts["milliseconds"].max(initial=0)) > _MAX_INT32:
        return None
    out = np.empty(len(values), _DAY_TIME)
    out["days"], out["milliseconds"] = parts["days"], parts["milliseconds"]
    return out.view("V8")


def _to_month_day_nano(values: NDArray[Any]) -> NDArray[Any] | None:
    parts = values.view(_INTERVALS)
    if max(parts["months"].max(initial=0), parts["days"].max(initial=0)) > _MAX_INT32:
        return None
    out = np.empty(len(values), _MONTH_DAY_NANO)
    out["months"], out["days"] = parts["months"], parts["days"]
    out["nanoseconds"] = parts["milliseconds"].astype(np.int64) * _NANOSECONDS_PER_MILLISECOND
    return out.view("V16")


_FROM_INTERVAL: dict[str, Restore] = {
    "tiM": _to_months, "tiD": _to_day_time, "tin": _to_month_day_nano, "w:12": _unchanged,
}


def months_to_interval(values: NDArray[Any]) -> NDArray[Any]:
    """Return Arrow's months (tiM) as INTERVAL values.

    Raises:
        SchemaError: an interval is negative. Parquet's INTERVAL is unsigned.
    """
    return _interval(values, values.dtype.type(0), values.dtype.type(0))


def day_time_to_interval(values: NDArray[Any]) -> NDArray[Any]:
    """Return Arrow's days and milliseconds (tiD) as INTERVAL values. Errors are as in months_to_interval."""
    parts = values.view(_DAY_TIME)
    return _interval(np.int32(0), parts["days"], parts["milliseconds"])


def month_day_nano_to_interval(values: NDArray[Any]) -> NDArray[Any]:
    """Return Arrow's months, days and nanoseconds (tin) as INTERVAL values.

    Raises:
        SchemaError: a part is negative, or the nanoseconds are not a whole number of 32-bit milliseconds.
    """
    parts = values.view(_MONTH_DAY_NANO)
    milliseconds, rest = np.divmod(parts["nanoseconds"], _NANOSECONDS_PER_MILLISECOND)
    if rest.any() or milliseconds.max(initial=0) >= 2**32:
        raise SchemaError("the time of an interval is not a whole number of 32-bit milliseconds, as Parquet needs it")
    return _interval(parts["months"], parts["days"], milliseconds)


def _interval(months: Any, days: Any, milliseconds: Any) -> NDArray[Any]:
    if min(np.min(part, initial=0) for part in (months, days, milliseconds)) < 0:
        raise SchemaError("an interval is negative, which Parquet does not allow")
    out = np.empty(np.broadcast_shapes(np.shape(months), np.shape(days), np.shape(milliseconds)), _INTERVALS)
    out["months"], out["days"], out["milliseconds"] = months, days, milliseconds
    return out.view("V12")


# ---- unions

def union_codes(text: str) -> list[int]:
    """Return the type codes in a union format, or an empty list if the text is not a sound union format."""
    kind, _, codes = text.partition(":")
    if kind not in ("+us", "+ud") or not all(code.isdecimal() and int(code) < 128 for code in codes.split(",")):
        return []
    return [int(code) for code in codes.split(",")]


def union_format(column: StructColumn) -> str | None:
    """Return the format of the union that a struct holds, or None if it holds no union, or an unsound one.

    A sound struct has one type code for each member. No row is null, and no row's type code is null. Each row's type code
    belongs to a member.
    """
    stored_format = (column.arrow.metadata or {}).get(UNION_FORMAT) if column.arrow is not None else None
    if stored_format is None or column.null_count or not column.children or not isinstance(column.children[0], Column):
        return None
    text, type_ids = stored_format.decode(errors="replace"), column.children[0]
    codes = union_codes(text)
    names = [field.name for field in column.type.fields]
    if not codes or names[0] != TYPE_ID or len(names) != len(codes) + 1 or len({*codes}) < len(codes):
        return None
    if type_ids.null_count or type_ids.type.logical != Integer(8, signed=True):
        return None
    return text if bool(np.isin(fixed_values(type_ids), codes).all()) else None


# ---- dictionaries


def dictionary_of_numbers(column: Column, most: int) -> Column | None:
    """Return a column with a dictionary in order of first appearance, or None if there are too many distinct values.

    Args:
        column: a column whose values have 1 to 8 bytes. Nulls do not get an entry.
        most: largest number of entries.
    """
    values = column.values
    assert isinstance(values, np.ndarray)
    # Values are compared as bits, so that different NaNs stay distinct, and so do 0.0 and -0.0.
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    valid = column.validity_mask()
    distinct, first, inverse = np.unique(bits[valid], return_index=True, return_inverse=True)
    if len(distinct) > most:
        return None
    order = np.argsort(first)
    codes = np.zeros(len(values), np.int32)
    codes[valid] = np.argsort(order)[inverse]
    entries = Column._made(column.type, distinct[order].view(values.dtype), nullable=False)
    return column._with(values=DictionaryValues(codes, entries))

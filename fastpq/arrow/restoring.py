"""Conversion of column values back to Arrow types without a Parquet type, which Parquet keeps as other types.

| Arrow format               | Parquet type                     | restored                                               |
| -------------------------- | -------------------------------- | ------------------------------------------------------ |
| tDs, tDm, tDu, tDn         | INT64                            | always                                                 |
| tsm:ZONE, tsu:ZONE ...     | TIMESTAMP of the unit, in UTC    | always                                                 |
| tss:, tts                  | TIMESTAMP, TIME of milliseconds  | where all values are whole seconds                     |
| tdm                        | DATE                             | always                                                 |
| d:p,s of any width         | DECIMAL(p, s)                    | 128 and 256 bits always, 32 and 64 by to_arrow() alone |
| tiM, tiD, tin              | INTERVAL                         | where all values fit: months alone, no months, 31 bits |
| a dictionary of numbers    | the numbers                      | where the indices can count the distinct numbers       |

``fastpq.arrow.exporting`` restores the layouts of strings, binary, lists and dictionaries of strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.table import Column, DictionaryValues
from fastpq.errors import SchemaError
from fastpq.schema.types import Decimal, Interval

Restore: TypeAlias = Callable[[NDArray[Any]], NDArray[Any] | None]

_MILLISECONDS_PER_DAY = 86_400_000
_NANOSECONDS_PER_MILLISECOND = 1_000_000
_DECIMAL_BITS = {"32": 32, "64": 64, "128": 128, "256": 256}
_MAX_PRECISION = {32: 9, 64: 18, 128: 38, 256: 76}      # decimal digits by width in bits
_INTERVALS = np.dtype([("months", "<u4"), ("days", "<u4"), ("milliseconds", "<u4")])
_MONTH_DAY_NANO = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_DAY_TIME = np.dtype([("days", "<i4"), ("milliseconds", "<i4")])
_MAX_INT32 = 2**31 - 1


def restoring(column: Column, text: str) -> Restore | None:
    """The function to convert a column's values to an Arrow format; None where the format does not belong to the column's type.

    Args:
        column: a column of fixed-width values.
        text: the format.

    Returns:
        A function from column values to values of the format. The function returns None where a value does not fit.
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


def decimal_bits(logical: Decimal, text: str) -> int | None:
    """The width in bits of a decimal format; None where the format is not one of a decimal type."""
    kind, _, rest = text.partition(":")
    precision, _, rest = rest.partition(",")
    scale, _, width = rest.partition(",")
    bits = _DECIMAL_BITS.get(width or "128", 0)
    fits = logical.precision <= _MAX_PRECISION.get(bits, 0)
    return bits if kind == "d" and fits and (precision, scale) == (str(logical.precision), str(logical.scale)) else None


def _unchanged(values: NDArray[Any]) -> NDArray[Any]:
    return values


def _days_to_milliseconds(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.int64) * _MILLISECONDS_PER_DAY


def _whole_seconds(values: NDArray[Any]) -> NDArray[Any] | None:
    seconds = values // 1000
    return seconds if bool((seconds * 1000 == values).all()) else None


def resized_decimals(values: NDArray[Any], bits: int) -> NDArray[Any] | None:
    """Convert little-endian two's complement integers of any width to ``bits`` bits; None where one does not fit."""
    count = len(values)
    if values.dtype.kind == "V":
        words = np.ascontiguousarray(values).view(np.int64).reshape(count, values.dtype.itemsize // 8)
    else:
        words = values[:, None]
    if bits < 64:
        narrow = words[:, 0].astype(np.int32)
        return narrow if _sign_extends(narrow[:, None], words) else None
    kept = words[:, : bits // 64].astype(np.int64)
    if not _sign_extends(kept, words):
        return None
    out = np.empty((count, bits // 64), np.int64)
    out[:, : kept.shape[1]] = kept
    out[:, kept.shape[1] :] = kept[:, -1:] >> 63
    return out.reshape(-1) if bits == 64 else out.reshape(-1).view(f"V{bits // 8}")


def _sign_extends(kept: NDArray[Any], words: NDArray[Any]) -> bool:
    """Whether ``words`` equal the words in ``kept``, extended by their sign."""
    same = kept == words[:, : kept.shape[1]]
    rest = words[:, kept.shape[1] :] == kept[:, -1:] >> (kept.dtype.itemsize * 8 - 1)
    return bool(same.all()) and bool(rest.all())


# ---- intervals


def _to_months(values: NDArray[Any]) -> NDArray[Any] | None:
    parts = values.view(_INTERVALS)
    fits = parts["months"].max(initial=0) <= _MAX_INT32 and not parts["days"].any() and not parts["milliseconds"].any()
    return parts["months"].astype(np.int32) if fits else None


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
    """Arrow's months (tiM) as INTERVAL values.

    Raises:
        SchemaError: an interval is negative; Parquet's INTERVAL is unsigned.
    """
    return _interval(values, values.dtype.type(0), values.dtype.type(0))


def day_time_to_interval(values: NDArray[Any]) -> NDArray[Any]:
    """Arrow's days and milliseconds (tiD) as INTERVAL values; raises as months_to_interval."""
    parts = values.view(_DAY_TIME)
    return _interval(np.int32(0), parts["days"], parts["milliseconds"])


def month_day_nano_to_interval(values: NDArray[Any]) -> NDArray[Any]:
    """Arrow's months, days and nanoseconds (tin) as INTERVAL values.

    Raises:
        SchemaError: a part is negative, or the nanoseconds are no whole milliseconds of 32 bits.
    """
    parts = values.view(_MONTH_DAY_NANO)
    milliseconds, rest = np.divmod(parts["nanoseconds"], _NANOSECONDS_PER_MILLISECOND)
    if rest.any() or milliseconds.max(initial=0) >= 2**32:
        raise SchemaError("an interval whose time is no whole number of 32-bit milliseconds, as Parquet's are")
    return _interval(parts["months"], parts["days"], milliseconds)


def _interval(months: Any, days: Any, milliseconds: Any) -> NDArray[Any]:
    if min(np.min(part, initial=0) for part in (months, days, milliseconds)) < 0:
        raise SchemaError("a negative interval, which Parquet does not have")
    out = np.empty(np.broadcast_shapes(np.shape(months), np.shape(days), np.shape(milliseconds)), _INTERVALS)
    out["months"], out["days"], out["milliseconds"] = months, days, milliseconds
    return out.view("V12")


# ---- dictionaries


def dictionary_of_numbers(column: Column, most: int) -> Column | None:
    """A column dictionary-encoded, with entries in order of first appearance; None for too many distinct values.

    Args:
        column: a column of values of 1 to 8 bytes. Nulls are left out of the dictionary.
        most: most entries of the dictionary.
    """
    values = column.values
    assert isinstance(values, np.ndarray)
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")      # bits keep NaNs, and 0.0 and -0.0, apart
    there = column.validity_mask()
    distinct, first, inverse = np.unique(bits[there], return_index=True, return_inverse=True)
    if len(distinct) > most:
        return None
    order = np.argsort(first)
    codes = np.zeros(len(values), np.int32)
    codes[there] = np.argsort(order)[inverse]
    entries = Column._made(column.type, distinct[order].view(values.dtype), nullable=False)
    return column._with(values=DictionaryValues(codes, entries))

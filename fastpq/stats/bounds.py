"""Bounds (minimum and maximum) of statistics and page indexes: the order of a column's values, lengths and truncation."""

from __future__ import annotations

from fastpq.schema.types import (
    Bson,
    ColumnType,
    Date,
    Decimal,
    Enum,
    Float16,
    Integer,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Type,
    Uuid,
)
from fastpq.stats.statistics import Order

_PLAIN_ORDERS = {
    Type.BOOLEAN: Order.ORDER_BOOLEAN,
    Type.INT32: Order.ORDER_INT32,
    Type.INT64: Order.ORDER_INT64,
    Type.FLOAT: Order.ORDER_FLOAT,
    Type.DOUBLE: Order.ORDER_DOUBLE,
    Type.BYTE_ARRAY: Order.ORDER_BYTES,
    Type.FIXED_LEN_BYTE_ARRAY: Order.ORDER_BYTES,
}
_UNSIGNED_ORDERS = {Type.INT32: Order.ORDER_UINT32, Type.INT64: Order.ORDER_UINT64}
_SIGNED_ORDERS = {Type.INT32: Order.ORDER_INT32, Type.INT64: Order.ORDER_INT64}
_DECIMAL_ORDERS = _SIGNED_ORDERS | {
    Type.BYTE_ARRAY: Order.ORDER_SIGNED_BYTES,
    Type.FIXED_LEN_BYTE_ARRAY: Order.ORDER_SIGNED_BYTES,
}
_TEXT_ORDERS = {Type.BYTE_ARRAY: Order.ORDER_BYTES}

# Orders by logical and physical type; other logical types have no order.
_LOGICAL_ORDERS: dict[type[LogicalType], dict[Type, Order]] = {
    String: _TEXT_ORDERS,
    Enum: _TEXT_ORDERS,
    Json: _TEXT_ORDERS,
    Bson: _TEXT_ORDERS,
    Uuid: {Type.FIXED_LEN_BYTE_ARRAY: Order.ORDER_BYTES},
    Decimal: _DECIMAL_ORDERS,
    Date: {Type.INT32: Order.ORDER_INT32},
    Time: _SIGNED_ORDERS,
    Timestamp: {Type.INT64: Order.ORDER_INT64},
    Float16: {Type.FIXED_LEN_BYTE_ARRAY: Order.ORDER_FLOAT16},
}

# Bytes of a bound.
_BOUND_LENGTHS = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}
LONGEST_BOUND = 0x7FFFFFFF      # bytes of a BYTE_ARRAY bound

LAST_BEFORE_SURROGATES = 0xD7FF
FIRST_AFTER_SURROGATES = 0xE000
LAST_CODE_POINT = 0x10FFFF


def order_of(column_type: ColumnType) -> Order:
    """The order of a column's values under TypeDefinedOrder (parquet.thrift, ColumnOrder).

    Args:
        column_type: physical and logical type.

    Returns:
        ORDER_NONE where the specification defines no order, or writers disagree about the order: INTERVAL, INT96, always-null
        columns, logical types unknown to fastpq.
    """
    logical = column_type.logical
    if logical is None:
        return _PLAIN_ORDERS.get(column_type.physical, Order.ORDER_NONE)
    if isinstance(logical, Integer):
        orders = _SIGNED_ORDERS if logical.signed else _UNSIGNED_ORDERS
    else:
        orders = _LOGICAL_ORDERS.get(type(logical), {})
    return orders.get(column_type.physical, Order.ORDER_NONE)


def bound_lengths(column_type: ColumnType) -> tuple[int, int]:
    """Shortest and longest bound of a column, in bytes.

    Bounds of FIXED_LEN_BYTE_ARRAY without logical type may be shorter than the values: prefixes are in the order of the values.
    """
    longest = _BOUND_LENGTHS.get(column_type.physical, LONGEST_BOUND)
    if column_type.physical != Type.FIXED_LEN_BYTE_ARRAY:
        return (0 if column_type.physical == Type.BYTE_ARRAY else longest), longest
    longest = column_type.length or 0
    prefixes = column_type.logical is None
    return (0 if prefixes else longest), longest


def truncate_min(value: bytes, length: int, utf8: bool) -> tuple[bytes, bool]:
    """A lower bound of at most length bytes: a prefix of the value.

    For ORDER_BYTES only: a prefix of a decimal is no bound.

    Args:
        value: the minimum.
        length: greatest size of the bound, in bytes.
        utf8: keep whole code points of a value of valid UTF-8; at least one, of any length.

    Returns:
        (the bound, whether the bound is the minimum itself (is_min_value_exact)).
    """
    if len(value) <= length:
        return value, True
    bound = _prefix(value, length, utf8)
    return bound, len(bound) == len(value)


def truncate_max(value: bytes, length: int, utf8: bool) -> tuple[bytes | None, bool]:
    """An upper bound of at most length bytes: a prefix of the value, its last byte or code point incremented.

    A last byte of 0xFF, or a last code point with a longer successor, is dropped, and the byte or code point before is
    incremented instead. For ORDER_BYTES only, as truncate_min.

    Args:
        value: the maximum.
        length: greatest size of the bound, in bytes.
        utf8: keep whole code points of a value of valid UTF-8; at least one, of any length.

    Returns:
        (the bound, or None where no upper bound is short enough; whether the bound is the maximum itself (is_max_value_exact)).
    """
    if len(value) <= length:
        return value, True
    prefix = _prefix(value, length, utf8)
    if len(prefix) == len(value):
        return value, True
    if utf8 and _is_utf8(value):
        return _next_text(prefix.decode()), False
    return _next_bytes(prefix), False


def _prefix(value: bytes, length: int, utf8: bool) -> bytes:
    if not utf8 or not _is_utf8(value):
        return value[:length]
    end = length
    while end > 0 and _continues(value[end]):
        end -= 1
    if end == 0:  # the first code point is longer than length
        end = 1
        while end < len(value) and _continues(value[end]):
            end += 1
    return value[:end]


def _continues(byte: int) -> bool:
    """Whether a byte of UTF-8 is a continuation byte: any byte of a code point but the first."""
    return byte & 0xC0 == 0x80


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _next_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    if not kept:
        return None
    return kept[:-1] + bytes([kept[-1] + 1])


def _next_text(prefix: str) -> bytes | None:
    for position in range(len(prefix) - 1, -1, -1):
        code_point = ord(prefix[position])
        successor = FIRST_AFTER_SURROGATES if code_point == LAST_BEFORE_SURROGATES else code_point + 1
        if successor <= LAST_CODE_POINT and len(chr(successor).encode()) == len(prefix[position].encode()):
            return (prefix[:position] + chr(successor)).encode()
    return None

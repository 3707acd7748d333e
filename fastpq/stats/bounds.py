"""Bounds (minimum and maximum) in statistics and page indexes: their order, their lengths, and how they are shortened."""

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

FLOAT_ORDERS = (Order.ORDER_FLOAT16, Order.ORDER_FLOAT, Order.ORDER_DOUBLE)
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

# Orders by logical and physical type. Other logical types have no order.
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

# Bytes that a bound has, by physical type.
_BOUND_LENGTHS = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}
LONGEST_BOUND = 0x7FFFFFFF      # most bytes that a BYTE_ARRAY bound may have

LAST_BEFORE_SURROGATES = 0xD7FF
FIRST_AFTER_SURROGATES = 0xE000
LAST_CODE_POINT = 0x10FFFF


def order_of(column_type: ColumnType) -> Order:
    """Return the order in which a column's values are under TypeDefinedOrder (parquet.thrift, ColumnOrder).

    Args:
        column_type: physical and logical type.

    Returns:
        ORDER_NONE if the specification defines no order, or if writers disagree about it. This is so for INTERVAL, for INT96, for
        always-null columns, and for logical types that fastpq does not know.
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
    """Return the lengths in bytes of the shortest and the longest bound that a column may have.

    Bounds on a FIXED_LEN_BYTE_ARRAY column without logical type may be shorter than the values, because prefixes have the same
    order as the values.
    """
    longest = _BOUND_LENGTHS.get(column_type.physical, LONGEST_BOUND)
    if column_type.physical != Type.FIXED_LEN_BYTE_ARRAY:
        return (0 if column_type.physical == Type.BYTE_ARRAY else longest), longest
    longest = column_type.length or 0
    prefixes = column_type.logical is None
    return (0 if prefixes else longest), longest


def truncate_min(value: bytes, length: int, utf8: bool) -> tuple[bytes, bool]:
    """Shorten a minimum to a lower bound with at most length bytes, which is a prefix of it.

    Only for ORDER_BYTES, because a decimal's prefix is not a bound.

    Args:
        value: the minimum.
        length: the bound's largest size in bytes.
        utf8: whether to keep whole code points if the value is valid UTF-8. At least one is kept, however long it is.

    Returns:
        (the bound, whether the bound is the minimum itself (is_min_value_exact)).
    """
    if len(value) <= length:
        return value, True
    bound = _prefix(value, length, utf8)
    return bound, len(bound) == len(value)


def truncate_max(value: bytes, length: int, utf8: bool) -> tuple[bytes | None, bool]:
    """Shorten a maximum to an upper bound with at most length bytes: a prefix whose last byte or code point is incremented.

    If the last byte is 0xFF, or the last code point has a longer successor, it is dropped, and the byte or code point before it
    is incremented instead. Only for ORDER_BYTES, like truncate_min.

    Args:
        value: the maximum.
        length: the bound's largest size in bytes.
        utf8: whether to keep whole code points if the value is valid UTF-8. At least one is kept, however long it is.

    Returns:
        (the bound or None if no upper bound is short enough, whether the bound is the maximum itself (is_max_value_exact)).
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
    """Return whether a byte continues a UTF-8 code point, which means that it is not its first byte."""
    return byte & 0xC0 == 0x80


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _next_bytes(prefix: bytes) -> bytes | None:
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return None
    return stem[:-1] + bytes([stem[-1] + 1])


def _next_text(prefix: str) -> bytes | None:
    for position in range(len(prefix) - 1, -1, -1):
        code_point = ord(prefix[position])
        successor = FIRST_AFTER_SURROGATES if code_point == LAST_BEFORE_SURROGATES else code_point + 1
        if successor <= LAST_CODE_POINT and len(chr(successor).encode()) == len(prefix[position].encode()):
            return (prefix[:position] + chr(successor)).encode()
    return None

"""The Variant encoding in plain Python, as VariantEncoding.md reads: wider than needed, fields in any order, where asked."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fastpq.variant import Kind, Primitive

FORMATS = {
    Kind.INT8: "<b", Kind.INT16: "<h", Kind.INT32: "<i", Kind.INT64: "<q", Kind.DOUBLE: "<d", Kind.DATE: "<i",
    Kind.TIMESTAMP: "<q", Kind.TIMESTAMP_NTZ: "<q", Kind.FLOAT: "<f", Kind.TIME: "<q", Kind.TIMESTAMP_NANOS: "<q",
    Kind.TIMESTAMP_NTZ_NANOS: "<q",
}
DECIMAL_SIZES = {Kind.DECIMAL4: 4, Kind.DECIMAL8: 8, Kind.DECIMAL16: 16}


@dataclass(frozen=True)
class Shape:
    """How much wider than needed things are written, and in which order values stand.

    Attributes:
        extra: bytes added to each width, where four are the most.
        large: always four bytes for the number of elements.
        long_strings: never the short form.
        backwards: the values of an object from last to first.
    """

    extra: int = 0
    large: bool = False
    long_strings: bool = False
    backwards: bool = False


def width(number: int, shape: Shape) -> int:
    return min(4, max(1, -(-number.bit_length() // 8)) + shape.extra)


def little(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little")


def metadata(names: list[str], shape: Shape = Shape()) -> bytes:
    texts = [name.encode() for name in names]
    total = sum(map(len, texts))
    size = width(max(total, len(texts)), shape)
    ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    in_order = bool(texts) and all(a < b for a, b in pairwise(texts))
    header = 1 | in_order << 4 | (size - 1) << 6
    return bytes([header]) + little(len(texts), size) + b"".join(little(end, size) for end in ends) + b"".join(texts)


def primitive(value: Primitive) -> bytes:
    kind, inner = value.kind, value.value
    header = bytes([kind << 2])
    if kind in (Kind.NULL, Kind.TRUE, Kind.FALSE):
        return header
    if kind in FORMATS:
        return header + struct.pack(FORMATS[kind], inner)
    if kind in DECIMAL_SIZES:
        sign, digits, exponent = inner.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return header + bytes([-exponent]) + unscaled.to_bytes(DECIMAL_SIZES[kind], "little", signed=True)
    if kind == Kind.UUID:
        return header + bytes(inner.bytes)
    raw: bytes = inner.encode() if kind == Kind.STRING else inner
    return header + little(len(raw), 4) + raw


def container(basic: int, ids: list[bytes], starts: list[int], body: bytes, flags: int, shape: Shape) -> bytes:
    size = width(len(body), shape)
    large = shape.large or len(starts) > 255
    header = basic | (size - 1 | flags | large << (4 if basic == 2 else 2)) << 2
    offsets = b"".join(little(start, size) for start in [*starts, len(body)])
    return bytes([header]) + little(len(starts), 4 if large else 1) + b"".join(ids) + offsets + body


def encode(value: Any, ids: dict[str, int], shape: Shape = Shape()) -> bytes:
    """A value of dicts, lists and Primitives."""
    if isinstance(value, list):
        items = [encode(each, ids, shape) for each in value]
        return container(3, [], [sum(map(len, items[:i])) for i in range(len(items))], b"".join(items), 0, shape)
    if isinstance(value, dict):
        names = sorted(value, key=str.encode)
        parts = {name: encode(value[name], ids, shape) for name in (names[::-1] if shape.backwards else names)}
        places, at = {}, 0
        for name, part in parts.items():
            places[name] = at
            at += len(part)
        size = width(max((ids[name] for name in names), default=0), shape)
        raw = [little(ids[name], size) for name in names]
        return container(2, raw, [places[name] for name in names], b"".join(parts.values()), (size - 1) << 2, shape)
    raw_text = value.value.encode() if value.kind == Kind.STRING else b""
    if value.kind == Kind.STRING and len(raw_text) < 64 and not shape.long_strings:
        return bytes([len(raw_text) << 2 | 1]) + raw_text
    return primitive(value)


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for part in value.values() for name in names_in(part)}
    return {name for part in value for name in names_in(part)} if isinstance(value, list) else set()


def variant(value: Any, shape: Shape = Shape(), order: Callable[[set[str]], list[str]] = sorted) -> tuple[bytes, bytes]:
    """Metadata and value."""
    names = order(names_in(value))
    return metadata(names, shape), encode(value, {name: i for i, name in enumerate(names)}, shape)


def split(data: bytes) -> tuple[bytes, bytes]:
    """Metadata and value that follow one another, as in the test data."""
    size = (data[0] >> 6) + 1
    count = int.from_bytes(data[1 : 1 + size], "little")
    text = int.from_bytes(data[1 + (count + 1) * size : 1 + (count + 2) * size], "little")
    end = 1 + (count + 2) * size + text
    return data[:end], data[end:]

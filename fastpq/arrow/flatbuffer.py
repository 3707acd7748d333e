"""FlatBuffers writer for the parts that Arrow's schemas use: scalars, strings, tables and table vectors.

``table_reader`` reads FlatBuffers, and describes the layout.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

_REFERENCE = "<I"
# Scalar width in bytes, by the letter that the module struct gives the type.
_WIDTHS = {"?": 1, "B": 1, "h": 2, "i": 4, "q": 8}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in a slot. ``code`` is the letter that the module struct gives its type."""

    code: str
    value: int


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """A table that is already a flatbuffer. Its references are relative, so that it can be copied into another flatbuffer."""

    data: bytes


FlatTable: TypeAlias = dict[int, "Value"]
Value: TypeAlias = Scalar | bytes | FlatTable | EncodedTable | list[FlatTable | EncodedTable]


def flatbuffer(root: FlatTable) -> bytes:
    """Return a flatbuffer as bytes.

    Args:
        root: the root table's values, by slot number. A bytes object is a string.
    """
    out = bytearray(4)
    waiting: list[tuple[int, Value]] = [(0, root)]
    while waiting:
        reference, value = waiting.pop()
        match value:
            case bytes():
                place = _aligned(out, 4)
                out += struct.pack(_REFERENCE, len(value)) + value + b"\0"
            case list():
                place = _aligned(out, 4)
                out += struct.pack(_REFERENCE, len(value)) + bytes(4 * len(value))
                waiting.extend((place + 4 + 4 * index, table) for index, table in enumerate(value))
            case EncodedTable(data):
                place = _aligned(out, 8) + struct.unpack_from(_REFERENCE, data)[0]
                out += data
            case dict():
                place = _append_table(out, value, waiting)
            case Scalar():
                raise TypeError("a scalar must be inside a table")
        struct.pack_into(_REFERENCE, out, reference, place - reference)
    return bytes(out)


class _Layout(NamedTuple):
    """The layout of tables that have scalars of the same types, and references, in the same slots.

    Attributes:
        vtable: the vtable's bytes.
        size: table size in bytes.
        offsets: offset of each value in the table, in slot order of the argument of ``_layout_of``.
    """

    vtable: bytes
    size: int
    offsets: tuple[int, ...]


@lru_cache(maxsize=64)
def _layout_of(slots: tuple[tuple[int, str | None], ...]) -> _Layout:
    """Return the layout for some slots.

    Args:
        slots: each slot with its scalar's type, or with None for a reference.
    """
    widths = {slot: 4 if code is None else _WIDTHS[code] for slot, code in slots}
    offsets, size = {}, 4
    for slot in sorted(widths, key=lambda slot: -widths[slot]):
        size += -size % widths[slot]
        offsets[slot] = size
        size += widths[slot]
    count = max(widths, default=-1) + 1
    vtable = struct.pack(f"<{2 + count}H", 4 + 2 * count, size, *(offsets.get(slot, 0) for slot in range(count)))
    return _Layout(vtable, size, tuple(offsets[slot] for slot, _ in slots))


def _append_table(out: bytearray, table: FlatTable, waiting: list[tuple[int, Value]]) -> int:
    """Append a vtable and its table, and return the table's offset. References that are not filled yet go to waiting."""
    slots = tuple([(slot, value.code if isinstance(value, Scalar) else None) for slot, value in table.items()])
    vtable, size, offsets = _layout_of(slots)
    out += bytes(-(len(out) + len(vtable)) % 8) + vtable
    place = len(out)
    out += struct.pack("<i", len(vtable)) + bytes(size - 4)
    for offset, value in zip(offsets, table.values(), strict=True):
        if isinstance(value, Scalar):
            struct.pack_into("<" + value.code, out, place + offset, value.value)
        else:
            waiting.append((place + offset, value))
    return place


def _aligned(out: bytearray, alignment: int) -> int:
    out += bytes(-len(out) % alignment)
    return len(out)

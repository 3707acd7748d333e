"""Writing FlatBuffers, as far as Arrow's schemas use these: scalars, strings, tables and vectors of tables.

``table_reader`` reads these, and says the layout.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

_REFERENCE = "<I"
# Bytes of a scalar by struct's letter for its type.
_WIDTHS = {"?": 1, "B": 1, "h": 2, "i": 4, "q": 8}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in a slot; ``code`` is struct's letter for its type."""

    code: str
    value: int


FlatTable: TypeAlias = dict[int, "Value"]
Value: TypeAlias = Scalar | bytes | FlatTable | list[FlatTable]


def flatbuffer(root: FlatTable) -> bytes:
    """The bytes of a flatbuffer with a root table, given as values by slot number; bytes stand for strings."""
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
            case dict():
                place = _append_table(out, value, waiting)
            case Scalar():
                raise TypeError("a scalar stands in its table")
        struct.pack_into(_REFERENCE, out, reference, place - reference)
    return bytes(out)


def _append_table(out: bytearray, table: FlatTable, waiting: list[tuple[int, Value]]) -> int:
    """Append a vtable and its table; returns the table's offset. Adds the table's references to waiting, still unfilled."""
    widths = {slot: _WIDTHS[value.code] if isinstance(value, Scalar) else 4 for slot, value in table.items()}
    offsets, size = {}, 4
    for slot in sorted(table, key=lambda slot: -widths[slot]):
        size += -size % widths[slot]
        offsets[slot] = size
        size += widths[slot]
    slots = max(table, default=-1) + 1
    vtable = [4 + 2 * slots, size, *(offsets.get(slot, 0) for slot in range(slots))]
    while (len(out) + 2 * len(vtable)) % 8:
        out.append(0)
    out += struct.pack(f"<{len(vtable)}H", *vtable)
    place = len(out)
    out += struct.pack("<i", 2 * len(vtable)) + bytes(size - 4)
    for slot, value in table.items():
        if isinstance(value, Scalar):
            struct.pack_into("<" + value.code, out, place + offsets[slot], value.value)
        else:
            waiting.append((place + offsets[slot], value))
    return place


def _aligned(out: bytearray, alignment: int) -> int:
    out += bytes(-len(out) % alignment)
    return len(out)

"""Reading and writing FlatBuffers, as far as Arrow's schemas use these: scalars, strings, tables and vectors of tables.

Layout (https://flatbuffers.dev/internals): a table begins with the distance back to its vtable. The vtable holds, for each slot,
the slot's offset in the table, or 0. A reference is the distance forward to its target. The reader checks every offset before
use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fastpq.errors import FormatError

_REFERENCE = "<I"
# Most bytes of strings and vectors read from a buffer, as a multiple of the buffer's bytes. Strings and vectors may be shared
# and overlap, so that a small buffer could otherwise expand without bound.
_MOST_SHARING = 8
# Bytes of a scalar by struct's letter for its type.
_WIDTHS = {"?": 1, "B": 1, "h": 2, "i": 4, "q": 8}


class TableReader:
    """A table in a buffer.

    Args:
        data: the buffer.
        position: offset of the table.
        allowance: bytes of strings and vectors still to be read at most, one number shared by all tables of the buffer.

    Raises:
        FormatError: the table or a value lies outside the buffer, or the allowance is used up; also raised by all methods.
    """

    __slots__ = ("_allowance", "_data", "_position", "_vtable", "_vtable_size")

    def __init__(self, data: bytes, position: int, allowance: list[int]) -> None:
        self._data = data
        self._allowance = allowance
        self._position = position
        self._vtable = position - _number(data, "<i", position)
        self._vtable_size = _number(data, "<H", self._vtable)

    @classmethod
    def root(cls, data: bytes) -> TableReader:
        """The root table of a buffer."""
        return cls(data, _number(data, _REFERENCE, 0), [_MOST_SHARING * len(data)])

    def scalar(self, slot: int, code: str, default: int = 0) -> int:
        """The number in a slot; ``code`` is struct's letter for its type."""
        place = self._place(slot)
        return default if place is None else _number(self._data, "<" + code, place)

    def text(self, slot: int) -> bytes | None:
        """The bytes of the string in a slot; None for an empty slot."""
        place = self._target(slot)
        if place is None:
            return None
        size = _number(self._data, _REFERENCE, place)
        if size > len(self._data) - place - 4:
            raise FormatError(f"a string of {size} bytes ends outside its flatbuffer")
        self._spend(size)
        return self._data[place + 4 : place + 4 + size]

    def table(self, slot: int) -> TableReader | None:
        """The table in a slot; None for an empty slot."""
        place = self._target(slot)
        return None if place is None else TableReader(self._data, place, self._allowance)

    def count(self, slot: int) -> int:
        """Number of tables in the vector in a slot; 0 for an empty slot."""
        place = self._target(slot)
        if place is None:
            return 0
        count = _number(self._data, _REFERENCE, place)
        if count > (len(self._data) - place - 4) // 4:
            raise FormatError(f"a vector of {count} tables ends outside its flatbuffer")
        return count

    def item(self, slot: int, index: int) -> TableReader:
        """A table of the vector in a slot; ``index`` is below its count."""
        place = self._target(slot)
        assert place is not None
        self._spend(4)
        at = place + 4 + 4 * index
        return TableReader(self._data, at + _number(self._data, _REFERENCE, at), self._allowance)

    def items(self, slot: int) -> Iterator[TableReader]:
        """The tables of the vector in a slot."""
        return (self.item(slot, index) for index in range(self.count(slot)))

    def _spend(self, size: int) -> None:
        self._allowance[0] -= size
        if self._allowance[0] < 0:
            raise FormatError(f"strings and vectors of more than {_MOST_SHARING} times the bytes of their flatbuffer")

    def _place(self, slot: int) -> int | None:
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return None
        offset = _number(self._data, "<H", self._vtable + entry)
        return self._position + offset if offset else None

    def _target(self, slot: int) -> int | None:
        place = self._place(slot)
        return None if place is None else place + _number(self._data, _REFERENCE, place)


def _number(data: bytes, code: str, place: int) -> int:
    if not 0 <= place <= len(data) - struct.calcsize(code):
        raise FormatError(f"offset {place} is outside a flatbuffer of {len(data)} bytes")
    return int(struct.unpack_from(code, data, place)[0])


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

"""Which entries of a dictionary page data pages use, and the dictionary page without the others."""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray

from fastpq.errors import FormatError
from fastpq.schema.types import ColumnType, Decimal, Integer, Type

_SPACES = bytes.maketrans(b"01", b" \t")

Mask = NDArray[np.bool_]
Codes = NDArray[np.uint32]


def decode_runs(data: memoryview, bit_width: int, num_values: int) -> Codes:
    """Decode numbers in the hybrid of run lengths and bit packing (Encodings.md, RLE).

    Raises:
        FormatError: the data end too early.
    """
    parts: list[Codes] = []
    position = missing = 0
    missing = num_values
    width = (bit_width + 7) // 8
    while missing > 0:
        head = shift = 0
        while True:
            if position >= len(data):
                raise FormatError("a run of levels or indexes ends too early")
            byte = data[position]
            position += 1
            head |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if head & 1:
            size = (head >> 1) * bit_width
            packed = np.frombuffer(data[position : position + size], np.uint8)
            bits = np.unpackbits(packed, bitorder="little")
            usable = len(bits) // bit_width * bit_width if bit_width else 0
            weights = (1 << np.arange(bit_width, dtype=np.uint64)).astype(np.uint64)
            numbers = bits[:usable].reshape(-1, bit_width) @ weights if bit_width else np.zeros((head >> 1) * 8, np.uint64)
            position += size
        else:
            value = int.from_bytes(data[position : position + width], "little")
            numbers = np.full(min(head >> 1, missing), value, np.uint64)
            position += width
        part = numbers[:missing].astype(np.uint32)
        if not len(part):
            raise FormatError("a run of levels or indexes ends too early")
        parts.append(part)
        missing -= len(part)
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def encode_codes(codes: Codes, bit_width: int) -> bytes:
    """Encode dictionary indexes as one run of bit packing, behind the byte with their width (Encodings.md, RLE_DICTIONARY)."""
    groups = -(-len(codes) // 8)
    padded_codes = np.zeros(8 * groups, np.uint32)
    padded_codes[: len(codes)] = codes
    bits = (padded_codes[:, None] >> np.arange(bit_width, dtype=np.uint32)) & 1
    packed = np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little").tobytes()
    head, number = bytearray([bit_width]), groups << 1 | 1
    while number > 0x7F:
        head.append(number & 0x7F | 0x80)
        number >>= 7
    head.append(number)
    return bytes(head) + packed


def split_entries(plain: bytes, count: int, width: int) -> list[bytes]:
    """Return the entries of a PLAIN-encoded dictionary. A width of 0 is for BYTE_ARRAY.

    Raises:
        FormatError: the dictionary ends too early.
    """
    entries: list[bytes] = []
    position = 0
    for _ in range(count):
        size = width
        if not width:
            size = int.from_bytes(plain[position : position + 4], "little")
            position += 4
        if position + size > len(plain):
            raise FormatError("the dictionary page ends too early")
        entries.append(plain[position : position + size])
        position += size
    return entries


def with_blanks(plain: bytes, is_used: Mask, width: int, type_: ColumnType) -> bytes:
    """Return a PLAIN-encoded dictionary in which each unused entry is a blank that no other entry equals.

    Args:
        plain: the entries.
        is_used: which entries stay.
        width: bytes of an entry, or 0 for BYTE_ARRAY.
        type_: the column's type. Blanks are values of this type, because readers check whole dictionaries.
    """
    entries = split_entries(plain, len(is_used), width)
    others = {entry for entry, used in zip(entries, is_used, strict=True) if used}
    blanks = (blank for number in count() if (blank := _blank(number, width, type_)) not in others)
    limit = _most_blanks(width, type_)
    new_entries = []
    for entry, used in zip(entries, is_used, strict=True):
        is_full = limit and len(others) >= limit
        new_entry = entry if used else next(iter(others)) if is_full else next(blanks)
        if not used and not is_full:
            others.add(new_entry)
        new_entries.append(new_entry if width else len(new_entry).to_bytes(4, "little") + new_entry)
    return b"".join(new_entries)


def _most_blanks(width: int, type_: ColumnType) -> int:
    """Return how many blanks there are. 0 stands for any number."""
    if isinstance(type_.logical, Decimal):
        return int(10**type_.logical.precision)
    if isinstance(type_.logical, Integer):
        return 1 << (type_.logical.bit_width - type_.logical.signed)
    return 1 << (8 * width) if width else 0


def _blank(number: int, width: int, type_: ColumnType) -> bytes:
    """Return a blank for each number: the number itself, or its binary digits as spaces and tabs, which are short text."""
    if isinstance(type_.logical, Decimal) and type_.physical in (Type.FIXED_LEN_BYTE_ARRAY, Type.BYTE_ARRAY):
        return number.to_bytes(width or number.bit_length() // 8 + 1, "big")
    return number.to_bytes(width, "little") if width else f"{number:b}".encode().translate(_SPACES)

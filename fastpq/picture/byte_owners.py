"""ByteMap: all bytes in a file, and the parts that own them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]


class ByteKind(IntEnum):
    """What owns bytes. If two parts claim the same first byte, the kind with the smaller number gets it."""

    MAGIC = 0
    FOOTER = 1
    DICTIONARY = 2
    DATA = 3
    OFFSET_INDEX = 4
    COLUMN_INDEX = 5
    BLOOM_FILTER = 6
    METADATA_COPY = 7
    SEALED = 8
    GAP = 9


KIND_TEXTS = {
    ByteKind.MAGIC: "magic bytes and footer length",
    ByteKind.FOOTER: "footer",
    ByteKind.DICTIONARY: "dictionary pages",
    ByteKind.DATA: "data pages",
    ByteKind.OFFSET_INDEX: "offset indexes",
    ByteKind.COLUMN_INDEX: "column indexes",
    ByteKind.BLOOM_FILTER: "bloom filters",
    ByteKind.METADATA_COPY: "copies of column metadata",
    ByteKind.SEALED: "sealed: no key",
    ByteKind.GAP: "gaps: no part refers to them",
}

_LARGEST = 1 << 61      # of offsets and lengths that are added

# Stands for owners that belong to no column chunk.
NO_CHUNK = -1


class Claim(NamedTuple):
    """A byte range that one part claims.

    Attributes:
        start: where it begins, in bytes.
        length: how many bytes it has.
        kind: what the part is.
        chunk: number of the column chunk, counted through all row groups, or NO_CHUNK.
    """

    start: int
    length: int
    kind: ByteKind
    chunk: int = NO_CHUNK


class ByteMap(NamedTuple):
    """What owns the bytes in a file, in file order and without overlap.

    Attributes:
        starts, lengths: shape (spans,), int64: the spans. Together they are the whole file.
        kinds: shape (spans,), int64: a ByteKind for each span.
        chunks: shape (spans,), int64: number of the column chunk for each span, or NO_CHUNK.
        size: file size in bytes.
        overlap: bytes that two parts claim. The part that begins first owns them.
        outside: claimed bytes outside the file.
    """

    starts: Int64s
    lengths: Int64s
    kinds: Int64s
    chunks: Int64s
    size: int
    overlap: int
    outside: int

    def bytes_by_kind(self) -> dict[ByteKind, int]:
        """Return how many bytes each kind owns, if it owns any. The sum is the file size."""
        counts = np.zeros(len(ByteKind), np.int64)
        np.add.at(counts, self.kinds, self.lengths)
        return {kind: int(counts[kind]) for kind in ByteKind if counts[kind]}


def byte_map(claims: Sequence[Claim], size: int, *, has_sealed_parts: bool) -> ByteMap:
    """Return which part owns each byte in a file.

    Args:
        claims: the parts, in any order. They may overlap, and may reach beyond the file.
        size: file size in bytes.
        has_sealed_parts: whether some parts are unknown without a key. Bytes that nobody claims are then SEALED, else a GAP.
    """
    table = np.array(claims, np.int64).reshape(-1, 4)
    # A broken footer may have any INT64, and sums of two would overflow.
    first, length = table[:, 0].clip(-_LARGEST, _LARGEST), table[:, 1].clip(0, _LARGEST)
    stored_starts, stored_ends = first.clip(0, size), (first + length).clip(0, size)
    claimed_size = int(length.astype(np.float64).sum())
    order = np.lexsort((table[:, 2], stored_starts))
    starts, ends = stored_starts[order], stored_ends[order]
    kinds, chunks = table[order, 2], table[order, 3]
    reach = np.maximum.accumulate(np.concatenate([[0], ends]))  # where all earlier spans end
    own_starts = np.maximum(starts, reach[:-1])
    own_lengths = np.maximum(ends - own_starts, 0)
    gap_ends = np.concatenate([np.maximum(starts, reach[:-1]), [size]])
    gap_lengths = gap_ends - reach
    rest = ByteKind.SEALED if has_sealed_parts else ByteKind.GAP
    spans = len(starts)
    result = np.empty((4, 2 * spans + 1), np.int64)
    result[:, 0::2] = reach, gap_lengths, np.full(spans + 1, rest), np.full(spans + 1, NO_CHUNK)
    result[:, 1::2] = own_starts, own_lengths, kinds, chunks
    result = result[:, result[1] > 0]
    inside = int((ends - starts).clip(0).sum())
    return ByteMap(result[0], result[1], result[2], result[3], size, inside - int(own_lengths.sum()), claimed_size - inside)

"""Layouts for variable-length values: string views, and offsets into contiguous bytes. Their reprs show no values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.binary import gather_views

Array = NDArray[Any]

VIEW_DTYPE = np.dtype("V16")
INLINE_SIZE = 12  # length of the longest value that a view holds itself, in bytes
MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryViews:
    """Variable-length values as Arrow string views.

    Attributes:
        views: shape (n,), dtype VIEW_DTYPE. Each view has 16 bytes: ``length`` (int32), then 12 bytes that hold either the value
            itself, or its prefix, buffer number and offset.
        buffers: uint8 arrays, which hold all values that are longer than 12 bytes.
    """

    views: Array
    buffers: Sequence[Array] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.views)

    @property
    def nbytes(self) -> int:
        """Size of the views and the buffers in bytes."""
        return self.views.nbytes + sum(buffer.nbytes for buffer in self.buffers)


class CodedViews(BinaryViews):
    """Views for a column with few distinct values, held as codes. The views are made when they are first used, and kept.

    Attributes:
        codes: shape (n,), int32. A null's code is 0 or any entry's index.
        entries: the distinct values.
        validity: the column's validity bitmap, or None if no value is null.
    """

    __slots__ = ("_cached_views", "codes", "entries", "validity")
    __match_args__ = ("codes", "entries", "validity")

    codes: Array
    entries: BinaryViews
    validity: Array | None
    _cached_views: Array | None

    def __init__(self, codes: Array, entries: BinaryViews, validity: Array | None) -> None:
        for name, value in (("codes", codes), ("entries", entries), ("validity", validity), ("_cached_views", None)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return CodedViews, (self.codes, self.entries, self.validity)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def views(self) -> Array:
        """The views, in new memory, zero where null."""
        views = self._cached_views
        if views is None:       # two threads may both make the views, which are equal
            views = gather_views(self.entries.views, self.codes, self.validity)
            object.__setattr__(self, "_cached_views", views)
        return views

    @property
    def buffers(self) -> Sequence[Array]:
        """The entries' buffers."""
        return self.entries.buffers

    @property
    def nbytes(self) -> int:
        """Size in bytes: the codes, the entries, and the views if they are made."""
        views = self._cached_views
        return self.codes.nbytes + self.entries.nbytes + (0 if views is None else views.nbytes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryOffsets:
    """Variable-length values as offsets (int32 or int64, shape (n + 1,)) into data (uint8).

    The first offset need not be 0, and the data may go on after the last offset.
    """

    offsets: Array
    data: Array

    def __len__(self) -> int:
        return max(len(self.offsets) - 1, 0)

    @property
    def nbytes(self) -> int:
        """Size in bytes: the offsets, and the data between the first and the last offset."""
        return self.offsets.nbytes + int(self.offsets[-1] - self.offsets[0])


Binary = BinaryViews | BinaryOffsets


def empty_binary(count: int) -> BinaryOffsets:
    """Return ``count`` empty values."""
    return BinaryOffsets(np.zeros(count + 1, np.int32), np.zeros(0, np.uint8))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "DictionaryValues":      # older pickles look for the class in this module
            return import_module("fastpq.arrays.flat_column").DictionaryValues
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

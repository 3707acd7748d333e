"""Layouts of values of variable length and of values with a dictionary; their reprs show no values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fastpq.arrays.flat_column import Column

Array = NDArray[Any]

VIEW_DTYPE = np.dtype("V16")
INLINE_SIZE = 12  # longest value inside of a view
MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryViews:
    """Variable-length values as Arrow string views.

    Attributes:
        views: shape (n,), dtype VIEW_DTYPE (16 bytes each: ``length`` int32, then 12 bytes inline or prefix, buffer,
            offset).
        buffers: uint8 arrays with the bytes of values of more than 12 bytes.
    """

    views: Array
    buffers: Sequence[Array] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.views)

    @property
    def nbytes(self) -> int:
        """Bytes of views and buffers."""
        return self.views.nbytes + sum(buffer.nbytes for buffer in self.buffers)


class CodedViews(BinaryViews):
    """Views of a column of few distinct values, held as codes; the first use of the views makes and keeps them.

    Attributes:
        codes: shape (n,), int32; where null, 0 or another number of an entry.
        entries: the distinct values.
        validity: bitmap of the column with these values, or None without nulls.
    """

    __slots__ = ("_made", "codes", "entries", "validity")
    __match_args__ = ("codes", "entries", "validity")

    codes: Array
    entries: BinaryViews
    validity: Array | None
    _made: Array | None

    def __init__(self, codes: Array, entries: BinaryViews, validity: Array | None) -> None:
        for name, value in (("codes", codes), ("entries", entries), ("validity", validity), ("_made", None)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return CodedViews, (self.codes, self.entries, self.validity)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def views(self) -> Array:
        """The views: in memory of their own, zero where null."""
        from fastpq.arrays.binary import gather_views

        made = self._made
        if made is None:        # two threads at once make equal views
            made = gather_views(self.entries.views, self.codes, self.validity)
            object.__setattr__(self, "_made", made)
        return made

    @property
    def buffers(self) -> Sequence[Array]:
        """The buffers of the entries."""
        return self.entries.buffers

    @property
    def nbytes(self) -> int:
        """Bytes of the codes, of the entries, and of views that were made."""
        made = self._made
        return self.codes.nbytes + self.entries.nbytes + (0 if made is None else made.nbytes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryOffsets:
    """Variable-length values as offsets (int32 or int64, shape (n + 1,)) into data (uint8).

    The first offset need not be 0, and data may go on after the last.
    """

    offsets: Array
    data: Array

    def __len__(self) -> int:
        return max(len(self.offsets) - 1, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the offsets and of the values between the first and the last."""
        return self.offsets.nbytes + int(self.offsets[-1] - self.offsets[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DictionaryValues:
    """Values as codes (int32, shape (n,); 0 where null) into a dictionary column without nulls.

    Attributes:
        codes: the codes.
        dictionary: the entries.
        is_ordered: whether the order of the entries has a meaning: an Arrow dictionary or a pandas categorical in order.
    """

    codes: Array
    dictionary: Column
    is_ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes of the codes and of the dictionary."""
        return self.codes.nbytes + self.dictionary.nbytes


Binary = BinaryViews | BinaryOffsets
Values = Array | BinaryViews | BinaryOffsets | DictionaryValues


def empty_binary(count: int) -> BinaryOffsets:
    """``count`` values of no bytes."""
    return BinaryOffsets(np.zeros(count + 1, np.int32), np.zeros(0, np.uint8))

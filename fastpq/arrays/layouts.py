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

    @property
    def nbytes(self) -> int:
        """Bytes of views and buffers."""
        return self.views.nbytes + sum(buffer.nbytes for buffer in self.buffers)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryOffsets:
    """Variable-length values as offsets (int32 or int64, shape (n + 1,)) into data (uint8).

    The first offset need not be 0, and data may go on after the last.
    """

    offsets: Array
    data: Array

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

    @property
    def nbytes(self) -> int:
        """Bytes of the codes and of the dictionary."""
        return self.codes.nbytes + self.dictionary.nbytes


Binary = BinaryViews | BinaryOffsets
Values = Array | BinaryViews | BinaryOffsets | DictionaryValues


def empty_binary(count: int) -> BinaryOffsets:
    """``count`` values of no bytes."""
    return BinaryOffsets(np.zeros(count + 1, np.int32), np.zeros(0, np.uint8))

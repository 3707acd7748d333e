"""Table and Column: named columns in memory, in Arrow's layout, held in NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastpq.types import ColumnType


@dataclass(frozen=True, slots=True)
class BinaryViews:
    """Variable-length values as Arrow string views.

    Attributes:
        views: shape (n,), dtype VIEW_DTYPE (16 bytes each: ``length`` int32, then 12 bytes inline or prefix, buffer, offset).
        buffers: uint8 arrays that the views of more than 12 bytes point into.
    """

    views: np.ndarray[Any, Any]
    buffers: Sequence[np.ndarray[Any, Any]] = field(default_factory=list)


VIEW_DTYPE = np.dtype("V16")


@dataclass(frozen=True, slots=True)
class BinaryOffsets:
    """Variable-length values as offsets (int32 or int64, shape (n + 1,)) into data (uint8)."""

    offsets: np.ndarray[Any, Any]
    data: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class DictionaryValues:
    """Values as codes (int32, shape (n,); 0 where null) into a dictionary column without nulls."""

    codes: np.ndarray[Any, Any]
    dictionary: Column


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one type.

    Attributes:
        type: what they are.
        values: fixed-width: shape (n,), dtype type.dtype, zero where null; otherwise one of the binary layouts.
        validity: bitmap, uint8, LSB first, at least (n + 7) // 8 bytes, or None when no value is null.
        null_count: number of nulls.
        nullable: whether the schema allows nulls (OPTIONAL).
    """

    type: ColumnType
    values: np.ndarray[Any, Any] | BinaryViews | BinaryOffsets | DictionaryValues
    validity: np.ndarray[Any, Any] | None = None
    null_count: int = 0
    nullable: bool = True

"""Physical and logical types, and how each is held in memory (the one table of the mapping to NumPy and Arrow)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np


class Type(IntEnum):
    """Physical types (parquet.thrift, ``Type``)."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


TimeUnitName = Literal["ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class LogicalType:
    """Base of the logical types (LogicalTypes.md); none is ``None``."""


@dataclass(frozen=True, slots=True)
class String(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Enum(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Json(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Bson(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Uuid(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Decimal(LogicalType):
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Date(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Time(LogicalType):
    unit: TimeUnitName
    utc: bool = False


@dataclass(frozen=True, slots=True)
class Timestamp(LogicalType):
    unit: TimeUnitName
    utc: bool = False


@dataclass(frozen=True, slots=True)
class Integer(LogicalType):
    bit_width: Literal[8, 16, 32, 64]
    signed: bool


@dataclass(frozen=True, slots=True)
class Float16(LogicalType):
    pass


@dataclass(frozen=True, slots=True)
class Interval(LogicalType):
    """Only a ConvertedType exists for it."""


@dataclass(frozen=True, slots=True)
class Unknown(LogicalType):
    """Always null."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column: what is stored and what it means.

    Attributes:
        physical: the physical type.
        length: bytes of a FIXED_LEN_BYTE_ARRAY value, else None.
        logical: the logical type, or None.
    """

    physical: Type
    length: int | None = None
    logical: LogicalType | None = None

    @property
    def dtype(self) -> np.dtype | None:  # type: ignore[type-arg]
        """NumPy dtype of one value as a Column holds it; None for variable-length values."""
        raise NotImplementedError

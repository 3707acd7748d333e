"""Physical and logical types, and how each is held in memory (the one table of the mapping to NumPy and Arrow)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

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

MAX_PRECISION_128 = 38
MAX_PRECISION_256 = 76


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

    The mapping to memory, NumPy and Arrow (LogicalTypes.md has the meaning; widths in bytes):

    ==================  ==========================  ==============  =====================  ===============
    logical             physical                    in a Column     ``to_numpy()``         Arrow
    ==================  ==========================  ==============  =====================  ===============
    none                BOOLEAN                     bool (1)        bool                   bool
    none                INT32, INT64                int32, int64    the same               int32, int64
    none                INT96                       int64 ns        datetime64[ns]         timestamp[ns]
    none                FLOAT, DOUBLE               float32, 64     the same               float, double
    none                BYTE_ARRAY                  views           object of bytes        binary view
    none                FIXED_LEN_BYTE_ARRAY(n)     V{n}            V{n}                   fixed binary(n)
    Integer(w, signed)  INT32 (w <= 32), INT64      int8 ... uint64 the same               int8 ... uint64
    Decimal(p, s)       INT32, INT64                int32, int64    object of Decimal      decimal128
    Decimal(p, s)       FIXED or BYTE_ARRAY         V16, p > 38 V32 object of Decimal      decimal128, 256
    Date                INT32                       int32 days      datetime64[D]          date32
    Time(unit)          INT32 (ms), INT64 (us, ns)  int32, int64    timedelta64[unit]      time32, time64
    Timestamp(unit)     INT64                       int64           datetime64[unit]       timestamp[unit]
    String, Enum, Json  BYTE_ARRAY                  views           StringDType            string view
    Bson                BYTE_ARRAY                  views           object of bytes        binary view
    Uuid                FIXED_LEN_BYTE_ARRAY(16)    V16             object of UUID         fixed binary(16)
    Float16             FIXED_LEN_BYTE_ARRAY(2)     float16         float16                halffloat
    Interval            FIXED_LEN_BYTE_ARRAY(12)    V12             V12                    fixed binary(12)
    Unknown             any                         its storage     object of None         null
    ==================  ==========================  ==============  =====================  ===============

    Decimals in a Column are little-endian two's complement integers, scaled by 10 ** scale. UTC timestamps have the
    time zone "UTC" in Arrow; NumPy has none.

    Attributes:
        physical: the physical type.
        length: bytes of a FIXED_LEN_BYTE_ARRAY value, else None.
        logical: the logical type, or None.
    """

    physical: Type
    length: int | None = None
    logical: LogicalType | None = None

    @property
    def is_variable(self) -> bool:
        """Whether values are byte strings of any length, in one of the binary layouts."""
        return self.physical is Type.BYTE_ARRAY and not isinstance(self.logical, Decimal)

    @property
    def is_text(self) -> bool:
        """Whether values are UTF-8."""
        return isinstance(self.logical, String | Enum | Json)

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """NumPy dtype of one value as a Column holds it; None for variable-length values."""
        if self.is_variable:
            return None
        if isinstance(self.logical, Decimal) and self.physical in (Type.FIXED_LEN_BYTE_ARRAY, Type.BYTE_ARRAY):
            return np.dtype("V16" if self.logical.precision <= MAX_PRECISION_128 else "V32")
        if isinstance(self.logical, Integer):
            return np.dtype(f"{'i' if self.logical.signed else 'u'}{self.logical.bit_width // 8}")
        if isinstance(self.logical, Float16):
            return np.dtype(np.float16)
        if self.physical is Type.FIXED_LEN_BYTE_ARRAY:
            return np.dtype(f"V{self.length}")
        return _STORAGE[self.physical]

    @property
    def time_unit(self) -> str | None:
        """NumPy's code of the unit of dates, times and timestamps (``D``, ``ms``, ``us``, ``ns``), else None."""
        if isinstance(self.logical, Date):
            return "D"
        if isinstance(self.logical, Time | Timestamp):
            return self.logical.unit
        return "ns" if self.physical is Type.INT96 else None

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """What ``Column.to_numpy()`` gives for a column without nulls."""
        if isinstance(self.logical, Unknown | Decimal | Uuid):
            return np.dtype(object)
        if self.is_variable:
            return np.dtypes.StringDType() if self.is_text else np.dtype(object)
        if self.time_unit is not None:
            return np.dtype(f"{'m' if isinstance(self.logical, Time) else 'M'}8[{self.time_unit}]")
        dtype = self.dtype
        assert dtype is not None
        return dtype

    @property
    def arrow_format(self) -> str:
        """The format string under which a column is exported (Arrow C data interface)."""
        match self.logical:
            case Unknown():
                return "n"
            case Decimal(precision, scale):
                return f"d:{precision},{scale}" + ("" if precision <= MAX_PRECISION_128 else ",256")
            case Timestamp(unit, utc):
                return f"ts{_ARROW_UNITS[unit]}:{'UTC' if utc else ''}"
            case Time(unit):
                return f"tt{_ARROW_UNITS[unit]}"
            case Date():
                return "tdD"
        if self.is_variable:
            return "vu" if self.is_text else "vz"
        if self.physical is Type.INT96:
            return "tsn:"
        dtype = self.dtype
        assert dtype is not None
        return f"w:{dtype.itemsize}" if dtype.kind == "V" else _ARROW_FORMATS[dtype.name]

    def __str__(self) -> str:
        physical = f"{self.physical.name}({self.length})" if self.length is not None else self.physical.name
        return f"{physical} {self.logical}" if self.logical else physical


_STORAGE: dict[Type, np.dtype[Any]] = {
    Type.BOOLEAN: np.dtype(np.bool_),
    Type.INT32: np.dtype(np.int32),
    Type.INT64: np.dtype(np.int64),
    Type.INT96: np.dtype(np.int64),
    Type.FLOAT: np.dtype(np.float32),
    Type.DOUBLE: np.dtype(np.float64),
}
_ARROW_UNITS = {"ms": "m", "us": "u", "ns": "n"}
_ARROW_FORMATS = {
    "bool": "b",
    "int8": "c",
    "uint8": "C",
    "int16": "s",
    "uint16": "S",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
    "float16": "e",
    "float32": "f",
    "float64": "g",
}

"""Physical and logical types, and their form in memory.

``tests/schema/test_types.py`` checks every row of this table against the code. "storage" is ``ColumnType.dtype``, "NumPy" is
``ColumnType.numpy_dtype``, and "Arrow" is ``ColumnType.arrow_format``.

======================== ========================== ======== ================ ===========
physical                 logical                    storage  NumPy            Arrow
======================== ========================== ======== ================ ===========
BOOLEAN                  None                       bool     bool             b
INT32                    None                       int32    int32            i
INT64                    None                       int64    int64            l
INT96                    None                       int64    datetime64[ns]   tsn:
FLOAT                    None                       float32  float32          f
DOUBLE                   None                       float64  float64          g
BYTE_ARRAY               None                       None     object           vz
FIXED_LEN_BYTE_ARRAY(5)  None                       V5       V5               w:5
INT32                    Integer(8, True)           int8     int8             c
INT32                    Integer(16, True)          int16    int16            s
INT32                    Integer(32, True)          int32    int32            i
INT64                    Integer(64, True)          int64    int64            l
INT32                    Integer(8, False)          uint8    uint8            C
INT32                    Integer(16, False)         uint16   uint16           S
INT32                    Integer(32, False)         uint32   uint32           I
INT64                    Integer(64, False)         uint64   uint64           L
INT32                    Date()                     int32    datetime64[D]    tdD
INT32                    Time("ms", True)           int32    timedelta64[ms]  ttm
INT64                    Time("us", False)          int64    timedelta64[us]  ttu
INT64                    Time("ns", False)          int64    timedelta64[ns]  ttn
INT64                    Timestamp("ms", False)     int64    datetime64[ms]   tsm:
INT64                    Timestamp("us", True)      int64    datetime64[us]   tsu:UTC
INT64                    Timestamp("ns", True)      int64    datetime64[ns]   tsn:UTC
INT32                    Decimal(9, 2)              int32    object           d:9,2
INT64                    Decimal(18, 4)             int64    object           d:18,4
FIXED_LEN_BYTE_ARRAY(16) Decimal(38, 10)            V16      object           d:38,10
FIXED_LEN_BYTE_ARRAY(5)  Decimal(10, 0)             V16      object           d:10,0
BYTE_ARRAY               Decimal(20, 3)             V16      object           d:20,3
FIXED_LEN_BYTE_ARRAY(32) Decimal(76, 0)             V32      object           d:76,0,256
BYTE_ARRAY               Decimal(39, 0)             V32      object           d:39,0,256
FIXED_LEN_BYTE_ARRAY(2)  Float16()                  float16  float16          e
FIXED_LEN_BYTE_ARRAY(16) Uuid()                     V16      object           w:16
FIXED_LEN_BYTE_ARRAY(12) Interval()                 V12      V12              w:12
BYTE_ARRAY               String()                   None     StringDType()    vu
BYTE_ARRAY               Enum()                     None     StringDType()    vu
BYTE_ARRAY               Json()                     None     StringDType()    vu
BYTE_ARRAY               Bson()                     None     object           vz
BYTE_ARRAY               Geometry()                 None     object           vz
BYTE_ARRAY               Geography()                None     object           vz
INT32                    Unknown()                  int32    int32            n
BYTE_ARRAY               Unknown()                  None     object           n
======================== ========================== ======== ================ ===========

Decimals on byte arrays are held as little-endian two's complement integers. These have 16 bytes up to precision 38, and 32 bytes
up to precision 76. A larger precision is refused. INT96 is held as nanoseconds since the epoch. Dates count days. Times and
timestamps count their unit. UUIDs are the raw 16 bytes. Objects are ``decimal.Decimal``, ``uuid.UUID`` and ``bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.dtypes import StringDType

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.format.enums import Type as Type

TimeUnitName = Literal["ms", "us", "ns"]
BitWidth = Literal[8, 16, 32, 64]
EdgeAlgorithm = Literal["SPHERICAL", "VINCENTY", "THOMAS", "ANDOYER", "KARNEY"]

MAX_DECIMAL128_PRECISION = 38
MAX_DECIMAL256_PRECISION = 76


@dataclass(frozen=True, slots=True)
class LogicalType:
    """Base class of the logical types (LogicalTypes.md). ``None`` means that there is no logical type.

    Types without parameters are plain classes and inherit equality, hash and repr. Nine more dataclasses would slow the import.
    """


class String(LogicalType):
    """UTF-8 text."""

    __slots__ = ()


class Enum(LogicalType):
    """The UTF-8 name of a value from an enumeration in another system."""

    __slots__ = ()


class Json(LogicalType):
    """A JSON document as UTF-8 text."""

    __slots__ = ()


class Bson(LogicalType):
    """A BSON document."""

    __slots__ = ()


class Uuid(LogicalType):
    """A UUID with 16 bytes, most significant byte first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Decimal(LogicalType):
    """Integers with at most ``precision`` digits, each times 10 ** -scale."""

    precision: int
    scale: int


class Date(LogicalType):
    """Days since 1970-01-01."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Time(LogicalType):
    """Time since midnight, in a unit."""

    unit: TimeUnitName
    utc: bool = False


@dataclass(frozen=True, slots=True)
class Timestamp(LogicalType):
    """Time since 1970-01-01 00:00:00, in a unit. It is in UTC if ``utc``, else local."""

    unit: TimeUnitName
    utc: bool = False


@dataclass(frozen=True, slots=True)
class Integer(LogicalType):
    """Signed or unsigned integers with a width in bits."""

    bit_width: BitWidth
    signed: bool


class Float16(LogicalType):
    """Little-endian IEEE half-precision floats."""

    __slots__ = ()


class Interval(LogicalType):
    """Months, days and milliseconds, each an unsigned little-endian 32-bit integer. It has only a ConvertedType."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Geometry(LogicalType):
    """Geospatial features in ISO WKB whose edges are straight lines (Geospatial.md).

    Attributes:
        crs: coordinate reference system, as ``"<authority>:<code>"``, ``"srid:<number>"``, ``"projjson:<key>"`` (a key in the
            file's key-value metadata), or PROJJSON. None means OGC:CRS84.
    """

    crs: str | None = None


@dataclass(frozen=True, slots=True)
class Geography(LogicalType):
    """Geospatial features in ISO WKB whose edges are geodesics (Geospatial.md).

    Attributes:
        crs: a geographic coordinate reference system, as in Geometry. None means OGC:CRS84.
        algorithm: how edges are interpolated. None means SPHERICAL.
    """

    crs: str | None = None
    algorithm: EdgeAlgorithm | None = None


class Unknown(LogicalType):
    """Values that are always null."""

    __slots__ = ()


def max_precision(physical: Type, length: int | None) -> int | None:
    """Return a physical type's largest decimal precision in digits, or None without a limit (LogicalTypes.md, DECIMAL).

    Args:
        physical: INT32, INT64, FIXED_LEN_BYTE_ARRAY or BYTE_ARRAY.
        length: length of FIXED_LEN_BYTE_ARRAY values in bytes.
    """
    if physical == Type.INT32:
        return 9
    if physical == Type.INT64:
        return 18
    if physical == Type.FIXED_LEN_BYTE_ARRAY and length is not None:
        if length < 1:
            return 0
        # 64 bytes hold more digits than any supported decimal has, so that longer values do not need a larger shift.
        return len(str((1 << (8 * min(length, 64) - 1)) - 1)) - 1
    return None


_TEXT = (String, Enum, Json)
_FIXED_LENGTHS: dict[type[LogicalType], int] = {Uuid: 16, Float16: 2, Interval: 12}


def type_mismatch(physical: Type, length: int | None, logical: LogicalType) -> str | None:
    """Return why a logical type cannot annotate a physical type, as text, or None if it can (LogicalTypes.md).

    Args:
        physical: the physical type.
        length: length of FIXED_LEN_BYTE_ARRAY values in bytes, else None.
        logical: the logical type. Its parameters are checked too.
    """
    is_match: bool
    match logical:
        case Unknown():
            is_match = True
        case Geography(_, algorithm) if algorithm is not None and algorithm not in get_args(EdgeAlgorithm):
            return f"{algorithm!r} is not an edge interpolation algorithm"
        case String() | Enum() | Json() | Bson() | Geometry() | Geography():
            is_match = physical == Type.BYTE_ARRAY
        case Uuid() | Float16() | Interval():
            is_match = physical == Type.FIXED_LEN_BYTE_ARRAY and length == _FIXED_LENGTHS[type(logical)]
        case Date():
            is_match = physical == Type.INT32
        case Time(unit) | Timestamp(unit) if unit not in get_args(TimeUnitName):
            return f"{unit!r} is not a time unit"
        case Time(unit):
            is_match = physical == (Type.INT32 if unit == "ms" else Type.INT64)
        case Timestamp():
            is_match = physical in (Type.INT64, Type.INT96)     # INT96 columns can be read as timestamps in any unit
        case Integer(width) if width not in get_args(BitWidth):
            return f"{width!r} is not the bit width of an integer type"
        case Integer(width):
            is_match = physical == (Type.INT64 if width == 64 else Type.INT32)
        case Decimal():
            return _decimal_mismatch(physical, length, logical)
        case _:
            return f"{logical!r} is not a logical type"
    return None if is_match else f"{logical!r} may not annotate {_physical_text(physical, length)}"


def _decimal_mismatch(physical: Type, length: int | None, decimal: Decimal) -> str | None:
    if physical not in (Type.INT32, Type.INT64, Type.FIXED_LEN_BYTE_ARRAY, Type.BYTE_ARRAY):
        return f"{decimal!r} may not annotate {_physical_text(physical, length)}"
    if decimal.precision < 1:
        return f"the precision of a decimal must be positive, not {decimal.precision}"
    if not 0 <= decimal.scale <= decimal.precision:
        return f"the scale of a decimal must be between 0 and its precision {decimal.precision}, not {decimal.scale}"
    most = max_precision(physical, length)
    if most is not None and decimal.precision > most:
        return f"precision {decimal.precision} is more than the {most} digits that {_physical_text(physical, length)} holds"
    return None


def _physical_text(physical: Type, length: int | None) -> str:
    return physical.name if length is None else f"{physical.name}({length})"


@dataclass(frozen=True)         # no slots, because of the cached properties
class ColumnType:
    """A column type: the stored values' physical type, and the logical type, which is their meaning.

    The types in memory, NumPy and Arrow are as follows. Widths are in bytes. LogicalTypes.md explains the logical types.

    ==================  ==========================  ==============  =====================  ===============
    logical             physical                    in a Column     ``to_numpy()``         Arrow
    ==================  ==========================  ==============  =====================  ===============
    none                BOOLEAN                     bool (1)        bool                   bool
    none                INT32, INT64                int32, int64    the same               int32, int64
    none                INT96                       int64 ns        datetime64[ns]         timestamp[ns]
    none                INT96, length=12            V12             V12                    fixed binary(12)
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
    Geometry, Geography BYTE_ARRAY                  views           object of bytes        binary view
    Uuid                FIXED_LEN_BYTE_ARRAY(16)    V16             object of UUID         fixed binary(16)
    Float16             FIXED_LEN_BYTE_ARRAY(2)     float16         float16                halffloat
    Interval            FIXED_LEN_BYTE_ARRAY(12)    V12             V12                    fixed binary(12)
    Unknown             any                         its storage     object of None         null
    ==================  ==========================  ==============  =====================  ===============

    Decimals in a Column are little-endian two's complement integers, scaled by 10 ** scale. UTC timestamps have the
    time zone "UTC" in Arrow. NumPy has no time zones.

    Attributes:
        physical: the physical type.
        length: length of FIXED_LEN_BYTE_ARRAY values in bytes. For INT96, 12 means that a Column has the stored bytes. Else None.
        logical: the logical type, or None.

    Raises:
        SchemaError: the three do not fit together.
    """

    physical: Type
    length: int | None = None
    logical: LogicalType | None = None

    def __post_init__(self) -> None:
        if self.physical == Type.FIXED_LEN_BYTE_ARRAY:
            if self.length is None or not 1 <= self.length < 1 << 31:
                raise SchemaError(f"a FIXED_LEN_BYTE_ARRAY cannot have the length {self.length}")
        elif self.length is not None and (self.physical, self.length, self.logical) != (Type.INT96, INT96_SIZE, None):
            raise SchemaError(f"{self.physical.name} does not take a length")
        reason = None if self.logical is None else type_mismatch(self.physical, self.length, self.logical)
        if reason is not None:
            raise SchemaError(reason)

    def __str__(self) -> str:
        physical = _physical_text(self.physical, self.length)
        return physical if self.logical is None else f"{physical} {self.logical!r}"

    @cached_property
    def dtype(self) -> np.dtype[Any] | None:
        """NumPy dtype of a value in a Column, or None for variable-length values.

        Raises:
            UnsupportedError: the type is a decimal with more than 76 digits.
        """
        return _storage_dtype(self)

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """NumPy array dtype that ``Column.to_numpy`` returns."""
        return _numpy_dtype(self)

    @cached_property
    def arrow_format(self) -> str:
        """Arrow format string for an exported column (Arrow C data interface)."""
        return _arrow_format(self)

    @cached_property
    def is_text(self) -> bool:
        """Whether the values are UTF-8 text."""
        return isinstance(self.logical, _TEXT)

    @cached_property
    def is_variable(self) -> bool:
        """Whether a Column holds the values in a variable-length layout."""
        return self.dtype is None


INT96_SIZE = 12     # bytes that an INT96 value takes in a file

_PHYSICAL_STORAGE = {
    Type.BOOLEAN: "bool",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.INT96: "int64",
    Type.FLOAT: "float32",
    Type.DOUBLE: "float64",
}
_INTEGER_FORMATS = {
    (8, True): "c", (16, True): "s", (32, True): "i", (64, True): "l",
    (8, False): "C", (16, False): "S", (32, False): "I", (64, False): "L",
}
_PHYSICAL_FORMATS = {
    Type.BOOLEAN: "b",
    Type.INT32: "i",
    Type.INT64: "l",
    Type.INT96: "tsn:",
    Type.FLOAT: "f",
    Type.DOUBLE: "g",
    Type.BYTE_ARRAY: "vz",
}


# The cache has a limit, because a file may have any number of types.
@lru_cache(maxsize=1024)
def column_type(physical: Type, length: int | None, logical: LogicalType | None) -> ColumnType:
    """Return the ColumnType for these arguments. Equal arguments share one object with its cached dtypes and format."""
    return ColumnType(physical, length, logical)


def _storage_dtype(column: ColumnType) -> np.dtype[Any] | None:
    match column.logical:
        case Integer(width, signed):
            return np.dtype(f"{'int' if signed else 'uint'}{width}")
        case Float16():
            return np.dtype("float16")
        case Decimal(precision) if precision > MAX_DECIMAL256_PRECISION:
            raise UnsupportedError(f"decimals of more than {MAX_DECIMAL256_PRECISION} digits ({precision}) are not supported")
        case Decimal(precision) if column.physical in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY):
            return np.dtype("V16" if precision <= MAX_DECIMAL128_PRECISION else "V32")
    if column.physical == Type.BYTE_ARRAY:
        return None
    if column.length is not None:
        return np.dtype(f"V{column.length}")
    return np.dtype(_PHYSICAL_STORAGE[column.physical])


def _numpy_dtype(column: ColumnType) -> np.dtype[Any]:
    match column.logical:
        case Date():
            return np.dtype("datetime64[D]")
        case Timestamp(unit):
            return np.dtype(f"datetime64[{unit}]")
        case Time(unit):
            return np.dtype(f"timedelta64[{unit}]")
        case String() | Enum() | Json():
            return StringDType()
        case Decimal() | Uuid():
            return np.dtype(object)
        case None if column.physical == Type.INT96 and column.length is None:
            return np.dtype("datetime64[ns]")
    return np.dtype(object) if column.dtype is None else column.dtype


def _arrow_format(column: ColumnType) -> str:
    match column.logical:
        case Integer(width, signed):
            return _INTEGER_FORMATS[width, signed]
        case Float16():
            return "e"
        case Date():
            return "tdD"
        case Time(unit):
            return f"tt{unit[0]}"
        case Timestamp(unit, utc):
            return f"ts{unit[0]}:{'UTC' if utc else ''}"
        case Decimal(precision, scale):
            _storage_dtype(column)  # refuses decimals with more than 76 digits
            return f"d:{precision},{scale}" + (",256" if precision > MAX_DECIMAL128_PRECISION else "")
        case String() | Enum() | Json():
            return "vu"
        case Unknown():
            return "n"
    if column.length is not None:
        return f"w:{column.length}"
    return _PHYSICAL_FORMATS[column.physical]

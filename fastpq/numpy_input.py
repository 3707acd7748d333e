"""NumPy arrays, and what else is given to be written, to columns."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from fastpq.errors import SchemaError
from fastpq.strings import offsets_from_objects, offsets_from_string_dtype
from fastpq.table import BinaryOffsets, Column, Table, with_mask
from fastpq.types import (
    MAX_PRECISION_128,
    MAX_PRECISION_256,
    ColumnType,
    Date,
    Decimal,
    Float16,
    Integer,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
    Uuid,
)

Array: TypeAlias = np.ndarray[Any, Any]

_PLAIN: dict[str, ColumnType] = {
    "bool": ColumnType(Type.BOOLEAN),
    "int8": ColumnType(Type.INT32, None, Integer(8, True)),
    "int16": ColumnType(Type.INT32, None, Integer(16, True)),
    "int32": ColumnType(Type.INT32),
    "int64": ColumnType(Type.INT64),
    "uint8": ColumnType(Type.INT32, None, Integer(8, False)),
    "uint16": ColumnType(Type.INT32, None, Integer(16, False)),
    "uint32": ColumnType(Type.INT32, None, Integer(32, False)),
    "uint64": ColumnType(Type.INT64, None, Integer(64, False)),
    "float16": ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, Float16()),
    "float32": ColumnType(Type.FLOAT),
    "float64": ColumnType(Type.DOUBLE),
}
TEXT = ColumnType(Type.BYTE_ARRAY, None, String())
BYTES = ColumnType(Type.BYTE_ARRAY)
NOTHING = ColumnType(Type.INT32, None, Unknown())
_UNITS = ("ms", "us", "ns")
_TICKS_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def table_from(data: Any, schema: Mapping[str, ColumnType] | None = None) -> Table:
    """What a caller gave, as a Table.

    Args:
        data: a Table, a mapping of names to arrays or Columns, a structured array, or anything that has
            ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        schema: types of columns by name, where they should differ from what the values suggest.

    Raises:
        SchemaError: arrays that no column type fits, of different lengths or more than one dimension; names in schema
            that the data do not have.
    """
    schema = schema or {}
    if isinstance(data, Table):
        table = data
    elif isinstance(data, np.ndarray) and data.dtype.names is not None:
        table = Table({name: column_from(data[name], schema.get(name), name) for name in data.dtype.names})
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        from fastpq.arrow import import_table

        table = import_table(data)
    elif isinstance(data, Mapping):
        table = Table({str(name): column_from(values, schema.get(str(name)), str(name)) for name, values in data.items()})
    else:
        raise SchemaError(
            f"cannot write {type(data).__name__}: give a dict of arrays, a structured array, a Table or Arrow data"
        )
    unknown = [name for name in schema if name not in table]
    if unknown:
        raise SchemaError(f"the schema names columns that the data do not have: {', '.join(unknown)}")
    return Table({name: cast(column, schema.get(name), name) for name, column in table.items()}, num_rows=table.num_rows)


def column_from(values: Any, wanted: ColumnType | None = None, name: str = "") -> Column:
    """An array as a Column.

    A plain array makes a required column; a masked array, an object array or StringDType with missing values, and
    datetime64 or timedelta64 with NaT make a nullable one. NaN is a value. Arrays that are not contiguous or not in
    the machine's byte order are copied, others are not.

    Args:
        values: a one-dimensional array, or a Column, which is returned.
        wanted: the column's type; None to take what the dtype suggests.
        name: for errors.

    Raises:
        SchemaError: no column type fits.
    """
    if isinstance(values, Column):
        return values
    try:
        array = values if isinstance(values, np.ndarray) else _as_array(values)
        if array.ndim != 1:
            raise SchemaError(f"an array of {array.ndim} dimensions")
        if isinstance(array, np.ma.MaskedArray):
            return _masked(array, wanted)
        return _from_array(array, wanted)
    except SchemaError as error:
        raise error.at(column=name) from None


def _as_array(values: Any) -> Array:
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if not isinstance(values, list | tuple):
        raise SchemaError(f"cannot write {type(values).__name__}")
    return np.array(values, dtype=object) if any(v is None or isinstance(v, str | bytes) for v in values) else np.array(values)


def _masked(array: np.ma.MaskedArray[Any, Any], wanted: ColumnType | None) -> Column:
    present = ~np.ma.getmaskarray(array)
    data = np.ma.getdata(array)
    if data.dtype.kind in "OT":
        data = data.astype(object)
        data[~present] = None
    column = _from_array(data, wanted)
    return replace(with_mask(column, present & column.validity_mask()), nullable=True)


def _from_array(array: Array, wanted: ColumnType | None) -> Column:
    kind = array.dtype.kind
    if kind == "O":
        return _from_objects(array, wanted)
    if kind == "T":
        return _binary(*offsets_from_string_dtype(np.ascontiguousarray(array)), TEXT)
    if kind == "U":
        return _binary(*offsets_from_string_dtype(np.ascontiguousarray(array).astype(np.dtypes.StringDType())), TEXT)
    if kind == "S":
        return _binary(*offsets_from_objects(array.astype(object), False), BYTES)
    if kind == "V" and array.dtype.names is None:
        return Column(_of_void(array.dtype.itemsize, wanted), np.ascontiguousarray(array), nullable=False)
    if kind in "mM":
        return _from_times(array)
    known = _PLAIN.get(array.dtype.newbyteorder("=").name)
    if known is None:
        raise SchemaError(f"no column type fits {array.dtype}")
    return Column(known, np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")), nullable=False)


def _of_void(size: int, wanted: ColumnType | None) -> ColumnType:
    if wanted is not None and wanted.dtype == np.dtype(f"V{size}"):
        return wanted
    if size == 0:
        raise SchemaError("values of no bytes")
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, size)


def _binary(offsets: Array, data: Array, present: Array | None, column_type: ColumnType) -> Column:
    column = Column(column_type, BinaryOffsets(offsets, data), nullable=present is not None)
    return column if present is None else with_mask(column, present)


def _from_times(array: Array) -> Column:
    """datetime64 as DATE or TIMESTAMP, timedelta64 as TIME: in the array's unit, or in the next finer one there is."""
    present = ~np.isnat(array)
    unit = np.datetime_data(array.dtype)[0]
    if np.datetime_data(array.dtype)[1] != 1 or unit == "generic":
        raise SchemaError(f"no column type has the unit of {array.dtype}")
    kind = array.dtype.kind
    if kind == "M" and unit == "D":
        days = np.ascontiguousarray(array).astype(np.int64)
        return _times(days, present, ColumnType(Type.INT32, None, Date()), np.int32)
    if unit in ("ps", "fs", "as"):
        raise SchemaError(f"{array.dtype} is finer than nanoseconds")
    target = unit if unit in _UNITS else "ms"
    ticks = _convert(array, present, f"{kind}8[{target}]")
    if kind == "M":
        return _times(ticks, present, ColumnType(Type.INT64, None, Timestamp(target)), np.int64)  # type: ignore[arg-type]
    if (ticks[present] < 0).any() or (ticks[present] >= _TICKS_PER_DAY[target]).any():
        raise SchemaError("timedelta64 is written as the time of a day, and some values lie outside one: write them as int64")
    physical = Type.INT32 if target == "ms" else Type.INT64
    dtype = np.int32 if target == "ms" else np.int64
    return _times(ticks, present, ColumnType(physical, None, Time(target)), dtype)  # type: ignore[arg-type]


def _convert(array: Array, present: Array, dtype: str) -> Array:
    """Ticks of another unit; SchemaError where they overflow."""
    converted = np.ascontiguousarray(array).astype(dtype)
    if not np.array_equal(converted.astype(array.dtype)[present], array[present]):
        raise SchemaError(f"values of {array.dtype} that {dtype} cannot hold")
    return converted.view(np.int64)


def _times(ticks: Array, present: Array, column_type: ColumnType, dtype: type) -> Column:
    if present.all():
        narrowed: Array = ticks.astype(dtype, copy=False)
        if not np.array_equal(narrowed, ticks):
            raise SchemaError(f"values outside {column_type}")
        return Column(column_type, narrowed, nullable=False)
    return replace(with_mask(_times(np.where(present, ticks, 0), np.ones(1, bool), column_type, dtype), present), nullable=True)


def _from_objects(array: Array, wanted: ColumnType | None) -> Column:
    """An object array: the first value that is not None says what all must be."""
    sample = next((value for value in array if value is not None), None)
    if sample is None:
        column_type = wanted or NOTHING
        return _all_null(column_type, len(array))
    if isinstance(sample, str):
        return replace(_binary(*offsets_from_objects(array, True), TEXT), nullable=True)
    if isinstance(sample, bytes):
        return replace(_binary(*offsets_from_objects(array, False), BYTES), nullable=True)
    present = np.array([value is not None for value in array], dtype=bool)
    values = [value for value in array if value is not None]
    _check_kind(array, type(sample))
    if isinstance(sample, decimal.Decimal):
        dense = _decimals(values, wanted)
    elif isinstance(sample, uuid.UUID):
        data = b"".join(value.bytes for value in values)
        dense = Column(ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid()), np.frombuffer(data, dtype="V16"))
    else:
        dense = _from_array(_plain_objects(values, sample), wanted)
    return _spread(dense, present)


def _check_kind(array: Array, kind: type) -> None:
    family: type | tuple[type, ...] = (int, np.integer) if kind is int else (int, float) if kind is float else kind
    for index, value in enumerate(array):
        if value is not None and (not isinstance(value, family) or (isinstance(value, bool) and kind is not bool)):
            raise SchemaError(f"value {index} is {type(value).__name__}, not {kind.__name__}")


def _plain_objects(values: list[Any], sample: Any) -> Array:
    """Python scalars as an array of a dtype that holds each of them exactly."""
    if isinstance(sample, bool | np.bool_):
        return np.array(values, dtype=bool)
    if isinstance(sample, int | np.integer):
        if min(values) < -(2**63) or max(values) >= 2**64 or (min(values) < 0 and max(values) >= 2**63):
            raise SchemaError(f"integers from {min(values)} to {max(values)}, which no column type holds")
        return np.array(values, dtype=np.uint64 if max(values) >= 2**63 else np.int64)
    if isinstance(sample, float | np.floating):
        return np.array(values, dtype=np.float64)
    if isinstance(sample, datetime.datetime):
        if any(value.tzinfo is not None for value in values):
            raise SchemaError("datetimes with a time zone: give datetime64 in UTC and the type Timestamp(unit, utc=True)")
        return np.array(values, dtype="M8[us]")
    if isinstance(sample, datetime.date):
        return np.array(values, dtype="M8[D]")
    if isinstance(sample, datetime.time):
        return np.array([_microseconds(value) for value in values], dtype="m8[us]")
    if isinstance(sample, np.datetime64 | np.timedelta64):
        return np.array(values)
    raise SchemaError(f"no column type fits {type(sample).__name__}")


def _microseconds(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _decimals(values: list[decimal.Decimal], wanted: ColumnType | None) -> Column:
    """Decimals in the fewest bytes for their precision, or in the type asked for."""
    if not all(value.is_finite() for value in values):
        raise SchemaError("a decimal that is NaN or infinite")
    if wanted is not None and isinstance(wanted.logical, Decimal):
        precision, scale = wanted.logical.precision, wanted.logical.scale
    else:
        scale = max(max(0, -int(value.as_tuple().exponent)) for value in values)
        precision = max(max(value.adjusted() + 1, 0) for value in values) + scale or 1
        if precision > MAX_PRECISION_256:
            raise SchemaError(f"decimals of {precision} digits; {MAX_PRECISION_256} are possible")
    context = decimal.Context(prec=200, traps=[decimal.Inexact, decimal.InvalidOperation])
    integers = []
    for index, value in enumerate(values):
        try:
            scaled = int(context.to_integral_exact(context.scaleb(value, scale)))
        except decimal.Inexact:
            raise SchemaError(f"decimal {value} has more than {scale} digits behind the point") from None
        if abs(scaled) >= 10**precision:
            raise SchemaError(f"decimal {value} (value {index}) has more than {precision} digits")
        integers.append(scaled)
    column_type = wanted if wanted is not None and isinstance(wanted.logical, Decimal) else decimal_type(precision, scale)
    dtype = column_type.dtype
    assert dtype is not None
    data = b"".join(value.to_bytes(dtype.itemsize, "little", signed=True) for value in integers)
    return Column(column_type, np.frombuffer(data, dtype=dtype), nullable=False)


def decimal_type(precision: int, scale: int) -> ColumnType:
    """The type that decimals of a precision are stored in by default: FIXED_LEN_BYTE_ARRAY of the fewest bytes."""
    if not 0 < precision <= MAX_PRECISION_256 or not 0 <= scale <= precision:
        raise SchemaError(f"a decimal of precision {precision} and scale {scale}")
    length = ((10**precision - 1).bit_length() + 8) // 8
    assert (length <= 16) == (precision <= MAX_PRECISION_128)
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length, Decimal(precision, scale))


def _all_null(column_type: ColumnType, count: int) -> Column:
    dtype = column_type.dtype
    if dtype is None:
        column = Column(column_type, BinaryOffsets(np.zeros(count + 1, dtype=np.int32), np.empty(0, dtype=np.uint8)))
    else:
        column = Column(column_type, np.zeros(count, dtype=dtype))
    return with_mask(column, np.zeros(count, dtype=bool))


def _spread(dense: Column, present: Array) -> Column:
    """Values to the places where present is true; the others are null."""
    values = np.zeros(len(present), dtype=dense.type.dtype)
    values[present] = np.asarray(dense.values)
    return replace(with_mask(replace(dense, values=values), present), nullable=True)


def cast(column: Column, wanted: ColumnType | None, name: str) -> Column:
    """The column as another type that holds its values exactly.

    Raises:
        SchemaError: the types do not go together, or a value does not fit.
    """
    if wanted is None or column.type == wanted:
        return column
    try:
        return _cast(column, wanted)
    except SchemaError as error:
        raise error.at(column=name) from None


def _cast(column: Column, wanted: ColumnType) -> Column:
    if column.null_count == len(column) and isinstance(column.type.logical, Unknown):
        return _all_null(wanted, len(column))
    if column.type.is_variable and wanted.is_variable:
        return replace(column, type=wanted)
    source, target = column.type.dtype, wanted.dtype
    if source is None or target is None:
        raise SchemaError(f"{column.type} does not become {wanted}")
    if isinstance(wanted.logical, Decimal) != isinstance(column.type.logical, Decimal) and source.kind == "V":
        raise SchemaError(f"{column.type} does not become {wanted}")
    if column.type.time_unit is not None and wanted.time_unit not in (None, column.type.time_unit):
        raise SchemaError(f"{column.type} does not become {wanted}: convert the unit first")
    if source == target:
        return replace(column, type=wanted)
    if source.kind not in "iuf" or target.kind not in "iuf" or (source.kind == "f") != (target.kind == "f"):
        raise SchemaError(f"{column.type} does not become {wanted}")
    values = np.asarray(column.values)
    with np.errstate(over="ignore"):
        converted = values.astype(target)
    if not np.array_equal(converted.astype(source), values, equal_nan=source.kind == "f") or (
        source.kind in "iu" and ((values < 0) != (converted < 0)).any()
    ):
        raise SchemaError(f"values that {wanted} cannot hold")
    return replace(column, type=wanted, values=converted)

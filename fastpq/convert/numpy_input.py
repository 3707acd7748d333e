"""NumPy arrays, lists, and objects with the Arrow C data interface, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.binary import first_invalid_utf8
from fastpq.arrays.bitmap import pack_bitmap
from fastpq.arrays.flat_column import DictionaryValues, Values
from fastpq.arrays.layouts import MAX_INT32, Array, BinaryOffsets, empty_binary
from fastpq.arrays.nodes import duration_field
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import from_fixed, from_string_dtype, scan_objects
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.casting import cast_binary, cast_numeric, duration_unit, infer_numeric, is_raw
from fastpq.convert.nested_input import (
    Convert,
    are_nested,
    is_masked_array,
    lists_of_rows,
    maps_from_objects,
    nested_from_objects,
    struct_of_parts,
)
from fastpq.convert.object_input import NO_ORDER, convert_objects, is_missing, nat_among, without_nan, without_pandas_scalars
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import DataType, Field, ListType, MapType, StructType, holds_map
from fastpq.schema.types import ColumnType, String, Type, Unknown

NullMask = NDArray[np.bool_]
# Type, storage, nulls, and unit for durations.
Converted = tuple[ColumnType, Values, NullMask | None, str | None]

_FLAT_KINDS = frozenset("biufmMSUT")     # dtype kinds that have neither fields nor objects
# Column types for the dtypes whose values a column holds unchanged.
_SAME_IN_COLUMN = {np.dtype(code): infer_numeric(np.dtype(code), "") for code in "?bhilqBHILQefd"}


def column_from_numpy(
    values: Any, *, type: ColumnType | None = None, nullable: bool | None = None, name: str = ""
) -> AnyColumn:
    """Return values as a column. Memory is shared where the array has the column's layout.

    Null are: masked values in a MaskedArray, NaT, a StringDType's missing value, and None in object arrays and lists.
    NaN is a value, but it is null among objects that are not numbers. Arrays with another byte order or with strides are copied.

    ============================ ======================================================================================
    dtype                        type, unless ``type`` is given
    ============================ ======================================================================================
    bool, int8 to uint64         BOOLEAN, INT32 and INT64, with INTEGER where narrower or unsigned
    float16, float32, float64    FLOAT16, FLOAT, DOUBLE
    datetime64                   DATE for D, M, Y, W; TIMESTAMP ms for ms, s, m, h; us; ns for ns and finer
    timedelta64                  INT64, a duration by its Arrow field: s for s, m, h, D, W; ms; us; ns for ns and
                                 finer; TIME if ``type`` is TIME and the values are times of day
    StringDType, str (U)         STRING
    bytes (S), void (V)          BYTE_ARRAY without the NULs at the end, FIXED_LEN_BYTE_ARRAY
    object                       by the values, which have one type, or are int and float: str, bytes, bool, int, float,
                                 Decimal (with as many digits as they need), UUID, date, datetime (us; UTC when aware),
                                 time (us), timedelta (us); lists or dicts of these and of each other, stored as lists
                                 and structs
    ============================ ======================================================================================

    Args:
        values: array, masked array, list, Column, VariantColumn, or Arrow array. An array of shape (n, k) becomes a column of n
            lists of k values (Arrow's fixed-size lists). Each further dimension adds a level of lists.
        type: column type. The cast is exact, except that floats may be rounded to narrower floats. For lists, the type of
            their values.
        nullable: whether the column is OPTIONAL. None makes it OPTIONAL for a column with nulls, for a MaskedArray, and for a
            StringDType with a missing value.
        name: column name, for errors.

    Raises:
        SchemaError: values that fit no type, or not ``type``; nulls with ``nullable=False``.
    """
    if values.__class__ is np.ndarray and values.ndim == 1 and values.dtype.kind in _FLAT_KINDS:
        shared_type = _SAME_IN_COLUMN.get(values.dtype) if type is None else None
        if shared_type is not None and values.flags.c_contiguous and values.flags.aligned:
            return Column._made(shared_type, values, nullable=bool(nullable))
        return _flat(values, type, nullable, name)
    if isinstance(values, AnyColumn):
        return recast(values, type, nullable, name)
    if not isinstance(values, np.ndarray | list):
        from fastpq.variant.variant_column import VariantColumn

        if isinstance(values, VariantColumn):
            return recast(values.to_struct(), type, nullable, name)
    if not isinstance(values, np.ndarray) and has_arrow_interface(values):
        from fastpq.arrow import import_column

        return recast(import_column(values), type, nullable, name)
    if isinstance(values, np.ndarray) and values.ndim > 1 and not values.dtype.hasobject:
        elements = column_from_numpy(values.reshape(-1), type=type, name=name)
        return recast(lists_of_rows(values.shape, elements), None, nullable, name)
    if isinstance(values, np.ndarray) and values.ndim == 1 and (values.dtype.names or values.dtype.kind == "c"):
        return recast(struct_of_parts(values, partial(column_from_numpy, name=name)), type, nullable, name)
    if (not isinstance(values, np.ndarray) or values.dtype == object) and are_nested(values):
        return recast(nested_from_objects(values, partial(column_from_numpy, name=name), name), type, nullable, name)
    return _flat(values, type, nullable, name)


def map_column(values: Any, type_: DataType, name: str) -> AnyColumn:
    """Return values as a column, with dicts and pair lists as maps where ``type_`` has a map.

    ``type_`` decides only where maps are. All other types come from the objects. Values that do not fit ``type_`` become the
    column that ``column_from_numpy`` makes.

    Args:
        values: a list or an array with objects, or anything that ``column_from_numpy`` takes.
        type_: a map, or a type that contains maps inside lists, structs and maps.
        name: column name, for errors.

    Raises:
        SchemaError: as for ``maps_from_objects``.
    """
    is_array = isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1
    if not holds_map(type_) or not (is_array or isinstance(values, list | tuple)):
        return column_from_numpy(values, name=name)

    def of(field: Field) -> Convert:
        return partial(map_column, type_=field.type, name=name)

    if isinstance(type_, MapType):
        return maps_from_objects(values, of(type_.key), of(type_.value), name)
    if are_nested(values):
        first = next(value for value in values if value is not None and not is_missing(value))
        if isinstance(type_, ListType) and not isinstance(first, dict):
            return nested_from_objects(values, of(type_.element), name)
        if isinstance(type_, StructType) and isinstance(first, dict):
            by_key = {field.name: of(field) for field in type_.fields}
            return nested_from_objects(values, partial(column_from_numpy, name=name), name, by_key)
    return column_from_numpy(values, name=name)


def has_arrow_interface(obj: Any) -> bool:
    """Whether an object has the Arrow C data interface."""
    return hasattr(obj, "__arrow_c_stream__") or hasattr(obj, "__arrow_c_array__")


def recast(column: AnyColumn, type_: ColumnType | None, nullable: bool | None, name: str) -> AnyColumn:
    """Return a column with another type or nullability."""
    if column.is_nested:
        if type_ is not None:
            raise SchemaError(f"a column of {column.type} cannot be cast to {type_}", column=name or None)
        if nullable is False and column.null_count:
            raise _null_error(int(np.argmin(column.validity_mask())), name)
        return column if nullable is None else column._with(nullable=nullable)
    if type_ is not None and type_ != column.type:
        if isinstance(column.type.logical, Unknown):
            return column_from_numpy(np.full(len(column), None, object), type=type_, nullable=nullable, name=name)
        same_bytes = type_.is_variable and column.type.is_variable and not isinstance(type_.logical, Unknown)
        if not same_bytes:
            return column_from_numpy(column.to_numpy(), type=type_, nullable=nullable, name=name)
        values = column.values
        if isinstance(values, DictionaryValues):
            values = DictionaryValues(values.codes, values.dictionary._with(type=type_), values.is_ordered)
        column = column._with(type=type_, values=values)
        _check_text(column, name)
    if nullable is None or nullable == column.nullable:
        return column
    if column.null_count:
        raise _null_error(int(np.argmin(column.validity_mask())), name)
    return column._with(validity=None, nullable=nullable)


def _null_error(i: int, name: str) -> SchemaError:
    return SchemaError(f"value {i} is null in a column that is not nullable", column=name or None)


def _not_a_column(values: Any, array: Array, name: str) -> SchemaError:
    """Return the error for values that are not a one-dimensional array. It says how to make one."""
    if isinstance(values, set | frozenset):
        message = NO_ORDER
    elif isinstance(values, Iterator):
        message = f"a {type(values).__name__} cannot be read as a column: give list(values) or an array"
    elif array.ndim == 0:
        text = f"{values!r:.50}"
        message = f"{type(values).__name__} {text} is one value: give a value for each row, for example [value] * rows"
        return SchemaError(message, column=name or None).showing(text)
    else:
        message = (
            f"objects in shape {array.shape}, but a column of objects has one dimension: give list(array) for a column of lists, "
            "or one column for each of array.T"
        )
    return SchemaError(message, column=name or None)


def _split(values: Any, name: str) -> tuple[Array, NullMask | None]:
    """Return a one-dimensional, aligned array in native byte order with zeros for masked values, and the mask."""
    is_masked = is_masked_array(values)
    if isinstance(values, (list, tuple)):
        # np.asarray would give text the longest text's width, and would convert None and mixed values
        array: Array = np.fromiter(values, dtype=object, count=len(values))
    else:
        array = np.ma.getdata(values) if is_masked else np.asarray(values)
    if array.ndim != 1:
        raise _not_a_column(values, array, name)
    dtype, flags = array.dtype, array.flags
    if dtype.names or dtype.subdtype:
        raise SchemaError(f"values of dtype {dtype} are nested", column=name or None)
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="), order="C")
    elif dtype.kind != "T" and not (flags.c_contiguous and flags.aligned):
        array = array.copy()
    mask: NullMask | None = None
    if is_masked and values.mask is not np.ma.nomask:
        mask = np.ma.getmaskarray(values)
        if mask.any():
            array = array.copy()
            array[mask] = None if array.dtype.kind == "O" else np.zeros((), array.dtype)
    return array, mask


def _convert(array: Array, type_: ColumnType | None, name: str) -> Converted:
    if array.dtype.kind in "TU" and type_ is not None and not type_.is_variable:
        raise SchemaError(f"text and bytes do not fit a column of {type_}", column=name or None)
    match array.dtype.kind:
        case "O":
            array, nulls, firsts = without_nan(*without_pandas_scalars(array, *scan_objects(array), name))
            type_, values, dtype = convert_objects(array, nulls, firsts, type_, name)
            nulls = nulls | nat_among(array, firsts)
            return type_, _zeros(type_, len(array)) if nulls.all() else values, nulls, duration_unit(dtype, type_)
        case "T":
            offsets, data, missing = from_string_dtype(array)
            return type_ or _STRING, BinaryOffsets(offsets, data), missing, None
        case "U" | "S" if array.dtype.kind == "U" or type_ is None or type_.length != array.dtype.itemsize:
            text = array.dtype.kind == "U"
            return type_ or (_STRING if text else _BYTES), BinaryOffsets(*from_fixed(array, name)), None, None
        case "S" | "V":
            return (*_convert_void(array, type_, name), None, None)
    type_ = type_ or infer_numeric(array.dtype, name)
    nat = np.isnat(array) if array.dtype.kind in "mM" else None
    if isinstance(type_.logical, Unknown):
        return type_, _zeros(type_, len(array)), nat, None
    return type_, cast_numeric(array, type_, name), nat, None if nat is None else duration_unit(array.dtype, type_)


_STRING = ColumnType(Type.BYTE_ARRAY, None, String())
_BYTES = ColumnType(Type.BYTE_ARRAY)


def _zeros(type_: ColumnType, count: int) -> Values:
    return empty_binary(count) if type_.dtype is None else np.zeros(count, type_.dtype)


def _convert_void(array: Array, type_: ColumnType | None, name: str) -> tuple[ColumnType, Values]:
    """Return fixed-length values (void) unchanged."""
    width = array.dtype.itemsize
    if width == 0:
        raise SchemaError("values without bytes do not fit FIXED_LEN_BYTE_ARRAY", column=name or None)
    type_ = type_ or ColumnType(Type.FIXED_LEN_BYTE_ARRAY, width)
    if type_.is_variable:
        size = len(array) * width
        offsets = np.arange(0, size + 1, width, dtype=np.int64 if size > MAX_INT32 else np.int32)
        return type_, BinaryOffsets(offsets, array.view(np.uint8))
    if type_.length != width or not is_raw(type_):
        raise SchemaError(f"values of {width} bytes do not fit a column of {type_}", column=name or None)
    return type_, array.view(f"V{width}")


def _flat(values: Any, type_: ColumnType | None, nullable: bool | None, name: str) -> Column:
    """Return an array or a list with flat values as a column. The arguments are those of column_from_numpy."""
    array, mask = _split(values, name)
    type_, storage, nulls, unit = _convert(array, type_, name)
    if mask is not None:
        nulls = mask if nulls is None else nulls | mask
    if isinstance(type_.logical, Unknown):
        if len(array) and (nulls is None or not nulls.all()):
            raise SchemaError("a column of type UNKNOWN may hold only nulls", column=name or None)
        nullable = True if nullable is None else nullable
    nulls = nulls if nulls is not None and nulls.any() else None
    if nullable is None:
        has_missing_value = array.dtype.kind == "T" and hasattr(array.dtype, "na_object")
        nullable = nulls is not None or is_masked_array(values) or has_missing_value
    if isinstance(storage, BinaryOffsets) and not type_.is_variable:
        storage = cast_binary(storage, nulls, type_, name)
    if isinstance(storage, np.ndarray) and storage.dtype != type_.dtype:
        raise SchemaError(f"values of dtype {storage.dtype} do not fit a column of {type_}", column=name or None)
    if nulls is None:
        column = Column._made(type_, storage, nullable=nullable)
    elif not nullable:
        raise _null_error(int(np.argmax(nulls)), name)
    else:
        column = Column._made(type_, storage, validity=pack_bitmap(~nulls), null_count=int(np.count_nonzero(nulls)))
    if type_.is_text and not _holds_str(array):
        _check_text(column, name)
    return column if unit is None else column.with_arrow(duration_field(unit, nullable=nullable))


def _holds_str(array: Array) -> bool:
    """Whether an array with converted objects, which all have one type, holds str. A str is always valid UTF-8 then."""
    return array.dtype == object and isinstance(next((value for value in array if value is not None), None), str)


def _check_text(column: Column, name: str) -> None:
    """Refuse bytes that are not UTF-8 in a text column."""
    if column.type.is_text and not isinstance(column.values, np.ndarray):
        i = first_invalid_utf8(SliceReader(column.values, column.validity if column.null_count else None))
        if i >= 0:
            raise SchemaError(f"value {i} is not UTF-8", column=name or None)

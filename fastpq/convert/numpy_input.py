"""NumPy arrays, and objects with the Arrow C data interface, as columns and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.binary import first_invalid_utf8
from fastpq.arrays.bitmap import pack_bitmap
from fastpq.arrays.layouts import MAX_INT32, Array, BinaryOffsets, DictionaryValues, Values, empty_binary
from fastpq.arrays.nodes import duration_field
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import from_fixed, from_string_dtype, scan_objects
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.convert.casting import cast_binary, cast_numeric, duration_unit, infer_numeric, is_raw
from fastpq.convert.nested_input import (
    Convert,
    are_nested,
    lists_of_rows,
    maps_from_objects,
    nested_from_objects,
    struct_of_parts,
)
from fastpq.convert.object_input import NO_ORDER, convert_objects, is_missing, nat_among, without_nan, without_pandas_scalars
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import DataType, Field, ListType, MapType, StructType, holds_map
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType, String, Type, Unknown
from fastpq.variant.variant_column import VariantColumn

NullMask = NDArray[np.bool_]
# Type, storage, nulls, and the unit of durations.
Converted = tuple[ColumnType, Values, NullMask | None, str | None]

_FLAT_KINDS = frozenset("biufmMSUT")     # kinds of dtypes without fields and objects


def column_from_numpy(
    values: Any, *, type: ColumnType | None = None, nullable: bool | None = None, name: str = ""
) -> AnyColumn:
    """A column of an array; memory is shared wherever the array has the layout of the column.

    Null are: masked values of a MaskedArray, NaT, the missing value of StringDType, and None in object arrays and lists.
    NaN is a value, but null among objects other than numbers. Arrays of another byte order or stride are copied.

    ============================ ======================================================================================
    dtype                        type, unless one is given
    ============================ ======================================================================================
    bool, int8 to uint64         BOOLEAN, INT32 and INT64, with INTEGER where narrower or unsigned
    float16, float32, float64    FLOAT16, FLOAT, DOUBLE
    datetime64                   DATE for D, M, Y, W; TIMESTAMP ms for ms, s, m, h; us; ns for ns and finer
    timedelta64                  INT64, a duration by its Arrow field: s for s, m, h, D, W; ms; us; ns for ns and
                                 finer; TIME where the type given is TIME, of values that are times of a day
    StringDType, str (U)         STRING
    bytes (S), void (V)          BYTE_ARRAY without the NULs at the end, FIXED_LEN_BYTE_ARRAY
    object                       by the values, all of one sort, or int and float: str, bytes, bool, int, float, Decimal (as many
                                 digits as they need), UUID, date, datetime (us; UTC when aware), time (us), timedelta
                                 (us); lists or dicts of these and of each other, stored as lists and structs
    ============================ ======================================================================================

    Args:
        values: array, masked array, list, Column, VariantColumn, or Arrow array. An array of shape (n, k) is a column of n lists
            of k values, Arrow's fixed-size lists; each further dimension is a level of lists.
        type: cast to this type, exactly; floats may be rounded to narrower floats. Of lists, the type of their values.
        nullable: whether the column is OPTIONAL; None: OPTIONAL for a column with nulls, a MaskedArray, or a StringDType
            with a missing value.
        name: name of the column, for errors.

    Raises:
        SchemaError: values unfit for any type, or for the given type; nulls with ``nullable=False``.
    """
    if values.__class__ is np.ndarray and values.ndim == 1 and values.dtype.kind in _FLAT_KINDS:
        return _flat(values, type, nullable, name)
    if isinstance(values, VariantColumn):
        values = values.to_struct()
    if isinstance(values, AnyColumn):
        return _recast(values, type, nullable, name)
    if not isinstance(values, np.ndarray) and hasattr(values, "dtype") and is_pandas_array(values):
        from fastpq.convert.dataframe_input import column_from_pandas

        return _recast(column_from_pandas(values, name), type, nullable, name)
    if not isinstance(values, np.ndarray) and _speaks_arrow(values):
        from fastpq.arrow import import_column

        return _recast(import_column(values), type, nullable, name)
    if isinstance(values, np.ndarray) and values.ndim > 1 and not values.dtype.hasobject:
        elements = column_from_numpy(values.reshape(-1), type=type, name=name)
        return _recast(lists_of_rows(values.shape, elements), None, nullable, name)
    if isinstance(values, np.ndarray) and values.ndim == 1 and (values.dtype.names or values.dtype.kind == "c"):
        return _recast(struct_of_parts(values, partial(column_from_numpy, name=name)), type, nullable, name)
    if (not isinstance(values, np.ndarray) or values.dtype == object) and are_nested(values):
        return _recast(nested_from_objects(values, partial(column_from_numpy, name=name), name), type, nullable, name)
    return _flat(values, type, nullable, name)


def map_column(values: Any, type_: DataType, name: str) -> AnyColumn:
    """A column with maps, of dicts or lists of pairs where the type has maps; of other values the column of their own type.

    Keys, values and fields keep the types of their objects.

    Args:
        values: a list or an array of objects, or anything that ``column_from_numpy`` takes.
        type_: the type, a map or of maps inside of lists, structs and maps.
        name: name of the column, for errors.

    Raises:
        SchemaError: as ``maps_from_objects``.
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


def table_from(
    obj: Any, schema: Mapping[str, ColumnType] | ParquetSchema | None = None, maps: Mapping[str, DataType] | None = None
) -> Table:
    """A table from a mapping of columns, a structured array, a Table or an Arrow object.

    Args:
        obj: a mapping of names to values accepted by ``column_from_numpy``; a structured array; a Table; or an object with
            ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        schema: types to cast columns to, by name; a ParquetSchema, flat only, also sets nullability.
        maps: types with maps, whose objects are dicts or lists of pairs, by name of the column.

    Raises:
        SchemaError: values unfit for their types, unequal lengths, names in schema missing in the object.
    """
    if isinstance(obj, np.ndarray) and obj.dtype.names:
        obj = {name: obj[name] for name in obj.dtype.names}
    elif not isinstance(obj, Mapping):
        if not _speaks_arrow(obj):
            raise _no_table(obj)
        from fastpq.arrow import import_table

        obj = import_table(obj)
    wanted = _wanted(schema) if schema else {}
    unknown = [name for name in wanted if name not in obj]
    if unknown:
        raise SchemaError(f"the schema has {unknown}, which the table has not; it has {list(obj)}")
    if isinstance(obj, Table) and not wanted:
        return obj
    columns = []
    for name, values in obj.items():
        type_, nullable = wanted.get(name, (None, None))
        if maps and name in maps:
            columns.append((name, map_column(values, maps[name], name)))
            continue
        columns.append((name, column_from_numpy(values, type=type_, nullable=nullable, name=str(name))))
    if isinstance(obj, Table):
        return Table(columns, num_rows=obj.num_rows, metadata=obj.metadata)
    return Table(columns)


def _wanted(schema: Mapping[str, ColumnType] | ParquetSchema | None) -> dict[str, tuple[ColumnType, bool | None]]:
    if isinstance(schema, ParquetSchema):
        nested = [column.name for column in schema if not column.is_flat]
        if nested:
            raise SchemaError(f"a flat schema is needed; {nested[0]!r} is nested")
        return {column.name: (column.type, column.nullable) for column in schema}
    return {name: (type_, None) for name, type_ in (schema or {}).items()}


def _no_table(obj: Any) -> SchemaError:
    """The error for an object that is no table, with the way to make one."""
    what = f"a {obj.__class__.__name__} is neither a mapping of names to columns nor a structured array nor Arrow data"
    if callable(getattr(obj, "collect", None)):
        return SchemaError(f"{what}; a query has rows after .collect()")
    if isinstance(obj, list | tuple):
        if obj and (hasattr(obj[0], "__arrow_c_stream__") or hasattr(obj[0], "__arrow_c_array__")):
            return SchemaError(f"{what}: iter([...]) of tables is written one table after the other")
        return SchemaError(f"{what}: rows become columns by {{name: [row[name] for row in rows] for name in names}}")
    if isinstance(obj, np.ndarray):
        return SchemaError(f"{what}: give {{name: array}}")
    return SchemaError(what)


def is_pandas_array(values: Any) -> bool:
    """Whether values are an array or an index of pandas, perhaps with nulls of its own; a Series has an Arrow interface."""
    return values.__class__.__module__.partition(".")[0] == "pandas" and not hasattr(values, "__arrow_c_stream__")


def _speaks_arrow(obj: Any) -> bool:
    """Whether an object has the Arrow C data interface."""
    return hasattr(obj, "__arrow_c_stream__") or hasattr(obj, "__arrow_c_array__")


def _recast(column: AnyColumn, type_: ColumnType | None, nullable: bool | None, name: str) -> AnyColumn:
    """A column with another type or nullability."""
    if column.is_nested:
        if type_ is not None:
            raise SchemaError(f"a {column.type} cannot be cast to {type_}", column=name or None)
        if nullable is False and column.null_count:
            raise _unwanted_null(int(np.argmin(column.validity_mask())), name)
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
        raise _unwanted_null(int(np.argmin(column.validity_mask())), name)
    return column._with(validity=None, nullable=nullable)


def _unwanted_null(i: int, name: str) -> SchemaError:
    return SchemaError(f"value {i} is null in a column that is not nullable", column=name or None)


def _no_column(values: Any, array: Array, name: str) -> SchemaError:
    """The error for values that are no array of one dimension, with the way to make one."""
    if isinstance(values, set | frozenset):
        message = NO_ORDER
    elif isinstance(values, Iterator):
        message = f"a {type(values).__name__} is not read: give list(values) or an array"
    elif array.ndim == 0:
        shown = f"{values!r:.50}"
        message = f"{type(values).__name__} {shown} is one value: give a value for each row, for example [value] * rows"
        return SchemaError(message, column=name or None).showing(shown)
    else:
        message = (
            f"objects in shape {array.shape}, and a column of objects has one dimension: give list(array) for a column of lists, "
            "or one column for each of array.T"
        )
    return SchemaError(message, column=name or None)


def _split(values: Any, name: str) -> tuple[Array, NullMask | None]:
    """A one-dimensional, aligned array of native byte order with zeros where masked, and the mask."""
    is_masked = isinstance(values, np.ma.MaskedArray)
    if isinstance(values, (list, tuple)):
        # not asarray: text would get the width of the longest text, and None or mixed values would be converted
        array: Array = np.fromiter(values, dtype=object, count=len(values))
    else:
        array = np.ma.getdata(values) if is_masked else np.asarray(values)
    if array.ndim != 1:
        raise _no_column(values, array, name)
    dtype, flags = array.dtype, array.flags
    if dtype.names or dtype.subdtype:
        raise SchemaError(f"values of dtype {dtype} are nested", column=name or None)
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="), order="C")
    elif dtype.kind != "T" and not (flags.c_contiguous and flags.aligned):
        array = array.copy()
    masked: NullMask | None = None
    if is_masked and values.mask is not np.ma.nomask:
        masked = np.ma.getmaskarray(values)
        if masked.any():
            array = array.copy()
            array[masked] = None if array.dtype.kind == "O" else np.zeros((), array.dtype)
    return array, masked


def _convert(array: Array, type_: ColumnType | None, name: str) -> Converted:
    if array.dtype.kind in "TU" and type_ is not None and not type_.is_variable:
        raise SchemaError(f"text and bytes do not fit a {type_} column", column=name or None)
    match array.dtype.kind:
        case "O":
            array, nulls, firsts = without_nan(*without_pandas_scalars(array, *scan_objects(array), name))
            type_, values, dtype = convert_objects(array, nulls, firsts, type_, name)
            nulls = nulls | nat_among(array, firsts)
            return type_, _zeros(type_, len(array)) if nulls.all() else values, nulls, duration_unit(dtype, type_)
        case "T":
            offsets, data, missing = from_string_dtype(array)
            return type_ or _STRING, BinaryOffsets(offsets, data), missing, None
        case "U" | "S" if array.dtype.kind == "U" or not _keeps_width(array, type_):
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


def _keeps_width(array: Array, type_: ColumnType | None) -> bool:
    return type_ is not None and type_.length == array.dtype.itemsize


def _convert_void(array: Array, type_: ColumnType | None, name: str) -> tuple[ColumnType, Values]:
    """Values of fixed length (void), stored unchanged."""
    width = array.dtype.itemsize
    if width == 0:
        raise SchemaError("values of no bytes have no FIXED_LEN_BYTE_ARRAY", column=name or None)
    type_ = type_ or ColumnType(Type.FIXED_LEN_BYTE_ARRAY, width)
    if type_.is_variable:
        size = len(array) * width
        offsets = np.arange(0, size + 1, width, dtype=np.int64 if size > MAX_INT32 else np.int32)
        return type_, BinaryOffsets(offsets, array.view(np.uint8))
    if type_.length != width or not is_raw(type_):
        raise SchemaError(f"values of {width} bytes do not fit a {type_} column", column=name or None)
    return type_, array.view(f"V{width}")


def _flat(values: Any, type_: ColumnType | None, nullable: bool | None, name: str) -> Column:
    """A column of an array or a list of flat values; arguments as for column_from_numpy."""
    array, masked = _split(values, name)
    type_, storage, nulls, unit = _convert(array, type_, name)
    if masked is not None:
        nulls = masked if nulls is None else nulls | masked
    if isinstance(type_.logical, Unknown):
        if len(array) and (nulls is None or not nulls.all()):
            raise SchemaError("a column of UNKNOWN type holds nulls only", column=name or None)
        nullable = True if nullable is None else nullable
    nulls = nulls if nulls is not None and nulls.any() else None
    if nullable is None:
        nullable = nulls is not None or isinstance(values, np.ma.MaskedArray) or _has_missing_value(array)
    if isinstance(storage, BinaryOffsets) and not type_.is_variable:
        storage = cast_binary(storage, nulls, type_, name)
    if isinstance(storage, np.ndarray) and storage.dtype != type_.dtype:
        raise SchemaError(f"values of dtype {storage.dtype} do not fit a {type_} column", column=name or None)
    if nulls is None:
        column = Column._made(type_, storage, nullable=nullable)
    elif not nullable:
        raise _unwanted_null(int(np.argmax(nulls)), name)
    else:
        column = Column._made(type_, storage, validity=pack_bitmap(~nulls), null_count=int(np.count_nonzero(nulls)))
    if type_.is_text and not _holds_str(array):
        _check_text(column, name)
    return column if unit is None else column.with_arrow(duration_field(unit, nullable=nullable))


def _has_missing_value(array: Array) -> bool:
    """Whether the dtype is a StringDType with a missing value."""
    return array.dtype.kind == "T" and hasattr(array.dtype, "na_object")


def _holds_str(array: Array) -> bool:
    """Whether the values of a converted array of objects, all of one kind, are str, which became UTF-8."""
    return array.dtype == object and isinstance(next((value for value in array if value is not None), None), str)


def _check_text(column: Column, name: str) -> None:
    """Refuse bytes outside UTF-8 in a column of text."""
    if column.type.is_text and not isinstance(column.values, np.ndarray):
        i = first_invalid_utf8(SliceReader(column.values, column.validity if column.null_count else None))
        if i >= 0:
            raise SchemaError(f"value {i} is not UTF-8", column=name or None)

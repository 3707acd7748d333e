"""pandas Series from columns, with the dtype in pandas' metadata or the dtype for the column's own type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastpq.arrays.flat_column import DictionaryValues, fixed_values
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.numpy_output import UNITS_A_DAY
from fastpq.arrays.python_lists import cut
from fastpq.arrays.python_times import times_of
from fastpq.arrays.strings import to_objects
from fastpq.arrays.table import AnyColumn, Column
from fastpq.common.lazy import LazyModule
from fastpq.convert.categories import categories_of
from fastpq.convert.pandas_metadata import Entry, details_of, text_or_none
from fastpq.convert.time_zones import zone_of
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.types import ColumnType, Date, Integer, Time, Timestamp, Type, Unknown

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

Backend = Literal["numpy_nullable", "pyarrow"]

_NULLABLE = {"boolean", "Float32", "Float64", *(f"{sign}nt{width}" for sign in ("I", "UI") for width in (8, 16, 32, 64))}
_EXTENSION_NAME, _EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"


def series_of(column: AnyColumn, entry: Entry, backend: Backend | None = None) -> pd.Series[Any]:
    """Return a column as a pandas Series.

    Args:
        column: the column.
        entry: its entry in pandas' metadata, or an empty dict.
        backend: dtypes for all columns. They replace the entry's dtype.

    Raises:
        FormatError: the values contradict the metadata.
        UnsupportedError: an Arrow dtype, but pyarrow is not installed.
    """
    numpy_type = text_or_none(entry.get("numpy_type")) or ""
    if backend == "pyarrow" or (backend is None and _has_arrow_dtype(entry, numpy_type)):
        return _arrow_series(column)
    sparse = text_or_none(details_of(entry).get("sparse"))
    if sparse is not None and backend is None:
        return _sparse(column, entry, sparse)
    extension = _extension(column, numpy_type)
    try:
        if extension is not None and extension[0] == "period" and isinstance(column, Column):
            return _periods(column, extension[1])
        if extension is not None and extension[0] == "interval" and isinstance(column, StructColumn):
            intervals = _intervals(column, extension[1])
            return intervals if entry.get("pandas_type") != "categorical" else _categorical(column, intervals, entry)
        if isinstance(column, StructColumn) and numpy_type in ("complex64", "complex128"):
            return pd.Series(_complex_numbers(column), copy=False)
        if not isinstance(column, Column):
            return pd.Series(objects_of(column), dtype=object, copy=False)
        if backend is None and _is_categorical(column, entry):
            return _categorical(column, None, entry)
        return _flat(column, _dtype_of(column, backend) if backend else numpy_type, entry)
    except (ValueError, TypeError, OverflowError, KeyError) as error:
        message = f"pandas' metadata says {numpy_type or extension}, but the values are {column.type}: {error}"
        raise FormatError(message) from error


def numbers_as_stored(column: AnyColumn, entry: Entry) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a column whose Series has just these numbers. Return None for any other column.

    Args:
        column, entry: as for ``series_of``.
    """
    if not isinstance(column, Column) or column.null_count or type(column.values) is not np.ndarray:
        return None
    type_, values, field = column.type, column.values, column.arrow
    if not (type_.logical is None or isinstance(type_.logical, Integer)) or values.dtype.kind not in "iuf":
        return None
    if field is not None and (field.metadata or field.is_duration or field.dictionary is not None):
        return None
    is_described = not entry or (
        entry.get("numpy_type") == values.dtype.name and entry.get("metadata") is None
        and entry.get("pandas_type") == values.dtype.name)
    return values if is_described else None


def _complex_numbers(column: StructColumn) -> np.ndarray[Any, Any]:
    """Return structs with a real and an imaginary part as complex numbers, with NaN for nulls, and other structs as objects."""
    values = column.to_numpy(nulls="nan", structured=True)
    return values if values.dtype.kind == "c" else objects_of(column)


def becomes_objects(type_: ColumnType, entry: Entry) -> bool:
    """Whether texts or bytes become Python objects. Where the values are codes, each distinct value is then one object.

    Args:
        type_: column type.
        entry: its entry in pandas' metadata, or an empty dict.
    """
    numpy_type = text_or_none(entry.get("numpy_type")) or ""
    if not type_.is_variable or entry.get("pandas_type") == "categorical" or _has_arrow_dtype(entry, numpy_type):
        return False
    is_python = numpy_type in ("str", "string") and details_of(entry).get("storage") == "python"
    return not type_.is_text or numpy_type == "object" or is_python


def _has_arrow_dtype(entry: Entry, numpy_type: str) -> bool:
    return numpy_type.endswith("[pyarrow]") or details_of(entry).get("storage") == "arrow"


def _sparse(column: AnyColumn, entry: Entry, name: str) -> Any:
    """Return a Series with a sparse dtype, or a dense one if the name does not name a sparse dtype."""
    dense, details = series_of(column, entry | {"metadata": None}), details_of(entry)
    try:
        dtype = pd.api.types.pandas_dtype(name)
        if not isinstance(dtype, pd.SparseDtype):
            return dense
        return dense.astype(pd.SparseDtype(dtype.subtype, details["fill_value"]) if "fill_value" in details else dtype)
    except (TypeError, ValueError):
        return dense


def _dtype_of(column: Column, backend: Backend) -> str:
    """Return a column's nullable dtype, or an empty text if it has another dtype."""
    if column.type.is_text:
        return "string"
    dtype = column.type.numpy_dtype
    is_number = column.type.logical is None or column.type.numpy_dtype.kind in "iu"
    if not is_number or (column.arrow is not None and column.arrow.is_duration):
        return ""
    if dtype.kind == "b":
        return "boolean"
    name = dtype.name
    nullable_name = name.replace("uint", "UInt") if dtype.kind == "u" else name.capitalize()
    return nullable_name if nullable_name in _NULLABLE else ""


def _arrow_series(column: AnyColumn) -> Any:
    """Return a pandas Series with the Arrow dtype for the column's Arrow type."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UnsupportedError("pandas' Arrow dtypes need the package pyarrow") from error
    array = column.to_arrow()
    if pa.types.is_string_view(array.type):     # few pandas functions accept views
        array = pa.array(column, type=pa.string())
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))


def index_of(values: pd.Series[Any], name: Any = None) -> pd.Index[Any]:
    """Return an Index with the values and the dtype of a Series."""
    return pd.Index(values.array, dtype=values.dtype, name=name)


# ---- flat values


def _flat(column: Column, numpy_type: str, entry: Entry) -> Any:
    logical, dtype = column.type.logical, column.type.numpy_dtype
    if column.type.is_text:
        return _text(column, numpy_type, entry)
    is_integer = logical is None or isinstance(logical, Integer)
    if isinstance(logical, Unknown) or (numpy_type == "object" and is_integer and dtype.kind in "biu"):
        return pd.Series(objects_of(column), dtype=object, copy=False)
    if isinstance(logical, Time) and not numpy_type.startswith("timedelta64"):
        return _times(column, logical)
    if isinstance(logical, Date) or dtype.kind in "OVT":
        return pd.Series(objects_of(column), dtype=object, copy=False)
    if numpy_type in _NULLABLE and dtype.kind in "biuf":
        return _nullable(column, numpy_type)
    if dtype.kind in "biu" and column.null_count and (column.arrow is None or not column.arrow.is_duration):
        return _with_missing(column)
    values = _owned(column.to_numpy(nulls="nan"))
    if dtype.kind in "iuf" and values.dtype.kind in "iuf" and numpy_type in ("float64", "float32"):
        values = values.astype(numpy_type, copy=False)      # a column that holds only NaN may be stored as another type
    if values.dtype.kind in "mM":
        values = _in_unit(values, column, numpy_type)
    if isinstance(logical, Timestamp) and logical.utc:
        zone = details_of(entry).get("timezone") or _zone_of_field(column)
        return _in_zone(pd.Series(values, copy=False).dt.tz_localize("UTC"), zone)
    return pd.Series(values, copy=False)


def _owned(values: Any) -> Any:
    """Return an array that pandas may write to."""
    values = np.asarray(values)
    return values if values.flags.writeable else values.copy()


def _in_unit(values: Any, column: Column, numpy_type: str) -> Any:
    """Return moments and durations in pandas' unit or Arrow's (seconds), if no value changes."""
    unit = ""
    if numpy_type.startswith(("datetime64[", "timedelta64[")) and numpy_type[:1] == values.dtype.name[:1]:
        unit = numpy_type.partition("[")[2].rstrip("]").partition(",")[0]
    elif column.arrow is not None and column.arrow.format.startswith("tss"):
        unit = "s"
    if unit not in UNITS_A_DAY or unit == np.datetime_data(values.dtype)[0]:
        return values
    counts = values.astype(f"{values.dtype.kind}8[{unit}]")
    same = (counts.astype(values.dtype) == values) | (np.isnat(values) & np.isnat(counts))
    return counts if bool(same.all()) else values


def _zone_of_field(column: Column) -> str | None:
    field = column.arrow
    return field.format[4:] if field is not None and field.format.startswith("ts") else None


def _in_zone(instants: Any, zone: Any) -> Any:
    if not isinstance(zone, str) or not zone or zone == "UTC":
        return instants
    try:
        return instants.dt.tz_convert(zone_of(zone))
    except (LookupError, ValueError, OSError) as error:     # zoneinfo's errors: unknown name, malformed name, name of a folder
        raise FormatError(f"pandas' metadata names the time zone {zone!r}, which is not installed here") from error


def _text(column: Column, numpy_type: str, entry: Entry) -> Any:
    if numpy_type == "object":
        return pd.Series(objects_of(column), dtype=object, copy=False)
    if details_of(entry).get("storage") == "python" and numpy_type in ("str", "string"):
        missing = np.nan if numpy_type == "str" else pd.NA
        return pd.Series(pd.array(objects_of(column), dtype=pd.StringDtype("python", na_value=missing)))
    dtype = pd.Series([], dtype=numpy_type if numpy_type in ("str", "string") else None if len(column) else "str").dtype
    if numpy_type not in ("str", "string"):
        dtype = pd.Series(["a"]).dtype      # pandas' own choice for text, which is object before pandas 3
    if isinstance(dtype, pd.StringDtype) and dtype.storage.startswith("pyarrow"):
        import pyarrow as pa

        return pd.Series(dtype.__from_arrow__(pa.chunked_array([pa.array(column, type=pa.large_string())])), copy=False)
    return pd.Series(objects_of(column), dtype=dtype)


def _times(column: Column, logical: Time) -> Any:
    """Return times of day as datetime.time, as in pyarrow, or as timedelta64 if datetime.time cannot hold all of them."""
    ticks, day = fixed_values(column).astype(np.int64), UNITS_A_DAY[logical.unit]
    if bool((ticks < 0).any() or (ticks >= day).any()) or (logical.unit == "ns" and bool((ticks % 1000).any())):
        return pd.Series(column.to_numpy(nulls="nan"))
    microseconds = ticks // 1000 if logical.unit == "ns" else ticks * (UNITS_A_DAY["us"] // UNITS_A_DAY[logical.unit])
    return pd.Series(times_of(microseconds, column.validity_mask() if column.null_count else None), dtype=object, copy=False)


def _nullable(column: Column, numpy_type: str) -> Any:
    """Return numbers or booleans with a nullable dtype."""
    values, missing = _owned(fixed_values(column)), ~column.validity_mask()
    if numpy_type == "boolean":
        if values.dtype.kind != "b":
            raise ValueError("numbers are not booleans")
        return pd.Series(pd.arrays.BooleanArray(values, missing), copy=False)
    dtype = np.dtype(numpy_type.lower())
    if values.dtype.kind == "b":
        raise ValueError("booleans are not numbers")
    if values.dtype != dtype:
        cast = values.astype(dtype)
        if not bool(((cast == values) | (values != values) | missing).all()):
            raise ValueError("a value does not fit")
        values = cast
    if dtype.kind == "f":
        return pd.Series(pd.arrays.FloatingArray(values, missing), copy=False)
    return pd.Series(pd.arrays.IntegerArray(values, missing), copy=False)


def _with_missing(column: Column) -> Any:
    """Return integers with nulls as floats with NaN, and booleans with nulls as objects."""
    if column.type.physical == Type.BOOLEAN:
        return pd.Series(objects_of(column), dtype=object, copy=False)
    values = fixed_values(column).astype(np.float64)
    values[~column.validity_mask()] = np.nan
    return pd.Series(values, copy=False)


# ---- objects


def objects_of(column: AnyColumn) -> np.ndarray[Any, Any]:
    """Return the values as an object array, with None for nulls. Lists are arrays, as in pyarrow."""
    if isinstance(column, ListColumn) and column.pairs is None:
        return _arrays(column)
    if isinstance(column, Column) and isinstance(column.type.logical, Date) and len(column):
        return _dates(column)
    if isinstance(column, Column) and column.type.is_variable:
        return to_objects(column._reader(), column.type.is_text)
    values = column.to_pylist()
    return np.fromiter(values, dtype=object, count=len(values))


def _dates(column: Column) -> np.ndarray[Any, Any]:
    """Return dates as objects. If the days lie close together, each day is one object."""
    days = fixed_values(column)
    first, last = int(days.min()), int(days.max())
    if last - first > len(days):
        return np.fromiter(column.to_pylist(), dtype=object, count=len(days))
    all_days = column.slice(0, 0)._with(values=np.arange(first, last + 1, dtype=np.int32)).to_pylist()
    objects: np.ndarray[Any, Any] = np.fromiter(all_days, dtype=object, count=len(all_days))[days - first]
    if column.null_count:
        objects[~column.validity_mask()] = None
    return objects


def _is_numeric(column: Column) -> bool:
    """Whether pandas holds a column as an array with numbers, or with moments that have no zone."""
    logical = column.type.logical
    is_moment = isinstance(logical, Timestamp) and not logical.utc
    return column.type.numpy_dtype.kind in "biuf" or is_moment


def _arrays(column: ListColumn) -> np.ndarray[Any, Any]:
    elements = column.elements
    if isinstance(elements, Column) and _is_numeric(elements):
        values = _flat(elements, "", {}).to_numpy()
    else:
        values = objects_of(elements)
    return cut(values, column.offsets.astype(np.int64), column.validity_mask() if column.null_count else None)


# ---- pandas' extension types


def _extension(column: AnyColumn, numpy_type: str) -> tuple[str, str] | None:
    """Return pandas' extension type ("period" or "interval") with its frequency or its closed sides, or None."""
    metadata = (column.arrow.metadata if column.arrow is not None else None) or {}
    name = metadata.get(_EXTENSION_NAME, b"")
    try:
        details = json.loads(metadata.get(_EXTENSION_METADATA) or b"{}")
    except (ValueError, RecursionError):
        details = {}
    if name == b"pandas.period" and isinstance(details, dict) and isinstance(details.get("freq"), str):
        return "period", details["freq"]
    if name == b"pandas.interval" and isinstance(details, dict) and isinstance(details.get("closed"), str):
        return "interval", details["closed"]
    if numpy_type.startswith("period["):
        return "period", numpy_type[len("period[") : -1]
    if numpy_type.startswith("interval["):
        return "interval", numpy_type.rstrip("]").rpartition(", ")[2]
    return None


def _periods(column: Column, frequency: str) -> Any:
    dtype = pd.PeriodDtype(frequency)
    ordinals = fixed_values(column).astype(np.int64)
    ordinals[~column.validity_mask()] = np.iinfo(np.int64).min      # pandas' NaT
    return pd.Series(pd.arrays.PeriodArray(ordinals, dtype=dtype), copy=False)


def _intervals(column: StructColumn, closed: str) -> Any:
    left_ends, right_ends = (_flat(column.leaf([side]), "", {}) for side in ("left", "right"))
    return pd.Series(pd.arrays.IntervalArray.from_arrays(left_ends, right_ends, closed=closed))


# ---- categories


def _is_categorical(column: Column, entry: Entry) -> bool:
    """Whether a column is categorical in pandas, or is text with a dictionary in Arrow."""
    if entry.get("pandas_type") == "categorical":
        return True
    return not entry and column.type.is_variable and column.arrow is not None and column.arrow.dictionary is not None


def _categorical(column: AnyColumn, values: Any, entry: Entry) -> Any:
    """Return a column as a categorical, or as plain values if the file does not keep the category order.

    Args:
        column: the column.
        values: its values as a Series. None converts a flat column.
        entry: its entry in pandas' metadata.
    """
    details = details_of(entry)
    ordered = bool(details.get("ordered")) if entry else bool(column.arrow is not None and column.arrow.flags & ORDERED)
    kind = {"numpy_type": details.get("categories_type")}
    entries = categories_of(details.get("categories"), column)
    categories = None if entries is None else index_of(series_of(entries, kind))
    if isinstance(column, Column) and column.type.is_text:
        return _text_categories(column, categories, ordered, kind)
    if values is None:
        assert isinstance(column, Column)
        field = column.arrow
        plain = column.with_arrow(field if field is None or field.dictionary is None else field.dictionary)
        values = series_of(plain, kind)
    if categories is None or not categories.is_unique:
        return values if ordered else pd.Series(_sorted_categories(column, values))
    categorical = pd.Categorical(values, categories, ordered=ordered)
    if bool(((categorical.codes < 0) & values.notna()).any()):      # a DataFrame that was appended later has more categories
        more = pd.Index(values[categorical.isna()].dropna().unique())
        categorical = pd.Categorical(values, categories.append(more))
    return pd.Series(categorical, copy=False)


def _sorted_categories(column: AnyColumn, values: Any) -> Any:
    """Return a categorical with the values in use, in ascending order if they have one. Integers with nulls stay integers."""
    if not isinstance(column, Column) or not column.null_count or values.dtype != "float64":
        return pd.Categorical(values)
    if column.type.numpy_dtype.kind not in "iu":
        return pd.Categorical(values)
    is_valid = column.validity_mask()
    distinct, codes = np.unique(fixed_values(column)[is_valid], return_inverse=True)
    full = np.full(len(column), -1, np.int32)
    full[is_valid] = codes
    return pd.Categorical.from_codes(full, distinct)


def _text_categories(column: Column, categories: Any, ordered: bool, kind: Entry) -> Any:
    """Return text as a categorical, using its dictionary codes."""
    keeps_order = isinstance(column.values, DictionaryValues) and column.values.is_ordered
    dictionary_column = column.as_dictionary()
    assert isinstance(dictionary_column.values, DictionaryValues)
    own = index_of(series_of(dictionary_column.values.dictionary.with_arrow(None), kind))
    codes = dictionary_column.values.codes
    if categories is None or not categories.is_unique:
        categories, ordered = own, ordered and keeps_order
    else:
        places = categories.get_indexer(own)
        if bool((places < 0).any()):        # a DataFrame that was appended later has more categories
            categories, ordered = categories.append(own[places < 0]), False
            places = categories.get_indexer(own)
        if not np.array_equal(places, np.arange(len(own))):
            codes = places.astype(np.int32)[codes]
    if column.null_count or not len(own):
        codes = np.where(column.validity_mask(), codes, np.int32(-1))
    return pd.Series(pd.Categorical.from_codes(codes, categories, ordered=ordered), copy=False)

"""A column as a pandas Series, of the dtype in pandas' metadata, or of the column's own type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.numpy_output import UNITS_A_DAY, fixed_values
from fastpq.arrays.python_lists import cut
from fastpq.arrays.python_times import times_of
from fastpq.arrays.strings import to_objects
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.categories import categories_of
from fastpq.convert.pandas_metadata import Entry, details_of, text_or_none
from fastpq.convert.time_zones import zone_of
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.types import ColumnType, Date, Integer, Time, Timestamp, Type, Unknown

if TYPE_CHECKING:
    import pandas

Backend = Literal["numpy_nullable", "pyarrow"]

_NULLABLE = {"boolean", "Float32", "Float64", *(f"{sign}nt{width}" for sign in ("I", "UI") for width in (8, 16, 32, 64))}
_EXTENSION_NAME, _EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"


def series_of(column: AnyColumn, entry: Entry, backend: Backend | None = None) -> pandas.Series[Any]:
    """A pandas Series of a column.

    Args:
        column: the column.
        entry: its entry in pandas' metadata; empty without.
        backend: dtypes for all columns, in place of the entry's.

    Raises:
        FormatError: the values contradict the metadata.
        UnsupportedError: an Arrow dtype without pyarrow.
    """
    import pandas as pd

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
            found = _intervals(column, extension[1])
            return found if entry.get("pandas_type") != "categorical" else _categorical(column, found, entry)
        if isinstance(column, StructColumn) and numpy_type in ("complex64", "complex128"):
            return pd.Series(_complex_numbers(column), copy=False)
        if not isinstance(column, Column):
            return pd.Series(objects_of(column), dtype=object, copy=False)
        if backend is None and _is_categorical(column, entry):
            return _categorical(column, None, entry)
        return _flat(column, _dtype_of(column, backend) if backend else numpy_type, entry)
    except (ValueError, TypeError, OverflowError, KeyError) as error:
        raise FormatError(f"pandas' metadata says {numpy_type or extension} of values that are {column.type}: {error}") from error


def _complex_numbers(column: StructColumn) -> np.ndarray[Any, Any]:
    """Structs of a real and an imaginary part as complex numbers, NaN where null; other structs as objects."""
    values = column.to_numpy(nulls="nan", structured=True)
    return values if values.dtype.kind == "c" else objects_of(column)


def becomes_objects(type_: ColumnType, entry: Entry) -> bool:
    """Whether texts or bytes of a column become Python objects, one for each distinct value where the values are codes.

    Args:
        type_: type of the column.
        entry: its entry in pandas' metadata; empty without.
    """
    numpy_type = text_or_none(entry.get("numpy_type")) or ""
    if not type_.is_variable or entry.get("pandas_type") == "categorical" or _has_arrow_dtype(entry, numpy_type):
        return False
    is_python = numpy_type in ("str", "string") and details_of(entry).get("storage") == "python"
    return not type_.is_text or numpy_type == "object" or is_python


def _has_arrow_dtype(entry: Entry, numpy_type: str) -> bool:
    return numpy_type.endswith("[pyarrow]") or details_of(entry).get("storage") == "arrow"


def _sparse(column: AnyColumn, entry: Entry, name: str) -> Any:
    """A Series of a sparse dtype; a dense one where the name is not of a sparse dtype."""
    import pandas as pd

    dense, details = series_of(column, entry | {"metadata": None}), details_of(entry)
    try:
        dtype = pd.api.types.pandas_dtype(name)
        if not isinstance(dtype, pd.SparseDtype):
            return dense
        return dense.astype(pd.SparseDtype(dtype.subtype, details["fill_value"]) if "fill_value" in details else dtype)
    except (TypeError, ValueError):
        return dense


def _dtype_of(column: Column, backend: Backend) -> str:
    """The nullable dtype of a column; empty for a column of another dtype."""
    if column.type.is_text:
        return "string"
    dtype = column.type.numpy_dtype
    is_number = column.type.logical is None or column.type.numpy_dtype.kind in "iu"
    if not is_number or (column.arrow is not None and column.arrow.is_duration):
        return ""
    if dtype.kind == "b":
        return "boolean"
    name = dtype.name
    named = name.replace("uint", "UInt") if dtype.kind == "u" else name.capitalize()
    return named if named in _NULLABLE else ""


def _arrow_series(column: AnyColumn) -> Any:
    """A pandas Series with an Arrow dtype, of the column's Arrow type."""
    import pandas as pd

    try:
        import pyarrow as pa
    except ImportError as error:
        raise UnsupportedError("pandas' Arrow dtypes need the package pyarrow") from error
    found = column.to_arrow()
    if pa.types.is_string_view(found.type):     # few functions of pandas take views
        found = pa.array(column, type=pa.string())
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([found])))


def index_of(values: pandas.Series[Any], name: Any = None) -> pandas.Index[Any]:
    """An Index of the values and the dtype of a Series."""
    import pandas as pd

    return pd.Index(values.array, dtype=values.dtype, name=name)


# ---- flat values


def _flat(column: Column, numpy_type: str, entry: Entry) -> Any:
    import pandas as pd

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
        values = values.astype(numpy_type, copy=False)      # a column of NaN alone may be stored as another type
    if values.dtype.kind in "mM":
        values = _in_unit(values, column, numpy_type)
    if isinstance(logical, Timestamp) and logical.utc:
        zone = details_of(entry).get("timezone") or _zone_of_field(column)
        return _in_zone(pd.Series(values, copy=False).dt.tz_localize("UTC"), zone)
    return pd.Series(values, copy=False)


def _owned(values: Any) -> Any:
    """An array that pandas may write to."""
    values = np.asarray(values)
    return values if values.flags.writeable else values.copy()


def _in_unit(values: Any, column: Column, numpy_type: str) -> Any:
    """Moments and durations in the unit of pandas, or of Arrow (seconds), where no value changes."""
    unit = ""
    if numpy_type.startswith(("datetime64[", "timedelta64[")) and numpy_type[:1] == values.dtype.name[:1]:
        unit = numpy_type.partition("[")[2].rstrip("]").partition(",")[0]
    elif column.arrow is not None and column.arrow.format.startswith("tss"):
        unit = "s"
    if unit not in UNITS_A_DAY or unit == np.datetime_data(values.dtype)[0]:
        return values
    changed = values.astype(f"{values.dtype.kind}8[{unit}]")
    same = (changed.astype(values.dtype) == values) | (np.isnat(values) & np.isnat(changed))
    return changed if bool(same.all()) else values


def _zone_of_field(column: Column) -> str | None:
    field = column.arrow
    return field.format[4:] if field is not None and field.format.startswith("ts") else None


def _in_zone(instants: Any, zone: Any) -> Any:
    if not isinstance(zone, str) or not zone or zone == "UTC":
        return instants
    try:
        return instants.dt.tz_convert(zone_of(zone))
    except (LookupError, ValueError, OSError) as error:     # zoneinfo's errors: unknown name, malformed name, name of a folder
        raise FormatError(f"pandas' metadata names a time zone {zone!r} that is not known here") from error


def _text(column: Column, numpy_type: str, entry: Entry) -> Any:
    import pandas as pd

    if numpy_type == "object":
        return pd.Series(objects_of(column), dtype=object, copy=False)
    if details_of(entry).get("storage") == "python" and numpy_type in ("str", "string"):
        missing = np.nan if numpy_type == "str" else pd.NA
        return pd.Series(pd.array(objects_of(column), dtype=pd.StringDtype("python", na_value=missing)))
    dtype = pd.Series([], dtype=numpy_type if numpy_type in ("str", "string") else None if len(column) else "str").dtype
    if numpy_type not in ("str", "string"):
        dtype = pd.Series(["a"]).dtype      # pandas' own choice for text: object before pandas 3
    if isinstance(dtype, pd.StringDtype) and dtype.storage.startswith("pyarrow"):
        import pyarrow as pa

        return pd.Series(dtype.__from_arrow__(pa.chunked_array([pa.array(column, type=pa.large_string())])), copy=False)
    return pd.Series(objects_of(column), dtype=dtype)


def _times(column: Column, logical: Time) -> Any:
    """Times of day as datetime.time, as in pyarrow; timedelta64 for a column with a time that datetime.time cannot hold."""
    import pandas as pd

    ticks, day = fixed_values(column).astype(np.int64), UNITS_A_DAY[logical.unit]
    if bool((ticks < 0).any() or (ticks >= day).any()) or (logical.unit == "ns" and bool((ticks % 1000).any())):
        return pd.Series(column.to_numpy(nulls="nan"))
    microseconds = ticks // 1000 if logical.unit == "ns" else ticks * (UNITS_A_DAY["us"] // UNITS_A_DAY[logical.unit])
    return pd.Series(times_of(microseconds, column.validity_mask() if column.null_count else None), dtype=object, copy=False)


def _nullable(column: Column, numpy_type: str) -> Any:
    """Numbers or booleans in one of pandas' nullable dtypes."""
    import pandas as pd

    values, missing = _owned(fixed_values(column)), ~column.validity_mask()
    if numpy_type == "boolean":
        if values.dtype.kind != "b":
            raise ValueError("numbers are no booleans")
        return pd.Series(pd.arrays.BooleanArray(values, missing), copy=False)
    wanted = np.dtype(numpy_type.lower())
    if values.dtype.kind == "b":
        raise ValueError("booleans are no numbers")
    if values.dtype != wanted:
        cast = values.astype(wanted)
        if not bool(((cast == values) | (values != values) | missing).all()):
            raise ValueError("a value does not fit")
        values = cast
    if wanted.kind == "f":
        return pd.Series(pd.arrays.FloatingArray(values, missing), copy=False)
    return pd.Series(pd.arrays.IntegerArray(values, missing), copy=False)


def _with_missing(column: Column) -> Any:
    """Integers or booleans with nulls, without a nullable dtype: floats with NaN, and objects."""
    import pandas as pd

    if column.type.physical == Type.BOOLEAN:
        return pd.Series(objects_of(column), dtype=object, copy=False)
    values = fixed_values(column).astype(np.float64)
    values[~column.validity_mask()] = np.nan
    return pd.Series(values, copy=False)


# ---- objects


def objects_of(column: AnyColumn) -> np.ndarray[Any, Any]:
    """The values as an array of objects, None where null; lists are arrays, as in pyarrow."""
    if isinstance(column, ListColumn) and column.pairs is None:
        return _arrays(column)
    if isinstance(column, Column) and isinstance(column.type.logical, Date) and len(column):
        return _dates(column)
    if isinstance(column, Column) and column.type.is_variable:
        return to_objects(column._reader(), column.type.is_text)
    values = column.to_pylist()
    return np.fromiter(values, dtype=object, count=len(values))


def _dates(column: Column) -> np.ndarray[Any, Any]:
    """Dates as objects, one for each day where the days lie close together."""
    days = fixed_values(column)
    first, last = int(days.min()), int(days.max())
    if last - first > len(days):
        return np.fromiter(column.to_pylist(), dtype=object, count=len(days))
    shared = column.slice(0, 0)._with(values=np.arange(first, last + 1, dtype=np.int32)).to_pylist()
    found: np.ndarray[Any, Any] = np.fromiter(shared, dtype=object, count=len(shared))[days - first]
    if column.null_count:
        found[~column.validity_mask()] = None
    return found


def _is_numeric(column: Column) -> bool:
    """Whether pandas holds a column as an array of numbers or moments without a zone."""
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


# ---- extension types of pandas


def _extension(column: AnyColumn, numpy_type: str) -> tuple[str, str] | None:
    """The extension type of pandas, "period" or "interval", with its frequency or its closed sides; None without."""
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
    import pandas as pd

    dtype = pd.PeriodDtype(frequency)
    ordinals = fixed_values(column).astype(np.int64)
    ordinals[~column.validity_mask()] = np.iinfo(np.int64).min      # pandas' NaT
    return pd.Series(pd.arrays.PeriodArray(ordinals, dtype=dtype), copy=False)


def _intervals(column: StructColumn, closed: str) -> Any:
    import pandas as pd

    left, right = (_flat(column.leaf([side]), "", {}) for side in ("left", "right"))
    return pd.Series(pd.arrays.IntervalArray.from_arrays(left, right, closed=closed))


# ---- categories


def _is_categorical(column: Column, entry: Entry) -> bool:
    """Whether a column is categorical for pandas, or text of a dictionary for Arrow."""
    if entry.get("pandas_type") == "categorical":
        return True
    return not entry and column.type.is_variable and column.arrow is not None and column.arrow.dictionary is not None


def _categorical(column: AnyColumn, values: Any, entry: Entry) -> Any:
    """A categorical of a column; the plain values where the categories have an order that the file does not keep.

    Args:
        column: the column.
        values: its values as a Series; None to convert a flat column.
        entry: its entry in pandas' metadata.
    """
    import pandas as pd

    details = details_of(entry)
    ordered = bool(details.get("ordered")) if entry else bool(column.arrow is not None and column.arrow.flags & ORDERED)
    kind = {"numpy_type": details.get("categories_type")}
    entries = categories_of(details.get("categories"), column)
    categories = None if entries is None else index_of(series_of(entries, kind))
    if isinstance(column, Column) and column.type.is_text:
        return _coded(column, categories, ordered, kind)
    if values is None:
        assert isinstance(column, Column)
        field = column.arrow
        plain = column.with_arrow(field if field is None or field.dictionary is None else field.dictionary)
        values = series_of(plain, kind)
    if categories is None or not categories.is_unique:
        return values if ordered else pd.Series(_sorted_categories(column, values))
    found = pd.Categorical(values, categories, ordered=ordered)
    if bool(((found.codes < 0) & values.notna()).any()):        # of a DataFrame appended to the file later
        more = pd.Index(values[found.isna()].dropna().unique())
        found = pd.Categorical(values, categories.append(more))
    return pd.Series(found, copy=False)


def _sorted_categories(column: AnyColumn, values: Any) -> Any:
    """A categorical of the values in use, in ascending order where they have one; integers with nulls stay integers."""
    import pandas as pd

    if not isinstance(column, Column) or not column.null_count or values.dtype != "float64":
        return pd.Categorical(values)
    if column.type.numpy_dtype.kind not in "iu":
        return pd.Categorical(values)
    there = column.validity_mask()
    distinct, codes = np.unique(fixed_values(column)[there], return_inverse=True)
    full = np.full(len(column), -1, np.int32)
    full[there] = codes
    return pd.Categorical.from_codes(full, distinct)


def _coded(column: Column, categories: Any, ordered: bool, kind: Entry) -> Any:
    """A categorical of text, by the codes of a dictionary."""
    import pandas as pd

    keeps_order = isinstance(column.values, DictionaryValues) and column.values.is_ordered
    coded = column.as_dictionary()
    assert isinstance(coded.values, DictionaryValues)
    own = index_of(series_of(coded.values.dictionary.with_arrow(None), kind))
    codes = coded.values.codes
    if categories is None or not categories.is_unique:
        if ordered and not keeps_order:
            return _flat(column, "", {})
        categories = own
    else:
        places = categories.get_indexer(own)
        if bool((places < 0).any()):        # of a DataFrame appended to the file later
            categories, ordered = categories.append(own[places < 0]), False
            places = categories.get_indexer(own)
        if not np.array_equal(places, np.arange(len(own))):
            codes = places.astype(np.int32)[codes]
    if column.null_count or not len(own):
        codes = np.where(column.validity_mask(), codes, np.int32(-1))
    return pd.Series(pd.Categorical.from_codes(codes, categories, ordered=ordered), copy=False)

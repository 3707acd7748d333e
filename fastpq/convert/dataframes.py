"""pandas DataFrames to tables and back, with pandas' metadata for everything missing in Parquet types.

The JSON of pandas' metadata holds the index, categories, time zones, dtypes and non-text names, in the form shared by pandas,
pyarrow and fastparquet (pandas.pydata.org, "Storing pandas DataFrame objects"). pyarrow is not needed. pandas is imported only
for a given or a requested DataFrame.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.arrays.bitmap import pack_bitmap
from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.numpy_output import UNITS_A_DAY, fixed_values
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import FormatError, ParquetError, SchemaError, UnsupportedError
from fastpq.schema.types import ColumnType, Date, String, Time, Timestamp, Type

if TYPE_CHECKING:
    import pandas

PANDAS_KEY = "pandas"
_MAX_INDEX = 1 << 62        # bound on start, stop and step of a RangeIndex, held as int64 by pandas
_TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())


def is_dataframe(obj: object) -> bool:
    """Whether an object is a pandas DataFrame, without importing pandas."""
    return type(obj).__name__ == "DataFrame" and type(obj).__module__.split(".")[0] == "pandas"


def has_arrow_dtypes(frame: pandas.DataFrame) -> bool:
    """Whether a DataFrame has columns or index levels with pandas' Arrow dtypes."""
    return any(str(dtype).endswith("[pyarrow]") for dtype in (*frame.dtypes, *_index_dtypes(frame.index)))


def _index_dtypes(index: pandas.Index[Any]) -> list[Any]:
    return [index.get_level_values(level).dtype for level in range(index.nlevels)]


# ---- to a table


def table_from_dataframe(frame: pandas.DataFrame, *, with_categories: bool) -> tuple[Table, str]:
    """A table of a DataFrame's columns and index levels, and pandas' metadata as JSON.

    Missing values (NaN, NaT, None, NA) become null, as in pyarrow. A RangeIndex is kept in the JSON alone.

    Args:
        frame: DataFrame with one level of column names.
        with_categories: whether the JSON lists the categories of categorical columns; categories are data, to be kept out of
            plaintext metadata.

    Raises:
        SchemaError: two columns of one name, or unsupported values.
        UnsupportedError: several levels of column names.
    """
    import pandas as pd

    if frame.columns.nlevels > 1:
        raise UnsupportedError("a DataFrame with several levels of column names")
    series = [(name, str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
    index: list[Any] = []
    if isinstance(frame.index, pd.RangeIndex):
        bounds = {"start": frame.index.start, "stop": frame.index.stop, "step": frame.index.step}
        index.append({"kind": "range", "name": _json_name(frame.index.name), **bounds})
    else:
        taken = {field for _, field, _ in series}
        for level in range(frame.index.nlevels):
            values = frame.index.get_level_values(level)
            field = f"__index_level_{level}__" if values.name is None or str(values.name) in taken else str(values.name)
            index.append(field)
            series.append((values.name, field, values.to_series(index=range(len(values)))))
    fields = [field for _, field, _ in series]
    if len(set(fields)) < len(fields):
        raise SchemaError("a DataFrame with two columns of one name")
    columns = {field: _column(values, field) for _, field, values in series}
    described = {
        "index_columns": index,
        "column_indexes": [_described(frame.columns.name, None, frame.columns.to_series())],
        "columns": [_described(name, field, values, with_categories) for name, field, values in series],
        "creator": {"library": "fastpq", "version": _version()},
        "pandas_version": pd.__version__,
    }
    return Table(columns, num_rows=len(frame)), json.dumps(described)


def without_columns(described: str, names: Sequence[str]) -> str:
    """pandas' metadata as JSON without the given columns and index levels."""
    found = json.loads(described)
    found["columns"] = [entry for entry in found["columns"] if entry["field_name"] not in names]
    found["index_columns"] = [entry for entry in found["index_columns"] if entry not in names]
    return json.dumps(found)


def _version() -> str:
    from fastpq.version import VERSION

    return VERSION


def _json_name(name: Any) -> str | None:
    return None if name is None else str(name)


def _column(values: pandas.Series[Any], name: str) -> AnyColumn:
    import pandas as pd

    dtype, missing = values.dtype, values.isna().to_numpy(np.bool_)
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(values, missing, name)
    if isinstance(dtype, pd.SparseDtype):
        return _column(values.sparse.to_dense(), name)
    if isinstance(dtype, pd.DatetimeTZDtype):
        local = values.dt.tz_convert("UTC").dt.tz_localize(None)
        instants = column_from_numpy(_masked(local.to_numpy(), missing), name=name)
        assert isinstance(instants, Column)
        assert isinstance(instants.type.logical, Timestamp)
        type_ = ColumnType(Type.INT64, None, Timestamp(instants.type.logical.unit, utc=True))
        return instants._with(type=type_)
    if isinstance(dtype, pd.ArrowDtype):
        return column_from_numpy(values.array.__arrow_array__(), name=name)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return column_from_numpy(_masked(values.to_numpy(), missing), name=name)
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        filled = values.array.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        return column_from_numpy(np.ma.MaskedArray(filled, missing), name=name)
    objects = values.to_numpy(dtype=object)
    if missing.any():
        objects = objects.copy()
        objects[missing] = None
    text = isinstance(dtype, pd.StringDtype)
    return column_from_numpy(objects, type=_TEXT if text else None, nullable=True if text else None, name=name)


def _masked(values: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ma.MaskedArray(values, missing) if missing.any() else values


def _categories(values: pandas.Series[Any], missing: np.ndarray[Any, Any], name: str) -> AnyColumn:
    entries = _column(values.cat.categories.to_series(), name)
    codes = values.cat.codes.to_numpy(np.int32)
    nulls = int(missing.sum())
    validity = pack_bitmap(~missing) if nulls else None
    if entries.is_nested or entries.null_count or not len(entries):
        return _column(values.astype(object), name)
    if not entries.type.is_variable:
        taken = entries.take(np.where(missing, 0, codes).astype(np.int64))
        return taken._with(validity=validity, null_count=nulls, nullable=True, arrow=None)
    entries = entries._with(nullable=False, arrow=None)
    coded = DictionaryValues(np.where(missing, 0, codes).astype(np.int32), entries, bool(values.cat.ordered))
    return Column(entries.type, coded, validity, nulls)


def _described(name: Any, field: str | None, values: pandas.Series[Any], with_categories: bool = False) -> dict[str, Any]:
    """Entry of a column in pandas' metadata; "categories" is fastpq's own, since Parquet keeps no order of categories."""
    import pandas as pd

    dtype = values.dtype
    found = {"name": _json_name(name), "field_name": field, "numpy_type": str(dtype), "metadata": None}
    if isinstance(dtype, pd.CategoricalDtype):
        details: dict[str, Any] = {"ordered": bool(dtype.ordered)}
        if with_categories:
            details["num_categories"] = len(dtype.categories)
            names = dtype.categories.tolist()
            if all(type(entry) in (str, int) for entry in names):
                details["categories"] = names
        return found | {"pandas_type": "categorical", "numpy_type": str(values.cat.codes.dtype), "metadata": details}
    if isinstance(dtype, pd.DatetimeTZDtype):
        zone = {"timezone": str(dtype.tz)}
        return found | {"pandas_type": "datetimetz", "numpy_type": f"datetime64[{dtype.unit}]", "metadata": zone}
    inferred = {"string": "unicode", "integer": "int64", "floating": "float64", "boolean": "bool", "datetime64": "datetime"}
    kind = pd.api.types.infer_dtype(values, skipna=True)
    return found | {"pandas_type": str(dtype) if getattr(dtype, "kind", "O") in "biuf" else inferred.get(kind, kind)}


# ---- to a DataFrame


@dataclass
class PandasMetadata:
    """pandas' metadata of a file, parsed; meaningless entries are left out.

    Attributes:
        columns: entry of each field, by field name.
        index: names of the fields used as index levels.
        range_index: range of a RangeIndex, and its name; None for another index.
        integer_names: whether names of columns are integers.
        columns_name: name of the column index.
    """

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    index: list[str] = field(default_factory=list)
    range_index: tuple[range, str | None] | None = None
    integer_names: bool = False
    columns_name: str | None = None


def pandas_metadata(text: str | None) -> PandasMetadata:
    """Parse pandas' metadata; malformed metadata gives an empty result, since the values of a file do not depend on metadata."""
    try:
        described = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return PandasMetadata()
    if not isinstance(described, dict):
        return PandasMetadata()
    found = PandasMetadata()
    for entry in _dicts(described.get("columns")):
        name = entry.get("field_name") or entry.get("name")
        if isinstance(name, str):
            found.columns[name] = entry
    index = described.get("index_columns")
    found.index = list(dict.fromkeys(entry for entry in index if isinstance(entry, str))) if isinstance(index, list) else []
    for entry in _dicts(index):
        bounds = [entry.get(name) for name in ("start", "stop", "step")]
        if entry.get("kind") == "range" and all(type(bound) is int and abs(bound) < _MAX_INDEX for bound in bounds) and bounds[2]:
            found.range_index = range(*bounds), _text(entry.get("name"))  # type: ignore[arg-type]
    for entry in _dicts(described.get("column_indexes"))[:1]:
        found.integer_names = str(entry.get("numpy_type")).startswith("int")
        found.columns_name = _text(entry.get("name"))
    return found


def _dicts(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def dataframe_of(table: Table, described: PandasMetadata | None = None) -> pandas.DataFrame:
    """A DataFrame of a table.

    Integers and booleans with nulls become pandas' nullable dtypes if named in the metadata, else floats and objects.

    Args:
        table: the columns.
        described: pandas' metadata; None without metadata.

    Raises:
        FormatError: a column's values contradict the metadata.
        UnsupportedError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise UnsupportedError("a DataFrame needs the package pandas (extra: fastpq[pandas])") from error
    described = described or PandasMetadata()
    columns = [(name, _series(name, column, described.columns.get(name, {}))) for name, column in table.items()]
    by_name = dict(columns)
    index = [name for name in described.index if table.names.count(name) == 1]
    kept = [(name, values) for name, values in columns if name not in index]
    frame = pd.DataFrame(dict(enumerate(values for _, values in kept)))
    frame.columns = pd.Index([name for name, _ in kept])
    if not frame.columns.size:
        frame = pd.DataFrame(index=range(table.num_rows))
    if index:
        names = [_text(described.columns.get(name, {"name": name}).get("name")) for name in index]
        levels = [pd.Index(by_name[name], name=label) for name, label in zip(index, names, strict=True)]
        frame.index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=names)
    else:
        frame.index = _range_index(described, table.num_rows)
    if described.integer_names and all(_is_integer(str(name)) for name in frame.columns):
        frame.columns = frame.columns.map(int)
    frame.columns.name = described.columns_name
    return frame


def _range_index(described: PandasMetadata, rows: int) -> Any:
    import pandas as pd

    if described.range_index:
        bounds, name = described.range_index
        if len(bounds) == rows:
            return pd.RangeIndex(bounds.start, bounds.stop, bounds.step, name=name)
    return pd.RangeIndex(rows)


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 19 and str(int(text)) == text


def _series(name: str, column: AnyColumn, details: dict[str, Any]) -> Any:
    import pandas as pd

    if str(details.get("numpy_type")).endswith("[pyarrow]"):
        return _arrow_series(column)
    if column.is_nested:
        return pd.Series(column.to_pylist(), dtype=object)
    try:
        return _flat_series(column, str(details.get("numpy_type") or ""), details)
    except ParquetError as error:
        raise error.at(column=name) from None


def _arrow_series(column: AnyColumn) -> Any:
    """A pandas Series with an Arrow dtype, of the column's Arrow type."""
    import pandas as pd

    try:
        import pyarrow as pa
    except ImportError as error:
        raise UnsupportedError("pandas' Arrow dtypes need the package pyarrow") from error
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(column)])))


def _flat_series(column: Column, numpy_type: str, details: dict[str, Any]) -> Any:
    import pandas as pd

    logical, metadata = column.type.logical, details.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if details.get("pandas_type") == "categorical":
        values = pd.Series(column.to_pylist())
        known = metadata.get("categories")
        if isinstance(column.values, DictionaryValues) and column.values.is_ordered:
            known = column.values.dictionary.to_pylist()
        listed = [entry for entry in known if type(entry) in (str, int)] if isinstance(known, list) else []
        # categories beyond the metadata's may come from a DataFrame appended to the file later
        categories = list(dict.fromkeys([*listed, *values.dropna().unique().tolist()]))
        return pd.Series(pd.Categorical(values, categories, ordered=bool(metadata.get("ordered"))))
    if column.type.is_text:
        text = numpy_type if numpy_type in ("object", "str", "string") else None
        return pd.Series(column.to_pylist(), dtype=text if text or len(column) else "str")
    dtype = column.type.numpy_dtype
    if isinstance(logical, Time) and not numpy_type.startswith("timedelta64"):
        return _time_series(column, logical)
    if isinstance(logical, Date) or dtype.kind in "OV":
        return pd.Series(column.to_pylist(), dtype=object)
    if dtype.kind in "biu" and (column.null_count or numpy_type[:1].isupper() or numpy_type == "boolean"):
        return _nullable_series(column, numpy_type)
    values = column.to_numpy(nulls="nan")
    if dtype.kind in "iuf" and numpy_type in ("float64", "float32"):     # a column of NaN alone may be stored as another type
        values = np.asarray(values).astype(numpy_type)
    if isinstance(logical, Timestamp) and logical.utc:
        return _in_zone(pd.Series(values).dt.tz_localize("UTC"), metadata.get("timezone"))
    return pd.Series(values)


def _time_series(column: Column, logical: Time) -> Any:
    """Times of day as datetime.time, as in pyarrow; timedelta64 for a column with a time that datetime.time cannot hold."""
    import pandas as pd

    ticks, day = fixed_values(column).astype(np.int64), UNITS_A_DAY[logical.unit]
    if bool((ticks < 0).any() or (ticks >= day).any()) or (logical.unit == "ns" and bool((ticks % 1000).any())):
        return pd.Series(column.to_numpy(nulls="nan"))
    if logical.unit == "ns":
        column = column._with(type=ColumnType(Type.INT64, None, Time("us")), values=ticks // 1000)
    return pd.Series(column.to_pylist(), dtype=object)


def _in_zone(instants: Any, zone: Any) -> Any:
    if not isinstance(zone, str):
        return instants
    try:
        return instants.dt.tz_convert(zone)
    except (LookupError, ValueError, OSError) as error:     # zoneinfo's errors: unknown name, malformed name, name of a folder
        raise FormatError(f"pandas' metadata names a time zone {zone!r} that is not known here") from error


def _nullable_series(column: Column, numpy_type: str) -> Any:
    import pandas as pd

    extension = {"boolean", *(f"{sign}nt{width}" for sign in ("I", "UI") for width in (8, 16, 32, 64))}
    if numpy_type in extension:
        try:
            return pd.Series(column.to_pylist(), dtype=numpy_type)
        except (TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"pandas' metadata says {numpy_type} of values that are {column.type}") from error
    if column.type.physical == Type.BOOLEAN:
        return pd.Series(column.to_pylist(), dtype=object)
    values = np.ma.getdata(column.to_numpy()).astype(np.float64)
    values[~column.validity_mask()] = np.nan
    return pd.Series(values)

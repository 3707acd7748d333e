"""pandas DataFrames to tables and back, with the metadata under which pandas, pyarrow and fastparquet keep what Parquet does not:
the index, categories, time zones, dtypes and names that are no text (pandas.pydata.org, "Storing pandas DataFrame objects").

pyarrow is not needed. pandas itself is imported only by whoever has a DataFrame or asks for one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.conversion.numpy_input import column_from_numpy
from fastpq.errors import ParquetError, SchemaError, UnsupportedError
from fastpq.file import ParquetFile
from fastpq.schema import ColumnKey
from fastpq.table import AnyColumn, Column, Table
from fastpq.types import ColumnType, Date, String, Timestamp, Type
from fastpq.values.bitmap import pack_bitmap
from fastpq.values.layouts import DictionaryValues

if TYPE_CHECKING:
    import pandas

PANDAS_KEY = "pandas"
_TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())


def is_dataframe(obj: object) -> bool:
    """Whether an object is a pandas DataFrame, without importing pandas."""
    return type(obj).__name__ == "DataFrame" and type(obj).__module__.split(".")[0] == "pandas"


# ---- to a table


def table_from_dataframe(frame: pandas.DataFrame, *, with_categories: bool) -> tuple[Table, str]:
    """The columns of a DataFrame and the levels of its index, and the JSON that says which is which.

    Missing values (NaN, NaT, None, NA) are null, as pyarrow has them. A RangeIndex is kept in the JSON alone.

    Args:
        frame: whose columns have one level of names.
        with_categories: whether the JSON lists the categories of categorical columns, which are values.

    Raises:
        SchemaError: two columns of one name, or values that no column holds.
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
    """The JSON of a DataFrame that lacks some columns or levels of the index."""
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
        return Column(type_, instants.values, instants.validity, instants.null_count, instants.nullable)
    if isinstance(dtype, pd.ArrowDtype):
        return column_from_numpy(values.array, name=name)
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
    if not isinstance(entries, Column) or entries.null_count or not len(entries):
        return _column(values.astype(object), name)
    if not entries.type.is_variable:
        taken = entries.take(np.where(missing, 0, codes).astype(np.int64))
        return Column(entries.type, taken.values, validity, nulls)
    entries = Column(entries.type, entries.values, nullable=False)
    return Column(entries.type, DictionaryValues(np.where(missing, 0, codes).astype(np.int32), entries), validity, nulls)


def _described(name: Any, field: str | None, values: pandas.Series[Any], with_categories: bool = False) -> dict[str, Any]:
    """How pandas' metadata describes a column; "categories" is of our own, for Parquet keeps no order of them."""
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


def read_pandas(where: Any, columns: Iterable[ColumnKey] | None = None, **options: Any) -> pandas.DataFrame:
    """Read a file as a pandas DataFrame, with the index, categories and dtypes that its metadata tells of.

    Of categories that pyarrow wrote, the order is that in which they appear, for it stands in pyarrow's own metadata.

    Args:
        where: as for ParquetFile.
        columns: as for ``ParquetFile.read``; the index comes in any case.
        **options: ``filters`` and ``row_groups`` as for ``ParquetFile.read``, others as for ParquetFile.

    Raises:
        UnsupportedError: pandas is not installed.
        ParquetError: as ParquetFile and ``ParquetFile.read``.
    """
    reading = {name: options.pop(name) for name in ("filters", "row_groups") if name in options}
    with ParquetFile(where, **options) as file:
        described = _parsed(file.metadata.key_value_metadata.get(PANDAS_KEY))
        if columns is not None:
            index = [name for name in described.get("index_columns", []) if name in file.schema.names]
            columns = [*columns, *(name for name in index if name not in columns)]
        return dataframe_of(file.read(columns, **reading), described)


def dataframe_of(table: Table, described: dict[str, Any] | None = None) -> pandas.DataFrame:
    """A DataFrame of a table.

    Integers and booleans with nulls become pandas' nullable dtypes where the metadata says so, else floats and objects.

    Args:
        table: the columns.
        described: pandas' metadata, parsed; None where there is none.

    Raises:
        UnsupportedError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise UnsupportedError("a DataFrame needs the package pandas (extra: fastpq[pandas])") from error
    described = described or {}
    details = {entry.get("field_name") or entry.get("name"): entry for entry in _entries(described, "columns")}
    columns = {name: _series(name, column, details.get(name, {})) for name, column in table.items()}
    index = [entry for entry in described.get("index_columns", []) if isinstance(entry, str) and entry in columns]
    frame = pd.DataFrame({name: values for name, values in columns.items() if name not in index})
    if not frame.columns.size:
        frame = pd.DataFrame(index=range(table.num_rows))
    if index:
        names = [details.get(name, {}).get("name") for name in index]
        levels = [pd.Index(columns[name], name=label) for name, label in zip(index, names, strict=True)]
        frame.index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=names)
    else:
        frame.index = _range_index(described, table.num_rows)
    return _with_column_names(frame, described)


def _parsed(text: str | None) -> dict[str, Any]:
    """The metadata; nothing where it is no JSON object, for the values do not depend on it."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("index_columns", []), list):
        return {}
    return found


def _entries(described: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = described.get(key)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _range_index(described: dict[str, Any], rows: int) -> Any:
    import pandas as pd

    for entry in described.get("index_columns", []):
        if isinstance(entry, dict) and entry.get("kind") == "range":
            bounds = [entry.get(name) for name in ("start", "stop", "step")]
            if all(type(bound) is int for bound in bounds) and bounds[2] and len(range(*bounds)) == rows:  # type: ignore[arg-type]
                return pd.RangeIndex(*bounds, name=entry.get("name"))
    return pd.RangeIndex(rows)


def _with_column_names(frame: pandas.DataFrame, described: dict[str, Any]) -> pandas.DataFrame:
    """Names that were integers are integers again, and the list of names has its name."""
    for entry in _entries(described, "column_indexes")[:1]:
        if str(entry.get("numpy_type")).startswith("int") and all(_is_integer(str(name)) for name in frame.columns):
            frame.columns = frame.columns.map(int)
        frame.columns.name = entry.get("name")
    return frame


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 19


def _series(name: str, column: AnyColumn, details: dict[str, Any]) -> Any:
    import pandas as pd

    if not isinstance(column, Column):
        return pd.Series(column.to_pylist(), dtype=object)
    try:
        return _flat_series(column, str(details.get("numpy_type") or ""), details)
    except ParquetError as error:
        raise error.at(column=name) from None


def _flat_series(column: Column, numpy_type: str, details: dict[str, Any]) -> Any:
    import pandas as pd

    logical, metadata = column.type.logical, details.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if details.get("pandas_type") == "categorical":
        values = pd.Series(column.to_pylist())
        known = metadata.get("categories")
        listed = [entry for entry in known if type(entry) in (str, int)] if isinstance(known, list) else []
        # of a later DataFrame of the file there may be more
        categories = list(dict.fromkeys([*listed, *values.dropna().unique().tolist()]))
        return pd.Series(pd.Categorical(values, categories, ordered=bool(metadata.get("ordered"))))
    if column.type.is_text:
        text = numpy_type if numpy_type in ("object", "str", "string") else None
        return pd.Series(column.to_pylist(), dtype=text if text or len(column) else "str")
    dtype = column.type.numpy_dtype
    if isinstance(logical, Date) or dtype.kind in "OV":
        return pd.Series(column.to_pylist(), dtype=object)
    if dtype.kind in "biu" and (column.null_count or numpy_type[:1].isupper() or numpy_type == "boolean"):
        return _nullable_series(column, numpy_type)
    values = column.to_numpy(nulls="nan")
    if dtype.kind in "iuf" and numpy_type in ("float64", "float32"):     # as it was; a column of one NaN may be anything
        values = np.asarray(values).astype(numpy_type)
    if isinstance(logical, Timestamp) and logical.utc:
        zone = metadata.get("timezone")
        aware = pd.Series(values).dt.tz_localize("UTC")
        return aware.dt.tz_convert(zone) if isinstance(zone, str) else aware
    return pd.Series(values)


def _nullable_series(column: Column, numpy_type: str) -> Any:
    import pandas as pd

    extension = {"boolean", *(f"{sign}nt{width}" for sign in ("I", "UI") for width in (8, 16, 32, 64))}
    if numpy_type in extension:
        return pd.Series(column.to_pylist(), dtype=numpy_type)
    if column.type.physical == Type.BOOLEAN:
        return pd.Series(column.to_pylist(), dtype=object)
    values = np.ma.getdata(column.to_numpy()).astype(np.float64)
    values[~column.validity_mask()] = np.nan
    return pd.Series(values)

"""Tables from pandas DataFrames, with pandas' metadata for everything that neither Parquet's nor Arrow's types can express.

Columns have the Arrow types that pyarrow would give them, so that all readers find time zones, units, durations, categories,
periods and intervals in ARROW:schema. pyarrow is not needed. pandas is imported only when a caller passes a DataFrame.
"""

from __future__ import annotations

import datetime
import decimal
import json
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from fastpq.arrays.bitmap import validity_of
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.layouts import empty_binary
from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.nodes import NULLABLE, ORDERED, FieldNode
from fastpq.arrays.strings import scan_objects
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.common.lazy import LazyModule
from fastpq.convert.categories import MOST_CATEGORIES, categories_as_json
from fastpq.convert.dataframe_labels import label_entries, label_text, level_name, levels_of
from fastpq.convert.numpy_input import column_from_numpy, map_column
from fastpq.convert.pandas_metadata import Entry
from fastpq.convert.time_zones import zone_name
from fastpq.errors import ParquetError, SchemaError
from fastpq.schema.nested_types import DataType, StructType
from fastpq.schema.types import ColumnType, Date, Decimal, String, Time, Timestamp, Type, Unknown
from fastpq.version import VERSION

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

_PACKAGE = __name__.partition(".")[0]
_TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())
_INTEGERS = {"int8": "c", "int16": "s", "int32": "i"}       # Arrow formats for the codes of categories, by dtype
_EXTENSION_NAME, _EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"


def is_dataframe(obj: object) -> bool:
    """Whether an object is a pandas DataFrame, without importing pandas."""
    return type(obj).__name__ == "DataFrame" and type(obj).__module__.split(".")[0] == "pandas"


def column_from_pandas(values: Any, name: str) -> AnyColumn:
    """Return a pandas array or index as a column. Missing values become null.

    Args:
        values: an ExtensionArray or an Index.
        name: column name, for errors.

    Raises:
        SchemaError: unsupported values.
    """
    table, _ = table_from_dataframe(pd.DataFrame({name: pd.Series(values)}), with_categories=False, index=False)
    return table.columns[0]


def table_from_dataframe(
    frame: pd.DataFrame, *, with_categories: bool, index: bool | None = None, maps: Mapping[str, DataType] | None = None
) -> tuple[Table, str]:
    """Return a DataFrame's columns and index levels as a table, and pandas' metadata as JSON.

    Missing values (NaN, NaT, None, NA) become null, and all columns are nullable, as in pyarrow.

    Args:
        frame: the DataFrame.
        with_categories: whether the JSON lists categories and attributes. Both are data, which plaintext metadata must not hold.
        index: whether to keep the index as columns. None keeps a RangeIndex in the JSON only.
        maps: types that contain maps, by column name. Their objects are dicts or pair lists.

    Raises:
        SchemaError: two columns with one name, or unsupported values.
    """
    series = [(name, label_text(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
    fields = {field for _, field, _ in series}
    if len(fields) < len(series):
        twice = sorted(field for field, count in Counter(field for _, field, _ in series).items() if count > 1)
        raise SchemaError(f"the DataFrame has two columns named {', '.join(map(repr, twice[:5]))}: rename one of them")
    levels: list[Any] = []
    if index is not False:
        for number, values in enumerate(levels_of(frame.index)):
            if isinstance(values, pd.RangeIndex) and index is None and frame.index.nlevels == 1:
                bounds = {"start": values.start, "stop": values.stop, "step": values.step}
                levels.append({"kind": "range", "name": level_name(values.name), **bounds})
                continue
            field = _name(values.name)
            if field is None or field in fields:
                field = f"__index_level_{number}__"
            if field in fields:
                raise SchemaError("an index without a name needs this field, but a column already has it", column=field)
            fields.add(field)
            levels.append(field)
            series.append((values.name, field, values.to_series(index=range(len(values)))))
    columns: dict[str, AnyColumn] = {}
    entries: list[Entry] = []
    for name, field, values in series:
        try:
            type_ = maps.get(field) if maps and values.dtype == object else None
            columns[field] = _column(values, field) if type_ is None else map_column(values.to_numpy(), type_, field)
            entries.append(_entry(name, field, values, columns[field], with_categories))
            if field in levels:
                entries[-1]["name"] = level_name(name)
        except ParquetError as error:
            raise error.at(column=field) from None
    metadata = {
        "index_columns": levels,
        "column_indexes": label_entries(frame.columns),
        "columns": entries,
        "attributes": _attributes(frame) if with_categories else {},
        "creator": {"library": "fastpq", "version": VERSION},
        "pandas_version": pd.__version__,
    }
    return Table(columns, num_rows=len(frame)), json.dumps(metadata)


def _attributes(frame: pd.DataFrame) -> dict[str, Any]:
    if not frame.attrs:
        return {}
    try:
        attributes: dict[str, Any] = json.loads(json.dumps(frame.attrs))
    except (TypeError, ValueError, RecursionError) as error:
        _warn_caller(f"the attrs of the DataFrame are left out, because JSON cannot hold them: {error}", UserWarning)
        return {}
    return attributes


def _name(name: Any) -> str | None:
    return None if name is None else label_text(name)


# ---- columns


def _column(values: pd.Series[Any], name: str) -> AnyColumn:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(values, name)
    if isinstance(dtype, pd.SparseDtype):
        return _column(pd.Series(values.array.to_dense()), name)
    if isinstance(dtype, pd.ArrowDtype):
        return column_from_numpy(values.array.__arrow_array__(), name=name)
    if isinstance(dtype, pd.PeriodDtype):
        return _periods(values, name)
    if isinstance(dtype, pd.IntervalDtype):
        return _intervals(values, name)
    if isinstance(dtype, pd.StringDtype) and dtype.storage.startswith("pyarrow"):
        return column_from_numpy(values.array.__arrow_array__(), name=name)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return _objects(values, name)
    missing = values.isna().to_numpy(np.bool_)
    if isinstance(dtype, pd.DatetimeTZDtype):
        instants = _moments(values.array.tz_convert("UTC").tz_localize(None).to_numpy(), missing, name)
        assert isinstance(instants.type.logical, Timestamp)
        type_ = ColumnType(Type.INT64, None, Timestamp(instants.type.logical.unit, utc=True))
        return instants._with(type=type_, arrow=FieldNode(f"ts{dtype.unit[0]}:{zone_name(dtype.tz)}"))
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return _moments(values.to_numpy(), missing, name)
    if isinstance(dtype, np.dtype):
        return column_from_numpy(_masked(values.to_numpy(), missing), nullable=True, name=name)
    if getattr(dtype, "kind", "O") in "biuf" and hasattr(dtype, "numpy_dtype"):
        numbers = values.array.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        return column_from_numpy(_masked(numbers, missing), nullable=True, name=name)
    return _objects(values, name)


def _masked(values: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ma.MaskedArray(values, missing) if missing.any() else values


def _moments(values: np.ndarray[Any, Any], missing: np.ndarray[Any, Any], name: str) -> Column:
    """Return timestamps as a column. Seconds are stored as milliseconds, and remain seconds in Arrow."""
    column = column_from_numpy(_masked(values, missing), nullable=True, name=name)
    assert isinstance(column, Column)
    return column.with_arrow(FieldNode("tss:")) if values.dtype == "M8[s]" else column


# Types that have no missing value in pandas: NaN, NaT and NA have other types.
_NEVER_MISSING: set[type] = {str, bytes, bool, int, UUID, list, tuple, dict, np.ndarray}
_NEVER_MISSING |= {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}


def _objects(values: pd.Series[Any], name: str) -> AnyColumn:
    objects = np.ascontiguousarray(values.to_numpy(dtype=object))
    is_text = isinstance(values.dtype, pd.StringDtype)
    type_ = _TEXT if is_text else None
    _, firsts = scan_objects(objects)
    if firsts.keys() <= _NEVER_MISSING:
        return column_from_numpy(objects, type=type_, nullable=True, name=name)
    first = next((value for value in objects if value is not None and value is not pd.NA), None)
    if type(first).__module__.startswith("pandas"):     # Timestamp, Timedelta, Period, Interval
        if isinstance(first, pd.Timestamp):
            inferred_values = pd.Series(pd.to_datetime(values, utc=first.tzinfo is not None))
        else:
            inferred_values = values.infer_objects()
        if inferred_values.dtype != object:
            return _column(inferred_values, name)
    try:
        missing = values.isna().to_numpy(np.bool_)
    except decimal.InvalidOperation as error:
        raise SchemaError("the values contain a signaling NaN", column=name or None) from error
    if missing.any():
        objects = objects.copy()
        objects[missing] = None
    return column_from_numpy(objects, type=type_, nullable=True, name=name)


def _periods(values: pd.Series[Any], name: str) -> AnyColumn:
    """Return period ordinals, with pandas' Arrow extension type."""
    array = values.array
    missing = array.isna()
    ordinals = np.where(missing, 0, array.asi8)
    column = column_from_numpy(_masked(ordinals, missing), nullable=True, name=name)
    details = json.dumps({"freq": array.dtype.name[len("period[") : -1]}).encode()
    return column.with_arrow(FieldNode("l", metadata={_EXTENSION_NAME: b"pandas.period", _EXTENSION_METADATA: details}))


def _intervals(values: pd.Series[Any], name: str) -> AnyColumn:
    """Return both interval ends as a struct column, with pandas' Arrow extension type."""
    array = values.array
    missing = np.asarray(array.isna())
    ends = tuple(_column(pd.Series(end), name) for end in (array.left, array.right))
    ends = tuple(end._with(nullable=True) for end in ends)
    type_ = StructType((ends[0].as_field("left"), ends[1].as_field("right")))
    validity, nulls = validity_of(~missing)
    column = StructColumn._made(type_, ends, len(array), validity=validity, null_count=nulls)
    subtype = _arrow_name(array.dtype.subtype)
    details = json.dumps({"subtype": subtype, "closed": array.dtype.closed}).encode()
    return column.with_arrow(FieldNode("+s", metadata={_EXTENSION_NAME: b"pandas.interval", _EXTENSION_METADATA: details}))


def _arrow_name(dtype: Any) -> str:
    """Return Arrow's name for the dtype that interval ends have."""
    if isinstance(dtype, np.dtype):
        unit = np.datetime_data(dtype)[0] if dtype.kind in "mM" else ""
        return {"M": f"timestamp[{unit}]", "m": f"duration[{unit}]", "f": "double"}.get(dtype.kind, dtype.name)
    return f"timestamp[{dtype.unit}, tz={zone_name(dtype.tz)}]"


def _categories(values: pd.Series[Any], name: str) -> AnyColumn:
    """Return codes into all categories, in their order. Booleans and structs become plain values."""
    codes = values.cat.codes.to_numpy()
    missing = codes < 0
    entries = _column(values.cat.categories.to_series(), name)
    if not len(entries):
        no_codes, no_entries = np.zeros(len(codes), np.int32), Column(_TEXT, empty_binary(0), nullable=False)
        text = Column(_TEXT, DictionaryValues(no_codes, no_entries), *validity_of(~missing))
        return text.with_arrow(_dictionary_field(codes.dtype, FieldNode("u"), False))
    if entries.null_count:
        return _column(values.astype(object), name)
    validity, nulls = validity_of(~missing)
    indices = np.where(missing, 0, codes).astype(np.int32)
    if isinstance(entries, StructColumn) or entries.is_nested or entries.type.physical is Type.BOOLEAN:
        return entries.take(indices.astype(np.int64))._with(validity=validity, null_count=nulls, nullable=True)
    inner = entries.arrow or FieldNode("u" if entries.type.is_text else entries.type.arrow_format)
    if entries.type.is_variable:
        inner = replace(inner, format="u" if entries.type.is_text else "z")
    field = _dictionary_field(codes.dtype, inner, bool(values.cat.ordered))
    values_by_code = DictionaryValues(indices, entries._with(nullable=False, arrow=inner), bool(values.cat.ordered))
    return Column(entries.type, values_by_code, validity, nulls, True, field)


def _dictionary_field(codes: np.dtype[Any], entries: FieldNode, is_ordered: bool) -> FieldNode:
    flags = NULLABLE | (ORDERED if is_ordered else 0)
    return FieldNode(_INTEGERS.get(codes.name, "l"), flags=flags, dictionary=replace(entries, metadata=None))


# ---- entries of the metadata


def _entry(name: Any, field: str, values: pd.Series[Any], column: AnyColumn, with_categories: bool) -> Entry:
    """Return a column's entry in pandas' metadata."""
    dtype = values.dtype
    details: dict[str, Any] = {}
    if isinstance(dtype, pd.SparseDtype):
        details["sparse"] = f"Sparse[{dtype.subtype}]"
        fill = np.asarray(dtype.fill_value)
        if with_categories and fill.dtype.kind in "biuf" and np.isfinite(fill):
            details["fill_value"] = fill.item()
        dtype = dtype.subtype
    is_missing = name is not None and not isinstance(name, tuple) and pd.api.types.is_scalar(name) and pd.isna(name)
    entry: Entry = {"name": None if is_missing else _name(name), "field_name": field}
    if isinstance(dtype, pd.CategoricalDtype):
        details |= {"ordered": bool(dtype.ordered), "categories_type": str(dtype.categories.dtype)}
        if with_categories:
            details["num_categories"] = len(dtype.categories)
            if len(dtype.categories) <= MOST_CATEGORIES:
                details["categories"] = categories_as_json(_column(dtype.categories.to_series(), field))
        return entry | {"pandas_type": "categorical", "numpy_type": str(values.cat.codes.dtype), "metadata": details}
    if isinstance(dtype, pd.DatetimeTZDtype):
        zone = {"timezone": zone_name(dtype.tz)}
        return entry | {"pandas_type": "datetimetz", "numpy_type": f"datetime64[{dtype.unit}]", "metadata": zone}
    numpy_type = str(dtype)
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "python":
        details["storage"] = "python"
    elif isinstance(dtype, pd.ArrowDtype):
        pandas_dtype = _dtype_by_name(numpy_type)
        numpy_type = "object" if pandas_dtype is None else numpy_type   # pd.read_parquet fails at names that pandas does not know
        if pandas_dtype != dtype:
            details["storage"] = "arrow"
    return entry | {"pandas_type": _kind(column), "numpy_type": numpy_type, "metadata": details or None}


def _dtype_by_name(name: str) -> Any:
    """Return the dtype with a name, or None if pandas does not know the name."""
    try:
        return pd.api.types.pandas_dtype(name)
    except (TypeError, NotImplementedError, ValueError):
        return None


def _kind(column: AnyColumn) -> str:
    """Return pandas' name for the column type (``pandas_type``)."""
    if not isinstance(column, Column):
        return "list[object]" if column.NOUN == "list" else "object"
    match column.type.logical:
        case Unknown():
            return "empty"
        case String():
            return "unicode"
        case Decimal():
            return "decimal"
        case Date():
            return "date"
        case Time():
            return "time"
        case Timestamp(_, utc):
            return "datetimetz" if utc else "datetime"
    if column.arrow is not None and column.arrow.metadata:
        return "object"
    if column.type.physical is Type.BYTE_ARRAY:
        return "bytes"
    dtype = column.type.numpy_dtype
    if column.arrow is not None and column.arrow.is_duration:
        return "object"
    return dtype.name if dtype.kind in "biuf" else "object"

def _warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, and let the warning point at the innermost line that is not in fastpq.

    Args:
        message: the warning's text.
        category: the warning's class.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)

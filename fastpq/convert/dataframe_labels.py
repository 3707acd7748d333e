"""DataFrame column labels as field names, and back by the ``column_indexes`` of pandas' metadata.

Field names are texts. A label becomes its str. A label with several levels becomes the str of a tuple of texts, as
in pyarrow. A level's entry names the dtype that turns the texts into labels again.
"""

from __future__ import annotations

import ast
import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.common.lazy import LazyModule
from fastpq.convert.pandas_metadata import Entry, PandasMetadata, details_of, name_of_level, text_or_none
from fastpq.convert.time_zones import zone_name
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

# Longest text for a label with several levels, in characters. It bounds the parser for Python literals.
_LONGEST_TUPLE = 10_000


def label_text(label: Any) -> str:
    """Return the field name for a column label.

    Raises:
        SchemaError: the label is bytes that are not UTF-8.
    """
    if isinstance(label, tuple):
        return str(tuple(map(label_text, label)))
    if isinstance(label, bytes):
        try:
            return label.decode()
        except UnicodeDecodeError as error:
            raise SchemaError(f"the column label {label!r} is not UTF-8") from error
    return str(label)


def label_entries(labels: pd.Index[Any]) -> list[Entry]:
    """Return an entry for each column label level, for ``column_indexes``."""
    return [_entry(level) for level in levels_of(labels)]


def levels_of(index: pd.Index[Any]) -> list[pd.Index[Any]]:
    """Return the values that each index level has, in order."""
    if not isinstance(index, pd.MultiIndex):
        return [index]
    nameless = index.set_names([None] * index.nlevels)       # pandas takes an integer for the level name, not for its number
    return [nameless.get_level_values(number).rename(name) for number, name in enumerate(index.names)]


def _entry(level: pd.Index[Any]) -> Entry:
    name = level_name(level.name)
    dtype = level.dtype
    entry: Entry = {"name": name, "field_name": name, "pandas_type": str(dtype), "numpy_type": str(dtype), "metadata": None}
    if isinstance(dtype, np.dtype) and dtype.kind in "iufM":
        return entry
    if _is_extended_number(dtype):
        return entry | {"pandas_type": str(dtype.numpy_dtype)}
    if isinstance(dtype, pd.DatetimeTZDtype):
        zone = {"timezone": zone_name(dtype.tz)}
        return entry | {"pandas_type": "datetimetz", "numpy_type": f"datetime64[{dtype.unit}]", "metadata": zone}
    inferred_kind = pd.api.types.infer_dtype(level, skipna=True)
    if inferred_kind in ("decimal", "bytes"):
        return entry | {"pandas_type": inferred_kind, "numpy_type": "object"}
    details: dict[str, Any] = {"encoding": "UTF-8"}
    text = entry | {"pandas_type": "unicode", "numpy_type": "str" if str(dtype) == "str" else "object", "metadata": details}
    if str(dtype) == "str":
        return text
    if isinstance(dtype, pd.CategoricalDtype):
        if pd.api.types.infer_dtype(dtype.categories) == "string":
            details |= {"labels": "category", "categories": dtype.categories.tolist(), "ordered": bool(dtype.ordered)}
    elif inferred_kind in ("string", "empty"):
        details["labels"] = str(dtype)
    elif inferred_kind == "date":
        details["labels"] = "date"
    elif str(dtype) == "bool" or isinstance(dtype, pd.PeriodDtype) or getattr(dtype, "kind", "O") == "m":
        details["labels"] = str(dtype)
    return text


def _is_extended_number(dtype: Any) -> bool:
    """Whether a dtype is a nullable or Arrow dtype from pandas for integers or floats."""
    if getattr(dtype, "kind", "O") not in "iuf" or not hasattr(dtype, "numpy_dtype"):
        return False
    return bool(np.dtype(dtype.numpy_dtype).kind in "iuf")


def level_name(name: Any) -> str | int | None:
    """Return the level name for the metadata: an integer unchanged, as in pyarrow, and any other name as text."""
    if name is None or (isinstance(name, int | np.integer) and not isinstance(name, bool)):
        return None if name is None else int(name)
    return label_text(name)


def column_labels(fields: Sequence[str], metadata: PandasMetadata) -> pd.Index[Any]:
    """Return column labels for fields. They are texts if the metadata have no labels, or labels that contradict the texts.

    Args:
        fields: field names.
        metadata: pandas' file metadata.
    """
    texts: list[str | None] = []
    for name in fields:
        label = metadata.columns.get(name, {"name": name}).get("name", name)
        texts.append(label if isinstance(label, str) else None if label is None or label != label else name)
    levels = metadata.labels
    if len(levels) > 1 and fields:
        rows = [_tuple(text, len(levels)) for text in texts]
        if None not in rows:
            parts = [_typed(list(values), entry) for values, entry in zip(zip(*rows, strict=True), levels, strict=True)]
            return pd.MultiIndex.from_arrays(parts, names=[name_of_level(entry.get("name")) for entry in levels])
    if len(levels) > 1 and not fields:
        parts = [_typed([], entry) for entry in levels]
        return pd.MultiIndex.from_arrays(parts, names=[name_of_level(entry.get("name")) for entry in levels])
    labels = _typed(texts, levels[0]) if levels else _of_texts(texts)
    labels.name = name_of_level(levels[0].get("name")) if levels else None
    return labels


def _tuple(text: str | None, length: int) -> tuple[str, ...] | None:
    """Return the texts in a label with several levels, or None if the text is not such a label."""
    if text is None or len(text) > _LONGEST_TUPLE:
        return None
    try:
        literal = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(literal, tuple) and len(literal) == length and all(isinstance(part, str) for part in literal):
        return literal
    return None


def _typed(texts: list[str | None], entry: Entry) -> pd.Index[Any]:
    """Return the labels for a level, or the texts themselves if the entry does not fit them."""
    details = details_of(entry)
    kinds = (details.get("labels"), entry.get("pandas_type"), entry.get("numpy_type"))
    for kind in filter(None, map(text_or_none, kinds)):
        convert = _conversion(kind, entry)
        if convert is None:
            continue
        try:
            return convert(texts)
        except (ValueError, TypeError, OverflowError, LookupError, OSError, ArithmeticError):
            break       # another writer's entry makes no sense
    if not texts and entry.get("numpy_type") == "str":
        return pd.Index([], dtype="str")
    return _of_texts(texts)


def _of_texts(texts: list[str | None]) -> pd.Index[Any]:
    """Return labels that are texts. They become objects if a text has surrogates, for bytes that are not UTF-8 in the file."""
    try:
        return pd.Index(texts, tupleize_cols=False)
    except UnicodeEncodeError:
        return pd.Index(texts, dtype=object, tupleize_cols=False)


def _conversion(kind: str, entry: Entry) -> Callable[[list[Any]], pd.Index[Any]] | None:
    """Return the function that turns texts into labels with a dtype or a kind from pandas' metadata. None if it is unknown."""
    details, numpy_type = details_of(entry), str(entry.get("numpy_type"))
    if kind.startswith(("int", "uint")) and kind != "interval":
        plain, dtype = _dtypes(numpy_type, ("int", "uint"), "int64")
        return lambda texts: pd.Index(np.array([_integer(text) for text in texts], plain), dtype=dtype)
    if kind.startswith("float"):
        plain, dtype = _dtypes(numpy_type, ("float", "double"), "float64")
        return lambda texts: pd.Index(np.array([float(text) for text in texts], plain), dtype=dtype)
    if kind == "datetimetz":
        return lambda texts: _moments(texts, numpy_type, utc=True).tz_convert(str(details["timezone"]))
    if kind.startswith("datetime"):
        return lambda texts: _moments(texts, numpy_type)
    if kind.startswith("timedelta64["):
        return lambda texts: pd.to_timedelta(texts).astype(kind)
    if kind.startswith("period["):
        return lambda texts: pd.PeriodIndex(texts, dtype=kind)
    match kind:
        case "bool":
            return lambda texts: pd.Index(np.array([_FLAGS[text] for text in texts], np.bool_))
        case "decimal":
            return lambda texts: pd.Index([decimal.Decimal(text) for text in texts], dtype=object)
        case "bytes":
            return lambda texts: pd.Index([text.encode() for text in texts], dtype=object)
        case "date":
            return lambda texts: pd.Index([dt.date.fromisoformat(text) for text in texts], dtype=object)
        case "category":
            return lambda texts: pd.CategoricalIndex(texts, details["categories"], ordered=bool(details.get("ordered")))
        case "object" if details.get("labels") == "object":
            return lambda texts: pd.Index(texts, dtype=object, tupleize_cols=False)
        case "string" if details.get("labels") == "string":
            return lambda texts: pd.Index(texts, dtype="string")
    return None


def _dtypes(name: str, stems: tuple[str, ...], default: str) -> tuple[str, str | None]:
    """Return NumPy's dtype for labels that are numbers, and pandas' nullable or Arrow dtype for a name, or None for NumPy's own.

    Args:
        name: dtype name.
        stems: beginnings that names have in this kind.
        default: NumPy's dtype if the name has another kind.
    """
    if not name.lower().startswith(stems):
        return default, None
    if name.endswith("[pyarrow]"):
        return default, name if find_spec("pyarrow") else None
    return name.lower(), None if name.islower() else name


_FLAGS = {"True": True, "False": False}


def _integer(text: str) -> int:
    if len(text) > 20 or str(int(text)) != text:
        raise ValueError(f"{text!r} is not the label of an integer")
    return int(text)


def _moments(texts: list[str], numpy_type: str, utc: bool = False) -> Any:
    moments: Any = pd.DatetimeIndex(pd.to_datetime(texts, format="ISO8601", utc=utc))
    return moments.as_unit(np.datetime_data(np.dtype(numpy_type))[0]) if numpy_type.startswith("datetime64[") else moments


def fields_by_label(fields: Sequence[str], metadata: PandasMetadata) -> dict[Any, str]:
    """Return the field for each column label that is not text. For a file whose labels are text, it is empty.

    Args:
        fields: field names.
        metadata: pandas' file metadata.
    """
    if not metadata.labels or (len(metadata.labels) == 1 and metadata.labels[0].get("pandas_type") == "unicode"):
        return {}
    names = [name for name in fields if name not in metadata.index]
    return {label: name for name, label in zip(names, column_labels(names, metadata), strict=True) if not isinstance(label, str)}

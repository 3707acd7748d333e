"""Column labels of DataFrames as names of fields, and back by the ``column_indexes`` of pandas' metadata.

Names of fields are texts. The text of a label is its str; of several levels, the str of a tuple of texts, as in pyarrow.
The entry of a level has the dtype by which the texts become labels again.
"""

from __future__ import annotations

import ast
import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.convert.pandas_metadata import Entry, PandasMetadata, details_of, name_of_level, text_or_none
from fastpq.convert.time_zones import zone_name
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    import pandas

# Longest text of the labels of several levels, in characters: bounds the parser of Python's literals.
_LONGEST_TUPLE = 10_000


def label_text(label: Any) -> str:
    """The name of the field of a column label.

    Raises:
        SchemaError: bytes that are not UTF-8.
    """
    if isinstance(label, tuple):
        return str(tuple(map(label_text, label)))
    if isinstance(label, bytes):
        try:
            return label.decode()
        except UnicodeDecodeError as error:
            raise SchemaError(f"the label {label!r} of a column is not UTF-8") from error
    return str(label)


def label_entries(labels: pandas.Index[Any]) -> list[Entry]:
    """The entries of the levels of column labels, for ``column_indexes``."""
    return [_entry(level) for level in levels_of(labels)]


def levels_of(index: pandas.Index[Any]) -> list[pandas.Index[Any]]:
    """The values of each level of an index, in order; pandas takes an integer for the name of a level before its number."""
    import pandas as pd

    if not isinstance(index, pd.MultiIndex):
        return [index]
    unnamed = index.set_names([None] * index.nlevels)
    return [unnamed.get_level_values(number).rename(name) for number, name in enumerate(index.names)]


def _entry(level: pandas.Index[Any]) -> Entry:
    import pandas as pd

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
    inferred = pd.api.types.infer_dtype(level, skipna=True)
    if inferred in ("decimal", "bytes"):
        return entry | {"pandas_type": inferred, "numpy_type": "object"}
    details: dict[str, Any] = {"encoding": "UTF-8"}
    text = entry | {"pandas_type": "unicode", "numpy_type": "str" if str(dtype) == "str" else "object", "metadata": details}
    if str(dtype) == "str":
        return text
    if isinstance(dtype, pd.CategoricalDtype):
        if pd.api.types.infer_dtype(dtype.categories) == "string":
            details |= {"labels": "category", "categories": dtype.categories.tolist(), "ordered": bool(dtype.ordered)}
    elif inferred in ("string", "empty"):
        details["labels"] = str(dtype)
    elif inferred == "date":
        details["labels"] = "date"
    elif str(dtype) == "bool" or isinstance(dtype, pd.PeriodDtype) or getattr(dtype, "kind", "O") == "m":
        details["labels"] = str(dtype)
    return text


def _is_extended_number(dtype: Any) -> bool:
    """Whether a dtype is one of pandas' nullable or Arrow dtypes of integers or floats."""
    if getattr(dtype, "kind", "O") not in "iuf" or not hasattr(dtype, "numpy_dtype"):
        return False
    return bool(np.dtype(dtype.numpy_dtype).kind in "iuf")


def level_name(name: Any) -> str | int | None:
    """The name of a level in the metadata: an integer as such, as in pyarrow; any other name as text."""
    if name is None or (isinstance(name, int | np.integer) and not isinstance(name, bool)):
        return None if name is None else int(name)
    return label_text(name)


def column_labels(fields: Sequence[str], described: PandasMetadata) -> pandas.Index[Any]:
    """The column labels of fields; text where the metadata have no labels, or labels in contradiction to the text.

    Args:
        fields: names of the fields.
        described: pandas' metadata of the file.
    """
    import pandas as pd

    texts: list[str | None] = []
    for name in fields:
        label = described.columns.get(name, {"name": name}).get("name", name)
        texts.append(label if isinstance(label, str) else None if label is None or label != label else name)
    levels = described.labels
    if len(levels) > 1 and fields:
        rows = [_tuple(text, len(levels)) for text in texts]
        if None not in rows:
            parts = [_typed(list(values), entry) for values, entry in zip(zip(*rows, strict=True), levels, strict=True)]
            return pd.MultiIndex.from_arrays(parts, names=[name_of_level(entry.get("name")) for entry in levels])
    if len(levels) > 1 and not fields:
        parts = [_typed([], entry) for entry in levels]
        return pd.MultiIndex.from_arrays(parts, names=[name_of_level(entry.get("name")) for entry in levels])
    found = _typed(texts, levels[0]) if levels else _of_texts(texts)
    found.name = name_of_level(levels[0].get("name")) if levels else None
    return found


def _tuple(text: str | None, length: int) -> tuple[str, ...] | None:
    """The texts of a label of several levels; None for any other text."""
    if text is None or len(text) > _LONGEST_TUPLE:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(found, tuple) and len(found) == length and all(isinstance(part, str) for part in found):
        return found
    return None


def _typed(texts: list[str | None], entry: Entry) -> pandas.Index[Any]:
    """The labels of a level; the texts themselves where the entry does not fit them."""
    import pandas as pd

    details = details_of(entry)
    kinds = (details.get("labels"), entry.get("pandas_type"), entry.get("numpy_type"))
    for kind in filter(None, map(text_or_none, kinds)):
        convert = _conversion(kind, entry)
        if convert is None:
            continue
        try:
            return convert(texts)
        except (ValueError, TypeError, OverflowError, LookupError, OSError, ArithmeticError):
            break       # nonsense of a stranger
    if not texts and entry.get("numpy_type") == "str":
        return pd.Index([], dtype="str")
    return _of_texts(texts)


def _of_texts(texts: list[str | None]) -> pandas.Index[Any]:
    """Labels that are texts; objects where a text is no UTF-8 in the file, and pandas' dtype does not hold its surrogates."""
    import pandas as pd

    try:
        return pd.Index(texts, tupleize_cols=False)
    except UnicodeEncodeError:
        return pd.Index(texts, dtype=object, tupleize_cols=False)


def _conversion(kind: str, entry: Entry) -> Callable[[list[Any]], pandas.Index[Any]] | None:
    """The function from texts to labels of a dtype or of a kind of pandas' metadata; None for an unknown kind."""
    import pandas as pd

    details, numpy_type = details_of(entry), str(entry.get("numpy_type"))
    if kind.startswith(("int", "uint")) and kind != "interval":
        plain, dtype = _dtypes(numpy_type, ("int", "uint"), "int64")
        return lambda texts: pd.Index(np.array([_integer(text) for text in texts], plain), dtype=dtype)
    if kind.startswith("float"):
        plain, dtype = _dtypes(numpy_type, ("float", "double"), "float64")
        return lambda texts: pd.Index(np.array([float(text) for text in texts], plain), dtype=dtype)
    if kind == "datetimetz":
        return lambda texts: _instants(texts, numpy_type).tz_convert(str(details["timezone"]))
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
    """NumPy's dtype of labels that are numbers, and pandas' nullable or Arrow dtype of a name; None for NumPy's own.

    Args:
        name: name of the dtype.
        stems: beginnings of names of the kind.
        default: NumPy's dtype for a name of another kind.
    """
    if not name.lower().startswith(stems):
        return default, None
    if name.endswith("[pyarrow]"):
        return default, name if find_spec("pyarrow") else None
    return name.lower(), None if name.islower() else name


_FLAGS = {"True": True, "False": False}


def _integer(text: str) -> int:
    if len(text) > 20 or str(int(text)) != text:
        raise ValueError(f"{text!r} is no label of an integer")
    return int(text)


def _moments(texts: list[str], numpy_type: str) -> Any:
    import pandas as pd

    found = pd.DatetimeIndex(pd.to_datetime(texts, format="ISO8601"))
    return found.as_unit(_unit(numpy_type)) if numpy_type.startswith("datetime64[") else found


def _instants(texts: list[str], numpy_type: str) -> Any:
    import pandas as pd

    found = pd.DatetimeIndex(pd.to_datetime(texts, format="ISO8601", utc=True))
    return found.as_unit(_unit(numpy_type)) if numpy_type.startswith("datetime64[") else found


def _unit(numpy_type: str) -> Any:
    return np.datetime_data(np.dtype(numpy_type))[0]


def fields_by_label(fields: Sequence[str], described: PandasMetadata) -> dict[Any, str]:
    """The field of each column label other than text; empty for files whose labels are text.

    Args:
        fields: names of the fields.
        described: pandas' metadata of the file.
    """
    if not described.labels or (len(described.labels) == 1 and described.labels[0].get("pandas_type") == "unicode"):
        return {}
    kept = [name for name in fields if name not in described.index]
    return {label: name for name, label in zip(kept, column_labels(kept, described), strict=True) if not isinstance(label, str)}

"""pandas' metadata in a file: the JSON under the key "pandas", in the form that pandas, pyarrow and fastparquet share.

The JSON has an entry for each column (``columns``), for each index level (``index_columns``: a field name, or the
bounds for a RangeIndex), and for each column label level (``column_indexes``). Labels are stored as text.
https://pandas.pydata.org/docs/development/developer.html#storing-pandas-dataframe-objects-in-apache-parquet-format

fastpq adds keys to an entry's ``metadata``: ``categories`` and ``categories_type`` for a categorical column, ``storage`` for
text and Arrow dtypes, ``sparse`` for the sparse dtype, and ``labels`` for the dtype if pyarrow cannot read labels from text.
Other readers ignore these keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

PANDAS_KEY = "pandas"
ATTRIBUTES_KEY = "PANDAS_ATTRS"     # a DataFrame's attrs, which pandas stores beside the JSON
_MAX_INDEX = 1 << 62        # bound for start, stop and step of a RangeIndex, which pandas holds as int64

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RangeLevel:
    """A index level that is a RangeIndex and has no field.

    Attributes:
        bounds: the values.
        name: level name.
    """

    bounds: range
    name: str | int | None


@dataclass
class PandasMetadata:
    """A file's parsed pandas metadata. Entries that make no sense are left out.

    Attributes:
        columns: each field's entry, by field name.
        levels: index levels: names of fields, and ranges.
        labels: an entry for each column label level.
        attributes: the DataFrame's ``attrs``.
        text: the JSON, or None.
    """

    columns: dict[str, Entry] = field(default_factory=dict)
    levels: list[str | RangeLevel] = field(default_factory=list)
    labels: list[Entry] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def index(self) -> list[str]:
        """Names of the fields that are index levels."""
        return [level for level in self.levels if isinstance(level, str)]


def pandas_metadata(value_of: Callable[[str], str | None]) -> PandasMetadata:
    """Parse pandas' metadata. Malformed metadata give an empty result, because a file's values do not depend on metadata.

    Args:
        value_of: returns a key's value in the file's or the table's metadata, or None.
    """
    text = value_of(PANDAS_KEY)
    parts, metadata = _object(text), PandasMetadata(text=text)
    for entry in _objects(parts.get("columns")):
        name = entry.get("field_name") or entry.get("name")
        if isinstance(name, str):
            metadata.columns[name] = entry
    index = parts.get("index_columns")
    for each in index if isinstance(index, list) else []:
        level = each if isinstance(each, str) else _range_level(each)
        if level is not None and (isinstance(level, RangeLevel) or level not in metadata.levels):
            metadata.levels.append(level)
    metadata.labels = _objects(parts.get("column_indexes"))
    attrs = parts.get("attributes")
    metadata.attributes = attrs if isinstance(attrs, dict) and attrs else _object(value_of(ATTRIBUTES_KEY))
    return metadata


def without_columns(text: str, names: Sequence[str]) -> str:
    """Return pandas' metadata, as JSON, without some columns and index levels."""
    metadata = json.loads(text)
    metadata["columns"] = [entry for entry in metadata["columns"] if entry["field_name"] not in names]
    metadata["index_columns"] = [entry for entry in metadata["index_columns"] if entry not in names]
    return json.dumps(metadata)


def without_categories(text: str, names: Collection[str]) -> str:
    """Return pandas' metadata, as JSON, without the categories of some columns. Their dictionaries have the entries."""
    metadata = _object(text)
    for entry in _objects(metadata.get("columns")):
        if (entry.get("field_name") or entry.get("name")) in names and isinstance(entry.get("metadata"), dict):
            entry["metadata"] = {key: value for key, value in entry["metadata"].items() if key != "categories"}
    return json.dumps(metadata) if metadata else text


def details_of(entry: Entry) -> Entry:
    """Return an entry's ``metadata``, or an empty dict."""
    details = entry.get("metadata")
    return details if isinstance(details, dict) else {}


def text_or_none(value: Any) -> str | None:
    """Return a text unchanged, and None for anything else."""
    return value if isinstance(value, str) else None


def name_of_level(name: Any) -> str | int | None:
    """Return the level name in an index or in labels: a text or an integer, and None for anything else."""
    return name if isinstance(name, str) or type(name) is int else None


def _range_level(entry: Any) -> RangeLevel | None:
    if not isinstance(entry, dict) or entry.get("kind") != "range":
        return None
    bounds = [entry.get(name) for name in ("start", "stop", "step")]
    if not all(type(bound) is int and abs(bound) < _MAX_INDEX for bound in bounds) or not bounds[2]:
        return None
    return RangeLevel(range(*bounds), name_of_level(entry.get("name")))  # type: ignore[arg-type]


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _objects(entries: Any) -> list[Entry]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []

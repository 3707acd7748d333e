"""pandas' metadata in a file: the JSON under the key "pandas", in the form shared by pandas, pyarrow and fastparquet.

The JSON has an entry for each column (``columns``), for each level of the index (``index_columns``: the name of a field, or the
bounds of a RangeIndex), and for each level of the column labels (``column_indexes``). Labels are stored as text.
https://pandas.pydata.org/docs/development/developer.html#storing-pandas-dataframe-objects-in-apache-parquet-format

fastpq adds to the ``metadata`` of an entry: ``categories`` and ``categories_type`` of a categorical column, ``storage`` of text
and Arrow dtypes, ``sparse``, the sparse dtype, and ``labels``, the dtype of labels that pyarrow cannot read from text. Other
readers pass over these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PANDAS_KEY = "pandas"
ATTRIBUTES_KEY = "PANDAS_ATTRS"     # attrs of a DataFrame, as pandas stores these beside the JSON
_MAX_INDEX = 1 << 62        # bound on start, stop and step of a RangeIndex, held as int64 by pandas

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RangeLevel:
    """A level of the index without a field: a RangeIndex.

    Attributes:
        bounds: the values.
        name: name of the level.
    """

    bounds: range
    name: str | int | None


@dataclass
class PandasMetadata:
    """pandas' metadata of a file, parsed; meaningless entries are left out.

    Attributes:
        columns: entry of each field, by field name.
        levels: levels of the index: names of fields, and ranges.
        labels: entry of each level of the column labels.
        attributes: ``attrs`` of the DataFrame.
    """

    columns: dict[str, Entry] = field(default_factory=dict)
    levels: list[str | RangeLevel] = field(default_factory=list)
    labels: list[Entry] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def index(self) -> list[str]:
        """Names of the fields used as levels of the index."""
        return [level for level in self.levels if isinstance(level, str)]


def pandas_metadata(text: str | None, attributes: str | None = None) -> PandasMetadata:
    """Parse pandas' metadata; malformed metadata gives an empty result, since the values of a file do not depend on metadata.

    Args:
        text: value of the key "pandas"; None without.
        attributes: value of the key "PANDAS_ATTRS"; None without.
    """
    described, found = _object(text), PandasMetadata()
    for entry in _objects(described.get("columns")):
        name = entry.get("field_name") or entry.get("name")
        if isinstance(name, str):
            found.columns[name] = entry
    index = described.get("index_columns")
    for each in index if isinstance(index, list) else []:
        level = each if isinstance(each, str) else _range_level(each)
        if level is not None and (isinstance(level, RangeLevel) or level not in found.levels):
            found.levels.append(level)
    found.labels = _objects(described.get("column_indexes"))
    attrs = described.get("attributes")
    found.attributes = attrs if isinstance(attrs, dict) and attrs else _object(attributes)
    return found


def without_columns(described: str, names: Sequence[str]) -> str:
    """pandas' metadata as JSON without the given columns and index levels."""
    found = json.loads(described)
    found["columns"] = [entry for entry in found["columns"] if entry["field_name"] not in names]
    found["index_columns"] = [entry for entry in found["index_columns"] if entry not in names]
    return json.dumps(found)


def details_of(entry: Entry) -> Entry:
    """The ``metadata`` of an entry; empty without."""
    details = entry.get("metadata")
    return details if isinstance(details, dict) else {}


def text_or_none(found: Any) -> str | None:
    """A text as it is, None for anything else."""
    return found if isinstance(found, str) else None


def name_of_level(found: Any) -> str | int | None:
    """The name of a level of an index or of labels: a text or an integer; None for anything else."""
    return found if isinstance(found, str) or type(found) is int else None


def _range_level(entry: Any) -> RangeLevel | None:
    if not isinstance(entry, dict) or entry.get("kind") != "range":
        return None
    bounds = [entry.get(name) for name in ("start", "stop", "step")]
    if not all(type(bound) is int and abs(bound) < _MAX_INDEX for bound in bounds) or not bounds[2]:
        return None
    return RangeLevel(range(*bounds), name_of_level(entry.get("name")))  # type: ignore[arg-type]


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _objects(entries: Any) -> list[Entry]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []

"""Redaction of key-value metadata: values of closed columns are left out of the footer of an encrypted file.

A column is closed if some readers of the footer have no key of the column (``fastpq.encryption.encryptor.closed_columns``).

Entries of some writers hold values: bounding boxes (GeoParquet), record keys (Hudi), labels (Hugging Face, Spark ML, Polars),
categories and attributes (pandas, R). An entry with values loses its part about closed columns, or is left out whole.
Other entries stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

from fastpq import format as fmt
from fastpq.arrow.hints import redacted_entry
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.rewriting.report import DroppedMetadata

SPARK_ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"      # Spark's schema
# Entries of values of columns that the entries do not name: least, largest and bloom filter of Hudi's record keys, the attributes
# of a pandas DataFrame, and the attributes of R's objects (levels, labels) in a serialization of R.
HELD_WHOLE = frozenset(
    {
        "hoodie_min_record_key",
        "hoodie_max_record_key",
        "org.apache.hudi.bloomfilter",
        "com.uber.hoodie.bloomfilter",
        "PANDAS_ATTRS",
        "r",
    }
)
# Metadata of a Spark field that describe its type, or are its author's words.
SPARK_TYPE_KEYS = frozenset(
    {
        "comment",
        "__CHAR_VARCHAR_TYPE_STRING",
        "__COLLATIONS",
        "delta.columnMapping.id",
        "delta.columnMapping.physicalName",
        "parquet.field.id",
    }
)

# Removes values from parsed JSON: a description of the removed parts, empty if there are none.
Redactor = Callable[[Any, Collection[str]], str]


class _OtherStructure(ValueError):
    """An entry has another structure than its writer gives it."""


def without_values(
    metadata: FileMetaData, closed: Collection[str], keep: Collection[str] = ()
) -> tuple[list[fmt.KeyValue] | None, list[DroppedMetadata]]:
    """Key-value metadata for the footer of an encrypted file, and the parts left out.

    pandas' categories are left out of every encrypted file, all other values where a column is closed.

    Args:
        metadata: footer of the source.
        closed: top-level columns closed to some readers of the new footer.
        keep: keys of entries to copy unchanged.
    """
    kept: list[fmt.KeyValue] = []
    dropped: list[DroppedMetadata] = []
    for entry in metadata.key_values:
        value = entry.value
        if value is not None and entry.key not in keep:
            value, part = redacted_value(entry.key, value, closed)
            if part is not None:
                dropped.append(DroppedMetadata(entry.key, part))
            if value is None:
                continue
        kept.append(fmt.KeyValue(key=entry.key, value=value))
    if ARROW_KEY not in keep and (closed or dropped):
        kept = _with_arrow_schema(kept, metadata, closed, dropped)
    return kept or None, dropped


def redacted_value(key: str, value: str, closed: Collection[str]) -> tuple[str | None, str | None]:
    """An entry's value without values of closed columns, and a description of the removed part.

    Returns:
        The value, or None for an entry left out whole; the description, None if nothing was removed, ``""`` for
        the whole entry.
    """
    if closed and key in HELD_WHOLE:
        return None, ""
    redactor = _REDACTORS.get(key)
    if redactor is None or not (closed or key == PANDAS_KEY):
        return value, None
    try:
        found = json.loads(value)
        part = redactor(found, closed)
    except (ValueError, RecursionError):
        return (None, "") if closed else (value, None)
    return (json.dumps(found), part) if part else (value, None)


def _with_arrow_schema(
    entries: Iterable[fmt.KeyValue], metadata: FileMetaData, closed: Collection[str], dropped: list[DroppedMetadata]
) -> list[fmt.KeyValue]:
    """The entries with the ARROW:schema redacted: its copy of all other entries, and the metadata of its fields."""
    entries = list(entries)
    told = {entry.key: entry.value for entry in entries if entry.value is not None and entry.key != ARROW_KEY}
    kept = []
    for entry in entries:
        value = entry.value
        if entry.key == ARROW_KEY and value is not None:
            value, part = redacted_entry(value, metadata.schema.root.children, told, closed)
            if part is not None:
                dropped.append(DroppedMetadata(ARROW_KEY, part))
            if value is None:
                continue
        kept.append(fmt.KeyValue(key=entry.key, value=value))
    return kept


def _geo(found: Any, closed: Collection[str]) -> str:
    """GeoParquet: bounding boxes and geometry types."""
    parts = []
    for name, column in _dict(_dict(found).get("columns")).items():
        if name not in closed:
            continue
        described = _dict(column)
        removed = [key for key in ("bbox", "geometry_types", "geometry_type") if key in described]
        described.pop("bbox", None)
        if "geometry_types" in described:
            described["geometry_types"] = []        # unknown
        if "geometry_type" in described:            # before version 1.0
            described["geometry_type"] = "Unknown"
        if removed:
            parts.append(f"{', '.join(removed)} of {name}")
    return "; ".join(parts)


def _pandas(found: Any, closed: Collection[str]) -> str:
    """pandas: categories of columns, and the attributes of the DataFrame."""
    parts = []
    for column in _list(_dict(found).get("columns")):
        details = _dict(column).get("metadata")
        if isinstance(details, dict) and details.keys() & {"categories", "num_categories"}:
            details.pop("categories", None)
            details.pop("num_categories", None)
            parts.append(f"categories of {column.get('name')}")
    if closed and found.pop("attributes", None):
        parts.append("attributes")
    return "; ".join(parts)


def _hugging_face(found: Any, closed: Collection[str]) -> str:
    """Hugging Face datasets: names of the classes of labels."""
    parts = []
    for name, feature in _dict(_dict(_dict(found).get("info")).get("features")).items():
        if name in closed and _without_class_names(feature):
            parts.append(f"names of classes of {name}")
    return "; ".join(parts)


def _without_class_names(feature: Any) -> bool:
    inner = list(feature.values()) if isinstance(feature, dict) else feature if isinstance(feature, list) else []
    removed = sum(map(_without_class_names, inner)) > 0
    if isinstance(feature, dict) and isinstance(feature.get("names"), list):
        feature["num_classes"] = len(feature.pop("names"))
        return True
    return removed


def _spark(found: Any, closed: Collection[str]) -> str:
    """Spark: metadata of fields, as the labels and bounds of Spark ML."""
    parts = []
    for field in _list(_dict(found).get("fields")):
        name = _dict(field).get("name")
        if name in closed and _without_field_metadata(field):
            parts.append(f"metadata of the field {name}")
    return "; ".join(parts)


def _without_field_metadata(node: Any) -> bool:
    if isinstance(node, list):
        return sum(map(_without_field_metadata, node)) > 0
    if not isinstance(node, dict):
        return False
    removed = _without_field_metadata([part for key, part in node.items() if key != "metadata"])
    details = node.get("metadata")
    if details:
        node["metadata"] = {key: details[key] for key in SPARK_TYPE_KEYS & details.keys()} if isinstance(details, dict) else {}
        removed = removed or node["metadata"] != details
    return removed


def _dict(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _OtherStructure
    return found


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise _OtherStructure
    return found


_REDACTORS: dict[str, Redactor] = {"geo": _geo, PANDAS_KEY: _pandas, "huggingface": _hugging_face, SPARK_ROW_METADATA: _spark}

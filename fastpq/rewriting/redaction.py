"""Removal of values from key-value metadata: an encrypted file's footer must not show values from closed columns.

A column is closed if some readers can read the footer but do not have the column's key
(``fastpq.encryption.encryptor.closed_columns``).

Some writers store values in entries: bounding boxes (GeoParquet), record keys (Hudi), labels (Hugging Face, Spark ML, Polars),
categories and attributes (pandas, R). Such an entry loses its part about closed columns, or is left out completely. Other entries
stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from fastpq import format as fmt
from fastpq.arrow.hints import redacted_entry
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.rewriting.report import DroppedMetadata
from fastpq.schema.parquet_schema import ParquetSchema

SPARK_ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"      # Spark's schema
# Entries that hold values, but do not name the values' columns. They are left out completely. The entries are Hudi's smallest and
# largest record key, the bloom filter for its record keys, a pandas DataFrame's attributes, and R's object attributes (levels,
# labels) in R's serialization format.
REMOVED_ENTRIES = frozenset(
    {
        "hoodie_min_record_key",
        "hoodie_max_record_key",
        "org.apache.hudi.bloomfilter",
        "com.uber.hoodie.bloomfilter",
        "PANDAS_ATTRS",
        "r",
    }
)
AVRO_SCHEMA = "parquet.avro.schema"     # written by parquet-java for Avro records
PROTO_ENUM = "parquet.proto.enum."     # begins the keys of entries with the values of an enum, by parquet-java
# Keys of a Spark field's metadata that describe its type, or that its author wrote.
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

# Removes values from parsed JSON, and returns a description of the removed parts, which is empty if there are none.
Redactor = Callable[[Any, Collection[str]], str]


class _OtherStructure(ValueError):
    """An entry has another structure than its writer gives it."""


class DescribedFile(Protocol):
    """A file's key-value metadata and schema, for example a FileMetaData."""

    @property
    def key_values(self) -> list[fmt.KeyValue]: ...

    @property
    def schema(self) -> ParquetSchema: ...


def without_values(
    metadata: DescribedFile, closed: Collection[str], keep: Collection[str] = ()
) -> tuple[list[fmt.KeyValue] | None, list[DroppedMetadata]]:
    """Return the key-value metadata for an encrypted file's footer, and the parts that are left out.

    Categories from pandas are left out in every encrypted file. All other values are left out if a column is closed.

    Args:
        metadata: the source's footer, or what the new file gets from it.
        closed: top-level columns that are closed to some readers of the new footer.
        keep: keys of entries that are copied unchanged.
    """
    entries: list[fmt.KeyValue] = []
    dropped_metadata: list[DroppedMetadata] = []
    for entry in metadata.key_values:
        value = entry.value
        if value is not None and entry.key not in keep:
            value, part = redacted_value(entry.key, value, closed)
            if part is not None:
                dropped_metadata.append(DroppedMetadata(entry.key, part))
            if value is None:
                continue
        entries.append(fmt.KeyValue(key=entry.key, value=value))
    if ARROW_KEY not in keep and (closed or dropped_metadata):
        entries = _with_arrow_schema(entries, metadata, closed, dropped_metadata)
    return entries or None, dropped_metadata


def entries_for_footer(
    entries: Mapping[str, str], keys: FileEncryptionProperties | None, paths: Sequence[tuple[str, ...]]
) -> dict[str, str]:
    """Return key-value metadata for a new file's footer, without the values from columns that its keys close.

    Args:
        entries: texts by key.
        keys: the new file's keys. None for a plaintext file.
        paths: all leaf columns' paths.
    """
    closed = frozenset() if keys is None else closed_columns(keys, paths)
    values = {key: redacted_value(key, value, closed)[0] for key, value in entries.items()}
    return {key: value for key, value in values.items() if value is not None}


def redacted_value(key: str, value: str, closed: Collection[str]) -> tuple[str | None, str | None]:
    """Return an entry's value without the values in closed columns, and a description of the removed part.

    Returns:
        The value, or None if the whole entry is left out. The description is None if nothing was removed, and ``""`` if the
        whole entry was removed.
    """
    if closed and (key in REMOVED_ENTRIES or key.startswith(PROTO_ENUM)):
        return None, ""
    redactor = _REDACTORS.get(key)
    if redactor is None or not (closed or key == PANDAS_KEY):
        return value, None
    try:
        content = json.loads(value)
        part = redactor(content, closed)
    except (ValueError, RecursionError):
        return (None, "") if closed else (value, None)
    return (json.dumps(content), part) if part else (value, None)


def _with_arrow_schema(
    entries: Iterable[fmt.KeyValue], metadata: DescribedFile, closed: Collection[str], dropped_metadata: list[DroppedMetadata]
) -> list[fmt.KeyValue]:
    """Redact the ARROW:schema, and return all entries. It may hold copies of the other entries, and metadata about fields."""
    entries = list(entries)
    other_values = {entry.key: entry.value for entry in entries if entry.value is not None and entry.key != ARROW_KEY}
    redacted_entries = []
    for entry in entries:
        value = entry.value
        if entry.key == ARROW_KEY and value is not None:
            value, part = redacted_entry(value, metadata.schema.root.children, other_values, closed)
            if part is not None:
                dropped_metadata.append(DroppedMetadata(ARROW_KEY, part))
            if value is None:
                continue
        redacted_entries.append(fmt.KeyValue(key=entry.key, value=value))
    return redacted_entries


def _geo(content: Any, closed: Collection[str]) -> str:
    """Redact GeoParquet: bounding boxes and geometry types."""
    parts = []
    for name, column in _dict(_dict(content).get("columns")).items():
        if name not in closed:
            continue
        description = _dict(column)
        removed_keys = [key for key in ("bbox", "geometry_types", "geometry_type") if key in description]
        description.pop("bbox", None)
        if "geometry_types" in description:
            description["geometry_types"] = []      # unknown
        if "geometry_type" in description:          # before version 1.0
            description["geometry_type"] = "Unknown"
        if removed_keys:
            parts.append(f"{', '.join(removed_keys)} of {name}")
    return "; ".join(parts)


def _pandas(content: Any, closed: Collection[str]) -> str:
    """Redact pandas: categories, and the DataFrame's attributes."""
    parts = []
    for column in _list(_dict(content).get("columns")):
        details = _dict(column).get("metadata")
        if isinstance(details, dict) and details.keys() & {"categories", "num_categories"}:
            details.pop("categories", None)
            details.pop("num_categories", None)
            parts.append(f"categories of {column.get('name')}")
    if closed and content.pop("attributes", None):
        parts.append("attributes")
    return "; ".join(parts)


def _hugging_face(content: Any, closed: Collection[str]) -> str:
    """Redact Hugging Face datasets: class names that labels stand for."""
    parts = []
    for name, feature in _dict(_dict(_dict(content).get("info")).get("features")).items():
        if name in closed and _without_class_names(feature):
            parts.append(f"names of classes of {name}")
    return "; ".join(parts)


def _without_class_names(feature: Any) -> bool:
    """Remove class names from a feature and the features in it. Return whether there were any."""
    parts = list(feature.values()) if isinstance(feature, dict) else feature if isinstance(feature, list) else []
    has_removed = sum(map(_without_class_names, parts)) > 0
    if isinstance(feature, dict) and isinstance(feature.get("names"), list):
        feature["num_classes"] = len(feature.pop("names"))
        return True
    return has_removed


def _spark(content: Any, closed: Collection[str]) -> str:
    """Redact Spark: metadata about fields, for example labels and bounds from Spark ML."""
    parts = []
    for field in _list(_dict(content).get("fields")):
        name = _dict(field).get("name")
        if name in closed and _without_field_metadata(field):
            parts.append(f"metadata of the field {name}")
    return "; ".join(parts)


def _without_field_metadata(node: Any) -> bool:
    """Remove metadata from a field and the fields in it, except what describes the type. Return whether there were any."""
    if isinstance(node, list):
        return sum(map(_without_field_metadata, node)) > 0
    if not isinstance(node, dict):
        return False
    has_removed = _without_field_metadata([part for key, part in node.items() if key != "metadata"])
    details = node.get("metadata")
    if details:
        node["metadata"] = {key: details[key] for key in SPARK_TYPE_KEYS & details.keys()} if isinstance(details, dict) else {}
        has_removed = has_removed or node["metadata"] != details
    return has_removed


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _OtherStructure
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _OtherStructure
    return value


def _avro(content: Any, closed: Collection[str]) -> str:
    """Check an Avro schema for symbols of enums and defaults in closed columns.

    Raises:
        ValueError: there are some. Without them it would be no schema, so the whole entry is left out.
    """
    for field in _list(_dict(content).get("fields")):
        if _dict(field).get("name") in closed and _has_avro_values(field):
            raise ValueError(field["name"])
    return ""


def _has_avro_values(node: Any) -> bool:
    """Return whether a part of an Avro schema has symbols or a default other than null."""
    if isinstance(node, list):
        return any(map(_has_avro_values, node))
    if not isinstance(node, dict):
        return False
    return "symbols" in node or node.get("default") is not None or any(map(_has_avro_values, node.values()))


_REDACTORS: dict[str, Redactor] = {
    "geo": _geo, "huggingface": _hugging_face, AVRO_SCHEMA: _avro, PANDAS_KEY: _pandas, SPARK_ROW_METADATA: _spark,
}

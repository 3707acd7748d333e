"""Key-value metadata for a file that has some of another file's columns, or its columns under other names.

Entries of pandas, GeoParquet, Hugging Face and Spark describe columns by name. ARROW:schema describes columns by position.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.arrow.hints import ArrowFields, arrow_schema_entry
from fastpq.arrow.original_types import arrow_fields
from fastpq.convert.nulls import null_column
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.errors import FormatError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.redaction import SPARK_ROW_METADATA
from fastpq.rewriting.report import DroppedMetadata
from fastpq.schema.types import ColumnType, Type

# New names by old names. An old name that is missing stands for a column that the new file does not have.
Names = Mapping[str, str]
NO_TYPES: Mapping[str, ColumnType] = MappingProxyType({})


class NewColumns(NamedTuple):
    """The columns of a new file.

    Attributes:
        names: new names by old names.
        types: new types of flat columns whose type changes, by old name.
    """

    names: Names
    types: Mapping[str, ColumnType]


def entries_for_columns(
    source: Source,
    metadata: FileMetaData,
    leaves: Sequence[int],
    names: Names,
    *,
    is_partial: bool,
    keeps_fields: bool = True,
    types: Mapping[str, ColumnType] = NO_TYPES,
) -> tuple[list[fmt.KeyValue] | None, tuple[DroppedMetadata, ...]]:
    """Return the key-value metadata for a new file, and what is left out.

    Args:
        source, metadata: the old file and its footer.
        leaves: the old numbers of the new file's leaves.
        names: new names of top-level columns, by old name.
        is_partial: whether a column loses or renames some of its fields.
        keeps_fields: whether ARROW:schema can describe the new columns.
        types: new types of flat columns, by old name.
    """
    entries: list[fmt.KeyValue] = []
    dropped: list[DroppedMetadata] = []
    for entry in metadata.key_values:
        value = entry.value
        correct = _CORRECTIONS.get(entry.key)
        if value is not None and correct is not None:
            value = _corrected(value, correct, NewColumns(names, types))
        if entry.key == SPARK_ROW_METADATA and is_partial:
            value = None        # it describes the fields of structs too
        if value is None and entry.value is not None:
            dropped.append(DroppedMetadata(entry.key, ""))
        elif entry.key != ARROW_KEY:
            entries.append(fmt.KeyValue(key=entry.key, value=value))
    if metadata.key_value(ARROW_KEY) is not None:
        texts = {entry.key: entry.value for entry in entries if entry.value is not None}
        arrow_entry = _arrow_entry(source, metadata, leaves, NewColumns(names, types), texts) if keeps_fields else None
        if arrow_entry is None:
            dropped.append(DroppedMetadata(ARROW_KEY, ""))
        else:
            entries.append(fmt.KeyValue(key=ARROW_KEY, value=arrow_entry))
    return entries or None, tuple(dropped)


def _arrow_entry(
    source: Source, metadata: FileMetaData, leaves: Sequence[int], columns: NewColumns, texts: Mapping[str, str]
) -> str | None:
    """Return ARROW:schema for the new file, or None if the old entry is broken."""
    descriptors = [metadata.schema.columns[leaf] for leaf in leaves]
    file = OpenFile(source, metadata, ReaderProperties(), "views", "ns", 1)
    table = FileReader(file).read(ReadRequest(descriptors, []), None, None)
    nodes = list(dict.fromkeys(descriptor.top for descriptor in descriptors))
    restored = ArrowFields(metadata.key_value(ARROW_KEY), metadata.schema.root.children).restored(table, nodes)
    new_columns = [
        (columns.names.get(name, name), null_column(columns.types[name], 0) if name in columns.types else column)
        for name, column in restored.items()
    ]
    renamed = type(restored)(new_columns, num_rows=0)
    try:
        return arrow_schema_entry(arrow_fields(renamed), texts)
    except (FormatError, UnsupportedError):
        return None


def _corrected(value: str, correct: Callable[[Any, NewColumns], Any], columns: NewColumns) -> str | None:
    """Return an entry for the new columns. None if it has another structure, or if nothing is left."""
    try:
        content = correct(json.loads(value), columns)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return None if content is None else json.dumps(content)


def _pandas(content: Any, columns: NewColumns) -> Any:
    names = columns.names
    fields = [field for field in content["columns"] if field.get("field_name", field.get("name")) in names]
    for field in fields:
        old_name = field.get("field_name", field.get("name"))
        if field.get("name") == old_name:
            field["name"] = names[old_name]
        field["field_name"] = names[old_name]
        if old_name in columns.types:
            field["pandas_type"] = field["numpy_type"] = str(columns.types[old_name].dtype)
    levels = [level for level in content["index_columns"] if isinstance(level, dict) or level in names]
    content["columns"] = fields
    content["index_columns"] = [level if isinstance(level, dict) else names[level] for level in levels]
    return content


def _geo(content: Any, columns: NewColumns) -> Any:
    names = columns.names
    if content.get("primary_column") not in names:
        return None
    content["primary_column"] = names[content["primary_column"]]
    content["columns"] = {names[name]: column for name, column in content["columns"].items() if name in names}
    return content


def _hugging_face(content: Any, columns: NewColumns) -> Any:
    names, features = columns.names, content["info"]["features"]
    for name, type_ in columns.types.items():
        features[name]["dtype"] = str(type_.dtype)
    content["info"]["features"] = {names[name]: feature for name, feature in features.items() if name in names}
    return content


def _spark(content: Any, columns: NewColumns) -> Any:
    names = columns.names
    fields = {field["name"]: field for field in content["fields"]}
    for name, type_ in columns.types.items():
        fields[name]["type"] = "double" if type_.physical == Type.DOUBLE else "long"
    content["fields"] = [{**fields[old], "name": new} for old, new in names.items() if old in fields]
    return content


_CORRECTIONS: dict[str, Callable[[Any, NewColumns], Any]] = {
    PANDAS_KEY: _pandas, "geo": _geo, "huggingface": _hugging_face, SPARK_ROW_METADATA: _spark
}

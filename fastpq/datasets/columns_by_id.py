"""Columns by field id: the columns of a file get the names that a schema gives to their field ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastpq.api.file import ParquetFile
from fastpq.arrow.hints import FIELD_ID
from fastpq.errors import UnsupportedError
from fastpq.metadata.file_metadata import renamed_footer
from fastpq.schema.parquet_schema import ParquetSchema


def ids_of_schema(schema: Any) -> dict[int, str]:
    """Return the names of a schema's columns by their field ids, without columns that have none.

    Args:
        schema: a ParquetSchema, or an Arrow schema whose fields have ``PARQUET:field_id``. Other objects have no ids.
    """
    if isinstance(schema, ParquetSchema):
        nodes = schema.root.children
        return {node.element.field_id: node.element.name for node in nodes if node.element.field_id is not None}
    if not hasattr(schema, "__arrow_c_schema__"):
        return {}
    from fastpq.arrow.capsules_in import take_schema

    children = take_schema(schema.__arrow_c_schema__()).children
    texts = {child.name: (child.metadata or {}).get(FIELD_ID) for child in children}
    return {int(text): name for name, text in texts.items() if text is not None}


def with_names_by_id(file: ParquetFile, names: Mapping[int, str]) -> ParquetFile:
    """Return a file whose columns have the names that belong to their field ids.

    A column that has the name of another id in the schema is not that column, and gets a name of its own. Columns without an id,
    and columns inside of others, keep their names.

    Args:
        file: the open file.
        names: names by field id.

    Raises:
        UnsupportedError: a column of an encrypted file has another name.
    """
    elements = [node.element for node in file.schema.root.children]
    new_names = {}
    for element in elements:
        name = element.name if element.field_id is None else names.get(element.field_id, element.name)
        if name in names.values() and element.field_id is not None and names.get(element.field_id) != name:
            name = f"{name} (field id {element.field_id})"
        if name != element.name:
            new_names[element.name] = name
    if not new_names:
        return file
    if file.metadata.encryption_algorithm is not None:
        raise UnsupportedError("renamed columns of encrypted files are not found by their field ids", path=file._source.name)
    return file._with_names(renamed_footer(file.metadata, new_names))

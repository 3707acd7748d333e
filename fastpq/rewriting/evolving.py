"""evolve_file: a file whose columns have other names, field ids or wider types. Only columns with wider types are decoded."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Unpack

from fastpq.errors import SchemaError
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties, takes_options
from fastpq.read.open_file import OpenFile
from fastpq.rewriting.column_metadata import entries_for_columns
from fastpq.rewriting.one_file import FilePlan, rewrite_file
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions
from fastpq.rewriting.widening import widened_leaves, widened_types, with_wider_types
from fastpq.schema.parquet_schema import ParquetSchema


@takes_options(RewritingOptions)
def evolve_file(
    source: Any,
    target: Any,
    *,
    names: Mapping[str, str] | None = None,
    field_ids: Mapping[str, int | None] | None = None,
    types: Mapping[str, Any] | None = None,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Give columns other names, field ids or wider types. Pages are copied without decoding, but for columns with wider types.

    Everything else is kept, as in ``project_file``. If a field inside a column gets another name or type, ARROW:schema is left
    out, because it has the old one. A column with a wider type is decoded, and encoded as the old one was.

    Args:
        source, target: as in ``project_file``.
        names: new names by old names. An old name is a dotted path, as the file has it. A new name is the last part alone.
        field_ids: field ids by old names (dotted paths). None takes an id away.
        types: wider types by old names (dotted paths). Integers of at most 32 bits become ``"int64"``, and narrower floats
            ``"float64"``.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport.

    Raises:
        SchemaError: there is no column with an old name, two columns would have one name, or a type does not hold all values.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    arguments = RewritingOptions.of(options)
    changes = _Changes(dict(names or {}), dict(field_ids or {}), dict(types or {}))
    return rewrite_file(source, target, partial(_plan, changes, arguments.reading), arguments)


class _Changes(NamedTuple):
    """What the new file has in place of the old, by dotted paths of the old file."""

    names: dict[str, str]
    field_ids: dict[str, int | None]
    types: dict[str, Any]


def _plan(changes: _Changes, reading: ReaderProperties, source: Source, metadata: FileMetaData) -> FilePlan:
    """Return what the new file gets."""
    wide_schema = with_wider_types(metadata.schema, changes.types)
    schema = _evolved(wide_schema, changes.names, changes.field_ids)
    tops = zip(metadata.schema.root.children, schema.root.children, strict=True)
    by_old_name = {old.element.name: new.element.name for old, new in tops}
    is_partial = not changes.names.keys() | changes.types.keys() <= by_old_name.keys()
    leaves = range(metadata.num_columns)
    entries, dropped_metadata = entries_for_columns(
        source, metadata, leaves, by_old_name, is_partial=is_partial, keeps_fields=not is_partial,
        types=widened_types(wide_schema, changes.types))
    if changes.types:
        metadata.calendar.is_kept = True        # values are written as they are stored
    wide_leaves = widened_leaves(OpenFile(source, metadata, reading, "views", "stored", 1), wide_schema, changes.types)
    return FilePlan(schema, leaves, entries, dropped_metadata=dropped_metadata, encoded_leaves=wide_leaves, keeps_order=True)


def _evolved(schema: ParquetSchema, names: Mapping[str, str], field_ids: Mapping[str, int | None]) -> ParquetSchema:
    """Return a schema with other names and field ids."""
    elements = [copy.copy(element) for element in schema.elements]
    _, *nodes = schema.nodes()
    used_names: set[str] = set()
    for element, node in zip(elements[1:], nodes, strict=True):
        if node.name in names:
            element.name = names[node.name]
        if node.name in field_ids:
            element.field_id = field_ids[node.name]
        used_names.add(node.name)
    unknown = (names.keys() | field_ids.keys()) - used_names
    if unknown:
        raise SchemaError(f"there is no column {', '.join(sorted(unknown))}: the columns are {', '.join(schema.names[:20])}")
    evolved = ParquetSchema.from_thrift(elements)
    for path in evolved.paths:
        if evolved.paths.count(path) > 1 and schema.paths.count(path) < 2:
            raise SchemaError(f"two columns would have the name {'.'.join(path)}")
    return evolved

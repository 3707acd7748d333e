"""Shredding schemas: the parts of variants to be stored in typed columns (VariantShredding.md), and their check.

A schema is

- a ColumnType known to ``fastpq.schema.variant_kinds.kind_of``: primitives of this type are shredded;
- a dict of names and schemas: objects are shredded into these fields;
- a list of one schema: arrays are shredded into elements of this schema;
- None: no value is shredded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ForwardRef, Union

from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.schema.types import ColumnType
from fastpq.schema.variant_kinds import MAX_DEPTH, kind_of

if TYPE_CHECKING:
    ShreddingSchema = Union[ColumnType, "dict[str, ShreddingSchema]", "list[ShreddingSchema]", None]  # noqa: UP007
else:       # forward references with their module, so that typing.get_type_hints resolves the name in any module
    _FIELDS, _ELEMENT = (ForwardRef(each, module=__name__) for each in ("dict[str, ShreddingSchema]", "list[ShreddingSchema]"))
    ShreddingSchema = ColumnType | _FIELDS | _ELEMENT | None


def normalized(schema: ShreddingSchema, depth: int = 0) -> ShreddingSchema:
    """Check a shredding schema; returns an equal schema.

    Raises:
        SchemaError: the argument is no shredding schema.
        LimitError: the schema is deeper than MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise LimitError(f"a shredding schema nested deeper than MAX_DEPTH ({MAX_DEPTH})")
    match schema:
        case None:
            return None
        case ColumnType():
            try:
                kind_of(schema)
            except FormatError as error:
                raise SchemaError(error.message) from error
            return schema
        case dict():
            if not all(isinstance(name, str) for name in schema) or not schema:
                raise SchemaError("a shredded object needs fields, and they have names of type str")
            return {name: normalized(inner, depth + 1) for name, inner in schema.items()}
        case [element]:
            return [normalized(element, depth + 1)]
    raise SchemaError(f"{schema!r} is no shredding schema: a ColumnType, a dict, a list of one schema, or None")

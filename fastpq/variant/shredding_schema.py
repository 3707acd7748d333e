"""Shredding schemas, and their check. A schema says which variant parts are stored in typed columns (VariantShredding.md).

A schema is one of these:

- A ColumnType that ``fastpq.schema.variant_kinds.kind_of`` accepts. Primitives with this type are shredded.
- A dict from field name to schema. Objects are shredded into these fields.
- A list with one schema. Arrays are shredded into elements with this schema.
- None. No value is shredded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ForwardRef, Union

from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.schema.types import ColumnType
from fastpq.schema.variant_kinds import MAX_DEPTH, kind_of

if TYPE_CHECKING:
    ShreddingSchema = Union[ColumnType, "dict[str, ShreddingSchema]", "list[ShreddingSchema]", None]  # noqa: UP007
else:       # the forward references name their module, so that typing.get_type_hints can resolve them from any module
    _FIELDS, _ELEMENT = (ForwardRef(each, module=__name__) for each in ("dict[str, ShreddingSchema]", "list[ShreddingSchema]"))
    ShreddingSchema = ColumnType | _FIELDS | _ELEMENT | None


def normalized(schema: ShreddingSchema, depth: int = 0) -> ShreddingSchema:
    """Check a shredding schema, and return an equal one.

    Raises:
        SchemaError: the argument is not a shredding schema.
        LimitError: the schema is nested deeper than MAX_DEPTH levels.
    """
    if depth > MAX_DEPTH:
        raise LimitError(f"a shredding schema is nested deeper than MAX_DEPTH ({MAX_DEPTH})")
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
                raise SchemaError("a shredded object needs fields whose names are str")
            return {name: normalized(inner, depth + 1) for name, inner in schema.items()}
        case [element]:
            return [normalized(element, depth + 1)]
    raise SchemaError(f"{schema!r} is not a shredding schema, which is a ColumnType, a dict, a list of one schema, or None")

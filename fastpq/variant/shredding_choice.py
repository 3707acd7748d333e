"""The shredding schemas for the variant columns in a file that is written. The caller chooses them, or they are inferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.table import Table
from fastpq.errors import ParquetError, SchemaError
from fastpq.variant.inference import infer_schema
from fastpq.variant.shredding_schema import ShreddingSchema, normalized
from fastpq.variant.storage import holds_variants
from fastpq.variant.variant_column import VariantColumn

Shredding = ShreddingSchema | Literal["infer"]


class Shredder:
    """A function that shreds variant columns. It uses the same schemas for all tables that are written to one file.

    Args:
        schemas: shredding schemas by column name. ``"infer"`` infers the schema from the first table. With None the variants
            are written unshredded. A column without an entry does not change.

    Raises:
        SchemaError: an entry is not a shredding schema.
        LimitError: a schema is nested deeper than MAX_DEPTH levels.
    """

    def __init__(self, schemas: Mapping[str, Shredding]) -> None:
        self._schemas = {name: schema if schema == "infer" else normalized(schema) for name, schema in schemas.items()}

    def __call__(self, table: Table) -> Table:
        """Return the table with the columns that ``schemas`` names shredded, or unshredded where the schema is None.

        Raises:
            SchemaError: a column that ``schemas`` names is missing, or is not a VARIANT.
            FormatError: a row breaks VariantEncoding.md.
        """
        columns = dict(table)
        for name in self._schemas:
            column = table[name]
            if not holds_variants(column):
                raise SchemaError(f"only variants can be shredded, not {column.type}", column=name)
            try:
                columns[name] = self._shredded(name, VariantColumn.of(column))
            except ParquetError as error:
                raise error.at(column=name) from None
        return Table(columns, num_rows=table.num_rows)

    def _shredded(self, name: str, column: VariantColumn) -> StructColumn:
        schema = self._schemas[name]
        if schema == "infer":
            schema = self._schemas[name] = infer_schema(column)
        return column.to_struct(schema)

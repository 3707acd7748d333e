"""Choice of shredding schemas for the variant columns of a written file, by the caller or by inference."""

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
    """A function to shred the variant columns of every table of a file by the same schemas.

    Args:
        wanted: shredding schemas by column name; ``"infer"`` for a schema inferred from the first table; None for
            unshredded variants. Columns without an entry are not changed.

    Raises:
        SchemaError: an entry is no shredding schema.
    """

    def __init__(self, wanted: Mapping[str, Shredding]) -> None:
        self._wanted = {name: schema if schema == "infer" else normalized(schema) for name, schema in wanted.items()}

    def __call__(self, table: Table) -> Table:
        """A table with its variants shredded.

        Raises:
            SchemaError: a column of an entry is missing, or is not a VARIANT.
            FormatError: a row breaks VariantEncoding.md.
        """
        columns = dict(table)
        for name in self._wanted:
            column = table[name]
            if not holds_variants(column):
                raise SchemaError(f"only variants are shredded, not a {column.type}", column=name)
            try:
                columns[name] = self._shredded(name, VariantColumn.of(column))
            except ParquetError as error:
                raise error.at(column=name) from None
        return Table(columns, num_rows=table.num_rows)

    def _shredded(self, name: str, column: VariantColumn) -> StructColumn:
        schema = self._wanted[name]
        if schema == "infer":
            schema = self._wanted[name] = infer_schema(column)
        return column.to_struct(schema)

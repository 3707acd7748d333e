"""Which variants of a file are written shredded, and by which schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.table import Table
from fastpq.errors import ParquetError, SchemaError
from fastpq.variant.inference import infer_schema
from fastpq.variant.shredding_schema import ShreddingSchema, normalized
from fastpq.variant.variant_column import VariantColumn

Shredding = ShreddingSchema | Literal["infer"]


class Shredder:
    """Shreds the variant columns of every table of a file in the same way.

    Args:
        wanted: by the name of a column, its shredding schema; ``"infer"`` for one inferred from the first table; None for
            unshredded variants. Columns that are not named stay as they are.

    Raises:
        SchemaError: what is no schema.
    """

    def __init__(self, wanted: Mapping[str, Shredding]) -> None:
        self._wanted = {name: schema if schema == "infer" else normalized(schema) for name, schema in wanted.items()}

    def __call__(self, table: Table) -> Table:
        """The same table, its variants shredded.

        Raises:
            SchemaError: a column that is not there, or holds no variants.
            FormatError: variants that break VariantEncoding.md.
        """
        columns = dict(table)
        for name in self._wanted:
            column = table[name]
            if not isinstance(column, StructColumn) or column.type.annotation != "VARIANT":
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

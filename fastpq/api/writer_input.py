"""WriterInput: data of any kind as Tables for a writer, and the key-value metadata of the footer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from fastpq.arrays.nodes import FieldNode as ArrowField
from fastpq.arrays.table import Table
from fastpq.arrow.hints import arrow_fields, arrow_schema_entry, needs_arrow_schema, without_field_metadata
from fastpq.convert.dataframes import PANDAS_KEY, has_arrow_dtypes, is_dataframe, table_from_dataframe
from fastpq.convert.numpy_input import table_from
from fastpq.errors import UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.options import WriterProperties
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType
from fastpq.variant.shredding_choice import Shredder, Shredding


class WriterInput:
    """Turns data into Tables; the first DataFrame and the first Arrow types are described in the key-value metadata.

    Args:
        schema: types of flat columns, by name or as a ParquetSchema; other columns keep the type of their values.
        properties: options of the file; ``arrow_schema`` and ``key_value_metadata`` are used.
        shred: how variant columns are shredded, by name.
        with_categories: keep the categories of a DataFrame in the metadata.

    Raises:
        SchemaError: no shredding schema in ``shred``.
    """

    def __init__(
        self,
        schema: Mapping[str, ColumnType] | ParquetSchema | None,
        properties: WriterProperties,
        shred: Mapping[str, Shredding] | None,
        *,
        with_categories: bool,
    ) -> None:
        self._types = _types_of(schema)
        self._shredder = Shredder(shred) if shred else None
        self._with_arrow = properties.arrow_schema
        self._given = properties.key_value_metadata      # the caller may add entries until the footer is written
        self._with_categories = with_categories
        self._described: dict[str, str] = {}        # metadata of the first DataFrame
        self._arrow_fields: ArrowField | None = None

    def table(self, data: Any) -> Table:
        """The data as a Table.

        Args:
            data: a Table, a dict of arrays, a structured array, a pandas DataFrame, or anything with the Arrow C data interface.

        Raises:
            SchemaError: columns of unequal length, or other columns than in the types or the shredding.
            UnsupportedError: a duration without ``arrow_schema``.
        """
        with_arrow = self._with_arrow
        if is_dataframe(data):
            with_arrow = has_arrow_dtypes(data) if with_arrow is None else with_arrow
            data, described = table_from_dataframe(data, with_categories=self._with_categories)
            self._described.setdefault(PANDAS_KEY, described)
        table = table_from(data, self._types)
        if self._shredder is not None:
            table = self._shredder(table)
        self._describe_arrow(table, bool(with_arrow))
        return table

    def key_values(self, closed: Collection[str]) -> dict[str, str]:
        """The key-value metadata of the footer; given ones go before described ones.

        Args:
            closed: names of columns whose Arrow fields keep no metadata but those of their type.
        """
        found = self._described | dict(self._given)
        fields = self._arrow_fields
        if fields is not None:
            shown = [without_field_metadata(field) if field.name in closed else field for field in fields.children]
            found.setdefault(ARROW_KEY, arrow_schema_entry(replace(fields, children=tuple(shown)), found))
        return found

    def _describe_arrow(self, table: Table, wanted: bool) -> None:
        """Keep the Arrow types of the first table's columns."""
        if self._arrow_fields is None and wanted:
            self._arrow_fields = arrow_fields(table)
        if self._arrow_fields is not None:
            return
        for name, column in zip(table.names, table.columns, strict=True):
            if needs_arrow_schema(column):
                raise UnsupportedError("Parquet has no durations; arrow_schema=True keeps the durations of Arrow", column=name)


def _types_of(schema: Mapping[str, ColumnType] | ParquetSchema | None) -> Mapping[str, ColumnType] | None:
    if isinstance(schema, ParquetSchema):
        return {column.name: column.type for column in schema.columns if column.is_flat}
    return schema

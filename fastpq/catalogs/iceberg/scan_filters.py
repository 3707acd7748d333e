"""A scan's row filter, for one data file. It keeps the rows that PyIceberg keeps. Promoted floats are compared as doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.table import AnyColumn, Table
from fastpq.catalogs.iceberg.file_columns import TableField, nested_ids
from fastpq.errors import UnsupportedError
from fastpq.filters.expressions import filter_of
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.tree import SchemaNode


class ScanFilter:
    """A scan's row filter for one data file.

    Columns that the file lacks are replaced by their constant or default value, or by null.

    Args:
        expression: the filter, bound to the schema.
        schema: the schema that the scan's snapshot has.
        nodes: the file's top-level columns by field id.
        constants: values of columns that the file may lack, by field id.
    """

    def __init__(self, expression: Any, schema: Any, nodes: Mapping[int, SchemaNode], constants: Mapping[int, Any]) -> None:
        self._expression = expression
        self._schema, self._nodes, self._constants = schema, nodes, constants

    @cached_property
    def column_ids(self) -> set[int]:
        """Ids of the top-level columns in the filter, without those that the file lacks."""
        from pyiceberg.expressions.visitors import extract_field_ids

        ids = extract_field_ids(self._expression)
        columns = {field.field_id for field in self._schema.fields if ids & {field.field_id, *nested_ids(field)}}
        return columns & self._nodes.keys()

    def for_file(self, field_of: Callable[[int], TableField], file_schema: ParquetSchema) -> tuple[Any, bool]:
        """Return the filter for ParquetFile.read, and whether ``matching_rows`` has to be applied to the result.

        It has to if a condition must see the values with the table's types, or if ParquetFile.read does not know it.

        Args:
            field_of: returns the table's field for an id.
            file_schema: the file's schema.

        Returns:
            A filter on the file's columns. True means that all rows match, False that none does.
        """
        common_filter: Any = True
        has_rest = False
        for part in self._conjuncts():
            part_filter = part._arrow_filter({field_id: node.element.name for field_id, node in self._nodes.items()})
            if part_filter is False:
                return False, False
            if part_filter is True:
                continue
            if part._is_late(part_filter, field_of, file_schema):
                has_rest = True
            else:
                common_filter = part_filter if common_filter is True else common_filter & part_filter
        return common_filter, has_rest

    def _conjuncts(self) -> Iterator[ScanFilter]:
        """Yield the conditions that must all hold."""
        from pyiceberg.expressions import And

        pending = [self._expression]
        while pending:
            expression = pending.pop()
            if isinstance(expression, And):
                pending += [expression.right, expression.left]
            else:
                yield ScanFilter(expression, self._schema, self._nodes, self._constants)

    def _is_late(self, arrow_filter: Any, field_of: Callable[[int], TableField], file_schema: ParquetSchema) -> bool:
        if any(field_of(field_id).may_round(self._nodes[field_id], file_schema) for field_id in self.column_ids):
            return True
        try:
            filter_of(arrow_filter, file_schema)
        except UnsupportedError:
            return True
        return False

    def matching_rows(self, columns: Mapping[int, AnyColumn], field_of: Callable[[int], TableField]) -> NDArray[np.bool_]:
        """Return which rows match.

        Args:
            columns: the filter's columns with the table's types, by field id.
            field_of: returns the table's field for an id.
        """
        import pyarrow as pa

        names = {field_id: field_of(field_id).name for field_id in self.column_ids}
        table = pa.table(Table([(name, columns[field_id]) for field_id, name in names.items()]))
        arrow_filter = self._arrow_filter(names)
        is_match = np.full(table.num_rows, arrow_filter is True)
        if isinstance(arrow_filter, bool):
            return is_match
        place_name = max(names.values(), key=len) + " place"       # no column has this name
        places = table.append_column(place_name, pa.array(np.arange(table.num_rows)))
        is_match[places.filter(arrow_filter).column(place_name).to_numpy()] = True
        return is_match

    def _arrow_filter(self, names: Mapping[int, str]) -> Any:
        """Return the filter as an expression of pyarrow, or True or False if it is the same for all rows.

        Args:
            names: the present columns' names, by field id.
        """
        from pyiceberg.expressions import AlwaysFalse, AlwaysTrue
        from pyiceberg.expressions.visitors import bind, translate_column_names
        from pyiceberg.io.pyarrow import expression_to_pyarrow
        from pyiceberg.schema import Schema
        from pyiceberg.types import NestedField

        fields = [
            NestedField(field.field_id, names[field.field_id], field.field_type, required=False)
            for field in self._schema.fields
            if field.field_id in names
        ]
        schema = Schema(*fields)
        expression = translate_column_names(self._expression, schema, case_sensitive=True, projected_field_values=self._constants)
        expression = bind(schema, expression, case_sensitive=True)
        if expression in (AlwaysTrue(), AlwaysFalse()):
            return expression == AlwaysTrue()
        return expression_to_pyarrow(expression, schema)

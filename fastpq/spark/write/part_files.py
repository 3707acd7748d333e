"""Files that a write makes: they collect Arrow tables into row groups, and may be encrypted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from fastpq.spark.core import SPARK_ROW_METADATA, ParquetWriter, SchemaError, entries_for_footer, import_table
from fastpq.spark.options import WriteOptions
from fastpq.spark.tables.spark_types import stored_column

DEFAULT_ROW_GROUP_ROWS = 1 << 20    # maximum number of rows in a row group


class NewFiles:
    """Makes the files of a write, which have one schema and the same options.

    Args:
        schema: the files' Spark schema.
        options: write options.
        arrow: the files' Arrow schema.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, arrow: pa.Schema) -> None:
        self.schema, self.options, self.arrow = schema, options, arrow
        self._leaves = [column.path for column in import_table(arrow.empty_table()).schema.columns]
        self._row_schema = schema.json()

    def open(self, where: Any, path: str | None, name: str | None = None) -> PartFile:
        """Return a file that is open for writing.

        Args:
            where: target for the ParquetWriter.
            path: path beside which key material is stored, if it is not in the file. None for a file object.
            name: a path or URL with the file's final name. None if it is the name in ``path``.
        """
        keys = None
        if self.options.encryption is not None and self.options.service is not None:
            keys = self.options.service.encryption(self.options.encryption, path, name)
        properties = dict(self.options.properties)
        # Spark's schema, without labels and value bounds of columns whose keys a reader of the footer may lack
        row_metadata = entries_for_footer({SPARK_ROW_METADATA: self._row_schema}, keys, self._leaves)
        metadata = {**row_metadata, **properties.pop("key_value_metadata", {})}
        writer = ParquetWriter(where, threads=1, encryption_properties=keys, key_value_metadata=metadata, **properties)
        return PartFile(writer, properties)


class PartFile:
    """A file that is written row group by row group. Rows wait in memory until a row group is full."""

    def __init__(self, writer: ParquetWriter, properties: Mapping[str, Any]) -> None:
        self.writer = writer
        self.most_bytes = int(properties["row_group_bytes"])
        self.most_rows = int(properties.get("row_group_size", DEFAULT_ROW_GROUP_ROWS))
        self.waiting: list[pa.Table] = []
        self.rows = self.nbytes = 0

    def add(self, table: pa.Table) -> None:
        self.waiting.append(table)
        self.rows += table.num_rows
        self.nbytes += table.nbytes
        if self.rows >= self.most_rows or self.nbytes >= self.most_bytes:
            self._flush()

    def close(self) -> None:
        if self.waiting:
            self._flush()
        self.writer.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self.waiting)
        self.waiting, self.rows, self.nbytes = [], 0, 0
        self.writer.write_table(table)


def stored_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows from Spark to a file's Arrow schema.

    Raises:
        SchemaError: values do not fit a type.
    """
    columns = []
    for part, column in zip(schema, table.columns, strict=True):
        try:
            columns.append(stored_column(column, part.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(f"values do not fit {part.type}: {error}", column=part.name) from None
    return pa.table(columns, schema=schema)

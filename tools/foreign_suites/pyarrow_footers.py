"""Footers of fastpq with the values that pyarrow's have where the names are the same and the values are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from fastpq.format.enums import ConvertedType, Encoding


class Wrapped:
    """An object of fastpq, whose other attributes are taken as they are."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_own"), name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wrapped) and self._own == other._own

    def equals(self, other: Any) -> bool:
        if not isinstance(other, Wrapped):
            raise TypeError(f"not a {type(self).__name__}: {other!r}")
        return self == other

    def __hash__(self) -> int:
        return hash(self._own)

    def __reduce__(self) -> Any:
        return type(self), (self._own,)


class Statistics(Wrapped):
    physical_type = property(lambda self: self._own.physical_type.name)


class Chunk(Wrapped):
    physical_type = property(lambda self: pq_type(self._own.physical_type))
    path_in_schema = property(lambda self: ".".join(self._own.path_in_schema))
    encodings = property(lambda self: tuple(Encoding(each).name for each in self._own.encodings))
    file_path = property(lambda self: self._own.file_path or "")
    metadata = property(lambda self: {
        key.encode(): (value or "").encode() for key, value in self._own.key_value_metadata.items()} or None)
    statistics = property(lambda self: None if self._own.statistics is None else Statistics(self._own.statistics))


def pq_type(number: int) -> str:
    return str(fastpq.Type(number).name)


class LogicalType(Wrapped):
    type = property(lambda self: type(self._own).__name__.upper() if self._own is not None else "NONE")


class RowGroup(Wrapped):
    sorting_columns = property(lambda self: tuple(
        pq.SortingColumn(each.column_idx, each.descending, each.nulls_first) for each in self._own.sorting_columns))

    def column(self, number: int) -> Chunk:
        if not 0 <= number < self._own.num_columns:
            raise IndexError(number)
        return Chunk(self._own.column(number))


class MetaData(Wrapped):
    schema = property(lambda self: Schema(self._own))
    metadata = property(lambda self: {
        key.encode(): value.encode() for key, value in self._own.key_value_metadata.items()} or None)

    def row_group(self, number: int) -> RowGroup:
        return RowGroup(self._own.row_group(number))

    def append_row_groups(self, other: Any) -> None:
        try:
            self._own.append_row_groups(other._own)
        except fastpq.SchemaError as error:
            raise RuntimeError(f"AppendRowGroups requires equal schemas: {error}") from None


class Column(Wrapped):
    physical_type = property(lambda self: self._own.physical_type.name)
    path = property(lambda self: ".".join(self._own.path))
    name = property(lambda self: self._own.element.name)
    logical_type = property(lambda self: LogicalType(self._own.logical_type))
    converted_type = property(lambda self: "NONE" if self._own.element.converted_type is None else
                              ConvertedType(self._own.element.converted_type).name)


class Schema(Wrapped):
    names = property(lambda self: [column.element.name for column in self._own.schema.columns])

    def __len__(self) -> int:
        return len(self._own.schema.columns)

    def column(self, number: int) -> Column:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return Column(self._own.schema.columns[number])

    __getitem__ = column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._own.schema_elements == other._own.schema_elements

    def to_arrow_schema(self) -> pa.Schema:
        buffer = pa.BufferOutputStream()
        metadata = fastpq.FileMetaData(self._own._footer, self._own._decryptor)
        metadata.write_metadata_file(buffer)
        return pa.schema(fastpq.ParquetFile(pa.BufferReader(buffer.getvalue())).read(row_groups=[]))


def storage(schema: pa.Schema, options: Mapping[str, Any]) -> pa.Schema:
    """The schema, without extension types if the options say so."""
    if options.get("arrow_extensions_enabled") is not False:
        return schema
    plain = {pa.string_view(): pa.string()}
    own = [getattr(field.type, "storage_type", field.type) for field in schema]
    return pa.schema([field.with_type(plain.get(type_, type_)) for field, type_ in zip(schema, own, strict=True)])

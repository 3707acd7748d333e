"""pyarrow's functions that write, over fastpq."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

import fastpq
import fastpq.types
from tools.foreign_suites.pyarrow_footers import MetaData

WRITE_NAMES = {
    "use_dictionary": "use_dictionary", "compression": "compression", "compression_level": "compression_level",
    "write_statistics": "write_statistics", "data_page_size": "data_page_size", "data_page_version": "data_page_version",
    "column_encoding": "column_encoding", "dictionary_pagesize_limit": "dictionary_page_size", "store_schema": "arrow_schema",
    "write_page_index": "write_page_index", "write_page_checksum": "write_page_checksum", "sorting_columns": "sorting_columns",
    "bloom_filter_options": "bloom_filter", "max_rows_per_page": "data_page_rows", "filesystem": "filesystem",
    "encryption_properties": "encryption_properties", "use_content_defined_chunking": "use_content_defined_chunking",
    "store_decimal_as_integer": "store_decimal_as_integer",
}
# Types that older versions of the format do not have, and those that pyarrow writes in their place.
OLDER = {"1.0": [(pa.uint32(), pa.int64())], "2.4": [], "2.6": []}


IGNORED = {"buffer_size", "pre_buffer", "thrift_string_size_limit", "thrift_container_size_limit", "write_batch_size",
           "use_compliant_nested_type", "schema_depth_limit", "use_threads", "page_checksum_verification"}


def filesystem_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    filesystem, path = fs.FileSystem.from_uri(value)
    return fs.SubTreeFileSystem(path, filesystem) if path else filesystem


def refuse(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        is_default = value is None or value is False or (value is True and name in ("use_threads", "arrow_extensions_enabled"))
        if name not in IGNORED and not is_default:
            raise NotImplementedError(f"the shim has no option {name}={value!r}")


def write_options(options: Mapping[str, Any]) -> dict[str, Any]:
    own = {WRITE_NAMES[name]: value for name, value in options.items() if name in WRITE_NAMES and value is not None}
    if own.get("filesystem") is not None:
        own["filesystem"] = filesystem_of(own["filesystem"])
    if isinstance(own.get("compression"), str):
        own["compression"] = own["compression"].lower()
    refuse({name: value for name, value in options.items() if name not in WRITE_NAMES})
    return own


class ParquetWriter:
    is_open = True

    def __init__(self, where: Any, schema: pa.Schema, flavor: Any = None, coerce_timestamps: Any = None,
                 allow_truncated_timestamps: bool = False, metadata_collector: Any = None,
                 use_deprecated_int96_timestamps: Any = None, version: str = "2.6", use_byte_stream_split: Any = False,
                 **options: Any) -> None:
        own_types: dict[str, Any] = {}
        if options.pop("write_time_adjusted_to_utc", False):
            for field in schema:
                if pa.types.is_time(field.type):
                    unit = {"s": "ms"}.get(field.type.unit, field.type.unit)
                    physical = fastpq.Type.INT32 if unit == "ms" else fastpq.Type.INT64
                    own_types[field.name] = fastpq.ColumnType(physical, None, fastpq.types.Time(unit, True))
        if use_deprecated_int96_timestamps is True or (flavor == "spark" and use_deprecated_int96_timestamps is None):
            times = {field.name: {"s": "ms"}.get(field.type.unit, field.type.unit) for field in schema
                     if pa.types.is_timestamp(field.type)}
            own_types |= {name: fastpq.ColumnType(fastpq.Type.INT96, None, fastpq.types.Timestamp(unit))
                          for name, unit in times.items()}
        self._names = pq.core._sanitize_schema(schema, flavor or "")[0].names
        if version not in OLDER:
            raise ValueError(f"Unsupported Parquet format version: {version}")
        if isinstance(options.get("column_encoding"), str):
            options["column_encoding"] = dict.fromkeys(schema.names, options["column_encoding"])
        if use_byte_stream_split:
            names = schema.names if use_byte_stream_split is True else use_byte_stream_split
            own = options.get("column_encoding") or {}
            options["column_encoding"] = {**dict.fromkeys(names, "BYTE_STREAM_SPLIT"), **own}
        self._version = version
        self.schema, self._where, self._collector = schema, where, metadata_collector
        self._own_texts: dict[str, str] = {}
        if isinstance(where, str) and where.startswith("fsspec+"):
            where = where.removeprefix("fsspec+")
        if coerce_timestamps not in (None, "ms", "us"):
            raise ValueError(f"Invalid value for coerce_timestamps: {coerce_timestamps}")
        options = write_options(options)
        options |= {"coerce_timestamps": coerce_timestamps, "allow_truncated_timestamps": allow_truncated_timestamps}
        self._writer = fastpq.ParquetWriter(where, own_types or None, key_value_metadata=self._own_texts, **options)
        tables = [*self._writer._input.tables(self._converted(schema.empty_table())), *self._writer._input.rest()]
        self._writer._put(tables, lambda file, table: None)     # the schema decides the types, as in pyarrow

    def _converted(self, table: pa.Table) -> pa.Table:
        fields = [self._field(field).with_name(name) for field, name in zip(table.schema, self._names, strict=True)]
        if [field.type for field in fields] == table.schema.types:
            return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))
        table = pa.Table.from_arrays(table.columns, [field.name for field in fields])
        return table.cast(pa.schema(fields, self.schema.metadata))

    def _field(self, field: pa.Field) -> pa.Field:
        type_ = dict(OLDER[self._version]).get(field.type, field.type)
        if pa.types.is_timestamp(type_) and self._version != "2.6" and type_.unit == "ns":
            type_ = pa.timestamp("us", type_.tz)
        return field.with_type(type_)

    def write_table(self, table: pa.Table, row_group_size: int | None = None) -> None:
        if not table.schema.equals(self.schema, check_metadata=False):
            raise ValueError("Table schema does not match schema used to create file")
        if row_group_size == 0:
            raise ValueError("Row group size cannot be 0")
        size = table.num_rows or 1 if row_group_size in (None, -1) else int(row_group_size)
        for start in range(0, table.num_rows, size):
            self._writer.write_table(self._converted(table.slice(start, size)))

    def write_batch(self, batch: pa.RecordBatch, row_group_size: int | None = None) -> None:
        self.write_table(pa.Table.from_batches([batch], batch.schema), row_group_size)

    def write(self, data: Any, row_group_size: int | None = None) -> None:
        (self.write_batch if isinstance(data, pa.RecordBatch) else self.write_table)(data, row_group_size)

    def add_key_value_metadata(self, texts: Mapping[str, str]) -> None:
        self._own_texts.update(texts)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._writer.close()
            if self._collector is not None:
                self._collector.append(MetaData(fastpq.read_metadata(self._where)))

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._writer.abort() if kind is not None else self.close()


def write_table(table: pa.Table, where: Any, row_group_size: int | None = None, **options: Any) -> None:
    size = options.pop("chunk_size", row_group_size)
    with ParquetWriter(where, table.schema, **options) as writer:
        writer.write_table(table, size)


def write_to_dataset(table: Any, root_path: Any, partition_cols: Any = None, basename_template: Any = None, schema: Any = None,
                     existing_data_behavior: str = "append", file_visitor: Any = None, metadata_collector: Any = None,
                     partitioning: Any = None, **options: Any) -> None:
    options.pop("create_dir", None)
    is_list = isinstance(partitioning, list)
    refuse({"partitioning": None if is_list else partitioning})
    collector = [] if metadata_collector is None else metadata_collector

    def visit(file: Any) -> None:
        metadata = MetaData(file.metadata)
        metadata.set_file_path(os.path.relpath(file.path, str(root_path)))
        collector.append(metadata)
        if file_visitor is not None:
            file_visitor(file)

    fastpq.write_dataset(
        table, root_path, partition_by=partition_cols or partitioning or (),
        partitioning="directory" if is_list else "hive", basename_template=basename_template, check_schema=False,
        existing_data_behavior="append" if existing_data_behavior == "overwrite_or_ignore" and basename_template is None
        else existing_data_behavior, file_visitor=visit, **write_options(options))   # type: ignore[arg-type]


def write_metadata(schema: pa.Schema, where: Any, metadata_collector: Any = None, filesystem: Any = None, **options: Any) -> None:
    write_table(schema.empty_table(), where, filesystem=filesystem, **options)
    if metadata_collector is not None:
        metadata = MetaData(fastpq.read_metadata(where, filesystem=filesystem))
        for other in metadata_collector:
            metadata.append_row_groups(other)
        metadata.write_metadata_file(where)

"""New data files of an Iceberg table, with its types, field ids and keys, and their description as PyIceberg's DataFile."""

from __future__ import annotations

import os
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from fastpq.api.file import ParquetFile
from fastpq.api.functions import write_table
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.catalogs.iceberg.file_columns import TableField
from fastpq.catalogs.iceberg.key_chain import data_key_bits
from fastpq.catalogs.iceberg.key_metadata import StandardKeyMetadata
from fastpq.catalogs.iceberg.parquet_properties import as_key_metadata, file_properties
from fastpq.catalogs.iceberg.table_files import is_encrypted_table, is_own_file_io, local_path_of, opened_place
from fastpq.common.lazy import LazyModule, package
from fastpq.convert.caller_input import table_from
from fastpq.encryption.audit import AuditLog
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.sink import BytesLike
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.options import WriterProperties, takes_options
from fastpq.schema.types import Type

if TYPE_CHECKING:
    from fastpq.api import keywords
else:       # types in annotations, which typing.get_type_hints resolves
    keywords = LazyModule("fastpq.api.keywords")

BOUND_LENGTH = 16       # most characters or bytes in a bound, as in Iceberg's default metrics mode
# PyIceberg types whose bounds are left out: PyIceberg cannot serialize them, or they have no order.
TYPES_WITHOUT_BOUNDS = ("TimestampNanoType", "TimestamptzNanoType", "UnknownType", "VariantType", "GeometryType", "GeographyType")


@hides_arguments
@takes_options(WriterProperties)
def write_data_file(
    data: Any,
    table: Any,
    where: str | None = None,
    *,
    encrypt: bool | None = None,
    key_metadata: StandardKeyMetadata | BytesLike | None = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    audit: AuditLog | None = None,
    **options: Unpack[keywords.WriterOptions],
) -> Any:
    """Write rows as a data file of an Iceberg table, and return what the table's metadata have to say about it.

    The file has the types of the table's schema, and the field id of each column. It is not part of the table until a
    snapshot adds it, for example ``fast_append().append_data_file(data_file)`` in PyIceberg. The DataFile holds the data key in
    plaintext, and so does a manifest that PyIceberg writes: manifests have to be protected, or be encrypted themselves.

    Args:
        data: columns as for ``fastpq.write_table``, all of the table's and no others. In a partitioned table all rows must be of
            one partition.
        table: a PyIceberg Table.
        where: the new file's location. None asks the table's location provider.
        encrypt: whether the file is encrypted. None encrypts it if the table has the property ``encryption.key-id``, or if
            ``key_metadata`` are given.
        key_metadata: key metadata for this file alone. None makes a new key, as long as the table's properties say.
        properties: how to write. Options have priority over properties.
        threads: how many columns are encoded at the same time. None takes one for each core.
        audit: log that records which keys the file gets.
        **options: any writer option:

    Returns:
        A PyIceberg DataFile with sizes, counts, bounds, partition and key metadata.

    Raises:
        SchemaError: columns are missing or too many, values do not fit, or rows are of several partitions.
        ValueError: the key metadata belong to another file, or contradict ``encrypt``.
        UnsupportedError: PyIceberg is not installed.
        OSError: the file cannot be written.
    """
    package("pyiceberg", "a data file of an Iceberg table")
    package("pyarrow", "a data file of an Iceberg table")
    metadata = _key_metadata(table, encrypt, key_metadata)
    keys = None if metadata is None else file_properties(metadata, audit=audit)
    fields = table.schema().fields
    rows = _fitted(data, [TableField(field) for field in fields])
    partition = _partition_of(rows, table)
    if where is None:
        where = table.location_provider().new_data_location(f"{uuid.uuid4()}.parquet", partition)
    options["field_ids"] = dict(_ids_by_path(fields))
    with _target(table.io, where) as (target, condition):
        write_table(
            rows, target, encryption_properties=None if keys is None else keys.encryption, properties=properties,
            threads=threads, if_none_match=condition, **options,
        )
    decryption_properties = None if metadata is None else file_properties(metadata).decryption
    with opened_place(table.io, where) as place, ParquetFile(place, decryption_properties=decryption_properties) as file:
        length = file._size
        final_metadata = None if metadata is None else metadata.with_file_length(length).to_bytes()
        return _data_file(table, where, partition, final_metadata, length, _statistics(file, table.schema(), rows))


def _key_metadata(
    table: Any, encrypt: bool | None, key_metadata: StandardKeyMetadata | BytesLike | None
) -> StandardKeyMetadata | None:
    """Return the new file's key metadata, or None for a plaintext file."""
    if encrypt is False or (encrypt is None and key_metadata is None and not is_encrypted_table(table.properties)):
        if key_metadata is not None:
            raise ValueError("there are key metadata for a file that is not encrypted: leave out encrypt=False")
        if is_encrypted_table(table.properties):
            raise ValueError("the table is encrypted, and so must its files be: leave out encrypt=False")
        return None
    if key_metadata is None:
        return StandardKeyMetadata.generate(key_bits=data_key_bits(table.properties))
    metadata = as_key_metadata(key_metadata)
    if metadata.file_length is not None:
        raise ValueError("these key metadata have a length, so that they belong to an older file: generate new ones")
    return metadata


def _fitted(data: Any, fields: Sequence[TableField]) -> Table:
    """Return the rows with the table's columns and types."""
    table = data if isinstance(data, Table) else table_from(data)
    names = [field.name for field in fields]
    if Counter(table.names) != Counter(names):
        missing_names, more_names = sorted(set(names) - set(table.names)), sorted(set(table.names) - set(names))
        raise SchemaError(
            f"the data must have exactly the columns of the table, once each: missing are {missing_names}, too many {more_names}"
        )
    return Table([(field.name, field.fitted(table[field.name])) for field in fields], num_rows=table.num_rows)


class DataPartition(NamedTuple):
    """A data file's partition.

    Attributes:
        partition: the partition fields' values, as a PyIceberg Record.
        path: the partition's part of the file's location.
    """

    partition: Any
    path: str

    def to_path(self) -> str:
        """Return the partition's part of the file's location. Location providers ask for it."""
        return self.path


def _partition_of(rows: Table, table: Any) -> DataPartition | None:
    """Return the rows' partition, or None for a table without partitions."""
    from pyiceberg.partitioning import partition_record_value
    from pyiceberg.typedef import Record

    spec, schema = table.spec(), table.schema()
    if not spec.fields:
        return None
    values: list[Any] = []
    for field in spec.fields:
        source = schema.find_field(field.source_id)
        if source.name not in rows:
            raise UnsupportedError(f"the table is partitioned by the nested field {source.name}")
        transform = field.transform.transform(source.field_type)
        stored_values = (partition_record_value(field, value, schema) for value in set(rows[source.name].to_pylist()))
        partition_values = {transform(value) for value in stored_values}
        if len(partition_values) != 1:
            message = f"a data file has the rows of one partition, but these are of {len(partition_values)}"
            raise SchemaError(message, column=source.name)
        values += partition_values
    partition = Record(*values)
    return DataPartition(partition, spec.partition_to_path(partition, schema))


def _ids_by_path(fields: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield the path in a Parquet schema and the field id of each field of a table, the nested ones too."""
    for field in fields:
        path = f"{prefix}{field.name}"
        yield path, field.field_id
        yield from _inner_ids(field.field_type, path)


def _inner_ids(type_: Any, path: str) -> Iterator[tuple[str, int]]:
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(type_, StructType):
        yield from _ids_by_path(type_.fields, f"{path}.")
    elif isinstance(type_, ListType):
        yield f"{path}.list.element", type_.element_id
        yield from _inner_ids(type_.element_type, f"{path}.list.element")
    elif isinstance(type_, MapType):
        for name, field_id, inner in (("key", type_.key_id, type_.key_type), ("value", type_.value_id, type_.value_type)):
            yield f"{path}.key_value.{name}", field_id
            yield from _inner_ids(inner, f"{path}.key_value.{name}")


@contextmanager
def _target(io: Any, where: str) -> Iterator[tuple[Any, str | None]]:
    """Yield what write_table writes to, and its condition that there is no file yet."""
    path = local_path_of(where) if is_own_file_io(io) else None
    if path is None:
        with io.new_output(where).create() as file:
            yield file, None
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        yield path, "*"


def _data_file(
    table: Any,
    where: str,
    partition: DataPartition | None,
    key_metadata: bytes | None,
    length: int,
    statistics: Mapping[str, Any],
) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=where,
        file_format=FileFormat.PARQUET,
        partition=Record() if partition is None else partition.partition,
        file_size_in_bytes=length,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=key_metadata,
        **statistics,
    )
    data_file.spec_id = table.spec().spec_id
    return data_file


def _statistics(file: ParquetFile, schema: Any, rows: Table) -> dict[str, Any]:
    """Return the counts, sizes and bounds of a DataFile. Maps are by field id."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    lower_bounds, upper_bounds = {}, {}
    groups = list(file.metadata.row_groups)
    for column in file.schema.columns:
        field_id = column.element.field_id
        assert field_id is not None, "each column was written with its id"
        chunks = [group.column(column.index) for group in groups]
        counts["column_sizes"][field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        counts["value_counts"][field_id] = sum(chunk.num_values for chunk in chunks)
        null_counts = [chunk.statistics.null_count for chunk in chunks if chunk.statistics is not None]
        if len(null_counts) == len(chunks) and None not in null_counts:
            counts["null_value_counts"][field_id] = sum(null_counts)
        if column.max_repetition_level == 0 and (bounds := _bounds(chunks, schema.find_field(field_id).field_type)) is not None:
            lower_bounds[field_id], upper_bounds[field_id] = bounds
    nan_counts = {field.field_id: _nan_count(rows[field.name]) for field in schema.fields}
    return {
        "record_count": file.num_rows,
        **{name: dict(counts[name]) for name in ("column_sizes", "value_counts", "null_value_counts")},
        "nan_value_counts": {field_id: count for field_id, count in nan_counts.items() if count is not None},
        "lower_bounds": {field_id: bound for field_id, bound in lower_bounds.items() if bound is not None},
        "upper_bounds": {field_id: bound for field_id, bound in upper_bounds.items() if bound is not None},
        "split_offsets": [group.column(0).byte_range[0] for group in groups],
    }


def _bounds(chunks: Sequence[ColumnChunkMetaData], type_: Any) -> tuple[bytes | None, bytes | None] | None:
    """Return a lower and an upper bound as Iceberg serializes them, or None if they are unknown.

    Args:
        chunks: the column's chunks.
        type_: the column's type in PyIceberg.
    """
    from pyiceberg.conversions import to_bytes
    from pyiceberg.types import BinaryType, StringType
    from pyiceberg.utils.truncate import truncate_upper_bound_binary_string, truncate_upper_bound_text_string

    if type(type_).__name__ in TYPES_WITHOUT_BOUNDS or any(chunk.statistics is None for chunk in chunks):
        return None
    chunks_with_values = [chunk.statistics for chunk in chunks if chunk.statistics.null_count != chunk.num_values]
    if not chunks_with_values or not all(statistics.has_min_max for statistics in chunks_with_values):
        return None
    low = min(statistics.min for statistics in chunks_with_values)
    high = max(statistics.max for statistics in chunks_with_values)
    if isinstance(type_, StringType):
        low, high = low[:BOUND_LENGTH], truncate_upper_bound_text_string(high, BOUND_LENGTH)
    elif isinstance(type_, BinaryType):
        low, high = low[:BOUND_LENGTH], truncate_upper_bound_binary_string(high, BOUND_LENGTH)
    return to_bytes(type_, low), None if high is None else to_bytes(type_, high)


def _nan_count(column: AnyColumn) -> int | None:
    """Return how many NaNs a column of floats has, or None for another column."""
    if not isinstance(column, Column) or column.type.physical not in (Type.FLOAT, Type.DOUBLE):
        return None
    is_nan = np.isnan(np.asarray(column.values))
    return int((is_nan & column.validity_mask()).sum())

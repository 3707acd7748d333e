"""write_dataset: writes rows as files in partitions."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast

import numpy as np

from fastpq.api.writer import ParquetWriter
from fastpq.api.writer_input import WriterInput, batches_of, no_index_of
from fastpq.arrays.flat_column import DictionaryValues, fixed_values
from fastpq.arrays.table import Column, Table
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Meter, Progress
from fastpq.convert.caller_input import table_from
from fastpq.convert.dataframe_input import is_dataframe, table_from_dataframe
from fastpq.convert.pandas_metadata import PANDAS_KEY, without_columns
from fastpq.convert.schemas import RequestedSchema
from fastpq.datasets.appending import SchemaCheck, schema_without_partitions
from fastpq.datasets.discovery import find_files
from fastpq.datasets.hive import format_directories, format_partitions
from fastpq.datasets.keys_of_files import DatasetEncryption, check_template, encryption_by_path
from fastpq.datasets.metadata_writing import has_metadata, settle_metadata
from fastpq.datasets.new_files import NewFileOptions, PartitionFiles, WrittenFile
from fastpq.datasets.open_writers import MOST_OPEN, MOST_OPEN_REMOTE, FileLimits, OpenWriters
from fastpq.datasets.placement import Placement
from fastpq.datasets.staged_files import StagedFolders, StagedUploads
from fastpq.datasets.unify import given_fields
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import Remote, RemotePath, locate, placed
from fastpq.options import WriterProperties, takes_options, with_options
from fastpq.read.rows import number_of_rows
from fastpq.schema.nested_types import DataType
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.variant.shredding_choice import Shredding

if TYPE_CHECKING:
    from fastpq.api import keywords
else:       # typing.get_type_hints looks up annotation types here
    keywords = LazyModule("fastpq.api.keywords")

ExistingData: TypeAlias = Literal["append", "error", "overwrite_or_ignore", "delete_matching", "overwrite"]


@takes_options(WriterProperties)
def write_dataset(
    data: Any,
    root: Any,
    *,
    partition_by: Sequence[str] = (),
    partitioning: Literal["hive", "directory"] = "hive",
    existing_data_behavior: ExistingData = "append",
    basename_template: str | None = None,
    file_visitor: Callable[[WrittenFile], object] | None = None,
    encryption_properties: DatasetEncryption = None,
    progress: Progress | None = None,
    schema: Mapping[str, Any] | ParquetSchema | Any = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    shred: Mapping[str, Shredding] | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    index: bool | None = None,
    check_schema: bool = True,
    write_metadata_file: bool | None = None,
    **options: Unpack[keywords.WriterOptions],
) -> list[str]:
    """Write rows as files below a directory, split by partition column values. By default existing files stay.

    Every file appears as a whole. Rows that are appended must have the dataset's columns: names and types are compared with one
    file, unless its footer is encrypted. Narrower integers and floats are cast to the dataset's types. After a failure, files
    that were already appended remain, and so do partition directories without a file. Files are replaced all at once or not at
    all in a local folder, and in a whole dataset in S3, Azure and Google's store.

    Args:
        data: a table in any form that ``write_table`` accepts. Streams and iterators are written in bounded memory: up to 256 MiB
            of rows wait for whole row groups, and at most 128 files are open. In a store at most 16 files are open, because each
            also keeps parts of its upload in memory. If a partition's file was closed for another one, more rows for this
            partition go to a new file. Therefore sort the rows by partition if there are many partitions.
        root: a directory, which is made if it is missing, or an fsspec URL.
        partition_by: partition column names, outermost first. These columns have numbers, dates, timestamps without a time zone,
            text, or booleans. Booleans are read back as text.
        partitioning: names of partition directories. ``"hive"``: ``name=value``. ``"directory"``: the value alone, which a reader
            gets with ``partitioning=partition_by``.
        existing_data_behavior: what happens to the files that are there. ``"append"``: they stay. ``"error"``: a
            FileExistsError. ``"overwrite_or_ignore"``: they stay, unless a new file has the same name (basename_template).
            ``"delete_matching"``: the new files replace all files in each partition that gets rows. ``"overwrite"``: they
            replace the whole dataset. Readers see the old or the new files of a folder, even if the process is killed. Files
            without data, for example README.txt, stay, and so do hidden files that do not belong to the old data files. Rows that
            others append to a folder while it is replaced may be lost.
        basename_template: file name in which ``{i}`` stands for a number that begins with 0 in each directory. Names that exist
            are passed over, except with ``"overwrite_or_ignore"``. None gives every file a new name.
        file_visitor: called with a WrittenFile (``path``, ``size``, ``metadata``) for each file, when all files are in their
            places.
        encryption_properties: keys for every file, a DatasetEncryptionProperties, or a function that returns the keys for a
            file's path. External key material needs one of the latter two. Partition values are in the paths, in plaintext.
        progress: called as ``progress(done, total)``, in rows. The last call is ``(total, total)``. An exception from the call
            removes the unfinished file.
        schema: column types by name, as for ``write_table``. It may have the partition columns, although the files do not store
            them. A stream without tables becomes an empty file with this schema, or no file if there are partitions.
        properties: writer properties. Options override them.
        threads: how many columns are encoded at the same time, or None for one per core.
        shred: shredding for variant columns by name, as for ParquetWriter.
        filesystem: an fsspec or pyarrow.fs filesystem for the path, or None to find one by the URL.
        storage_options: options for the URL's fsspec filesystem, as for pandas and Polars.
        timeout: for S3 URLs, longest time in seconds without a byte from the server.
        max_rows_per_file: largest number of rows in a file, or None for one file per partition.
        max_bytes_per_file: largest size of the row groups in a file, as stored, or None for one file per partition. Every file
            but the last has full row groups alone. A row group takes at most this many bytes in memory.
        index: whether a pandas DataFrame's index is kept, as for ``write_table``.
        check_schema: whether to refuse rows whose columns differ from those in the existing files. With False, readers unite the
            columns.
        write_metadata_file: whether to write ``_metadata`` and ``_common_metadata`` after the files, as
            ``write_dataset_metadata`` does. None writes both again if one exists, or removes both if the files cannot be in
            ``_metadata`` because they are encrypted or have different schemas. False removes both.
        **options: any of the fields of WriterProperties:

    Returns:
        Paths to the written data files.

    Raises:
        SchemaError: a partition column is missing, a directory name cannot hold a value, all columns are partition columns, the
            columns differ from the dataset's, or a file to replace is not a Parquet file. Nothing is written then.
        FileExistsError: the directory has files, and ``existing_data_behavior`` is ``"error"``.
        FormatError: the file to compare with is not a Parquet file.
        UnsupportedError: ``write_metadata_file`` with encryption, or a filesystem that cannot replace files in one step.
    """
    if isinstance(partition_by, str):
        raise SchemaError(f"partition_by must be a list of names: {partition_by!r} is one name")
    root = placed(root, filesystem, storage_options, timeout)
    limits = _limits(max_rows_per_file, max_bytes_per_file)
    properties = _properties(root, with_options(properties, options), limits, write_metadata_file, encryption_properties)
    schema = schema_without_partitions(schema, partition_by)
    is_replaced = existing_data_behavior == "overwrite" or (existing_data_behavior == "delete_matching" and not partition_by)
    had_metadata = is_replaced and write_metadata_file is None and has_metadata(root)      # the new files replace it too
    check_template(encryption_properties, basename_template, partition_by)
    new_file_options = NewFileOptions(properties, threads, shred, basename_template, file_visitor)
    with placement_of(
        root, existing_data_behavior, is_partitioned=bool(partition_by), durable=properties.durable
    ) as placement:
        check = SchemaCheck(root, partition_by, schema, partitioning) if check_schema and not is_replaced else None
        keys_of = encryption_by_path(encryption_properties, partition_by, locate(root))
        files = PartitionFiles(placement, keys_of, new_file_options, check)
        rows = _PartitionedRows(files, Partitions(partition_by, partitioning), limits, schema)
        paths = rows.write(data, cast(FileEncryptionProperties | None, encryption_properties), index, progress)
    files.visit(paths)
    settle_metadata(root, write_metadata_file, is_missing=had_metadata)
    return paths


def _limits(max_rows: int | None, max_bytes: int | None) -> FileLimits:
    return FileLimits(
        None if max_rows is None else number_of_rows("max_rows_per_file", max_rows, 1),
        None if max_bytes is None else number_of_rows("max_bytes_per_file", max_bytes, 1),
    )


def _properties(
    root: Any, properties: WriterProperties, limits: FileLimits, write_metadata_file: bool | None, keys: DatasetEncryption
) -> WriterProperties:
    """Return the properties of the new files.

    Raises:
        UnsupportedError: ``write_metadata_file`` with keys.
    """
    if write_metadata_file and keys is not None:
        raise UnsupportedError("write_metadata_file would write statistics of encrypted files in plaintext")
    if write_metadata_file or (write_metadata_file is None and isinstance(locate(root), str) and has_metadata(root)):
        properties = replace(properties, durable=True)      # _metadata is durable, so the files that it names must be too
    if limits.bytes is not None:
        properties = replace(properties, row_group_bytes=min(properties.row_group_bytes, limits.bytes))
    return properties


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partition columns of a dataset that is written.

    Attributes:
        names: column names, outermost first.
        style: names of directories, as the argument ``partitioning`` of write_dataset.
    """

    names: Sequence[str]
    style: Literal["hive", "directory"]

    def __post_init__(self) -> None:
        if self.style not in ("hive", "directory"):
            raise ValueError(f'partitioning must be "hive" or "directory", not {self.style!r}')

    def folder(self, values: Mapping[str, Any]) -> str:
        """Return the directory for partition values, relative to the dataset's folder."""
        return format_partitions(values) if self.style == "hive" else format_directories(values)


@dataclass(frozen=True, slots=True)
class _PartitionedRows:
    """Rows that become files in partitions.

    Attributes:
        files: creates the files.
        partitions: the partition columns.
        limits: limits of each file.
        schema: column types without the partition columns, as for ``write_table``, or None.
    """

    files: PartitionFiles
    partitions: Partitions
    limits: FileLimits
    schema: Any

    def write(
        self, data: Any, keys: FileEncryptionProperties | None, index: bool | None, progress: Progress | None
    ) -> list[str]:
        """Write a table, or a stream of tables, and return the file paths."""
        batches = None if isinstance(data, Mapping) else batches_of(data)
        if batches is not None:
            writer_input = WriterInput(self.schema, self.files.properties, None, keys, index)
            return self._write_stream(writer_input, batches, Meter(progress))
        maps = None if self.schema is None else RequestedSchema(self.schema).maps
        table, self.files.metadata = _table(data, self.partitions.names, keys is None, index, maps)
        return self._write_table(table, progress)

    def _write_table(self, table: Table, progress: Progress | None) -> list[str]:
        """Write a whole table, partition after partition, and return the file paths."""
        rest, meter = self.files.checked(_without(table, self.partitions.names)), Meter(progress, table.num_rows)
        groups = _groups(table, self.partitions.names)
        folders = [self.partitions.folder(values) for values, _ in groups]       # refuses bad values before any file is written
        self.files.make_folders(folders)
        paths = []
        for (_, rows), folder in zip(groups, folders, strict=True):
            whole = rest if rows is None else rest._of((column.take(rows) for column in rest.columns), len(rows))
            if self.limits.bytes is not None:
                paths += self._write_limited(folder, whole)
                meter.add(whole.num_rows)
                continue
            step = self.limits.rows or max(whole.num_rows, 1)
            for start in range(0, max(whole.num_rows, 1), step):
                part = whole if step >= whole.num_rows else whole.slice(start, min(start + step, whole.num_rows))
                span = meter.span(part.num_rows)
                path, writer = self.files.open(folder, self.schema, None if span is None else span.reach)
                writer._write_whole(part)
                paths.append(path)
        meter.finish()
        return paths

    def _write_limited(self, folder: str, rows: Table) -> list[str]:
        """Write one partition's rows to files that have a limit in bytes, and return the file paths."""
        with OpenWriters(lambda folder: self.files.open(folder, self.schema), self.limits) as writers:
            writers.add(folder, rows)
        return writers.finished_paths

    def _write_stream(self, writer_input: WriterInput, batches: Iterator[Any], meter: Meter) -> list[str]:
        """Write batches as they arrive, with the columns and types of the first one, and return the file paths."""
        names = self.partitions.names

        def open_file(folder: str) -> tuple[str, ParquetWriter]:
            self.files.metadata = _of_parts(writer_input.table_metadata, names)
            return self.files.open(folder, self.schema if isinstance(self.schema, ParquetSchema) and not names else None)

        def tables() -> Iterator[Table]:
            for batch in batches:
                yield from writer_input.tables(batch)
            yield from writer_input.rest()

        with OpenWriters(open_file, self.limits, MOST_OPEN_REMOTE if self.files.is_remote else MOST_OPEN) as writers:
            for table in tables():
                rest = self.files.checked(_without(table, names))
                meter.expect(table.num_rows)
                for values, rows in _groups(table, names):
                    whole = rest if rows is None else rest._of((column.take(rows) for column in rest.columns), len(rows))
                    if whole.num_rows or not (writers.finished_paths or writers.is_open):
                        writers.add(self.partitions.folder(values), whole)
                meter.add(table.num_rows)
            if self.schema is not None and not (names or writers.finished_paths or writers.is_open):
                for table in _nothing(self.schema, writer_input):
                    writers.add("", self.files.checked(table))
        meter.finish()
        return writers.finished_paths


def _nothing(schema: Any, writer_input: WriterInput) -> list[Table]:
    """Return tables without rows that have a schema's columns."""
    if not isinstance(schema, ParquetSchema):
        return writer_input.empty()
    return [Table((name, field.of_nulls(0)) for name, field in given_fields(schema).items())]


def _without(table: Table, partition_by: Sequence[str]) -> Table:
    names = [name for name in table.names if name not in partition_by]
    if partition_by and not names:
        raise SchemaError("a file needs a column that is not a partition column")
    return table.select(names)


def _table(
    data: Any, partition_by: Sequence[str], with_categories: bool, index: bool | None, maps: Mapping[str, DataType] | None
) -> tuple[Table, Mapping[str, str]]:
    """Return the data as a Table, and for a DataFrame its description for the key-value metadata."""
    description: Mapping[str, str] = {}
    if is_dataframe(data):
        data, text = table_from_dataframe(data, with_categories=with_categories, index=index, maps=maps)
        description = _of_parts({PANDAS_KEY: text}, partition_by)
    elif index is not None:
        raise no_index_of(data)
    return table_from(data, maps=maps), description


def _of_parts(metadata: Mapping[str, str], partition_by: Sequence[str]) -> Mapping[str, str]:
    """Return a table's metadata without the partition columns, because the files do not have these columns."""
    return {key: without_columns(text, partition_by) if key == PANDAS_KEY else text for key, text in metadata.items()}


def _groups(table: Table, names: Sequence[str]) -> list[tuple[Mapping[str, Any], Any]]:
    """Split a table's rows by the values in some columns.

    Returns:
        (values by column name, row numbers in ascending order) for each combination of values. If there are no columns, one item
        without values, whose row numbers are None: all rows.
    """
    if not names:
        return [({}, None)]
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        own = _codes(table.flat(name))
        # new numbers at every step keep the products small
        codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    firsts = np.unique(codes, return_index=True)[1]
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []
    singles = {name: _singles(table.flat(name).take(firsts)) for name in names}
    return [({name: singles[name][group] for name in names}, numbers) for group, numbers in enumerate(rows)]


def _singles(column: Column) -> list[Any]:
    """Return values as Python objects. FLOAT values stay NumPy scalars, because their text is shorter."""
    if column.type.dtype != np.float32:
        return column.to_pylist()
    return [value if valid else None for value, valid in zip(fixed_values(column), column.validity_mask(), strict=True)]


def _codes(column: Column) -> Any:
    """Return a number for each value. Equal values have equal numbers, and null has 0."""
    if column.type.is_variable:
        values = column.as_dictionary().values
        assert isinstance(values, DictionaryValues)
        codes = values.codes.astype(np.int64) + 1
    else:
        codes = np.unique(fixed_values(column), return_inverse=True)[1] + 1
    return np.where(column.validity_mask(), codes, 0)


def placement_of(root: Any, existing_data: ExistingData, *, is_partitioned: bool, durable: bool) -> Placement:
    """Return the placement for ``existing_data_behavior``.

    Args:
        root: the dataset's folder.
        existing_data: what happens to existing files.
        is_partitioned: whether the new files are in folders of partitions.
        durable: whether new folders survive a power failure.

    Raises:
        FileExistsError: the folder has files, and ``existing_data`` is ``"error"``.
        SchemaError: ``root`` is not a folder.
        UnsupportedError: the filesystem cannot replace a folder in one step.
    """
    place = locate(root)
    if place is None:
        raise SchemaError(f"a dataset must be written to a directory or a URL, not to a {type(root).__name__}")
    match existing_data:
        case "append":
            return Placement(place, durable=durable)
        case "overwrite_or_ignore":
            return Placement(place, durable=durable, replaces=True)
        case "error":
            if _has_files(place):
                name = place.name if isinstance(place, Remote) else place
                raise FileExistsError(errno.EEXIST, 'the folder is not empty, and existing_data_behavior is "error"', name)
            return Placement(place, durable=durable)
        case "delete_matching" | "overwrite":
            is_whole = existing_data == "overwrite" or not is_partitioned
            return StagedUploads(place, is_whole) if isinstance(place, Remote) else StagedFolders(place, is_whole)
    raise ValueError(
        'existing_data_behavior must be "append", "error", "overwrite_or_ignore", "delete_matching" or "overwrite", '
        f"not {existing_data!r}"
    )


def _has_files(place: str | Remote) -> bool:
    if isinstance(place, str):
        return os.path.isdir(place) and bool(os.listdir(place))
    try:
        return bool(find_files(RemotePath(place.filesystem, place.path)))
    except FileNotFoundError:
        return False

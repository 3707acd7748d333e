"""Functions that read a table, a DataFrame, a footer or a schema, and that write a table."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from fastpq import encryption
from fastpq.api.file import ParquetFile, RowRangesLike
from fastpq.api.reader_options import PLACING, OpeningOptions, taken_place
from fastpq.arrays.table import Table
from fastpq.common.extensions import registered
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Progress
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, locate
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import WriterProperties, takes_options
from fastpq.schema.parquet_schema import ColumnKey, ParquetSchema

if TYPE_CHECKING:
    import pandas

    from fastpq.api import keywords
    from fastpq.convert import dataframes
    from fastpq.variant import shredding_choice
else:       # types in annotations, which typing.get_type_hints resolves
    keywords = LazyModule("fastpq.api.keywords")
    pandas = LazyModule("pandas")
    dataframes = LazyModule("fastpq.convert.dataframes")
    shredding_choice = LazyModule("fastpq.variant.shredding_choice")


@takes_options(OpeningOptions)
def read_table(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    row_ranges: RowRangesLike | None = None,
    filters: Any = None,
    out: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Unpack[keywords.ReaderOptions],
) -> Table:
    """Read a file into memory, as ParquetFile does. Or read a directory, a glob or several files, as ``read_dataset`` does.

    Args:
        where: a path, a bytes-like object, a URL that fsspec knows, a binary file object, a directory, a glob, or a list of paths
            and URLs.
        columns: names (dotted paths for leaves of groups) or numbers, in result order. None reads all columns. A dataset
            takes names and paths, but no numbers.
        row_groups: row group numbers, in result order. None reads all row groups.
        row_ranges: file rows as pairs ``(start, stop)``, in ascending order, counted from 0 through all row groups. None
            reads all rows.
        filters: conditions on rows: ``(column, op, value)``, lists of conditions, or And and Or, as in ``ParquetFile.read``.
        out: arrays into which columns are read, by name, as in ``ParquetFile.read``.
        progress: called as ``progress(done, total)`` after each column chunk, in rows. The last call is ``(total, total)``.
        **options: any reader option:

    Returns:
        A Table with the requested columns and rows, in file order.

    Raises:
        FormatError: this is not a Parquet file, or its bytes break the specification.
        SchemaError: columns, row groups, rows, filters or arrays do not fit the file.
        KeyAccessError, TagVerificationError: encrypted parts cannot be opened.
        UnsupportedError, LimitError: see fastpq.errors.
    """
    of_file = {"row_groups": row_groups, "row_ranges": row_ranges, "out": out}
    arguments = {"columns": columns, "filters": filters, "progress": progress}
    table: Table = _read(where, options, ParquetFile.read, "read_dataset", of_file, arguments)
    return table


@takes_options(OpeningOptions)
def read_pandas(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    filters: Any = None,
    dtype_backend: dataframes.Backend | None = None,
    types_mapper: Callable[[Any], Any] | None = None,
    ignore_metadata: bool = False,
    to_pandas_kwargs: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Unpack[keywords.ReaderOptions],
) -> pandas.DataFrame:
    """Read a file as a pandas DataFrame, with the index, labels, categories and dtypes that the file's metadata describe.

    The metadata in a file from fastpq, or else the dictionary pages, give the order of the categories. If neither gives an order
    for ordered categories, the values do not become a categorical.

    Args:
        where: a path, a bytes-like object, a URL that fsspec knows, a binary file object, a directory, a glob, or a list of paths
            and URLs (``read_dataset``).
        columns: names (dotted paths for leaves of groups) or numbers. None reads all columns. The index is always read. If the
            DataFrame labels are not text, columns and filters use the labels.
        row_groups: row group numbers, in result order. None reads all row groups.
        filters: conditions on rows: ``(column, op, value)``, lists of conditions, or And and Or, as in ``ParquetFile.read``.
        dtype_backend: ``"numpy_nullable"`` for pandas' nullable dtypes, ``"pyarrow"`` for pandas' Arrow dtypes in all columns, as
            in ``pandas.read_parquet``, or None for the dtypes in the metadata.
        types_mapper: function from a pyarrow type to the extension dtype of columns with this type, or to None for the dtype that
            they would have otherwise, as in ``pyarrow.Table.to_pandas``. It needs pyarrow.
        ignore_metadata: whether to leave out what the file's metadata say about the index, labels and dtypes.
        to_pandas_kwargs: ``types_mapper`` and ``ignore_metadata`` as a mapping, as in ``pandas.read_parquet``.
        progress: called as ``progress(done, total)``, in rows, as in ``read_table``.
        **options: any reader option:

    Raises:
        UnsupportedError: pandas is not installed.
        TypeError: ``to_pandas_kwargs`` has another option.
        ParquetError: as in ``read_table``.
    """
    wishes: dict[str, Any] = {"types_mapper": types_mapper, "ignore_metadata": ignore_metadata}
    if unknown_names := (to_pandas_kwargs or {}).keys() - wishes:
        raise TypeError(f"to_pandas_kwargs takes types_mapper and ignore_metadata, not {', '.join(sorted(unknown_names))}")
    wishes |= {"dtype_backend": dtype_backend, "progress": progress, **(to_pandas_kwargs or {})}

    def read_file(file: ParquetFile, *, row_groups: Any, columns: Any, filters: Any, frame: Mapping[str, Any]) -> Any:
        return file.to_pandas(columns, row_groups=row_groups, filters=filters, **frame)

    arguments = {"columns": columns, "filters": filters, "frame": wishes}
    frame: pandas.DataFrame = _read(where, options, read_file, "read_frame", {"row_groups": row_groups}, arguments)
    return frame


def _read(
    where: Any,
    options: Mapping[str, Any],
    read_file: Callable[..., Any],
    dataset_reader: str,
    of_file: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> Any:
    """Read one file, or a dataset if ``where`` names a folder, a glob or several files.

    Args:
        where: the file or the dataset.
        options: reader options.
        read_file: the method that reads a ParquetFile.
        dataset_reader: name under which fastpq.datasets has registered the function that reads a dataset.
        of_file: arguments for one file, which a dataset does not take.
        arguments: the other arguments.
    """
    file_options = {**options}
    if not file_options.keys().isdisjoint(PLACING):
        where = taken_place(where, file_options)
    if not (isinstance(where, list | tuple) or _is_remote_folder(where)):
        try:
            with ParquetFile(where, **file_options) as file:
                return read_file(file, **of_file, **arguments)
        except (FileNotFoundError, IsADirectoryError):
            if not _names_a_dataset(where):
                raise
    for name, value in of_file.items():
        if value is not None:
            raise SchemaError(f"{name} is an argument for one file, not for a directory, a glob or a list of files")
    read_dataset = registered(dataset_reader)
    assert read_dataset is not None, "fastpq registers the functions of fastpq.datasets"
    return read_dataset(where, **arguments, **file_options)


def _is_remote_folder(where: Any) -> bool:
    """Return whether ``where`` is a URL or a path on a filesystem that ends with a slash. HTTP servers show it as a page."""
    path = getattr(where, "path", where) if hasattr(where, "fs") else where
    return isinstance(path, str) and path.endswith("/") and ("://" in path or path is not where)


def _names_a_dataset(where: Any) -> bool:
    """Return whether ``where`` is a directory or a glob."""
    place = locate(where)
    if isinstance(place, Remote):
        from fastpq.io.waiting import ask_filesystem  # it loads asyncio

        return glob.has_magic(place.path) or bool(ask_filesystem(place.filesystem, "isdir", place.path))
    return place is not None and (os.path.isdir(place) or (glob.has_magic(place) and not os.path.exists(place)))


@takes_options(OpeningOptions)
def read_metadata(
    where: Any,
    **options: Unpack[keywords.ReaderOptions],
) -> FileMetaData:
    """Read a file's footer (parquet.thrift, ``FileMetaData``).

    Args:
        where: a path, a bytes-like object, a URL that fsspec knows, or a binary file object.
        **options: any reader option:

    Raises:
        FormatError: this is not a Parquet file, or its footer is broken.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """
    with ParquetFile(where, **options) as file:
        return file.metadata


@takes_options(OpeningOptions)
def read_schema(
    where: Any,
    **options: Unpack[keywords.ReaderOptions],
) -> ParquetSchema:
    """Read a file's schema.

    Args:
        where: a path, a bytes-like object, a URL that fsspec knows, or a binary file object.
        **options: any reader option:

    Raises:
        FormatError: this is not a Parquet file, or its footer is broken.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """
    with ParquetFile(where, **options) as file:
        return file.schema


@takes_options(WriterProperties)
def write_table(
    data: Any,
    where: Any,
    *,
    schema: Mapping[str, Any] | ParquetSchema | Any = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    encryption_properties: encryption.FileEncryptionProperties | None = None,
    shred: Mapping[str, shredding_choice.Shredding] | None = None,
    progress: Progress | None = None,
    if_none_match: str | None = None,
    if_match: str | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    index: bool | None = None,
    **options: Unpack[keywords.WriterOptions],
) -> None:
    """Write columns as a Parquet file. The target is replaced as a whole, or not at all.

    Args:
        data: a Table, a dict of NumPy arrays, a structured array, a pandas DataFrame, anything with the Arrow C data interface,
            or an iterator over such data. An Arrow stream or an iterator is read batch by batch, in bounded memory.
        where: a path, a writable binary file object or an fsspec URL.
        schema: types by name, an Arrow schema or a ParquetSchema. Columns without a type here keep their values' type. A
            type is a ColumnType, a NumPy, pandas or Arrow type, a Python class, or a name such as ``"timestamp[ms]"``.
        properties: how to write. Options have priority over properties.
        threads: how many columns are encoded at the same time. None takes one for each core.
        encryption_properties: keys. None writes a plaintext file.
        shred: how to shred variant columns, by name, as in ParquetWriter.
        progress: called as ``progress(done, total)``, in rows. The last call is ``(total, total)``. If it raises an exception,
            the target stays unchanged.
        if_none_match: ``"*"`` refuses a target that exists when the file is complete: a local file, or an object in S3.
        if_match: ETag that the object to replace has in S3. An object that was replaced in the meantime stays.
        filesystem: filesystem for the path, from fsspec or pyarrow.fs. None finds it by the URL.
        storage_options: options for the fsspec filesystem behind a URL, as in pandas and Polars.
        timeout: longest time without a byte from a server, in seconds, for S3 URLs.
        index: whether to keep the pandas DataFrame's index as columns. None keeps a RangeIndex only in the metadata and other
            indexes as columns, as pandas does. True keeps any index as columns, and False leaves the index out.
        **options: any field in WriterProperties:

    Raises:
        SchemaError: columns have unequal lengths, or do not fit the schema.
        UnsupportedError: fastpq cannot write a codec, an encoding or a type.
        TypeError: an option is unknown.
    """
    from fastpq.api.writer import ParquetWriter

    writer = ParquetWriter(
        where,
        schema,
        properties=properties,
        threads=threads,
        encryption_properties=encryption_properties,
        shred=shred,
        progress=progress,
        if_none_match=if_none_match,
        if_match=if_match,
        filesystem=filesystem,
        storage_options=storage_options,
        timeout=timeout,
        index=index,
        **options,
    )
    writer._write_whole(data)


@takes_options(WriterProperties)
def append_table(
    data: Any,
    where: Any,
    *,
    in_place: bool = False,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    decryption_properties: encryption.FileDecryptionProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    index: bool | None = None,
    **options: Unpack[keywords.WriterOptions],
) -> None:
    """Append rows to an existing file, as its last row groups. The rows that it has are copied without decoding.

    The columns must fit the file's columns, by name, without losing a value. Schema, field ids and key-value metadata stay.
    New row groups in an encrypted file get the file's own keys. Statements about all rows, for example bounding boxes in
    GeoParquet's metadata, are left out.

    By default the rows go to a copy, which takes the file's place: a reader sees the old or the new file. The copy shares the old
    blocks where the filesystem can do that, or is made by the kernel. ``in_place=True`` extends the file itself. Nobody can
    read it until the append is complete. If the process dies before that, ``recover_table(path, cut_back=True)`` makes the file
    what it was.

    Args:
        data: as in ``write_table``.
        where: a path or an fsspec URL. An object in S3, Azure or Google's store is replaced only if nobody else has replaced it.
        in_place: whether the local file itself is extended.
        properties: how to write the new row groups. Options have priority over properties.
        threads: how many columns are encoded at the same time. None takes one for each core.
        decryption_properties: keys for an encrypted file.
        progress: called as ``progress(done, total)``, in appended rows. If it raises an exception, the file stays unchanged.
        filesystem: filesystem for the path, from fsspec or pyarrow.fs. None finds it by the URL.
        storage_options: options for the fsspec filesystem behind a URL, as in pandas and Polars.
        timeout: longest time without a byte from a server, in seconds, for S3 URLs.
        index: whether the pandas DataFrame's index becomes columns, as in ``write_table``.
        **options: any field in WriterProperties:

    Raises:
        FileNotFoundError: there is no file.
        BlockingIOError: another append to the file is at work.
        OSError: the file was replaced or changed meanwhile.
        SchemaError: the columns do not fit the file's columns.
        UnsupportedError: the file has dates or timestamps in Spark's legacy calendar, or chunks in other files.
        KeyAccessError: there is no key for the footer or for a column.
    """
    from fastpq.api.writer import ParquetWriter

    writer = ParquetWriter(
        where,
        properties=properties,
        threads=threads,
        append=True,
        in_place=in_place,
        decryption_properties=decryption_properties,
        progress=progress,
        filesystem=filesystem,
        storage_options=storage_options,
        timeout=timeout,
        index=index,
        **options,
    )
    writer._append_whole(data)

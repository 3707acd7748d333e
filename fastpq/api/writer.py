"""ParquetWriter: writes one file, table by table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from threading import Lock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from fastpq.api.writer_input import WriterInput, batches_of, row_count
from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.extensions import registered
from fastpq.common.lazy import LazyModule
from fastpq.common.parallel import resolve_threads
from fastpq.common.progress import Meter, Progress
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import ParquetError, SchemaError
from fastpq.io.location import placed
from fastpq.io.sink import Conditions, Sink
from fastpq.io.sink_opening import open_sink
from fastpq.options import DEFAULT_PROPERTIES, WriterProperties, takes_options, with_options
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.write.choice import EncodingChoice
from fastpq.write.file_writer import FileWriter, missing_rows
from fastpq.write.row_groups import RowGroups
from fastpq.write.spec import column_specs

if TYPE_CHECKING:
    from fastpq.api import keywords
    from fastpq.variant import shredding_choice
    from fastpq.write.row_group_appending import AppendedFile
else:       # types in annotations, which typing.get_type_hints resolves
    keywords = LazyModule("fastpq.api.keywords")
    shredding_choice = LazyModule("fastpq.variant.shredding_choice")


@takes_options(WriterProperties)
class ParquetWriter:
    """Writer of one Parquet file, which appears only when it is complete. It is a context manager.

    The target keeps its old contents until ``close`` succeeds. An exception inside the ``with`` block leaves the target
    unchanged.

    Args:
        where: a path, a writable binary file object or an fsspec URL.
        schema: types by name, an Arrow schema, a ParquetSchema, or None for the first table's schema. A type is a
            ColumnType, a NumPy, pandas or Arrow type, a Python class, or a name such as ``"timestamp[ms]"``. Columns without a
            type here keep their values' type.
        properties: how to write. Options have priority over properties.
        threads: how many columns are encoded at the same time. None takes one for each core.
        encryption_properties: keys. None writes a plaintext file.
        shred: how to shred variant columns, by name: a shredding schema (``fastpq.variant.shredding_schema``), or ``"infer"`` to
            infer one from the first table.
        progress: called as ``progress(done, total)``, in rows, for the tables so far. The last call is ``(total, total)``.
            ``close`` makes it after the footer is written and before the file takes its place. If the function raises an
            exception, the target stays unchanged. The function may call ``abort``, and the write then ends with a ValueError. It
            cannot call other methods that write.
        if_none_match: ``"*"`` refuses a target that exists when the file is complete: a local file, or an object in S3.
        if_match: ETag that the object to replace has in S3. An object that was replaced in the meantime stays.
        filesystem: filesystem for the path, from fsspec or pyarrow.fs. None finds it by the URL.
        storage_options: options for the fsspec filesystem behind a URL, as in pandas and Polars.
        timeout: longest time without a byte from a server, in seconds, for S3 URLs.
        append: add the rows to an existing file, as its last row groups. The file's rows are copied without decoding. The columns
            must fit the file's, and keep its types, field ids and key-value metadata. The new file takes the old one's place, so
            a reader sees the old or the new file. A second append at the same time gets a BlockingIOError.
        in_place: append to the file itself instead of a copy. This suits very large files, but nobody can read the file until
            the writer is closed. If the process dies before, ``recover_table(path, cut_back=True)`` makes the file what it was.
        decryption_properties: keys for an encrypted file to which rows are appended. New row groups get the same keys.
        index: whether to keep the pandas DataFrame's index as columns. None keeps a RangeIndex only in the metadata and other
            indexes as columns, as pandas does. True keeps any index as columns, and False leaves the index out.
        **options: any field in WriterProperties:

    Raises:
        SchemaError: an option names an unknown column, or tables have different schemas.
        UnsupportedError: fastpq cannot write a codec or an encoding.
    """

    def __init__(
        self,
        where: Any,
        schema: Mapping[str, Any] | ParquetSchema | Any = None,
        *,
        properties: WriterProperties | None = None,
        threads: int | None = None,
        encryption_properties: FileEncryptionProperties | None = None,
        shred: Mapping[str, shredding_choice.Shredding] | None = None,
        progress: Progress | None = None,
        if_none_match: str | None = None,
        if_match: str | None = None,
        filesystem: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        append: bool = False,
        in_place: bool = False,
        decryption_properties: FileDecryptionProperties | None = None,
        index: bool | None = None,
        **options: Unpack[keywords.WriterOptions],
    ) -> None:
        plain = properties is None and not options
        self._properties = DEFAULT_PROPERTIES if plain else with_options(properties, options)
        self._threads = None if threads is None else resolve_threads(threads)
        self._encryption_properties = encryption_properties
        self._appended: AppendedFile | None = None
        if append:
            new_only = {"schema": schema, "encryption_properties": encryption_properties, "shred": shred}
            _refuse_with_append(**new_only, if_none_match=if_none_match, if_match=if_match)
        elif in_place or decryption_properties is not None:
            raise ValueError("in_place and decryption_properties are for a file to which rows are appended (append=True)")
        self._input = WriterInput(schema, self._properties, shred, encryption_properties, index)
        self._lock = Lock()
        self._busy_thread: int | None = None    # the thread that holds the lock
        if filesystem is not None or storage_options is not None or timeout is not None:
            where = placed(where, filesystem, storage_options, timeout)
        if append:
            self._appended = self._existing(where, decryption_properties, in_place)
            self._sink = self._appended.sink
        else:
            self._sink = open_sink(where, Conditions(if_none_match, if_match), durable=self._properties.durable)
        self._meter = None if progress is None else Meter(_with_abort(progress, self._sink), holds_last=True)
        self._file: FileWriter | None = None    # opened when the schema is known
        if self._appended is not None:
            with self._guarded():
                self._file = self._opened(self._appended.schema)
        elif isinstance(schema, ParquetSchema):
            with self._guarded():
                if self._properties.field_ids:
                    from fastpq.arrow.field_ids import schema_with_ids

                    schema = schema_with_ids(schema, None, self._properties.field_ids)
                self._file = self._opened(schema)
                self._file.fields       # noqa: B018 - refuses a schema that no table can have

    def _existing(self, where: Any, keys: FileDecryptionProperties | None, in_place: bool) -> AppendedFile:
        """Open an existing file, to which the rows are appended, and fit the input to its columns."""
        from fastpq.api.file import ParquetFile
        from fastpq.write.row_group_appending import AppendedFile

        with ParquetFile(where, decryption_properties=keys) as file:
            columns = file.read(row_groups=[])
        appended = AppendedFile.open(where, keys, in_place=in_place, durable=self._properties.durable)
        self._encryption_properties = None if appended.encryption is None else appended.encryption[0]
        self._input.fit_to(columns)
        return appended

    def _describe(self, metadata: Mapping[str, str]) -> None:
        """Keep metadata for tables that will be written in parts. Values from encrypted columns are left out."""
        for key, value in metadata.items():
            self._input.describe(key, value)

    def write_table(self, data: Any) -> None:
        """Write rows as their own row groups.

        Args:
            data: a Table, a dict of arrays, a structured array, a pandas DataFrame, anything with the Arrow C data interface, or
                an iterator over such data. An Arrow stream or an iterator is read batch by batch, in bounded memory.
        """
        with self._guarded():
            batches = None if isinstance(data, Mapping) else batches_of(data)
            if batches is None:
                self._put(self._input.tables(data), FileWriter.write)
            else:
                self._write_batches(batches, _adder(data))

    def _write_whole(self, data: Any) -> None:
        """Write the only data that the file gets, and close the file. The arguments are the same as in ``write_table``."""
        with self._guarded():
            batches = None if isinstance(data, Mapping) else batches_of(data)
            if batches is not None:
                self._write_batches(batches, _adder(data))
                self._close()
                return
            self._input.is_only = True
            parts = None if isinstance(data, Mapping) else self._input.parts(data)
            first, second = (data, None) if parts is None else (next(parts), next(parts, None))
            if parts is None or second is None:
                self._put(self._input.tables(first), FileWriter.write_last)
            else:
                self._write_parts(chain([first, second], parts), row_count(data))

    def _write_parts(self, parts: Iterator[Table], num_rows: int | None) -> None:
        """Write the tables that are together the only data of the file, and close the file. ``num_rows`` is None if unknown."""
        first = next(parts)
        if self._meter is not None and num_rows is not None:
            self._meter.expect(num_rows - first.num_rows)       # _put adds the rows of the first table
        self._put(self._input.tables(first), FileWriter.add_resident)
        assert self._file is not None
        for part in parts:
            if self._meter is not None and num_rows is None:
                self._meter.expect(part.num_rows)
            self._file.add_resident(part)
        self._file.close()

    def _append_whole(self, data: Any) -> None:
        """Write rows as their own row groups, and close the file. An error leaves the file unchanged."""
        with self:
            self.write_table(data)

    def _write_batches(self, batches: Iterator[Any], add: Callable[[FileWriter, Table], None]) -> None:
        """Write batches as their own row groups. A batch is added before the next one is made, which may reuse its arrays."""
        if self._file is not None:
            self._file.flush()
        for batch in batches:
            self._put(self._input.tables(batch), add)
        if self._file is not None:
            self._file.flush()

    def write_batch(self, data: Any) -> None:
        """Add rows. A row group is written when it has enough rows or bytes. Other rows wait for more rows or for ``close``.

        Rows that fill pages are encoded while they wait. Memory then holds the stored pages of one row group, and not its rows.
        This is not so if something needs all rows at once: ``sort_by``, ``use_content_defined_chunking``, dictionaries of Arrow,
        geometries, bloom filters without ``ndv``, and the first row group with ``encoding="auto"``.

        Args:
            data: as in ``write_table``. The caller may reuse the arrays.
        """
        with self._guarded():
            batches = None if isinstance(data, Mapping) else batches_of(data)
            add = FileWriter.add if batches is None else _adder(data)
            for batch in [data] if batches is None else batches:
                self._put(self._input.tables(batch), add)

    @property
    def _waiting_bytes(self) -> int:
        """Memory of the rows that wait until they fill a row group, in bytes."""
        return 0 if self._file is None else self._file.held_bytes

    @property
    def _next_end(self) -> int:
        """Size of the file in bytes if its next row group is as large as its last. 0 before the first row group."""
        last = 0 if self._file is None else self._file.last_row_group_bytes
        return self._sink.size + last if last else 0

    def _missing_rows(self, rows: Table) -> int:
        """Return how many more rows like these fill the row group that waits for rows, at least 1."""
        return missing_rows(rows, self._properties, *((0, 0) if self._file is None else self._file.waiting))

    def _taken_rows(self) -> list[Table]:
        """Return the rows that wait for a full row group, and forget them."""
        return [] if self._file is None else self._file.taken_rows()

    def _flush(self) -> None:
        """Write the waiting rows as their own row groups."""
        with self._guarded():
            if self._file is not None:
                self._file.flush()

    def close(self) -> None:
        """Write the last rows and the footer, and put the file in its place."""
        if not self._sink.is_open:
            return
        with self._guarded():
            self._close()
        settle = registered("settle_metadata")
        if self._appended is not None and settle is not None and os.path.isfile(self._sink.name):
            settle(self._sink.name)

    def _close(self) -> None:
        self._put(self._input.rest(), FileWriter.add)
        if self._file is None:
            self._put(self._input.empty(), FileWriter.add)
        if self._file is None:
            raise SchemaError("a file needs a schema: pass one, or write a table")
        self._file.close()

    def abort(self) -> None:
        """Give up the write. The target stays unchanged."""
        self._sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if kind is None:
            self.close()
        else:
            self.abort()
        return False

    def encodings(self) -> dict[str, EncodingChoice]:
        """Return each column's encoding and the reason for it, by dotted path.

        With ``encoding="auto"``, a column appears when rows with a value in the column have been written.
        """
        return {} if self._file is None else self._file.encodings()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let one thread write at a time, and abandon the file after an error."""
        if self._busy_thread == get_ident():
            raise ValueError("the writer is busy in this thread: progress cannot write or close, only abort")
        with self._lock:
            if not self._sink.is_open:
                raise ValueError("the writer is closed")
            self._busy_thread = get_ident()
            try:
                yield
            except BaseException as error:
                self.abort()
                if isinstance(error, ParquetError):
                    error.at(path=self._sink.name)
                    if self._encryption_properties is not None:
                        error.hide_values()
                raise
            finally:
                self._busy_thread = None

    def _put(self, tables: Iterable[Table], pass_on: Callable[[FileWriter, Table], None]) -> None:
        """Pass tables to the file. The first table opens the file. The other tables are checked against it."""
        for table in tables:
            if self._file is None:
                self._file = self._opened(self._with_field_ids(table))
            else:
                self._file.check(table, table.schema)
            if self._meter is not None:
                self._meter.expect(table.num_rows)
            pass_on(self._file, table)

    def _with_field_ids(self, table: Table) -> ParquetSchema:
        """Return the schema for the first table, with the field ids of its columns and of the option ``field_ids``."""
        if not self._properties.field_ids and not any(map(_may_have_ids, table.columns)):
            return table.schema
        from fastpq.arrow.field_ids import schema_with_ids

        return schema_with_ids(table.schema, table, self._properties.field_ids)

    def __del__(self) -> None:
        if getattr(self, "_sink", None) is not None and self._sink.is_open:
            message = f"the ParquetWriter of {self._sink.name} was never closed, so nothing is written: close it, or use with"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)

    def _opened(self, schema: ParquetSchema) -> FileWriter:
        """Open the file for a schema, write its magic if it is new, and return it."""
        appended = self._appended
        if appended is not None:
            return FileWriter(
                self._sink,
                schema,
                self._properties,
                appended.specs(self._properties),
                appended.row_groups(),
                threads=self._threads,
                meter=self._meter,
                description=_OwnEntries(self._properties.key_value_metadata),
                appended=appended,
            )
        return FileWriter(
            self._sink,
            schema,
            self._properties,
            column_specs(schema, self._properties),
            RowGroups(self._sink, schema, self._encryption_properties),
            threads=self._threads,
            meter=self._meter,
            description=self._input,
        )


class _OwnEntries:
    """The caller's key-value metadata, as the only ones that an append adds to a file."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries
        self.has_key_values = True

    def key_values(self, paths: Sequence[tuple[str, ...]]) -> Mapping[str, str]:
        return self._entries


def _refuse_with_append(**arguments: Any) -> None:
    """Refuse arguments that only a new file can have."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} is for a new file: rows that are appended take what the file has")


def _may_have_ids(column: AnyColumn) -> bool:
    """Return whether a column's Arrow field, or one inside it, may have a field id."""
    return column.is_nested or (column.arrow is not None and bool(column.arrow.metadata))


def _adder(data: Any) -> Callable[[FileWriter, Table], None]:
    """Return the method that adds the batches of a stream or an iterator. Nobody changes the batches of an Arrow stream."""
    return FileWriter.add_constant if hasattr(data, "__arrow_c_stream__") else FileWriter.add


def _with_abort(progress: Progress, sink: Sink) -> Progress:
    """Return a function that calls progress, and then raises a ValueError if progress has aborted the writer."""

    def checked_progress(done_rows: int, total: int) -> None:
        progress(done_rows, total)
        if not sink.is_open:
            raise ValueError("the writer was aborted while it wrote")

    return checked_progress

"""ParquetWriter: writing one file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from threading import Lock, get_ident
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from fastpq.api.writer_input import WriterInput, batches_of
from fastpq.api.writer_options import WriterOptions
from fastpq.arrays.table import Table
from fastpq.common.parallel import resolve_threads
from fastpq.common.progress import Meter, Progress
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import ParquetError, SchemaError
from fastpq.io.location import placed
from fastpq.io.sink import Conditions, Sink, open_sink
from fastpq.options import DEFAULT_PROPERTIES, WriterProperties, spelled_out, with_options
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.variant.shredding_choice import Shredding
from fastpq.write.choice import EncodingChoice
from fastpq.write.file_writer import FileWriter
from fastpq.write.row_groups import RowGroups
from fastpq.write.spec import column_specs


@spelled_out
class ParquetWriter:
    """Writes a Parquet file, all of it or none; a context manager.

    The target holds its old contents until ``close`` succeeds; an exception inside the ``with`` block leaves the target as is.

    Args:
        where: a path, a writable binary file object or an fsspec URL.
        schema: types by name, an Arrow schema, a ParquetSchema, or None to take the schema of the first table. A type is a
            ColumnType, a NumPy, pandas or Arrow type, a Python class, or a name such as ``"timestamp[ms]"``. Columns without a
            type here keep the type of their values.
        properties: how to write; options go before properties.
        threads: number of columns encoded at the same time; None for one a core.
        encryption_properties: keys; None writes a plaintext file.
        shred: how variant columns are shredded, by name: a shredding schema (``fastpq.variant.shredding_schema``), or
            ``"infer"`` to infer one from the first table.
        progress: called as ``progress(done, total)``, in rows of the tables given so far; the last call, in
            ``close``, behind the footer and before the file takes its place, is ``(total, total)``. An exception from progress
            leaves the target unchanged. Progress may call ``abort``, and the write ends with a ValueError; all other methods that
            write are refused.
        if_none_match: ``"*"`` refuses a target that is there when the file is complete: a local file, or an object in S3.
        if_match: ETag of the object in S3 to replace; an object replaced meanwhile stays.
        filesystem: filesystem of the path, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of S3.
        index: whether the index of a pandas DataFrame is kept as columns, as pandas has it. None keeps a RangeIndex in the
            metadata alone, True keeps any index as columns, False leaves the index out.
        **options: any of the fields of WriterProperties:

    Raises:
        SchemaError: options for unknown columns, or tables of another schema.
        UnsupportedError: a codec or an encoding without a writer.
    """

    def __init__(
        self,
        where: Any,
        schema: Mapping[str, Any] | ParquetSchema | Any = None,
        *,
        properties: WriterProperties | None = None,
        threads: int | None = None,
        encryption_properties: FileEncryptionProperties | None = None,
        shred: Mapping[str, Shredding] | None = None,
        progress: Progress | None = None,
        if_none_match: str | None = None,
        if_match: str | None = None,
        filesystem: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        index: bool | None = None,
        **options: Unpack[WriterOptions],
    ) -> None:
        plain = properties is None and not options
        self._properties = DEFAULT_PROPERTIES if plain else with_options(properties, options)
        self._threads = None if threads is None else resolve_threads(threads)
        self._encryption_properties = encryption_properties
        self._input = WriterInput(schema, self._properties, shred, encryption_properties, index)
        self._lock = Lock()
        self._busy_thread: int | None = None    # the holder of the lock
        if filesystem is not None or storage_options is not None or timeout is not None:
            where = placed(where, filesystem, storage_options, timeout)
        self._sink = open_sink(where, Conditions(if_none_match, if_match), durable=self._properties.durable)
        self._meter = None if progress is None else Meter(_with_abort(progress, self._sink), holds_last=True)
        self._file: FileWriter | None = None    # from the schema on
        if isinstance(schema, ParquetSchema):
            with self._guarded():
                self._file = self._opened(schema)
                self._file.fields       # noqa: B018 - the access refuses a schema without a table of its shape

    def _describe(self, metadata: Mapping[str, str]) -> None:
        """Keep metadata of the tables to come, from which parts are written here; values of encrypted columns are left out."""
        for key, value in metadata.items():
            self._input.describe(key, value)

    def write_table(self, data: Any) -> None:
        """Write rows as row groups of their own.

        Args:
            data: a Table, a dict of arrays, a structured array, a pandas DataFrame, anything with the Arrow C data interface, or
                an iterator of these. An Arrow stream or an iterator is read batch by batch, in bounded memory.
        """
        with self._guarded():
            batches = None if isinstance(data, Mapping) else batches_of(data)
            if batches is None:
                self._put(self._input.tables(data), FileWriter.write)
            else:
                self._write_batches(batches)

    def _write_whole(self, data: Any) -> None:
        """Write the only data of the file, and close; arguments as for ``write_table``."""
        with self._guarded():
            batches = None if isinstance(data, Mapping) else batches_of(data)
            if batches is None:
                self._input.is_only = True
                self._put(self._input.tables(data), FileWriter.write_last)
            else:
                self._write_batches(batches)
                self._close()

    def _write_batches(self, batches: Iterator[Any]) -> None:
        first = next(batches, None)
        second = next(batches, None)
        if first is not None and second is None:
            self._put(self._input.tables(first), FileWriter.write)
            return
        if self._file is not None:
            self._file.flush()
        for batch in chain([first, second] if first is not None else [], batches):
            self._put(self._input.tables(batch), FileWriter.add)
        if self._file is not None:
            self._file.flush()

    def write_batch(self, data: Any) -> None:
        """Add rows; full row groups are written, by number of rows or bytes, and the rest with the next rows or at the end.

        Args:
            data: as for ``write_table``; the arrays may be used again.
        """
        with self._guarded():
            batches = None if isinstance(data, Mapping) else batches_of(data)
            for batch in [data] if batches is None else batches:
                self._put(self._input.tables(batch), FileWriter.add)

    @property
    def _waiting_bytes(self) -> int:
        """Bytes of the rows that wait for a whole row group."""
        return 0 if self._file is None else self._file.waiting_bytes

    def _flush(self) -> None:
        """Write the waiting rows as row groups of their own."""
        with self._guarded():
            if self._file is not None:
                self._file.flush()

    def close(self) -> None:
        """Write the last rows and the footer, and put the file in its place."""
        if not self._sink.is_open:
            return
        with self._guarded():
            self._close()

    def _close(self) -> None:
        self._put(self._input.rest(), FileWriter.add)
        if self._file is None:
            self._put(self._input.nothing(), FileWriter.add)
        if self._file is None:
            raise SchemaError("a file needs a schema: pass one, or write a table")
        self._file.close()

    def abort(self) -> None:
        """Give up: the target is unchanged."""
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
        """The encoding of each column and the reason, by dotted path.

        With ``encoding="auto"`` a column appears once rows with a value of the column have been written.
        """
        return {} if self._file is None else self._file.encodings()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One thread at a time; any error abandons the file."""
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

    def _put(self, tables: Iterable[Table], put: Callable[[FileWriter, Table], None]) -> None:
        """Hand tables to the file; the first one opens the file, others are checked."""
        for table in tables:
            if self._file is None:
                self._file = self._opened(table.schema)
            else:
                self._file.check(table, table.schema)
            if self._meter is not None:
                self._meter.expect(table.num_rows)
            put(self._file, table)

    def __del__(self) -> None:
        if getattr(self, "_sink", None) is not None and self._sink.is_open:
            message = f"a ParquetWriter of {self._sink.name} was dropped unclosed, and nothing is written: close it, or use with"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)

    def _opened(self, schema: ParquetSchema) -> FileWriter:
        """The file of a schema, its magic written."""
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


def _with_abort(progress: Progress, sink: Sink) -> Progress:
    """The same callable, with a ValueError after a call that aborts the writer."""

    def told(done: int, total: int) -> None:
        progress(done, total)
        if not sink.is_open:
            raise ValueError("the writer was aborted while it wrote")

    return told

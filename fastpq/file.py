"""ParquetFile and the functions that read with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Literal, Self

from fastpq.encryption.file import FileDecryptor
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import ParquetError
from fastpq.metadata import FileMetaData, read_footer
from fastpq.parallel import resolve_threads
from fastpq.plan import ReadPlan, plan_read
from fastpq.properties import ReaderProperties
from fastpq.scan import Scan, Strings
from fastpq.schema import ColumnKey, ParquetSchema
from fastpq.source import open_source
from fastpq.table import Table
from fastpq.types import ColumnType, Timestamp, TimeUnitName, Type

DEFAULT_BATCH_SIZE = 65_536


class ParquetFile:
    """A Parquet file to read from; a context manager.

    Args:
        where: a path, a bytes-like object, a binary file object or a URL that fsspec knows.
        memory_map: map a local file instead of reading it. A mapped file must not be truncated by others while it is
            in use, and columns may keep it mapped.
        threads: how many chunks are decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory; values that it cannot hold are refused.
        properties: bounds and checks.
        decryption_properties: keys, for encrypted files.

    Raises:
        FormatError: not a Parquet file, or a broken footer.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """

    def __init__(
        self,
        where: Any,
        *,
        memory_map: bool = True,
        threads: int | None = None,
        strings: Strings = "views",
        coerce_int96_timestamp_unit: TimeUnitName = "ns",
        properties: ReaderProperties | None = None,
        decryption_properties: FileDecryptionProperties | None = None,
    ) -> None:
        if strings not in ("views", "offsets", "dictionary"):
            raise ValueError(f'strings must be "views", "offsets" or "dictionary", not {strings!r}')
        if coerce_int96_timestamp_unit not in ("ms", "us", "ns"):
            raise ValueError(f'coerce_int96_timestamp_unit must be "ms", "us" or "ns", not {coerce_int96_timestamp_unit!r}')
        self._threads = resolve_threads(threads)
        self._properties = properties or ReaderProperties()
        self._strings: Strings = strings
        self._int96_unit = coerce_int96_timestamp_unit
        self._source = open_source(where, memory_map=memory_map)
        try:
            self._metadata = read_footer(
                self._source.size,
                self._source.read,
                properties=self._properties,
                decryption_properties=decryption_properties,
            )
        except ParquetError as error:
            self._source.close()
            error.at(path=self._source.name)
            raise
        except BaseException:
            self._source.close()
            raise

    @property
    def metadata(self) -> FileMetaData:
        """The footer: row groups and column chunks are decoded when they are touched."""
        return self._metadata

    @property
    def schema(self) -> ParquetSchema:
        """The schema tree and its leaves."""
        return self._metadata.schema

    @property
    def num_row_groups(self) -> int:
        return self._metadata.num_row_groups

    def read(
        self,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
    ) -> Table:
        """Read columns into memory.

        Args:
            columns: names (dotted paths for leaves of groups) or numbers, in the order of the result; None for all.
            row_groups: indices, in the order of the result; None for all.

        Returns:
            A Table of the chosen columns.

        Raises:
            SchemaError: a name or an index that the file does not have; near names are listed.
            FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
        """
        plan = self._plan(columns, row_groups)
        return self._scan(plan).read(plan, self._threads)

    def iter_batches(
        self,
        batch_size: int = DEFAULT_BATCH_SIZE,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
    ) -> Iterator[Table]:
        """Read as Tables of batch_size rows; memory is bounded by a batch and a page of each column.

        Args, raises: as ``read``; the last batch may be shorter.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        plan = self._plan(columns, row_groups)
        return self._scan(plan).batches(plan, batch_size, self._threads)

    def _plan(self, columns: Iterable[ColumnKey] | None, row_groups: Iterable[int] | None) -> ReadPlan:
        try:
            chosen = list(self.schema.columns) if columns is None else self.schema.select(columns)
            return plan_read(self._metadata, chosen, row_groups, self._source.size)
        except ParquetError as error:
            error.at(path=self._source.name)
            raise

    def _scan(self, plan: ReadPlan) -> Scan:
        types = {
            column.index: ColumnType(Type.INT96, None, Timestamp(self._int96_unit))
            for output in plan.columns
            for column, _ in output.leaves
            if column.physical_type is Type.INT96
        }
        decryptor: FileDecryptor = self._metadata.decryptor
        return Scan(self._source, decryptor, self._properties, self._strings, types)

    def close(self) -> None:
        """Let go of the source; columns that were read stay valid."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False

    def __repr__(self) -> str:
        metadata = self._metadata
        return f"<ParquetFile {self._source.name}: {metadata.num_rows} rows, {metadata.num_row_groups} row groups>"


def read_table(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    row_groups: Iterable[int] | None = None,
    **options: Any,
) -> Table:
    """Read a file into memory: ``ParquetFile(where, **options).read(columns, row_groups=row_groups)``."""
    with ParquetFile(where, **options) as file:
        return file.read(columns, row_groups=row_groups)


def read_metadata(where: Any, **options: Any) -> FileMetaData:
    """The footer of a file; options as for ParquetFile."""
    with ParquetFile(where, **options) as file:
        return file.metadata


def read_schema(where: Any, **options: Any) -> ParquetSchema:
    """The schema of a file; options as for ParquetFile."""
    with ParquetFile(where, **options) as file:
        return file.schema

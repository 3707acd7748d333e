"""recover_table: the readable rows of a damaged or unfinished file, by its own footer, a checkpoint, or page headers alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.arrays.table import Table
from fastpq.common.parallel import resolve_threads
from fastpq.common.progress import Progress
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import CryptoError, FormatError, LimitError, ParquetError, SchemaError, TagVerificationError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC
from fastpq.io.location import Remote, locate, placed_each
from fastpq.io.new_file import temporary_files
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of, extended_footer
from fastpq.metadata.footer import read_finished
from fastpq.metadata.legacy_calendar import CalendarChoice
from fastpq.options import MemoryMap, OnError, ReaderProperties
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.read.opener import ChunkOpener, StringLayout
from fastpq.recovery.footers import FooterWithReport, cut_back_file, find_footer
from fastpq.recovery.losses import ON_ERROR, Loss, RecoveryReport, merged_losses
from fastpq.recovery.reading import RecoveringReader
from fastpq.recovery.rebuild import RebuiltRowGroups, rebuild
from fastpq.schema.parquet_schema import ColumnKey, Int96UnitName, ParquetSchema, int96_types
from fastpq.stats.writer_bugs import for_writer

# Codecs in the order in which they are tried. UNCOMPRESSED is last, because it accepts any bytes that have the right length.
_CODECS = (
    fmt.CompressionCodec.SNAPPY,
    fmt.CompressionCodec.ZSTD,
    fmt.CompressionCodec.GZIP,
    fmt.CompressionCodec.LZ4_RAW,
    fmt.CompressionCodec.BROTLI,
    fmt.CompressionCodec.LZ4,
    fmt.CompressionCodec.LZO,
    fmt.CompressionCodec.UNCOMPRESSED,
)


class RecoveredTable(NamedTuple):
    """What recover_table returns.

    Attributes:
        table: the readable rows.
        report: what is lost.
    """

    table: Table
    report: RecoveryReport


def recover_table(
    where: Any,
    columns: Iterable[ColumnKey] | None = None,
    *,
    on_error: OnError = "null",
    schema: ParquetSchema | None = None,
    sibling: Any = None,
    row_group_rows: int | None = None,
    cut_back: bool = False,
    threads: int | None = None,
    memory_map: MemoryMap = False,
    strings: StringLayout = "views",
    coerce_int96_timestamp_unit: Int96UnitName = "auto",
    legacy_calendar: CalendarChoice = "rebase",
    properties: ReaderProperties | None = None,
    decryption_properties: FileDecryptionProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> RecoveredTable:
    """Read the intact rows from a damaged or unfinished file.

    If a page is damaged, only that page is lost. If a page header is damaged, the rest of its chunk is lost, unless an
    OffsetIndex locates the next page. If a dictionary is damaged, all pages that use it are lost. If a chunk is damaged, the
    chunk is lost. A nested column loses whole rows.

    A file without a footer is read by its last checkpoint (``checkpoint_every``). Row groups after the checkpoint, or all row
    groups if there is none, are rebuilt from their pages. This needs the schema, and only one division into row groups may be
    possible. Rebuilt row groups have no statistics. Encrypted row groups cannot be rebuilt, because only the footer has the AAD
    and the key metadata.

    The search for pages holds the file in memory, or maps a local file with ``memory_map="keep"``. Damage that no checksum, tag
    or decoder notices stays unnoticed here too.

    Args:
        where: a path, a bytes-like object, a binary file object or a URL that fsspec supports.
        columns: names (dotted paths for leaves in groups) or numbers, in the result's order. None means all.
        on_error: ``"null"`` makes lost values null. ``"skip"`` leaves out rows that lost a value in any of the columns.
        schema: schema for a file that has no footer at all.
        sibling: another file that the same writer wrote with the same settings. It tells the schema, the codecs and the row count
            in a row group.
        row_group_rows: row count in each row group except the last, if known.
        cut_back: first cut a local file back to the last complete footer inside it. This undoes an append in place that was
            interrupted. A file that ends with its footer does not change.
        threads: number of chunks that are decoded at the same time. None means the core count.
        memory_map: ``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as
            long as a column is in use. False and True read the file, and later changes to the file do not change a column.
        strings: layout for variable-length values: ``"views"``, ``"offsets"`` or ``"dictionary"``.
        coerce_int96_timestamp_unit: in-memory unit for INT96 timestamps: ``"ms"``, ``"us"``, ``"ns"``, or ``"auto"`` for the
            finest unit that fits the values that are read from a column.
        legacy_calendar: ``"rebase"`` or ``"keep"``, as for ``ParquetFile``: old values in files that Spark wrote in the Julian
            calendar are moved, or given as they are stored.
        properties: limits and checks.
        decryption_properties: keys, for encrypted files.
        progress: called as ``progress(done, total)`` after each row group, in rows. The last call is ``(total, total)``. The
            search for pages in a file without a footer comes before, and is not reported.
        filesystem: filesystem for the paths of file and sibling, from fsspec or pyarrow.fs. None finds one by the URL.
        storage_options: options for the URLs' fsspec filesystem, as in pandas and Polars.
        timeout: an HTTP or S3 URL fails after this many seconds without a byte from the server.

    Returns:
        The table, and a RecoveryReport that lists every lost value by row group, column and rows.

    Raises:
        BlockingIOError: with cut_back, an append to the file is still at work.
        FormatError: there is neither a footer nor a schema, or, with cut_back, no complete footer. Or the first pages
            can be divided into row groups in several ways.
        KeyAccessError: there is no key for the footer or for a column.
        CryptoError: a policy in the decryption properties refuses the file, or refuses plaintext pages instead of encrypted ones.
        SchemaError, UnsupportedError, LimitError: as in ``ParquetFile.read``.
    """
    if on_error not in ON_ERROR or on_error == "raise":
        raise ValueError(f'on_error must be "null" or "skip", not {on_error!r}')
    if legacy_calendar not in ("rebase", "keep"):
        raise ValueError(f'legacy_calendar must be "rebase" or "keep", not {legacy_calendar!r}')
    properties = properties or ReaderProperties()
    if (filesystem, storage_options, timeout) != (None, None, None):
        where, sibling = placed_each([where, sibling], filesystem, storage_options, timeout)
    if cut_back:
        cut_back_file(where, properties, decryption_properties)
    search = _FooterSearch.of(schema, sibling, row_group_rows, properties, decryption_properties)
    with open_source(where, memory_map=memory_map, properties=properties) as source:
        try:
            metadata, report = search.footer_of(source)
            metadata.calendar.is_kept = legacy_calendar == "keep"
            suited_properties = for_writer(properties, metadata)
            file = OpenFile(source, metadata, suited_properties, strings, coerce_int96_timestamp_unit, resolve_threads(threads))
            losses: list[Loss] = []
            every_group = [(group, None) for group in range(metadata.num_row_groups)]
            request = ReadRequest(metadata.schema.select(columns), every_group)
            table = RecoveringReader(file, on_error, losses.append).read(request, None, progress)
        except ParquetError as error:
            error.at(path=source.name)
            raise
    return RecoveredTable(table, RecoveryReport(report.found_by, merged_losses(losses), report.unread, report.reason))


def unfinished_files(where: Any) -> list[str]:
    """Return the temporary files of unfinished local writers, oldest first. A writer may have been killed, or still be at work.

    A file gets its own name when it is complete. On Linux an unfinished file has no name before its first checkpoint, and
    vanishes with its process. From the first checkpoint on, or if the system requires a name, a writer uses a hidden name next to
    its target. If the writer is killed, the hidden file stays, with all bytes that were written so far.

    Args:
        where: the writers' target path, or a folder for all writers whose targets are in it or in its subfolders.

    Returns:
        The paths of the hidden files.

    Raises:
        SchemaError: where is not a local path.
    """
    path = locate(where)
    if path is None or isinstance(path, Remote):
        raise SchemaError("unfinished files can only be found for local paths")
    return temporary_files(path)


class _FooterSearch(NamedTuple):
    """Search for a file's footer, with what arguments and a sibling file tell about a file without a footer."""

    schema: ParquetSchema | None
    row_group_rows: int | None
    codecs: tuple[int, ...]
    properties: ReaderProperties
    decryption_properties: FileDecryptionProperties | None

    @classmethod
    def of(
        cls,
        schema: ParquetSchema | None,
        sibling: Any,
        row_group_rows: int | None,
        properties: ReaderProperties,
        decryption_properties: FileDecryptionProperties | None,
    ) -> _FooterSearch:
        if row_group_rows is not None and row_group_rows < 1:
            raise ValueError(f"row_group_rows must be at least 1, not {row_group_rows}")
        codecs: tuple[int, ...] = _CODECS
        if sibling is not None:
            with open_source(sibling) as source:
                metadata = read_finished(source, properties, decryption_properties)
            rows, codecs = _writer_settings(metadata)
            schema, row_group_rows = schema or metadata.schema, row_group_rows or rows
        return cls(schema, row_group_rows, codecs, properties, decryption_properties)

    def footer_of(self, source: Source) -> FooterWithReport:
        """Return a file's footer. Row groups after a checkpoint are added to it, or all row groups are rebuilt from pages."""
        try:
            footer = find_footer(source, self.properties, self.decryption_properties)
        except (FormatError, LimitError, TagVerificationError) as error:
            return self._from_pages(source, error)
        metadata, report = footer
        if not report.unread or metadata.encryption_algorithm is not None or type(decryptor_of(metadata)) is not FileDecryptor:
            return footer
        rows, codecs = _writer_settings(metadata)
        start = report.unread[0][0]
        opener = self._page_opener(source, metadata.schema)
        try:
            rebuilt = rebuild(opener, metadata.schema, start, metadata.num_row_groups, self.row_group_rows or rows, codecs)
        except LimitError as error:     # the checkpoint's row groups are readable anyway, and the bytes after it stay unread
            return FooterWithReport(metadata, replace(report, reason=f"{report.reason}; {error.message}"))
        if not rebuilt.row_groups:
            return footer
        all_metadata = extended_footer(metadata, rebuilt.row_groups)
        return FooterWithReport(all_metadata, RecoveryReport("checkpoint", unread=rebuilt.unread, reason=report.reason))

    def _from_pages(self, source: Source, error: ParquetError) -> FooterWithReport:
        magic = bytes(source.read(0, min(source.size, len(MAGIC))))
        if magic == ENCRYPTED_MAGIC:
            raise FormatError(f"{error.message}. Without a footer, no part of an encrypted file can be opened")
        if magic != MAGIC:
            raise error
        if self.schema is None:
            raise FormatError(f"{error.message}. If schema or sibling is given, its pages can be searched for")
        if self.decryption_properties is not None and not self.decryption_properties.allow_plaintext_files:
            raise CryptoError(
                f"{error.message}. Its pages are not searched for: there are decryption_properties, and plaintext pages may have "
                "been put in the place of encrypted ones (allow_plaintext_files=True searches for them)"
            )
        opener = self._page_opener(source, self.schema)
        rebuilt = rebuild(opener, self.schema, len(MAGIC), 0, self.row_group_rows, self.codecs)
        if not rebuilt.row_groups and rebuilt.is_ambiguous:
            raise FormatError(
                "the file has no footer, and its pages can be divided into row groups in more than one way: row_group_rows or "
                "sibling may decide"
            )
        metadata = _metadata(self.schema, rebuilt)
        return FooterWithReport(metadata, RecoveryReport("pages", unread=rebuilt.unread, reason=str(error)))

    def _page_opener(self, source: Source, schema: ParquetSchema) -> ChunkOpener:
        """Return a ChunkOpener that can decode any value. INT96 timestamps in milliseconds never overflow."""
        return ChunkOpener(source, FileDecryptor(), self.properties, "views", int96_types(schema.columns, "ms"))


def _writer_settings(metadata: FileMetaData) -> tuple[int | None, tuple[int, ...]]:
    """Return how many rows a file's first row group has (None if it is the only one), and its codecs."""
    codecs: set[int] = set()
    for group in range(min(metadata.num_row_groups, 1)):
        codecs |= {metadata.row_group(group).column(column.index).codec for column in metadata.schema.columns}
    rows = metadata.row_group(0).num_rows if metadata.num_row_groups > 1 else None
    return rows, tuple(codec for codec in _CODECS if codec in codecs) or _CODECS


def _metadata(schema: ParquetSchema, rebuilt: RebuiltRowGroups) -> FileMetaData:
    footer = fmt.FileMetaData(
        version=2,
        schema=schema.to_thrift(),
        num_rows=sum(group.num_rows for group in rebuilt.row_groups),
        row_groups=rebuilt.row_groups,
    )
    return FileMetaData(memoryview(fmt.encode(footer)), FileDecryptor())

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
from fastpq.io.source import Source, open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.footer import read_finished
from fastpq.options import MemoryMap, OnError, ReaderProperties
from fastpq.read.file_reader import OpenFile, Wanted, in_fitting_units
from fastpq.read.opener import ChunkOpener, StringLayout
from fastpq.recovery.footers import FoundFooter, find_footer
from fastpq.recovery.losses import ON_ERROR, Loss, RecoveryReport, merged_losses
from fastpq.recovery.reading import RecoveringReader
from fastpq.recovery.rebuild import Rebuilt, rebuild
from fastpq.schema.parquet_schema import ColumnKey, Int96UnitName, ParquetSchema, int96_types
from fastpq.stats.quirks import for_writer

# Codecs in the order of trial; UNCOMPRESSED comes last, since it accepts any bytes of the right length.
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


class Recovered(NamedTuple):
    """Result of recover_table.

    Attributes:
        table: the readable rows.
        report: the losses.
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
    threads: int | None = None,
    memory_map: MemoryMap = False,
    strings: StringLayout = "views",
    coerce_int96_timestamp_unit: Int96UnitName = "auto",
    properties: ReaderProperties | None = None,
    decryption_properties: FileDecryptionProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Recovered:
    """Read the intact rows of a damaged or unfinished file.

    A damaged page costs the page. A damaged page header costs the rest of its chunk, unless an OffsetIndex locates the next page.
    A damaged dictionary costs the pages encoded with the dictionary. A damaged chunk costs the chunk. A nested column loses whole
    rows.

    A file without a footer is read by its last checkpoint (``checkpoint_every``). Row groups behind the checkpoint, or all row
    groups without one, are rebuilt from their pages if the schema is known and only one division into row groups is possible.
    Rebuilt row groups have no statistics. Encrypted row groups cannot be rebuilt: the AAD and key metadata are in the footer
    alone.
    The search for pages holds the file in memory, or maps a local file with ``memory_map="keep"``.
    Damage unnoticed by checksums, tags and decoders stays unnoticed here.

    Args:
        where: a path, a bytes-like object, a binary file object or a URL supported by fsspec.
        columns: names (dotted paths for leaves of groups) or numbers, in the order of the result; None for all.
        on_error: ``"null"`` makes lost values null; ``"skip"`` leaves out rows with a lost value in any of the columns.
        schema: schema of a file without any footer.
        sibling: another file of the same writer and settings, the source of schema, codecs and rows of a row group.
        row_group_rows: rows of each row group but the last, if known.
        threads: number of chunks decoded at the same time; None for one a core.
        memory_map: ``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as
            long as a column is in use. False and True read the file, and a change of the file later changes no column.
        strings: layout of variable-length values: ``"views"``, ``"offsets"`` or ``"dictionary"``.
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory: ``"ms"``, ``"us"``, ``"ns"``, or ``"auto"`` for the
            finest unit in which the values read of a column fit.
        properties: bounds and checks.
        decryption_properties: keys, for encrypted files.
        progress: called as ``progress(done, total)`` after each row group, in rows; the last call is
            ``(total, total)``. The preceding search for pages in a file without a footer is not reported.
        filesystem: filesystem of the paths of file and sibling, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of the URLs, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of HTTP and S3.

    Returns:
        The table, and the RecoveryReport: every lost value, by row group, column and rows.

    Raises:
        FormatError: neither footer nor schema, or several divisions of the first pages into row groups are possible.
        KeyAccessError: no key for the footer or for a column.
        CryptoError: a policy of the decryption properties refuses the file, or plaintext pages in place of encrypted pages.
        SchemaError, UnsupportedError, LimitError: as for ``ParquetFile.read``.
    """
    if on_error not in ON_ERROR or on_error == "raise":
        raise ValueError(f'on_error must be "null" or "skip", not {on_error!r}')
    properties = properties or ReaderProperties()
    if (filesystem, storage_options, timeout) != (None, None, None):
        where, sibling = placed_each([where, sibling], filesystem, storage_options, timeout)
    hints = _Hints.of(schema, sibling, row_group_rows, properties, decryption_properties)
    with open_source(where, memory_map=memory_map, properties=properties) as source:
        try:
            metadata, report = _found(source, hints, properties, decryption_properties)
            suited = for_writer(properties, metadata)
            file = OpenFile(source, metadata, suited, strings, coerce_int96_timestamp_unit, resolve_threads(threads))
            losses: list[Loss] = []
            every_group = [(group, None) for group in range(metadata.num_row_groups)]
            wanted = Wanted(metadata.schema.select(columns), every_group)
            table = in_fitting_units(
                file,
                wanted,
                lambda file: RecoveringReader(file, on_error, losses.append),
                lambda _, reader: reader.read(wanted, None, progress),
            )
        except ParquetError as error:
            error.at(path=source.name)
            raise
    return Recovered(table, RecoveryReport(report.found_by, merged_losses(losses), report.unread, report.reason))


def unfinished_files(where: Any) -> list[str]:
    """Temporary files of unfinished local writers, oldest first: of killed writers and of writers still at work.

    A file takes its place when it is complete. On Linux an unfinished file has no name before its first checkpoint, and vanishes
    with its process. From the first checkpoint on, and where files need a name, a writer writes under a hidden name beside its
    target, and the hidden file of a killed writer stays, with all bytes written so far.

    Args:
        where: the target path of the writers; or a folder, for all writers to files at any depth below.

    Returns:
        Paths of the hidden files.

    Raises:
        SchemaError: not a local path.
    """
    path = locate(where)
    if path is None or isinstance(path, Remote):
        raise SchemaError("unfinished files are looked for beside local paths alone")
    return temporary_files(path)


class _Hints(NamedTuple):
    """Knowledge about a file without a footer, from arguments and a sibling file."""

    schema: ParquetSchema | None
    row_group_rows: int | None
    codecs: tuple[int, ...]

    @classmethod
    def of(
        cls,
        schema: ParquetSchema | None,
        sibling: Any,
        row_group_rows: int | None,
        properties: ReaderProperties,
        decryption_properties: FileDecryptionProperties | None,
    ) -> _Hints:
        if row_group_rows is not None and row_group_rows < 1:
            raise ValueError(f"row_group_rows must be at least 1, not {row_group_rows}")
        if sibling is None:
            return cls(schema, row_group_rows, _CODECS)
        with open_source(sibling) as source:
            metadata = read_finished(source, properties, decryption_properties)
        rows, codecs = _habits(metadata)
        return cls(schema or metadata.schema, row_group_rows or rows, codecs)


def _habits(metadata: FileMetaData) -> tuple[int | None, tuple[int, ...]]:
    """Rows of a file's first row group, or None for a single row group, and the codecs of the first row group."""
    used: set[int] = set()
    for group in range(min(metadata.num_row_groups, 1)):
        used |= {metadata.row_group(group).column(column.index).codec for column in metadata.schema.columns}
    rows = metadata.row_group(0).num_rows if metadata.num_row_groups > 1 else None
    return rows, tuple(codec for codec in _CODECS if codec in used) or _CODECS


def _found(
    source: Source,
    hints: _Hints,
    properties: ReaderProperties,
    decryption_properties: FileDecryptionProperties | None,
) -> FoundFooter:
    """The footer of a file, extended by row groups rebuilt behind a checkpoint, or rebuilt completely from pages."""
    try:
        found = find_footer(source, properties, decryption_properties)
    except (FormatError, LimitError, TagVerificationError) as error:
        return _from_pages(source, hints, properties, decryption_properties, error)
    metadata, report = found
    if not report.unread or metadata.encryption_algorithm is not None or type(metadata.decryptor) is not FileDecryptor:
        return found
    rows, codecs = _habits(metadata)
    start = report.unread[0][0]
    opener = _page_opener(source, metadata.schema, properties)
    try:
        more = rebuild(opener, metadata.schema, start, metadata.num_row_groups, hints.row_group_rows or rows, codecs)
    except LimitError as error:     # row groups of the checkpoint are readable anyway; bytes behind the checkpoint stay unread
        return FoundFooter(metadata, replace(report, reason=f"{report.reason}; {error.message}"))
    if not more.row_groups:
        return found
    return FoundFooter(metadata.extended(more.row_groups), RecoveryReport("checkpoint", unread=more.unread, reason=report.reason))


def _from_pages(
    source: Source,
    hints: _Hints,
    properties: ReaderProperties,
    decryption_properties: FileDecryptionProperties | None,
    error: ParquetError,
) -> FoundFooter:
    magic = bytes(source.read(0, min(source.size, len(MAGIC))))
    if magic == ENCRYPTED_MAGIC:
        raise FormatError(f"{error.message}; without a footer nothing of an encrypted file can be opened")
    if magic != MAGIC:
        raise error
    if hints.schema is None:
        raise FormatError(f"{error.message}; with its schema, or with a sibling file, its pages could be looked for")
    if decryption_properties is not None and not decryption_properties.allow_plaintext_files:
        raise CryptoError(
            f"{error.message}; its pages are not looked for, since there are decryption_properties and plaintext ones may have "
            "been put in their place (allow_plaintext_files=True looks for them)"
        )
    opener = _page_opener(source, hints.schema, properties)
    found = rebuild(opener, hints.schema, len(MAGIC), 0, hints.row_group_rows, hints.codecs)
    if not found.row_groups and found.ambiguous:
        raise FormatError(
            "the file has no footer, and its pages can be put together in more than one way: row_group_rows or a sibling file "
            "may decide"
        )
    return FoundFooter(_metadata(hints.schema, found), RecoveryReport("pages", unread=found.unread, reason=str(error)))


def _page_opener(source: Source, schema: ParquetSchema, properties: ReaderProperties) -> ChunkOpener:
    """A ChunkOpener able to decode any value: INT96 timestamps in milliseconds never overflow."""
    return ChunkOpener(source, FileDecryptor(), properties, "views", int96_types(schema.columns, "ms"))


def _metadata(schema: ParquetSchema, found: Rebuilt) -> FileMetaData:
    footer = fmt.FileMetaData(
        version=2,
        schema=schema.to_thrift(),
        num_rows=sum(group.num_rows for group in found.row_groups),
        row_groups=found.row_groups,
    )
    return FileMetaData(memoryview(fmt.encode(footer)), FileDecryptor())

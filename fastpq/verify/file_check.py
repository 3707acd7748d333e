"""verify_file: compares every claim of a file with its bytes, and names the section of the specification for each violation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastpq import format as fmt
from fastpq.common.display import LINE_WIDTH, Grid, Heading, View, counted, more, of_bytes, shorten, to_html, to_text
from fastpq.common.progress import Meter, Progress
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError, TagVerificationError
from fastpq.format.stored_footer import RECOVERY_ADVICE, TAIL_LENGTH
from fastpq.io.location import placed_each
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.metadata.footer import read_footer
from fastpq.options import ReaderProperties
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.verify import sections
from fastpq.verify.chunk_check import CheckedFile, ChunkCheck
from fastpq.verify.findings import Findings, PlaceInFile, ReaderDifference, UncheckedPart, Violation
from fastpq.verify.footer_claims import (
    BY_POSITION,
    OwnedRange,
    check_footer,
    check_head,
    check_overlaps,
    check_row_group,
    claimed_ranges,
)
from fastpq.verify.nesting import SharedLevels

MOST_VIOLATIONS = 1000
LENGTH_BYTES = 4    # of the footer's length, in front of the last magic bytes
TEXT_VIOLATIONS, HTML_VIOLATIONS = 10, 100      # violations that are shown


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What ``verify_file`` found.

    Attributes:
        path: the file.
        size: its size in bytes.
        violations: what breaks the specification, in the order of the file.
        num_violations, num_harmless: number of violations that do harm, and of those that are harmless. Together they are more
            than ``violations`` has if there are too many to keep.
        differences: what is legal, and what readers understand differently.
        unchecked: what could not be checked, because a key or a codec is missing or a limit was reached.
        num_chunks, num_pages: column chunks and data pages that were walked.
        num_rows: rows of the file, by the footer.
        is_quick: whether pages were not decoded.
    """

    path: str
    size: int
    violations: tuple[Violation, ...]
    num_violations: int
    num_harmless: int
    differences: tuple[ReaderDifference, ...]
    unchecked: tuple[UncheckedPart, ...]
    num_chunks: int
    num_pages: int
    num_rows: int
    is_quick: bool

    @property
    def is_sound(self) -> bool:
        """Whether no violation was found, except for harmless ones. Parts in ``unchecked`` may have some."""
        return not self.num_violations

    @property
    def is_complete(self) -> bool:
        """Whether everything was checked that a quick or a whole verification checks."""
        return not self.unchecked

    def __str__(self) -> str:
        lines = [str(each) for group in (self.violations, self.unchecked, self.differences) for each in group]
        hidden = self.num_violations + self.num_harmless - len(self.violations)
        lines += [f"and {counted(hidden, 'violation')} more"] if hidden else []
        return "\n".join(lines) or "no violation"

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_VIOLATIONS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_VIOLATIONS))

    def _view(self, most: int) -> View:
        """Return the display: counts, and the first violations."""
        facts = [
            "sound" if self.is_sound else counted(self.num_violations, "violation"),
            of_bytes(self.size), counted(self.num_chunks, "column chunk"), counted(self.num_pages, "page"),
        ]
        facts += [f"{self.num_harmless:,} harmless"] if self.num_harmless else []
        facts += ["quick"] if self.is_quick else []
        facts += [f"{counted(len(self.unchecked), 'part')} not checked"] if self.unchecked else []
        headings = [
            Heading("part"), Heading("column"), Heading("row group", is_number=True), Heading("page", is_number=True),
            Heading("offset", is_number=True), Heading("violation", is_prose=True), Heading("section"),
        ]
        rows = [
            (each.part, each.place.column or "", _number(each.place.row_group), _number(each.place.page),
             _number(each.place.offset), each.message, each.section)
            for each in self.violations[:most]
        ]
        grid = Grid(headings, rows, more(self.num_violations + self.num_harmless, len(rows), "violation")) if rows else None
        lines = [str(each) for each in (*self.unchecked, *self.differences)[:most]]
        return View("VerificationReport", facts, grid, lines, note=shorten(self.path, LINE_WIDTH))


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def verify_file(
    where: Any,
    *,
    quick: bool = False,
    most_violations: int = MOST_VIOLATIONS,
    properties: ReaderProperties | None = None,
    decryption_properties: FileDecryptionProperties | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> VerificationReport:
    """Compare every offset, size, count, checksum, tag, index, bloom filter, statistic, level and dictionary with the data.

    Each page is read, decrypted and decoded once, and then forgotten. Memory does not grow with the file: the largest page, one
    dictionary and the indexes of one column chunk are in memory at the same time. Checks that hold for one writer's known bug
    only are left out where readers know the bug (``WRITER_BUGS``).

    Args:
        where: a path, a bytes-like object, a binary file object or a URL that fsspec supports.
        quick: whether to leave out everything for which pages must be decompressed and decoded. Page headers, checksums, tags,
            indexes, bloom filters and statistics are still compared with each other.
        most_violations: how many violations the report keeps. The others are counted.
        properties: limits for reading. Checksums are verified whatever ``verify_checksums`` says.
        decryption_properties: keys. Columns without their key are listed as unchecked.
        progress: called as ``progress(done, total)`` after column chunks, in rows. The last call is ``(total, total)``.
        filesystem: filesystem for the path, from fsspec or pyarrow.fs. None finds one by the URL.
        storage_options: options for the URL's fsspec filesystem, as in pandas and Polars.
        timeout: an HTTP or S3 URL fails after this many seconds without a byte from the server.

    Returns:
        A VerificationReport. A file that is no Parquet file, or whose footer cannot be decoded, has one violation.

    Raises:
        KeyAccessError: the footer is encrypted, and there is no key for it.
        CryptoError: a policy in the decryption properties refuses the file.
        UnsupportedError: the encryption has no file identifier.
        LimitError: the footer is beyond a limit.
        OSError: the file cannot be read.
    """
    properties = properties or ReaderProperties()
    findings = Findings(most_violations)
    if (filesystem, storage_options, timeout) != (None, None, None):
        [where] = placed_each([where], filesystem, storage_options, timeout)
    with open_source(where, properties=properties) as source:
        try:
            metadata = read_footer(
                source.size, source.read, properties=properties, decryption_properties=decryption_properties, name=source.name)
            metadata.schema  # noqa: B018  # decoded on first use
        except (FormatError, TagVerificationError) as error:
            offset = error.context.get("offset")
            error.message = error.message.removesuffix(RECOVERY_ADVICE)
            findings.take(error, "footer", sections.FILE_FORMAT, PlaceInFile(offset=offset))
            return _report(source, findings, None, 0, 0, quick)
        except ParquetError as error:
            length = _footer_length(source)
            if isinstance(error, LimitError) and length > source.size:
                message = f"the footer has {length} bytes, and the file {source.size}"
                findings.violate("footer", sections.FILE_FORMAT, message, PlaceInFile(offset=source.size - TAIL_LENGTH))
                return _report(source, findings, None, 0, 0, quick)
            error.at(path=source.name)
            raise
        return _Verification(source, metadata, properties, findings, quick).run(progress)


class _Verification:
    """The verification of one open file."""

    def __init__(
        self, source: Source, metadata: FileMetaData, properties: ReaderProperties, findings: Findings, is_quick: bool
    ) -> None:
        footer_start = source.size - TAIL_LENGTH - _footer_length(source)
        nesting = SharedLevels(metadata.schema)
        self._file = CheckedFile(source, metadata, properties, findings, is_quick, footer_start, nesting)
        self._findings = findings
        self._ranges: list[OwnedRange] = []
        self._num_chunks = self._num_pages = 0
        self._unknown_types: frozenset[int] = frozenset()

    def run(self, progress: Progress | None) -> VerificationReport:
        file, metadata = self._file, self._file.metadata
        check_head(self._findings, file.source)
        self._unknown_types = check_footer(self._findings, metadata)
        meter = Meter(progress, max(0, metadata.num_rows))
        for index in range(metadata.num_row_groups):
            with self._findings.catching("row group", sections.ROW_GROUP, PlaceInFile(index)):
                self._check_row_group(metadata.row_group(index), meter)
        check_overlaps(self._findings, self._ranges)
        meter.finish()
        return _report(file.source, self._findings, metadata, self._num_chunks, self._num_pages, file.is_quick)

    def _check_row_group(self, group: RowGroupMetaData, meter: Meter) -> None:
        file, columns = self._file, self._file.metadata.schema.columns
        file.nesting.begin_row_group()
        chunks = [self._chunk(group, column.index) for column in columns]
        sorting: dict[int, fmt.SortingColumn] = {}
        with self._findings.catching("row group", sections.ROW_GROUP, PlaceInFile(group.index)):
            check_row_group(self._findings, group, chunks)
            sorting = {each.column_idx: each for each in group.sorting_columns[:1]}
        span = meter.span(max(0, group.num_rows))
        if span is not None:
            span.begin(len(chunks))
        for column, chunk in zip(columns, chunks, strict=True):
            if chunk is not None:
                self._check_chunk(group, chunk, column, sorting.get(column.index))
            if span is not None:
                span.add(1)
        for node, one, other in file.nesting.disagreements(file.metadata.schema):
            message = f"other levels for the group {node.name!r} than the column {one.name!r}"
            self._findings.violate("levels", sections.LEVELS, message, PlaceInFile(group.index, other.name))

    def _chunk(self, group: RowGroupMetaData, index: int) -> ColumnChunkMetaData | None:
        """Return a chunk whose entry can be read, or None."""
        column = self._file.metadata.schema.columns[index]
        place = PlaceInFile(group.index, column.name)
        if column.index in self._unknown_types:
            return None
        try:
            chunk = group.column(index)
            chunk.metadata  # noqa: B018  # encrypted metadata are opened on first use
            self._ranges += claimed_ranges(chunk, place)
        except KeyAccessError as error:
            self._findings.take(error, "column chunk", sections.ENCRYPTION, place)
            return None
        except ParquetError as error:
            if isinstance(error, FormatError) and "chunk_order=" in error.message:
                message = error.message.partition(": chunk_order=")[0]
                self._findings.violate("column chunk", sections.CHUNK, message, place, BY_POSITION)
            else:
                self._findings.take(error, "column chunk", sections.CHUNK, place)
            return None
        return chunk

    def _check_chunk(
        self, group: RowGroupMetaData, chunk: ColumnChunkMetaData, column: ColumnDescriptor, sorting: fmt.SortingColumn | None
    ) -> None:
        check = ChunkCheck(self._file, group.index, chunk, column, group.num_rows, sorting)
        check.run()
        self._num_chunks += check.is_opened
        self._num_pages += len(check.measured.pages)
        if check.measured.is_whole and check.measured.is_decoded:
            self._file.nesting.finish_column(column)


def _footer_length(source: Source) -> int:
    return int.from_bytes(bytes(source.read(source.size - TAIL_LENGTH, LENGTH_BYTES)), "little")


def _report(
    source: Source, findings: Findings, metadata: FileMetaData | None, num_chunks: int, num_pages: int, is_quick: bool
) -> VerificationReport:
    return VerificationReport(
        source.name,
        source.size,
        tuple(findings.violations),
        findings.num_violations,
        findings.num_harmless,
        tuple(findings.differences.values()),
        tuple(findings.unchecked),
        num_chunks,
        num_pages,
        0 if metadata is None else metadata.num_rows,
        is_quick,
    )

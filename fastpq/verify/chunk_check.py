"""ChunkCheck: the check of one column chunk, page by page, against its entry in the footer and its indexes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.codecs.checksum import crc32
from fastpq.column.page_walker import PageWalker, WalkedPage
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import ParquetError
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import FilterRequest, read_bloom_filters
from fastpq.index.chunk_claims import ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import fault
from fastpq.index.page_index import COLUMN_INDEX, OFFSET_INDEX, IndexRequest, StoredIndexes, read_stored_page_index
from fastpq.io.source import Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of
from fastpq.options import ReaderProperties
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Geography, Geometry
from fastpq.stats.statistics import is_monotonic
from fastpq.stats.usable_statistics import usable_statistics_of
from fastpq.stats.writer_bugs import bloom_filters_are_trusted, chunk_slack, v2_is_always_compressed
from fastpq.verify import sections
from fastpq.verify.claimed_order import ClaimedOrder
from fastpq.verify.findings import Findings, PlaceInFile
from fastpq.verify.footer_claims import check_chunk_entry
from fastpq.verify.measured_pages import MeasuredChunk, MeasuredPage
from fastpq.verify.nesting import LevelRules, SharedLevels
from fastpq.verify.page_content import PageContent, PageDecoder
from fastpq.verify.page_order import DICTIONARY_ENCODINGS, LATE_INDEXES, PageOrder
from fastpq.verify.value_block import CodedValues, PlainValues
from fastpq.verify.value_claims import compare_claims
from fastpq.verify.value_rules import broken_rules, reader_differences

_PAGE_TYPES = {*fmt.DATA_PAGE_TYPES, fmt.PageType.DICTIONARY_PAGE, fmt.PageType.INDEX_PAGE}
_BIT_PACKED = (
    "levels in the deprecated encoding BIT_PACKED",
    "pyarrow reads them from the lowest bit of each byte",
    "reads them from the highest bit, as Encodings.md says",
)


class CheckedFile(NamedTuple):
    """A file that is being checked.

    Attributes:
        source: the file.
        metadata: its footer.
        properties: limits for reading. Checksums are verified here, not by the reader.
        findings: what the checks find.
        is_quick: whether pages are not decoded.
        footer_start: offset of the footer, or None if it is unknown.
        nesting: comparison of columns that share a group.
    """

    source: Source
    metadata: FileMetaData
    properties: ReaderProperties
    findings: Findings
    is_quick: bool
    footer_start: int
    nesting: SharedLevels


class ChunkCheck:
    """The check of one column chunk.

    Args:
        file: the file.
        row_group: index of the row group.
        chunk: the chunk.
        column: its column.
        num_rows: row count of the row group.
        sorting: what the row group claims about the order of the column, if it is the first sorting column. Else None.

    Attributes:
        measured: what the pages hold.
        is_opened: whether there is a key for the chunk, if it needs one.
    """

    def __init__(
        self, file: CheckedFile, row_group: int, chunk: ColumnChunkMetaData, column: ColumnDescriptor, num_rows: int,
        sorting: fmt.SortingColumn | None,
    ) -> None:
        self._file, self._findings = file, file.findings
        self._chunk, self._column, self._num_rows = chunk, column, num_rows
        self._place = PlaceInFile(row_group, column.name)
        self._rules = LevelRules(column)
        self._page_order = PageOrder()
        self.is_opened = False
        order = None if sorting is None else ClaimedOrder(column, sorting)
        self._row_order = order if order is not None and order.is_known else None
        self._filter: SplitBlockBloomFilter | None = None
        metadata = chunk.metadata
        statistics, logical = metadata.statistics, column.type.logical
        box = isinstance(logical, Geography) if isinstance(logical, Geometry | Geography) else None
        self.measured = MeasuredChunk(
            column,
            counts_distinct=statistics is not None and statistics.distinct_count is not None,
            geospatial=box if metadata.geospatial_statistics is not None else None,
        )

    def run(self) -> None:
        """Check the chunk. Errors of the reader become findings."""
        file, chunk = self._file, self._chunk
        try:
            cipher = decryptor_of(file.metadata).chunk_cipher(chunk.chunk, chunk.row_group_ordinal, self._column.index)
        except ParquetError as error:
            self._findings.take(error, "column chunk", sections.ENCRYPTION, self._place)
            return
        self.is_opened = True
        try:
            usable = usable_statistics_of(file.metadata, self._column)
        except ParquetError as error:       # of the column orders or the key-value metadata
            self._findings.take(error, "footer", sections.FILE_METADATA, self._place)
            return
        claims = ChunkMetadataClaims(self._column, self._num_rows, chunk.metadata, usable)
        for part, section in ((Part.STATISTICS, sections.STATISTICS), (Part.ENCODING_STATS, sections.ENCODING_STATS)):
            if chunk.num_values and (claim := fault(part, claims)) is not None:
                self._findings.violate(part.value, section, claim, self._place)
        indexes = self._read_indexes(claims, cipher)
        self._filter = self._read_filter(claims, cipher)
        if check_chunk_entry(self._findings, chunk, self._column, file.source.size, file.footer_start, self._place):
            self._walk(cipher)
        entry = chunk.chunk
        offsets = {
            "statistics": file.footer_start, OFFSET_INDEX: entry.offset_index_offset, COLUMN_INDEX: entry.column_index_offset,
            "bloom filter": chunk.metadata.bloom_filter_offset,
        }
        compare_claims(
            self._findings, claims, indexes, self.measured, self._place, is_quick=file.is_quick, offsets=offsets,
            shows_values=not chunk.is_encrypted)

    def _read_indexes(self, claims: ChunkMetadataClaims, cipher: ModuleCipher) -> StoredIndexes | None:
        """Return the page index without its broken parts, and report these."""
        request = IndexRequest(self._column, self._chunk, self._num_rows, cipher, usable=claims.usable)
        try:
            indexes, _ = read_stored_page_index(self._file.source, request)
        except ParquetError as error:
            self._findings.take(error, "page index", sections.PAGE_INDEX, self._place)
            return None
        for part in (OFFSET_INDEX, COLUMN_INDEX):
            if part in indexes.errors and indexes.errors[part].message != f"a {COLUMN_INDEX} without its {OFFSET_INDEX}":
                self._findings.take(indexes.errors[part], part, sections.PAGE_INDEX, self._place)
        return indexes

    def _read_filter(self, claims: ChunkMetadataClaims, cipher: ModuleCipher) -> SplitBlockBloomFilter | None:
        request = FilterRequest(self._chunk, cipher, claims)
        try:
            [bloom_filter] = read_bloom_filters(self._file.source, [request])
        except ParquetError as error:
            bloom_filter = error  # type: ignore[assignment]
        if isinstance(bloom_filter, ParquetError):
            self._findings.take(bloom_filter, "bloom filter", sections.BLOOM_FILTER, self._place)
            return None
        return bloom_filter if bloom_filters_are_trusted(self._file.metadata.created_by) else None

    def _walk(self, cipher: ModuleCipher) -> None:
        """Step over the chunk's pages, and check each."""
        file, chunk, measured = self._file, self._chunk, self.measured
        try:
            source = file.source if chunk.file_path is None else file.source.beside(chunk.file_path)
            start, size = chunk.byte_range
            end = file.footer_start if chunk.file_path is None else source.size
            slack = chunk_slack(file.metadata.created_by)
            [stored_bytes] = source.walk([[(start, min(size + slack, end - start))]], authentic=chunk.is_encrypted)
            properties = replace(file.properties, verify_checksums=False)
            walker = PageWalker(stored_bytes, cipher, chunk.dictionary_page_offset is not None, properties)
            decoder = PageDecoder(
                self._column, chunk.codec, v2_is_always_compressed(file.metadata.created_by), file.properties.allocation_limit)
            while walker.position < size and not (slack and measured.num_values >= chunk.num_values):
                page = walker.next_page()
                if page is None:
                    break
                self._check_page(page, start, cipher, decoder)
            measured.size, measured.is_whole = walker.position, True
        except ParquetError as error:
            measured.is_decoded = False
            offset = error.context.get("offset")
            place = self._place._replace(offset=None if offset is None else start + offset)
            self._findings.take(error, "page header", sections.PAGE_HEADER, place)

    def _check_page(self, page: WalkedPage, start: int, cipher: ModuleCipher, decoder: PageDecoder) -> None:
        """Check one page: its header, its checksum, its tag, and, unless the check is quick, its content."""
        header, _ = fmt.decode(fmt.PageHeader, page.header)
        place = self._place._replace(page=page.ordinal if page.is_data else None, offset=start + page.start)
        measured, findings = self.measured, self._findings
        measured.kinds[page.type, page.encoding] += page.is_data or page.is_dictionary
        measured.uncompressed_size += page.body_start - page.start + page.uncompressed_size
        if page.type not in _PAGE_TYPES:
            findings.violate("page header", sections.PAGE_HEADER, f"an unknown page type {page.type}", place)
        facts = None
        if page.is_data:
            facts = MeasuredPage(start + page.start, page.size, page.num_values, page.num_rows)
            measured.pages.append(facts)
            if self._page_order.has_late_indexes(page.encoding):
                findings.differ(*LATE_INDEXES, self._place)
        elif page.is_dictionary:
            if measured.dictionary_offset is not None or measured.pages:
                message = "a second dictionary page" if measured.dictionary_offset is not None else "a dictionary page after data"
                findings.violate("page header", sections.PAGES, message, place)
            else:
                measured.dictionary_offset = start + page.start
        else:
            return
        body = self._opened(page, header, cipher, place)
        if body is None or self._file.is_quick:
            measured.is_decoded = False
            return
        lacks_entries = decoder.entries is None and measured.dictionary_offset is not None
        if facts is not None and lacks_entries and page.encoding in DICTIONARY_ENCODINGS:
            measured.is_decoded = False
            return      # the dictionary is broken, which is reported
        try:
            if facts is None:
                self._check_dictionary(header, decoder.read_dictionary(header, body), place)
            else:
                self._check_content(facts, header, decoder.read_data(header, body), place)
        except ParquetError as error:
            measured.is_decoded = False
            findings.take(error, "dictionary" if facts is None else "page", sections.ENCODINGS, place)

    def _opened(self, page: WalkedPage, header: fmt.PageHeader, cipher: ModuleCipher, place: PlaceInFile) -> Any:
        """Return a page's body, decrypted, or None if it is damaged."""
        if header.crc is not None and crc32(page.body) != header.crc & 0xFFFFFFFF:
            readers = "pyarrow reads the page: it verifies checksums on request alone"
            self._findings.violate("page", sections.CHECKSUM, "the CRC-32 of the page does not match", place, readers)
            return None
        module = ModuleType.DATA_PAGE if page.is_data else ModuleType.DICTIONARY_PAGE
        try:
            return cipher.open_body(module, page.ordinal, page.body, page.levels_size)[0]
        except ParquetError as error:
            self._findings.take(error, "page", sections.ENCRYPTION, place)
            return None

    def _check_dictionary(self, header: fmt.PageHeader, entries: PlainValues, place: PlaceInFile) -> None:
        own = header.dictionary_page_header
        assert own is not None
        for section, message, readers in broken_rules(self._column, entries):
            self._findings.violate("dictionary", section, message, place, readers)
        if own.is_sorted and self.measured.order and not is_monotonic(self.measured.order, entries.items(), 1):
            message = "a dictionary that claims to be sorted and is not"
            self._findings.violate("dictionary", sections.DICTIONARY_PAGE, message, place)

    def _check_content(self, facts: MeasuredPage, header: fmt.PageHeader, content: PageContent, place: PlaceInFile) -> None:
        """Check the levels and values of a data page, and measure them."""
        findings, measured = self._findings, self.measured
        is_first = len(measured.pages) == 1
        measured.add_content(facts, content)
        if content.is_bit_packed:
            findings.differ(*_BIT_PACKED, self._place)
        self._check_levels(facts, content, place, is_first=is_first)
        self._check_v2(facts, header.data_page_header_v2, place)
        values = content.values
        if self._row_order is not None and self._row_order.is_broken(content.definition, values):
            message = "the rows are not in the order that the sorting columns of the row group claim"
            findings.violate("row group", sections.SORTING, message, place)
            self._row_order = None
        if not isinstance(values, CodedValues):      # the dictionary is checked for itself
            for section, message, readers in broken_rules(self._column, values):
                findings.violate("values", section, message, place, readers)
        for case, readers, own in reader_differences(self._file.metadata, self._column, values):
            findings.differ(case, readers, own, self._place)
        if self._filter is not None and (missing := values.count_missing(self._filter)):
            measured.missing_values += missing
            measured.missing_page = place.page if measured.missing_page is None else measured.missing_page

    def _check_levels(self, facts: MeasuredPage, content: PageContent, place: PlaceInFile, *, is_first: bool) -> None:
        if content.repetition is not None and content.definition is not None:
            if is_first and not facts.begins_row:
                readers = "pyarrow and DuckDB: an error"
                message = "the first repetition level of the chunk is not 0"
                self._findings.violate("levels", sections.LEVELS, message, place, readers)
            elif self._rules.is_broken(content.repetition, content.definition):
                message = "a repetition level continues a list that has no element"
                self._findings.violate("levels", sections.LEVELS, message, place)
        self._file.nesting.add(self._column, content.repetition, content.definition)

    def _check_v2(self, facts: MeasuredPage, own: fmt.DataPageHeaderV2 | None, place: PlaceInFile) -> None:
        """Compare the counts in the header of a V2 page with its levels."""
        if own is None:
            return
        for name, claim, count in (("nulls", own.num_nulls, facts.num_nulls), ("rows", own.num_rows, facts.num_rows)):
            if claim != count:
                message = f"the header claims {claim} {name}, and the page has {count}"
                self._findings.violate("page header", sections.DATA_PAGE_V2, message, place)
        if not facts.begins_row:
            message = "a V2 page that begins within a row"
            self._findings.violate("page", sections.DATA_PAGE_V2, message, place)

"""Removes rows from a column chunk. Pages that have none of the rows are copied, and the others are decoded and encoded again.

A dictionary page that copied pages share loses the values that only removed rows had. Pages that are encoded again use it too: if
a PLAIN page comes before a page with dictionary indexes, Spark reads other values without an error. Statistics, the bloom filter
and the page index describe the rest.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_read
from fastpq.codecs.checksum import crc32
from fastpq.column.page_walker import PageWalker, WalkedPage
from fastpq.column.shred import LeafToWrite
from fastpq.encodings.registry import specified_encoding
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, LimitError, ParquetError
from fastpq.index.bloom_format import FilterRequest, read_bloom_filters
from fastpq.index.chunk_claims import ChunkMetadataClaims
from fastpq.index.page_index import IndexRequest, read_stored_page_index
from fastpq.io.sink import Sink
from fastpq.io.source import Source
from fastpq.options import ReaderProperties
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.page_errors import give_file_offset
from fastpq.rewriting.chunk_copy import LEVEL_ENCODINGS
from fastpq.rewriting.encoded_pages import DICTIONARY_ENCODINGS, EncodedPage, inflated, parts_of_page, translated
from fastpq.rewriting.page_copy import LARGEST_PAGE
from fastpq.rewriting.stored_entries import Codes, Mask, decode_runs, split_entries, with_blanks
from fastpq.write.chunks import ChunkToWrite, EncodedChunk, encode_chunk
from fastpq.write.row_groups import NO_PAGE, PlacedChunk
from fastpq.write.spec import ColumnSpec


class ChunkOfRows(NamedTuple):
    """A chunk whose rows are partly removed.

    Attributes:
        source: the old file.
        plan: the chunk's place in the old file.
        opener, sealer: the chunk's ciphers in the old and in the new file.
        properties: limits and checks.
        kept_mask: for each row of the row group, whether it stays. Shape (rows,).
        leaf_of: returns the leaf for some rows, by their numbers.
        spec: how pages are encoded.
    """

    source: Source
    plan: ChunkPlan
    opener: ModuleCipher
    sealer: ModuleCipher
    properties: ReaderProperties
    kept_mask: Mask
    leaf_of: Callable[[NDArray[np.int64]], LeafToWrite]
    spec: ColumnSpec


class _NewPage(NamedTuple):
    """A page of the new chunk, and what indexes say about it."""

    size: int
    num_rows: int
    entry: tuple[bool, bytes, bytes, int | None, int | None, Sequence[int], Sequence[int]] | None
    byte_array_size: int | None


class RowRemoval:
    """Removal of rows from one chunk.

    Args:
        chunk: the chunk.
        sink: the new file.

    Attributes:
        copied_pages, decoded_pages: how many pages were copied, and decoded.
    """

    def __init__(self, chunk: ChunkOfRows, sink: Sink) -> None:
        self._chunk, self._sink = chunk, sink
        self._metadata = chunk.plan.metadata.metadata
        self._start = sink.size
        self._dictionary_size = self._uncompressed_size = self._num_values = 0
        self._page_counts: dict[tuple[int, int], int] = {}
        self._new_pages: list[_NewPage] = []
        self.copied_pages = self.decoded_pages = 0

    def run(self) -> PlacedChunk:
        """Write the new chunk, and return it with its metadata and indexes. Errors name a page's offset in the old file."""
        try:
            return self._run()
        except ParquetError as error:
            give_file_offset(error, self._chunk.plan.ranges)
            raise

    def _run(self) -> PlacedChunk:
        chunk = self._chunk
        request = IndexRequest(chunk.plan.column, chunk.plan.metadata, chunk.plan.num_rows, chunk.opener)
        stored_indexes, checked_indexes = read_stored_page_index(chunk.source, request)
        row_counts = None if checked_indexes.offset_index is None else checked_indexes.offset_index.row_counts.tolist()
        rows = self._rows_of_pages(row_counts)
        spec = self._spec()
        column_index = stored_indexes.column_index
        self._write_pages(rows, spec, column_index, stored_indexes.offset_index)
        new_settings = replace(spec.settings, **self._bloom_option())
        whole = self._encode(np.flatnonzero(chunk.kept_mask), spec._replace(settings=new_settings))
        new_metadata = self._new_metadata(whole.placed(0).metadata)
        has_index = stored_indexes.offset_index is not None
        return PlacedChunk.of_structs(
            new_metadata,
            chunk.sealer,
            self._column_index() if has_index and column_index is not None else None,
            self._offset_index() if has_index else None,
            whole.writer.bloom_filter,
        )

    def _pages(self) -> Iterator[WalkedPage]:
        chunk = self._chunk
        [walked_ranges] = chunk.source.walk([chunk.plan.ranges], authentic=chunk.plan.metadata.is_encrypted)
        properties = replace(chunk.properties, max_page_size=LARGEST_PAGE, max_dictionary_size=LARGEST_PAGE)
        has_dictionary = self._metadata.dictionary_page_offset is not None
        walker = PageWalker(walked_ranges, chunk.opener, has_dictionary, properties)
        num_values = num_pages = 0
        while num_values < self._metadata.num_values:
            page = walker.next_page()
            if page is None or not (page.is_data or page.is_dictionary):
                message = "the chunk ends before its pages hold all values of its metadata"
                raise FormatError(message, page=num_pages, offset=walker.position)
            if not chunk.opener.overhead:
                walker.verify_checksum(page)
            num_values += 0 if page.is_dictionary else page.num_values
            num_pages += page.is_data
            yield page

    def _rows_of_pages(self, row_counts: list[int] | None) -> list[tuple[int, int]]:
        """Return the rows [start, stop) of each data page. Without row counts for all pages, each page stands for all rows."""
        is_repeated = self._chunk.plan.column.max_repetition_level > 0
        counts = [
            page.num_values if page.num_rows is None and not is_repeated else page.num_rows
            for page in self._pages()
            if page.is_data
        ]
        if row_counts is not None and len(row_counts) == len(counts):
            counts = [*row_counts]
        num_rows = len(self._chunk.kept_mask)
        if None in counts or sum(each or 0 for each in counts) != num_rows:
            return [(0, num_rows)] * len(counts)
        stops = np.cumsum([each or 0 for each in counts]).tolist()
        return list(zip([0, *stops], stops, strict=False))

    def _spec(self) -> ColumnSpec:
        """Return how new pages are encoded: like the first data page, but without the dictionary."""
        spec = self._chunk.spec
        first = next(page for page in self._pages() if page.is_data)
        header = fmt.decode(fmt.PageHeader, first.header)[0]
        settings = replace(
            spec.settings, version_2=first.type == fmt.PageType.DATA_PAGE_V2, checksums=header.crc is not None, dictionary=False
        )
        return spec._replace(codec=codec_for_read(self._chunk.plan.codec), settings=settings)

    def _bloom_option(self) -> dict[str, Any]:
        """Return the settings that make the bloom filter again, if the old chunk has one."""
        chunk = self._chunk
        if self._metadata.bloom_filter_offset is None:
            return {}
        claims = ChunkMetadataClaims(chunk.plan.column, chunk.plan.num_rows, self._metadata)
        (old,) = read_bloom_filters(chunk.source, [FilterRequest(chunk.plan.metadata, chunk.opener, claims)])
        return {"bloom_filter_fpp": 0.01} if old is not None else {}

    def _write_pages(
        self,
        rows: list[tuple[int, int]],
        spec: ColumnSpec,
        column_index: fmt.ColumnIndex | None,
        offset_index: fmt.OffsetIndex | None,
    ) -> None:
        kept_mask = self._chunk.kept_mask
        is_copied = [bool(kept_mask[start:stop].all()) for start, stop in rows]
        is_used = self._used_entries(is_copied)
        number, run_start = 0, None     # of the next data page, and the first row of the pages that are encoded again
        runs: dict[int, list[EncodedPage]] = {}
        for page in self._pages():
            if page.is_dictionary:
                if is_used is not None:
                    runs = self._runs_in_dictionary(page, rows, is_copied, is_used, spec)
                    self._write_dictionary(page, is_used)
                continue
            start, stop = rows[number]
            if is_copied[number]:
                if run_start is not None:
                    self._write_run(runs.get(run_start) or self._encoded_run(run_start, start, spec))
                    run_start = None
                sizes = None if offset_index is None else offset_index.unencoded_byte_array_data_bytes
                self._copy(page, stop - start, _entry(column_index, number), sizes[number] if sizes else None)
            else:
                self.decoded_pages += bool(kept_mask[start:stop].any())      # a page that loses all its rows is left out
                run_start = start if run_start is None else run_start
            number += 1
        if run_start is not None:
            self._write_run(runs.get(run_start) or self._encoded_run(run_start, rows[-1][1], spec))

    def _runs_in_dictionary(
        self, page: WalkedPage, rows: list[tuple[int, int]], is_copied: list[bool], is_used: Mask, spec: ColumnSpec
    ) -> dict[int, list[EncodedPage]]:
        """Encode the pages that are not copied, with indexes into the chunk's dictionary. Mark the entries that they use.

        Args:
            page: the dictionary page.
            rows, is_copied: each data page's rows, and whether it is copied.
            is_used: which entries are used so far.
            spec: how pages are encoded.

        Returns:
            Each run's pages by its first row. A run with values that the dictionary lacks is left out.
        """
        header = fmt.decode(fmt.PageHeader, page.header)[0]
        plain = bytes(inflated(self._chunk.plan, header, self._opened(page, ModuleType.DICTIONARY_PAGE), 0))
        width = self._chunk.spec.layout.stored_width
        entries = split_entries(plain, len(is_used), width)
        places = {entry: place for place, entry in reversed([*enumerate(entries)])}
        settings = replace(spec.settings, dictionary=True, keep_dictionary=True, dictionary_page_size=LARGEST_PAGE)
        runs: dict[int, list[EncodedPage]] = {}
        for run in groupby(range(len(rows)), lambda number: is_copied[number]):
            numbers = [] if run[0] else [*run[1]]
            if numbers:
                start = rows[numbers[0]][0]
                own_pages = self._encoded_run(start, rows[numbers[-1]][1], spec._replace(settings=settings))
                translated_pages = translated(self._chunk.plan, own_pages, places, is_used, width)
                if translated_pages is not None:
                    runs[start] = translated_pages
        return runs

    def _used_entries(self, is_copied: list[bool]) -> Mask | None:
        """Return for each dictionary entry whether a copied page uses it. None if no copied page needs the dictionary.

        A page with nulls alone uses no entry, but readers refuse it without a dictionary.
        """
        is_used: Mask | None = None
        is_needed = False
        number = 0
        for page in self._pages():
            if page.is_dictionary:
                is_used = np.zeros(page.num_values, np.bool_)
                continue
            if is_copied[number] and page.encoding in DICTIONARY_ENCODINGS and is_used is not None:
                codes = self._codes(page)
                if len(codes) and int(codes.max()) >= len(is_used):
                    raise FormatError("a dictionary index is outside the dictionary", page=page.ordinal, offset=page.start)
                is_used[codes] = True
                is_needed = True
            number += 1
        return is_used if is_needed else None

    def _codes(self, page: WalkedPage) -> Codes:
        """Return a dictionary-encoded page's indexes."""
        plain, position, num_values = parts_of_page(self._chunk.plan, page, self._opened(page, ModuleType.DATA_PAGE))
        if not num_values:
            return np.empty(0, np.uint32)
        return decode_runs(plain[position + 1 :], plain[position], num_values)

    def _opened(self, page: WalkedPage, module: ModuleType) -> memoryview:
        body, _ = self._chunk.opener.open_body(module, page.ordinal, page.body, page.levels_size)
        return memoryview(body)

    def _write_dictionary(self, page: WalkedPage, is_used: Mask) -> None:
        """Write the dictionary page. Entries that no copied page uses become blanks, each another one."""
        body = self._opened(page, ModuleType.DICTIONARY_PAGE)
        if not is_used.all():
            header = fmt.decode(fmt.PageHeader, page.header)[0]
            width, type_ = self._chunk.spec.layout.stored_width, self._chunk.plan.column.type
            plain = with_blanks(bytes(inflated(self._chunk.plan, header, body, 0)), is_used, width, type_)
            codec = codec_for_read(self._chunk.plan.codec)
            compressed_body = plain if codec.number == fmt.CompressionCodec.UNCOMPRESSED else codec.compress(plain)
            header.uncompressed_page_size = len(plain)
            header.dictionary_page_header = copy.copy(header.dictionary_page_header)
            assert header.dictionary_page_header is not None
            header.dictionary_page_header.is_sorted = None
            self._dictionary_size = self._put(header, memoryview(compressed_body), 0, is_dictionary=True)
        else:
            header = fmt.decode(fmt.PageHeader, page.header)[0]
            self._dictionary_size = self._put(header, body, 0, is_dictionary=True, stored_header=page.header)
        self._count(fmt.PageType.DICTIONARY_PAGE, page.encoding)

    def _copy(self, page: WalkedPage, num_rows: int, index: Any, byte_array_size: int | None) -> None:
        body = self._opened(page, ModuleType.DATA_PAGE)
        header = fmt.decode(fmt.PageHeader, page.header)[0]
        size = self._put(header, body, page.levels_size, stored_header=page.header)
        self._new_pages.append(_NewPage(size, num_rows, index, byte_array_size))
        self._count(page.type, page.encoding)
        self._num_values += page.num_values
        self.copied_pages += 1

    def _encode(self, rows: NDArray[np.int64], spec: ColumnSpec) -> EncodedChunk:
        """Encode rows of the row group as plaintext pages, which are kept in memory."""
        plan = self._chunk.plan
        leaf = self._chunk.leaf_of(rows)
        pieces: list[bytes | memoryview] = []
        encoded = encode_chunk(
            ChunkToWrite(leaf, plan.column.path, spec, ModuleCipher(), plan.row_group, 0, len(rows)), pieces.extend
        )
        pieces += encoded.writer.pieces.take()
        self._encoded_bytes = b"".join(pieces)
        return encoded

    def _encoded_run(self, start: int, stop: int, spec: ColumnSpec) -> list[EncodedPage]:
        """Encode the rows [start, stop) that stay as new pages. If they have a dictionary, its page is the first."""
        rows = start + np.flatnonzero(self._chunk.kept_mask[start:stop])
        if not len(rows):
            return []
        encoded = self._encode(rows, spec)
        pages = encoded.written_pages()
        column_index, sizes = pages.column_index(spec.truncation), pages.unencoded_byte_array_data_bytes
        properties = replace(self._chunk.properties, max_page_size=LARGEST_PAGE, max_dictionary_size=LARGEST_PAGE)
        walker = PageWalker(memoryview(self._encoded_bytes), ModuleCipher(), spec.settings.dictionary, properties)
        encoded_pages: list[EncodedPage] = []
        number = 0
        while number < len(pages.num_rows):
            page = walker.next_page()
            assert page is not None
            body = memoryview(bytes(page.body))
            if page.is_dictionary:
                encoded_pages.append(EncodedPage(page, None, body, 0, None, None))
                continue
            size = sizes[number] if sizes else None
            encoded_pages.append(EncodedPage(page, None, body, pages.num_rows[number], _entry(column_index, number), size))
            number += 1
        return encoded_pages

    def _write_run(self, encoded_pages: list[EncodedPage]) -> None:
        """Write pages that were encoded again."""
        for page, new_header, body, num_rows, entry, byte_array_size in encoded_pages:
            header = new_header or fmt.decode(fmt.PageHeader, page.header)[0]
            stored_header = page.header if new_header is None else None
            size = self._put(header, body, page.levels_size, stored_header=stored_header)
            self._new_pages.append(_NewPage(size, num_rows, entry, byte_array_size))
            self._count(page.type, page.encoding)
            self._num_values += page.num_values

    def _put(
        self,
        header: fmt.PageHeader,
        plain: memoryview,
        levels_size: int,
        *,
        is_dictionary: bool = False,
        stored_header: bytes | None = None,
    ) -> int:
        """Write a page, sealed if the new chunk is. Return its stored size."""
        sealer = self._chunk.sealer
        kinds = (ModuleType.DICTIONARY_PAGE, ModuleType.DICTIONARY_PAGE_HEADER) if is_dictionary else (
            ModuleType.DATA_PAGE, ModuleType.DATA_PAGE_HEADER)
        ordinal = NO_PAGE if is_dictionary else len(self._new_pages)
        body = memoryview(sealer.seal_body(kinds[0], ordinal, plain, levels_size))
        if len(body) > LARGEST_PAGE:
            raise LimitError(f"a stored page of {len(body)} bytes: no page can be larger than {LARGEST_PAGE}")
        if stored_header is None or sealer.overhead or self._chunk.opener.overhead:
            header.compressed_page_size = len(body) - sealer.uncounted
            if header.crc is not None:
                header.crc = int.from_bytes(crc32(body).to_bytes(4, "little"), "little", signed=True)
            stored_header = fmt.encode(header)
        sealed_header = memoryview(sealer.seal(kinds[1], ordinal, stored_header))
        self._sink.write_together((sealed_header, body))
        self._uncompressed_size += len(sealed_header) + header.uncompressed_page_size
        return len(sealed_header) + len(body)

    def _count(self, kind: int, encoding: int) -> None:
        self._page_counts[kind, encoding] = self._page_counts.get((kind, encoding), 0) + 1

    def _new_metadata(self, described: fmt.ColumnMetaData) -> fmt.ColumnMetaData:
        """Return the chunk's metadata, with statistics from a chunk that was encoded from the rows that stay."""
        metadata = copy.copy(self._metadata)
        metadata.path_in_schema = list(self._chunk.plan.column.path)
        metadata.num_values = self._num_values
        metadata.data_page_offset = self._start + self._dictionary_size
        metadata.dictionary_page_offset = self._start if self._dictionary_size else None
        metadata.index_page_offset = metadata.bloom_filter_offset = metadata.bloom_filter_length = None
        metadata.total_compressed_size = self._dictionary_size + sum(page.size for page in self._new_pages)
        metadata.total_uncompressed_size = self._uncompressed_size
        encodings = {encoding for _, encoding in self._page_counts}
        encodings |= {encoding for encoding in self._metadata.encodings if encoding in LEVEL_ENCODINGS}
        metadata.encodings = [specified_encoding(encoding) for encoding in sorted(encodings)]
        metadata.encoding_stats = [
            fmt.PageEncodingStats(page_type=fmt.PageType(kind), encoding=specified_encoding(encoding), count=number)
            for (kind, encoding), number in sorted(self._page_counts.items())
        ]
        old = self._metadata
        metadata.statistics = described.statistics if old.statistics is not None else None
        metadata.size_statistics = described.size_statistics if old.size_statistics is not None else None
        metadata.geospatial_statistics = described.geospatial_statistics if old.geospatial_statistics is not None else None
        metadata.key_value_metadata = None      # a writer's own notes about the old values
        return metadata

    def _offset_index(self) -> fmt.OffsetIndex:
        locations, offset, first_row = [], self._start + self._dictionary_size, 0
        for page in self._new_pages:
            location = fmt.PageLocation(offset=offset, compressed_page_size=page.size, first_row_index=first_row)
            locations.append(location)
            offset, first_row = offset + page.size, first_row + page.num_rows
        sizes = [page.byte_array_size for page in self._new_pages]
        is_variable = self._chunk.plan.column.physical_type == fmt.Type.BYTE_ARRAY
        unencoded = [size for size in sizes if size is not None] if is_variable and None not in sizes else None
        return fmt.OffsetIndex(page_locations=locations, unencoded_byte_array_data_bytes=unencoded)

    def _column_index(self) -> fmt.ColumnIndex | None:
        entries = [page.entry for page in self._new_pages]
        if any(entry is None for entry in entries):
            return None
        null_pages, minima, maxima, null_counts, nan_counts, repetition, definition = zip(
            *(entry for entry in entries if entry is not None), strict=True
        )
        return fmt.ColumnIndex(
            null_pages=list(null_pages),
            min_values=list(minima),
            max_values=list(maxima),
            boundary_order=fmt.BoundaryOrder.UNORDERED,
            null_counts=None if None in null_counts else list(null_counts),
            nan_counts=None if None in nan_counts else list(nan_counts),
            repetition_level_histograms=_joined(repetition),
            definition_level_histograms=_joined(definition),
        )


def _entry(index: fmt.ColumnIndex | None, number: int) -> Any:
    """Return what a ColumnIndex says about one page, or None without an index."""
    if index is None:
        return None
    pages = len(index.null_pages)

    def part(histograms: Sequence[int] | None) -> Sequence[int]:
        if not histograms:
            return ()
        size = len(histograms) // pages
        return histograms[number * size : (number + 1) * size]

    return (
        index.null_pages[number],
        index.min_values[number],
        index.max_values[number],
        index.null_counts[number] if index.null_counts else None,
        index.nan_counts[number] if index.nan_counts else None,
        part(index.repetition_level_histograms),
        part(index.definition_level_histograms),
    )


def _joined(histograms: Sequence[Sequence[int]]) -> list[int] | None:
    """Return all pages' histograms in one list, or None if a page has none."""
    return None if any(not each for each in histograms) else [number for each in histograms for number in each]

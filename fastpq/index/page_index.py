"""Reads page indexes. ColumnIndex and OffsetIndex are checked against each other, the schema and the file (PageIndex.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError
from fastpq.index.chunk_claims import ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import refuse_refuted, without_refuted_statistics
from fastpq.index.page_locations import read_page_locations
from fastpq.io.source import Bytes, Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats import statistics
from fastpq.stats.statistics import Order
from fastpq.stats.usable_statistics import UsableStatistics

NO_PAGE = -1
_PAGE_LOCATIONS = 1         # field id in OffsetIndex

# Names for the two parts of a page index in errors and reports.
OFFSET_INDEX = "offset index"
COLUMN_INDEX = "column index"

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PageLocation:
    """Where a data page is in the file and in its row group (parquet.thrift, ``PageLocation``).

    Attributes:
        offset: the page header's offset in the file.
        compressed_page_size: bytes that header and page take in the file.
        first_row_index: the page's first row, counted within the row group.
    """

    offset: int
    compressed_page_size: int
    first_row_index: int


@dataclass(frozen=True, slots=True, eq=False)
class OffsetIndex:
    """Where the data pages of a column chunk are.

    Attributes:
        locations: shape (3, pages), int64: for each page its offset in the file, its stored bytes, header included, and its
            first row within the row group.
        num_rows: row count of the row group.
        unencoded_byte_array_data_bytes: bytes that each page's BYTE_ARRAY values have, shape (pages,), or None if not written.
    """

    locations: Int64s
    num_rows: int
    unencoded_byte_array_data_bytes: Int64s | None = None

    @property
    def offsets(self) -> Int64s:
        """File offset of each page."""
        return np.asarray(self.locations[0])

    @property
    def sizes(self) -> Int64s:
        """Stored bytes of each page, header included."""
        return np.asarray(self.locations[1])

    @property
    def first_rows(self) -> Int64s:
        """First row of each page within the row group."""
        return np.asarray(self.locations[2])

    @property
    def num_pages(self) -> int:
        """Number of data pages."""
        return int(self.locations.shape[1])

    @property
    def row_counts(self) -> Int64s:
        """Row count of each page."""
        counts = np.empty(self.num_pages, np.int64)
        np.subtract(self.first_rows[1:], self.first_rows[:-1], out=counts[:-1])
        counts[-1:] = self.num_rows - self.first_rows[-1:]
        return counts

    @property
    def page_locations(self) -> list[PageLocation]:
        """Place of each data page."""
        columns = (self.offsets.tolist(), self.sizes.tolist(), self.first_rows.tolist())
        return [PageLocation(*location) for location in zip(*columns, strict=True)]

    def __repr__(self) -> str:
        return f"<OffsetIndex of {self.num_pages} pages, {self.num_rows} rows>"


@dataclass(frozen=True, slots=True, eq=False)
class ColumnIndex:
    """Bounds and counts for the data pages in a column chunk.

    Attributes:
        null_pages: shape (pages,), bool: whether a page has only nulls.
        min_values, max_values: bounds as PLAIN stores values (BYTE_ARRAY without lengths), empty for null pages. Writers may
            shorten a bound. It is then not a value in the page, but still encloses all its values.
        boundary_order: the BoundaryOrder that the writer claims. ``is_ordered`` verifies it.
        null_counts, nan_counts: shape (pages,), int64, or None if not written.
        repetition_level_histograms, definition_level_histograms: shape (pages, levels), int64, or None if not written.
    """

    null_pages: NDArray[np.bool_]
    min_values: Sequence[bytes]
    max_values: Sequence[bytes]
    boundary_order: fmt.BoundaryOrder
    null_counts: Int64s | None = None
    nan_counts: Int64s | None = None
    repetition_level_histograms: Int64s | None = None
    definition_level_histograms: Int64s | None = None

    @property
    def num_pages(self) -> int:
        """Number of data pages."""
        return len(self.null_pages)

    def is_ordered(self, order: Order) -> bool:
        """Return whether the boundary order that the writer claims is true, so that pages can be found by bisection.

        Args:
            order: the order in which the column's bounds are compared.
        """
        if self.boundary_order == fmt.BoundaryOrder.UNORDERED or order == Order.ORDER_NONE:
            return False
        pages_with_bounds = np.flatnonzero(~self.null_pages).tolist()
        bounds = [(self.min_values[page], self.max_values[page]) for page in pages_with_bounds]
        return pages_are_monotonic(bounds, order, self.boundary_order)

    def __repr__(self) -> str:
        return f"<ColumnIndex of {self.num_pages} pages, {self.boundary_order.name}>"


def pages_are_monotonic(bounds: Sequence[tuple[bytes, bytes]], order: Order, boundary_order: int) -> bool:
    """Return whether lower and upper bounds both ascend, or both descend."""
    sign = 1 if boundary_order == fmt.BoundaryOrder.ASCENDING else -1
    return all(statistics.is_monotonic(order, [each[side] for each in bounds], sign) for side in (0, 1))


def offset_index_of(serialized_index: Any, claims: ChunkMetadataClaims) -> OffsetIndex:
    """Decode an OffsetIndex and check its pages against the footer.

    Args:
        serialized_index: the serialized struct.
        claims: other claims about the same column chunk. The index is added to them.

    Raises:
        FormatError: a claim in the index is refuted (``consistency_checks.CHECKS``).
    """
    index, positions, _ = fmt.decode_partly(fmt.OffsetIndex, serialized_index, 0, (_PAGE_LOCATIONS,))
    locations = read_page_locations(serialized_index, positions[_PAGE_LOCATIONS])
    claims.add_offset_index(locations, index.unencoded_byte_array_data_bytes)
    refuse_refuted(Part.OFFSET_INDEX, claims)
    unencoded_sizes = _counts(index.unencoded_byte_array_data_bytes, (locations.shape[1],))
    return OffsetIndex(locations, claims.num_rows, unencoded_sizes)


def column_index_of(index: fmt.ColumnIndex, claims: ChunkMetadataClaims) -> ColumnIndex:
    """Check a decoded ColumnIndex struct against the schema, the footer and the OffsetIndex, and convert it.

    Args:
        index: the struct.
        claims: other claims about the same column chunk. The index is added to them.

    Raises:
        FormatError: a claim in the index is refuted (``consistency_checks.CHECKS``).
    """
    claims.column_index = index
    refuse_refuted(Part.COLUMN_INDEX, claims)
    pages, column = len(index.null_pages), claims.column
    return ColumnIndex(
        np.array(index.null_pages, np.bool_),
        index.min_values,
        index.max_values,
        fmt.BoundaryOrder(index.boundary_order),
        _counts(claims.null_counts, (pages,)),
        _counts(index.nan_counts, (pages,)),
        _counts(index.repetition_level_histograms, (pages, column.max_repetition_level + 1)),
        _counts(index.definition_level_histograms, (pages, column.max_definition_level + 1)),
    )


def _counts(values: list[int] | None, shape: tuple[int, ...]) -> Int64s | None:
    """Return a list of counts as an array, or None if the list is absent or empty."""
    return np.array(values, np.int64).reshape(shape) if values else None


@dataclass(frozen=True, slots=True)
class ChunkIndexes:
    """One column chunk's page index after its checks. Absent parts are None."""

    column_index: ColumnIndex | None
    offset_index: OffsetIndex | None


@dataclass(frozen=True, slots=True)
class StoredIndexes:
    """One column chunk's page index as Thrift structs. Absent and broken parts are None.

    Attributes:
        column_index, offset_index: the structs.
        errors: errors of the broken parts. The keys are ``"offset index"`` and ``"column index"``.
    """

    column_index: fmt.ColumnIndex | None
    offset_index: fmt.OffsetIndex | None
    errors: Mapping[str, FormatError]


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A request for one column chunk's page index.

    Attributes:
        column: the chunk's column.
        chunk: the chunk's metadata.
        num_rows: row count of the row group.
        cipher: the chunk's cipher.
        column_index: whether to read the column index too, not only the offset index.
        usable: which of the column's statistics can be compared with the index, or None to compare nothing.
    """

    column: ColumnDescriptor
    chunk: ColumnChunkMetaData
    num_rows: int
    cipher: ModuleCipher
    column_index: bool = True
    usable: UsableStatistics | None = None


def read_page_indexes(source: Source, requests: Sequence[IndexRequest]) -> list[ChunkIndexes | FormatError]:
    """Read the page indexes of column chunks with one round of requests.

    Args:
        source: the file.
        requests: the chunks.

    Returns:
        For each chunk its indexes, or a FormatError if an index contradicts itself or the file.

    Raises:
        TagVerificationError: an encrypted index was altered.
    """
    places: list[list[tuple[int, int]] | FormatError] = []
    for request in requests:
        try:
            places.append(_places(request, source.size))
        except FormatError as error:
            places.append(error)
    data = iter(source.read_ranges(place for parts in places if isinstance(parts, list) for place in parts))
    return [
        _parse(request, islice(data, len(parts))) if isinstance(parts, list) else parts
        for request, parts in zip(requests, places, strict=True)
    ]


def _places(request: IndexRequest, file_size: int) -> list[tuple[int, int]]:
    """Return (offset, length) for the offset index, then for the column index. Absent indexes are left out."""
    chunk = request.chunk.chunk
    places: list[tuple[int, int]] = []
    if chunk.file_path:
        return places       # the format does not say whether the offsets are in this file or in the other
    for name, offset, length in (
        ("an offset index", chunk.offset_index_offset, chunk.offset_index_length),
        ("a column index", chunk.column_index_offset, chunk.column_index_length),
    ):
        if offset is None or length is None or (name == "a column index" and not request.column_index):
            continue
        if not 0 < offset < file_size or not 0 < length <= file_size - offset:
            raise FormatError(f"{name} of {length} bytes at {offset} in a file of {file_size}")
        places.append((offset, length))
    return places


def read_stored_page_index(source: Source, request: IndexRequest) -> tuple[StoredIndexes, ChunkIndexes]:
    """Return one chunk's page index twice, as stored structs and in checked form. Broken parts are left out.

    A column index without its offset index is useless to readers, and counts as broken too.

    Raises:
        TagVerificationError: an encrypted index was altered.
    """
    errors: dict[str, FormatError] = {}
    try:
        return _stored(source, request, errors)
    except FormatError as error:
        errors[COLUMN_INDEX] = error
    try:
        return _stored(source, replace(request, column_index=False), errors)
    except FormatError as error:
        errors = {OFFSET_INDEX: error}
    if request.chunk.chunk.column_index_offset is not None:
        errors[COLUMN_INDEX] = FormatError("a column index without its offset index")
    return StoredIndexes(None, None, errors), ChunkIndexes(None, None)


def _stored(source: Source, request: IndexRequest, errors: dict[str, FormatError]) -> tuple[StoredIndexes, ChunkIndexes]:
    """Return the requested parts of a page index, as read_stored_page_index does. Raise FormatError for a broken part."""
    parts = _opened(request, iter(source.read_ranges(_places(request, source.size))))
    checked_indexes = _checked(request, *parts)
    offset_index, column_index = parts
    structs = (
        None if column_index is None else fmt.decode(fmt.ColumnIndex, column_index)[0],
        None if offset_index is None else fmt.decode(fmt.OffsetIndex, offset_index)[0],
    )
    return StoredIndexes(*structs, errors), checked_indexes


def _parse(request: IndexRequest, parts: Iterator[Bytes]) -> ChunkIndexes | FormatError:
    try:
        return _checked(request, *_opened(request, parts))
    except FormatError as error:
        return error.at(column=request.column.name, row_group=request.chunk.row_group_ordinal)


def _opened(request: IndexRequest, parts: Iterator[Bytes]) -> tuple[Any, Any]:
    """Return the serialized offset index and column index, decrypted. One that is absent or not requested is None."""
    chunk = request.chunk.chunk
    offset_index = column_index = None
    if chunk.file_path:
        return None, None
    if chunk.offset_index_offset is not None and chunk.offset_index_length is not None:
        offset_index = request.cipher.open(ModuleType.OFFSET_INDEX, NO_PAGE, next(parts).data)
    if request.column_index and chunk.column_index_offset is not None and chunk.column_index_length is not None:
        column_index = request.cipher.open(ModuleType.COLUMN_INDEX, NO_PAGE, next(parts).data)
    return offset_index, column_index


def _checked(request: IndexRequest, offset_bytes: Any, column_bytes: Any) -> ChunkIndexes:
    claims = ChunkMetadataClaims(request.column, request.num_rows, request.chunk.metadata, request.usable)
    claims = without_refuted_statistics(claims)
    offset_index = None if offset_bytes is None else offset_index_of(offset_bytes, claims)
    column_index = None if column_bytes is None else column_index_of(fmt.decode(fmt.ColumnIndex, column_bytes)[0], claims)
    return ChunkIndexes(column_index, offset_index)

"""Reading page indexes: ColumnIndex and OffsetIndex, checked against each other, their column and the file (PageIndex.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError
from fastpq.index.page_locations import check_page_locations, read_page_locations
from fastpq.io.source import Bytes, Source
from fastpq.metadata.file_metadata import ColumnChunkMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats import statistics
from fastpq.stats.bounds import bound_lengths
from fastpq.stats.statistics import Order

NO_PAGE = -1
_PAGE_LOCATIONS = 1         # field id in OffsetIndex

# Parts of a page index in errors and reports.
OFFSET_INDEX = "offset index"
COLUMN_INDEX = "column index"

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PageLocation:
    """Place of a data page in the file and in its row group (parquet.thrift, ``PageLocation``).

    Attributes:
        offset: offset of the page header in the file.
        compressed_page_size: bytes of header and page, as stored.
        first_row_index: its first row, counted within the row group.
    """

    offset: int
    compressed_page_size: int
    first_row_index: int


@dataclass(frozen=True, slots=True, eq=False)
class OffsetIndex:
    """Places of the data pages of a column chunk.

    Attributes:
        locations: shape (3, pages), int64: for each page its offset in the file, its stored bytes, header included, and its
            first row within the row group.
        num_rows: rows of the row group.
        unencoded_byte_array_data_bytes: shape (pages,): bytes of the values of a BYTE_ARRAY column; None where not written.
    """

    locations: Int64s
    num_rows: int
    unencoded_byte_array_data_bytes: Int64s | None = None

    @property
    def offsets(self) -> Int64s:
        """Offset of each page in the file."""
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
        """Rows of each page."""
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
    """Bounds and counts of the data pages of a column chunk.

    Attributes:
        null_pages: shape (pages,), bool: pages of nulls alone.
        min_values, max_values: bounds as PLAIN stores values (BYTE_ARRAY without lengths), empty for null pages. Writers
            may shorten bounds, so that a bound is no value of the page but encloses all values.
        boundary_order: the writer's claim, a BoundaryOrder; ``is_ordered`` verifies the claim.
        null_counts, nan_counts: shape (pages,), int64; None where not written.
        repetition_level_histograms, definition_level_histograms: shape (pages, levels), int64, or None.
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
        """Whether the claimed boundary order holds, so that pages may be found by bisection.

        Args:
            order: order of the column's bounds.
        """
        if self.boundary_order == fmt.BoundaryOrder.UNORDERED or order == Order.ORDER_NONE:
            return False
        kept = np.flatnonzero(~self.null_pages).tolist()
        bounds = [(self.min_values[page], self.max_values[page]) for page in kept]
        return pages_are_monotonic(bounds, order, self.boundary_order)

    def __repr__(self) -> str:
        return f"<ColumnIndex of {self.num_pages} pages, {self.boundary_order.name}>"


def pages_are_monotonic(bounds: Sequence[tuple[bytes, bytes]], order: Order, boundary_order: int) -> bool:
    """Whether lower and upper bounds both ascend, or both descend."""
    sign = 1 if boundary_order == fmt.BoundaryOrder.ASCENDING else -1
    return all(statistics.is_monotonic(order, [each[side] for each in bounds], sign) for side in (0, 1))


def offset_index_of(stored: Any, num_rows: int, chunk: ColumnChunkMetaData) -> OffsetIndex:
    """Decode an OffsetIndex and check its pages against the footer.

    Args:
        stored: the serialized struct.
        num_rows: rows of the row group.
        chunk: the index's column chunk. Its data pages follow each other without gaps, from the first to the chunk's end.

    Raises:
        FormatError: pages overlap, do not ascend, leave gaps, do not fill the chunk or do not cover the rows, or their number
            differs from the data pages in encoding_stats.
    """
    index, positions, _ = fmt.decode_partly(fmt.OffsetIndex, stored, 0, (_PAGE_LOCATIONS,))
    locations = read_page_locations(stored, positions[_PAGE_LOCATIONS])
    # Some writers give the dictionary page's offset as data_page_offset. A chunk without dictionary_page_offset is
    # therefore not checked here; reading the first page shows its type.
    first_page = -1 if chunk.dictionary_page_offset is None else chunk.data_page_offset
    check_page_locations(locations, num_rows, *chunk.byte_range, first_page)
    counted = [stats.count for stats in chunk.encoding_stats if stats.page_type in fmt.DATA_PAGE_TYPES]
    pages = locations.shape[1]
    if pages and counted and sum(counted) != pages:
        raise FormatError(f"an offset index of {pages} pages in a chunk of {sum(counted)}")
    unencoded = _counts(index.unencoded_byte_array_data_bytes, (pages,), "unencoded sizes") if pages else None
    return OffsetIndex(locations, num_rows, unencoded)


def column_index_of(stored: fmt.ColumnIndex, column: ColumnDescriptor, offset_index: OffsetIndex | None) -> ColumnIndex:
    """Convert a decoded ColumnIndex struct, and check its lists against each other, the column and the offset index.

    Args:
        stored: the struct.
        column: the index's column.
        offset_index: offset index of the same chunk; None where the chunk has none.

    Raises:
        FormatError: lists of different lengths, bounds of an impossible length for the column's type, or counts in
            contradiction to the pages.
    """
    pages = len(stored.null_pages)
    if offset_index is not None and offset_index.num_pages != pages:
        raise FormatError(f"a column index of {pages} pages beside an offset index of {offset_index.num_pages}")
    if len(stored.min_values) != pages or len(stored.max_values) != pages:
        raise FormatError(f"{len(stored.min_values)} and {len(stored.max_values)} bounds in a column index of {pages} pages")
    null_pages = np.array(stored.null_pages, np.bool_)
    shortest, longest = bound_lengths(column.type)
    for page, is_null in enumerate(stored.null_pages):
        for bound in () if is_null else (stored.min_values[page], stored.max_values[page]):
            if not shortest <= len(bound) <= longest:
                raise FormatError(f"a bound of {len(bound)} bytes in the column index of a {column.type} column", page=page)
    if stored.boundary_order not in (0, 1, 2):
        raise FormatError(f"a column index with the unknown boundary order {stored.boundary_order!r}")
    # parquet-mr writes -1 for an unknown count.
    known = stored.null_counts if stored.null_counts and min(stored.null_counts) >= 0 else None
    null_counts = _counts(known, (pages,), "null counts")
    nan_counts = _counts(stored.nan_counts, (pages,), "NaN counts")
    if offset_index is not None and column.max_repetition_level == 0:
        _check_counts(null_pages, null_counts, nan_counts, offset_index.row_counts)
    return ColumnIndex(
        null_pages,
        stored.min_values,
        stored.max_values,
        fmt.BoundaryOrder(stored.boundary_order),
        null_counts,
        nan_counts,
        _counts(stored.repetition_level_histograms, (pages, column.max_repetition_level + 1), "repetition levels"),
        _counts(stored.definition_level_histograms, (pages, column.max_definition_level + 1), "definition levels"),
    )


def _counts(values: list[int] | None, shape: tuple[int, ...], what: str) -> Int64s | None:
    """A list of counts as an array of a shape; None for an absent or empty list."""
    if not values:
        return None
    if len(values) != math.prod(shape):
        raise FormatError(f"{len(values)} {what} in the index of {shape[0]} pages")
    counts = np.array(values, np.int64).reshape(shape)
    if (counts < 0).any():
        raise FormatError(f"negative {what} in a page index")
    return counts


def _check_counts(
    null_pages: NDArray[np.bool_], null_counts: Int64s | None, nan_counts: Int64s | None, rows: Int64s
) -> None:
    """Check counts of a flat column, with one value a row, against the rows of each page."""
    if null_counts is not None:
        if (null_counts > rows).any():
            raise FormatError("a column index with more nulls than rows in a page")
        if (null_counts != rows)[null_pages].any():
            raise FormatError("a column index with a null page of fewer nulls than rows")
    if nan_counts is not None:
        nulls = np.zeros_like(rows) if null_counts is None else null_counts
        if (nan_counts > rows - nulls).any():
            raise FormatError("a column index with more NaNs than values in a page")


@dataclass(frozen=True, slots=True)
class ChunkIndexes:
    """The checked page index of one column chunk; None for absent parts."""

    column_index: ColumnIndex | None
    offset_index: OffsetIndex | None


@dataclass(frozen=True, slots=True)
class StoredIndexes:
    """The page index of one column chunk as Thrift structs; None for absent and broken parts.

    Attributes:
        column_index, offset_index: the structs.
        broken: errors of the broken parts, by ``"offset index"`` and ``"column index"``.
    """

    column_index: fmt.ColumnIndex | None
    offset_index: fmt.OffsetIndex | None
    broken: Mapping[str, FormatError]


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A request for the page index of one column chunk.

    Attributes:
        column: the chunk's column.
        chunk: the chunk's metadata.
        num_rows: rows of the row group.
        cipher: the chunk's cipher.
        column_index: whether to read the column index beside the offset index.
    """

    column: ColumnDescriptor
    chunk: ColumnChunkMetaData
    num_rows: int
    cipher: ModuleCipher
    column_index: bool = True


def read_page_indexes(source: Source, wanted: Sequence[IndexRequest]) -> list[ChunkIndexes | FormatError]:
    """Read the page indexes of column chunks with one round of requests.

    Args:
        source: the file.
        wanted: the chunks.

    Returns:
        For each chunk its indexes, or a FormatError where an index contradicts itself or the file.

    Raises:
        TagVerificationError: an encrypted index was altered.
    """
    places: list[list[tuple[int, int]] | FormatError] = []
    for request in wanted:
        try:
            places.append(_places(request, source.size))
        except FormatError as error:
            places.append(error)
    data = iter(source.read_ranges(place for found in places if isinstance(found, list) for place in found))
    return [
        _parse(request, islice(data, len(found))) if isinstance(found, list) else found
        for request, found in zip(wanted, places, strict=True)
    ]


def _places(request: IndexRequest, file_size: int) -> list[tuple[int, int]]:
    """Places, as (offset, length), of the offset index and the column index, in this order; absent indexes are left out."""
    chunk = request.chunk.chunk
    places: list[tuple[int, int]] = []
    if chunk.file_path:
        return places       # the format leaves open whose offsets these are: this file's or the other's
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
    """The page index of one chunk, both as stored structs and checked, without broken parts.

    A column index without its offset index serves no reader, and counts as broken too.

    Raises:
        TagVerificationError: an encrypted index was altered.
    """
    broken: dict[str, FormatError] = {}
    try:
        return _stored(source, request, broken)
    except FormatError as error:
        broken[COLUMN_INDEX] = error
    try:
        return _stored(source, replace(request, column_index=False), broken)
    except FormatError as error:
        broken = {OFFSET_INDEX: error}
    if request.chunk.chunk.column_index_offset is not None:
        broken[COLUMN_INDEX] = FormatError("a column index without its offset index")
    return StoredIndexes(None, None, broken), ChunkIndexes(None, None)


def _stored(
    source: Source, request: IndexRequest, broken: dict[str, FormatError]
) -> tuple[StoredIndexes, ChunkIndexes]:
    """The requested parts of a page index, as read_stored_page_index returns them; raises FormatError for a broken part."""
    opened = _opened(request, source.read_ranges(_places(request, source.size)))
    checked = _checked(request, opened)
    offset_index, column_index = opened
    return (
        StoredIndexes(
            None if column_index is None else fmt.decode(fmt.ColumnIndex, column_index)[0],
            None if offset_index is None else fmt.decode(fmt.OffsetIndex, offset_index)[0],
            broken,
        ),
        checked,
    )


def _parse(request: IndexRequest, parts: Iterable[Bytes]) -> ChunkIndexes | FormatError:
    try:
        return _checked(request, _opened(request, parts))
    except FormatError as error:
        return error.at(column=request.column.name, row_group=request.chunk.row_group_ordinal)


def _opened(request: IndexRequest, parts: Iterable[Bytes]) -> tuple[Any, Any]:
    """The serialized offset index and column index, decrypted; None for an absent or unwanted index."""
    chunk, waiting = request.chunk.chunk, iter(parts)
    offset_index = column_index = None
    if chunk.file_path:
        return None, None
    if chunk.offset_index_offset is not None and chunk.offset_index_length is not None:
        offset_index = request.cipher.open(ModuleType.OFFSET_INDEX, NO_PAGE, next(waiting).data)
    if request.column_index and chunk.column_index_offset is not None and chunk.column_index_length is not None:
        column_index = request.cipher.open(ModuleType.COLUMN_INDEX, NO_PAGE, next(waiting).data)
    return offset_index, column_index


def _checked(request: IndexRequest, opened: tuple[Any, Any]) -> ChunkIndexes:
    offset_index: OffsetIndex | None = None
    column_index: ColumnIndex | None = None
    if opened[0] is not None:
        offset_index = offset_index_of(opened[0], request.num_rows, request.chunk)
    if opened[1] is not None:
        stored, _ = fmt.decode(fmt.ColumnIndex, opened[1])
        column_index = column_index_of(stored, request.column, offset_index)
    return ChunkIndexes(column_index, offset_index)

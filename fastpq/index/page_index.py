"""Reading page indexes: ColumnIndex and OffsetIndex, checked against each other, their column and the file (PageIndex.md)."""

from __future__ import annotations

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
from fastpq.index.claims import Claims, Part
from fastpq.index.contradictions import refuse_refuted, without_refuted_statistics
from fastpq.index.page_locations import read_page_locations
from fastpq.io.source import Bytes, Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats import statistics
from fastpq.stats.statistics import Order
from fastpq.stats.trust import Trust

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


def offset_index_of(stored: Any, claims: Claims) -> OffsetIndex:
    """Decode an OffsetIndex and check its pages against the footer.

    Args:
        stored: the serialized struct.
        claims: other claims about the index's column chunk; the index is added to the claims.

    Raises:
        FormatError: a claim of the index is refuted (``contradictions.CHECKS``).
    """
    index, positions, _ = fmt.decode_partly(fmt.OffsetIndex, stored, 0, (_PAGE_LOCATIONS,))
    locations = read_page_locations(stored, positions[_PAGE_LOCATIONS])
    claims.add_offset_index(locations, index.unencoded_byte_array_data_bytes)
    refuse_refuted(Part.OFFSET_INDEX, claims)
    unencoded = _counts(index.unencoded_byte_array_data_bytes, (locations.shape[1],))
    return OffsetIndex(locations, claims.num_rows, unencoded)


def column_index_of(stored: fmt.ColumnIndex, claims: Claims) -> ColumnIndex:
    """Convert a decoded ColumnIndex struct, checked against the schema, the footer and the OffsetIndex.

    Args:
        stored: the struct.
        claims: other claims about the index's column chunk; the index is added to the claims.

    Raises:
        FormatError: a claim of the index is refuted (``contradictions.CHECKS``).
    """
    claims.column_index = stored
    refuse_refuted(Part.COLUMN_INDEX, claims)
    pages, column = len(stored.null_pages), claims.column
    return ColumnIndex(
        np.array(stored.null_pages, np.bool_),
        stored.min_values,
        stored.max_values,
        fmt.BoundaryOrder(stored.boundary_order),
        _counts(claims.null_counts, (pages,)),
        _counts(stored.nan_counts, (pages,)),
        _counts(stored.repetition_level_histograms, (pages, column.max_repetition_level + 1)),
        _counts(stored.definition_level_histograms, (pages, column.max_definition_level + 1)),
    )


def _counts(values: list[int] | None, shape: tuple[int, ...]) -> Int64s | None:
    """A list of counts as an array of a shape; None for an absent or empty list."""
    return np.array(values, np.int64).reshape(shape) if values else None


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
        trust: usable statistics of the column, for a comparison with the index; None for no comparison.
    """

    column: ColumnDescriptor
    chunk: ColumnChunkMetaData
    num_rows: int
    cipher: ModuleCipher
    column_index: bool = True
    trust: Trust | None = None


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
    stored = Claims(request.column, request.num_rows, request.chunk.metadata, request.trust)
    claims = without_refuted_statistics(stored)
    offset_index = None if opened[0] is None else offset_index_of(opened[0], claims)
    column_index = None if opened[1] is None else column_index_of(fmt.decode(fmt.ColumnIndex, opened[1])[0], claims)
    return ChunkIndexes(column_index, offset_index)

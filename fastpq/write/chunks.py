"""Column chunks: encode the rows of a leaf as pages, and describe the pages in the footer and the indexes of the new file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Conversion
from fastpq.column.shred import LeafToWrite
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import ParquetError, SchemaError
from fastpq.format.slots import untracked
from fastpq.index.written_pages import WrittenPages
from fastpq.io.sink import Sink
from fastpq.schema.types import Decimal, Geography, Geometry, Time, Type
from fastpq.stats.bounds import FLOAT_ORDERS, truncate_max, truncate_min
from fastpq.stats.geospatial import GeospatialBounds
from fastpq.write.row_groups import PlacedChunk
from fastpq.write.spec import ColumnSpec

if TYPE_CHECKING:
    from fastpq.write.plain_entry import EntryPattern

_GEOSPATIAL = (Geometry, Geography)
_RANGE_CHECKED = (Decimal, Time)      # types whose storage can hold values that the type does not allow


class ChunkToWrite(NamedTuple):
    """Rows from a leaf that become a column chunk.

    Attributes:
        leaf: the leaf.
        path: column path.
        spec: how to write the column.
        cipher: chunk cipher.
        row_group: row group ordinal, for errors.
        start, stop: the leaf's rows [start, stop).
        cuts: shape (cuts,), int64: rows of the chunk at which a new page begins. None cuts pages by their size alone.
    """

    leaf: LeafToWrite
    path: tuple[str, ...]
    spec: ColumnSpec
    cipher: ModuleCipher
    row_group: int
    start: int
    stop: int
    cuts: NDArray[np.int64] | None = None


def encode_chunk(chunk: ChunkToWrite, give: Callable[[list[bytes | memoryview]], object]) -> EncodedChunk:
    """Encode, compress and encrypt a column chunk.

    Args:
        chunk: the rows, and how to write them.
        give: function that is called with lists of stored pages, in order, while the chunk is encoded. The last pages stay in the
            chunk.

    Raises:
        SchemaError: a null in a required column, text that is not UTF-8, or a geometry that is not ISO WKB.
        LimitError: too many levels or pages for one chunk.
    """
    leaf, spec, num_rows = chunk.leaf, chunk.spec, chunk.stop - chunk.start
    try:
        values = leaf.rows(spec.layout, chunk.start, chunk.stop)
        writer = ChunkWriter(values, spec.codec, chunk.cipher, spec.settings, give, chunk.cuts)
        entries = leaf.entries(spec.layout, num_rows)
        if entries is not None:
            writer.begin_dictionary(entries)
        writer.write(0, num_rows)
        geospatial_statistics = _geospatial_statistics(spec, values) if has_geospatial_values(spec) else None
        return EncodedChunk(chunk.path, spec, chunk.cipher, writer, geospatial_statistics)
    except ParquetError as error:
        if "path" not in error.context:     # an error with a path comes from the file, in ``give``
            error.at(column=".".join(chunk.path), row_group=chunk.row_group)
        raise


def has_geospatial_values(spec: ColumnSpec) -> bool:
    """Return whether a column has values of GEOMETRY or GEOGRAPHY."""
    return isinstance(spec.type.logical, _GEOSPATIAL)


def _geospatial_statistics(spec: ColumnSpec, values: ColumnInput) -> fmt.GeospatialStatistics | None:
    """Return the bounding box and types for a GEOMETRY or GEOGRAPHY column. The values are checked even without statistics."""
    bounds = GeospatialBounds(isinstance(spec.type.logical, Geography))
    for reader in values.readers:
        bounds.observe(reader, 0, reader.count)
    return bounds.statistics() if spec.settings.statistics else None


class EncodedChunk(NamedTuple):
    """A column chunk whose last pages are still in memory.

    Attributes:
        path: column path.
        spec: how the column is written.
        cipher: chunk cipher.
        writer: the last pages, and counts for all pages.
        geospatial_statistics: statistics for GEOMETRY and GEOGRAPHY columns; None for other columns.
    """

    path: tuple[str, ...]
    spec: ColumnSpec
    cipher: ModuleCipher
    writer: ChunkWriter
    geospatial_statistics: fmt.GeospatialStatistics | None

    @property
    def num_data_pages(self) -> int:
        """Number of data pages."""
        return sum(count for (kind, _), count in self.writer.page_counts.items() if kind != fmt.PageType.DICTIONARY_PAGE)

    def place(self, sink: Sink) -> int:
        """Write the last pages after the others, and return the file offset where the first page begins."""
        sink.write_together(self.writer.pieces.take())
        return sink.size - self.writer.stored_size

    def placed(self, start: int, pattern: EntryPattern | None = None) -> PlacedChunk:
        """Return the chunk with its metadata and indexes.

        Args:
            start: file offset where the first page begins.
            pattern: what encodes the entries of ordinary chunks without structs (``entry_pattern``), or None.

        Raises:
            SchemaError: a decimal with more digits than its type allows, or a time that is not within a day.
        """
        spec, writer = self.spec, self.writer
        plain = None if pattern is None else pattern.entry(self.path, writer, start)
        if plain is not None:
            return untracked(PlacedChunk(plain, plain, self.cipher, plain.column_index, plain.offset_index, None))
        pages = self.written_pages()
        metadata = self._metadata(pages, start)
        column_index = offset_index = None
        if spec.has_page_index:
            offset_index = pages.offset_index(start + writer.dictionary_page_size)
            column_index = pages.column_index(spec.truncation) if spec.settings.statistics else None
        return PlacedChunk.of_structs(metadata, self.cipher, column_index, offset_index, writer.bloom_filter)

    def written_pages(self) -> WrittenPages:
        """Return counts and bounds for each data page."""
        settings, log = self.spec.settings, self.writer.pages
        sizes, rows, entries, nulls, nans, byte_array_sizes = log.counts()
        repetition, definition = settings.max_repetition_level, settings.max_definition_level
        repetition_counts: Sequence[int] = ()
        definition_counts: Sequence[int] = ()
        if repetition or definition > 1:
            levels = log.level_counts().reshape(len(sizes), repetition + 1 + definition + 1)
            repetition_counts = levels[:, : repetition + 1].ravel().tolist() if repetition else ()
            definition_counts = levels[:, repetition + 1 :].ravel().tolist() if definition > 1 else ()
        return WrittenPages(
            type=self.spec.type,
            order=settings.order,
            sizes=sizes,
            num_rows=rows,
            num_values=entries,
            null_counts=nulls,
            total_order=settings.total_order,
            minima=log.minima,
            maxima=log.maxima,
            nan_counts=nans,
            unencoded_byte_array_data_bytes=byte_array_sizes,
            repetition_level_histograms=repetition_counts,
            definition_level_histograms=definition_counts,
        )

    def _metadata(self, pages: WrittenPages, start: int) -> fmt.ColumnMetaData:
        """Return the footer's metadata for pages that begin at file offset start."""
        spec, writer = self.spec, self.writer
        encodings, stats = _encodings(tuple(sorted(writer.page_counts.items())), spec.settings.max_definition_level > 0)
        return fmt.ColumnMetaData(
            type=spec.type.physical,
            encodings=encodings,
            path_in_schema=list(self.path) if spec.has_path else None,
            codec=spec.codec.number,
            num_values=writer.num_values,
            total_uncompressed_size=writer.uncompressed_size,
            total_compressed_size=writer.stored_size,
            data_page_offset=start + writer.dictionary_page_size,
            dictionary_page_offset=start if writer.dictionary_page_size else None,
            statistics=self._statistics(pages),
            size_statistics=pages.size_statistics() if spec.settings.statistics else None,
            geospatial_statistics=self.geospatial_statistics,
            encoding_stats=stats,
        )

    def _statistics(self, pages: WrittenPages) -> fmt.Statistics | None:
        spec, writer = self.spec, self.writer
        smallest, largest = writer.pages.minimum(), writer.pages.maximum()
        if isinstance(spec.type.logical, _RANGE_CHECKED):
            for bound in (smallest, largest):
                if bound is not None:
                    self._check_bound(bound)
        if not spec.settings.statistics:
            return None
        statistics = fmt.Statistics(null_count=writer.null_count)
        if spec.settings.order in FLOAT_ORDERS:
            statistics.nan_count = sum(pages.nan_counts)
        elif writer.distinct_count >= 0:
            statistics.distinct_count = writer.distinct_count
        if smallest is None or largest is None:
            return statistics
        statistics.is_min_value_exact = statistics.is_max_value_exact = True
        if spec.layout.conversion is Conversion.VARIABLE:
            text = spec.type.is_text
            smallest, statistics.is_min_value_exact = truncate_min(smallest, spec.truncation, text)
            largest, exact = truncate_max(largest, spec.truncation, text)
            statistics.is_max_value_exact = None if largest is None else exact
        statistics.min_value, statistics.max_value = smallest, largest
        return statistics

    def _check_bound(self, bound: bytes) -> None:
        """Refuse decimals with too many digits for their type, and times outside a day: strict readers reject them."""
        spec, logical = self.spec, self.spec.type.logical
        assert isinstance(logical, _RANGE_CHECKED)
        order: Literal["little", "big"] = "little" if spec.type.physical in (Type.INT32, Type.INT64) else "big"
        value = int.from_bytes(bound, order, signed=True)
        name = ".".join(self.path)
        if isinstance(logical, Time):
            if not 0 <= value < spec.layout.ticks:
                raise SchemaError(f"a TIME of {value} {logical.unit} is outside of a day", column=name).showing(value)
        elif abs(value) >= 10**logical.precision:
            raise SchemaError(f"a decimal with more than {logical.precision} digits", column=name)


def entry_pattern(spec: ColumnSpec) -> EntryPattern | None:
    """Return the EntryPattern for a spec, or None if the entries of its chunks need structs."""
    settings = spec.settings
    is_ordinary = settings.statistics and not settings.total_order and not settings.max_repetition_level
    if not is_ordinary or isinstance(spec.type.logical, _GEOSPATIAL + _RANGE_CHECKED):
        return None
    from fastpq.write.plain_entry import MOST_COUNTED_LEVELS, EntryPattern

    if settings.max_definition_level >= MOST_COUNTED_LEVELS:
        return None

    return EntryPattern(spec)


@lru_cache(maxsize=256)
def _encodings(
    page_counts: tuple[tuple[tuple[fmt.PageType, fmt.Encoding], int], ...], has_levels: bool
) -> tuple[list[fmt.Encoding], list[fmt.PageEncodingStats]]:
    """Return the encodings that pages and their levels have, and the page counts. Chunks with equal counts share these lists."""
    encodings = {encoding for (_, encoding), _ in page_counts}
    if has_levels:
        encodings.add(fmt.Encoding.RLE)
    stats = [fmt.PageEncodingStats(page_type=kind, encoding=encoding, count=count) for (kind, encoding), count in page_counts]
    return sorted(encodings), stats

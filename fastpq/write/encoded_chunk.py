"""EncodedChunk: a column chunk whose pages are encoded, and its place, footer entry and indexes in the new file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from fastpq import format as fmt
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.layout import Conversion
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import SchemaError
from fastpq.index.written_pages import FLOAT_ORDERS, WrittenPages
from fastpq.io.sink import Sink
from fastpq.schema.types import Decimal, Time, Type
from fastpq.stats.bounds import truncate_max, truncate_min
from fastpq.write.row_groups import PlacedChunk
from fastpq.write.spec import ColumnSpec

_CHECKED = (Decimal, Time)      # types with values that their storage could exceed


class EncodedChunk(NamedTuple):
    """A column chunk whose last pages are still in memory.

    Attributes:
        path: path of the column.
        spec: how the column is written.
        cipher: cipher of the chunk.
        writer: the last pages, and counts of all pages.
        geospatial_statistics: None for a column other than GEOMETRY and GEOGRAPHY.
    """

    path: tuple[str, ...]
    spec: ColumnSpec
    cipher: ModuleCipher
    writer: ChunkWriter
    geospatial_statistics: fmt.GeospatialStatistics | None

    def place(self, sink: Sink) -> int:
        """Write the last pages, behind the others; returns the offset of the first page in the file."""
        sink.write_together(self.writer.pieces.take())
        return sink.written - self.writer.stored_size

    def placed(self, start: int) -> PlacedChunk:
        """The chunk with its metadata and indexes, for pages from file offset start on.

        Raises:
            SchemaError: a decimal of more digits than its type allows, or a time outside of a day.
        """
        spec, writer = self.spec, self.writer
        pages = self._written_pages()
        metadata = self._metadata(pages, start)
        column_index = offset_index = None
        if spec.has_page_index:
            offset_index = pages.offset_index(start + writer.dictionary_page_size)
            column_index = pages.column_index(spec.truncation) if spec.settings.statistics else None
        return PlacedChunk.sealed(metadata, self.cipher, column_index, offset_index, writer.bloom_filter)

    def _written_pages(self) -> WrittenPages:
        settings, log = self.spec.settings, self.writer.pages
        sizes, rows, entries, nulls, nans, unencoded = log.counts()
        repetition, definition = settings.max_repetition_level, settings.max_definition_level
        of_repetition: Sequence[int] = ()
        of_definition: Sequence[int] = ()
        if repetition or definition > 1:
            levels = log.level_counts().reshape(len(sizes), repetition + 1 + definition + 1)
            of_repetition = levels[:, : repetition + 1].ravel().tolist() if repetition else ()
            of_definition = levels[:, repetition + 1 :].ravel().tolist() if definition > 1 else ()
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
            unencoded_byte_array_data_bytes=unencoded,
            repetition_level_histograms=of_repetition,
            definition_level_histograms=of_definition,
        )

    def _metadata(self, pages: WrittenPages, start: int) -> fmt.ColumnMetaData:
        """The footer's metadata of pages from file offset start on."""
        spec, writer = self.spec, self.writer
        encodings, stats = _encodings(tuple(sorted(writer.page_counts.items())), spec.settings.max_definition_level > 0)
        return fmt.ColumnMetaData(
            type=spec.type.physical,
            encodings=encodings,
            path_in_schema=list(self.path),
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
        if isinstance(spec.type.logical, _CHECKED):
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
        """Refuse decimals of more digits than their type allows, and times outside of a day: strict readers reject these."""
        spec, logical = self.spec, self.spec.type.logical
        assert isinstance(logical, _CHECKED)
        order: Literal["little", "big"] = "little" if spec.type.physical in (Type.INT32, Type.INT64) else "big"
        value = int.from_bytes(bound, order, signed=True)
        name = ".".join(self.path)
        if isinstance(logical, Time):
            if not 0 <= value < spec.layout.ticks:
                raise SchemaError(f"a TIME of {value} {logical.unit}, outside of a day", column=name).showing(value)
        elif abs(value) >= 10**logical.precision:
            raise SchemaError(f"a decimal of more than {logical.precision} digits", column=name)


@lru_cache(maxsize=256)
def _encodings(
    page_counts: tuple[tuple[tuple[fmt.PageType, fmt.Encoding], int], ...], has_levels: bool
) -> tuple[list[fmt.Encoding], list[fmt.PageEncodingStats]]:
    """Encodings of pages and of their levels, and counts of pages; chunks with equal counts share these lists."""
    encodings = {encoding for (_, encoding), _ in page_counts}
    if has_levels:
        encodings.add(fmt.Encoding.RLE)
    stats = [fmt.PageEncodingStats(page_type=kind, encoding=encoding, count=count) for (kind, encoding), count in page_counts]
    return sorted(encodings), stats

"""EncodedChunk: a column chunk encoded in memory, and its place, footer entry and indexes in the new file."""

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


class EncodedChunk(NamedTuple):
    """A column chunk whose pages are still in memory.

    Attributes:
        spec: how the column is written.
        cipher: cipher of the chunk.
        writer: stored pages and their counts.
        geospatial_statistics: None for a column other than GEOMETRY and GEOGRAPHY.
    """

    spec: ColumnSpec
    cipher: ModuleCipher
    writer: ChunkWriter
    geospatial_statistics: fmt.GeospatialStatistics | None

    def place(self, sink: Sink) -> PlacedChunk:
        """Write the pages.

        Raises:
            SchemaError: a decimal of more digits than its type allows, or a time outside of a day.
        """
        start = sink.written
        sink.write_together(self.writer.pieces)
        pages = self._written_pages()
        metadata = self._metadata(pages, start)
        column_index = offset_index = None
        if self.spec.has_page_index:
            offset_index = pages.offset_index(start + self.writer.dictionary_page_size)
            column_index = pages.column_index(self.spec.truncation) if self.spec.settings.statistics else None
        entry = fmt.ColumnChunk(file_offset=0, meta_data=metadata)
        return PlacedChunk(entry, metadata, self.cipher, column_index, offset_index, self.writer.bloom_filter)

    def _written_pages(self) -> WrittenPages:
        column, log = self.spec.descriptor, self.writer.pages
        sizes, rows, entries, nulls, nans, unencoded = log.counts()
        repetition, definition = column.max_repetition_level, column.max_definition_level
        of_repetition: Sequence[int] = ()
        of_definition: Sequence[int] = ()
        if repetition or definition > 1:
            levels = log.level_counts().reshape(len(sizes), repetition + 1 + definition + 1)
            of_repetition = levels[:, : repetition + 1].ravel().tolist() if repetition else ()
            of_definition = levels[:, repetition + 1 :].ravel().tolist() if definition > 1 else ()
        return WrittenPages(
            column=column,
            sizes=sizes,
            num_rows=rows,
            num_values=entries,
            null_counts=nulls,
            total_order=self.spec.settings.total_order,
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
            type=spec.descriptor.type.physical,
            encodings=encodings,
            path_in_schema=list(spec.path),
            codec=spec.codec.number,
            num_values=writer.num_values,
            total_uncompressed_size=writer.uncompressed_size,
            total_compressed_size=writer.stored_size,
            data_page_offset=start + writer.dictionary_page_size,
            dictionary_page_offset=start if writer.dictionary_page_size else None,
            statistics=_statistics(spec, writer, pages),
            size_statistics=pages.size_statistics() if spec.settings.statistics else None,
            geospatial_statistics=self.geospatial_statistics,
            encoding_stats=stats,
        )


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


def _statistics(spec: ColumnSpec, writer: ChunkWriter, pages: WrittenPages) -> fmt.Statistics | None:
    smallest, largest = writer.pages.minimum(), writer.pages.maximum()
    if isinstance(spec.descriptor.type.logical, Decimal | Time):
        for bound in (smallest, largest):
            if bound is not None:
                _check_bound(spec, bound)
    if not spec.settings.statistics:
        return None
    statistics = fmt.Statistics(null_count=writer.null_count)
    if spec.settings.order in FLOAT_ORDERS:
        statistics.nan_count = sum(pages.nan_counts)
    elif writer.distinct_count >= 0:
        statistics.distinct_count = writer.distinct_count
    if smallest is None or largest is None:
        return statistics
    if spec.descriptor.type.physical is Type.BYTE_ARRAY and spec.layout.conversion is Conversion.VARIABLE:
        text = spec.descriptor.type.is_text
        statistics.min_value, statistics.is_min_value_exact = truncate_min(smallest, spec.truncation, text)
        largest, exact = truncate_max(largest, spec.truncation, text)
        if largest is not None:
            statistics.max_value, statistics.is_max_value_exact = largest, exact
        return statistics
    statistics.min_value, statistics.is_min_value_exact = smallest, True
    statistics.max_value, statistics.is_max_value_exact = largest, True
    return statistics


def _check_bound(spec: ColumnSpec, bound: bytes) -> None:
    """Refuse decimals of more digits than their type allows, and times outside of a day; strict readers cut or reject these."""
    column, logical = spec.descriptor, spec.descriptor.type.logical
    assert isinstance(logical, Decimal | Time)
    order: Literal["little", "big"] = "little" if column.type.physical in (Type.INT32, Type.INT64) else "big"
    value = int.from_bytes(bound, order, signed=True)
    if isinstance(logical, Time):
        if not 0 <= value < spec.layout.ticks:
            raise SchemaError(f"a TIME of {value} {logical.unit}, outside of a day", column=column.name).showing(value)
    elif abs(value) >= 10**logical.precision:
        raise SchemaError(f"a decimal of more than {logical.precision} digits", column=column.name)

"""Footer metadata, statistics and page indexes that describe an encoded column chunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from fastpq import format as fmt
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Conversion
from fastpq.errors import SchemaError
from fastpq.index.written_pages import WrittenPages
from fastpq.schema.types import Decimal, Geography, Geometry, Time, Type
from fastpq.stats.bounds import FLOAT_ORDERS, truncate_max, truncate_min
from fastpq.stats.geospatial import GeospatialBounds
from fastpq.write.plain_entry import MOST_COUNTED_LEVELS, EntryPattern
from fastpq.write.spec import ColumnSpec

_GEOSPATIAL = (Geometry, Geography)
_RANGE_CHECKED = (Decimal, Time)      # types whose storage can hold values that the type does not allow


def has_geospatial_values(spec: ColumnSpec) -> bool:
    """Return whether a column has values of GEOMETRY or GEOGRAPHY."""
    return isinstance(spec.type.logical, _GEOSPATIAL)


def geospatial_statistics(spec: ColumnSpec, values: ColumnInput) -> fmt.GeospatialStatistics | None:
    """Return the bounding box and types for a GEOMETRY or GEOGRAPHY column. The values are checked even without statistics.

    Args:
        spec: how the column is written.
        values: the chunk's rows.

    Raises:
        SchemaError: a geometry that is not ISO WKB.
    """
    bounds = GeospatialBounds(isinstance(spec.type.logical, Geography))
    for reader in values.readers:
        bounds.observe(reader, 0, reader.count)
    return bounds.statistics() if spec.settings.statistics else None


def written_pages(spec: ColumnSpec, writer: ChunkWriter) -> WrittenPages:
    """Return counts and bounds for each data page.

    Args:
        spec: how the column is written.
        writer: the chunk's writer, which has written all rows.
    """
    settings, log = spec.settings, writer.pages
    sizes, rows, entries, nulls, nans, byte_array_sizes = log.counts()
    repetition, definition = settings.max_repetition_level, settings.max_definition_level
    repetition_counts: Sequence[int] = ()
    definition_counts: Sequence[int] = ()
    if repetition or definition > 1:
        levels = log.level_counts().reshape(len(sizes), repetition + 1 + definition + 1)
        repetition_counts = levels[:, : repetition + 1].ravel().tolist() if repetition else ()
        definition_counts = levels[:, repetition + 1 :].ravel().tolist() if definition > 1 else ()
    return WrittenPages(
        type=spec.type,
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


def chunk_metadata(
    path: tuple[str, ...],
    spec: ColumnSpec,
    writer: ChunkWriter,
    pages: WrittenPages,
    start: int,
    geospatial: fmt.GeospatialStatistics | None,
) -> fmt.ColumnMetaData:
    """Return a chunk's metadata for the footer.

    Args:
        path: column path.
        spec: how the column is written.
        writer: the chunk's writer, which has written all rows.
        pages: what ``written_pages`` returns.
        start: file offset where the first page begins.
        geospatial: what ``geospatial_statistics`` returns; None for other columns.

    Raises:
        SchemaError: a decimal with more digits than its type allows, or a time that is not within a day.
    """
    encodings, stats = _encodings(tuple(sorted(writer.page_counts.items())), spec.settings.max_definition_level > 0)
    return fmt.ColumnMetaData(
        type=spec.type.physical,
        encodings=encodings,
        path_in_schema=list(path) if spec.has_path else None,
        codec=spec.codec.number,
        num_values=writer.num_values,
        total_uncompressed_size=writer.uncompressed_size,
        total_compressed_size=writer.stored_size,
        data_page_offset=start + writer.dictionary_page_size,
        dictionary_page_offset=start if writer.dictionary_page_size else None,
        statistics=_statistics(path, spec, writer, pages),
        size_statistics=pages.size_statistics() if spec.settings.statistics else None,
        geospatial_statistics=geospatial,
        encoding_stats=stats,
    )


def _statistics(path: tuple[str, ...], spec: ColumnSpec, writer: ChunkWriter, pages: WrittenPages) -> fmt.Statistics | None:
    smallest, largest = writer.pages.minimum(), writer.pages.maximum()
    if isinstance(spec.type.logical, _RANGE_CHECKED):
        for bound in (smallest, largest):
            if bound is not None:
                _check_bound(path, spec, bound)
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


def _check_bound(path: tuple[str, ...], spec: ColumnSpec, bound: bytes) -> None:
    """Refuse decimals with too many digits for their type, and times outside a day: strict readers reject them."""
    logical = spec.type.logical
    assert isinstance(logical, _RANGE_CHECKED)
    order: Literal["little", "big"] = "little" if spec.type.physical in (Type.INT32, Type.INT64) else "big"
    value = int.from_bytes(bound, order, signed=True)
    name = ".".join(path)
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

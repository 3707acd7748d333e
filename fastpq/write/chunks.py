"""What the writer settles for each column before the first row: layout, codec, encodings, and the footer's entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import Codec
from fastpq.column.chunk_writer import ChunkSettings, ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Conversion, Layout, layout_of
from fastpq.encodings.registry import check_writable
from fastpq.errors import LimitError, ParquetError, SchemaError
from fastpq.format.stored_footer import CHECKPOINT_KEY
from fastpq.index.written_pages import FLOAT_ORDERS, WrittenPages
from fastpq.options import DEFAULT_BLOOM_FILTER_FPP, BloomFilterOption, ColumnSwitch, WriterProperties
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import MAX_LEVEL
from fastpq.schema.types import Decimal, Geography, Geometry, Type
from fastpq.stats.bounds import order_of, truncate_max, truncate_min
from fastpq.stats.geospatial import GeospatialBounds
from fastpq.stats.statistics import Order
from fastpq.write.choice import EncodingChoice

Option = TypeVar("Option")

LARGEST_INT32 = 0x7FFFFFFF      # page sizes and counts are i32

_DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """How one column is written; its encoding is still to be chosen by a sample where ``choice`` is None."""

    descriptor: ColumnDescriptor
    layout: Layout
    codec: Codec
    settings: ChunkSettings
    truncation: int
    has_page_index: bool
    choice: EncodingChoice | None

    @property
    def column_order(self) -> fmt.ColumnOrder:
        """The order of its bounds, as the footer says it."""
        if self.settings.total_order:
            return fmt.ColumnOrder(IEEE_754_TOTAL_ORDER=fmt.IEEE754TotalOrder())
        return fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder())

    def with_choice(self, choice: EncodingChoice) -> ColumnSpec:
        """The plan with the encoding that was chosen."""
        encoding = fmt.Encoding[choice.encoding]
        dictionary = encoding in _DICTIONARY_ENCODINGS
        value_encoding = fmt.Encoding.PLAIN if dictionary else encoding
        settings = replace(self.settings, dictionary=dictionary, value_encoding=value_encoding)
        return replace(self, settings=settings, choice=choice)

    def written_pages(self, chunk: ChunkWriter) -> WrittenPages:
        """What the data pages of a chunk hold."""
        sizes, rows, entries, present, nans, unencoded = chunk.pages.counts().T
        repetition, definition = self.descriptor.max_repetition_level, self.descriptor.max_definition_level
        levels = chunk.pages.level_counts()
        if levels.size:
            levels = levels.reshape(len(sizes), repetition + 1 + definition + 1)
        return WrittenPages(
            column=self.descriptor,
            sizes=sizes.tolist(),
            num_rows=rows.tolist(),
            num_values=entries.tolist(),
            null_counts=(entries - present).tolist(),
            total_order=self.settings.total_order,
            minima=chunk.pages.minima,
            maxima=chunk.pages.maxima,
            nan_counts=nans.tolist(),
            unencoded_byte_array_data_bytes=unencoded.tolist(),
            repetition_level_histograms=levels[:, : repetition + 1].ravel().tolist() if repetition else (),
            definition_level_histograms=levels[:, repetition + 1 :].ravel().tolist() if definition > 1 else (),
        )

    def page_index(self, pages: WrittenPages, start: int) -> tuple[fmt.ColumnIndex | None, fmt.OffsetIndex]:
        """ColumnIndex, if there may be one, and OffsetIndex of pages that begin at file offset start."""
        column_index = pages.column_index(self.truncation) if self.settings.statistics else None
        return column_index, pages.offset_index(start)

    def column_chunk(self, chunk: ChunkWriter, pages: WrittenPages, start: int) -> fmt.ColumnChunk:
        """The footer's entry for a chunk whose pages begin at file offset start."""
        has_dictionary = chunk.dictionary_page_size > 0
        encodings = {encoding for _, encoding in chunk.page_counts}
        if self.settings.max_definition_level:
            encodings.add(fmt.Encoding.RLE)
        return fmt.ColumnChunk(
            file_offset=0,
            meta_data=fmt.ColumnMetaData(
                type=self.descriptor.physical_type,
                encodings=sorted(encodings),
                path_in_schema=list(self.descriptor.path),
                codec=self.codec.number,
                num_values=chunk.num_values,
                total_uncompressed_size=chunk.uncompressed_size,
                total_compressed_size=chunk.stored_size,
                data_page_offset=start + chunk.dictionary_page_size,
                dictionary_page_offset=start if has_dictionary else None,
                statistics=self._statistics(chunk, pages),
                size_statistics=pages.size_statistics() if self.settings.statistics else None,
                geospatial_statistics=chunk.geospatial_statistics,
                encoding_stats=[
                    fmt.PageEncodingStats(page_type=page_type, encoding=encoding, count=count)
                    for (page_type, encoding), count in sorted(chunk.page_counts.items())
                ],
            ),
        )

    def geospatial_statistics(self, values: ColumnInput) -> fmt.GeospatialStatistics | None:
        """Bounding box and types of the values of a GEOMETRY or GEOGRAPHY column; None of any other.

        Raises:
            SchemaError: a value is not ISO WKB, whether or not statistics are written.
        """
        if not isinstance(self.descriptor.logical_type, Geometry | Geography):
            return None
        assert values.reader is not None
        bounds = GeospatialBounds(isinstance(self.descriptor.logical_type, Geography))
        bounds.observe(values.reader, 0, values.reader.count)
        return bounds.statistics() if self.settings.statistics else None

    def _statistics(self, chunk: ChunkWriter, pages: WrittenPages) -> fmt.Statistics | None:
        smallest, largest = chunk.pages.minimum(), chunk.pages.maximum()
        for bound in (smallest, largest):
            if bound is not None:
                self._check_precision(bound)
        if not self.settings.statistics:
            return None
        statistics = fmt.Statistics(null_count=chunk.null_count)
        if self.settings.order in FLOAT_ORDERS:
            statistics.nan_count = sum(pages.nan_counts)
        elif chunk.distinct_count >= 0:
            statistics.distinct_count = chunk.distinct_count
        if smallest is None or largest is None:
            return statistics
        if self.descriptor.physical_type is Type.BYTE_ARRAY and self.layout.conversion is Conversion.VARIABLE:
            text = self.descriptor.type.is_text
            statistics.min_value, statistics.is_min_value_exact = truncate_min(smallest, self.truncation, text)
            largest, exact = truncate_max(largest, self.truncation, text)
            if largest is not None:
                statistics.max_value, statistics.is_max_value_exact = largest, exact
            return statistics
        statistics.min_value, statistics.is_min_value_exact = smallest, True
        statistics.max_value, statistics.is_max_value_exact = largest, True
        return statistics

    def _check_precision(self, bound: bytes) -> None:
        """Refuse decimals of more digits than their type allows, which strict readers cut or reject."""
        logical = self.descriptor.logical_type
        if not isinstance(logical, Decimal):
            return
        order: Literal["little", "big"] = "little" if self.descriptor.physical_type in (Type.INT32, Type.INT64) else "big"
        if abs(int.from_bytes(bound, order, signed=True)) >= 10**logical.precision:
            raise SchemaError(f"a decimal of more than {logical.precision} digits", column=self.descriptor.name)


def plan_columns(schema: ParquetSchema, properties: WriterProperties) -> list[ColumnSpec]:
    """A ColumnPlan for each leaf.

    Raises:
        SchemaError: an option names a column that the schema does not have, or an encoding that does not fit its column.
        LimitError: a column nested deeper than 255 levels.
        UnsupportedError: a codec or encoding that fastpq does not write.
    """
    if properties.float_order not in ("type", "total"):
        raise ValueError(f'float_order must be "type" or "total", not {properties.float_order!r}')
    if CHECKPOINT_KEY in properties.key_value_metadata:
        raise ValueError(f"key_value_metadata cannot have {CHECKPOINT_KEY!r}, which marks unfinished files")
    for column in schema.columns:
        if column.max_definition_level > MAX_LEVEL:
            raise LimitError(f"more than {MAX_LEVEL} levels", column=column.name)
    names = {column.name for column in schema.columns}
    for option in ("compression", "compression_level", "column_encoding", "use_dictionary", "write_statistics", "bloom_filter"):
        _check_names(option, getattr(properties, option), names)
    return [_plan_column(column, properties) for column in schema.columns]


def _plan_column(column: ColumnDescriptor, properties: WriterProperties) -> ColumnSpec:
    asked = _encoding_asked_for(column, properties)
    dictionary = _is_on(properties.use_dictionary, column.name) if asked is None else asked in _DICTIONARY_ENCODINGS
    statistics = _is_on(properties.write_statistics, column.name)
    fpp, ndv = _bloom_filter(column, properties.bloom_filter.get(column.name, False))
    order = order_of(column.type) if statistics or isinstance(column.logical_type, Decimal) else Order.ORDER_NONE
    settings = ChunkSettings(
        max_definition_level=column.max_definition_level,
        max_repetition_level=column.max_repetition_level,
        dictionary=dictionary and column.physical_type is not Type.BOOLEAN,
        keep_dictionary=asked is not None,
        value_encoding=fmt.Encoding.PLAIN if asked is None or asked in _DICTIONARY_ENCODINGS else asked,
        index_encoding=asked if asked == fmt.Encoding.PLAIN_DICTIONARY else fmt.Encoding.RLE_DICTIONARY,
        order=order,
        total_order=properties.float_order == "total" and order in FLOAT_ORDERS,
        statistics=statistics,
        data_page_size=_positive("data_page_size", properties.data_page_size),
        data_page_rows=_positive("data_page_rows", properties.data_page_rows),
        dictionary_page_size=_positive("dictionary_page_size", properties.dictionary_page_size),
        version_2=properties.data_page_version == "2.0",
        checksums=properties.write_page_checksum,
        bloom_filter_fpp=fpp,
        bloom_filter_ndv=ndv,
    )
    name = _option_of(properties.compression, column.name, None)
    codec = codec_for_write(name, _option_of(properties.compression_level, column.name, None))
    choice = _choice(asked, settings.dictionary, properties)
    return ColumnSpec(
        column, layout_of(column.type), codec, settings, properties.statistics_truncation, properties.write_page_index, choice
    )


def _bloom_filter(column: ColumnDescriptor, option: BloomFilterOption) -> tuple[float | None, int | None]:
    """False positive rate and number of distinct values of a column's bloom filters; (None, None) without."""
    if option is False:
        return None, None
    if option is not True and not isinstance(option, Mapping):
        raise TypeError(f"the bloom filter of {column.name} is True, False or options by name, not {option!r}")
    given: Mapping[str, float | int | None] = {} if option is True else option
    if unknown := sorted(given.keys() - {"fpp", "ndv"}):
        raise ValueError(f"unknown options of the bloom filter of {column.name}: {', '.join(unknown)}")
    fpp, ndv = given.get("fpp"), given.get("ndv")
    fpp = DEFAULT_BLOOM_FILTER_FPP if fpp is None else float(fpp)
    if not 0.0 < fpp < 1.0:
        raise ValueError(f"fpp of the bloom filter of {column.name} must be between 0 and 1, not {fpp}")
    if ndv is not None and (not isinstance(ndv, int) or ndv < 0):
        raise ValueError(f"ndv of the bloom filter of {column.name} must be a number of values, not {ndv}")
    if column.physical_type is Type.BOOLEAN:
        raise SchemaError("a BOOLEAN column has no bloom filter", column=column.name)
    return fpp, ndv


def _choice(asked: fmt.Encoding | None, dictionary: bool, properties: WriterProperties) -> EncodingChoice | None:
    if asked is not None:
        return EncodingChoice(asked.name, "column_encoding asks for it")
    if properties.encoding == "auto":
        return None
    if dictionary:
        return EncodingChoice(fmt.Encoding.RLE_DICTIONARY.name, "the default; PLAIN in chunks where it does not pay")
    return EncodingChoice(fmt.Encoding.PLAIN.name, "the default without a dictionary")


def _encoding_asked_for(column: ColumnDescriptor, properties: WriterProperties) -> fmt.Encoding | None:
    name = properties.column_encoding.get(column.name)
    if name is None:
        return None
    try:
        return check_writable(name, column.physical_type)
    except ParquetError as error:
        error.at(column=column.name)
        raise


def _option_of(option: Option | Mapping[str, Option], name: str, otherwise: Option) -> Option:
    """The option for one column, where it may be given by column."""
    return option.get(name, otherwise) if isinstance(option, Mapping) else option


def _is_on(switch: ColumnSwitch, name: str) -> bool:
    return switch if isinstance(switch, bool) else name in switch


def _positive(option: str, value: int) -> int:
    if not 1 <= value <= LARGEST_INT32:
        raise ValueError(f"{option} must be between 1 and {LARGEST_INT32}, not {value}")
    return value


def _check_names(option: str, value: object, names: set[str]) -> None:
    given: Iterable[str] = value if isinstance(value, Mapping | list | tuple | set | frozenset) else ()
    unknown = sorted(set(given) - names)
    if unknown:
        raise SchemaError(f"{option} names columns that the schema does not have: {', '.join(unknown)}")

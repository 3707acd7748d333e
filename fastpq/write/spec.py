"""How each column of a new file is written: layout, codec, encoding and statistics, from the WriterProperties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import Codec
from fastpq.column.chunk_writer import ChunkSettings
from fastpq.column.layout import Layout, layout_of
from fastpq.encodings.registry import check_writable
from fastpq.errors import LimitError, ParquetError, SchemaError
from fastpq.format.stored_footer import CHECKPOINT_KEY
from fastpq.index.written_pages import FLOAT_ORDERS
from fastpq.options import DEFAULT_BLOOM_FILTER_FPP, BloomFilterOption, ColumnSwitch, WriterProperties
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import MAX_LEVEL
from fastpq.schema.types import Decimal, Time, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order
from fastpq.write.choice import EncodingChoice

Option = TypeVar("Option")

LARGEST_INT32 = 0x7FFFFFFF      # page sizes and counts are i32; in bytes, rows or values

_DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """How one column is written.

    Attributes:
        descriptor: the column.
        layout: form of the values in memory.
        codec: compression of the pages.
        settings: levels, encodings, statistics and page sizes.
        truncation: most bytes of a bound of a BYTE_ARRAY column.
        has_page_index: whether chunks get an OffsetIndex, and with statistics and an order a ColumnIndex.
        choice: encoding and reason; None until a sample is taken.
    """

    descriptor: ColumnDescriptor
    layout: Layout
    codec: Codec
    settings: ChunkSettings
    truncation: int
    has_page_index: bool
    choice: EncodingChoice | None

    @property
    def column_order(self) -> fmt.ColumnOrder:
        """Entry of the footer's ``column_orders``: the order of the bounds."""
        if self.settings.total_order:
            return fmt.ColumnOrder(IEEE_754_TOTAL_ORDER=fmt.IEEE754TotalOrder())
        return fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder())

    def with_choice(self, choice: EncodingChoice) -> ColumnSpec:
        """The same spec with a chosen encoding."""
        encoding = fmt.Encoding[choice.encoding]
        dictionary = encoding in _DICTIONARY_ENCODINGS
        value_encoding = fmt.Encoding.PLAIN if dictionary else encoding
        settings = replace(self.settings, dictionary=dictionary, value_encoding=value_encoding)
        return replace(self, settings=settings, choice=choice)


def column_specs(schema: ParquetSchema, properties: WriterProperties) -> list[ColumnSpec]:
    """A ColumnSpec for each leaf of a schema.

    Raises:
        SchemaError: an option names an unknown column, or an encoding does not fit its column.
        LimitError: a column nested deeper than 255 levels.
        UnsupportedError: a codec or encoding without a writer.
        ValueError: an option out of its bounds.
    """
    if properties.float_order not in ("type", "total"):
        raise ValueError(f'float_order must be "type" or "total", not {properties.float_order!r}')
    if CHECKPOINT_KEY in properties.key_value_metadata:
        raise ValueError(f"key_value_metadata cannot have {CHECKPOINT_KEY!r}, the mark of unfinished files")
    for column in schema.columns:
        if column.max_definition_level > MAX_LEVEL:
            raise LimitError(f"more than {MAX_LEVEL} levels", column=column.name)
    names = {column.name for column in schema.columns}
    for option in ("compression", "compression_level", "column_encoding", "use_dictionary", "write_statistics", "bloom_filter"):
        _check_names(option, getattr(properties, option), names)
    return [_column_spec(column, properties) for column in schema.columns]


def _column_spec(column: ColumnDescriptor, properties: WriterProperties) -> ColumnSpec:
    asked = _encoding_asked_for(column, properties)
    dictionary = _is_on(properties.use_dictionary, column.name) if asked is None else asked in _DICTIONARY_ENCODINGS
    statistics = _is_on(properties.write_statistics, column.name)
    fpp, ndv = _bloom_filter(column, properties.bloom_filter.get(column.name, False))
    order = order_of(column.type) if statistics or isinstance(column.logical_type, Decimal | Time) else Order.ORDER_NONE
    settings = ChunkSettings(
        max_definition_level=column.max_definition_level,
        max_repetition_level=column.max_repetition_level,
        dictionary=dictionary and column.type.physical is not Type.BOOLEAN,
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
    if column.type.physical is Type.BOOLEAN:
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
        return check_writable(name, column.type.physical)
    except ParquetError as error:
        error.at(column=column.name)
        raise


def _option_of(option: Option | Mapping[str, Option], name: str, otherwise: Option) -> Option:
    """The option of one column, from a mapping of columns or one option for all."""
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
        raise SchemaError(f"{option} names unknown columns: {', '.join(unknown)}")

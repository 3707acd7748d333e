"""How each column of a new file is written: layout, codec, encoding and statistics, from the WriterProperties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import Codec
from fastpq.column.chunk_settings import ChunkSettings
from fastpq.column.layout import Layout, layout_of
from fastpq.encodings.registry import check_writable
from fastpq.errors import LimitError, ParquetError, SchemaError
from fastpq.format.stored_footer import CHECKPOINT_KEY
from fastpq.index.written_pages import FLOAT_ORDERS
from fastpq.options import DEFAULT_BLOOM_FILTER_FPP, BloomFilterOption, WriterProperties
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import MAX_LEVEL
from fastpq.schema.types import ColumnType, Decimal, Time, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order
from fastpq.write.choice import EncodingChoice

LARGEST_INT32 = 0x7FFFFFFF      # page sizes and counts are i32; in bytes, rows or values

_DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}
_DICTIONARY_BY_DEFAULT = EncodingChoice(
    fmt.Encoding.RLE_DICTIONARY.name, "the default; PLAIN in chunks where it does not pay"
)
_PLAIN_BY_DEFAULT = EncodingChoice(fmt.Encoding.PLAIN.name, "the default without a dictionary")
# Footers share these entries.
_TOTAL_ORDER = fmt.ColumnOrder(IEEE_754_TOTAL_ORDER=fmt.IEEE754TotalOrder())
_TYPE_ORDER = fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder())
# Kinds of options with names of columns.
_COLLECTIONS = (Mapping, list, tuple, set, frozenset)


class ColumnSpec(NamedTuple):
    """How a column is written; columns written alike share a spec.

    Attributes:
        type: type of the column.
        layout: form of the values in memory.
        codec: compression of the pages.
        settings: levels, encodings, statistics and page sizes.
        truncation: most bytes of a bound of a BYTE_ARRAY column.
        has_page_index: whether chunks get an OffsetIndex, and with statistics and an order a ColumnIndex.
        column_order: entry of the footer's ``column_orders``: the order of the bounds.
        choice: encoding and reason; None until a sample is taken.
    """

    type: ColumnType
    layout: Layout
    codec: Codec
    settings: ChunkSettings
    truncation: int
    has_page_index: bool
    column_order: fmt.ColumnOrder
    choice: EncodingChoice | None

    def with_choice(self, choice: EncodingChoice) -> ColumnSpec:
        """The same spec with a chosen encoding."""
        encoding = fmt.Encoding[choice.encoding]
        dictionary = encoding in _DICTIONARY_ENCODINGS
        value_encoding = fmt.Encoding.PLAIN if dictionary else encoding
        settings = replace(self.settings, dictionary=dictionary, value_encoding=value_encoding)
        return self._replace(settings=settings, choice=choice)


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
    entries: list[tuple[object, object]] = [*properties.key_value_metadata.items()]
    for key, text in entries:
        if not isinstance(key, str) or not isinstance(text, str):
            mend = "value.decode()" if isinstance(key, bytes) or isinstance(text, bytes) else "json.dumps(value)"
            raise TypeError(f"key_value_metadata maps text to text: {key!r:.50} has {text!r:.50}; {mend} makes a text")
        _check_text(key)
        _check_text(text)
    for option in ("data_page_size", "data_page_rows", "dictionary_page_size"):
        if getattr(properties, option) > LARGEST_INT32:
            raise ValueError(f"{option} must be between 1 and {LARGEST_INT32}, not {getattr(properties, option)}")
    names: list[str] = []       # of all columns, where an option names some
    for option in ("compression", "compression_level", "column_encoding", "use_dictionary", "write_statistics", "bloom_filter"):
        given = getattr(properties, option)
        if not given or not isinstance(given, _COLLECTIONS):
            continue
        names = [column.name for column in schema.columns]
        if unknown := sorted(set(given) - set(names)):
            raise SchemaError(f"{option} names unknown columns: {', '.join(unknown)}")
    if names:
        return [_column_spec(column, name, properties) for column, name in zip(schema.columns, names, strict=True)]
    specs: list[ColumnSpec] = []
    alike: dict[object, ColumnSpec] = {}        # without options by name, columns of equal type and levels are written alike
    for column in schema.columns:
        kind = column.type, column.max_definition_level, column.max_repetition_level
        spec = alike.get(kind)
        if spec is None:
            spec = alike[kind] = _column_spec(column, column.name, properties)
        specs.append(spec)
    return specs


def _check_text(text: str) -> None:
    """Refuse a text that has no form in UTF-8; single bytes of other files come back as they were (surrogateescape)."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise SchemaError(f"key_value_metadata: {text!r:.50} is no Unicode text ({error.reason} at {error.start})") from None


def _column_spec(column: ColumnDescriptor, name: str, properties: WriterProperties) -> ColumnSpec:
    """The ColumnSpec of a column of a dotted name."""
    if column.max_definition_level > MAX_LEVEL:
        raise LimitError(f"more than {MAX_LEVEL} levels", column=name)
    type_, uses, writes = column.type, properties.use_dictionary, properties.write_statistics
    asked = _encoding_asked_for(column, name, properties.column_encoding) if properties.column_encoding else None
    fpp, ndv = _bloom_filter(column, properties.bloom_filter.get(name, False)) if properties.bloom_filter else (None, None)
    statistics = writes if isinstance(writes, bool) else name in writes
    order = order_of(type_) if statistics or isinstance(type_.logical, (Decimal, Time)) else Order.ORDER_NONE
    total_order = properties.float_order == "total" and order in FLOAT_ORDERS
    if asked is None:
        dictionary = (uses if isinstance(uses, bool) else name in uses) and type_.physical is not Type.BOOLEAN
        choice = None if properties.encoding == "auto" else _DICTIONARY_BY_DEFAULT if dictionary else _PLAIN_BY_DEFAULT
    else:
        dictionary = asked in _DICTIONARY_ENCODINGS and type_.physical is not Type.BOOLEAN
        choice = EncodingChoice(asked.name, "column_encoding asks for it")
    settings = ChunkSettings(
        max_definition_level=column.max_definition_level,
        max_repetition_level=column.max_repetition_level,
        dictionary=dictionary,
        keep_dictionary=asked is not None,
        value_encoding=fmt.Encoding.PLAIN if asked is None or asked in _DICTIONARY_ENCODINGS else asked,
        index_encoding=asked if asked == fmt.Encoding.PLAIN_DICTIONARY else fmt.Encoding.RLE_DICTIONARY,
        order=order,
        total_order=total_order,
        statistics=statistics,
        data_page_size=properties.data_page_size,
        data_page_rows=properties.data_page_rows,
        dictionary_page_size=properties.dictionary_page_size,
        version_2=properties.data_page_version == "2.0",
        checksums=properties.write_page_checksum,
        bloom_filter_fpp=fpp,
        bloom_filter_ndv=ndv,
    )
    codec, level = properties.compression, properties.compression_level
    return ColumnSpec(
        type=type_,
        layout=layout_of(type_),
        codec=codec_for_write(
            codec.get(name) if isinstance(codec, Mapping) else codec, level.get(name) if isinstance(level, Mapping) else level
        ),
        settings=settings,
        truncation=properties.statistics_truncation,
        has_page_index=properties.write_page_index,
        column_order=_TOTAL_ORDER if total_order else _TYPE_ORDER,
        choice=choice,
    )


def _bloom_filter(column: ColumnDescriptor, option: BloomFilterOption) -> tuple[float | None, int | None]:
    """False positive rate and number of distinct values of a column's bloom filters; (None, None) without."""
    if option is False:
        return None, None
    if option is not True and not isinstance(option, Mapping):
        raise TypeError(f"the bloom filter of {column.name} is True, False or options by name, not {option!r}")
    given: Mapping[str, object] = {} if option is True else option      # of any type in untyped code
    if unknown := sorted(given.keys() - {"fpp", "ndv"}):
        raise ValueError(f"unknown options of the bloom filter of {column.name}: {', '.join(unknown)}")
    fpp, ndv = given.get("fpp"), given.get("ndv")
    fpp = DEFAULT_BLOOM_FILTER_FPP if fpp is None else fpp
    if isinstance(fpp, bool) or not isinstance(fpp, Real) or not 0.0 < float(fpp) < 1.0:
        raise ValueError(f"fpp of the bloom filter of {column.name} must be a number between 0 and 1, not {fpp!r}")
    if ndv is not None and (isinstance(ndv, bool) or not isinstance(ndv, int | np.integer) or ndv < 0):
        raise ValueError(f"ndv of the bloom filter of {column.name} must be a whole number of values, not {ndv!r}")
    if column.type.physical is Type.BOOLEAN:
        raise SchemaError("a BOOLEAN column has no bloom filter", column=column.name)
    return float(fpp), None if ndv is None else int(ndv)


def _encoding_asked_for(
    column: ColumnDescriptor, name: str, column_encoding: Mapping[str, str]
) -> fmt.Encoding | None:
    asked = column_encoding.get(name)
    if asked is None:
        return None
    try:
        return check_writable(asked, column.type.physical)
    except ParquetError as error:
        error.at(column=name)
        raise

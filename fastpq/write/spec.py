"""ColumnSpec: how a column of a new file is written (layout, codec, encoding and statistics), from the WriterProperties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import Codec
from fastpq.column.chunk_settings import ChunkSettings
from fastpq.column.layout import Layout, layout_of
from fastpq.encodings.registry import check_writable
from fastpq.errors import LimitError, ParquetError, SchemaError
from fastpq.format.stored_footer import CHECKPOINT_KEY
from fastpq.options import (
    DEFAULT_BLOOM_FILTER_FPP,
    DEFAULT_PROPERTIES,
    LARGEST_DICTIONARY,
    LARGEST_KEY_VALUES,
    BloomFilterOption,
    WriterProperties,
    options_of,
)
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import MAX_LEVEL
from fastpq.schema.types import ColumnType, Decimal, Time, Type
from fastpq.stats.bounds import FLOAT_ORDERS, order_of
from fastpq.stats.statistics import Order
from fastpq.write.choice import EncodingChoice

# Options of use_content_defined_chunking, with pyarrow's names and defaults.
_CONTENT_CHUNKS = {"min_chunk_size": 256 << 10, "max_chunk_size": 1 << 20, "norm_level": 0}
MOST_CONTENT_BYTES = 1 << 30
MOST_LISTED = 20     # columns in an error
# With encoding="auto", ZSTD has one of these levels in columns without a dictionary, unless the caller names a level. Level 5
# takes twice the time of level 3. It makes text up to 11 % smaller, and numbers at most 2 %.
AUTOMATIC_LEVELS = (1, 3)
AUTOMATIC_TEXT_LEVELS = (1, 3, 5)
# Bytes in a text page, if its level was chosen, and the caller names no page size. Text repeats itself over long distances.
TEXT_PAGE_SIZE = 4 << 20

_DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}
_DICTIONARY_BY_DEFAULT = EncodingChoice(
    fmt.Encoding.RLE_DICTIONARY.name, "the default; PLAIN in chunks that a dictionary does not make smaller"
)
_PLAIN_BY_DEFAULT = EncodingChoice(fmt.Encoding.PLAIN.name, "the default without a dictionary")
# Footers share these entries.
_TOTAL_ORDER = fmt.ColumnOrder(IEEE_754_TOTAL_ORDER=fmt.IEEE754TotalOrder())
_TYPE_ORDER = fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder())
# Options that may name columns, and the types of values that name them.
_BY_COLUMN = [name for name, row in options_of(WriterProperties).items() if row.level == "column"]
_COLLECTIONS = (Mapping, list, tuple, set, frozenset)


class ColumnSpec(NamedTuple):
    """How a column is written. Columns that are written alike share a spec.

    Attributes:
        type: column type.
        layout: how values lie in memory.
        codec: how pages are compressed.
        settings: levels, encodings, statistics and page sizes.
        truncation: largest bound in a BYTE_ARRAY column, in bytes.
        has_path: whether the chunks' metadata hold the column's path.
        has_page_index: whether chunks get an OffsetIndex, and with statistics and an order also a ColumnIndex.
        column_order: entry for the footer's ``column_orders``: the order of the bounds.
        choice: the encoding and its reason, or None until a sample is taken.
        levels: levels of the codec to choose from with the encoding. Empty if the level is fixed.
    """

    type: ColumnType
    layout: Layout
    codec: Codec
    settings: ChunkSettings
    truncation: int
    has_path: bool
    has_page_index: bool
    column_order: fmt.ColumnOrder
    choice: EncodingChoice | None
    levels: tuple[int, ...] = ()

    def with_choice(self, choice: EncodingChoice) -> ColumnSpec:
        """Return the spec with a chosen encoding."""
        encoding = fmt.Encoding[choice.encoding]
        dictionary = encoding in _DICTIONARY_ENCODINGS
        value_encoding = fmt.Encoding.PLAIN if dictionary else encoding
        settings = replace(self.settings, dictionary=dictionary, value_encoding=value_encoding)
        if choice.level is None:
            return self._replace(settings=settings, choice=choice)
        if self.type.is_variable and settings.data_page_size == DEFAULT_PROPERTIES.data_page_size:
            settings = replace(settings, data_page_size=TEXT_PAGE_SIZE)
        return self._replace(settings=settings, choice=choice, codec=codec_for_write(self.codec.name, choice.level))


def column_specs(schema: ParquetSchema, properties: WriterProperties) -> list[ColumnSpec]:
    """Return a ColumnSpec for each leaf in a schema.

    Raises:
        SchemaError: an option names an unknown column, or an encoding does not fit its column.
        LimitError: a column that is nested deeper than 255 levels, or too much key-value metadata.
        UnsupportedError: a codec or an encoding that fastpq cannot write.
        ValueError: key-value metadata with the mark of unfinished files.
        TypeError: key-value metadata that are not text.
    """
    if CHECKPOINT_KEY in properties.key_value_metadata:
        raise ValueError(f"key_value_metadata cannot have {CHECKPOINT_KEY!r}, the mark of unfinished files")
    entries: list[tuple[object, object]] = [*properties.key_value_metadata.items()]
    for key, text in entries:
        if not isinstance(key, str) or not isinstance(text, str):
            advice = "value.decode()" if isinstance(key, bytes) or isinstance(text, bytes) else "json.dumps(value)"
            raise TypeError(f"key_value_metadata maps text to text, but {key!r:.50} has {text!r:.50}; {advice} makes a text")
        _check_text(key)
        _check_text(text)
    if sum(len(key) + len(text) for key, text in properties.key_value_metadata.items()) > LARGEST_KEY_VALUES:
        raise LimitError(f"key_value_metadata has more than {LARGEST_KEY_VALUES:,} characters")
    by_column = {name: getattr(properties, name) for name in _BY_COLUMN}
    by_column = {name: value for name, value in by_column.items() if value and isinstance(value, _COLLECTIONS)}
    if by_column:
        _refuse_shared_names(schema, by_column)
        leaves = {column.name for column in schema.columns}
        if not all(leaves.issuperset(value) for value in by_column.values()):       # there are groups or unknown names
            properties = replace(properties, **_for_leaves(schema, by_column))
        return [_column_spec(column, properties) for column in schema.columns]
    specs: list[ColumnSpec] = []
    alike: dict[object, ColumnSpec] = {}        # without options by column, columns with equal type and levels share a spec
    for column in schema.columns:
        type_ = column.type
        kind = id(type_), column.max_definition_level, column.max_repetition_level     # id() is quicker than a type's hash
        spec = alike.get(kind)
        if spec is None:
            equal_kind = type_, column.max_definition_level, column.max_repetition_level
            spec = alike.get(equal_kind) or _column_spec(column, properties)
            alike[kind] = alike[equal_kind] = spec
        specs.append(spec)
    return specs


def _refuse_shared_names(schema: ParquetSchema, by_column: Mapping[str, Any]) -> None:
    """Refuse a name that stands for two columns, as "s.a" does for a column of this name and for the field a of a struct s.

    Raises:
        SchemaError: an option has such a name.
    """
    paths: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for column in schema.columns:
        for depth in range(1, len(column.path) + 1):
            paths[".".join(column.path[:depth])].add(column.path[:depth])
    for option, value in by_column.items():
        for name in value:
            if len(paths.get(name, ())) > 1:
                raise SchemaError(f"{option} names {name!r}, and {len(paths[name])} columns have this dotted name: rename one")


def _for_leaves(schema: ParquetSchema, by_column: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by column as options by leaf. A group name stands for every leaf below it that can have the option.

    A column or an inner group has priority over the groups that hold it.

    Args:
        schema: file schema.
        by_column: mappings from names, and name collections, by option.

    Raises:
        SchemaError: a name is neither a column nor a group.
    """
    leaves_of: defaultdict[str, list[str]] = defaultdict(list)
    depths: dict[str, int] = {}
    for column in schema.columns:
        for depth in range(1, len(column.path) + 1):
            name = ".".join(column.path[:depth])
            leaves_of[name].append(column.name)
            depths[name] = depth
    booleans = {column.name for column in schema.columns if column.type.physical is Type.BOOLEAN}
    options_by_leaf: dict[str, Any] = {}
    for option, value in by_column.items():
        if unknown_names := sorted(map(str, set(value) - leaves_of.keys())):
            names = [column.name for column in schema.columns[:MOST_LISTED]] + ["..."] * (len(schema.columns) > MOST_LISTED)
            raise SchemaError(f"{option} names unknown columns: {', '.join(unknown_names)}; the columns are {', '.join(names)}")
        names = sorted(value, key=depths.__getitem__)       # inner ones last, so that they replace outer ones
        left_out = booleans - set(value) if option == "bloom_filter" else set()     # a group's booleans have no filters
        if isinstance(value, Mapping):
            options_by_leaf[option] = {leaf: value[name] for name in names for leaf in leaves_of[name] if leaf not in left_out}
        else:
            options_by_leaf[option] = [leaf for name in names for leaf in leaves_of[name] if leaf not in left_out]
    return options_by_leaf


def _check_text(text: str) -> None:
    """Refuse a text that UTF-8 cannot express. Single bytes from other files are written unchanged (surrogateescape)."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        message = f"key_value_metadata: {text!r:.50} is not Unicode text ({error.reason} at {error.start})"
        raise SchemaError(message) from None


def _column_spec(column: ColumnDescriptor, properties: WriterProperties) -> ColumnSpec:
    """Return how to write a column."""
    if column.max_definition_level > MAX_LEVEL:
        raise LimitError(f"more than {MAX_LEVEL} levels", column=column.name)
    type_, uses, writes = column.type, properties.use_dictionary, properties.write_statistics
    own_encoding = _own_encoding(column, properties.column_encoding) if properties.column_encoding else None
    fpp, ndv = _bloom_filter(column, properties.bloom_filter.get(column.name, False)) if properties.bloom_filter else (None, None)
    statistics = writes if isinstance(writes, bool) else column.name in writes
    order = order_of(type_) if statistics or isinstance(type_.logical, (Decimal, Time)) else Order.ORDER_NONE
    total_order = properties.float_order == "total" and order in FLOAT_ORDERS
    if own_encoding is None:
        dictionary = (uses if isinstance(uses, bool) else column.name in uses) and type_.physical is not Type.BOOLEAN
        choice = None if properties.encoding == "auto" else _DICTIONARY_BY_DEFAULT if dictionary else _PLAIN_BY_DEFAULT
    else:
        dictionary = own_encoding in _DICTIONARY_ENCODINGS and type_.physical is not Type.BOOLEAN
        choice = EncodingChoice(own_encoding.name, "column_encoding asks for it")
    settings = ChunkSettings(
        max_definition_level=column.max_definition_level,
        max_repetition_level=column.max_repetition_level,
        dictionary=dictionary,
        keep_dictionary=own_encoding is not None,
        value_encoding=fmt.Encoding.PLAIN if own_encoding is None or own_encoding in _DICTIONARY_ENCODINGS else own_encoding,
        index_encoding=own_encoding if own_encoding == fmt.Encoding.PLAIN_DICTIONARY else fmt.Encoding.RLE_DICTIONARY,
        order=order,
        truncation=properties.statistics_truncation,
        total_order=total_order,
        statistics=statistics,
        data_page_size=properties.data_page_size,
        data_page_rows=properties.data_page_rows,
        dictionary_page_size=min(properties.dictionary_page_size, LARGEST_DICTIONARY),
        version_2=properties.data_page_version == "2.0",
        checksums=properties.write_page_checksum,
        bloom_filter_fpp=fpp,
        bloom_filter_ndv=ndv,
        content_chunks=_content_chunks(properties.use_content_defined_chunking),
    )
    codec, level = properties.compression, properties.compression_level
    codec = codec.get(column.name) if isinstance(codec, Mapping) else codec
    level = level.get(column.name) if isinstance(level, Mapping) else level
    own_codec = codec_for_write(codec, level)
    chooses_level = choice is None and level is None and own_codec.number == fmt.CompressionCodec.ZSTD
    return ColumnSpec(
        type=type_,
        layout=layout_of(type_),
        codec=own_codec,
        settings=settings,
        truncation=properties.statistics_truncation,
        has_path=properties.write_path_in_schema,
        has_page_index=properties.write_page_index,
        column_order=_TOTAL_ORDER if total_order else _TYPE_ORDER,
        choice=choice,
        levels=() if not chooses_level else AUTOMATIC_TEXT_LEVELS if type_.is_variable else AUTOMATIC_LEVELS,
    )


def _content_chunks(option: bool | Mapping[str, int]) -> tuple[int, int, int] | None:
    """Return least bytes, most bytes and hash mask for pages that are cut by their content. None cuts pages by their size.

    Raises:
        TypeError: the option is neither a switch nor a mapping.
        ValueError: an unknown or impossible size.
    """
    if option is False:
        return None
    if option is not True and not isinstance(option, Mapping):
        raise TypeError(f"use_content_defined_chunking must be True, False or a mapping of options, not {option!r}")
    options = {**_CONTENT_CHUNKS, **({} if option is True else option)}
    if unknown_options := sorted(options.keys() - _CONTENT_CHUNKS.keys()):
        raise ValueError(f"unknown options of use_content_defined_chunking: {', '.join(unknown_options)}")
    least, most, level = (options[name] for name in _CONTENT_CHUNKS)
    if not 0 < least < most <= MOST_CONTENT_BYTES:
        raise ValueError(f"pages of {least} to {most} bytes: min_chunk_size must be positive, and less than max_chunk_size")
    # the mean size is in the middle. A match needs so many zero bits, and a page takes eight matches
    num_bits = ((least + most) // 2 - least).bit_length() - 1 - 3 - level
    if not 0 < num_bits < 64:
        raise ValueError(f"norm_level={level} does not fit pages of {least} to {most} bytes")
    return least, most, ((1 << num_bits) - 1) << (64 - num_bits)


def _bloom_filter(column: ColumnDescriptor, option: BloomFilterOption) -> tuple[float | None, int | None]:
    """Return the false positive rate and the distinct count for bloom filters, or (None, None) without bloom filters."""
    if option is False:
        return None, None
    if option is not True and not isinstance(option, Mapping):
        raise TypeError(f"the bloom filter of {column.name} must be True, False or a mapping of options, not {option!r}")
    options: Mapping[str, object] = {} if option is True else option      # untyped code may pass any values
    if unknown_options := sorted(options.keys() - {"fpp", "ndv"}):
        raise ValueError(f"unknown options for the bloom filter of {column.name}: {', '.join(unknown_options)}")
    fpp, ndv = options.get("fpp"), options.get("ndv")
    fpp = DEFAULT_BLOOM_FILTER_FPP if fpp is None else fpp
    if isinstance(fpp, bool) or not isinstance(fpp, Real) or not 0.0 < float(fpp) < 1.0:
        raise ValueError(f"fpp of the bloom filter of {column.name} must be a number between 0 and 1, not {fpp!r}")
    if ndv is not None and (isinstance(ndv, bool) or not isinstance(ndv, int | np.integer) or ndv < 0):
        raise ValueError(f"ndv of the bloom filter of {column.name} must be a whole number of values, not {ndv!r}")
    if column.type.physical is Type.BOOLEAN:
        raise SchemaError("a BOOLEAN column cannot have a bloom filter", column=column.name)
    return float(fpp), None if ndv is None else int(ndv)


def _own_encoding(column: ColumnDescriptor, column_encoding: Mapping[str, str]) -> fmt.Encoding | None:
    """Return the encoding that ``column_encoding`` requests for a column, or None."""
    name = column_encoding.get(column.name)
    if name is None:
        return None
    try:
        return check_writable(name, column.type.physical)
    except ParquetError as error:
        error.at(column=column.name)
        raise

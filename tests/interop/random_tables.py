"""Hypothesis strategies: tables of random types, nested to some depth, and random options to write them with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from fastpq.convert.caller_input import table_from
from fastpq.schema.types import Type

Leaves = Mapping[pa.DataType, st.SearchStrategy[Any]]      # strategies for values, by flat type
LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    pa.int32(): st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.string(): st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.decimal128(12, 3): st.decimals(-(10**8), 10**8, places=3),
    pa.decimal128(38, 0): st.decimals(-(10**37), 10**37, places=0),
    pa.date32(): st.dates(dt.date(1600, 1, 1), dt.date(9999, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)),
}

CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
DICTIONARY = ("RLE_DICTIONARY", "PLAIN_DICTIONARY")
ENCODINGS = {
    Type.BOOLEAN: ("PLAIN", "RLE"),
    Type.INT32: ("PLAIN", *DICTIONARY, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    Type.INT64: ("PLAIN", *DICTIONARY, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    Type.FLOAT: ("PLAIN", *DICTIONARY, "BYTE_STREAM_SPLIT"),
    Type.DOUBLE: ("PLAIN", *DICTIONARY, "BYTE_STREAM_SPLIT"),
    Type.BYTE_ARRAY: ("PLAIN", *DICTIONARY, "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"),
    Type.FIXED_LEN_BYTE_ARRAY: ("PLAIN", *DICTIONARY, "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"),
}


@st.composite
def types(draw: Any, depth: int = 5) -> pa.DataType:
    """An Arrow type of at most depth levels of nesting."""
    kind = draw(st.sampled_from(["leaf", "list", "large list", "struct", "map"])) if depth else "leaf"
    if kind == "leaf":
        return draw(st.sampled_from(list(LEAVES)))
    if kind == "struct":
        children = draw(st.lists(st.tuples(types(depth=depth - 1), st.booleans()), min_size=1, max_size=3))
        return pa.struct([pa.field(f"f{i}", type_, nullable) for i, (type_, nullable) in enumerate(children)])
    if kind == "map":
        return pa.map_(draw(st.sampled_from([pa.int32(), pa.string()])), draw(types(depth=depth - 1)))
    element = pa.field("element", draw(types(depth=depth - 1)), draw(st.booleans()))
    return pa.list_(element) if kind == "list" else pa.large_list(element)


def values(type_: pa.DataType, nullable: bool, leaves: Leaves = LEAVES) -> st.SearchStrategy[Any]:
    """Python values of an Arrow type."""
    if pa.types.is_struct(type_):
        found: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {field.name: values(field.type, field.nullable, leaves) for field in type_}
        )
    elif pa.types.is_map(type_):
        pairs = st.tuples(values(type_.key_type, False, leaves), values(type_.item_type, True, leaves))
        found = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    elif pa.types.is_nested(type_):
        found = st.lists(values(type_.value_type, type_.value_field.nullable, leaves), max_size=3)
    else:
        found = leaves[type_]
    return st.none() | found if nullable else found


@st.composite
def tables(draw: Any, columns: tuple[int, int] = (1, 2), rows: int = 12, leaves: Leaves = LEAVES) -> pa.Table:
    """A table of random types.

    Args:
        draw: the function of hypothesis.
        columns: least and most number of columns.
        rows: most rows.
        leaves: strategies for values, by flat type.
    """
    count = draw(st.integers(0, rows))
    fields, arrays = [], []
    for number in range(draw(st.integers(*columns))):
        type_, nullable = draw(types()), draw(st.booleans())
        fields.append(pa.field(f"c{number}", type_, nullable))
        arrays.append(pa.array(draw(st.lists(values(type_, nullable, leaves), min_size=count, max_size=count)), type_))
    return pa.table(arrays, schema=pa.schema(fields))


@st.composite
def encodings(draw: Any, table: pa.Table, allowed: dict[Type, tuple[str, ...]] = ENCODINGS) -> dict[str, str]:
    """A random encoding for each leaf column of a table, for the option ``column_encoding``."""
    leaves = table_from(table).schema.columns
    return {leaf.name: draw(st.sampled_from(allowed[leaf.physical_type])) for leaf in leaves if leaf.physical_type in allowed}


def options(codecs: tuple[str, ...] = CODECS) -> st.SearchStrategy[dict[str, Any]]:
    """Options for writing a file, other than encodings of columns."""
    return st.fixed_dictionaries(
        {
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "compression": st.sampled_from(codecs),
            "data_page_rows": st.sampled_from([1, 3, 1000]),
            "row_group_size": st.sampled_from([1, 5, 1000]),
            "threads": st.sampled_from([1, 2]),
            "bloom_filter": st.just({}),
            "encoding": st.sampled_from([None, "auto"]),
        }
    )

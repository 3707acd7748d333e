"""Filters: their shapes, their types, and bounds that never drop what matches."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import operator
import struct
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpq
from fastpq import format as fmt
from fastpq.arrays.table import Column, Table
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.filters.combinations import And, Or
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.filtering import leaf_mask, mask_of
from fastpq.filters.literals import NAN, float_key
from fastpq.filters.predicate import (
    Bounds,
    Comparison,
    Condition,
    Membership,
    NullTest,
    Outcome,
    Prefix,
    bind_filters,
    outcome,
)
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema import types
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType, Type

SCHEMA = ParquetSchema.of(
    [
        ("int8", ColumnType(Type.INT32, None, types.Integer(8, True)), True),
        ("int64", ColumnType(Type.INT64), True),
        ("uint32", ColumnType(Type.INT32, None, types.Integer(32, False)), True),
        ("float", ColumnType(Type.FLOAT), True),
        ("double", ColumnType(Type.DOUBLE), True),
        ("boolean", ColumnType(Type.BOOLEAN), True),
        ("text", ColumnType(Type.BYTE_ARRAY, None, types.String()), True),
        ("bytes", ColumnType(Type.BYTE_ARRAY), True),
        ("bson", ColumnType(Type.BYTE_ARRAY, None, types.Bson()), True),
        ("fixed", ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 3), True),
        ("uuid", ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, types.Uuid()), True),
        ("date", ColumnType(Type.INT32, None, types.Date()), True),
        ("local", ColumnType(Type.INT64, None, types.Timestamp("ms", False)), True),
        ("utc", ColumnType(Type.INT64, None, types.Timestamp("us", True)), True),
        ("time", ColumnType(Type.INT32, None, types.Time("ms", False)), True),
        ("decimal", ColumnType(Type.INT32, None, types.Decimal(9, 2)), True),
        ("interval", ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 12, types.Interval()), True),
        ("unknown", ColumnType(Type.INT32, None, types.Unknown()), True),
    ]
)
NONE, SOME, ALL = Outcome


def bind(*condition: Any) -> Condition:
    bound = bind_filters(tuple(condition), SCHEMA)
    assert isinstance(bound, Condition)
    return bound


def shown(*condition: Any) -> str:
    return str(bind(*condition))


# ---- shapes


def test_shapes() -> None:
    one, other = ("int64", "==", 1), ("text", "=", "a")
    assert isinstance(bind_filters(one, SCHEMA), Membership)
    assert isinstance(bind_filters([one], SCHEMA), Membership)
    assert isinstance(bind_filters([[one]], SCHEMA), Membership)
    assert isinstance(bind_filters([one, other], SCHEMA), And)
    either = bind_filters([[one, other], [one]], SCHEMA)
    assert isinstance(either, Or)
    assert isinstance(either.children[0], And)
    tree = bind_filters(And(one, Or(other, [one, other]) | one) & other, SCHEMA)
    assert isinstance(tree, And)
    assert len(tree.children) == 3
    assert isinstance(tree.children[1], Or)
    assert isinstance(bind_filters(Or(one) & other, SCHEMA), And)


JSON_ONE, JSON_OTHER = ["int64", "==", 1], ["text", "=", "a"]


@pytest.mark.parametrize(
    ("filters", "same"),
    [
        (JSON_ONE, [("int64", "==", 1)]),
        ([JSON_ONE], [("int64", "==", 1)]),
        ([JSON_ONE, JSON_OTHER], [("int64", "==", 1), ("text", "=", "a")]),
        ([["int64", "is null"]], [("int64", "is null")]),
        ([JSON_ONE, ("text", "=", "a")], [("int64", "==", 1), ("text", "=", "a")]),
        ([[JSON_ONE, JSON_OTHER], [JSON_OTHER]], [[("int64", "==", 1), ("text", "=", "a")], [("text", "=", "a")]]),
        ((("int64", "==", 1), ("text", "=", "a")), [("int64", "==", 1), ("text", "=", "a")]),
        ([(("int64", "==", 1),), (("text", "=", "a"),)], [[("int64", "==", 1)], [("text", "=", "a")]]),
        (And(JSON_ONE, Or(JSON_OTHER, JSON_ONE)), And(("int64", "==", 1), Or(("text", "=", "a"), ("int64", "==", 1)))),
    ],
    ids=str,
)
def test_lists_and_tuples_are_alike(filters: Any, same: Any) -> None:
    assert bind_filters(filters, SCHEMA) == bind_filters(same, SCHEMA)


@pytest.mark.parametrize("filters", [[], [[]], And(), Or(), "int64 == 1", ("int64",), {"int64": 1}, [("int64", "==", 1), 3], 5])
def test_what_is_no_filter(filters: Any) -> None:
    with pytest.raises(fastpq.SchemaError):
        bind_filters(filters, SCHEMA)


def test_columns_and_ops() -> None:
    with pytest.raises(fastpq.SchemaError, match="did you mean"):
        bind("int46", "==", 1)
    with pytest.raises(fastpq.SchemaError, match="not one of"):
        bind("int64", "~", 1)
    with pytest.raises(fastpq.SchemaError, match="is null"):
        bind("int64", "==", None)
    with pytest.raises(fastpq.SchemaError, match="list of values"):
        bind("text", "in", "abc")
    assert shown("int64", " NOT  In ", [3, 1, 1, None]) == "int64 in ()"
    assert shown("int64", "in", [3, 1, 1, None]) == "int64 in (1, 3)"
    assert shown(1, "<>", 3) == "int64 not in (3)"
    assert shown("int64", "is not null") == "int64 is not null"


# ---- types


NEW_YORK = dt.timezone(dt.timedelta(hours=-5))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("int64", "<", 2.5), "int64 < 3"),
        (("int64", "<=", 2.5), "int64 <= 2"),
        (("int64", ">", decimal.Decimal("2.5")), "int64 > 2"),
        (("int64", ">=", 2.5), "int64 >= 3"),
        (("int64", "==", 2.5), "int64 in ()"),
        (("int64", "!=", 2.5), "int64 not in ()"),
        (("int64", "==", np.uint8(7)), "int64 in (7)"),
        (("int8", "<", 128), "int8 is not null"),
        (("int8", ">=", 128), "int8 in ()"),
        (("int8", ">", -129), "int8 is not null"),
        (("int8", "<", -128), "int8 < -128"),
        (("uint32", ">=", -0.5), "uint32 >= 0"),
        (("uint32", ">", -1), "uint32 is not null"),
        (("uint32", "in", [-1, 5, 1 << 32]), "uint32 in (5)"),
        (("float", "==", 0.1), f"float in ({float(np.float32(0.1))})"),
        (("float", "<", 1e300), "float < inf"),
        (("float", ">", 1e300), "float >= inf"),
        (("float", "<=", -1e300), "float <= -inf"),
        (("float", ">=", -1e300), "float > -inf"),
        (("float", "==", 1e300), "float in ()"),
        (("float", "<=", math.inf), "float <= inf"),
        (("double", ">", 10**400), "double >= inf"),
        (("double", "==", math.nan), "double in (NaN)"),
        (("double", "<", decimal.Decimal("0.5")), "double < 0.5"),
        (("boolean", "==", True), "boolean in (1)"),
        (("boolean", "<", np.bool_(True)), "boolean < 1"),
        (("text", "==", "é"), "text in ('é')"),
        (("text", "starts with", "a"), "text starts with 'a'"),
        (("bytes", "==", "a"), "bytes in (b'a')"),
        (("bytes", "<", bytearray(b"a")), "bytes < b'a'"),
        (("fixed", "<", b"ab"), "fixed < b'ab\\x00'"),
        (("fixed", "<=", b"ab"), "fixed < b'ab\\x00'"),
        (("fixed", ">", b"ab"), "fixed >= b'ab\\x00'"),
        (("fixed", "<=", b"abcd"), "fixed <= b'abc'"),
        (("fixed", ">=", b"abcd"), "fixed > b'abc'"),
        (("fixed", "==", b"ab"), "fixed in ()"),
        (("uuid", "==", str(uuid.UUID(int=1))), f"uuid in ({uuid.UUID(int=1).bytes!r})"),
        (("uuid", "==", uuid.UUID(int=1)), f"uuid in ({uuid.UUID(int=1).bytes!r})"),
        (("date", ">", dt.date(1970, 1, 3)), "date > 2"),
        (("date", ">", dt.datetime(1970, 1, 3, 12)), "date > 2"),
        (("date", ">=", dt.datetime(1970, 1, 3, 12)), "date >= 3"),
        (("date", "==", np.datetime64("1970-02", "M")), "date in (31)"),
        (("local", "==", dt.datetime(1970, 1, 1, 0, 0, 1, 500)), "local in ()"),
        (("local", "==", dt.datetime(1969, 12, 31, 23, 59, 59)), "local in (-1000)"),
        (("local", "<", np.datetime64(1_500_001, "ns")), "local < 2"),
        (("local", ">", dt.date(1970, 1, 2)), "local > 86400000"),
        (("utc", "==", dt.datetime(1969, 12, 31, 19, 0, 1, tzinfo=NEW_YORK)), "utc in (1000000)"),
        (("utc", "==", np.datetime64(1, "s")), "utc in (1000000)"),
        (("time", "<", dt.time(0, 0, 1)), "time < 1000"),
        (("time", "<", np.timedelta64(1, "s")), "time < 1000"),
        (("time", "<", dt.timedelta(seconds=1)), "time < 1000"),
        (("decimal", "==", decimal.Decimal("1.5")), "decimal in (150)"),
        (("decimal", "<", decimal.Decimal("1.505")), "decimal < 151"),
        (("decimal", "==", 2), "decimal in (200)"),
        (("unknown", "==", 2), "unknown in ()"),
        (("unknown", "not in", [2]), "unknown in ()"),
    ],
)
def test_values_are_typed(condition: tuple[Any, ...], expected: str) -> None:
    assert shown(*condition) == expected


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("int64", "1"),
        ("int64", True),
        ("int64", math.nan),
        ("int64", np.timedelta64(1, "s")),
        ("double", "1"),
        ("double", False),
        ("boolean", 1),
        ("text", b"a"),
        ("text", "\ud800"),
        ("bson", "a"),
        ("fixed", 1),
        ("uuid", "nope"),
        ("uuid", b"short"),
        ("date", "1 January 1970"),
        ("date", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("date", np.datetime64("NaT")),
        ("local", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("utc", dt.datetime(1970, 1, 1)),
        ("time", dt.datetime(1970, 1, 1)),
        ("time", np.timedelta64(1, "M")),
        ("decimal", 0.1),
        ("interval", b"x" * 12),
    ],
)
def test_values_that_do_not_fit(column: str, value: Any) -> None:
    for op in ("==", "<", "in"):
        with pytest.raises(fastpq.SchemaError, match="does not fit") as caught:
            bind(column, op, [value] if op == "in" else value)
        assert caught.value.context["column"] == column


# ---- on bounds


@pytest.mark.parametrize(
    ("condition", "low", "high", "expected"),
    [
        (("int64", "<", 5), 5, 9, NONE),
        (("int64", "<", 5), 4, 5, SOME),
        (("int64", "<", 5), 1, 4, ALL),
        (("int64", "<=", 5), 6, 9, NONE),
        (("int64", "<=", 5), 1, 5, ALL),
        (("int64", ">", 5), 1, 5, NONE),
        (("int64", ">", 5), 6, 9, ALL),
        (("int64", ">=", 5), 1, 4, NONE),
        (("int64", ">=", 5), 5, 9, ALL),
        (("int64", "==", 5), 6, 9, NONE),
        (("int64", "==", 5), 5, 5, ALL),
        (("int64", "==", 5), 4, 5, SOME),
        (("int64", "!=", 5), 5, 5, NONE),
        (("int64", "!=", 5), 6, 9, ALL),
        (("int64", "in", [1, 20]), 2, 19, NONE),
        (("int64", "in", [1, 7, 20]), 2, 19, SOME),
        (("int64", "not in", [1, 20]), 2, 19, ALL),
        (("int64", "<", 5), None, 4, ALL),
        (("int64", "<", 5), None, 9, SOME),
        (("int64", "==", 5), None, 4, NONE),
        (("text", "starts with", "ab"), b"ac", b"b", NONE),
        (("text", "starts with", "ab"), b"a", b"aa", NONE),
        (("text", "starts with", "ab"), b"aba", b"abz", ALL),
        (("text", "starts with", "ab"), b"a", b"b", SOME),
        (("double", ">", 5), (0, 1.0), (0, 4.0), NONE),
        (("double", ">", 5), (0, 1.0), NAN, SOME),
        (("double", "==", math.nan), (0, 1.0), (0, 4.0), NONE),
    ],
)
def test_outcomes(condition: tuple[Any, ...], low: Any, high: Any, expected: Outcome) -> None:
    leaf = bind(*condition)
    assert leaf.outcome(Bounds(low, high, 0, 10)) == expected
    assert leaf.outcome(Bounds(low, high, 3, 10)) == min(expected, SOME)
    assert leaf.outcome(Bounds(low, high, None, 10)) == min(expected, SOME)
    assert leaf.outcome(Bounds(None, None, 10, 10)) == NONE


def test_outcomes_of_nulls_and_of_trees() -> None:
    assert bind("int64", "is null").outcome(Bounds(null_count=0, num_values=3)) == NONE
    assert bind("int64", "is null").outcome(Bounds(null_count=3, num_values=3)) == ALL
    assert bind("int64", "is not null").outcome(Bounds(null_count=0, num_values=3)) == ALL
    assert bind("int64", "is not null").outcome(Bounds()) == SOME
    known = Bounds(1, 5, 0, 10)
    never, always, unknown = ("int64", ">", 9), ("int64", "<", 9), ("int64", "<", 3)
    for filters, expected in (
        (And(always, unknown), SOME),
        (And(never, unknown), NONE),
        (And(always, always), ALL),
        (Or(never, unknown), SOME),
        (Or(always, unknown), ALL),
        (Or(never, never), NONE),
    ):
        assert outcome(bind_filters(filters, SCHEMA), lambda _: known) == expected


def bounds_of(values: list[Any], key: Any) -> Bounds:
    keys = [key(value) for value in values if value is not None]
    nulls = len(values) - len(keys)
    return Bounds(min(keys), max(keys), nulls, len(values)) if keys else Bounds(None, None, nulls, len(values))


OPS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
DOUBLES = st.sampled_from([math.nan, -math.inf, math.inf, -0.0, 0.0, 1.5, -1.5, 2.0])
CASES: dict[str, tuple[Any, Any, str]] = {
    "int64": (st.integers(-4, 4), lambda value: value, "int64"),
    "double": (DOUBLES, float_key, "double"),
    "text": (st.text("aé", max_size=3), str.encode, "text"),
}


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@settings(max_examples=300)
def test_bounds_never_drop_what_matches(case: str, data: st.DataObject) -> None:
    """Every outcome on bounds is right for the values; the values' mask is that of SQL, value by value."""
    items, key, name = CASES[case]
    values = data.draw(st.lists(st.none() | items, min_size=1, max_size=6))
    op = data.draw(OPS)
    wanted = data.draw(st.lists(items, min_size=1, max_size=3)) if op.endswith("in") else data.draw(items)
    leaf = bind(name, op, wanted)
    column = column_of(name, values)
    mask = leaf_mask(leaf, column).tolist()
    assert mask == [value is not None and holds(key(value), op, wanted, key) for value in values]
    found = leaf.outcome(bounds_of(values, key))
    assert not (found is NONE and any(mask))
    assert not (found is ALL and not all(mask))


def column_of(name: str, values: list[Any]) -> Column:
    dtype = {"int64": np.int64, "double": np.float64}.get(name)
    objects = np.empty(len(values), object)
    objects[:] = values
    if dtype is not None:
        filled = np.array([0 if value is None else value for value in values], dtype)
        objects = np.ma.MaskedArray(filled, [value is None for value in values])
    return table_of({name: objects}, ParquetSchema.of([(name, SCHEMA[name].type, True)])).flat(name)


def table_of(data: dict[str, Any], schema: ParquetSchema) -> Table:
    file = io.BytesIO()
    fastpq.write_table(data, file, schema=schema)
    return fastpq.read_table(file.getvalue())


def holds(key: Any, op: str, wanted: Any, key_of: Any) -> bool:
    match op:
        case "in":
            return key in [key_of(value) for value in wanted]
        case "not in":
            return key not in [key_of(value) for value in wanted]
    other = key_of(wanted)
    compare = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    return bool(compare[op](key, other))


def test_masks_of_trees() -> None:
    column = column_of("int64", [1, 2, None, 4])
    filters = Or(And(("int64", ">", 1), ("int64", "<", 4)), ("int64", "is null"))
    assert mask_of(bind_filters(filters, SCHEMA), lambda _: column).tolist() == [False, True, True, False]


def test_dictionaries() -> None:
    column = column_of("text", ["a", "b", None, "a"]).as_dictionary()
    assert leaf_mask(bind("text", "==", "a"), column).tolist() == [True, False, False, True]
    assert leaf_mask(bind("text", "not in", ["a", "x"]), column).tolist() == [False, True, False, False]


# ---- whom to trust


def footer(column_type: ColumnType, statistics: fmt.Statistics, created_by: str, order: fmt.ColumnOrder | None) -> FileMetaData:
    element = ParquetSchema.of([("x", column_type, True)]).to_thrift()
    chunk = fmt.ColumnMetaData(
        type=column_type.physical, encodings=[], path_in_schema=["x"], codec=0, num_values=10, total_uncompressed_size=0,
        total_compressed_size=0, data_page_offset=4, statistics=statistics,
    )
    group = fmt.RowGroup(columns=[fmt.ColumnChunk(meta_data=chunk)], total_byte_size=0, num_rows=10)
    metadata = fmt.FileMetaData(
        version=2, schema=element, num_rows=10, row_groups=[group], created_by=created_by, column_orders=order and [order]
    )
    return FileMetaData(memoryview(fmt.encode(metadata)), FileDecryptor())


def bounds_in(
    column_type: ColumnType,
    statistics: fmt.Statistics,
    created_by: str = "fastpq version 1.0",
    order: fmt.ColumnOrder | None = fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder()),  # noqa: B008 - never changed
) -> Bounds:
    metadata = footer(column_type, statistics, created_by, order)
    return chunk_bounds(claims_of(metadata, metadata.schema.columns[0], metadata.row_group(0).column(0), 10))[0]


def four(value: int) -> bytes:
    return struct.pack("<i", value)


def test_bounds_of_statistics() -> None:
    int32, text, double = ColumnType(Type.INT32), SCHEMA["text"].type, SCHEMA["double"].type
    total = fmt.ColumnOrder(IEEE_754_TOTAL_ORDER=fmt.IEEE754TotalOrder())
    both = fmt.Statistics(min_value=four(1), max_value=four(5), null_count=2)
    assert bounds_in(int32, both) == Bounds(1, 5, 2, 10)
    assert bounds_in(int32, both, order=None) == Bounds(None, None, 2, 10)
    assert bounds_in(int32, both, order=total) == Bounds(None, None, 2, 10)
    assert bounds_in(int32, fmt.Statistics(min_value=four(6), max_value=four(5))) == Bounds()
    assert bounds_in(int32, fmt.Statistics(min_value=b"123", max_value=four(5))) == Bounds()
    assert bounds_in(int32, fmt.Statistics(null_count=11)) == Bounds()
    assert bounds_in(int32, fmt.Statistics(min=four(1), max=four(5)), order=None) == Bounds(1, 5, None, 10)
    assert bounds_in(SCHEMA["uint32"].type, fmt.Statistics(min=four(1), max=four(5))) == Bounds(num_values=10)
    assert bounds_in(SCHEMA["int8"].type, fmt.Statistics(min_value=four(1), max_value=four(300))) == Bounds()
    assert bounds_in(text, fmt.Statistics(min=b"a", max=b"b")) == Bounds(num_values=10)
    assert bounds_in(text, fmt.Statistics(min_value=b"a", max_value=b"b")) == Bounds(b"a", b"b", None, 10)
    low, high, nan = (struct.pack("<d", value) for value in (1.0, 2.0, math.nan))
    for order in (fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder()), total):
        floats = fmt.Statistics(min_value=low, max_value=high, null_count=0)
        assert bounds_in(double, floats, order=order) == Bounds((0, 1.0), NAN, 0, 10)
        floats.nan_count = 0
        assert bounds_in(double, floats, order=order) == Bounds((0, 1.0), (0, 2.0), 0, 10)
        floats = fmt.Statistics(min_value=nan, max_value=nan, null_count=4, nan_count=6)
        assert bounds_in(double, floats, order=order) == Bounds(NAN, NAN, 4, 10)


def test_an_all_null_column_is_not_compared() -> None:
    assert isinstance(bind("unknown", "is null"), NullTest)
    assert isinstance(bind("text", "<", "a"), Comparison)
    assert isinstance(bind("text", "starts with", ""), Prefix)

"""Shredded columns: parquet-testing's cases, files found in the wild, the specification's tables, and there and back."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpq
from fastpq import format as fmt
from fastpq.arrays.table import Column
from fastpq.convert.caller_input import table_from
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.tree import GroupNode
from fastpq.schema.types import ColumnType, Date, Decimal, Integer, String, Time, Timestamp, Type, Uuid
from fastpq.schema.variant_group import check_variant
from fastpq.schema.variant_kinds import MAX_DEPTH, kind_of
from fastpq.variant import Kind, Primitive, Shredded, ShreddedArray, ShreddedObject, Variant, VariantColumn, infer_schema
from fastpq.variant.shredded import BINARY
from fastpq.variant.shredding_schema import ShreddingSchema
from fastpq.variant.storage import shredded_of, variant_struct
from tests.narrowing import present
from tests.requirements import DATA, needs_data
from tests.variant import reference
from tests.variant.arrow_tree import column_of, node_at, read_variants
from tests.variant.elements import variant_elements
from tests.variant.strategies import trees

CASES = DATA / "parquet-testing/shredded_variant"
WILD = DATA / "wild/files"

STRING = ColumnType(Type.BYTE_ARRAY, logical=String())
INT32, INT64 = ColumnType(Type.INT32), ColumnType(Type.INT64)
INT8 = ColumnType(Type.INT32, logical=Integer(8, signed=True))
TIMESTAMP = ColumnType(Type.INT64, logical=Timestamp("us", utc=True))
MONEY = ColumnType(Type.INT32, logical=Decimal(9, 2))
EMPTY = b"\x01\x00\x00"


# ---- parquet-testing


def cases() -> list[Any]:
    path = CASES / "cases.json"
    found = json.loads(path.read_text()) if path.exists() else []
    return [pytest.param(case, id=f"{case['case_number']}-{case['test']}") for case in found if "parquet_file" in case]


@pytest.mark.parametrize("case", cases())
def test_cases_of_parquet_testing(case: dict[str, Any]) -> None:
    """Byte by byte what parquet-java and Iceberg make of them."""
    path = CASES / case["parquet_file"]
    if "error_message" in case:
        with pytest.raises(FormatError):
            read_variants(path, "var")
        return
    column = read_variants(path, "var")
    expected = case.get("variant_files") or [case["variant_file"]]
    assert len(expected) == len(column)
    for row, name in enumerate(expected):
        truth = None if name is None else Variant(*reference.split((CASES / name).read_bytes()))
        assert column[row] == truth
        if truth is not None:
            truth.check()


@needs_data
def test_there_are_cases() -> None:
    assert len(cases()) == 137


# ---- files in the wild


@needs_data
@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("hyparam+hyparquet/f21ec874c7-shredded-sparse-timestamp.parquet", "v",
         [{"event_type": "login", "count": 42}, {"event_type": "click"}, {"event_type": "purchase", "count": None},
          {"event_type": "timeout", "d": datetime.datetime(2024, 1, 15, 10, 30)}]),
        ("hyparam+hyparquet/edb9073c96-shredded-type-mismatch.parquet", "v", [{"count": 42}, {"count": "not a number"}]),
        ("rapidsai+cudf/efe9ab4ef9-duckdb_variant_sample.parquet", "v", [{"k": "hello", "n": 42}, {"k": "world", "n": 0}]),
        ("rapidsai+cudf/4a3a808401-variant_minimal.parquet", "v", [{"x": 7}]),
        ("rapidsai+cudf/29660a2ea0-variant_nested_shredded.parquet", "v_top", [7, "hello", 99]),
        ("rapidsai+cudf/983023f657-variant_nested_unshredded.parquet", "v_top", [7, "hello", 99]),
    ],
)
def test_files_in_the_wild(name: str, column: str, expected: list[Any]) -> None:
    assert read_variants(WILD / name, column).to_pylist() == expected


@needs_data
def test_variants_inside_lists_in_the_wild() -> None:
    path = WILD / "rapidsai+cudf/29660a2ea0-variant_nested_shredded.parquet"
    [chunk] = pq.read_table(path).column("v_list").chunks
    group = node_at(path, "v_list", "list", "element")
    assert isinstance(group, GroupNode)
    assert column_of(chunk.values, group).to_pylist() == [7, "hi", 42]


# ---- the tables of VariantShredding.md


def column(values: list[Any], type_: ColumnType = BINARY) -> Column:
    array = np.fromiter(values, dtype=object, count=len(values))
    masked = np.ma.MaskedArray(array, [value is None for value in values])
    return table_from({"c": masked}, {"c": type_}).flat("c")


def value(tree: Any, names: list[str]) -> bytes:
    return reference.encode(tree, {name: i for i, name in enumerate(names)})


def string(text: str) -> Primitive:
    return Primitive(Kind.STRING, text)


def bitmap(*flags: int) -> np.ndarray:
    return np.packbits(np.array(flags, np.uint8), bitorder="little")


def test_measurements() -> None:
    shredded = Shredded(4, column([None, b"\x00", b"\x0dn/a", None]), column([34, None, None, 100], INT64))
    assert shredded.value is not None
    found = VariantColumn.from_shredded(column([EMPTY] * 4), shredded)
    assert found.to_pylist() == [34, None, "n/a", 100]
    assert found.to_json() == ["34", "null", '"n/a"', "100"]


def test_tags() -> None:
    texts = ["comedy", "drama", "horror", None, "comedy", "drama", "romance"]
    elements = Shredded(7, column([b"\x00" if text is None else None for text in texts]), column(texts, STRING))
    lists = ShreddedArray(np.array([0, 2, 4, 7, 7], np.int32), elements, bitmap(1, 1, 1, 0))
    found = VariantColumn.from_shredded(column([EMPTY] * 4), Shredded(4, column([None, None, None, b"\x00"]), lists))
    assert found.to_pylist() == [["comedy", "drama"], ["horror", None], ["comedy", "drama", "romance"], None]


NAMES = ["event_type", "event_ts", "email", "error_msg", "click"]
METADATA = reference.metadata(NAMES)


def event(
    own: Any, is_object: int, type_value: Any, type_typed: str | None, ts_value: Any, ts_typed: int | None
) -> VariantColumn:
    """One row of the table of events."""
    fields = {
        "event_type": Shredded(1, column([type_value]), column([type_typed], STRING)),
        "event_ts": Shredded(1, column([ts_value]), _timestamps(ts_typed)),
    }
    typed = ShreddedObject(1, fields, bitmap(is_object))
    return VariantColumn.from_shredded(column([METADATA]), Shredded(1, column([own]), typed))


def _timestamps(number: int | None) -> Column:
    present = number is not None
    return Column(TIMESTAMP, np.array([number or 0], np.int64), None if present else bitmap(0), 0 if present else 1)


TS = 1729794114937


def moment(microseconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((None, 1, None, "noop", None, TS), {"event_type": "noop", "event_ts": moment(TS)}),
        ((value({"email": string("user@example.com")}, NAMES), 1, None, "login", None, TS),
         {"event_type": "login", "event_ts": moment(TS), "email": "user@example.com"}),
        ((value({"error_msg": string("malformed: ...")}, NAMES), 1, None, None, None, None), {"error_msg": "malformed: ..."}),
        ((value(string("malformed: not an object"), NAMES), 0, None, None, None, None), "malformed: not an object"),
        ((value({"click": string("_button")}, NAMES), 1, None, None, None, TS), {"event_ts": moment(TS), "click": "_button"}),
        ((None, 1, b"\x00", None, None, TS), {"event_type": None, "event_ts": moment(TS)}),
        ((None, 1, None, "noop", value(string("2024-10-24"), NAMES), None), {"event_type": "noop", "event_ts": "2024-10-24"}),
        ((None, 1, None, None, None, None), {}),
        ((b"\x00", 0, None, None, None, None), None),
        ((None, 0, None, None, None, None), None),                  # missing: a variant null where one is required
        # invalid ones, read as fastpq.variant.reassembly says
        ((value({"event_type": string("login")}, NAMES), 1, None, "noop", None, TS),
         {"event_type": "noop", "event_ts": moment(TS)}),
        ((value({"event_type": string("login")}, NAMES), 1, None, None, None, TS), {"event_ts": moment(TS)}),
        ((value({"event_type": string("login")}, NAMES), 0, None, None, None, None), {"event_type": "login"}),
        ((b"\x02\x00\x00", 0, None, None, None, None), {}),
    ],
)
def test_events(row: tuple[Any, ...], expected: Any) -> None:
    found = event(*row)
    assert found.to_pylist() == [expected]
    variant = found[0]
    assert variant is not None
    variant.check()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((value(string("a"), NAMES), 1, None, None, None, None), "not an object"),
        ((None, 1, b"\x00", "noop", None, None), "both there"),
        ((None, 1, b"\xff", None, None, None), "row 0"),
        ((b"\x02\x01\x09\x00\x01\x00", 1, None, None, None, None), "field id"),
    ],
)
def test_events_that_are_wrong(row: tuple[Any, ...], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        event(*row)


def test_other_wrong_columns() -> None:
    one = column([EMPTY])
    with pytest.raises(FormatError, match="both there"):
        VariantColumn.from_shredded(one, Shredded(1, column([b"\x00"]), column([1], INT32)))
    with pytest.raises(FormatError, match="name that is not in the metadata"):
        VariantColumn.from_shredded(one, Shredded(1, None, ShreddedObject(1, {"a": Shredded(1, column([b"\x00"]))})))
    with pytest.raises(FormatError, match="UTF-8"):
        VariantColumn.from_shredded(one, Shredded(1, None, Column(STRING, column([b"\xff"]).values)))
    with pytest.raises(FormatError, match="list offsets"):
        VariantColumn.from_shredded(one, Shredded(1, None, ShreddedArray(np.array([0, 2]), Shredded(1, column([b"\x00"])))))
    with pytest.raises(FormatError, match="end early"):
        VariantColumn.from_shredded(column([None]), Shredded(1, None, column([1], INT32)))
    wide = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(38, 0))
    big = np.frombuffer((10**38).to_bytes(16, "little"), "V16")
    with pytest.raises(FormatError, match="decimal"):
        VariantColumn.from_shredded(one, Shredded(1, None, Column(wide, big)))
    with pytest.raises(LimitError):
        VariantColumn.from_shredded(column([EMPTY] * 9), Shredded(9, None, column(["x" * 50] * 9, STRING)), limit=200)
    with pytest.raises(SchemaError):
        Shredded(1)
    with pytest.raises(SchemaError):
        Shredded(2, column([None]))
    with pytest.raises(SchemaError):
        VariantColumn.from_shredded(column([EMPTY] * 2), Shredded(1, None, column([1], INT32)))


def in_arrays(pair: Shredded, depth: int) -> Shredded:
    """A pair of one row as the only element of arrays inside each other."""
    for _ in range(depth):
        pair = Shredded(1, None, ShreddedArray(np.array([0, 1]), pair))
    return pair


def in_lists(depth: int) -> bytes:
    """A variant null in arrays inside each other, in Variant encoding."""
    tree: Any = None
    for _ in range(depth):
        tree = [tree]
    return Variant.from_python(tree).value


@pytest.mark.parametrize("typed", [1, 100, MAX_DEPTH - 1, MAX_DEPTH])
def test_depth_of_values_in_shredded_arrays(typed: int) -> None:
    """Levels of typed_value and of value count together."""
    one = column([EMPTY])
    deepest = VariantColumn.from_shredded(one, in_arrays(Shredded(1, column([in_lists(MAX_DEPTH - typed)])), typed))
    assert deepest.to_json() == ["[" * MAX_DEPTH + "null" + "]" * MAX_DEPTH]
    inner = Shredded(1, column([in_lists(MAX_DEPTH - typed + 1)]))
    with pytest.raises(LimitError, match="MAX_DEPTH"):
        VariantColumn.from_shredded(one, in_arrays(inner, typed))
    with pytest.raises(LimitError, match="MAX_DEPTH"):
        VariantColumn.from_shredded(one, in_arrays(Shredded(1, None, ShreddedArray(np.array([0, 0]), inner)), MAX_DEPTH))


def test_struct_columns_nested_too_deep() -> None:
    found = variant_struct(column([EMPTY]), in_arrays(Shredded(1, column([b"\x00"])), 5), None)
    assert shredded_of(found, MAX_DEPTH - 5).typed_value is not None
    with pytest.raises(LimitError, match="MAX_DEPTH"):
        shredded_of(found, MAX_DEPTH - 4)


def test_missing_elements_are_variant_nulls() -> None:
    elements = Shredded(2, None, column([1, None], INT32))
    found = VariantColumn.from_shredded(column([EMPTY]), Shredded(1, None, ShreddedArray(np.array([0, 2]), elements)))
    assert found.to_json() == ["[1,null]"]


def test_null_rows_stay_null() -> None:
    found = VariantColumn.from_shredded(column([EMPTY, None]), Shredded(2, None, column([None, None], INT32)), bitmap(1, 0))
    assert found.to_json() == ["null", None]


# ---- types


@pytest.mark.parametrize(
    "type_",
    [
        ColumnType(Type.INT32, logical=Integer(8, signed=False)), ColumnType(Type.INT64, logical=Integer(64, signed=False)),
        ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 4), ColumnType(Type.INT96), ColumnType(Type.INT32, logical=Time("ms")),
        ColumnType(Type.INT64, logical=Time("us", utc=True)), ColumnType(Type.INT64, logical=Timestamp("ms")),
        ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 32, Decimal(39, 0)),
    ],
)
def test_types_that_no_variant_is_shredded_as(type_: ColumnType) -> None:
    with pytest.raises(FormatError):
        kind_of(type_)
    with pytest.raises(SchemaError):
        VariantColumn.from_pylist([1]).shred({"a": type_})


@pytest.mark.parametrize("schema", [{}, [], [INT32, INT32], {1: INT32}, "int", {"a": [3]}])
def test_what_is_no_shredding_schema(schema: Any) -> None:
    with pytest.raises(SchemaError):
        VariantColumn.from_pylist([1]).shred(schema)


# ---- splitting

UUID_TYPE = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid())
WIDE = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(38, 10))


@pytest.mark.parametrize(
    ("type_", "fitting", "others"),
    [
        (ColumnType(Type.BOOLEAN), [True, False], [None, 1, "true"]),
        (INT8, [1, -128, 127], [128, 1.0, decimal.Decimal(1), "1", True]),
        (INT32, [1, 300, -(1 << 31)], [1 << 31, decimal.Decimal(1)]),
        (INT64, [1, 1 << 62], [1 << 63]),
        (MONEY, [1, decimal.Decimal("1.5"), decimal.Decimal("9999999.99"), decimal.Decimal("-1.500")],
         [decimal.Decimal("1.505"), 10_000_000, 1.5, decimal.Decimal("10000000")]),
        (WIDE, [1 << 62, decimal.Decimal("1e-10"), decimal.Decimal(10**28 - 1)], [10**28, decimal.Decimal("1e-11"), 10**37]),
        (ColumnType(Type.FLOAT), [Primitive(Kind.FLOAT, 0.5)], [0.5, 1]),
        (ColumnType(Type.DOUBLE), [0.5], [Primitive(Kind.FLOAT, 0.5), 1]),
        (ColumnType(Type.INT32, logical=Date()), [datetime.date(2020, 1, 1)], [1, "2020-01-01"]),
        (ColumnType(Type.INT64, logical=Time("us")), [datetime.time(1, 2, 3, 4)], [1]),
        (TIMESTAMP, [moment(5)], [datetime.datetime(2020, 1, 1), Primitive(Kind.TIMESTAMP_NANOS, 5)]),
        (ColumnType(Type.INT64, logical=Timestamp("ns")), [Primitive(Kind.TIMESTAMP_NTZ_NANOS, 5)], [np.datetime64(1, "us")]),
        (BINARY, [b"", b"x" * 100], ["x"]),
        (STRING, ["", "x" * 63, "x" * 64], [b"x", 1]),
        (UUID_TYPE, [uuid.UUID(int=5)], ["x", b"x" * 16]),
    ],
)
def test_which_values_are_shredded(type_: ColumnType, fitting: list[Any], others: list[Any]) -> None:
    rows = [value for pair in zip(fitting * 3, others * 3, strict=False) for value in pair] + fitting + others
    variants = VariantColumn.from_pylist(rows, nulls=False)
    shredded = variants.shred(type_)
    assert shredded.value is not None
    typed = shredded.typed_value
    assert isinstance(typed, Column)
    assert typed.type == type_
    is_typed = typed.validity_mask().tolist()
    assert is_typed == [any(row is each for each in fitting) for row in rows]
    assert shredded.value.validity_mask().tolist() == [not flag for flag in is_typed]
    back = VariantColumn.from_shredded(variants.metadata, shredded)
    assert [_plain(row) for row in back.to_pylist()] == [_plain(row) for row in variants.to_pylist()]


def _plain(row: Any) -> Any:
    return row.value if isinstance(row, Primitive) else row


def test_objects_are_split() -> None:
    rows = [{"a": 1, "b": "x", "c": None}, {"b": 2}, {}, {"a": {"b": 3}}, [1], None]
    variants = VariantColumn.from_pylist(rows)
    shredded = variants.shred({"b": STRING, "a": {"b": INT32}})
    assert shredded.value is not None
    metadata = variants.metadata.to_pylist()[0]
    own = [None if raw is None else Variant(metadata, raw).to_python() for raw in shredded.value.to_pylist()]
    assert own == [{"c": None}, None, None, None, [1], None]
    typed = shredded.typed_value
    assert isinstance(typed, ShreddedObject)
    assert list(typed.fields) == ["b", "a"]
    assert np.unpackbits(present(typed.validity), count=6, bitorder="little").tolist() == [1, 1, 1, 1, 0, 0]
    strings = typed.fields["b"]
    assert isinstance(strings.typed_value, Column)
    assert strings.typed_value.to_pylist() == ["x", None, None, None, None, None]
    assert present(strings.value).to_pylist() == [None, b"\x0c\x02", None, None, None, None]
    assert VariantColumn.from_shredded(variants.metadata, shredded, bitmap(1, 1, 1, 1, 1, 0)).to_pylist() == rows


def schema_like(tree: Any) -> st.SearchStrategy[ShreddingSchema]:
    """Schemas that fit some of what a tree holds."""
    types = st.sampled_from([None, STRING, INT8, INT64, MONEY, WIDE, BINARY, TIMESTAMP, UUID_TYPE, ColumnType(Type.DOUBLE)])
    if isinstance(tree, dict) and tree:
        fields = st.fixed_dictionaries({}, optional={name: schema_like(part) for name, part in tree.items()})
        return st.one_of(types, fields.map(lambda found: found or None))
    if isinstance(tree, list) and tree:
        return st.one_of(types, schema_like(tree[0]).map(lambda inner: [inner]))
    return types


EXACT = {Kind.DECIMAL4, Kind.DECIMAL8, Kind.DECIMAL16, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64}


def normal(tree: Any) -> Any:
    """A tree with all exact numbers of one type."""
    if isinstance(tree, dict):
        return {name: normal(part) for name, part in tree.items()}
    if isinstance(tree, list):
        return [normal(part) for part in tree]
    return ("exact", decimal.Decimal(tree.value)) if tree.kind in EXACT else tree


@settings(max_examples=300)
@given(st.lists(trees, min_size=1, max_size=6), st.data())
def test_there_and_back(rows: list[Any], data: Any) -> None:
    schema = data.draw(schema_like(data.draw(st.sampled_from(rows))))
    variants = VariantColumn.from_pylist(rows, nulls=False)
    back = VariantColumn.from_shredded(variants.metadata, variants.shred(schema))
    assert [normal(row) for row in back.to_pylist(typed=True)] == [normal(row) for row in rows]
    for variant in map(back.__getitem__, range(len(rows))):
        assert variant is not None
        variant.check()


def test_many_rows_of_many_dictionaries() -> None:
    """Rows in which the same name has another id each time, over several blocks."""
    rows = [{f"x{i % 7}": i, "a": {"b": i}, "z": [i, str(i)]} for i in range(3000)]
    variants = [Variant.from_python(row) for row in rows]
    whole = VariantColumn(column([v.metadata for v in variants]), column([v.value for v in variants]))
    shredded = whole.shred({"a": {"b": INT32}, "x3": INT64, "z": [STRING]})
    back = VariantColumn.from_shredded(whole.metadata, shredded)
    assert back.to_pylist() == rows
    whole_rows = shredded.typed_value
    assert isinstance(whole_rows, ShreddedObject)
    inner = whole_rows.fields["a"].typed_value
    assert isinstance(inner, ShreddedObject)
    numbers = inner.fields["b"].typed_value
    assert isinstance(numbers, Column)
    assert numbers.to_pylist() == list(range(3000))


def test_unsorted_objects_of_old_duckdb_are_put_in_order() -> None:
    metadata = b"\x11\x03\x00\x01\x02\x04bazz"
    raw = b"\x02\x03\x00\x01\x02\x00\x05\x07\x10\x14\x01\x00\x00\x00\x05x\x03\x01\x00\x05\x14\x01\x00\x00\x00"
    whole = VariantColumn(column([metadata]), column([raw]))
    shredded = whole.shred({"zz": [INT32]})
    assert shredded.value is not None
    [rest] = shredded.value.to_pylist()
    assert Variant(reference.metadata(["b", "a"]), rest).to_python() == {"a": "x", "b": 1}
    back = VariantColumn.from_shredded(whole.metadata, shredded)
    assert back.to_json() == ['{"a":"x","b":1,"zz":[1]}']


# ---- the group in a schema


def schema_of(*elements: Any) -> GroupNode:
    root = fmt.SchemaElement(name="schema", num_children=1)
    [group] = ParquetSchema.from_thrift([root, *elements]).root.children
    assert isinstance(group, GroupNode)
    return group


def test_groups_to_write() -> None:
    elements = variant_elements("v", {"a": INT32, "t": [STRING], "n": None}, nullable=False)
    group = schema_of(*elements)
    check_variant(group)
    assert group.named("typed_value")
    assert [node.repetition.name for node in group.named("metadata")] == ["REQUIRED"]
    assert [node.repetition.name for node in group.named("value")] == ["OPTIONAL"]
    plain = schema_of(*variant_elements("v"))
    check_variant(plain)
    assert not plain.named("typed_value")
    assert [node.repetition.name for node in plain.named("value")] == ["REQUIRED"]
    text = str(ParquetSchema.from_thrift([fmt.SchemaElement(name="schema", num_children=1), *elements]))
    assert "required group v (VARIANT(1)) {" in text
    assert "      required group t {\n        optional binary value;\n        optional group typed_value (LIST) {" in text


def name_other_fields(elements: list[fmt.SchemaElement]) -> None:
    elements[2].name, elements[3].name = "v", "w"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: setattr(e[1], "name", "meta"), "has no metadata"),
        (lambda e: setattr(e[1], "type", Type.INT32), "not BYTE_ARRAY"),
        (lambda e: setattr(e[2], "repetition_type", 2), "repeated"),
        (name_other_fields, "neither value nor"),
        (lambda e: setattr(e[4], "repetition_type", 1), "three levels"),
        (lambda e: setattr(e[0].logicalType.VARIANT, "specification_version", 2), "version 2"),
    ],
)
def test_groups_that_are_wrong(change: Any, message: str) -> None:
    elements = variant_elements("v", [INT32])
    change(elements)
    with pytest.raises((FormatError, fastpq.UnsupportedError), match=message):
        check_variant(schema_of(*elements))


# ---- schemas from a sample


@pytest.mark.parametrize(
    ("rows", "schema"),
    [
        ([1, 2, None, 300], ColumnType(Type.INT32, logical=Integer(16, signed=True))),
        ([1, "x"], None),
        (["x"] * 9 + [1], STRING),
        ([None, None], None),
        ([], None),
        ([decimal.Decimal("1.25"), 100, decimal.Decimal("-3")], ColumnType(Type.INT32, logical=Decimal(5, 2))),
        ([decimal.Decimal("1e-10"), 10**10], ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(21, 10))),
        ([decimal.Decimal("1e-30"), 10**18], None),
        ([[1], [], [2, None]], [INT8]),
        ([[]], None),
        ([{"a": True, "b": [{"c": "x"}]}, {"a": False}], {"a": ColumnType(Type.BOOLEAN), "b": [{"c": STRING}]}),
        ([{"a": 1}] * 20 + [{"rare": 1}], {"a": INT8}),
        ([{}], None),
        ([uuid.UUID(int=1)], UUID_TYPE),
    ],
)
def test_inference(rows: list[Any], schema: ShreddingSchema) -> None:
    variants = VariantColumn.from_pylist(rows)
    assert infer_schema(variants) == schema
    shredded = variants.shred(infer_schema(variants))
    validity = np.packbits(np.array([row is not None for row in rows], np.bool_), bitorder="little")
    assert VariantColumn.from_shredded(variants.metadata, shredded, validity).to_pylist() == rows


def test_inference_is_bounded() -> None:
    variants = VariantColumn.from_pylist([{f"f{i}": {"x": [[1]]} for i in range(50)}] * 20)
    found = infer_schema(variants, max_fields=10)
    assert isinstance(found, dict)
    assert len(found) == 10
    assert all(inner is None for inner in found.values())
    assert infer_schema(variants, max_depth=0) is None
    found = infer_schema(variants, max_depth=1)
    assert isinstance(found, dict)
    assert set(found.values()) == {None}

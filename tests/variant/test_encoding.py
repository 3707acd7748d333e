"""The binary encoding: the specification's files, a reference in plain Python, and every way in which bytes can be wrong."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import re
import struct
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.table import Column
from fastpq.errors import FormatError, LimitError, ParquetError, SchemaError
from fastpq.variant import MAX_DEPTH, Kind, Primitive, Variant, VariantColumn
from tests.requirements import DATA, needs_data
from tests.variant import reference
from tests.variant.reference import Shape
from tests.variant.strategies import shapes, trees

FOLDER = DATA / "parquet-testing/variant"
EMPTY = b"\x01\x00\x00"
ABC = reference.metadata(["a", "b", "c"])



# ---- the files of parquet-testing

UTC = datetime.UTC
OWN_TYPES: dict[str, Any] = {  # what the JSON of the expectations cannot say, or says in another way
    "long_string": "This string is for sure and certainly longer",
    "primitive_binary": bytes.fromhex("031337deadbeefcafe"),
    "primitive_date": datetime.date(2025, 4, 16),
    "primitive_decimal16": decimal.Decimal("12345678912345678.90"),
    "primitive_decimal4": decimal.Decimal("12.34"),
    "primitive_decimal8": decimal.Decimal("12345678.90"),
    "primitive_float": 1234567936.0,
    "primitive_time": datetime.time(12, 33, 54, 123456),
    "primitive_timestamp": datetime.datetime(2025, 4, 16, 16, 34, 56, 780000, UTC),
    "primitive_timestampntz": datetime.datetime(2025, 4, 16, 12, 34, 56, 780000),
    "primitive_timestamp_nanos": Primitive(Kind.TIMESTAMP_NANOS, 1730982834123456789),
    "primitive_timestampntz_nanos": Primitive(Kind.TIMESTAMP_NTZ_NANOS, 1730982834123456789),
    "primitive_uuid": uuid.UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56"),
}


def expectations() -> dict[str, Any]:
    path = FOLDER / "data_dictionary.json"
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(re.sub(r",\s*}\s*$", "}", path.read_text()), parse_float=decimal.Decimal)
    return found | OWN_TYPES


def stored(name: str) -> Variant:
    return Variant((FOLDER / f"{name}.metadata").read_bytes(), (FOLDER / f"{name}.value").read_bytes())


@needs_data
@pytest.mark.parametrize("name", expectations())
def test_files_of_parquet_testing(name: str) -> None:
    variant, expected = stored(name), expectations()[name]
    variant.check()
    found = variant.to_python()
    if name == "long_string":
        found = found[: len(expected)]
    if name == "primitive_double":
        expected = float(expected)
    assert found == expected
    assert type(found) is type(expected)
    again = Variant.from_python(variant.to_python(typed=True))
    assert again.to_python(typed=True) == variant.to_python(typed=True)
    if not isinstance(found, list | dict):  # objects have their values and names in another order
        assert again.value == variant.value


@needs_data
def test_every_file_of_parquet_testing_has_an_expectation() -> None:
    assert {path.stem for path in FOLDER.glob("*.value")} == set(expectations())


# ---- against the reference


@settings(max_examples=300)
@given(trees, shapes, st.randoms(use_true_random=False))
def test_values_of_the_reference_are_read(tree: Any, shape: Shape, random: Any) -> None:
    metadata, value = reference.variant(tree, shape, lambda names: random.sample(sorted(names), len(names)))
    variant = Variant(metadata, value)
    variant.check()
    assert variant.to_python(typed=True) == tree


@settings(max_examples=300)
@given(trees)
def test_values_are_written_as_the_reference_does(tree: Any) -> None:
    assert Variant.from_python(tree) == Variant(*reference.variant(tree))


@settings(max_examples=100)
@given(st.lists(trees, max_size=8))
def test_columns(rows: list[Any]) -> None:
    column = VariantColumn.from_pylist(rows)
    assert column.to_pylist(typed=True) == rows
    assert [variant and variant.to_python(typed=True) for variant in map(column.__getitem__, range(len(rows)))] == rows


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 70_000])
@pytest.mark.parametrize("size", [0, 1, 300])
def test_large_arrays_and_objects(count: int, size: int) -> None:
    """All widths of offsets, ids and counts up to three bytes."""
    text = Primitive(Kind.STRING, "x" * size)
    array, fields = [text] * count, {f"{i:05}": text for i in range(count)}
    for value in (array, fields):
        variant = Variant.from_python(value)
        variant.check()
        assert variant.to_python(typed=True) == value
        if count <= 257:
            assert variant == Variant(*reference.variant(value))


def test_four_byte_offsets() -> None:
    value = ["x" * (1 << 24), "y"]
    variant = Variant.from_python(value)
    assert variant.value[0] == 0b1111  # an array with offsets of four bytes
    assert variant.to_python() == value


def test_the_specifications_example_of_an_object() -> None:
    """Fields in the order of their names, values in any."""
    metadata = reference.metadata(["c", "b", "a"])
    value = bytes([0b10, 3, 2, 1, 0, 4, 2, 0, 6, 12, 3, 12, 2, 12, 1])
    assert Variant(metadata, value).to_python() == {"a": 1, "b": 2, "c": 3}
    Variant(metadata, value).check()


def test_dictionaries_in_the_order_of_the_names_or_as_met() -> None:
    value = {"b": {"d": 1, "a": 2}, "a": [{"c": 3}]}
    as_met = Variant.from_python(value, sort=False)
    assert as_met.metadata == reference.metadata(["b", "a", "d", "c"])
    assert as_met.metadata[0] == 0x01
    assert Variant.from_python(value).metadata == reference.metadata(["a", "b", "c", "d"])
    assert as_met.to_python() == value
    as_met.check()


# ---- Python objects


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, Kind.NULL), (True, Kind.TRUE), (False, Kind.FALSE), (127, Kind.INT8), (-128, Kind.INT8), (128, Kind.INT16),
        (-32769, Kind.INT32), (1 << 31, Kind.INT64), (-(1 << 63), Kind.INT64), (1 << 63, Kind.DECIMAL16), (0.5, Kind.DOUBLE),
        (decimal.Decimal("999999999"), Kind.DECIMAL4), (decimal.Decimal("1e-10"), Kind.DECIMAL8),
        (decimal.Decimal("1e9"), Kind.DECIMAL8), (decimal.Decimal("1e37"), Kind.DECIMAL16),
        (datetime.date(1, 1, 1), Kind.DATE), (datetime.time(23, 59, 59, 999999), Kind.TIME),
        (datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), Kind.TIMESTAMP_NTZ),
        (datetime.datetime(1, 1, 1, tzinfo=UTC), Kind.TIMESTAMP), (b"\x00", Kind.BINARY), ("é" * 32, Kind.STRING),
        (uuid.UUID(int=5), Kind.UUID),
    ],
)
def test_types_of_python_objects(value: Any, kind: Kind) -> None:
    variant = Variant.from_python(value)
    variant.check()
    assert variant.to_python() == value
    assert variant.to_python(typed=True).kind == kind


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(5), 5), (np.uint64(1 << 63), decimal.Decimal(1 << 63)), (np.float64(0.1), 0.1), (np.bool_(True), True),
        (np.float32(0.5), Primitive(Kind.FLOAT, 0.5)), (np.str_("a"), "a"), (np.bytes_(b"a"), b"a"), ((1, 2), [1, 2]),
        (np.datetime64("2020-02-29"), datetime.date(2020, 2, 29)), (np.datetime64("NaT"), None),
        (np.datetime64("2020-02-29T01:02:03", "s"), datetime.datetime(2020, 2, 29, 1, 2, 3)),
        (np.datetime64(5, "ns"), Primitive(Kind.TIMESTAMP_NTZ_NANOS, 5)), (bytearray(b"x"), b"x"),
        (datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
         datetime.datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_what_else_is_taken(value: Any, expected: Any) -> None:
    typed = isinstance(expected, Primitive) and expected.kind == Kind.FLOAT
    assert Variant.from_python(value).to_python(typed=typed) == expected


@pytest.mark.parametrize(
    "value",
    [
        object(), {1: 2}, {"a": {2, 3}}, 10**38, decimal.Decimal("NaN"), decimal.Decimal("1e-39"), decimal.Decimal("1e38"),
        "\ud800", {"\udfff": 1}, datetime.time(1, tzinfo=UTC), np.timedelta64(1, "s"), np.datetime64(1, "ps"), 1j,
        Primitive(Kind.INT8, 128), Primitive(Kind.INT8, 1.0), Primitive(Kind.DECIMAL4, decimal.Decimal("1234567890")),
        Primitive(Kind.NULL, 1), Primitive(Kind.TRUE, False), Primitive(Kind.STRING, b"x"), Primitive(Kind.INT8, True),
    ],
)
def test_what_no_variant_holds(value: Any) -> None:
    with pytest.raises(SchemaError):
        Variant.from_python([value])


def test_what_python_has_no_type_for() -> None:
    for kind, number in [
        (Kind.DATE, -(1 << 31)), (Kind.DATE, 2_932_897), (Kind.TIMESTAMP, 1 << 62), (Kind.TIMESTAMP_NTZ, -(1 << 63)),
        (Kind.TIME, 86_400_000_000), (Kind.TIME, -1),
    ]:
        variant = Variant.from_python(Primitive(kind, number))
        assert variant.to_python() == Primitive(kind, number)
        assert variant.to_json()


# ---- wrong bytes

ARRAY_OF_TWO = bytes([0b11, 2, 0, 2, 4, 12, 1, 12, 2])
OBJECT_OF_TWO = bytes([0b10, 2, 0, 1, 0, 2, 4, 12, 1, 12, 2])


@pytest.mark.parametrize(
    ("metadata", "value", "message"),
    [
        (b"", b"\x00", "end early"),
        (b"\x02\x00\x00", b"\x00", "version"),
        (b"\x00\x00\x00", b"\x00", "version"),
        (b"\x01", b"\x00", "end early"),
        (b"\xc1\xff\xff\xff\xff", b"\x00", "end early"),
        (b"\x01\xff\x00\x01", b"\x00", "end early"),
        (b"\x01\x01\x01\x01a", b"\x00", "do not rise"),
        (b"\x01\x01\x00\x02a", b"\x00", "do not rise"),
        (b"\x01\x02\x00\x02\x01ab", b"\x00", "do not rise"),
        (b"\x01\x01\x00\x01ab", b"\x00", "do not rise"),
        (b"\x01\x01\x00\x01\xff", b"\x00", "UTF-8"),
        (b"\x01\x02\x00\x01\x02\xc3\xa9", b"\x00", "UTF-8"),
        (EMPTY, b"", "end early"),
        (EMPTY, b"\x00\x00", "after the end"),
        (EMPTY, bytes([21 << 2]), "primitive type"),
        (EMPTY, bytes([63 << 2]), "primitive type"),
        (EMPTY, bytes([Kind.INT64 << 2, 1, 2, 3]), "end early"),
        (EMPTY, bytes([Kind.STRING << 2]) + struct.pack("<I", 0xFFFFFFFF) + b"abc", "end early"),
        (EMPTY, bytes([Kind.BINARY << 2, 1, 0, 0]), "end early"),
        (EMPTY, bytes([Kind.STRING << 2, 1, 0, 0, 0, 0x80]), "UTF-8"),
        (EMPTY, bytes([2 << 2 | 1, 0x41]), "end early"),
        (EMPTY, bytes([1 << 2 | 1, 0xFF]), "UTF-8"),
        (EMPTY, bytes([Kind.DECIMAL4 << 2, 39, 0, 0, 0, 0]), "decimal"),
        (EMPTY, bytes([Kind.DECIMAL16 << 2, 0]) + (10**38).to_bytes(16, "little"), "decimal"),
        (EMPTY, bytes([Kind.DECIMAL16 << 2, 0]) + bytes(15) + b"\x80", "decimal"),
        (EMPTY, bytes([0b11]), "end early"),
        (EMPTY, bytes([0b11, 5]), "end early"),
        (EMPTY, bytes([0b10011, 0xFF, 0xFF, 0xFF, 0xFF, 0]), "end early"),
        (EMPTY, ARRAY_OF_TWO[:-1], "end early"),
        (EMPTY, bytes([0b11, 0, 1, 0]), "fill their space"),
        (EMPTY, bytes([0b11, 2, 2, 0, 4, 12, 1, 12, 2]), "fill their space"),      # an array backwards
        (EMPTY, bytes([0b11, 2, 0, 0, 2, 12, 1]), "fill their space"),             # one value twice
        (EMPTY, bytes([0b11, 1, 0, 3, 12, 1, 0]), "fill their space"),             # a gap
        (EMPTY, OBJECT_OF_TWO, "field id"),
        (ABC, bytes([0b10, 2, 0, 0, 0, 2, 4, 12, 1, 12, 2]), "twice"),
        (ABC, bytes([0b10, 3, 1, 0, 1, 0, 2, 4, 6, 12, 1, 12, 2, 12, 3]), "twice|not sorted"),
        (reference.metadata(["a", "a"]), OBJECT_OF_TWO, "twice"),
        (ABC, bytes([0b10, 2, 0, 1, 0, 0, 4, 12, 1, 12, 2]), "fill their space"),
        (ABC, bytes([0b10, 2, 0, 1, 0, 3, 4, 12, 1, 12, 2]), "end early"),
        # overlap and gap of the same size: inside, a value of three bytes, is also the start of another
        (ABC, bytes([0b10, 2, 0, 1, 0, 1, 5, 16, 12, 7, 0, 0]), "fill their space"),
    ],
)
def test_wrong_bytes(metadata: bytes, value: bytes, message: str) -> None:
    for read in (Variant.to_python, Variant.to_json, Variant.check):
        with pytest.raises(FormatError, match=message):
            read(Variant(metadata, value))


@pytest.mark.parametrize(
    ("metadata", "value", "expected"),
    [
        # DuckDB 1.5 says of its dictionaries that they are sorted and writes fields in the order of their ids
        (b"\x11\x03\x00\x01\x02\x04bazz",
         b"\x02\x03\x00\x01\x02\x00\x05\x07\x10\x14\x01\x00\x00\x00\x05x\x03\x01\x00\x05\x14\x01\x00\x00\x00",
         {"b": 1, "a": "x", "zz": [1]}),
        (EMPTY, bytes([Kind.DECIMAL4 << 2, 0]) + struct.pack("<i", 2**31 - 1), decimal.Decimal(2**31 - 1)),
        (EMPTY, bytes([Kind.TIME << 2]) + struct.pack("<q", -1), Primitive(Kind.TIME, -1)),
    ],
)
def test_what_is_read_but_not_approved(metadata: bytes, value: bytes, expected: Any) -> None:
    variant = Variant(metadata, value)
    assert variant.to_python() == expected
    with pytest.raises(FormatError):
        variant.check()


def test_reserved_bits_are_ignored() -> None:
    assert Variant(bytes([0x21, 0, 0]), bytes([0b11100011, 1, 0, 1, 0])).to_python() == [None]
    assert Variant(bytes([0x31, 1, 0, 1]) + b"a", bytes([0b10000010, 1, 0, 0, 1, 0])).to_python() == {"a": None}


def test_depth() -> None:
    deepest, too_deep = b"\x00", b"\x00"
    for depth in range(MAX_DEPTH + 1):
        size = len(too_deep).bit_length() + 7 >> 3
        deepest = too_deep
        too_deep = bytes([(size - 1) << 2 | 3, 1]) + bytes(size) + len(too_deep).to_bytes(size, "little") + too_deep
        assert depth <= MAX_DEPTH
    Variant(EMPTY, deepest).check()
    assert Variant(EMPTY, deepest).to_json() == "[" * MAX_DEPTH + "null" + "]" * MAX_DEPTH
    with pytest.raises(LimitError, match="MAX_DEPTH"):
        Variant(EMPTY, too_deep).to_python()
    nested: Any = None
    for _ in range(MAX_DEPTH):
        nested = [nested]
    assert Variant.from_python(nested).value == deepest
    with pytest.raises(LimitError, match="MAX_DEPTH"):
        Variant.from_python([nested])


def test_values_that_share_bytes_do_not_multiply_work() -> None:
    """Each level twice the one below, all in the same bytes: refused at the first overlap."""
    value = b"\x00"
    for _ in range(60):
        value = bytes([0b0111, 2]) + struct.pack("<HHH", 0, 0, len(value)) + value
    with pytest.raises(FormatError, match="overlap"):
        Variant(EMPTY, value).to_python()


@settings(max_examples=300)
@given(trees, shapes, st.data())
def test_altered_bytes_end_in_a_value_or_a_typed_error(tree: Any, shape: Shape, data: Any) -> None:
    parts = [bytearray(part) for part in reference.variant(tree, shape)]
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from([part for part in parts if part]))
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    variant = Variant(bytes(parts[0]), bytes(parts[1]))
    try:
        found = variant.to_python(typed=True)
    except ParquetError:
        return
    assert variant.to_python(typed=True) == found or "nan" in repr(found)
    json.loads(variant.to_json())


def test_a_column_names_the_wrong_row() -> None:
    column = VariantColumn.from_pylist([1, {"a": 2}, None, 3])
    values = column.value.values
    assert isinstance(values, BinaryOffsets)
    data = np.array(values.data)
    data[2] = 63 << 2
    broken = VariantColumn(
        column.metadata,
        Column(column.value.type, BinaryOffsets(values.offsets, data), column.value.validity, 1),
    )
    with pytest.raises(FormatError, match="row 1"):
        broken.to_pylist()
    with pytest.raises(FormatError, match="row 1"):
        broken.to_json()


def test_null_rows_and_variant_nulls() -> None:
    column = VariantColumn.from_pylist([None, 1])
    assert column.to_json() == [None, "1"]
    assert VariantColumn.from_pylist([None, 1], nulls=False).to_json() == ["null", "1"]
    assert VariantColumn.from_json([None, "null", "1"]).to_json() == [None, "null", "1"]
    assert column[-2] is None
    with pytest.raises(IndexError):
        column[2]


def test_rows_of_one_dictionary_and_of_many() -> None:
    rows = [{"b": i, "a": [i]} for i in range(3000)]
    column = VariantColumn.from_pylist(rows)
    assert column.to_pylist() == rows
    variants = [Variant.from_python(row) for row in rows]
    assert len(set(itertools.chain(column.metadata.to_pylist(), (v.metadata for v in variants)))) == 1

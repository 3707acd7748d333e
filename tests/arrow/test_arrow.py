"""Arrow structures made by hand, good and broken, against the rules of the C data interface."""

from __future__ import annotations

import ctypes
import gc
import struct
from typing import Any

import numpy as np
import pytest

from fastpq.arrays.table import BinaryViews, Column, DictionaryValues, Table
from fastpq.arrow import export_stream, import_column, import_table
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.schema.types import ColumnType, Date, Decimal, Json, Time, Timestamp, Type, Uuid
from tests.arrow.arrow_producer import (
    CArray,
    Field,
    Producer,
    StreamProducer,
    Values,
    capsule_pointer,
    metadata,
)
from tests.narrowing import flat, present

INT32 = ColumnType(Type.INT32)


def ints(*values: int) -> bytes:
    return struct.pack(f"={len(values)}i", *values)


def longs(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


def column_of(schema: Field, values: Values) -> Column:
    return flat(import_column(Producer(schema, values)))


def bits_of(bitmap: np.ndarray[Any, Any] | bytes | None) -> list[int]:
    assert bitmap is not None
    return [byte >> i & 1 for byte in bytes(bitmap) for i in range(8)]


def test_values_are_the_producers_memory_and_released_once() -> None:
    producer = Producer(Field(b"i"), Values(3, [None, ints(7, 8, 9)]))
    column = import_column(producer)
    assert column.type == INT32
    values = column.values
    assert isinstance(values, np.ndarray)
    assert values.tolist() == [7, 8, 9]
    assert not values.flags.owndata
    assert not values.flags.writeable
    assert (producer.schemas, producer.arrays) == (1, 0)
    part = values[1:]
    del column, values
    gc.collect()
    assert producer.arrays == 0
    assert part.tolist() == [8, 9]
    del part
    gc.collect()
    assert (producer.schemas, producer.arrays) == (1, 1)


def test_children_live_each_on_their_own() -> None:
    producer = Producer(
        Field(b"+s", children=[Field(b"i", b"a"), Field(b"l", b"b")]),
        Values(2, [None], children=[Values(2, [None, ints(1, 2)]), Values(2, [None, longs(3, 4)])]),
    )
    table = import_table(producer)
    assert producer.arrays == 1  # the struct itself
    second = table.flat("b")
    del table
    gc.collect()
    assert producer.arrays == 2
    assert np.asarray(second.values).tolist() == [3, 4]
    del second
    gc.collect()
    assert producer.arrays == 3


def test_struct_offset_and_child_offset_add_up() -> None:
    child = Values(9, [bytes([0b11101111, 0b11]), ints(*range(10))], null_count=1, offset=1)
    schema = Field(b"+s", children=[Field(b"i", b"a")])
    column = import_table(Producer(schema, Values(5, [None], offset=2, children=[child]))).flat("a")
    assert np.asarray(column.values).tolist() == [3, 0, 5, 6, 7]
    assert (column.null_count, bits_of(column.validity)[:5]) == (1, [1, 0, 1, 1, 1])
    with pytest.raises(SchemaError, match="rows 2 to 12"):
        import_table(Producer(schema, Values(10, [None], offset=2, children=[child])))


def test_what_stands_under_nulls_becomes_zero() -> None:
    column = column_of(Field(b"i"), Values(3, [bytes([0b101]), ints(7, 8, 9)], null_count=-1))
    assert np.asarray(column.values).tolist() == [7, 0, 9]
    assert column.null_count == 1
    view = struct.pack("=i4sii", 99, b"junk", 7, 7)
    column = column_of(Field(b"vu"), Values(2, [bytes([0b01]), struct.pack("=i12s", 1, b"x") + view, None], null_count=1))
    assert isinstance(column.values, BinaryViews)
    assert bytes(column.values.views[1]) == bytes(16)


def test_unaligned_values_are_copied() -> None:
    producer = Producer(Field(b"l"), Values(2, [None, longs(5, 6, 7)]))
    schema, capsule = producer.__arrow_c_array__()
    array = CArray.from_address(capsule_pointer(capsule, b"arrow_array"))
    buffers = (ctypes.c_void_p * 2).from_address(array.buffers)
    buffers[1] = present(buffers[1]) + 3

    class Shifted:
        def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
            return schema, capsule

    values = flat(import_column(Shifted())).values
    assert isinstance(values, np.ndarray)
    assert values.flags.aligned
    assert values.tobytes() == longs(5, 6, 7)[3:19]


def test_seconds_dates_and_decimals() -> None:
    assert column_of(Field(b"tts"), Values(2, [None, ints(1, 86399)])).type == ColumnType(Type.INT32, None, Time("ms"))
    column = column_of(Field(b"tss:Europe/Berlin"), Values(2, [None, longs(-5, 9_223_372_036_854_775)]))
    assert column.type == ColumnType(Type.INT64, None, Timestamp("ms", utc=True))
    assert np.asarray(column.values).tolist() == [-5000, 9_223_372_036_854_775_000]
    for seconds in (9_223_372_036_854_776, -9_223_372_036_854_776):
        with pytest.raises(SchemaError, match="too many for"):
            column_of(Field(b"tss:"), Values(1, [None, longs(seconds)]))
    column = column_of(Field(b"tdm"), Values(2, [None, longs(-86_400_000, 172_800_000)]))
    assert column.type == ColumnType(Type.INT32, None, Date())
    assert np.asarray(column.values).tolist() == [-1, 2]
    for milliseconds in (1, 86_400_000 * 2**31):
        with pytest.raises(SchemaError, match="whole number of int32 days"):
            column_of(Field(b"tdm"), Values(1, [None, longs(milliseconds)]))
    wide = (-12345).to_bytes(32, "little", signed=True)
    column = column_of(Field(b"d:20,3,256"), Values(1, [None, wide]))
    assert column.type == ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 9, Decimal(20, 3))
    assert np.asarray(column.values).tobytes() == wide[:16]
    with pytest.raises(SchemaError, match="128 bits"):
        column_of(Field(b"d:20,3,256"), Values(1, [None, (2**128).to_bytes(32, "little")]))


@pytest.mark.parametrize(
    ("precision", "length"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16), (39, 17), (76, 32)]
)
def test_decimal_length_is_the_least(precision: int, length: int) -> None:
    width = 16 if precision <= 38 else 32
    field = Field(b"d:%d,0,%d" % (precision, width * 8))
    assert column_of(field, Values(1, [None, bytes(width)])).type.length == length


def test_extension_types() -> None:
    def typed(name: bytes, storage: bytes, buffers: list[bytes | None]) -> ColumnType:
        packed = metadata({b"other": b"", b"ARROW:extension:name": name, b"ARROW:extension:metadata": b""})
        return column_of(Field(storage, metadata=packed), Values(1, buffers)).type

    assert typed(b"arrow.uuid", b"w:16", [None, bytes(16)]).logical == Uuid()
    assert typed(b"arrow.json", b"u", [None, ints(0, 2), b"{}"]).logical == Json()
    assert typed(b"arrow.json", b"z", [None, ints(0, 2), b"{}"]).logical is None
    assert typed(b"arrow.bool8", b"c", [None, b"\1"]).logical is not None  # by its storage, int8
    assert typed(b"someone.else", b"w:16", [None, bytes(16)]).logical is None


def test_dictionary_with_nulls_and_repeated_entries() -> None:
    entries = Values(4, [bytes([0b1101]), ints(0, 1, 1, 2, 3), b"xyx"], null_count=1)
    schema = Field(b"C", dictionary=Field(b"u"))
    column = column_of(schema, Values(5, [bytes([0b10111]), bytes([0, 1, 2, 200, 3])], null_count=1, dictionary=entries))
    assert isinstance(column.values, DictionaryValues)
    assert column.values.codes.dtype == np.int32
    assert column.values.codes.tolist() == [0, 0, 2, 0, 3]
    assert (column.null_count, bits_of(column.validity)[:5]) == (2, [1, 0, 1, 0, 1])
    assert column.values.dictionary.null_count == 0


def test_dictionary_of_numbers_is_decoded() -> None:
    entries = Values(2, [None, ints(10, 20)])
    schema = Field(b"s", dictionary=Field(b"i"))
    codes = struct.pack("=3h", 1, 0, 1)
    column = column_of(schema, Values(3, [bytes([0b101]), codes], null_count=1, dictionary=entries))
    assert column.type == INT32
    assert np.asarray(column.values).tolist() == [20, 0, 20]


def test_zero_length_arrays_may_have_null_buffers() -> None:
    for text in (b"i", b"b", b"u", b"Z", b"vu", b"w:3", b"d:5,1", b"n", b"tss:"):
        count = {b"n": 0, b"u": 3, b"Z": 3, b"vu": 3}.get(text, 2)
        assert len(column_of(Field(text), Values(0, [None] * count))) == 0
    column = column_of(Field(b"i", dictionary=Field(b"u")), Values(0, [None, None], dictionary=Values(0, [None] * 3)))
    assert isinstance(column.values, DictionaryValues)


OFFSETS = Field(b"u", b"c")
VIEWS = Field(b"vu", b"c")
CODES = Field(b"i", b"c", dictionary=Field(b"u"))
WORDS = Values(2, [None, ints(0, 1, 2), b"ab"])


def long_view(length: int, buffer: int, offset: int) -> bytes:
    return struct.pack("=i4sii", length, b"abcd", buffer, offset)


BROKEN: dict[str, tuple[Field, Values, str]] = {
    "negative length": (Field(b"i", b"c"), Values(-1, [None, b""]), "length -1"),
    "huge length": (Field(b"i", b"c"), Values(2**60, [None, b""]), "length"),
    "negative offset": (Field(b"i", b"c"), Values(1, [None, ints(1)], offset=-1), "offset -1"),
    "null count below -1": (Field(b"i", b"c"), Values(1, [None, ints(1)], null_count=-2), "-2 nulls"),
    "null count above length": (Field(b"i", b"c"), Values(1, [None, ints(1)], null_count=2), "2 nulls"),
    "null count is wrong": (
        Field(b"i", b"c"),
        Values(2, [b"\1", ints(1, 2)], null_count=2),
        "claims 2 nulls but has 1",
    ),
    "null count hides nulls": (Field(b"i", b"c"), Values(2, [b"\1", ints(1, 2)]), "claims 0 nulls but has 1"),
    "nulls without bitmap": (Field(b"i", b"c"), Values(2, [None, ints(1, 2)], null_count=1), "no validity bitmap"),
    "nulls in a required field": (Field(b"i", b"c", 0), Values(2, [b"\1", ints(1, 2)], null_count=1), "without nulls"),
    "too few buffers": (Field(b"i", b"c"), Values(1, [None]), "1 buffers instead of 2"),
    "too many buffers": (Field(b"i", b"c"), Values(1, [None, ints(1), ints(1)]), "3 buffers instead of 2"),
    "no list of buffers": (Field(b"i", b"c"), Values(1, n_buffers=2), "no list"),
    "negative buffers": (Field(b"i", b"c"), Values(1, n_buffers=-2), "-2 buffers"),
    "values are NULL": (Field(b"i", b"c"), Values(1, [None, None]), "buffer 1 .* is NULL"),
    "bits are NULL": (Field(b"b", b"c"), Values(1, [None, None]), "buffer 1 .* is NULL"),
    "offsets are NULL": (OFFSETS, Values(1, [None, None, b"a"]), "buffer 1 .* is NULL"),
    "data is NULL": (OFFSETS, Values(1, [None, ints(0, 1), None]), "buffer 2 .* is NULL"),
    "children of a flat type": (Field(b"i", b"c"), Values(1, [None, ints(1)], children=[WORDS]), "1 children"),
    "no list of children": (Field(b"i", b"c"), Values(1, [None, ints(1)], n_children=1), "no list"),
    "negative first offset": (OFFSETS, Values(1, [None, ints(-1, 1), b"a"]), "offset 0 .* -1"),
    "decreasing offsets": (OFFSETS, Values(3, [None, ints(0, 3, 2, 3), b"abc"]), "offset 2 .* 2"),
    "negative large offset": (Field(b"U", b"c"), Values(1, [None, longs(0, -1), b"a"]), "offset 1 .* -1"),
    "too few view buffers": (VIEWS, Values(1, [None, bytes(16)]), "2 buffers instead of 3"),
    "negative view length": (VIEWS, Values(1, [None, ints(-1, 0, 0, 0), None]), "view 0"),
    "dirty view padding": (VIEWS, Values(1, [None, struct.pack("=i12s", 1, b"ab"), None]), "padded"),
    "view without buffer": (VIEWS, Values(1, [None, long_view(13, 0, 0), None]), "view 0"),
    "view in another buffer": (VIEWS, Values(1, [None, long_view(13, 1, 0), bytes(20), longs(20)]), "view 0"),
    "negative view buffer": (VIEWS, Values(1, [None, long_view(13, -1, 0), bytes(20), longs(20)]), "view 0"),
    "negative view offset": (VIEWS, Values(1, [None, long_view(13, 0, -1), bytes(20), longs(20)]), "view 0"),
    "view past its buffer": (VIEWS, Values(1, [None, long_view(13, 0, 8), bytes(20), longs(20)]), "view 0"),
    "view sizes are NULL": (VIEWS, Values(1, [None, bytes(16), b"abc", None]), "buffer 3 .* is NULL"),
    "negative view size": (VIEWS, Values(1, [None, bytes(16), b"abc", longs(-1)]), "size -1"),
    "view data is NULL": (VIEWS, Values(1, [None, bytes(16), None, longs(5)]), "buffer 2 .* is NULL"),
    "code above the dictionary": (CODES, Values(1, [None, ints(2)], dictionary=WORDS), "index 2"),
    "negative code": (CODES, Values(2, [None, ints(0, -1)], dictionary=WORDS), "index -1"),
    "empty dictionary": (CODES, Values(1, [None, ints(0)], dictionary=Values(0, [None] * 3)), "index 0"),
    "no dictionary": (CODES, Values(1, [None, ints(0)]), "no dictionary"),
    "codes without buffers": (CODES, Values(1, [None], dictionary=WORDS), "1 buffers instead of 2"),
    "float codes": (Field(b"f", b"c", dictionary=Field(b"u")), Values(1, [None, ints(0)], dictionary=WORDS), "indices"),
    "decimal without scale": (Field(b"d:5", b"c"), Values(1, [None, bytes(16)]), "not a format of decimals"),
    "decimal of no digits": (Field(b"d:0,0", b"c"), Values(1, [None, bytes(16)]), "not a format of decimals"),
    "decimal of 39 digits": (Field(b"d:39,0", b"c"), Values(1, [None, bytes(16)]), "not a format of decimals"),
    "decimal of 100 bits": (Field(b"d:5,0,100", b"c"), Values(1, [None, bytes(16)]), "not a format of decimals"),
    "width in letters": (Field(b"w:x", b"c"), Values(1, [None, bytes(16)]), "syntax"),
    "negative width": (Field(b"w:-1", b"c"), Values(1, [None, bytes(16)]), "syntax"),
    "width times length": (Field(b"w:2147483647", b"c"), Values(2**56, [None, b""]), "would need"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_producers_are_refused_and_released(case: str) -> None:
    schema, values, message = BROKEN[case]
    struct = Values(max(values.length, 0), [None], children=[values])
    for take, producer in (
        (import_column, Producer(schema, values)),
        (import_table, Producer(Field(b"+s", children=[schema]), struct)),
    ):
        with pytest.raises(SchemaError, match=message):
            take(producer)
        assert producer.schemas == 1
        taken = producer.given[0].release is None
        assert producer.arrays == (producer.made if taken else 0)


UNSUPPORTED = {
    b"w:0": "0 bytes",
    b"d:5,-2": "scale",
    b"d:5,6": "scale",
    b"?": "is not supported",
}


@pytest.mark.parametrize("text", UNSUPPORTED, ids=bytes.decode)
def test_other_types_are_named_with_their_column(text: bytes) -> None:
    schema = Field(b"+s", children=[Field(b"i", b"fine"), Field(text, b"strange")])
    values = Values(0, [None], children=[Values(0, [None, None]), Values(0)])
    with pytest.raises(UnsupportedError, match=rf"{UNSUPPORTED[text]}.*column strange"):
        import_table(Producer(schema, values))


def test_struct_rules() -> None:
    schema = Field(b"+s", children=[Field(b"i", b"a")])
    child = Values(2, [None, ints(1, 2)])
    with pytest.raises(SchemaError, match="row of the struct is null"):
        import_table(Producer(schema, Values(2, [b"\1"], null_count=1, children=[child])))
    with pytest.raises(SchemaError, match="1 fields has 2 children"):
        import_table(Producer(schema, Values(2, [None], children=[child, child])))
    with pytest.raises(SchemaError, match="1 buffer, not 2"):
        import_table(Producer(schema, Values(2, [None, None], children=[child])))
    twice = import_table(Producer(Field(b"+s", children=[Field(b"i", b"a")] * 2), Values(2, [None], children=[child] * 2)))
    assert [(name, column.to_pylist()) for name, column in twice.items()] == [("a", [1, 2])] * 2
    with pytest.raises(SchemaError, match="is not a table"):
        import_table(Producer(Field(b"i"), child))
    with pytest.raises(SchemaError, match="object is not Arrow data"):
        import_table(object())


def test_consumed_capsules_and_wrong_ones() -> None:
    producer = Producer(Field(b"i"), Values(1, [None, ints(1)]))
    capsules = producer.__arrow_c_array__()

    class Again:
        def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
            return capsules

    import_column(Again())
    with pytest.raises(SchemaError, match="schema was released or consumed"):
        import_column(Again())
    capsules = (producer.__arrow_c_array__()[0], capsules[1])
    with pytest.raises(SchemaError, match="array was released or consumed"):
        import_column(Again())
    capsules = capsules[::-1]
    with pytest.raises(SchemaError, match="capsule named 'arrow_schema'"):
        import_column(Again())
    stream = export_stream(Table({"a": Column(INT32, np.zeros(1, np.int32))}))

    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return stream

    import_table(Stream())
    with pytest.raises(SchemaError, match="stream was released or consumed"):
        import_table(Stream())
    stream = None
    with pytest.raises(SchemaError, match="capsule named"):
        import_table(Stream())


@pytest.mark.parametrize("message", [b"the disk is gone", None])
@pytest.mark.parametrize("where", ["schema", "next"])
def test_failing_streams_tell_why(where: str, message: bytes | None) -> None:
    producer = StreamProducer(Field(b"+s", children=[Field(b"i", b"a")]), Values(0))
    producer.failure = (where, 5, message)
    with pytest.raises(SchemaError, match="the disk is gone" if message else "Input/output error"):
        import_table(producer)
    gc.collect()
    assert producer.streams == 1
    assert producer.arrays == 0


def test_streams_are_released_once() -> None:
    values = Values(2, [None], children=[Values(2, [None, ints(4, 5)])])
    producer = StreamProducer(Field(b"+s", children=[Field(b"i", b"a")]), values)
    table = import_table(producer)
    assert (producer.streams, producer.schemas, producer.arrays) == (1, 1, 1)
    assert np.asarray(table.flat("a").values).tolist() == [4, 5]
    del table
    gc.collect()
    assert (producer.streams, producer.schemas, producer.arrays) == (1, 1, 2)

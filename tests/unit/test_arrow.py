"""The Arrow C data interface against its specification: hand-made structures in, raw structures out."""

from __future__ import annotations

import ctypes
import gc
import random
import struct
import weakref
from typing import Any

import numpy as np
import pytest
from arrow_producer import (
    RELEASE,
    CArray,
    CSchema,
    CStream,
    Field,
    Producer,
    StreamProducer,
    Values,
    capsule_pointer,
    metadata,
)

from fastpq.arrow import concat_columns, export_array, export_schema, export_stream, import_column, import_table, loops
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.table import BinaryOffsets, BinaryViews, Column, DictionaryValues, Table
from fastpq.types import ColumnType, Date, Decimal, Json, String, Time, Timestamp, Type, Unknown, Uuid

INT32 = ColumnType(Type.INT32)
TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())


def ints(*values: int) -> bytes:
    return struct.pack(f"={len(values)}i", *values)


def longs(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


def column_of(schema: Field, values: Values) -> Column:
    return import_column(Producer(schema, values))


def bits_of(bitmap: np.ndarray[Any, Any] | bytes) -> list[int]:
    return [byte >> i & 1 for byte in bytes(bitmap) for i in range(8)]


# ---- loops, against bit by bit


@pytest.mark.parametrize("seed", range(20))
def test_copy_bits_and_set_bits_touch_only_their_run(seed: int) -> None:
    rng = random.Random(seed)
    source = rng.randbytes(40)
    for _ in range(50):
        offset, length = rng.randrange(100), rng.randrange(200)
        before = rng.randrange(40)
        target = np.zeros((before + length + 20) // 8 + 1, np.uint8)
        loops.copy_bits(np.frombuffer(source, np.uint8), offset, length, target, before)
        expected = [0] * before + bits_of(source)[offset : offset + length]
        assert bits_of(target) == expected + [0] * (len(target) * 8 - len(expected))
        ones = np.zeros_like(target)
        loops.set_bits(ones, before, length)
        assert bits_of(ones) == [0] * before + [1] * length + [0] * (len(target) * 8 - before - length)
        assert loops.count_bits(target, before + length) == sum(expected)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (loops.copy_bits, (np.zeros(2, np.uint8), 9, 8, np.zeros(2, np.uint8), 0)),
        (loops.copy_bits, (np.zeros(2, np.uint8), 0, 16, np.zeros(2, np.uint8), 1)),
        (loops.set_bits, (np.zeros(2, np.uint8), 9, 8)),
        (loops.count_bits, (np.zeros(2, np.uint8), 17)),
        (loops.dirty_null, (np.zeros(7, np.uint8), 4, np.zeros(1, np.uint8), 2)),
        (loops.dirty_null, (np.zeros(64, np.uint8), 4, np.zeros(1, np.uint8), 9)),
        (loops.clear_nulls, (np.zeros(7, np.uint8), 4, np.zeros(1, np.uint8), 2)),
        (loops.bad_view, (np.zeros(144, np.uint8), np.zeros(1, np.uint8), np.zeros(0, np.int64))),
        (loops.widen_decimals, (np.zeros(2, np.int32), np.zeros(31, np.uint8))),
        (loops.narrow_decimals, (np.zeros(64, np.uint8), np.zeros(31, np.uint8))),
        (loops.bad_offset, (np.zeros(0, np.int32),)),
    ],
)
def test_loops_check_sizes_first(call: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"outside|no offsets"):
        call(*arguments)


def test_decimals_widen_and_narrow() -> None:
    for dtype, values in ((np.int32, [0, 1, -1, 2**31 - 1, -(2**31)]), (np.int64, [5, -5, 2**63 - 1, -(2**63)])):
        out = np.zeros(16 * len(values), np.uint8)
        loops.widen_decimals(np.array(values, dtype), out)
        assert [int.from_bytes(out[i : i + 16], "little", signed=True) for i in range(0, len(out), 16)] == values
    fit = [0, -1, 2**127 - 1, -(2**127)]
    for values, wrong in ((fit, -1), ([*fit, 2**127], 4), ([-(2**127) - 1], 0), ([2**192], 0)):
        wide = np.frombuffer(b"".join(v.to_bytes(32, "little", signed=True) for v in values), np.uint8)
        out = np.zeros(16 * len(values), np.uint8)
        assert loops.narrow_decimals(wide, out) == wrong
        if wrong < 0:
            assert [int.from_bytes(out[i : i + 16], "little", signed=True) for i in range(0, len(out), 16)] == values


# ---- import of hand-made structures


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
    second = table["b"]
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
    column = import_table(Producer(schema, Values(5, [None], offset=2, children=[child])))["a"]
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
    buffers[1] += 3

    class Shifted:
        def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
            return schema, capsule

    values = import_column(Shifted()).values
    assert isinstance(values, np.ndarray)
    assert values.flags.aligned
    assert values.tobytes() == longs(5, 6, 7)[3:19]


def test_seconds_dates_and_decimals() -> None:
    assert column_of(Field(b"tts"), Values(2, [None, ints(1, 86399)])).type == ColumnType(Type.INT32, None, Time("ms"))
    column = column_of(Field(b"tss:Europe/Berlin"), Values(2, [None, longs(-5, 9_223_372_036_854_775)]))
    assert column.type == ColumnType(Type.INT64, None, Timestamp("ms", utc=True))
    assert np.asarray(column.values).tolist() == [-5000, 9_223_372_036_854_775_000]
    for seconds in (9_223_372_036_854_776, -9_223_372_036_854_776):
        with pytest.raises(SchemaError, match="overflow"):
            column_of(Field(b"tss:"), Values(1, [None, longs(seconds)]))
    column = column_of(Field(b"tdm"), Values(2, [None, longs(-86_400_000, 172_800_000)]))
    assert column.type == ColumnType(Type.INT32, None, Date())
    assert np.asarray(column.values).tolist() == [-1, 2]
    for milliseconds in (1, 86_400_000 * 2**31):
        with pytest.raises(SchemaError, match="whole int32 day"):
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
    "null count is wrong": (Field(b"i", b"c"), Values(2, [b"\1", ints(1, 2)], null_count=2), "claims 2 nulls and has 1"),
    "null count hides nulls": (Field(b"i", b"c"), Values(2, [b"\1", ints(1, 2)]), "claims 0 nulls and has 1"),
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
    "decimal without scale": (Field(b"d:5", b"c"), Values(1, [None, bytes(16)]), "not of a decimal"),
    "decimal of no digits": (Field(b"d:0,0", b"c"), Values(1, [None, bytes(16)]), "not of a decimal"),
    "decimal of 39 digits": (Field(b"d:39,0", b"c"), Values(1, [None, bytes(16)]), "not of a decimal"),
    "decimal of 100 bits": (Field(b"d:5,0,100", b"c"), Values(1, [None, bytes(16)]), "not of a decimal"),
    "width in letters": (Field(b"w:x", b"c"), Values(1, [None, bytes(16)]), "syntax"),
    "negative width": (Field(b"w:-1", b"c"), Values(1, [None, bytes(16)]), "syntax"),
    "width times length": (Field(b"w:2147483647", b"c"), Values(2**56, [None, b""]), "would have"),
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
        gc.collect()
        assert producer.schemas == 1
        taken = producer.given[0].release is None
        assert producer.arrays == (producer.made if taken else 0)


UNSUPPORTED = {
    b"+l": "list",
    b"+L": "large list",
    b"+vl": "list view",
    b"+vL": "large list view",
    b"+w:3": "fixed-size list",
    b"+s": "struct",
    b"+m": "map",
    b"+ud:0,1": "union",
    b"+us:0,1": "union",
    b"+r": "run-end encoded",
    b"tDs": "duration",
    b"tDn": "duration",
    b"tiM": "interval",
    b"tiD": "interval",
    b"tin": "interval",
    b"w:0": "0 bytes",
    b"d:5,-2": "scale",
    b"d:5,6": "scale",
    b"?": "not known",
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
    with pytest.raises(SchemaError, match="repeats 'a'"):
        import_table(Producer(Field(b"+s", children=[Field(b"i", b"a")] * 2), Values(2, [None], children=[child] * 2)))
    with pytest.raises(SchemaError, match="needs a struct"):
        import_table(Producer(Field(b"i"), child))
    with pytest.raises(SchemaError, match="neither"):
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
    assert np.asarray(table["a"].values).tolist() == [4, 5]
    del table
    gc.collect()
    assert (producer.streams, producer.schemas, producer.arrays) == (1, 1, 2)


# ---- export, read through raw pointers


def raw_array(capsule: Any) -> CArray:
    return CArray.from_address(capsule_pointer(capsule, b"arrow_array"))


def raw_schema(capsule: Any) -> CSchema:
    return CSchema.from_address(capsule_pointer(capsule, b"arrow_schema"))


def release(structure: Any) -> None:
    RELEASE(structure.release)(ctypes.addressof(structure))
    assert structure.release is None


def test_exported_arrays_keep_the_values_until_released() -> None:
    values = np.arange(5, dtype=np.int32)
    alive = weakref.ref(values)
    schema, capsule = export_array(Column(INT32, values, nullable=False))
    address = values.ctypes.data
    del values
    gc.collect()
    array = raw_array(capsule)
    pointers = (ctypes.c_void_p * array.n_buffers).from_address(array.buffers)
    assert (array.length, array.null_count, array.offset, list(pointers)) == (5, 0, 0, [None, address])
    assert (raw_schema(schema).format, raw_schema(schema).flags) == (b"i", 0)
    assert alive() is not None
    release(array)
    gc.collect()
    assert alive() is None
    del capsule, schema  # destructors of released capsules do nothing more


def test_unread_capsules_release_what_they_hold() -> None:
    values = np.arange(5, dtype=np.int32)
    alive = weakref.ref(values)
    table = Table({"a": Column(INT32, values)})
    capsules = [export_stream(table), *export_array(table["a"]), export_schema(table)]
    del values, table
    gc.collect()
    assert alive() is not None
    capsules.clear()
    gc.collect()
    assert alive() is None


def test_moved_children_outlive_their_struct() -> None:
    arrays = [np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32)]
    alive = [weakref.ref(array) for array in arrays]
    stream_capsule = export_stream(Table({name: Column(INT32, array) for name, array in zip("ab", arrays, strict=True)}))
    arrays.clear()
    stream = CStream.from_address(capsule_pointer(stream_capsule, b"arrow_array_stream"))
    get_next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(stream.get_next)
    batch = CArray()
    assert get_next(ctypes.addressof(stream), ctypes.addressof(batch)) == 0
    children = (ctypes.c_void_p * 2).from_address(batch.children)
    original = CArray.from_address(children[0])
    moved = CArray.from_buffer_copy(original)
    original.release = None
    release(batch)
    end = CArray()
    assert get_next(ctypes.addressof(stream), ctypes.addressof(end)) == 0
    assert end.release is None
    del stream_capsule
    gc.collect()
    assert alive[0]() is not None
    assert alive[1]() is None
    release(moved)
    gc.collect()
    assert alive[0]() is None


def test_strided_and_unaligned_columns_are_copied() -> None:
    strided = np.arange(10, dtype=np.int64)[::2]
    shifted = np.frombuffer(b"x" + longs(1, 2, 3), np.uint8)[1:].view(np.int64)
    for values in (strided, shifted):
        _, capsule = export_array(Column(ColumnType(Type.INT64), values))
        array = raw_array(capsule)
        address = (ctypes.c_void_p * 2).from_address(array.buffers)[1]
        assert address % 8 == 0
        assert ctypes.string_at(address, values.nbytes) == values.tobytes()


def test_columns_that_are_not_what_they_say_are_refused() -> None:
    with pytest.raises(SchemaError, match="validity"):
        export_array(Column(INT32, np.zeros(9, np.int32), np.zeros(1, np.uint8), 1))
    with pytest.raises(SchemaError, match="validity"):
        export_array(Column(INT32, np.zeros(9, np.int32), None, 1))
    with pytest.raises(SchemaError, match="int64"):
        export_array(Column(INT32, np.zeros(9, np.int64)))
    with pytest.raises(SchemaError, match="offsets end at 5 in 3 bytes"):
        export_array(Column(TEXT, BinaryOffsets(np.array([0, 5], np.int32), np.zeros(3, np.uint8))))
    for name in ("a\0b", "\ud800"):
        with pytest.raises(SchemaError, match="the name"):
            export_stream_schema({name: Column(INT32, np.zeros(1, np.int32))})


def export_stream_schema(columns: dict[str, Column]) -> Any:
    return export_schema(Table(columns))


def test_requested_schema_must_fit() -> None:
    table = Table({"a": Column(INT32, np.zeros(1, np.int32))})
    for request in (export_schema(Table({})), export_schema(table["a"])):
        with pytest.raises(SchemaError, match="requested Arrow schema"):
            export_stream(table, request)
    with pytest.raises(SchemaError, match="capsule named"):
        export_stream(table, "not a capsule")


def test_null_type_has_no_buffers() -> None:
    column = Column(ColumnType(Type.INT32, logical=Unknown()), np.zeros(3, np.int32), np.zeros(1, np.uint8), 3)
    schema, capsule = export_array(column)
    array = raw_array(capsule)
    assert (raw_schema(schema).format, array.length, array.null_count, array.n_buffers) == (b"n", 3, 3, 0)


# ---- concatenation


def words(*values: bytes, wide: bool = False) -> BinaryOffsets:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64 if wide else np.int32)
    return BinaryOffsets(offsets, np.frombuffer(b"".join(values), np.uint8) if any(values) else np.zeros(0, np.uint8))


def test_concatenated_dictionaries_are_merged() -> None:
    def part(codes: list[int], *entries: bytes) -> Column:
        return Column(TEXT, DictionaryValues(np.array(codes, np.int32), Column(TEXT, words(*entries), nullable=False)))

    same = concat_columns([part([0, 1], b"a", b"b"), part([1], b"a", b"b")]).values
    assert isinstance(same, DictionaryValues)
    assert same.codes.tolist() == [0, 1, 1]
    empty = Column(TEXT, part([0, 0]).values, np.zeros(1, np.uint8), 2)
    merged = concat_columns([part([0, 1], b"a", b"b"), empty, part([0, 1, 2], b"b", b"", b"a")])
    assert isinstance(merged.values, DictionaryValues)
    assert merged.values.codes.tolist() == [0, 1, 0, 0, 1, 2, 0]
    dictionary = merged.values.dictionary.values
    assert isinstance(dictionary, BinaryOffsets)
    assert (dictionary.offsets.tolist(), dictionary.data.tobytes()) == ([0, 1, 2, 2], b"ab")
    assert (merged.null_count, bits_of(merged.validity)[:7]) == (2, [1, 1, 0, 0, 1, 1, 1])


def test_concatenated_offsets_start_anywhere_and_widen() -> None:
    sliced = words(b"skipped", b"one", b"two", b"after")
    sliced = BinaryOffsets(sliced.offsets[1:4], sliced.data)
    values = concat_columns([Column(TEXT, sliced), Column(TEXT, words()), Column(TEXT, words(b"3"))]).values
    assert isinstance(values, BinaryOffsets)
    assert (values.offsets.tolist(), values.offsets.dtype, values.data.tobytes()) == ([0, 3, 6, 7], np.int32, b"onetwo3")
    values = concat_columns([Column(TEXT, words(b"a")), Column(TEXT, words(b"b", wide=True))]).values
    assert isinstance(values, BinaryOffsets)
    assert values.offsets.dtype == np.int64

"""Tables exchanged with pyarrow, Polars, DuckDB, pandas, nanoarrow and arro3 through the Arrow C interfaces."""

from __future__ import annotations

import datetime as dt
import gc
import threading
import tracemalloc
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as Dec
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastpq.arrow import export_array, export_schema, export_stream, import_column, import_table
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.table import BinaryOffsets, BinaryViews, Column, DictionaryValues, Table
from fastpq.types import (
    ColumnType,
    Date,
    Decimal,
    Enum,
    Float16,
    Integer,
    Interval,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
    Uuid,
)

duckdb = pytest.importorskip("duckdb")
nanoarrow = pytest.importorskip("nanoarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
arro3 = pytest.importorskip("arro3.core")

INT32, INT64, TEXT = (ColumnType(Type.INT32), ColumnType(Type.INT64), ColumnType(Type.BYTE_ARRAY, logical=String()))
UUIDS = [uuid.UUID(int=1 << 120), uuid.UUID(int=7)]
WORDS = ["", "inline", "exactly12byt", "thirteen byte", "größer als zwölf Zeichen"]


class Stream:
    """What a consumer sees of a Table."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return export_stream(self.table, requested_schema)


class Array:
    """What a consumer sees of a Column."""

    def __init__(self, column: Column) -> None:
        self.column = column

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return export_array(self.column, requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return export_schema(self.column)


@dataclass(frozen=True)
class Case:
    """Values of a pyarrow type, the column they are read as, what is stored, and the type that is given back."""

    given: pa.DataType
    values: list[Any]
    type: ColumnType
    stored: list[Any]
    back: pa.DataType | None = None
    python: list[Any] | None = None


def fixed(logical: LogicalType | None, physical: Type, length: int | None = None) -> ColumnType:
    return ColumnType(physical, length, logical)


def little(width: int, *values: int) -> list[bytes]:
    return [value.to_bytes(width, "little", signed=True) for value in values]


def integer(given: pa.DataType, bits: Any, signed: bool) -> Case:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    logical = None if signed and bits >= 32 else Integer(bits, signed)
    values = [low, high, 1]
    return Case(given, values, fixed(logical, Type.INT64 if bits == 64 else Type.INT32), values)


DAY = dt.date(1969, 12, 31)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1000)
NOON_S = NOON.replace(microsecond=0)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)
MS = 1709208000001
UTF8 = [word.encode() for word in WORDS]
DECIMALS = [Dec("1.25"), Dec("-99.99"), Dec("0.00")]
CENTS = [125, -9999, 0]
FLBA = Type.FIXED_LEN_BYTE_ARRAY

CASES = {
    "bool": Case(pa.bool_(), [True, False, True], ColumnType(Type.BOOLEAN), [True, False, True]),
    "int8": integer(pa.int8(), 8, True),
    "int16": integer(pa.int16(), 16, True),
    "int32": integer(pa.int32(), 32, True),
    "int64": integer(pa.int64(), 64, True),
    "uint8": integer(pa.uint8(), 8, False),
    "uint16": integer(pa.uint16(), 16, False),
    "uint32": integer(pa.uint32(), 32, False),
    "uint64": integer(pa.uint64(), 64, False),
    "float16": Case(pa.float16(), [1.5, -2.0, 0.0], fixed(Float16(), FLBA, 2), [1.5, -2.0, 0.0]),
    "float32": Case(pa.float32(), [1.5, -2.0, 0.0], ColumnType(Type.FLOAT), [1.5, -2.0, 0.0]),
    "float64": Case(pa.float64(), [1e300, -0.1, 0.0], ColumnType(Type.DOUBLE), [1e300, -0.1, 0.0]),
    "string": Case(pa.string(), WORDS, TEXT, UTF8),
    "large_string": Case(pa.large_string(), WORDS, TEXT, UTF8),
    "string_view": Case(pa.string_view(), WORDS, TEXT, UTF8),
    "binary": Case(pa.binary(), UTF8, ColumnType(Type.BYTE_ARRAY), UTF8),
    "large_binary": Case(pa.large_binary(), UTF8, ColumnType(Type.BYTE_ARRAY), UTF8),
    "binary_view": Case(pa.binary_view(), UTF8, ColumnType(Type.BYTE_ARRAY), UTF8),
    "json": Case(pa.json_(), ["{}", "[1]"], fixed(Json(), Type.BYTE_ARRAY), [b"{}", b"[1]"]),
    "fixed_size_binary": Case(pa.binary(3), [b"abc", b"\0\1\2"], fixed(None, FLBA, 3), [b"abc", b"\0\1\2"]),
    "uuid": Case(pa.uuid(), UUIDS, fixed(Uuid(), FLBA, 16), [value.bytes for value in UUIDS]),
    "decimal32": Case(pa.decimal32(5, 2), DECIMALS, fixed(Decimal(5, 2), Type.INT32), CENTS, pa.decimal128(5, 2)),
    "decimal64": Case(pa.decimal64(12, 2), DECIMALS, fixed(Decimal(12, 2), Type.INT64), CENTS, pa.decimal128(12, 2)),
    "decimal128": Case(pa.decimal128(5, 2), DECIMALS, fixed(Decimal(5, 2), FLBA, 3), little(16, *CENTS)),
    "decimal256": Case(pa.decimal256(50, 2), DECIMALS, fixed(Decimal(50, 2), FLBA, 21), little(32, *CENTS)),
    "decimal256 of few digits": Case(
        pa.decimal256(20, 2), DECIMALS, fixed(Decimal(20, 2), FLBA, 9), little(16, *CENTS), pa.decimal128(20, 2)
    ),
    "date32": Case(pa.date32(), [DAY, dt.date(2024, 2, 29)], fixed(Date(), Type.INT32), [-1, 19782]),
    "date64": Case(pa.date64(), [DAY, dt.date(2024, 2, 29)], fixed(Date(), Type.INT32), [-1, 19782], pa.date32()),
    "time32[s]": Case(pa.time32("s"), [dt.time(0, 0, 1)], fixed(Time("ms"), Type.INT32), [1000], pa.time32("ms")),
    "time32[ms]": Case(pa.time32("ms"), [dt.time(0, 0, 1, 5000)], fixed(Time("ms"), Type.INT32), [1005]),
    "time64[us]": Case(pa.time64("us"), [dt.time(0, 0, 1, 5)], fixed(Time("us"), Type.INT64), [1_000_005]),
    "time64[ns]": Case(pa.time64("ns"), [dt.time(0, 0, 1)], fixed(Time("ns"), Type.INT64), [10**9]),
    "timestamp[s]": Case(pa.timestamp("s"), [NOON_S], fixed(Timestamp("ms"), Type.INT64), [MS - 1], pa.timestamp("ms")),
    "timestamp[ms]": Case(pa.timestamp("ms"), [NOON], fixed(Timestamp("ms"), Type.INT64), [MS]),
    "timestamp[us]": Case(pa.timestamp("us"), [NOON], fixed(Timestamp("us"), Type.INT64), [MS * 1000]),
    "timestamp[ns]": Case(pa.timestamp("ns"), [NOON], fixed(Timestamp("ns"), Type.INT64), [MS * 10**6]),
    "timestamp[us, Europe/Berlin]": Case(
        pa.timestamp("us", "Europe/Berlin"),
        [NOON_UTC],
        fixed(Timestamp("us", utc=True), Type.INT64),
        [MS * 1000],
        pa.timestamp("us", "UTC"),
    ),
    "dictionary of strings": Case(pa.dictionary(pa.int32(), pa.string()), WORDS, TEXT, UTF8),
    "dictionary of large binary": Case(
        pa.dictionary(pa.uint8(), pa.large_binary()),
        UTF8,
        ColumnType(Type.BYTE_ARRAY),
        UTF8,
        pa.dictionary(pa.int32(), pa.large_binary()),
    ),
    "dictionary of numbers": Case(pa.dictionary(pa.int8(), pa.int64()), [5, -5], INT64, [5, -5], pa.int64()),
}


def stored(column: Column) -> list[Any]:
    """The stored values, None where null."""
    values = column.values
    if isinstance(values, DictionaryValues):
        entries = stored(values.dictionary)
        out = [entries[code] if entries else None for code in values.codes.tolist()]
    elif isinstance(values, BinaryOffsets):
        ends = values.offsets.tolist()
        out = [values.data[ends[i] : ends[i + 1]].tobytes() for i in range(len(ends) - 1)]
    elif isinstance(values, BinaryViews):
        out = [view_bytes(view, values) for view in values.views.tolist()]
    else:
        out = values.tolist()
    if column.validity is None:
        return out
    valid = np.unpackbits(column.validity, count=len(out), bitorder="little")
    return [value if ok else None for value, ok in zip(out, valid, strict=True)]


def view_bytes(view: bytes, values: BinaryViews) -> bytes:
    length, number, offset = (int.from_bytes(view[at : at + 4], "little") for at in (0, 8, 12))
    return view[4 : 4 + length] if length <= 12 else values.buffers[number][offset : offset + length].tobytes()


def pattern(values: list[Any], nulls: bool) -> list[Any]:
    """About 60 values, with nulls at changing places."""
    cycled = [values[i % len(values)] for i in range(61)]
    return [None if nulls and i % 7 in (0, 3) else value for i, value in enumerate(cycled)]


def array_of(case: Case, values: list[Any]) -> pa.Array:
    if isinstance(case.given, pa.DictionaryType):
        return pa.array(values, case.given.value_type).dictionary_encode().cast(case.given)
    if isinstance(case.given, pa.BaseExtensionType) and case.given != pa.uuid():
        return pa.ExtensionArray.from_storage(case.given, pa.array(values, case.given.storage_type))
    if pa.types.is_float16(case.given):
        return pa.array([None if value is None else np.float16(value) for value in values], case.given)
    return pa.array(values, case.given)


def pieces(array: pa.Array, *lengths: int) -> pa.ChunkedArray:
    out, start = [], 0
    for length in lengths:
        out.append(array.slice(start, length))
        start += length
    return pa.chunked_array([*out, array.slice(start)])


SHAPES: dict[str, Callable[[pa.Array], pa.ChunkedArray]] = {
    "whole": lambda array: pa.chunked_array([array]),
    "sliced": lambda array: pa.chunked_array([array.slice(3, 40)]),
    "sliced at a byte": lambda array: pa.chunked_array([array.slice(8, 40)]),
    "chunked": lambda array: pieces(array, 5, 0, 1, 17, 8),
    "empty": lambda array: pa.chunked_array([array.slice(0, 0)]),
    "no chunks": lambda array: pa.chunked_array([], array.type),
    "only nulls": lambda array: pa.chunked_array([pa.nulls(9, array.type)]),
}


@pytest.mark.parametrize("nulls", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize("name", CASES)
def test_pyarrow_in_and_out(name: str, nulls: bool) -> None:
    case = CASES[name]
    array = array_of(case, pattern(case.values, nulls))
    expected = pattern(case.stored, nulls)
    for shape, shaped in SHAPES.items():
        data = shaped(array)
        if shape == "only nulls" and isinstance(array.type, pa.BaseExtensionType):
            continue  # pa.nulls does not make them
        table = import_table(pa.table({"before": pa.nulls(len(data)), "c": data}))
        column = table["c"]
        assert column.type == case.type
        rows = {"whole": expected, "chunked": expected, "sliced": expected[3:43], "sliced at a byte": expected[8:48]}
        assert stored(column) == rows.get(shape, [None] * 9 if shape == "only nulls" else [])
        assert column.null_count == data.null_count
        back = pa.table(Stream(table))
        back.validate(full=True)
        assert back.column("c").type == (case.back or case.given)
        assert back.column("c").to_pylist() == data.to_pylist()
        assert back.column("before").type == pa.null()


@pytest.mark.parametrize("name", CASES)
def test_pyarrow_arrays_and_chunked_arrays(name: str) -> None:
    case = CASES[name]
    array = array_of(case, pattern(case.values, nulls=True))
    for source in (array, pieces(array, 4, 9)):
        column = import_column(source)
        assert stored(column) == pattern(case.stored, nulls=True)
        back = pa.array(Array(column))
        back.validate(full=True)
        assert back.to_pylist() == array.to_pylist()
    assert pa.field(Array(column)).type == back.type


def test_required_fields_stay_required() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())])
    table = import_table(pa.table([[1, 2], [3, 4]], schema=schema))
    assert (table["a"].nullable, table["b"].nullable) == (False, True)
    assert pa.schema(pa.table(Stream(table)).schema) == schema
    assert pa.table(Stream(table)).schema == schema


def test_types_that_only_we_have() -> None:
    months = np.frombuffer(bytes(range(24)), "V12")
    for column, type_, values in (
        (Column(ColumnType(Type.INT96), np.array([MS * 10**6])), pa.timestamp("ns"), [NOON]),
        (Column(fixed(Interval(), FLBA, 12), months), pa.binary(12), [bytes(range(12)), bytes(range(12, 24))]),
        (Column(fixed(Enum(), Type.BYTE_ARRAY), import_column(pa.array(["x"])).values), pa.string(), ["x"]),
        (Column(fixed(Time("us", utc=True), Type.INT64), np.array([5])), pa.time64("us"), [dt.time(0, 0, 0, 5)]),
        (Column(fixed(Unknown(), Type.INT32), np.zeros(2, np.int32), np.zeros(1, np.uint8), 2), pa.null(), [None] * 2),
        (
            Column(fixed(Decimal(20, 2), Type.BYTE_ARRAY), np.frombuffer(b"".join(little(16, -5)), "V16")),
            pa.decimal128(20, 2),
            [Dec("-0.05")],
        ),
    ):
        array = pa.array(Array(column))
        array.validate(full=True)
        assert (array.type, array.to_pylist()) == (type_, values)


REQUESTS = [
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())),
]


@pytest.mark.parametrize("requested", REQUESTS, ids=str)
@pytest.mark.parametrize("given", ["string", "large_string", "string_view", "dictionary of strings"])
def test_requested_layouts_are_given(given: str, requested: pa.DataType) -> None:
    values = pattern(WORDS, nulls=True)
    column = import_column(array_of(CASES[given], values))
    _, capsule = export_array(column, requested.__arrow_c_schema__())
    assert capsule is not None
    array = pa.array(Array(column), requested)
    array.validate(full=True)
    expected = pa.dictionary(pa.int32(), pa.string()) if isinstance(requested, pa.DictionaryType) else requested
    schema = export_array(column, requested.__arrow_c_schema__())[0]
    assert pa.DataType._import_from_c_capsule(schema) in (expected, pa.dictionary(pa.int32(), pa.large_string()))
    assert array.to_pylist() == values
    table = Table({"a": column, "n": Column(INT32, np.arange(61, dtype=np.int32))})
    schema = pa.schema([pa.field("a", requested), pa.field("n", pa.int32())])
    assert pa.table(Stream(table), schema=schema).column("a").to_pylist() == values


def test_no_value_is_copied_where_layouts_agree() -> None:
    array = pa.array([1, 2, 3], pa.int64())
    column = import_column(array)
    assert isinstance(column.values, np.ndarray)
    assert column.values.ctypes.data == array.buffers()[1].address
    back = pa.array(Array(column))
    assert back.buffers()[1].address == array.buffers()[1].address
    text = pa.array(["a string of more than twelve bytes"], pa.string_view())
    back = pa.array(Array(import_column(text)))
    assert [buffer.address for buffer in back.buffers()[1:3]] == [buffer.address for buffer in text.buffers()[1:3]]


def test_a_consumer_may_outlive_us_and_a_producer_may_go_first() -> None:
    before = pa.total_allocated_bytes()
    source = pa.table({"a": pa.array(range(1000)), "s": pa.array([f"value number {i}" for i in range(1000)])})
    table = import_table(source)
    del source
    gc.collect()
    values = table["a"].values
    alive = weakref.ref(values)
    consumer = pa.table(Stream(table))
    del table, values
    gc.collect()
    assert alive() is not None
    assert consumer.column("a").to_pylist() == list(range(1000))
    assert consumer.column("s").to_pylist()[-1] == "value number 999"
    del consumer
    gc.collect()
    assert alive() is None
    assert pa.total_allocated_bytes() == before


def test_nothing_leaks() -> None:
    source = pa.table({name: array_of(case, pattern(case.values, nulls=True)) for name, case in CASES.items()})

    def exchange() -> None:
        table = import_table(source)
        pa.table(Stream(table))
        export_stream(table)
        export_schema(table)
        with pytest.raises(SchemaError):
            export_stream(table, pa.schema([]).__arrow_c_schema__())
        with pytest.raises(UnsupportedError):
            import_table(pa.table({"a": [1], "b": [[1]]}))

    exchange()
    allocated = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        exchange()
        gc.collect()
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            exchange()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert grown < 20_000  # a leaked array or node for each exchange would be far more
    assert pa.total_allocated_bytes() == allocated


def test_release_from_another_thread() -> None:
    values = np.arange(1000)
    alive = weakref.ref(values)
    held = [pa.table(Stream(Table({"a": Column(INT64, values)})))]
    del values
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_a_failing_python_producer_is_told() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise OSError("the disk is gone")

    with pytest.raises(SchemaError, match="the disk is gone"):
        import_table(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches()))


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.int32()),
        pa.large_list(pa.int32()),
        pa.list_view(pa.int32()),
        pa.list_(pa.int32(), 2),
        pa.struct([("x", pa.int32())]),
        pa.map_(pa.string(), pa.int32()),
        pa.run_end_encoded(pa.int32(), pa.int32()),
        pa.dense_union([pa.field("x", pa.int32())]),
        pa.duration("us"),
        pa.month_day_nano_interval(),
    ],
    ids=str,
)
def test_types_that_we_do_not_have(type_: pa.DataType) -> None:
    source = pa.table({"fine": pa.array([], pa.int8()), "other": pa.chunked_array([], type_)})
    with pytest.raises(UnsupportedError, match=r"is not supported.*column other"):
        import_table(source)


# ---- the other libraries


def common() -> tuple[Table, dict[str, list[Any]]]:
    """A table of every type that is common to all, with nulls, and its values."""
    left_out = {"json", "time32[s]", "float16", "decimal256", "decimal256 of few digits", "dictionary of large binary"}
    arrays = {name: array_of(case, pattern(case.values, nulls=True)) for name, case in CASES.items() if name not in left_out}
    return import_table(pa.table(arrays)), {name: array.to_pylist() for name, array in arrays.items()}


def same(name: str, got: Any, want: Any) -> bool:
    """Equality where a library turns UUIDs into bytes or text, drops a timezone, or makes decimals of another scale."""
    if want is None or got is None:
        return want is None and got is None
    if isinstance(want, uuid.UUID):
        return got in (want, want.bytes, str(want))
    if isinstance(want, dt.datetime) and isinstance(got, dt.datetime) and want.tzinfo:
        return bool(got.astimezone(dt.UTC) == want)
    return bool(got == want)


def assert_same(got: dict[str, list[Any]], want: dict[str, list[Any]]) -> None:
    for name, values in want.items():
        assert len(got[name]) == len(values), name
        wrong = [(g, w) for g, w in zip(got[name], values, strict=True) if not same(name, g, w)]
        assert not wrong, (name, wrong[0])


def test_polars_reads_us() -> None:
    table, want = common()
    frame = pl.DataFrame(Stream(table))
    del table
    gc.collect()
    assert_same(frame.to_dict(as_series=False), want)
    assert pl.from_arrow(Stream(import_table(pa.table({"a": [1, None]})))).to_dict(as_series=False) == {"a": [1, None]}
    assert pl.Series(Array(import_column(pa.array(["x", None], pa.string_view())))).to_list() == ["x", None]


def test_we_read_polars() -> None:
    times = [dt.time(1, 2, 3), None, dt.time(0)]
    frame = pl.DataFrame(
        {
            "i8": pl.Series([1, None, -3], dtype=pl.Int8),
            "u64": pl.Series([1, None, 2**64 - 1], dtype=pl.UInt64),
            "f32": pl.Series([1.5, None, -3.0], dtype=pl.Float32),
            "b": [True, None, False],
            "s": ["short", None, "a string of more than twelve bytes"],
            "z": [b"short", None, b"a string of more than twelve bytes"],
            "d": [DAY, None, DAY],
            "t": times,
            "ms": pl.Series([NOON, None, NOON], dtype=pl.Datetime("ms")),
            "us": pl.Series([NOON_UTC, None, NOON_UTC], dtype=pl.Datetime("us", "Europe/Berlin")),
            "dec": pl.Series([Dec("1.25"), None, Dec("-2.00")], dtype=pl.Decimal(12, 2)),
            "cat": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "enum": pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x"])),
            "n": pl.Series([None] * 3, dtype=pl.Null),
        }
    )
    for data in (frame, pl.concat([frame, frame.slice(1), frame.head(0)], rechunk=False), frame.slice(1, 2), frame.clear()):
        table = import_table(data)
        assert isinstance(table["s"].values, BinaryViews)
        assert isinstance(table["cat"].values, DictionaryValues)
        assert table["us"].type.logical == Timestamp("us", utc=True)
        assert table["dec"].type.logical == Decimal(12, 2)
        assert_same(pa.table(Stream(table)).to_pydict(), data.to_dict(as_series=False))
    assert stored(import_column(frame["s"])) == [b"short", None, b"a string of more than twelve bytes"]
    with pytest.raises(UnsupportedError, match=r"duration.*column x"):
        import_table(pl.DataFrame({"x": [dt.timedelta(1)]}))
    with pytest.raises(UnsupportedError, match=r"struct.*column x"):
        import_table(pl.DataFrame({"x": [{"a": 1}]}))


def test_duckdb_reads_us() -> None:
    table, want = common()
    ours = Stream(table)
    got = duckdb.sql("SELECT * FROM ours").fetchall()
    names = list(want)
    assert_same({name: [row[i] for row in got] for i, name in enumerate(names)}, want)
    sums = duckdb.sql("SELECT sum(int8), count(string), max(string_view), count(*) FROM ours WHERE bool").fetchone()
    rows = [i for i in range(61) if want["bool"][i]]
    strings = [want["string_view"][i] for i in rows if want["string_view"][i] is not None]
    assert sums == (sum(want["int8"][i] or 0 for i in rows), len(strings), max(strings), len(rows))
    del ours
    gc.collect()


def test_we_read_duckdb() -> None:
    query = """
        SELECT CASE WHEN i % 7 = 3 THEN NULL ELSE i END AS i, i::HUGEINT AS h, i % 2 = 0 AS b, 'row ' || i AS s,
            ('a much longer row ' || i)::BLOB AS z, DATE '2024-02-29' AS d, TIME '01:02:03' AS t, (i / 4)::DECIMAL(9, 2) AS c,
            TIMESTAMP_S '2024-02-29 12:00:00' AS ts, TIMESTAMPTZ '2024-02-29 12:00:00+00' AS tz,
            CASE WHEN i % 3 = 0 THEN 'x' ELSE 'y' END::ENUM('x', 'y') AS e
        FROM range(300000) AS r(i)
    """
    relation = duckdb.sql(query)
    table = import_table(relation)
    assert table.num_rows == 300_000
    assert table["i"].null_count == 300_000 // 7
    assert stored(table["i"])[:5] == [0, 1, 2, None, 4]
    want = relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()
    want = want.read_all() if isinstance(want, pa.RecordBatchReader) else want
    back = pa.table(Stream(table))
    back.validate(full=True)
    for name in want.column_names:
        assert back.column(name).cast(want.column(name).type).equals(want.column(name)), name
    with pytest.raises(UnsupportedError, match=r"interval.*column v"):
        import_table(duckdb.sql("SELECT INTERVAL 1 DAY AS v"))


def test_pandas_reads_us_and_we_read_pandas() -> None:
    table, want = common()
    frame = pd.DataFrame.from_arrow(Stream(table))
    assert len(frame) == 61
    assert [None if pd.isna(value) else int(value) for value in frame["int8"]] == want["int8"]
    assert [None if pd.isna(value) else value for value in frame["string_view"]] == want["string_view"]
    assert [None if pd.isna(value) else value.to_pydatetime() for value in frame["timestamp[us]"]] == want["timestamp[us]"]
    data = pd.DataFrame({"i": [1, 2], "s": ["x", None], "t": pd.to_datetime(["2024-02-29", None]), "f": [1.5, np.nan]})
    back = import_table(data)
    assert stored(back["i"]) == [1, 2]
    assert stored(back["s"]) == [b"x", None]
    assert back["t"].null_count == 1
    series = pd.Series([1, None, 3], dtype="Int64")
    assert stored(import_column(series)) == [1, None, 3]


def test_nanoarrow_both_ways() -> None:
    table, want = common()
    array = nanoarrow.c_array_stream(Stream(table))
    assert [child.name for child in array.get_schema().children] == list(want)
    for name, case in CASES.items():
        column = import_column(nanoarrow.c_array(array_of(case, pattern(case.values, nulls=True))))
        assert stored(column) == pattern(case.stored, nulls=True), name
    for name in ("int8", "bool", "float64", "string", "date32", "fixed_size_binary"):
        checked = nanoarrow.Array(Array(table[name]))
        assert checked.to_pylist() == want[name]
        nanoarrow.c_array(Array(table[name])).view()
    mine = nanoarrow.Array([1, None, 3], nanoarrow.int64())
    assert stored(import_column(mine)) == [1, None, 3]


def test_arro3_both_ways() -> None:
    table, want = common()
    theirs = arro3.Table.from_arrow(Stream(table))
    assert theirs.num_rows == 61
    assert_same(pa.table(theirs).to_pydict(), want)
    assert_same(pa.table(Stream(import_table(theirs))).to_pydict(), want)
    assert stored(import_column(theirs["int8"])) == want["int8"]

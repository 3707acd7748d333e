"""What columns were in Arrow, kept in a file's ARROW:schema: written for strangers and read from theirs."""

from __future__ import annotations

import base64
import datetime as dt
import io
import random
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import fastpq
from fastpq import format as fmt
from fastpq.arrays.binary import encode_dictionary
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.layouts import BinaryOffsets, BinaryViews
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.arrow import export_stream
from fastpq.arrow.flatbuffer import Scalar, flatbuffer
from fastpq.arrow.hints import ArrowFields
from fastpq.arrow.ipc_schema import IpcSchema, encode_schema
from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY
from tests.interop.arrow_cases import CASES, array_of, pattern
from tests.narrowing import present
from tests.requirements import peer

arro3 = peer("arro3.io", "arro3-io")
duckdb = peer("duckdb")

TEXTS = [["a", None], [], None, ["more than twelve bytes"]]
OPAQUE = pa.opaque(pa.large_string(), "kind", "vendor")
NARROW = {"decimal32", "decimal64"}     # to_arrow() gives them, other consumers get decimal128, for Polars would misread them
NESTED = {
    "large_list": pa.array(TEXTS, pa.large_list(pa.large_string())),
    "list of views": pa.array(TEXTS, pa.list_(pa.field("named", pa.string_view()))),
    "list_view": pa.array(TEXTS, pa.list_view(pa.string())),
    "large_list_view": pa.array(TEXTS, pa.large_list_view(pa.string())),
    "fixed_size_list": pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.duration("ms"), 2)),
    "sorted map": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.large_string(), pa.duration("s"), keys_sorted=True)),
    "struct": pa.array(
        [{"zoned": dt.datetime(2024, 2, 29, tzinfo=dt.UTC), "word": "x"}, None, {"zoned": None, "word": None}, {}],
        pa.struct([("zoned", pa.timestamp("ms", "+01:00")), ("word", pa.dictionary(pa.int16(), pa.string()))]),
    ),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0, 1], pa.int8())),
    "opaque": pa.ExtensionArray.from_storage(OPAQUE, pa.array(["x"] * 4, pa.large_string())),
}
FLAT = {name: array_of(case, pattern(case.values, nulls=True)) for name, case in CASES.items() if name not in NARROW}
ALL = FLAT | NESTED
# what pyarrow does not restore, in its own files either
COARSER = {
    *("date64", "time32[s]", "timestamp[s]", "month_day_nano_interval", "dictionary of numbers", "dictionary of large binary")
}


def written(data: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(data, sink, **options)
    return sink.getvalue()


def by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def assert_same(got: pa.Table, table: pa.Table) -> None:
    got.validate(full=True)
    assert got.schema.equals(table.schema)
    assert got.to_pylist() == table.to_pylist()      # equals() tells dictionaries of other orders apart


@pytest.mark.parametrize("name", ALL)
def test_every_type_comes_back(name: str) -> None:
    field = pa.field(name, ALL[name].type, metadata={"unit": "m"})
    table = pa.table([ALL[name]], schema=pa.schema([field]))
    data = written(table, arrow_schema=True)
    assert_same(pa.table(fastpq.read_table(data)), table)
    assert pa.table(fastpq.read_table(data)).schema.field(0).metadata[b"unit"] == b"m"
    if name not in COARSER:
        assert_same(pq.read_table(io.BytesIO(data)), table)
    if name != "month_day_nano_interval":        # pyarrow writes none
        assert_same(pa.table(fastpq.read_table(by_pyarrow(table))), table)
    with fastpq.ParquetFile(data) as file:
        assert_same(pa.concat_tables([pa.table(batch) for batch in file.iter_batches(7)]), table)
        assert_same(pa.table(file.take(range(2))), table.slice(0, 2))


def test_decimals_of_32_and_64_bits_come_back() -> None:
    money = [Dec("1.25"), None, Dec("-3.50")]
    small, large = pa.decimal32(7, 2), pa.decimal64(15, 2)
    table = pa.table(
        {
            "small": pa.array(money, small),
            "large": pa.array(money, large),
            "wide": pa.array(money, pa.decimal128(7, 2)),
            "lists": pa.array([money, None, []], pa.list_(pa.field("element", small))),
            "structs": pa.array([{"a": value, "b": "x"} for value in money], pa.struct([("a", large), ("b", pa.string())])),
            "maps": pa.array([[("x", money[0])], None, []], pa.map_(pa.string(), small)),
            "text": ["a", "b", None],
        }
    )
    for data in (by_pyarrow(table), written(table, arrow_schema=True)):
        read = fastpq.read_table(data)
        assert_same(read.to_arrow(), table)
        assert [read[name].to_arrow().type for name in table.column_names] == table.schema.types
        assert read.slice(1).to_arrow().to_pylist() == table.slice(1).to_pylist()
        assert_same(pq.read_table(io.BytesIO(data)), table)
        frame = pl.DataFrame(read)      # takes a stream of narrow decimals for another one
        assert frame["small"].to_list() == frame["large"].to_list() == money
        assert frame["lists"].to_list() == table["lists"].to_pylist()
        with duckdb.connect() as connection:
            assert connection.from_arrow(read.to_arrow()).fetchall() == connection.from_arrow(pa.table(read)).fetchall()
        assert read.to_pandas(dtype_backend="pyarrow").dtypes["small"] == pd.ArrowDtype(small)
    assert fastpq.read_table(by_pyarrow(table), arrow_schema=False)["small"].to_arrow().type == pa.decimal128(7, 2)


def test_polars_and_arro3_read_what_we_keep() -> None:
    table = pa.table({name: ALL[name] for name in ("duration[ns]", "timestamp[us, Europe/Berlin]", "dictionary of strings")})
    data = written(table, arrow_schema=True)
    assert pl.read_parquet(data).equals(pl.DataFrame(pl.from_arrow(table)))
    assert pa.table(arro3.read_parquet(io.BytesIO(data)).read_all()).schema.types == table.schema.types
    frame = pl.DataFrame({"e": pl.Series(["x", None], dtype=pl.Enum(["y", "x"])), "d": [dt.timedelta(1), None]})
    sink = io.BytesIO()
    frame.write_parquet(sink)
    ours = pl.DataFrame(fastpq.read_table(sink.getvalue()))
    assert ours["d"].equals(frame["d"])
    assert ours["e"].dtype == pl.Enum(["y", "x"])
    assert ours["e"].to_list() == ["x", None]


def test_only_where_it_is_wanted() -> None:
    table = pa.table({"x": pa.array(["a"], pa.large_string()), "t": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))})
    assert ARROW_KEY in fastpq.read_metadata(written(table)).key_value_metadata
    assert ARROW_KEY not in fastpq.read_metadata(written(table, arrow_schema=False)).key_value_metadata
    plain = pa.table(fastpq.read_table(by_pyarrow(table), arrow_schema=False))
    assert plain.schema.types == [pa.string_view(), pa.timestamp("us", "UTC")]
    coded = pa.table(fastpq.read_table(by_pyarrow(table), strings="dictionary"))
    assert coded.schema.types == [pa.dictionary(pa.int32(), pa.string()), table.schema.types[1]]
    with pytest.raises(UnsupportedError, match=r"duration.*arrow_schema=False.*column x"):
        written(pa.table({"x": pa.array([[1]], pa.list_(pa.duration("s")))}), arrow_schema=False)


def test_values_that_do_not_fit_stay_what_they_are() -> None:
    """A field may claim less than its column holds."""
    seconds = pa.schema([("t", pa.timestamp("s")), ("w", pa.dictionary(pa.int8(), pa.string())), ("l", pa.list_(pa.int8(), 2))])
    claimed = {ARROW_KEY: base64.b64encode(seconds.serialize().to_pybytes()).decode()}
    table = pa.table({"t": pa.array([1500] * 200, pa.timestamp("ms")), "w": map(str, range(200)), "l": [[1]] * 200})
    got = pa.table(fastpq.read_table(written(table, key_value_metadata=claimed)))
    assert got.schema.types == [pa.timestamp("ms"), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64())]
    assert got.to_pylist() == table.to_pylist()


def test_unused_entries_and_their_order_come_back() -> None:
    text = pa.array(["z", "unused", "a"])
    columns = {str(ordered): pa.DictionaryArray.from_arrays([0, 2, 0], text, ordered=ordered) for ordered in (True, False)}
    table = pa.table(columns)
    data = written(table)
    assert pq.read_table(io.BytesIO(data)).equals(table)
    ours = pa.table(fastpq.read_table(data))
    assert ours.equals(table)
    for name in table.column_names:
        assert ours[name].chunk(0).dictionary.equals(text)


ORDERED = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2, 0], pa.int8()), ["low", "mid", "high"], ordered=True)


@pytest.mark.parametrize("options", [{}, {"row_group_size": 2}, {"encoding": "auto"}], ids=str)
@pytest.mark.parametrize("kind", ["text", "bytes", "large"])
def test_ordered_dictionaries_both_ways(kind: str, options: dict[str, Any]) -> None:
    """Flag, order and unused entries, by each library from each library."""
    entries = ORDERED.dictionary.cast({"text": pa.string(), "bytes": pa.binary(), "large": pa.large_string()}[kind])
    table = pa.table({"c": pa.DictionaryArray.from_arrays(ORDERED.indices, entries, ordered=True)})
    ours = written(table, arrow_schema=True, **options)
    theirs = by_pyarrow(table, **{name: value for name, value in options.items() if name != "encoding"})
    for data in (ours, theirs):
        for strings in ("views", "offsets", "dictionary"):
            found = fastpq.read_table(data, strings=strings)
            for got in (pa.table(found), pa.table(fastpq.read_table(written(found, arrow_schema=True)))):
                assert got.schema.types == table.schema.types
                assert got["c"].chunk(0).dictionary.equals(entries)
                assert got["c"].chunk(0).equals(table["c"].chunk(0))
    back = pq.read_table(io.BytesIO(ours))["c"].unify_dictionaries()
    assert back.type == pq.read_table(io.BytesIO(theirs))["c"].type
    assert back.chunk(0).dictionary.to_pylist() == entries.to_pylist()
    assert back.to_pylist() == table["c"].to_pylist()
    assert pa.table(fastpq.read_table(ours, filters=("c", "==", "low" if kind != "bytes" else b"low")))["c"].type.ordered


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_of_dictionaries_are_not_hashed(monkeypatch: pytest.MonkeyPatch, ordered: bool) -> None:
    """Stored codes are read, and renumbered by the entries of their row group: three row groups, of one order."""
    hashed = []

    def encode(reader: SliceReader) -> Any:
        codes, rows = encode_dictionary(reader)
        hashed.append(len(codes))
        return codes, rows

    for name in ("fastpq.read.arrow_dictionaries", "fastpq.arrays.concat", "fastpq.arrays.binary"):
        monkeypatch.setattr(f"{name}.encode_dictionary", encode)
    codes = np.concatenate([np.arange(2000) % 5, np.arange(2000) % 3 + 2, np.arange(2000) % 7])
    values = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes == 3), [f"entry {n}" for n in range(7)], ordered=ordered)
    target = io.BytesIO()
    pq.write_table(pa.table({"x": values, "nulls": pa.nulls(6000, values.type)}), target, row_group_size=2000)
    table = fastpq.read_table(target)
    assert pa.table(table)["x"].to_pylist() == values.to_pylist()
    assert table["nulls"].null_count == 6000
    frame = fastpq.read_pandas(target, columns=["x"])
    assert_frame_equal(frame, pd.read_parquet(target, columns=["x"]))
    assert frame["x"].cat.categories.tolist() == values.dictionary.to_pylist()
    assert 0 < max(hashed) < 50


@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
def test_layout_of_dictionaries_without_an_order(strings: Any) -> None:
    """Dictionary pages of row groups that do not agree: codes that were read become what was asked for."""
    target = io.BytesIO()
    parts = [pa.array(text).dictionary_encode() for text in (["b", "a", None], ["a", "c", "b"])]
    with pq.ParquetWriter(target, pa.schema({"x": parts[0].type})) as writer:
        for part in parts:
            writer.write_table(pa.table({"x": part}))
    column = fastpq.read_table(target, strings=strings)["x"]
    assert isinstance(column, Column)
    layouts = {"views": BinaryViews, "offsets": BinaryOffsets, "dictionary": DictionaryValues}
    assert isinstance(column.values, layouts[strings])
    assert column.to_pylist() == ["b", "a", None, "a", "c", "b"]


def test_a_table_without_rows_decides_no_order() -> None:
    """The first table has no entries. Another order later is still not known."""
    table, sink = pa.table({"c": ORDERED}), io.BytesIO()
    with fastpq.ParquetWriter(sink) as writer:
        writer.write_table(table.schema.empty_table())
        writer.write_table(table)
        writer.write_table(table)
    for read in (pq.read_table(sink), pa.table(fastpq.read_table(sink.getvalue()))):
        assert read["c"].type.ordered
        assert read["c"].to_pylist() == 2 * ORDERED.to_pylist()
    reverse = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), ["high", "low"], ordered=True)
    with fastpq.ParquetWriter(sink := io.BytesIO()) as writer:
        for each in (table.schema.empty_table(), table, pa.table({"c": reverse})):
            writer.write_table(each)
    assert not pq.read_table(sink)["c"].type.ordered
    assert not pa.table(fastpq.read_table(sink.getvalue()))["c"].type.ordered


def test_ordered_categoricals_of_pandas() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["b", "a", None], ["c", "b", "a"], ordered=True)})
    sink = io.BytesIO()
    frame.to_parquet(sink, engine="pyarrow")
    pd.testing.assert_frame_equal(fastpq.read_pandas(sink.getvalue()), frame)
    for data in (written(frame), written(frame, arrow_schema=True)):
        pd.testing.assert_frame_equal(fastpq.read_pandas(data), frame)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(written(frame, arrow_schema=True)), engine="pyarrow"), frame)


def test_an_order_that_a_file_does_not_keep_is_not_claimed() -> None:
    """Row groups of contradictory dictionaries, values outside of the dictionary, and dictionaries of numbers."""
    other = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), ["high", "low"], ordered=True)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pa.schema([("c", ORDERED.type)])) as writer:
        for part in (ORDERED, other):
            writer.write_table(pa.table({"c": part}))
    got = pa.table(fastpq.read_table(sink.getvalue()))["c"]
    assert got.to_pylist() == ORDERED.to_pylist() + other.to_pylist()
    assert not got.type.ordered
    assert not pa.table(fastpq.read_table(by_pyarrow(pa.table({"c": ORDERED}), use_dictionary=False)))["c"].type.ordered
    chunks = pa.table({"c": pa.chunked_array([ORDERED, other])})
    assert not pa.table(fastpq.read_table(written(chunks, arrow_schema=True)))["c"].type.ordered
    numbers = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([7, 5]), ordered=True)})
    for data in (written(numbers, arrow_schema=True), by_pyarrow(numbers)):
        assert pa.table(fastpq.read_table(data))["c"].to_pylist() == [5, 7]
    large = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([1, 0]), ["a" * 2000, "b" * 2000], ordered=True)})
    cut = fastpq.read_table(written(large, arrow_schema=True, dictionary_page_size=2500))
    assert not pa.table(cut)["c"].type.ordered
    assert cut["c"].to_pylist() == large["c"].to_pylist()


def test_broken_entries_are_as_good_as_none() -> None:
    table = pa.table({"a": pa.array([1, 2], pa.duration("s")), "b": pa.array([[1], None], pa.large_list(pa.int8()))})
    message = table.schema.serialize().to_pybytes()
    rng = random.Random(7)
    entries = [message[:size] for size in range(0, len(message), 5)]
    for _ in range(800):
        broken = bytearray(message)
        for _ in range(rng.choice((1, 1, 2, 8))):
            broken[rng.randrange(len(broken))] = rng.choice((0, 1, 4, 127, 128, 255, rng.randrange(256)))
        entries.append(bytes(broken))
    texts = [base64.b64encode(entry).decode() for entry in entries] + ["", "?", "=", "AAAA", "\x00", "é"]
    with fastpq.ParquetFile(written(table, arrow_schema=True), arrow_schema=False) as file:
        plain, nodes = file.read(), file.schema.root.children
    seen = set()
    for text in texts:
        got = ArrowFields(text, nodes).restored(plain, nodes)
        assert got.equals(plain)
        seen.add(got["a"].arrow.format if got["a"].arrow is not None else None)
        export_stream(got)
    assert {None, "tDs", "tDm"} <= seen


def test_fields_of_more_nodes_than_their_columns_are_refused() -> None:
    """Flatbuffers may share what they refer to, and so tell of more fields than they have bytes."""
    leaf = FieldNode("l", "leaf")
    wide = FieldNode("+s", "wide", children=(leaf,) * 30)
    deep = leaf
    for _ in range(30):
        deep = FieldNode("+s", "deep", children=(deep,))
    schema = IpcSchema(encode_schema(FieldNode("+s", children=(wide, deep))))
    assert (schema.field(0, 31), schema.field(1, 31)) == (wide, deep)
    for index in (0, 1):
        with pytest.raises(FormatError, match="more children than its column"):
            schema.field(index, 30)


def test_what_is_done_to_a_table_does_not_reach_the_next_file() -> None:
    """Entries of the same text are decoded once."""
    data = io.BytesIO()
    field = pa.field("a", pa.timestamp("us", "Europe/Berlin"), metadata={"k": "v"})
    pq.write_table(pa.table([pa.array([1], field.type)], schema=pa.schema([field])), data)
    known = fastpq.read_table(data.getvalue())["a"].arrow
    assert known is not None
    assert known.metadata == {b"k": b"v"}
    known.metadata[b"k"] = b"another"
    again = fastpq.read_table(data.getvalue())["a"].arrow
    assert again is not None
    assert again.metadata == {b"k": b"v"}


def test_frames_of_arrow_dtypes_come_back() -> None:
    arrow = pd.ArrowDtype
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], "int64[pyarrow]"),
            "s": pd.array(["a", None], arrow(pa.string())),
            "l": pd.array([[1], None], arrow(pa.list_(pa.int8()))),
            "z": pd.array([dt.datetime(2020, 1, 1), None], arrow(pa.timestamp("us", "Europe/Berlin"))),
            "d": pd.array([dt.timedelta(1), None], arrow(pa.duration("ms"))),
            "c": pd.array(["x", None], arrow(pa.dictionary(pa.int8(), pa.string()))),
        },
        index=pd.Index(np.array([3, 4]), name="id"),
    )
    exact = frame.assign(e=pd.array([Dec("1.5"), None], arrow(pa.decimal128(5, 1))))     # object in what pyarrow writes
    assert_frame_equal(fastpq.read_pandas(written(exact)), exact)
    assert_frame_equal(pd.read_parquet(io.BytesIO(written(frame[["i", "d"]]))), frame[["i", "d"]])
    sink = io.BytesIO()
    frame.to_parquet(sink)
    assert_frame_equal(fastpq.read_pandas(sink.getvalue()), frame)


def entry_of(message: bytes) -> str:
    message += bytes(-len(message) % 8)
    return base64.b64encode(b"\xff\xff\xff\xff" + len(message).to_bytes(4, "little") + message).decode()


def struct_field(**slots: Any) -> dict[int, Any]:
    return {0: b"s", 1: Scalar("B", 1), 2: Scalar("B", 13), 3: {}, 5: slots.get("children", []), 6: slots.get("metadata", [])}


def message_of(field: dict[int, Any]) -> bytes:
    return flatbuffer({0: Scalar("h", 4), 1: Scalar("B", 1), 2: {1: [field]}, 3: Scalar("q", 0)})


def hostile_entries() -> dict[str, str]:
    deep = struct_field()
    for _ in range(700):
        deep = struct_field(children=[deep])
    shared = bytearray(message_of(struct_field(metadata=[{0: b"KEY" + bytes(9000), 1: b"v"}] + [{0: b"k", 1: b"v"}] * 9000)))
    # every pair becomes the first one: its reference is that of the vector's first place
    vector = shared.index((9001).to_bytes(4, "little")) + 4
    first = vector + int.from_bytes(shared[vector : vector + 4], "little")
    for place in range(vector, vector + 4 * 9001, 4):
        shared[place : place + 4] = (first - place).to_bytes(4, "little")
    return {"deep": entry_of(message_of(deep)), "shared": entry_of(bytes(shared))}


@pytest.mark.parametrize("kind", ["deep", "shared"])
def test_entries_that_are_larger_than_they_look_are_as_good_as_none(kind: str) -> None:
    text = hostile_entries()[kind]
    with pytest.raises(FormatError, match="more children than its column" if kind == "deep" else "times its size"):
        IpcSchema(text).field(0, 800)
    table = pa.table({"s": pa.array([{f"f{number}": number for number in range(400)}])})
    got = fastpq.read_table(written(table, key_value_metadata={ARROW_KEY: text}))
    assert got["s"].arrow is None
    assert pa.table(got).to_pylist() == table.to_pylist()


def test_null_lists_are_not_filled_without_bounds() -> None:
    """A million lists of a size that one of them has would be a terabyte."""
    sizes = pa.schema([("l", pa.list_(pa.int64(), 100_000)), ("n", pa.int8())])
    claimed = base64.b64encode(sizes.serialize().to_pybytes()).decode()
    for size in (b"\xa0\x86\x01\x00", b"\xff\xff\xff\xff"):
        text = base64.b64encode(base64.b64decode(claimed).replace(b"\xa0\x86\x01\x00", size)).decode()
        lists = pa.array([[1] * 100_000] + [None] * 1_000_000, pa.list_(pa.int64()))
        table = pa.table({"l": lists, "n": pa.nulls(len(lists), pa.int8())})
        got = pa.table(fastpq.read_table(written(table, key_value_metadata={ARROW_KEY: text})))
        assert got.schema.field("l").type == pa.list_(pa.int64())
        assert got.num_rows == len(lists)


def test_durations_of_different_units_do_not_mix(tmp_path: Path) -> None:
    """Their numbers are of one Parquet type, and of one unit only by what the metadata say."""
    columns = {
        "seconds": pa.array([1, 2], pa.duration("s")),
        "more": pa.array([3, None], pa.duration("s")),
        "none": pa.array([None, None], pa.int64()),
        "milliseconds": pa.array([1, 2], pa.duration("ms")),
        "numbers": pa.array([1, 2]),
    }
    for name, array in columns.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"d": array}), tmp_path / name / "x.parquet")
    read = {name: fastpq.read_table(tmp_path / name / "x.parquet") for name in columns}
    for names in (["seconds", "more"], ["none", "seconds"]):
        got = pa.table(fastpq.Table.concat([read[name] for name in names]))
        truth = pa.concat_arrays([columns[name].cast(pa.int64()).cast(pa.duration("s")) for name in names])
        assert got["d"].to_pylist() == truth.to_pylist()
    milliseconds = fastpq.read_dataset([tmp_path / name for name in ("seconds", "milliseconds")])
    assert pa.table(milliseconds)["d"].type == pa.duration("ms")
    with pytest.raises(SchemaError, match=r"INT64 here is durations \(s\) in"):
        fastpq.read_dataset([tmp_path / name for name in ("seconds", "numbers")])
    with pytest.raises(SchemaError, match="different units"):
        fastpq.Table.concat([read["seconds"], read["numbers"]])
    for other in ("milliseconds", "numbers"):
        (tmp_path / "both").mkdir(exist_ok=True)
        for name in ("seconds", other):
            (tmp_path / "both" / name).write_bytes((tmp_path / name / "x.parquet").read_bytes())
        with pytest.raises(SchemaError, match="different durations"):
            fastpq.merge_files([tmp_path / name / "x.parquet" for name in ("seconds", other)], tmp_path / "merged")


def test_the_order_of_entries_is_lost_with_a_row_group() -> None:
    """Rows of sound row groups are read, although another row group, and so the common order, is broken."""
    table = pa.table({"c": ORDERED})
    data = written(table, arrow_schema=True, row_group_size=2)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, memoryview(data)[start:-8])[0]
    present(footer.row_groups[1].columns[0].meta_data).total_compressed_size = 1 << 40
    stored = fmt.encode(footer)
    broken = data[:start] + stored + len(stored).to_bytes(4, "little") + b"PAR1"
    with fastpq.ParquetFile(broken) as file:
        assert file.read(row_groups=[0])["c"].to_pylist() == ["high", None]
        assert file.head(2)["c"].to_pylist() == ["high", None]
        with pytest.raises(fastpq.FormatError):
            file.read()
    assert fastpq.read_table(broken, on_error="skip")["c"].to_pylist() == ["high", None, "low"]


def test_a_file_opened_often_keeps_its_fields() -> None:
    """The schema is kept decoded, and each of its readers has an allowance of its own."""
    fields = [pa.field("a", pa.int64(), metadata={"k": "v" * 50}), pa.field("d", pa.duration("us"), metadata={"m": "n" * 50})]
    table = pa.table([pa.array([1, 2]), pa.array([1, 2], pa.duration("us"))], schema=pa.schema(fields))
    out = io.BytesIO()
    pq.write_table(table, out)
    for _ in range(100):
        assert pa.table(fastpq.read_table(out.getvalue())).schema.equals(table.schema, check_metadata=True)

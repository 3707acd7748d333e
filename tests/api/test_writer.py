"""ParquetWriter: batches, schemas, and the old file or the whole new one."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.layouts import BinaryOffsets, BinaryViews
from fastpq.schema.types import ColumnType, Decimal, Timestamp, Type


def test_batches_become_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "batches.parquet"
    with fastpq.ParquetWriter(path, row_group_size=1_000) as writer:
        for start in range(0, 2_500, 100):
            writer.write_batch({"a": np.arange(start, start + 100), "b": np.full(100, "same")})
        writer.write_table({"a": np.arange(2_500, 2_600), "b": np.full(100, "other")})
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [1_000, 1_000, 500, 100]
    assert file.read().column("a").to_pylist() == list(range(2_600))


def test_row_groups_keep_their_bound_in_bytes() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(10_000), "b": np.arange(10_000.0)}, sink, row_group_bytes=16_000)
    metadata = pq.ParquetFile(sink).metadata
    assert [metadata.row_group(i).num_rows for i in range(10)] == [1_000] * 10


def test_an_exception_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    fastpq.write_table({"a": np.arange(3)}, path)
    before = path.read_bytes()
    with pytest.raises(KeyError), fastpq.ParquetWriter(path) as writer:
        writer.write_table({"a": np.arange(1_000)})
        raise KeyError("stop")
    assert path.read_bytes() == before
    with pytest.raises(fastpq.SchemaError), fastpq.ParquetWriter(path) as writer:
        writer.write_table({"a": np.arange(1_000)})
        writer.write_table({"b": np.arange(1_000)})
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.parquet"]


def test_nothing_written_needs_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    with pytest.raises(fastpq.SchemaError, match="schema"), fastpq.ParquetWriter(path):
        pass
    assert not path.exists()


def test_zero_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    fastpq.write_table({"a": np.array([], dtype=np.float32), "b": np.array([], dtype=str)}, path)
    assert pq.read_table(path).num_rows == 0
    assert pq.read_schema(path).names == ["a", "b"]
    assert fastpq.read_table(path).num_rows == 0


def test_unknown_options_and_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "refused.parquet"
    with pytest.raises(TypeError, match="compresion"):
        fastpq.write_table({"a": np.arange(3)}, path, compresion="zstd")   # type: ignore[call-arg]
    with pytest.raises(fastpq.SchemaError, match=r"column_encoding.*b"):
        fastpq.write_table({"a": np.arange(3)}, path, column_encoding={"b": "PLAIN"})
    with pytest.raises(fastpq.SchemaError, match=r"DELTA_BYTE_ARRAY does not fit INT64; it is for BYTE_ARRAY, FIXED.*column a"):
        fastpq.write_table({"a": np.arange(3)}, path, column_encoding={"a": "DELTA_BYTE_ARRAY"})
    with pytest.raises(fastpq.SchemaError, match="BIT_PACKED is for levels"):
        fastpq.write_table({"a": np.arange(3)}, path, column_encoding={"a": "BIT_PACKED"})
    assert not path.exists()


def test_options_by_column() -> None:
    sink = io.BytesIO()
    fastpq.write_table(
        {"a": np.arange(100) % 3, "b": np.arange(100) % 3, "c": np.arange(100) % 2 == 0},
        sink,
        compression={"a": "zstd"},
        column_encoding={"b": "PLAIN", "c": "RLE", "a": "PLAIN_DICTIONARY"},
        write_statistics=["a"],
    )
    group = pq.ParquetFile(sink).metadata.row_group(0)
    assert [group.column(i).compression for i in range(3)] == ["ZSTD", "UNCOMPRESSED", "UNCOMPRESSED"]
    assert [group.column(i).encodings for i in range(3)] == [("PLAIN_DICTIONARY",), ("PLAIN",), ("RLE",)]
    assert [group.column(i).is_stats_set for i in range(3)] == [True, False, False]
    assert pq.read_table(sink).column("c").to_pylist() == [True, False] * 50


def test_key_value_metadata() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(3)}, sink, key_value_metadata={"made by": "a test"})
    assert pq.ParquetFile(sink).metadata.metadata == {b"made by": b"a test"}
    assert fastpq.read_metadata(sink.getvalue()).key_value_metadata == {"made by": "a test"}


def column(values: Any, physical: Type = Type.BYTE_ARRAY, **more: Any) -> fastpq.Table:
    return fastpq.Table({"a": fastpq.Column(ColumnType(physical), values, **more)})


@pytest.mark.parametrize(
    "values",
    [
        BinaryOffsets(np.array([0, 10**9], np.int32), np.zeros(4, np.uint8)),
        BinaryOffsets(np.array([4, 0], np.int32), np.zeros(4, np.uint8)),
        BinaryViews(np.frombuffer(b"\x64\0\0\0abcd\0\0\0\0\xe8\3\0\0", "V16"), []),
    ],
    ids=["past the data", "falling", "no buffer"],
)
def test_layouts_that_point_nowhere_are_refused(values: object) -> None:
    with pytest.raises(fastpq.ParquetError):
        fastpq.write_table(column(values, nullable=False), io.BytesIO())


def test_a_bitmap_that_contradicts_the_null_count_is_refused() -> None:
    flags = np.array([0x0F], np.uint8)
    with pytest.raises(fastpq.SchemaError, match="nulls"):
        fastpq.write_table(column(np.arange(8, dtype=np.int32), Type.INT32, validity=flags, null_count=3), io.BytesIO())
    sink = io.BytesIO()
    fastpq.write_table(column(np.arange(8, dtype=np.int32), Type.INT32, validity=flags), sink)
    assert pq.read_table(sink).column("a").to_pylist() == list(range(8))


@pytest.mark.parametrize("threads", [2, 4])
def test_row_groups_of_one_column_are_encoded_at_once(threads: int) -> None:
    # each chunk needs memory of its own: for a while the chunks of a column shared theirs
    text = np.char.mod("item %d", np.arange(200_000) % 997).astype(object)
    text[::7] = None
    numbers = np.ma.MaskedArray(np.arange(200_000) * 3, mask=np.arange(200_000) % 5 == 0)
    for use_dictionary in (True, False):
        sink = io.BytesIO()
        fastpq.write_table(
            {"s": text, "n": numbers},
            sink,
            row_group_size=7001,
            data_page_rows=1000,
            threads=threads,
            use_dictionary=use_dictionary,
        )
        read = pq.read_table(sink)
        assert read.column("s").to_pylist() == text.tolist()
        assert read.column("n").to_pylist() == numbers.tolist()


def test_int96_edges() -> None:
    edges = np.array([-(2**63) + 1, -9223286400000000001, -1, 0, 2**63 - 1]).view("M8[ns]")
    sink = io.BytesIO()
    fastpq.write_table({"t": edges}, sink, schema={"t": ColumnType(Type.INT96)})
    assert (pq.read_table(sink).column("t").to_numpy() == edges).all()
    assert (fastpq.read_table(sink.getvalue())["t"].to_numpy() == edges).all()
    before_julian_days = np.array([-300_000_000_000_000]).view("M8[ms]")
    with pytest.raises(fastpq.SchemaError):
        wanted = {"t": ColumnType(Type.INT96, None, Timestamp("ms"))}
        fastpq.write_table({"t": before_julian_days}, io.BytesIO(), schema=wanted)


def test_decimals_keep_their_precision() -> None:
    short = ColumnType(Type.INT32, None, Decimal(2, 0))
    table = fastpq.Table({"d": fastpq.Column(short, np.array([12_345], np.int32), nullable=False)})
    with pytest.raises(fastpq.SchemaError, match="2 digits"):
        fastpq.write_table(table, io.BytesIO())
    with pytest.raises(fastpq.SchemaError, match="2 digits"):
        fastpq.write_table(table, io.BytesIO(), write_statistics=False)


OPTIONS = ["row_group_size", "row_group_bytes", "data_page_size", "data_page_rows", "statistics_truncation"]


@pytest.mark.parametrize("option", OPTIONS)
def test_options_must_be_positive(option: str) -> None:
    options: dict[str, Any] = {option: 0}
    with pytest.raises(ValueError, match=option):
        fastpq.write_table({"a": np.arange(3)}, io.BytesIO(), **options)


def test_long_strings_from_a_short_dictionary_keep_the_bound() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.array(["x" * 100_000] * 200, dtype=object)}, sink)
    bound = fastpq.ReaderProperties(max_allocation=1 << 20)
    assert fastpq.read_table(sink.getvalue(), properties=bound).num_rows == 200
    with pytest.raises(fastpq.LimitError):
        fastpq.read_table(sink.getvalue(), strings="offsets", properties=bound)


def test_small_index_pages() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(1_000) % 7}, sink, data_page_size=400)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert sum(stats.count for stats in file.metadata.row_group(0).column(0).encoding_stats) == 11


# ---- batches


def test_the_arrays_of_a_batch_may_be_used_again() -> None:
    sink, values = io.BytesIO(), np.arange(5)
    with fastpq.ParquetWriter(sink) as writer:
        for times in (1, 10, 100):
            np.multiply(np.arange(5), times, out=values)
            writer.write_batch({"x": values})
    assert pq.read_table(io.BytesIO(sink.getvalue()))["x"].to_pylist() == [i * times for times in (1, 10, 100) for i in range(5)]


def test_batches_make_whole_row_groups() -> None:
    sink, rows = io.BytesIO(), np.arange(100_005)
    with fastpq.ParquetWriter(sink, row_group_size=20_000) as writer:
        for start in range(0, len(rows), 20_001):
            writer.write_batch({"x": rows[start : start + 20_001]})
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [20_000] * 5 + [5]
    assert np.array_equal(fastpq.read_table(sink.getvalue())["x"].to_numpy(), rows)


def test_batches_are_bounded_by_bytes() -> None:
    sink, text = io.BytesIO(), np.array(["x" * 1000] * 1000, object)
    with fastpq.ParquetWriter(sink, row_group_bytes=1 << 20) as writer:
        for number in range(10):
            writer.write_batch({"x": text})
            assert len(sink.getvalue()) > 4 or number == 0
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    assert metadata.num_row_groups == 10
    assert metadata.num_rows == 10_000


def test_a_slice_of_a_large_table_is_as_large_as_its_rows() -> None:
    table = fastpq.read_table(_bytes_of({"x": np.array([f"{i:0100}" for i in range(50_000)], object)}))
    sink = io.BytesIO()
    fastpq.write_table(table.slice(0, 1000), sink, row_group_bytes=1 << 20)
    assert pq.read_metadata(io.BytesIO(sink.getvalue())).num_row_groups == 1


def _bytes_of(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(columns, sink)
    return sink.getvalue()


def test_threads_may_share_a_writer() -> None:
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink) as writer, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: writer.write_table({"x": np.full(500, number)}), range(120)))
    values = pq.read_table(io.BytesIO(sink.getvalue()))["x"].to_numpy()
    assert np.array_equal(np.sort(values), np.repeat(np.arange(120), 500))
    assert all(len(set(part)) == 1 for part in values.reshape(120, 500))


@pytest.mark.parametrize("options", [{"use_dictionary": "x"}, {"write_statistics": "x"}, {"bloom_filter": {"x": None}}])
def test_options_of_columns_are_no_text(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"not the text|a mapping of options"):
        fastpq.write_table({"x": np.arange(3)}, io.BytesIO(), **options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"write_page_index": ["x"]}, TypeError),
        ({"write_page_checksum": 1}, TypeError),
        ({"use_dictionary": "x"}, TypeError),
        ({"bloom_filter": ["x"]}, TypeError),
        ({"column_encoding": "PLAIN"}, TypeError),
        ({"row_group_size": 0}, ValueError),
        ({"row_group_size": True}, TypeError),
        ({"data_page_rows": 2.5}, TypeError),
        ({"data_page_version": "3.0"}, ValueError),
        ({"encoding": "best"}, ValueError),
        ({"statistics_truncation": 1 << 63}, ValueError),
        ({"no_such_option": 1}, TypeError),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        fastpq.write_table({"x": np.arange(3)}, tmp_path / "file.parquet", **options)
    assert not list(tmp_path.iterdir())


def test_batches_of_one_dictionary_are_counted_once(tmp_path: Path) -> None:
    words = np.array(["word" * 50 + str(i) for i in range(1000)], dtype=object)
    fastpq.write_table({"w": words}, tmp_path / "words.parquet")
    shared = fastpq.read_table(tmp_path / "words.parquet", strings="dictionary")
    with fastpq.ParquetWriter(tmp_path / "file.parquet", row_group_bytes=250_000) as writer:
        for _ in range(12):
            writer.write_batch(shared.slice(0, 10))
    assert fastpq.read_table(tmp_path / "file.parquet")["w"].to_pylist() == words[:10].tolist() * 12

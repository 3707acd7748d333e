"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY against their reference, the specification's examples and other writers."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq._kernel_calls import decode_byte_arrays, encode_byte_arrays, encode_numbers
from fastpq.errors import FormatError
from fastpq.format import Encoding
from fastpq.schema import types
from fastpq.schema.types import ColumnType, Type
from tests.encodings import reference
from tests.interop.parquet_java import ParquetJava, explicit_keys
from tests.narrowing import present
from tests.requirements import DATA, needs_data

FOLDER = DATA / "parquet-testing/data"

# neighbours often share a beginning, and lengths fall on both sides of a view's twelve bytes
VALUES = st.lists(
    st.builds(lambda i, tail: (b"a common beginning " * 3)[:i] + tail, st.integers(0, 40), st.binary(max_size=15)), max_size=60
)


def encoded(values: list[bytes], prefixes: bool) -> bytes:
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    encoding = Encoding.DELTA_BYTE_ARRAY if prefixes else Encoding.DELTA_LENGTH_BYTE_ARRAY
    return encode_byte_arrays(encoding, b"".join(values), offsets)


def lengths(*values: int) -> bytes:
    return encode_numbers(Encoding.DELTA_BINARY_PACKED, np.array(values, np.int32))


def value_of(view: bytes, data: bytes) -> bytes:
    length = int.from_bytes(view[:4], "little")
    if length <= 12:
        assert view[4 + length :] == bytes(12 - length)
        return view[4 : 4 + length]
    offset = int.from_bytes(view[12:], "little")
    assert view[4:8] == data[offset : offset + 4]
    assert int.from_bytes(view[8:12], "little") == 5
    return data[offset : offset + length]


def decoded_lengths(data: bytes, count: int) -> list[bytes]:
    views, _, _ = decode_byte_arrays(Encoding.DELTA_LENGTH_BYTE_ARRAY, data, count, buffer=5)
    return [value_of(view.tobytes(), data) for view in views]


def decoded_strings(data: bytes, count: int, previous: bytes = b"") -> list[bytes]:
    views, memory, _ = decode_byte_arrays(Encoding.DELTA_BYTE_ARRAY, data, count, previous, 5)
    return [value_of(view.tobytes(), memory.tobytes()) for view in views]


@given(VALUES, st.binary(max_size=5))
def test_lengths(values: list[bytes], behind: bytes) -> None:
    stream = encoded(values, False)
    assert reference.delta_lengths(stream) == values
    assert decoded_lengths(stream + behind, len(values)) == values


@given(VALUES, st.binary(max_size=5))
def test_strings(values: list[bytes], behind: bytes) -> None:
    stream = encoded(values, True)
    assert reference.delta_strings(stream) == values
    assert decoded_strings(stream + behind, len(values)) == values


@given(VALUES, st.binary(max_size=30), st.randoms(use_true_random=False))
def test_prefixes_that_need_not_be_the_longest(values: list[bytes], previous: bytes, random: Random) -> None:
    """Any prefix that the value before has will do, and the first value may go on from the page before."""
    pairs = itertools.pairwise([previous, *values])
    shared = [random.choice([n for n in range(len(a) + 1) if b.startswith(a[:n])]) for a, b in pairs]
    suffixes = [value[prefix:] for value, prefix in zip(values, shared, strict=True)]
    stream = lengths(*shared) + encoded(suffixes, False)
    assert reference.delta_strings(stream, previous) == values
    assert decoded_strings(stream, len(values), previous) == values


def test_examples_of_the_specification() -> None:
    words = [b"Hello", b"World", b"Foobar", b"ABCDEF"]
    stream = lengths(5, 5, 6, 6) + b"HelloWorldFoobarABCDEF"
    assert encoded(words, False) == stream
    assert decoded_lengths(stream, 4) == words
    words = [b"axis", b"axle", b"babble", b"babyhood"]
    stream = lengths(0, 2, 0, 3) + lengths(4, 2, 6, 5) + b"axislebabbleyhood"
    assert encoded(words, True) == stream
    assert decoded_strings(stream, 4) == words


@pytest.mark.parametrize(
    "data",
    [b"", lengths(3), lengths(3) + b"ab", lengths(-1) + b"abc", lengths(2**31 - 1) + b"abc", lengths(-(2**31)) + b"abc"],
    ids=["empty", "no data", "short", "negative", "huge", "most negative"],
)
def test_bad_lengths(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_byte_arrays(Encoding.DELTA_LENGTH_BYTE_ARRAY, data, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        lengths(0, 0),
        lengths(0, 0) + lengths(3),
        lengths(0) + lengths(3, 3) + b"abcdef",
        lengths(0, 0) + lengths(3, 3) + b"abcde",
        lengths(1, 0) + lengths(3, 3) + b"abcdef",
        lengths(0, 4) + lengths(3, 0) + b"abc",
        lengths(0, -1) + lengths(3, 3) + b"abcdef",
        lengths(0, 3) + lengths(3, -1) + b"abcdef",
        lengths(0, 3) + lengths(3, 2**31 - 1) + b"abcdef",
    ],
    ids=[
        "empty", "no suffixes", "few suffixes", "few prefixes", "short", "before the first", "too long", "negative prefix",
        "negative suffix", "huge suffix",
    ],
)
def test_bad_strings(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_byte_arrays(Encoding.DELTA_BYTE_ARRAY, data, 2)


@given(st.binary(max_size=60), st.lists(st.integers(-3, 30), max_size=20), st.integers(0, 20))
def test_any_bytes_decode_or_raise(data: bytes, sizes: list[int], count: int) -> None:
    for start in (b"", lengths(*sizes), lengths(*sizes) + lengths(*reversed(sizes))):
        for decode in (decoded_lengths, decoded_strings):
            with contextlib.suppress(FormatError):
                assert len(decode(start + data, count)) == count


TEXT = [None if i % 7 == 3 else f"ключ {i // 3:06} and some more" if i % 5 else f"k{i}" for i in range(3000)]


def table() -> pa.Table:
    return pa.table({"text": TEXT, "bytes": pa.array([t and t.encode() for t in TEXT], pa.binary())})


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_pages_of_pyarrow(encoding: str, version: str, compression: str) -> None:
    """Reads what pyarrow wrote in several pages, whole and in batches that end anywhere, in every layout."""
    sink = io.BytesIO()
    pq.write_table(
        table(),
        sink,
        use_dictionary=False,
        column_encoding=encoding,
        data_page_size=3000,
        data_page_version=version,
        compression=compression,
    )
    for strings in ("views", "offsets", "dictionary"):
        with fastpq.ParquetFile(sink.getvalue(), strings=strings) as file:
            assert pa.table(file.read()).cast(table().schema).equals(table())
            batches = [pa.table(batch).cast(table().schema) for batch in file.iter_batches(37)]
            assert pa.concat_tables(batches).equals(table())


def test_fixed_width_pages_of_pyarrow() -> None:
    values = [None if i % 4 == 0 else f"{i // 9:07}".encode() for i in range(2000)]
    expected = pa.table({"a": pa.array(values, pa.binary(7))})
    sink = io.BytesIO()
    pq.write_table(expected, sink, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY", data_page_size=1000)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert pa.table(file.read()).equals(expected)
        assert pa.concat_tables([pa.table(batch) for batch in file.iter_batches(61)]).equals(expected)


def chained(values: list[bytes], type_: ColumnType) -> bytes:
    """A file of one uncompressed column whose second page goes on from the first, as parquet-mr before 1.8 wrote it.

    Of the first value of that page, four bytes, which the last value of the first page has too, are left to its prefix. What
    this makes shorter is made up for behind the last value, where the bytes are nobody's.
    """
    half = len(values) // 2
    sink = io.BytesIO()
    fastpq.write_table(
        {"a": np.array(values, object)},
        sink,
        schema={"a": type_},
        compression="none",
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
        data_page_rows=half,
        write_page_checksum=False,
        write_statistics=False,
    )
    own = encoded(values[half:], True)
    prefixes, at = reference.delta(own, 32)
    suffixes, at = reference.delta(own, 32, at)
    other = lengths(4, *prefixes[1:]) + lengths(suffixes[0] - 4, *suffixes[1:]) + own[at + 4 :]
    assert reference.delta_strings(other, values[half - 1]) == values[half:]
    assert own in sink.getvalue()
    return made_by("parquet-mr version 1.6.0", sink.getvalue().replace(own, other + bytes(len(own) - len(other))))


def made_by(writer: str, data: bytes) -> bytes:
    """The same file with another created_by."""
    own = present(fastpq.read_metadata(data).created_by)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8].replace(bytes([len(own)]) + own.encode(), bytes([len(writer)]) + writer.encode())
    return data[:start] + footer + len(footer).to_bytes(4, "little") + data[-4:]


@pytest.mark.parametrize("fixed", [False, True])
def test_chains_across_pages(fixed: bool, tmp_path: Path, parquet_java: ParquetJava) -> None:
    """PARQUET-246; parquet-java reads such chunks when it knows the writer."""
    values = [f"key {i:010}, in some words".encode() for i in range(40)]
    length = len(values[0]) if fixed else None
    type_ = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length) if fixed else ColumnType(Type.BYTE_ARRAY, None, types.String())
    stored = chained(values, type_)
    expected = values if fixed else [value.decode() for value in values]
    assert fastpq.read_table(stored)["a"].to_pylist() == expected
    with fastpq.ParquetFile(stored) as file:
        assert [v for batch in file.iter_batches(7) for v in batch["a"].to_pylist()] == expected
        assert file.read(row_ranges=[(20, 40)])["a"].to_pylist() == expected[20:]      # the page before is read all the same
    path = tmp_path / "chained.parquet"
    path.write_bytes(stored)
    assert explicit_keys(parquet_java, "read", path, None, {}) == "".join(f"{value.decode()}\n" for value in values)


def test_values_far_larger_than_their_page() -> None:
    """Each value repeats the megabyte before it and adds a byte: 300 of them take 300 MB, which a bound must hold."""
    size, count = 1 << 20, 300
    values = np.empty(count, object)
    values[:] = [bytes(size) + bytes([i % 256]) * i for i in range(count)]
    sink = io.BytesIO()
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "data_page_size": 1 << 30}
    fastpq.write_table({"a": values}, sink, column_encoding={"a": "DELTA_BYTE_ARRAY"}, write_statistics=False, **options)
    assert len(sink.getvalue()) < 2 * size
    for bound in ("max_page_size", "max_allocation"):
        bounds: dict[str, Any] = {bound: 100 << 20}
        properties = fastpq.ReaderProperties(**bounds)
        with pytest.raises(fastpq.LimitError, match=bound):
            fastpq.read_table(sink.getvalue(), properties=properties)
    assert fastpq.read_table(sink.getvalue())["a"].slice(299).to_pylist() == [values[299]]


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_text_is_checked(encoding: str) -> None:
    """A prefix may end, and a suffix begin, within a character; what they make must be UTF-8."""
    good = ["ä" * i + "ö" for i in range(30)]
    sink = io.BytesIO()
    fastpq.write_table({"a": np.array(good, object)}, sink, compression="none", column_encoding={"a": encoding})
    assert fastpq.read_table(sink.getvalue())["a"].to_pylist() == good
    stored = bytearray(sink.getvalue())
    stored[stored.index("ö".encode()) + 1] = 0x20
    unchecked = fastpq.ReaderProperties(verify_checksums=False)
    with pytest.raises(FormatError, match="UTF-8"):
        fastpq.read_table(bytes(stored), properties=unchecked)


@needs_data
def test_file_with_expectations() -> None:
    table = fastpq.read_table(FOLDER / "delta_byte_array.parquet")
    with open(FOLDER / "delta_byte_array_expect.csv", newline="") as file:
        _, *rows = csv.reader(file)
    columns = [[value or "" for value in column.to_pylist()] for column in table.columns]
    assert columns == [list(texts) for texts in zip(*rows, strict=True)]

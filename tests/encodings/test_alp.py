"""ALP against its reference and the examples of AlpEncoding.md.

No library here reads the encoding: pyarrow 26, Polars 2.1, DuckDB 2.0, DataFusion 55 and parquet-java 1.17 refuse a file with it,
Polars by a panic. The reference, which follows the document's "Decoding" step by step, stands in for a foreign one, beside the
files that snapshots of Arrow C++ 23 and parquet-java 1.18 wrote (apache/parquet-testing, pull request 100), where the test data
have them.
"""

from __future__ import annotations

import contextlib
import csv
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq._kernel_calls import decode_numbers, encode_numbers
from fastpq.errors import FormatError, SchemaError
from fastpq.format import Encoding
from tests.encodings import reference
from tests.requirements import DATA

FILES = sorted((DATA / "parquet-testing/data").glob("alp_*.parquet"))
FLOATS = (np.float32, np.float64)


def page(vectors: list[bytes], count: int, log_size: int = 10, mode: bytes = b"\0\0") -> bytes:
    offsets = [4 * len(vectors)]
    for vector in vectors[:-1]:
        offsets.append(offsets[-1] + len(vector))
    return mode + struct.pack("<Bi", log_size, count) + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(vectors)


def vector64(
    deltas: list[int], bits: int, base: int, exponent: int = 0, factor: int = 0, exceptions: dict[int, float] | None = None
) -> bytes:
    found = exceptions or {}
    head = struct.pack("<BBHqB", exponent, factor, len(found), base, bits)
    return head + reference.pack(deltas, bits) + struct.pack(f"<{len(found)}H{len(found)}d", *found, *found.values())


def test_worked_example_of_the_specification() -> None:
    values = np.array([1500.0, np.nan, 2500.0, 333.5])
    vector = vector64([11665, 11665, 21665, 0], 15, 3335, 4, 3, {1: np.nan})
    assert len(vector) == 31
    data = page([vector], 4)
    assert decode_numbers(Encoding.ALP, data, np.float64, 0, 4).tobytes() == values.tobytes()
    ours = encode_numbers(Encoding.ALP, values)
    assert reference.alp(ours, 8) == [value.tobytes() for value in values]
    assert len(ours) <= len(data)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1023, 1024, 1025, 2500])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_exceptions_at_any_place(dtype: Any, share: float, count: int) -> None:
    random = np.random.default_rng(count)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1 / 3, np.pi * 1e30, np.finfo(dtype).tiny, np.finfo(dtype).max], dtype)
    values = (random.integers(-9999, 9999, count) / 100).astype(dtype)
    values = np.where(random.random(count) < share, odd[random.integers(0, len(odd), count)], values).astype(dtype)
    assert b"".join(reference.alp(encode_numbers(Encoding.ALP, values), values.itemsize)) == values.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sign", [1, -1])
def test_integers_around_powers_of_two(sign: int, dtype: Any) -> None:
    """The largest integers that ALP stores, and the first beyond."""
    for power in range(20, 65):
        whole = [sign * ((1 << power) + step) for step in range(-40, 41)]
        values = np.array(whole, np.float64).astype(dtype)
        assert b"".join(reference.alp(encode_numbers(Encoding.ALP, values), values.itemsize)) == values.tobytes()
    values = sign * np.arange((1 << 51) - 100, 1 << 51, dtype=np.float64)
    assert len(encode_numbers(Encoding.ALP, values)) < len(values) * 2        # no exceptions


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("digits", range(1, 9))
def test_decimals_of_many_digits(digits: int, sign: int, dtype: Any) -> None:
    """Values times a power of ten that lie between two floats of the sum which rounds them."""
    random = np.random.default_rng(digits)
    for places in range(8):
        values = (sign * random.integers(0, 10**digits, 2000) / 10**places).astype(dtype)
        assert b"".join(reference.alp(encode_numbers(Encoding.ALP, values), values.itemsize)) == values.tobytes()


def test_frame_of_reference_example() -> None:
    vector = vector64([111, 444, 777, 0], 10, 12)
    assert len(vector) == 13 + 5
    assert decode_numbers(Encoding.ALP, page([vector], 4), np.float64, 0, 4).tolist() == [123.0, 456.0, 789.0, 12.0]
    assert encode_numbers(Encoding.ALP, np.array([123.0, 456.0, 789.0, 12.0])) == page([vector], 4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bits", range(65))
@pytest.mark.parametrize("count", [1, 31, 300])
def test_every_width(dtype: Any, bits: int, count: int) -> None:
    width = np.dtype(dtype).itemsize
    if bits > 8 * width:
        return
    random = np.random.default_rng(bits)
    deltas = [int.from_bytes(random.bytes(8), "little") >> (64 - bits) if bits else 0 for _ in range(count)]
    for base in (0, -5, (1 << 8 * width - 1) - 1 - max(deltas) if bits < 8 * width else -(1 << 8 * width - 1)):
        head = struct.pack("<BBH" + ("i" if width == 4 else "q") + "B", 3, 1, 0, base, bits)
        data = page([head + reference.pack(deltas, bits)], count, 9)
        expected = reference.alp(data, width)
        assert decode_numbers(Encoding.ALP, data, dtype, 0, count).tobytes() == b"".join(expected)
        some = b"".join(expected[count // 3 :][: count // 2])
        assert decode_numbers(Encoding.ALP, data, dtype, count // 3, count // 2).tobytes() == some


SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 1 / 3, 2.0**63, -(2.0**51) - 0.5]


@given(
    st.sampled_from(FLOATS),
    st.lists(
        st.one_of(st.sampled_from(SPECIAL), st.floats(), st.decimals(-1000, 1000, places=2).map(float)), min_size=0, max_size=60
    ),
    st.integers(1, 60),
    st.data(),
)
def test_values_come_back_bit_by_bit(dtype: Any, some: list[float], repeats: int, data: st.DataObject) -> None:
    with np.errstate(over="ignore"):
        values = np.array(some * repeats, np.float64).astype(dtype)
    raw, width = values.tobytes(), values.itemsize
    encoded = encode_numbers(Encoding.ALP, values)
    assert b"".join(reference.alp(encoded, width)) == raw
    start = data.draw(st.integers(0, len(values)))
    count = data.draw(st.integers(0, len(values) - start))
    assert decode_numbers(Encoding.ALP, encoded, dtype, start, count).tobytes() == raw[start * width : (start + count) * width]


def test_nan_payloads_are_kept() -> None:
    values = np.array([0x7FF8000000000001, 0xFFF0000000000123, 0x7FF4DEADBEEF0000], np.uint64).view(np.float64)
    assert decode_numbers(Encoding.ALP, encode_numbers(Encoding.ALP, values), np.float64, 0, 3).tobytes() == values.tobytes()


@pytest.mark.parametrize(("dtype", "bits"), [(np.float32, 15), (np.float64, 12.6)])
def test_prices_take_few_bits(dtype: Any, bits: float) -> None:
    """12 bits each and the headers; of floats, whose products round more often, some are exceptions."""
    values = (np.random.default_rng(0).integers(0, 1 << 12, 10_000) / 100).astype(dtype)
    assert len(encode_numbers(Encoding.ALP, values)) < 10_000 * bits / 8


GOOD = vector64([1, 2, 3, 4, 5, 6, 7, 0], 3, 0, 2, 1, {3: 0.1})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(6),
        page([GOOD], 8, mode=b"\1\0"),
        page([GOOD], 8, mode=b"\0\1"),
        page([GOOD], 8, 2),
        page([GOOD], 8, 16),
        page([GOOD], -1),
        page([GOOD], 7)[:-1],
        page([GOOD], 9),
        page([GOOD], 1 << 30),
        page([GOOD, GOOD], 16, 3)[:7] + struct.pack("<II", 8, 8) + GOOD * 2,
        page([GOOD, GOOD], 16, 3)[:7] + struct.pack("<II", 9, 8 + len(GOOD)) + GOOD * 2,
        page([GOOD, GOOD], 16, 3)[:7] + struct.pack("<II", 8, 0xFFFFFFFF) + GOOD * 2,
        page([vector64([0] * 8, 3, 0, exponent=19)], 8),
        page([vector64([0] * 8, 3, 0, exponent=255, factor=255)], 8),
        page([vector64([0] * 8, 3, 0, exponent=2, factor=3)], 8),
        page([vector64([0] * 8, 65, 0)], 8),
        page([vector64([0] * 8, 255, 0)], 8),
        page([vector64([0] * 8, 3, 0, exceptions={8: 1.0})], 8),
        page([vector64([0] * 8, 3, 0, exceptions={65535: 1.0})], 8),
        page([vector64([0] * 8, 3, 0, exceptions=dict.fromkeys(range(9), 1.0))], 8),
    ],
)
def test_broken_pages(data: bytes) -> None:
    with pytest.raises(FormatError, match="ALP"):
        decode_numbers(Encoding.ALP, data, np.float64, 0, 16 if len(data) > 100 else 8)


def test_every_cut_and_every_byte_changed() -> None:
    """Ends in values or in a typed error, whatever the bytes are."""
    whole = encode_numbers(Encoding.ALP, np.array([1.25, 2.5, float("nan"), 1e300] * 20))
    for cut in range(len(whole)):
        with pytest.raises(FormatError):
            decode_numbers(Encoding.ALP, whole[:cut], np.float64, 0, 80)
    for at in range(len(whole)):
        for value in (0, 0xFF, whole[at] ^ 0x10):
            changed = whole[:at] + bytes([value]) + whole[at + 1 :]
            with contextlib.suppress(FormatError):
                assert len(decode_numbers(Encoding.ALP, changed, np.float64, 0, 80)) == 80


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_columns_of_a_file(version: Any, compression: str) -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 10_000, 30_000) / 100
    values[::777] = np.nan
    columns: dict[str, Any] = {
        "double": np.ma.MaskedArray(values, random.random(30_000) < 0.1),
        "float": values.astype(np.float32),
        "lists": [[1.5] * (i % 5) for i in range(30_000)],
    }
    sink = io.BytesIO()
    encodings = {"double": "ALP", "float": "ALP", "lists.list.element": "ALP"}
    fastpq.write_table(
        columns, sink, column_encoding=encodings, use_dictionary=False, compression=compression, data_page_version=version,
        data_page_size=40_000,
    )
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.metadata.row_group(0).column(0).encodings.count(fastpq.format.Encoding.ALP) == 1
        table = file.read()
        assert table.equals(fastpq.Table.concat(list(file.iter_batches(1_001))))
    got: Any = table["double"].to_numpy()
    assert np.array_equal(got.mask, columns["double"].mask)
    assert np.array_equal(got.compressed(), columns["double"].compressed(), equal_nan=True)
    assert table["float"].to_numpy().tobytes() == columns["float"].tobytes()
    assert table["lists"].to_pylist() == columns["lists"]


def test_only_where_it_is_asked_for() -> None:
    sink = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 1 << 20, 20_000) / 100
    with fastpq.ParquetWriter(sink, encoding="auto") as writer:
        writer.write_table({"x": values})
        assert writer.encodings()["x"].encoding != "ALP"
    with pytest.raises(SchemaError, match="ALP does not fit INT64"):
        fastpq.write_table({"x": np.arange(3)}, io.BytesIO(), column_encoding={"x": "ALP"}, use_dictionary=False)


# older copies of parquet-testing have none; a test that does not run shows in the report, without being a skip
NO_FILES = pytest.param(None, marks=pytest.mark.xfail(run=False, reason="the test data hold no ALP files of other writers"))


@pytest.mark.parametrize("path", FILES or [NO_FILES], ids=lambda path: path.stem if path else "none")
def test_files_of_others(path: Path) -> None:
    """Bit for bit the values beside them; the files of Java hold the values of those of C++."""
    table = fastpq.read_table(path)
    with path.with_name(path.stem.replace("_java", "") + "_expect.csv").open() as file:
        names, *rows = csv.reader(file)
    assert len(rows) == table.num_rows
    for number, name in enumerate(names):
        found = np.asarray(table[name])
        expected = np.array([row[number] for row in rows], found.dtype)
        assert found.tobytes() == expected.tobytes(), name

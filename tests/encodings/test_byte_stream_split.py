"""BYTE_STREAM_SPLIT against its reference, the specification's example and other writers."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq._kernel_calls import decode_numbers, encode_numbers
from fastpq.errors import FormatError
from fastpq.format import Encoding
from tests.encodings import reference


def test_example_of_the_specification() -> None:
    values = bytes.fromhex("AABBCCDD 00112233 A3B4C5D6")
    streams = bytes.fromhex("AA00A3 BB11B4 CC22C5 DD33D6")
    assert encode_numbers(Encoding.BYTE_STREAM_SPLIT, np.frombuffer(values, np.float32)) == streams
    assert decode_numbers(Encoding.BYTE_STREAM_SPLIT, streams, np.float32, 0, 3).tobytes() == values


@given(st.integers(1, 40), st.integers(0, 100), st.data())
def test_every_width(width: int, count: int, data: st.DataObject) -> None:
    raw = data.draw(st.randoms(use_true_random=False)).randbytes(width * count)
    values = np.frombuffer(raw, f"V{width}")
    streams = encode_numbers(Encoding.BYTE_STREAM_SPLIT, values)
    assert reference.byte_stream_split(streams, width) == [value.tobytes() for value in values]
    start = data.draw(st.integers(0, count))
    some = data.draw(st.integers(0, count - start))
    got = decode_numbers(Encoding.BYTE_STREAM_SPLIT, streams, values.dtype, start, some)
    assert got.tobytes() == raw[start * width : (start + some) * width]


@pytest.mark.parametrize(("size", "start", "count"), [(7, 0, 1), (8, 0, 3), (8, 1, 2), (8, 3, 0), (0, 0, 1), (1, 0, 0)])
def test_bad_sizes(size: int, start: int, count: int) -> None:
    with pytest.raises(FormatError):
        decode_numbers(Encoding.BYTE_STREAM_SPLIT, bytes(size), np.float32, start, count)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_pages_of_pyarrow(version: str, compression: str) -> None:
    """Reads what pyarrow wrote in several pages, whole and in batches that end anywhere."""
    random = np.random.default_rng(0)
    real = random.random(3000)
    null = random.random(3000) < 0.2
    table = pa.table(
        {
            "float": real.astype(np.float32),
            "double": pa.array(real, mask=null),
            "half": pa.array(real.astype(np.float16), mask=null),
            "int32": pa.array(random.integers(-(2**31), 2**31, 3000).astype(np.int32)),
            "uint8": pa.array(random.integers(0, 256, 3000).astype(np.uint8), mask=null),
            "int64": random.integers(-(2**63), 2**63 - 1, 3000),
            "decimal": pa.array(random.integers(-(10**9), 10**9, 3000)).cast(pa.decimal128(25, 3)),
            "fixed": pa.array([value.tobytes()[:5] for value in real], pa.binary(5)),
        }
    )
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        use_dictionary=False,
        column_encoding="BYTE_STREAM_SPLIT",
        data_page_size=2000,
        data_page_version=version,
        compression=compression,
        store_decimal_as_integer=False,
    )
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert pa.table(file.read()).cast(table.schema).equals(table)
        batches = [pa.table(batch).cast(table.schema) for batch in file.iter_batches(201)]
        assert pa.concat_tables(batches).equals(table)

"""DELTA_BINARY_PACKED against its reference, the specification's examples and files of others."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq._kernel_calls import decode_numbers, delta_size, encode_numbers
from fastpq.errors import FormatError
from fastpq.format import Encoding
from tests.encodings import reference
from tests.requirements import DATA, needs_data

FOLDER = DATA / "parquet-testing/data"

encode = partial(encode_numbers, Encoding.DELTA_BINARY_PACKED)


def decode(data: bytes, count: int, width: int, step: int = 0) -> np.ndarray:
    return decode_numbers(Encoding.DELTA_BINARY_PACKED, data, f"i{width}", 0, count, step)


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 127))


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int]:
    """A stream as any writer may make it, and the bits of its values: block sizes, widths that are wider than they must be,
    arbitrary padding, and arbitrary widths of miniblocks that are not needed."""
    bits = draw(st.sampled_from([32, 64]))
    miniblocks = draw(st.sampled_from([1, 2, 4, 8, 16]))
    size = draw(st.sampled_from([32, 64, 96, 160])) * (4 if miniblocks < 4 else 1)
    block = size * miniblocks
    assert block % 128 == 0
    count = draw(st.integers(0, 3 * block))
    data = varint(block) + varint(miniblocks) + varint(count) + zigzag(draw(st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)))
    random = draw(st.randoms(use_true_random=False))
    left = count - 1
    while left > 0:
        data += zigzag(random.randint(-(1 << bits - 1), (1 << bits - 1) - 1))
        needed = min(miniblocks, -(-left // size))
        widths = [random.choice([0, 1, 2, 3, 7, 8, 13, 24, 25, 26, 31, 32, bits - 1, bits]) for _ in range(needed)]
        data += bytes(widths) + bytes(random.randrange(256) for _ in range(miniblocks - needed))
        for width in widths:
            data += random.randbytes(size // 8 * width)
        left -= block
    return data, bits


@given(streams(), st.binary(max_size=70), st.sampled_from([0, 1, 31, 97]))
def test_decodes_every_stream(stream: tuple[bytes, int], behind: bytes, step: int) -> None:
    data, bits = stream
    values, end = reference.delta(data, bits)
    assert end == len(data)
    assert decode(data + behind, len(values), bits // 8, step).tolist() == values
    assert delta_size(data + behind) == len(data)


@st.composite
def integers(draw: st.DrawFn) -> np.ndarray:
    """Values with deltas of every width, and with wrap-around."""
    bits = draw(st.sampled_from([32, 64]))
    lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1
    scale = draw(st.integers(0, bits))
    value = st.integers(max(lowest, -(1 << scale)), min(highest, 1 << scale)) | st.sampled_from([lowest, highest, 0])
    pieces = draw(st.lists(st.tuples(value, st.integers(1, 40)), max_size=12))
    more = draw(st.lists(value, max_size=300))
    return np.array([value for value, count in pieces for _ in range(count)] + more, f"i{bits // 8}")


@given(integers())
def test_encodes_what_the_reference_decodes(values: np.ndarray) -> None:
    stream = encode(values)
    assert reference.delta(stream, values.itemsize * 8) == (values.tolist(), len(stream))
    assert decode(stream, len(values), values.itemsize).tolist() == values.tolist()


@pytest.mark.parametrize(("width", "dtype"), [*((w, "i4") for w in range(33)), *((w, "i8") for w in range(65))])
def test_widths(width: int, dtype: str) -> None:
    steps = np.random.default_rng(width).integers(0, (1 << width) - 1, 1000, dtype=np.uint64, endpoint=True)
    values = np.cumsum(steps.astype(np.int64)).astype(dtype)
    stream = encode(values)
    assert (decode(stream, 1000, values.itemsize) == values).all()
    assert reference.delta(stream, 8 * values.itemsize)[0] == values.tolist()


def test_examples_of_the_specification() -> None:
    """With blocks of 128, as the 8 of the examples would be invalid."""
    one_to_five = bytes([0x80, 0x01, 1, 5, 2, 2, 0])
    assert decode(one_to_five, 5, 4).tolist() == [1, 2, 3, 4, 5]
    packed = reference.pack([0, 0, 0, 3, 3, 3, 3] + [0] * 121, 2)
    second = bytes([0x80, 0x01, 1, 8, 14, 3, 2]) + packed
    assert decode(second, 8, 8).tolist() == [7, 5, 3, 1, 2, 3, 4, 5]
    ours = encode(np.array([7, 5, 3, 1, 2, 3, 4, 5]))
    assert ours == bytes([0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0]) + packed[:8]


def test_writers_that_did_not_wrap() -> None:
    """INT32 deltas in 33 bits, and a least delta that needs them (ARROW-17465): the sums are right modulo 2^32."""
    values = [863490391, -816295192, 1613070492, -1166045478, 1856530847]
    deltas = [b - a for a, b in itertools.pairwise(values)]
    packed = reference.pack([step - min(deltas) for step in deltas] + [0] * 124, 33)
    stream = varint(128) + varint(1) + varint(5) + zigzag(values[0]) + zigzag(min(deltas)) + bytes([33]) + packed
    assert decode(stream, 5, 4).tolist() == values


def test_padding_may_be_missing_at_the_end() -> None:
    stream = varint(128) + varint(4) + varint(4) + zigzag(0) + zigzag(0) + bytes([8, 0, 0, 0]) + bytes([1, 2, 3])
    assert decode(stream, 4, 8).tolist() == [0, 1, 3, 6]
    with pytest.raises(FormatError):
        decode(stream[:-1], 4, 8)


HEADER = varint(128) + varint(4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEADER,
        HEADER + b"\x80" * 12,
        varint(0) + varint(1) + varint(3) + varint(0),
        varint(64) + varint(2) + varint(3) + varint(0),
        varint(128) + varint(0) + varint(3) + varint(0),
        varint(128) + varint(3) + varint(3) + varint(0),
        varint(128) + varint(8) + varint(3) + varint(0),
        varint(1 << 40) + varint(1) + varint(3) + varint(0),
        varint(1 << 30) + varint(1 << 25) + varint(3) + varint(0) + varint(0) + b"\x01",
        HEADER + varint(1 << 63) + varint(0),
        HEADER + varint(2) + varint(0),
        HEADER + varint(3) + varint(0) + varint(0),
        HEADER + varint(3) + varint(0) + varint(0) + bytes([1, 0, 0]),
        HEADER + varint(3) + varint(0) + varint(0) + bytes([65, 0, 0, 0]) + bytes(600),
        HEADER + varint(3) + varint(0) + varint(0) + bytes([255, 0, 0, 0]) + bytes(2000),
        HEADER + varint(3) + varint(0) + varint(0) + bytes([64, 0, 0, 0]) + bytes(15),
    ],
    ids=[
        "empty", "no count", "long varint", "no block", "block of 64", "no miniblocks", "no divisor", "miniblock of 16",
        "huge block", "huge miniblock count", "count", "too few", "no widths", "few widths", "65 bits", "255 bits", "short",
    ],
)
def test_bad_streams(data: bytes) -> None:
    for width in (4, 8):
        with pytest.raises(FormatError):
            decode(data, 3, width)


def test_a_count_that_only_a_few_bytes_claim_is_walked_quickly() -> None:
    assert delta_size(varint(1 << 30) + varint(1) + varint((1 << 40) + 1) + varint(0) + bytes(2048)) == 2048 + 13


@given(st.binary(max_size=80), st.integers(0, 300), st.sampled_from([4, 8]))
def test_any_bytes_decode_or_raise(data: bytes, count: int, width: int) -> None:
    for start in (b"", HEADER, HEADER + varint(count)):
        with contextlib.suppress(FormatError):
            assert len(decode(start + data, count, width)) == count
        with contextlib.suppress(FormatError):
            assert 0 < delta_size(start + data) <= len(start + data)


@needs_data
@pytest.mark.parametrize("name", ["delta_binary_packed", "delta_encoding_optional_column", "delta_encoding_required_column"])
def test_files_with_expectations(name: str) -> None:
    table = fastpq.read_table(FOLDER / f"{name}.parquet")
    with open(FOLDER / f"{name}_expect.csv", newline="") as file:
        _, *rows = csv.reader(file)
    columns = [["" if value is None else str(value) for value in column.to_pylist()] for column in table.columns]
    assert columns == [list(texts) for texts in zip(*rows, strict=True)]


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_pyarrow(dtype: str, version: str) -> None:
    """Reads what pyarrow wrote in several pages, whole and in batches that end anywhere."""
    limits = np.iinfo(dtype)
    values = np.random.default_rng(1).integers(limits.min, limits.max, 5000, dtype=dtype, endpoint=True)
    table = pa.table({"a": values, "b": pa.array(values, mask=values % 3 == 0)})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, use_dictionary=False, column_encoding="DELTA_BINARY_PACKED", data_page_size=2000, data_page_version=version
    )
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert pa.table(file.read()).equals(table)
        assert pa.concat_tables([pa.table(batch) for batch in file.iter_batches(333)]).equals(table)

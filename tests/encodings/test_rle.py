"""The RLE / bit-packing hybrid against its reference and the specification's example."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq._kernel_calls import decode_hybrid
from fastpq.encodings import rle
from fastpq.errors import FormatError
from tests.encodings import reference


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int, list[int]]:
    """A hybrid stream as any writer may make it, its width and its values."""
    width = draw(st.integers(0, 32))
    values: list[int] = []
    data = b""
    for _ in range(draw(st.integers(1, 6))):
        value = st.integers(0, (1 << width) - 1)
        if draw(st.booleans()):
            count = draw(st.integers(1, 300))
            one = draw(value)
            data += header(count << 1) + one.to_bytes((width + 7) // 8, "little")
            values += [one] * count
        else:
            groups = draw(st.integers(1, 20))
            packed = draw(st.lists(value, min_size=8 * groups, max_size=8 * groups))
            data += header(groups << 1 | 1) + reference.pack(packed, width)
            values += packed
    return data, width, values


def header(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def test_example_of_the_specification() -> None:
    packed = bytes([0b10001000, 0b11000110, 0b11111010])       # Encodings.md: 0 to 7 in three bits each
    assert decode_hybrid(header(1 << 1 | 1) + packed, 3, 8).tolist() == list(range(8))
    assert rle.encode(np.arange(8, dtype=np.uint32), 3) == header(1 << 1 | 1) + packed


@given(streams())
def test_decodes_every_stream(stream: tuple[bytes, int, list[int]]) -> None:
    data, width, values = stream
    assert decode_hybrid(data, width, len(values)).tolist() == values
    assert reference.hybrid(data, width, len(values)) == values


@given(st.integers(0, 32), st.data())
def test_encodes_what_the_reference_decodes(width: int, data: st.DataObject) -> None:
    value = st.integers(0, (1 << width) - 1)
    runs = data.draw(st.lists(st.tuples(value, st.sampled_from([1, 1, 2, 7, 8, 9, 15, 16, 17, 100])), max_size=40))
    values = [value for value, count in runs for _ in range(count)]
    stream = rle.encode(np.array(values, dtype=np.uint32), width)
    assert reference.hybrid(stream, width, len(values)) == values


@pytest.mark.parametrize("width", range(33))
@pytest.mark.parametrize("count", [1, 31, 32, 33, 8_192, 10_001])
def test_widths_and_lengths(width: int, count: int) -> None:
    values = np.random.default_rng(width).integers(0, 1 << width, count, dtype=np.uint64).astype(np.uint32)
    stream = rle.encode(values, width)
    assert (decode_hybrid(stream, width, count) == values).all()
    if count < 1_000:
        assert reference.hybrid(stream, width, count) == values.tolist()


def test_runs_are_short() -> None:
    assert len(rle.encode(np.zeros(1_000_000, dtype=np.uint32), 20)) == 6
    assert len(rle.encode(np.repeat(np.arange(10, dtype=np.uint32), 1_000), 4)) < 60


@pytest.mark.parametrize(
    ("data", "width", "count"),
    [
        (b"", 3, 1),
        (header(1 << 1), 8, 1),
        (header(2 << 1 | 1) + b"\x00", 8, 9),
        (b"\xff\xff\xff\xff\xff\xff\x01\x00", 1, 8),
        (header(8 << 1) + b"\x02", 1, 8),
        (b"\x00", 33, 1),
        (b"", 33, 1),
        (header(0) + b"\x01", 8, 1),
        (header(1), 8, 1),
    ],
    ids=[
        "empty", "no value", "short", "long header", "value too wide", "width", "width of nothing", "RLE of 0", "packed of 0",
    ],
)
def test_bad_streams(data: bytes, width: int, count: int) -> None:
    with pytest.raises(FormatError):
        decode_hybrid(data, width, count)


@given(st.binary(max_size=64), st.integers(0, 32), st.integers(0, 200))
def test_any_bytes_decode_or_raise(data: bytes, width: int, count: int) -> None:
    try:
        values = decode_hybrid(data, width, count)
    except FormatError:
        return
    assert len(values) == count

"""Dictionary decoding and encoding against NumPy and the hybrid's reference."""

from __future__ import annotations

import numpy as np
import pytest

from fastpq._kernel_calls import decode_numbers
from fastpq.encodings import dictionary, rle
from fastpq.errors import FormatError
from fastpq.format import Encoding
from tests.encodings import reference

DTYPES = ["u1", "<i2", "<i4", "<i8", "V12", "V16", "V5", "V32"]


def random_values(dtype: str, count: int) -> np.ndarray:
    size = np.dtype(dtype).itemsize
    return np.random.default_rng(1).integers(0, 256, (count, size), dtype=np.uint8).view(dtype).reshape(-1)


def decode(indices: bytes, bit_width: int, entries: np.ndarray, count: int) -> np.ndarray:
    page = bytes([bit_width]) + indices
    return decode_numbers(Encoding.RLE_DICTIONARY, page, entries.dtype, 0, count, entries=entries)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 200, 5_000])
def test_decode(dtype: str, size: int) -> None:
    values = random_values(dtype, size)
    indices = np.random.default_rng(2).integers(0, size, 10_000, dtype=np.uint32)
    indices[3_000:7_000] = size - 1
    width = int(size - 1).bit_length()
    got = decode(rle.encode(indices, width), width, values, len(indices))
    assert got.tobytes() == values[indices].tobytes()


@pytest.mark.parametrize("run", [[5] * 20, list(range(8))])
def test_an_index_outside_the_dictionary(run: list[int]) -> None:
    stream = rle.encode(np.array(run, dtype=np.uint32), 3)
    with pytest.raises(FormatError, match="outside the dictionary"):
        decode(stream, 3, np.arange(5), len(run))


def test_no_dictionary() -> None:
    with pytest.raises(FormatError, match="outside the dictionary"):
        decode(b"\x02", 0, np.arange(0), 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distinct", [1, 100, 20_000])
def test_encode(dtype: str, distinct: int) -> None:
    values = random_values(dtype, distinct)[np.random.default_rng(3).integers(0, distinct, 30_000)]
    encoder = dictionary.DictionaryEncoder(values.dtype.itemsize)
    codes = np.concatenate([encoder.encode(values[:11_000]), encoder.encode(values[11_000:])])
    table = np.frombuffer(encoder.values(), dtype=dtype)
    assert table[codes].tobytes() == values.tobytes()
    assert len({value.tobytes() for value in table}) == len(table) == encoder.count
    first_seen = np.unique(codes, return_index=True)[1]
    assert (np.diff(first_seen) > 0).all()      # codes in order of first appearance


def stretch(first: int, size: int, step: int = 1) -> np.ndarray:
    return np.random.default_rng(size).permutation(np.repeat(first + step * np.arange(size), 2))


# Integers in turn. Codes of a small range are kept by value; the range may grow on both sides, until it is too large for that.
RANGES = {
    "one range": [stretch(-20, 900)],
    "neighbours": [stretch(0, 3_000), stretch(3_000, 3_000), stretch(-3_000, 3_000)],
    "a growing range": [stretch(start, 700, 9) for start in range(0, 500_000, 20_000)],
    "from a small range to a large one": [stretch(5, 40), stretch(-(1 << 30), 40, 1 << 25), stretch(0, 60)],
    "a far value late": [stretch(-5_000, 9_000), np.array([1 << 31, -(1 << 31), 7]) - 1, stretch(-6_000, 9_000)],
    "both ends": [np.array([0, 1, -1]), stretch(0, 30)],
    "few values far apart": [np.array([0, 17 * 3])],
    "nothing": [np.array([], np.int64), stretch(8, 3), np.array([], np.int64)],
}


@pytest.mark.parametrize("dtype", ["<i4", "<i8"])
@pytest.mark.parametrize("place", ["low", "middle", "high"])
@pytest.mark.parametrize("parts", RANGES.values(), ids=RANGES)
def test_integers_of_a_range(dtype: str, place: str, parts: list[np.ndarray]) -> None:
    limits = np.iinfo(dtype)
    origin = {"low": limits.min, "middle": 0, "high": limits.max}[place]
    encoder = dictionary.DictionaryEncoder(limits.dtype.itemsize)
    known: dict[int, int] = {}
    for part in parts:
        with np.errstate(over="ignore"):
            values = (part + origin).astype(np.int64).astype(dtype)     # around the ends, values of both signs
        expected = [known.setdefault(value, len(known)) for value in values.tolist()]
        assert encoder.encode(values).tolist() == expected
        assert encoder.count == len(known)
    assert encoder.values() == np.array(list(known), dtype).tobytes()


@pytest.mark.parametrize("most", [0, 1, 512, 1_023, 1_500])
def test_integers_of_a_range_stop_at_the_limit(most: int) -> None:
    values = stretch(-50, 2_000).astype(np.int32)
    encoder = dictionary.DictionaryEncoder(4)
    codes = encoder.encode(values[:2_000], 4 * most)
    first_seen = np.sort(np.unique(values, return_index=True)[1])
    assert len(codes) == min(first_seen[most], 2_000)
    assert encoder.count == len(np.unique(values[: len(codes)])) <= most
    if len(codes):
        assert np.frombuffer(encoder.values(), np.int32)[codes].tolist() == values[: len(codes)].tolist()


def test_encode_stops_at_the_limit() -> None:
    encoder = dictionary.DictionaryEncoder(8)
    codes = encoder.encode(np.array([1, 2, 1, 3, 4, 1]), 24)
    assert codes.tolist() == [0, 1, 0, 2]
    assert encoder.plain_size == 24


def test_the_reference_reads_our_indices() -> None:
    encoder = dictionary.DictionaryEncoder(4)
    values = np.array([7, 7, 9, 7] * 100, dtype=np.int32)
    assert reference.hybrid(rle.encode(encoder.encode(values), 1), 1, 400) == [0, 0, 1, 0] * 100
    assert encoder.values() == np.array([7, 9], dtype=np.int32).tobytes()


@pytest.mark.parametrize("entries", [1, 31, 32, 33, 64, 65, 1000])
def test_flags_of_codes(entries: int) -> None:
    random = np.random.default_rng(5)
    flags = random.random(entries) < 0.5
    codes = random.integers(0, entries, 5003).astype(np.int32)
    assert dictionary.flags_of_codes(codes, flags).tolist() == flags[codes].tolist()
    assert dictionary.flags_of_codes(codes[:0], flags).tolist() == []
    assert dictionary.flags_of_codes(np.zeros(3, np.int32), flags[:0]).tolist() == [False] * 3
    for outside in (entries, -1):
        with pytest.raises(FormatError):
            dictionary.flags_of_codes(np.array([0, outside], np.int32), flags)

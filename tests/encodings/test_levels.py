"""Definition levels and bitmaps against their reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq.encodings import levels, rle
from fastpq.errors import FormatError
from tests.encodings import reference

FLAGS = st.lists(st.booleans(), min_size=1, max_size=300)


def bitmap_of(flags: list[bool]) -> np.ndarray:
    return np.packbits(np.array(flags, dtype=bool), bitorder="little")


def flags_of(bitmap: np.ndarray, count: int) -> list[bool]:
    return np.unpackbits(bitmap, count=count, bitorder="little").astype(bool).tolist()


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 70)), min_size=1, max_size=12))
def test_decodes_every_stream(runs: list[tuple[bool, int]]) -> None:
    flags = [flag for flag, count in runs for _ in range(count)]
    stream = rle.encode(np.array(flags, dtype=np.uint32), 1)
    assert reference.hybrid(stream, 1, len(flags)) == flags
    bitmap, ones = levels.decode(stream, len(flags))
    assert flags_of(bitmap, len(flags)) == flags
    assert ones == sum(flags)


def test_runs_at_odd_places() -> None:
    stream = b"\x0a\x01" + b"\x03\x0f" + b"\x06\x01"         # five ones; 1111 0000; three ones
    bitmap, ones = levels.decode(stream, 16)
    assert flags_of(bitmap, 16) == [True] * 9 + [False] * 4 + [True] * 3
    assert ones == 12


@given(FLAGS, st.integers(0, 20))
def test_encodes_what_the_reference_decodes(flags: list[bool], offset: int) -> None:
    bitmap = bitmap_of([False] * offset + flags)
    assert reference.hybrid(levels.encode(bitmap, offset, len(flags)), 1, len(flags)) == flags


def test_bit_packed_example_of_the_specification() -> None:
    # Encodings.md, "Bit-packed (Deprecated)": packed from the most significant bit of each byte
    bitmap, ones = levels.decode(bytes([0b10110000, 0b10000000]), 9, bit_packed=True)
    assert flags_of(bitmap, 9) == [True, False, True, True, False, False, False, False, True]
    assert ones == 4


@pytest.mark.parametrize(("data", "packed"), [(b"", False), (b"\x06\x02", False), (b"\x02", False), (b"\xff", True)])
def test_bad_streams(data: bytes, packed: bool) -> None:
    with pytest.raises(FormatError):
        levels.decode(data, 9, packed)


@given(FLAGS, st.sampled_from(["u1", "<i2", "<i4", "<f8", "V16", "V7", "V32"]))
def test_spread_and_pick(flags: list[bool], dtype: str) -> None:
    mask = np.array(flags)
    raw = np.random.default_rng(0).integers(0, 256, (len(flags), np.dtype(dtype).itemsize), dtype=np.uint8)
    values = raw.view(dtype).reshape(-1)
    expected = np.zeros(len(flags), dtype=dtype)
    expected[mask] = values[mask]
    assert levels.spread(bitmap_of(flags), len(flags), values[mask]).tobytes() == expected.tobytes()
    shifted = bitmap_of([True] * 3 + flags)
    assert levels.pick(shifted, 3, values).tobytes() == values[mask].tobytes()


@given(FLAGS, st.integers(0, 70))
def test_merge_touches_its_bits_alone(flags: list[bool], offset: int) -> None:
    before = [True] * offset + [False] * len(flags) + [True] * 13
    target = bitmap_of(before)
    levels.merge_validity(target, offset, bitmap_of(flags), len(flags))
    assert flags_of(target, len(before)) == [True] * offset + flags + [True] * 13


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 200)), min_size=1, max_size=12), st.integers(0, 20), st.integers(1, 64),
       st.integers(1, 300))
def test_stretches(runs: list[tuple[bool, int]], offset: int, least_clear: int, least_set: int) -> None:
    flags = [flag for flag, count in runs for _ in range(count)]
    bitmap = bitmap_of([True] * offset + flags)
    start = 0
    for size, kind in levels.stretches(bitmap, offset, len(flags), least_clear, least_set):
        part, behind = flags[start : start + size], flags[start + size :]
        start += size
        if kind == 0:
            assert not any(part)
            assert not behind or behind[0]
            assert not behind or size >= least_clear
        elif kind == 1:
            assert all(part)
            assert not behind or not behind[0]
            assert not behind or size >= least_set
        else:
            assert True in part
            assert part[: least_clear + 1].count(True) > 0
            assert not behind or not any(behind[:64]) or all(behind[:least_set])
            assert "0" * 127 not in "".join("01"[flag] for flag in part)
    assert start == len(flags)


@given(FLAGS, st.integers(0, 70), st.integers(0, 70), st.data())
def test_picked_bits(mask: list[bool], offset: int, mask_offset: int, data: st.DataObject) -> None:
    source = data.draw(st.lists(st.booleans(), min_size=len(mask), max_size=len(mask)))
    picked, size = levels.pick_of_bitmap(
        bitmap_of([True] * offset + source), offset, bitmap_of([True] * mask_offset + mask), mask_offset, len(mask))
    assert size == sum(mask)
    expected = [flag for flag, chosen in zip(source, mask, strict=True) if chosen]
    assert picked.tolist() == bitmap_of(expected).tolist()      # padding bits are clear

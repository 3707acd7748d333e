"""Definition levels and bitmaps against their reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq import _kernel_calls as levels
from fastpq.encodings import rle
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
    bitmap, ones = levels.decode_flat_levels(stream, len(flags))
    assert flags_of(bitmap, len(flags)) == flags
    assert ones == sum(flags)


def test_runs_at_odd_places() -> None:
    stream = b"\x0a\x01" + b"\x03\x0f" + b"\x06\x01"         # five ones; 1111 0000; three ones
    bitmap, ones = levels.decode_flat_levels(stream, 16)
    assert flags_of(bitmap, 16) == [True] * 9 + [False] * 4 + [True] * 3
    assert ones == 12


def run_of(kind: int, size: int, bits: int) -> bytes:
    """A run of `size` levels 0 (kind 0) or 1, or of `size` bit-packed groups of eight (kind 2) with the low bits of `bits`."""
    number = size << 1 | (kind == 2)
    header = bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])
    return header + ((bits % (1 << 8 * size)).to_bytes(size, "little") if kind == 2 else bytes([kind]))


SIZES = st.integers(1, 63) | st.integers(1, 9) | st.integers(54, 140)
RUNS = st.lists(st.tuples(st.integers(0, 2), SIZES, st.integers(0, 1 << 60)), min_size=1, max_size=80)


@given(RUNS, st.integers(0, 700))
def test_runs_of_any_length(runs: list[tuple[int, int, int]], cut: int) -> None:
    stream = b"".join(run_of(kind, size, bits * 0x1000000000000001) for kind, size, bits in runs)
    count = max(1, sum(size * 8 if kind == 2 else size for kind, size, _ in runs) - cut)
    expected = [bool(level) for level in reference.hybrid(stream, 1, count)]
    bitmap, ones = levels.decode_flat_levels(stream, count)
    assert flags_of(bitmap, count) == expected
    assert ones == sum(expected)
    assert bitmap.tolist() == bitmap_of(expected).tolist()      # padding bits are clear


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40), st.integers(0, 1 << 60)), min_size=20, max_size=80),
       st.integers(0, 19), st.sampled_from([b"\x08\x02", b"\x08\xff", b"\x00\x01", b"\x01", b"\xff\xff\xff\xff\xff\x01\x01"]))
def test_a_bad_run_among_short_ones(runs: list[tuple[int, int, int]], place: int, bad: bytes) -> None:
    parts = [run_of(*run) for run in runs]
    count = sum(size * 8 if kind == 2 else size for kind, size, _ in runs)
    with pytest.raises(FormatError):
        levels.decode_flat_levels(b"".join([*parts[:place], bad, *parts[place:]]), count)
    with pytest.raises(FormatError):
        levels.decode_flat_levels(b"".join(parts[:-1]), count)


@given(FLAGS, st.integers(0, 20))
def test_encodes_what_the_reference_decodes(flags: list[bool], offset: int) -> None:
    bitmap = bitmap_of([False] * offset + flags)
    assert reference.hybrid(levels.encode_flat_levels(bitmap, offset, len(flags)), 1, len(flags)) == flags


def test_bit_packed_example_of_the_specification() -> None:
    # Encodings.md, "Bit-packed (Deprecated)": packed from the most significant bit of each byte
    bitmap, ones = levels.decode_flat_levels(bytes([0b10110000, 0b10000000]), 9, bit_packed=True)
    assert flags_of(bitmap, 9) == [True, False, True, True, False, False, False, False, True]
    assert ones == 4


@pytest.mark.parametrize(("data", "packed"), [(b"", False), (b"\x06\x02", False), (b"\x02", False), (b"\xff", True)])
def test_bad_streams(data: bytes, packed: bool) -> None:
    with pytest.raises(FormatError):
        levels.decode_flat_levels(data, 9, packed)


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


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dtype", ["u1", "<i4", "<i8", "V16", "V12"])
def test_spread_of_many(dtype: str, share: float) -> None:
    random = np.random.default_rng(5)
    for count in (63, 64, 65, 127, 128, 640, 1000):
        mask = random.random(count) < share
        values = random.integers(0, 256, (count, np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype).reshape(-1)
        expected = np.zeros(count, dtype)
        expected[mask] = values[mask]
        assert levels.spread(bitmap_of(mask.tolist()), count, values[mask]).tobytes() == expected.tobytes()


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

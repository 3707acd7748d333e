"""The loops of the Arrow interface bit by bit, and the concatenation of columns."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from fastpq.arrays.table import BinaryOffsets, Column, DictionaryValues
from fastpq.arrow import loops
from fastpq.arrow.fields import concat_batches
from fastpq.schema.types import ColumnType, String, Type

TEXT = ColumnType(Type.BYTE_ARRAY, logical=String())


def bits_of(bitmap: np.ndarray[Any, Any] | bytes | None) -> list[int]:
    assert bitmap is not None
    return [byte >> i & 1 for byte in bytes(bitmap) for i in range(8)]


@pytest.mark.parametrize("seed", range(20))
def test_copy_bits_touches_only_its_run(seed: int) -> None:
    rng = random.Random(seed)
    source = rng.randbytes(40)
    for _ in range(50):
        offset, length = rng.randrange(100), rng.randrange(200)
        target = np.zeros((length + 20) // 8, np.uint8)
        loops.copy_bits(np.frombuffer(source, np.uint8), offset, length, target)
        expected = bits_of(source)[offset : offset + length]
        assert bits_of(target) == expected + [0] * (len(target) * 8 - len(expected))
        assert loops.count_bits(target, length) == sum(expected)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (loops.copy_bits, (np.zeros(2, np.uint8), 9, 8, np.zeros(2, np.uint8))),
        (loops.copy_bits, (np.zeros(2, np.uint8), 0, 16, np.zeros(1, np.uint8))),
        (loops.count_bits, (np.zeros(2, np.uint8), 17)),
        (loops.dirty_null, (np.zeros(7, np.uint8), 4, np.zeros(1, np.uint8), 2)),
        (loops.dirty_null, (np.zeros(64, np.uint8), 4, np.zeros(1, np.uint8), 9)),
        (loops.clear_nulls, (np.zeros(7, np.uint8), 4, np.zeros(1, np.uint8), 2)),
        (loops.bad_view, (np.zeros(144, np.uint8), np.zeros(1, np.uint8), np.zeros(0, np.int64))),
        (loops.widen_into, (np.zeros(2, np.int32), np.zeros(31, np.uint8))),
        (loops.narrow_into, (np.zeros(64, np.uint8), np.zeros(31, np.uint8))),
        (loops.bad_offset, (np.zeros(0, np.int32),)),
    ],
)
def test_loops_check_sizes_first(call: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"outside|no offsets"):
        call(*arguments)


def test_decimals_widen_and_narrow() -> None:
    for dtype, values in ((np.int32, [0, 1, -1, 2**31 - 1, -(2**31)]), (np.int64, [5, -5, 2**63 - 1, -(2**63)])):
        out = np.zeros(16 * len(values), np.uint8)
        loops.widen_into(np.array(values, dtype), out)
        assert [int.from_bytes(out[i : i + 16], "little", signed=True) for i in range(0, len(out), 16)] == values
    fit = [0, -1, 2**127 - 1, -(2**127)]
    for values, wrong in ((fit, -1), ([*fit, 2**127], 4), ([-(2**127) - 1], 0), ([2**192], 0)):
        wide = np.frombuffer(b"".join(v.to_bytes(32, "little", signed=True) for v in values), np.uint8)
        out = np.zeros(16 * len(values), np.uint8)
        assert loops.narrow_into(wide, out) == wrong
        if wrong < 0:
            assert [int.from_bytes(out[i : i + 16], "little", signed=True) for i in range(0, len(out), 16)] == values


def words(*values: bytes, wide: bool = False) -> BinaryOffsets:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64 if wide else np.int32)
    return BinaryOffsets(offsets, np.frombuffer(b"".join(values), np.uint8) if any(values) else np.zeros(0, np.uint8))


def test_concatenated_dictionaries_are_merged() -> None:
    def part(codes: list[int], *entries: bytes) -> Column:
        return Column(TEXT, DictionaryValues(np.array(codes, np.int32), Column(TEXT, words(*entries), nullable=False)))

    same = concat_batches([part([0, 1], b"a", b"b"), part([1], b"a", b"b")]).values
    assert isinstance(same, DictionaryValues)
    assert same.codes.tolist() == [0, 1, 1]
    empty = Column(TEXT, part([0, 0]).values, np.zeros(1, np.uint8), 2)
    merged = concat_batches([part([0, 1], b"a", b"b"), empty, part([0, 1, 2], b"b", b"", b"a")])
    assert isinstance(merged.values, DictionaryValues)
    assert merged.values.codes.tolist() == [0, 1, 0, 0, 1, 2, 0]
    assert merged.values.dictionary.to_pylist() == ["a", "b", ""]
    assert (merged.null_count, bits_of(merged.validity)[:7]) == (2, [1, 1, 0, 0, 1, 1, 1])


def test_concatenated_offsets_start_anywhere_and_widen() -> None:
    sliced = words(b"skipped", b"one", b"two", b"after")
    sliced = BinaryOffsets(sliced.offsets[1:4], sliced.data)
    values = concat_batches([Column(TEXT, sliced), Column(TEXT, words()), Column(TEXT, words(b"3"))]).values
    assert isinstance(values, BinaryOffsets)
    assert (values.offsets.tolist(), values.offsets.dtype, values.data.tobytes()) == (
        [0, 3, 6, 7],
        np.dtype(np.int32),
        b"onetwo3",
    )
    values = concat_batches([Column(TEXT, words(b"a")), Column(TEXT, words(b"b", wide=True))]).values
    assert isinstance(values, BinaryOffsets)
    assert values.offsets.dtype == np.int64

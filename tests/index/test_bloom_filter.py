"""Bloom filters against xxhash, a pure-Python reference of BloomFilter.md, and filters of foreign origin."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq import format as fmt
from fastpq._kernel_calls import insert_slices
from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.slices import SliceReader
from fastpq.encryption.cipher import ModuleCipher
from fastpq.index.bloom_filter import SplitBlockBloomFilter, hash_each, hash_values
from fastpq.index.bloom_format import serialized_filter
from fastpq.index.bloom_size import bytes_for, false_positive_rate
from tests.requirements import DATA, compiler, needs_data

SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
BATCH = 1 << 20


class Reference:
    """The specification's pseudocode."""

    def __init__(self, blocks: int) -> None:
        self.words = np.zeros((blocks, 8), np.uint32)

    def _bits(self, value: bytes) -> tuple[int, list[int]]:
        hash_ = xxhash.xxh64_intdigest(value)
        bits = [1 << ((hash_ & 0xFFFFFFFF) * salt % (1 << 32) >> 27) for salt in SALT]
        return (hash_ >> 32) * len(self.words) >> 32, bits

    def insert(self, value: bytes) -> None:
        block, bits = self._bits(value)
        for word, bit in enumerate(bits):
            self.words[block, word] |= np.uint32(bit)

    def check(self, value: bytes) -> bool:
        block, bits = self._bits(value)
        return all(int(self.words[block, word]) & bit for word, bit in enumerate(bits))


def reader(values: Sequence[bytes | None]) -> SliceReader:
    offsets = np.cumsum([0, *(len(value or b"") for value in values)]).astype(np.int32)
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    valid = np.packbits([value is not None for value in values], bitorder="little")
    return SliceReader(BinaryOffsets(offsets, data), valid)


# ---- the hash


@given(st.binary(max_size=200))
def test_hash_of_bytes(value: bytes) -> None:
    assert hash_each([value]).tolist() == [xxhash.xxh64_intdigest(value)]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 12, 16, 31, 32, 33, 64, 71])
def test_hash_of_values(width: int) -> None:
    values = np.random.default_rng(width).integers(0, 256, 1000 * width + 1, dtype=np.uint8)[1:]    # not aligned
    expected = [xxhash.xxh64_intdigest(values[at : at + width].tobytes()) for at in range(0, len(values), width)]
    assert hash_values(values, width).tolist() == expected


# ---- the filter


@pytest.mark.parametrize("blocks", [1, 2, 3, 64, 1000])
def test_bits_are_those_of_the_specification(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    inserted = [random.bytes(size) for size in random.integers(0, 40, 700)]
    others = [random.bytes(size) for size in random.integers(0, 40, 700)]
    reference, made = Reference(blocks), SplitBlockBloomFilter(32 * blocks)
    for value in inserted:
        reference.insert(value)
    insert_slices(made, reader([*inserted, None]))
    assert made.bitset.tobytes() == reference.words.tobytes()
    probed = [*inserted, *others]
    assert made.probe_hashes(hash_each(probed)).tolist() == [reference.check(value) for value in probed]
    assert [made.might_contain(value) for value in probed[650:750]] == [reference.check(value) for value in probed[650:750]]


@pytest.mark.parametrize("width", [4, 8, 12, 16])
def test_fixed_width(width: int) -> None:
    values = np.random.default_rng(0).integers(0, 256, 3000 * width, dtype=np.uint8)
    items = [values[at : at + width].tobytes() for at in range(0, len(values), width)]
    fixed, variable = SplitBlockBloomFilter(4096), SplitBlockBloomFilter(4096)
    fixed.insert(values[: 1000 * width], width)
    insert_slices(variable, reader(list(items[:1000])))
    assert np.array_equal(fixed.bitset, variable.bitset)
    assert np.array_equal(fixed.probe(values, width), variable.probe_hashes(hash_each(items)))
    assert fixed.probe(values[: 1000 * width], width).all()


@pytest.mark.parametrize("size", [0, -32, 31, 33, 1 << 36])
def test_sizes_that_are_none(size: int) -> None:
    with pytest.raises(ValueError, match="bitset"):
        SplitBlockBloomFilter(size)


def test_what_was_read_is_not_written_to() -> None:
    read = SplitBlockBloomFilter.of_bitset(np.zeros(64, np.uint8))
    with pytest.raises(ValueError, match="read"):
        read.insert(np.zeros(8, np.uint8), 8)
    with pytest.raises(ValueError, match="values of 8 bytes"):
        read.probe(np.zeros(9, np.uint8), 8)
    for broken in (b"", b"x" * 33):
        with pytest.raises(fastpq.FormatError):
            SplitBlockBloomFilter.of_bitset(broken)


def test_no_false_negatives(request: pytest.FixtureRequest) -> None:
    """--bloom-probes 100000000 for what the issue asks for."""
    for start in range(0, request.config.getoption("--bloom-probes"), BATCH):
        values = np.arange(start * 7, (start + BATCH) * 7, 7).view(np.uint8)
        made = SplitBlockBloomFilter(bytes_for(BATCH, 0.2))
        made.insert(values, 8)
        assert made.probe(values, 8).all()


HEADERS = Path(__file__).resolve().parents[2] / "fastpq/index/c"        # of the sources: an installed fastpq has no headers
EXPORTED = """
#include "split_block.h"
void insert(uint8_t *bits, uint64_t blocks, const uint64_t *hashes, int64_t count) {
    split_block_insert(bits, blocks, hashes, count);
}
void probe(const uint8_t *bits, uint64_t blocks, const uint64_t *hashes, int64_t count, uint8_t *found) {
    split_block_probe(bits, blocks, hashes, count, found);
}
"""


def compiled(folder: Path, name: str, *options: str) -> Any:
    """The loops of split_block.h."""
    library = folder / f"{name}.so"
    arguments = ["-shared", "-fPIC", "-O2", "-std=c11", f"-I{HEADERS}", *options, "-x", "c", "-", "-o", str(library)]
    subprocess.run([compiler(), *arguments], input=EXPORTED, text=True, check=True)
    return ctypes.CDLL(str(library))


def at(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.mark.parametrize("blocks", [1, 7, 1 << 10, 1 << 14])
def test_instruction_sets_agree(blocks: int, tmp_path: Path) -> None:
    """The loops that the processor has instructions for, and those for any processor (FASTPQ_NO_CLONES)."""
    random = np.random.default_rng(blocks)
    inserted = random.integers(0, 1 << 64, 3 * blocks, dtype=np.uint64)
    probed = np.concatenate([inserted, random.integers(0, 1 << 64, 20_000, dtype=np.uint64)])
    made = []
    for library in (compiled(tmp_path, "chosen"), compiled(tmp_path, "any", "-DFASTPQ_NO_CLONES")):
        bits, found = np.zeros(32 * blocks, np.uint8), np.zeros(len(probed), np.uint8)
        library.insert(at(bits), ctypes.c_uint64(blocks), at(inserted), ctypes.c_int64(len(inserted)))
        library.probe(at(bits), ctypes.c_uint64(blocks), at(probed), ctypes.c_int64(len(probed)), at(found))
        made.append((bits, found))
    (bits, found), (same_bits, same_found) = made
    assert np.array_equal(bits, same_bits)
    assert np.array_equal(found, same_found)
    assert found[: len(inserted)].all()
    assert blocks == 1 or not found.all()


# ---- size


# BloomFilter.md, "Sizing an SBBF": 1024 blocks
@pytest.mark.parametrize(("ndv", "rate"), [(26_214, 0.0126), (52_428, 0.18), (13_107, 0.0004)])
def test_rates_of_the_specification(ndv: int, rate: float) -> None:
    assert false_positive_rate(ndv, 1024 * 32) == pytest.approx(rate, rel=0.06)


# the table there: bits of space per insert
@pytest.mark.parametrize(("bits", "rate"), [(6.0, 0.1), (10.5, 0.01), (16.9, 0.001), (26.4, 0.0001), (41, 0.00001)])
def test_bits_of_the_specification(bits: float, rate: float) -> None:
    assert false_positive_rate(1_000_000, int(bits * 1_000_000 / 8)) == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("ndv", [0, 1, 1000, 100_000])
def test_rate_as_measured_is_the_rate_asked_for(ndv: int, fpp: float) -> None:
    made = SplitBlockBloomFilter(bytes_for(ndv, fpp))
    values = np.arange(ndv + BATCH).view(np.uint8)
    made.insert(values[: 8 * ndv], 8)
    measured = made.probe(values[8 * ndv :], 8).mean()
    assert measured <= fpp * 1.1
    assert made.false_positive_rate == pytest.approx(measured, abs=0.1 * fpp)
    if made.num_bytes > 32:     # half of it would have been too small
        assert false_positive_rate(ndv, made.num_bytes // 2) > fpp


@pytest.mark.parametrize(("ndv", "fpp"), [(-1, 0.1), (1, 0.0), (1, 1.0), (1, float("nan"))])
def test_sizing_refuses(ndv: int, fpp: float) -> None:
    with pytest.raises(ValueError, match=r"fpp|ndv"):
        bytes_for(ndv, fpp)


@pytest.mark.parametrize("ndv", [0, 10, 900, 30_000])
def test_folded_is_the_smaller_filter_itself(ndv: int) -> None:
    values = np.arange(ndv).view(np.uint8)
    large = SplitBlockBloomFilter(1 << 20)
    large.insert(values, 8)
    folded = large.folded(0.01)
    small = SplitBlockBloomFilter(folded.num_bytes)
    small.insert(values, 8)
    assert np.array_equal(folded.bitset, small.bitset)
    assert folded.false_positive_rate <= 0.01
    assert bytes_for(ndv, 0.01) / 2 <= folded.num_bytes <= bytes_for(ndv, 0.01) * 2


# ---- what others wrote


@needs_data
def test_the_bitset_of_parquet_testing() -> None:
    """bloom_filter.xxhash.bin (apache/parquet-testing 1a2a751, by parquet-mr): header, then 1024 bytes with four strings."""
    stored = (DATA / "parquet-testing/data/bloom_filter.xxhash.bin").read_bytes()
    header, size = fmt.decode(fmt.BloomFilterHeader, stored)
    words = [b"hello", b"parquet", b"bloom", b"filter"]
    made = SplitBlockBloomFilter(header.numBytes)
    insert_slices(made, reader(list(words)))
    assert made.bitset.tobytes() == stored[size:]
    assert b"".join(bytes(part) for part in serialized_filter(made, ModuleCipher())) == stored
    assert all(SplitBlockBloomFilter.of_bitset(stored[size:]).might_contain(word) for word in words)


@needs_data
@pytest.mark.parametrize("name", ["data_index_bloom_encoding_stats", "data_index_bloom_encoding_with_length"])
def test_files_of_parquet_testing(name: str) -> None:
    """parquet-mr 1.13.0 (without bloom_filter_length) and parquet-rs 49.0.0 (with it): one string column of 14 rows."""
    with fastpq.ParquetFile(DATA / f"parquet-testing/data/{name}.parquet") as file:
        found = file.bloom_filter(0, 0)
        values = file.read()["String"].to_pylist()
    assert found is not None
    assert all(found.might_contain(value.encode()) for value in values)
    assert not found.might_contain(b"not there")

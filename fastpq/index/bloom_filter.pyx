# distutils: language = c
"""Split-block Bloom filters (BloomFilter.md) over XXH64 of the PLAIN encoding: inserting, probing and folding."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader, raise_status

import numpy as np

from fastpq.errors import FormatError

cdef extern from "c/xxh64.h" nogil:
    uint64_t xxh64(const uint8_t* data, size_t size)
    void xxh64_fixed(const uint8_t* values, size_t width, int64_t count, uint64_t* hashes)

cdef extern from "c/split_block.h" nogil:
    void split_block_insert(uint8_t* bits, uint64_t blocks, const uint64_t* hashes, int64_t count)
    void split_block_probe(const uint8_t* bits, uint64_t blocks, const uint64_t* hashes, int64_t count, uint8_t* found)

cdef enum:
    BATCH = 512         # hashes computed at once: 4 KiB, which stay in the first-level cache until used
    BLOCK_BYTES = 32
    WORDS = 8           # words in a block
    WORD_BITS = 32


cdef class SplitBlockBloomFilter:
    """A split-block Bloom filter: a set of values, with false positives but no false negatives.

    Values are inserted and probed in PLAIN encoding, BYTE_ARRAYs without their lengths.

    Args:
        num_bytes: size of the bitset, a multiple of 32; fastpq.index.bloom_size.bytes_for computes the size.

    Raises:
        ValueError: num_bytes is no multiple of 32, or out of range.
    """

    def __init__(self, int64_t num_bytes):
        if num_bytes < BLOCK_BYTES or num_bytes % BLOCK_BYTES or num_bytes >> 36:
            raise ValueError(f"a bitset of {num_bytes} bytes is not one of 1 to 2^31 blocks of {BLOCK_BYTES} bytes")
        self._hold(np.zeros(num_bytes, np.uint8))

    @staticmethod
    def of_bitset(const uint8_t[::1] bitset not None):
        """A read-only filter over a stored bitset, whose memory it shares.

        Args:
            bitset: uint8, contiguous, a positive multiple of 32 bytes.

        Raises:
            FormatError: the bitset's size is no positive multiple of 32.
        """
        cdef SplitBlockBloomFilter made = SplitBlockBloomFilter.__new__(SplitBlockBloomFilter)
        if bitset.shape[0] == 0 or bitset.shape[0] % BLOCK_BYTES or bitset.shape[0] >> 36:
            raise FormatError(f"a bloom filter of {bitset.shape[0]} bytes, which are not blocks of {BLOCK_BYTES}")
        array = np.asarray(bitset)
        array.flags.writeable = False
        made._hold(array)
        return made

    def _hold(self, bitset):
        cdef const uint8_t[::1] view = bitset
        self.bitset = bitset
        self.bits = <uint8_t*>&view[0]
        self.blocks = <uint64_t>view.shape[0] // BLOCK_BYTES

    @property
    def num_bytes(self):
        """Size of the bitset, in bytes."""
        return self.blocks * BLOCK_BYTES

    @property
    def false_positive_rate(self):
        """The probability of a false positive, from the number of set bits in each block."""
        cdef object set_bits = np.bitwise_count(self.bitset.view("<u4")).reshape(-1, WORDS)
        return float((set_bits / WORD_BITS).prod(axis=1).mean())

    def insert(self, values, Py_ssize_t width):
        """Insert values of one width.

        Args:
            values: uint8, the values one after another.
            width: bytes of one value.

        Raises:
            ValueError: the size of values is no multiple of the width, or the filter was read.
        """
        cdef const uint8_t[::1] data = values
        cdef int64_t count = _count(data.shape[0], width)
        self._check_writable()
        if count:
            with nogil:
                self.insert_fixed(&data[0], <size_t>width, count)

    def insert_values(self, SliceReader values not None):
        """Insert values of variable length; skips nulls.

        Args:
            values: a reader of the values.

        Raises:
            FormatError: a value lies outside the reader's memory.
            ValueError: the filter was read.
        """
        cdef Slice slices[BATCH]
        cdef int64_t done = 0, count, status = 0
        self._check_writable()
        with nogil:
            while done < values.count and status >= 0:
                count = min(<int64_t>BATCH, values.count - done)
                status = values.read(done, count, slices)
                if status >= 0:
                    self.insert_slices(slices, count)
                done += count
        raise_status(status)

    def probe(self, values, Py_ssize_t width):
        """Whether each value of one width may have been inserted.

        Args:
            values: uint8, the values one after another.
            width: bytes of one value.

        Returns:
            Shape (number of values,), bool.

        Raises:
            ValueError: the size of values is no multiple of the width.
        """
        cdef const uint8_t[::1] data = values
        cdef int64_t count = _count(data.shape[0], width), done = 0, size
        cdef uint64_t hashes[BATCH]
        cdef uint8_t[::1] found = np.empty(max(count, 1), np.uint8)
        with nogil:
            while done < count:
                size = min(<int64_t>BATCH, count - done)
                xxh64_fixed(&data[done * width], <size_t>width, size, hashes)
                split_block_probe(self.bits, self.blocks, hashes, size, &found[done])
                done += size
        return np.asarray(found)[:count].view(np.bool_)

    def probe_values(self, SliceReader values not None):
        """Whether each value of variable length may have been inserted; False for nulls.

        Args:
            values: a reader of the values.

        Returns:
            Shape (number of values,), bool.

        Raises:
            FormatError: a value lies outside the reader's memory.
        """
        cdef Slice slices[BATCH]
        cdef uint64_t hashes[BATCH]
        cdef uint8_t[::1] found = np.empty(max(values.count, 1), np.uint8)
        cdef int64_t done = 0, count, status = 0, i
        with nogil:
            while done < values.count and status >= 0:
                count = min(<int64_t>BATCH, values.count - done)
                status = values.read(done, count, slices)
                if status >= 0:
                    for i in range(count):
                        hashes[i] = xxh64(slices[i].data, slices[i].size)
                    split_block_probe(self.bits, self.blocks, hashes, count, &found[done])
                    for i in range(count):
                        found[done + i] = found[done + i] and slices[i].data != NULL
                done += count
        raise_status(status)
        return np.asarray(found)[:values.count].view(np.bool_)

    def might_contain(self, bytes value not None):
        """Whether one value may have been inserted.

        Args:
            value: the value's PLAIN encoding.
        """
        cdef uint64_t hash = xxh64(<const uint8_t*><const char*>value, <size_t>len(value))
        cdef uint8_t found
        split_block_probe(self.bits, self.blocks, &hash, 1, &found)
        return found != 0

    def folded(self, double fpp):
        """The smallest filter of the same values with a false positive rate of at most fpp, made by halving this filter.

        The block of a hash is hash * blocks / 2^32, rounded down. Two neighbouring blocks, or'ed, are therefore one block of
        a filter of half the size.

        Args:
            fpp: highest false positive rate, from 0 to 1.
        """
        cdef SplitBlockBloomFilter half, whole = self
        while whole.blocks % 2 == 0:
            half = SplitBlockBloomFilter(<int64_t>whole.num_bytes // 2)
            pairs = whole.bitset.reshape(-1, 2, BLOCK_BYTES)
            np.bitwise_or(pairs[:, 0], pairs[:, 1], out=half.bitset.reshape(-1, BLOCK_BYTES))
            if half.false_positive_rate > fpp:
                break
            whole = half
        return whole

    def __repr__(self):
        return f"<SplitBlockBloomFilter of {self.num_bytes} bytes>"

    cdef void insert_fixed(self, const uint8_t* values, size_t width, int64_t count) noexcept nogil:
        cdef uint64_t hashes[BATCH]
        cdef int64_t size
        while count > 0:
            size = min(<int64_t>BATCH, count)
            xxh64_fixed(values, width, size, hashes)
            split_block_insert(self.bits, self.blocks, hashes, size)
            values += <size_t>size * width
            count -= size

    cdef void insert_slices(self, const Slice* values, int64_t count) noexcept nogil:
        cdef uint64_t hashes[BATCH]
        cdef int64_t filled = 0, i
        for i in range(count):
            if values[i].data == NULL:
                continue
            hashes[filled] = xxh64(values[i].data, values[i].size)
            filled += 1
            if filled == BATCH:
                split_block_insert(self.bits, self.blocks, hashes, filled)
                filled = 0
        split_block_insert(self.bits, self.blocks, hashes, filled)

    cdef int _check_writable(self) except -1:
        if not self.bitset.flags.writeable:
            raise ValueError("a bloom filter that was read cannot be written to")
        return 0


cdef int64_t _count(int64_t size, int64_t width) except -1:
    if width < 1 or size % width:
        raise ValueError(f"{size} bytes are not values of {width} bytes")
    return size // width


def hash_values(values, Py_ssize_t width):
    """XXH64 (seed 0) of values of one width: uint64.

    Args, raises: as ``SplitBlockBloomFilter.insert``.
    """
    cdef const uint8_t[::1] data = values
    cdef int64_t count = _count(data.shape[0], width)
    cdef uint64_t[::1] hashes = np.empty(max(count, 1), np.uint64)
    if count:
        with nogil:
            xxh64_fixed(&data[0], <size_t>width, count, &hashes[0])
    return np.asarray(hashes)[:count]


def hash_bytes(bytes value not None):
    """XXH64 (seed 0) of one value of any length."""
    return xxh64(<const uint8_t*><const char*>value, <size_t>len(value))

# distutils: language = c
"""Split-block Bloom filters (BloomFilter.md): values are inserted and probed by the XXH64 of their PLAIN encoding."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastpq.encodings.views cimport Slice

import numpy as np

from fastpq.errors import FormatError

cdef extern from "c/xxh64.h" nogil:
    uint64_t xxh64(const uint8_t* data, size_t size)
    void xxh64_fixed(const uint8_t* values, size_t width, int64_t count, uint64_t* hashes)

cdef extern from "c/split_block.h" nogil:
    void split_block_insert(uint8_t* bits, uint64_t blocks, const uint64_t* hashes, int64_t count)
    void split_block_probe(const uint8_t* bits, uint64_t blocks, const uint64_t* hashes, int64_t count, uint8_t* found)

cdef enum:
    BATCH = 512         # hashes computed at once. Their 4 KiB stay in the first-level cache until they are used.
    BLOCK_BYTES = 32
    WORDS = 8           # words in a block
    WORD_BITS = 32


cdef class SplitBlockBloomFilter:
    """A split-block Bloom filter: a value set that has false positives but no false negatives.

    Values are inserted and probed in PLAIN encoding. BYTE_ARRAY values are without their lengths.

    Args:
        num_bytes: size of the bitset, a multiple of 32. fastpq.index.bloom_size.bytes_for computes it.

    Raises:
        ValueError: num_bytes is not a multiple of 32, or is out of range.
    """

    def __init__(self, int64_t num_bytes):
        if num_bytes < BLOCK_BYTES or num_bytes % BLOCK_BYTES or num_bytes >> 36:
            raise ValueError(f"a bitset of {num_bytes} bytes is not one of 1 to 2^31 blocks of {BLOCK_BYTES} bytes")
        self._hold(np.zeros(num_bytes, np.uint8))

    @staticmethod
    def of_bitset(const uint8_t[::1] bitset not None):
        """Return a read-only filter over a stored bitset, whose memory it shares.

        Args:
            bitset: uint8, contiguous, a positive multiple of 32 bytes.

        Raises:
            FormatError: the bitset's size is not a positive multiple of 32.
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
        """The bitset's size in bytes."""
        return self.blocks * BLOCK_BYTES

    @property
    def false_positive_rate(self):
        """The probability that a value which was not inserted is found, computed from how many bits are set in each block."""
        cdef object set_bits = np.bitwise_count(self.bitset.view("<u4")).reshape(-1, WORDS)
        return float((set_bits / WORD_BITS).prod(axis=1).mean())

    def insert(self, values, Py_ssize_t width):
        """Insert fixed-width values.

        Args:
            values: uint8, the values one after another.
            width: bytes per value.

        Raises:
            ValueError: the bytes in values are not a multiple of the width, or the filter was read from a file.
        """
        cdef const uint8_t[::1] data = values
        cdef int64_t count = _count(data.shape[0], width)
        self._check_writable()
        if count:
            with nogil:
                self.insert_fixed(&data[0], <size_t>width, count)

    def probe(self, values, Py_ssize_t width):
        """Return whether each fixed-width value may have been inserted.

        Args:
            values: uint8, the values one after another.
            width: bytes per value.

        Returns:
            Shape (number of values,), bool.

        Raises:
            ValueError: the bytes in values are not a multiple of the width.
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

    def probe_hashes(self, const uint64_t[::1] hashes not None):
        """Return whether each value may have been inserted.

        Args:
            hashes: XXH64 of the values in PLAIN encoding, as hash_values and hash_each return them.

        Returns:
            Shape (number of values,), bool.
        """
        cdef int64_t count = hashes.shape[0]
        cdef uint8_t[::1] found = np.empty(count, np.uint8)
        if count:
            with nogil:
                split_block_probe(self.bits, self.blocks, &hashes[0], count, &found[0])
        return np.asarray(found).view(np.bool_)

    def might_contain(self, bytes value not None):
        """Return whether one value may have been inserted.

        Args:
            value: the value's PLAIN encoding.
        """
        cdef uint64_t hash = xxh64(<const uint8_t*><const char*>value, <size_t>len(value))
        cdef uint8_t found
        split_block_probe(self.bits, self.blocks, &hash, 1, &found)
        return found != 0

    def folded(self, double fpp):
        """Return the smallest filter with the same values whose false positive rate is at most fpp.

        The filter is halved as long as the rate allows. A hash belongs to block hash * blocks / 2^32, rounded down. Two
        neighbouring blocks, or'ed, are therefore one block in a filter that has half the size.

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
    """Return the XXH64 (seed 0) of fixed-width values, as uint64.

    Args, raises: as ``SplitBlockBloomFilter.insert``.
    """
    cdef const uint8_t[::1] data = values
    cdef int64_t count = _count(data.shape[0], width)
    cdef uint64_t[::1] hashes = np.empty(max(count, 1), np.uint64)
    if count:
        with nogil:
            xxh64_fixed(&data[0], <size_t>width, count, &hashes[0])
    return np.asarray(hashes)[:count]


def hash_each(values):
    """Return the XXH64 (seed 0) of values with any length, as uint64.

    Args:
        values: a sequence of bytes.
    """
    cdef Py_ssize_t count = len(values), i
    cdef uint64_t[::1] hashes = np.empty(count, np.uint64)
    cdef bytes value
    for i in range(count):
        value = values[i]
        hashes[i] = xxh64(<const uint8_t*><const char*>value, <size_t>len(value))
    return np.asarray(hashes)

"""Sizes and false positive rates of bloom filters (BloomFilter.md, "Sizing an SBBF"): pure arithmetic."""

from __future__ import annotations

import math

import numpy as np

BLOCK_BYTES = 32
WORDS, WORD_BITS = 8, 32        # words in a block, bits in a word
SMALLEST = BLOCK_BYTES
LARGEST = 128 << 20             # bytes; parquet-java and parquet-cpp read no larger filter


def false_positive_rate(ndv: float, num_bytes: int) -> float:
    """The expected false positive rate of a filter of num_bytes with ndv distinct values.

    The number of values in a block has a Poisson distribution. In a block of k values, a bit is set with probability
    1 - (31/32)^k.
    """
    mean = ndv * BLOCK_BYTES / num_bytes
    spread = 12 * math.sqrt(mean) + 24
    counts = np.arange(max(0, int(mean - spread)), int(mean + spread) + 1)
    logarithms = np.array([math.lgamma(count + 1) for count in counts])
    weights = np.exp(counts * math.log(mean) - mean - logarithms) if mean > 0 else (counts == 0)
    found = (1 - (1 - 1 / WORD_BITS) ** counts) ** WORDS
    return float((weights * found).sum())


def bytes_for(ndv: int, fpp: float) -> int:
    """The size in bytes of the smallest filter of ndv distinct values with a false positive rate of at most fpp.

    Sizes are powers of two, as parquet-cpp demands, and at most 128 MiB. A filter of 128 MiB may have a higher rate.

    Raises:
        ValueError: fpp is no probability, or ndv is negative.
    """
    if not 0.0 < fpp < 1.0:
        raise ValueError(f"fpp must be between 0 and 1, not {fpp}")
    if ndv < 0:
        raise ValueError(f"ndv must not be negative, not {ndv}")
    size = SMALLEST
    # Every kind of filter needs at least log2(1 / fpp) bits a value: the search begins there.
    while size < LARGEST and size * 8 < ndv * -math.log2(fpp):
        size *= 2
    while size < LARGEST and false_positive_rate(ndv, size) > fpp:
        size *= 2
    return size

"""Bloom filter sizes and false positive rates (BloomFilter.md, "Sizing an SBBF"). Pure arithmetic."""

from __future__ import annotations

import math

import numpy as np

BLOCK_BYTES = 32
WORDS, WORD_BITS = 8, 32        # words in a block, bits in a word
SMALLEST = BLOCK_BYTES
LARGEST = 128 << 20             # bytes. parquet-java and parquet-cpp do not read a larger filter.


def false_positive_rate(ndv: float, num_bytes: int) -> float:
    """Return the expected false positive rate for a filter that has num_bytes bytes and ndv distinct values.

    The number of values in a block has a Poisson distribution. In a block with k values, a bit is set with probability
    1 - (31/32)^k.
    """
    mean = ndv * BLOCK_BYTES / num_bytes
    margin = 12 * math.sqrt(mean) + 24
    counts = np.arange(max(0, int(mean - margin)), int(mean + margin) + 1)
    logarithms = np.array([math.lgamma(count + 1) for count in counts])
    weights = np.exp(counts * math.log(mean) - mean - logarithms) if mean > 0 else (counts == 0)
    hit_rates = (1 - (1 - 1 / WORD_BITS) ** counts) ** WORDS
    return float((weights * hit_rates).sum())


def bytes_for(ndv: int, fpp: float) -> int:
    """Return the bytes that a filter for ndv distinct values needs to have a false positive rate of at most fpp.

    Sizes are powers of two, as parquet-cpp demands, and at most 128 MiB. A filter with 128 MiB may have a higher rate.

    Raises:
        ValueError: fpp is not between 0 and 1, or ndv is negative.
    """
    if not 0.0 < fpp < 1.0:
        raise ValueError(f"fpp must be between 0 and 1, not {fpp}")
    if ndv < 0:
        raise ValueError(f"ndv must not be negative, not {ndv}")
    size = SMALLEST
    # Every kind of filter needs at least log2(1 / fpp) bits per value. The search begins there.
    while size < LARGEST and size * 8 < ndv * -math.log2(fpp):
        size *= 2
    while size < LARGEST and false_positive_rate(ndv, size) > fpp:
        size *= 2
    return size

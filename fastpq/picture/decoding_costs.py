"""What it takes to decode a column chunk: estimated from a table, or measured on this machine."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.errors import ParquetError
from fastpq.picture.chunk_facts import NO_KEY, ChunkFacts, EncodingClass
from fastpq.schema.parquet_schema import ColumnDescriptor

Floats: TypeAlias = NDArray[np.float64]

# Nanoseconds for each value and for each decoded byte, by encoding. The figures come from reads of four million INT64, DOUBLE and
# text values on one thread of a two-core server. They order the encodings, and do not foretell the time of a read.
NS_A_VALUE = {
    EncodingClass.DICTIONARY: 2.0,
    EncodingClass.PLAIN: 0.2,
    EncodingClass.DELTA: 0.8,
    EncodingClass.BYTE_STREAM_SPLIT: 2.0,
    EncodingClass.OTHER: 0.5,
    EncodingClass.GIVEN_UP: 2.0,
    EncodingClass.UNREADABLE: 0.0,
}
NS_A_DECODED_BYTE = 0.5
# Nanoseconds for each value of variable length, in addition.
NS_A_TEXT = 8.0
NS_A_NESTED_VALUE = 5.0
# Nanoseconds for each decoded byte, by codec, in addition.
NS_BY_CODEC = {
    fmt.CompressionCodec.UNCOMPRESSED: 0.0,
    fmt.CompressionCodec.SNAPPY: 0.15,
    fmt.CompressionCodec.LZ4: 0.2,
    fmt.CompressionCodec.LZ4_RAW: 0.2,
    fmt.CompressionCodec.ZSTD: 0.5,
    fmt.CompressionCodec.GZIP: 1.4,
    fmt.CompressionCodec.LZO: 1.0,
    fmt.CompressionCodec.BROTLI: 3.9,
}
NS_A_STORED_ENCRYPTED_BYTE = 0.3
NS_A_CHUNK = 20_000

# Largest number of chunks that are measured. Chunks between them are estimated from the measured ones of their column.
MOST_MEASURED = 500

# Decodes the chunk of one row group and one column.
Decode: TypeAlias = Callable[[int, ColumnDescriptor], object]


def estimated_costs(facts: ChunkFacts, columns: list[ColumnDescriptor]) -> Floats:
    """Return the estimated seconds to decode each chunk, shape (row groups, columns).

    Args:
        facts: the chunks.
        columns: the leaf columns.
    """
    by_value = np.array([NS_A_VALUE[each] for each in EncodingClass])
    by_column = np.array([
        NS_A_TEXT * (column.element.type == fmt.Type.BYTE_ARRAY) + NS_A_NESTED_VALUE * (column.max_repetition_level > 0)
        for column in columns
    ])
    by_codec = np.array([NS_BY_CODEC.get(each, 1.0) for each in fmt.CompressionCodec])
    known_codecs = np.isin(facts.codecs, [int(each) for each in fmt.CompressionCodec])
    codec_costs = np.where(known_codecs, by_codec[np.where(known_codecs, facts.codecs, 0)], 1.0)
    nanoseconds = (
        facts.values * (by_value[facts.encodings] + by_column)
        + facts.decoded_sizes * (NS_A_DECODED_BYTE + codec_costs)
        + facts.stored_sizes * (facts.keys != NO_KEY) * NS_A_STORED_ENCRYPTED_BYTE
        + NS_A_CHUNK * (facts.stored_sizes > 0)
    )
    return np.asarray(nanoseconds * 1e-9, np.float64)


def measured_costs(facts: ChunkFacts, columns: list[ColumnDescriptor], decode: Decode) -> tuple[Floats, int]:
    """Measure how long it takes to decode chunks. If there are many, some row groups stand for all.

    Args:
        facts: the chunks.
        columns: the leaf columns.
        decode: decodes one chunk.

    Returns:
        Seconds for each chunk, shape (row groups, columns), and how many chunks were measured. An unreadable chunk has 0.
    """
    num_groups, num_columns = facts.stored_sizes.shape
    costs = np.zeros((num_groups, num_columns))
    estimates = estimated_costs(facts, columns)
    count = max(1, min(num_groups, MOST_MEASURED // max(num_columns, 1)))
    sampled_groups = np.unique(np.linspace(0, num_groups - 1, count).astype(np.int64)) if num_groups else np.empty(0, np.int64)
    num_measured = 0
    for number, column in enumerate(columns):
        seconds = np.full(len(sampled_groups), np.nan)
        for place, group in enumerate(sampled_groups.tolist()):
            if facts.is_readable[group, number] and num_measured < 2 * MOST_MEASURED:
                seconds[place] = _seconds(decode, group, column)
                num_measured += 1
        is_known = ~np.isnan(seconds)
        estimated_sum = estimates[sampled_groups[is_known], number].sum()
        scale = seconds[is_known].sum() / estimated_sum if estimated_sum else 0.0
        costs[:, number] = estimates[:, number] * scale
        costs[sampled_groups[is_known], number] = seconds[is_known]
    return costs, num_measured


def _seconds(decode: Decode, group: int, column: ColumnDescriptor) -> float:
    """Return the shorter of two times, because the first read may wait for the disk. NaN if the chunk cannot be read."""
    times = []
    for _ in range(2):
        before = perf_counter()
        try:
            decode(group, column)
        except ParquetError:
            return float("nan")
        times.append(perf_counter() - before)
    return min(times)

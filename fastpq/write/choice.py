"""The choice of a column's encoding from the measured sizes of a sample; pure arithmetic (sampling.py measures)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastpq.format import Encoding

# From the simplest to read on: an encoding wins unless a later one is smaller by more than NEGLIGIBLE.
_BY_SIMPLICITY = (
    Encoding.PLAIN,
    Encoding.RLE,
    Encoding.RLE_DICTIONARY,
    Encoding.BYTE_STREAM_SPLIT,
    Encoding.DELTA_BINARY_PACKED,
    Encoding.DELTA_LENGTH_BYTE_ARRAY,
    Encoding.DELTA_BYTE_ARRAY,
)
NEGLIGIBLE = 0.05       # share of the stored bytes


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """The encoding of a column, and the reason.

    Attributes:
        encoding: by the specification's name.
        reason: for a person to read.
    """

    encoding: str
    reason: str


@dataclass(frozen=True, slots=True)
class DictionarySample:
    """Values and sizes of a sample with a dictionary.

    Attributes:
        distinct: number of different values.
        once, twice: number of different values with one and with two occurrences.
        plain_size: uncompressed bytes of the dictionary page.
        stored_size: compressed bytes of the dictionary page.
        indices_size: compressed bytes of the indices.
    """

    distinct: int
    once: int
    twice: int
    plain_size: int
    stored_size: int
    indices_size: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a column, with its size in each encoding.

    Attributes:
        values: number of values in the sample, without nulls.
        expected: number of values in a column chunk, without nulls.
        sizes: stored bytes of the sample in each encoding but the dictionary's, compressed with the column's codec.
        dictionary: sizes with a dictionary; None for a column without one.
        dictionary_page_size: most uncompressed bytes of a dictionary page.
    """

    values: int
    expected: int
    sizes: Mapping[Encoding, int]
    dictionary: DictionarySample | None
    dictionary_page_size: int


def choose_encoding(sample: Sample) -> EncodingChoice:
    """The encoding with the fewest bytes, or a simpler one with hardly more."""
    if not sample.values:
        return EncodingChoice(Encoding.PLAIN.name, "there are no values to choose by")
    sizes = {encoding: size / sample.values for encoding, size in sample.sizes.items()}
    if sample.dictionary is not None:
        size = dictionary_size(sample, sample.dictionary)
        if size is not None:
            sizes[Encoding.RLE_DICTIONARY] = size
    acceptable = min(sizes.values()) / (1 - NEGLIGIBLE)
    chosen = next(encoding for encoding in _BY_SIMPLICITY if encoding in sizes and sizes[encoding] <= acceptable)
    ranking = ", ".join(f"{encoding.name} {size:.2f}" for encoding, size in sorted(sizes.items(), key=lambda item: item[1]))
    return EncodingChoice(chosen.name, f"bytes a value, in a sample of {sample.values}: {ranking}")


def dictionary_size(sample: Sample, found: DictionarySample) -> float | None:
    """Expected bytes per value of a dictionary-encoded chunk, dictionary included; None for a dictionary over its bound.

    The number of different values in the chunk is an estimate from the values with one or two occurrences in the sample
    (Chao 1984).
    """
    unseen = found.once * (found.once - 1) / (2 * (found.twice + 1)) if sample.expected > sample.values else 0
    distinct = min(found.distinct + unseen, found.distinct + max(0, sample.expected - sample.values))
    growth = distinct / max(found.distinct, 1)
    if found.plain_size * growth > sample.dictionary_page_size:
        return None
    wider = index_width(distinct) / max(index_width(found.distinct), 1)
    return found.indices_size / sample.values * wider + found.stored_size * growth / max(sample.expected, 1)


def index_width(distinct: float) -> int:
    """Bits of an index into a dictionary of ``distinct`` values."""
    return max(1, int(distinct) - 1).bit_length()

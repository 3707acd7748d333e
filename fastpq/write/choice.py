"""The choice of a column's encoding from sample sizes. This is arithmetic, and sampling.py measures the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastpq.encodings.registry import BY_SIMPLICITY
from fastpq.format import Encoding

# An encoding wins unless one that is later in BY_SIMPLICITY is smaller by more than this share of its bytes.
NEGLIGIBLE = 0.02
# A higher codec level must save this share of the bytes.
LEAST_OF_LEVEL = 0.015


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """A column's encoding, and the reason for it.

    Attributes:
        encoding: name in the specification.
        reason: a text for people.
        level: codec level that was chosen with the encoding. None leaves the codec as it is.
    """

    encoding: str
    reason: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class DictionarySample:
    """Counts and sizes for a sample that is encoded with a dictionary.

    Attributes:
        distinct: how many different values there are.
        once, twice: how many different values that occur once, and twice.
        plain_size: uncompressed dictionary page bytes.
        stored_size: compressed dictionary page bytes.
        indices_size: compressed bytes in the indices.
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
        values: how many values are in the sample, without nulls.
        chunk_values: how many values are in a column chunk, without nulls.
        sizes: stored bytes that the sample takes in each encoding except the dictionary encoding, compressed with the column's
            codec.
        dictionary: counts and sizes with a dictionary. None if the column has no dictionary.
        dictionary_page_size: largest uncompressed dictionary page, in bytes.
    """

    values: int
    chunk_values: int
    sizes: Mapping[Encoding, int]
    dictionary: DictionarySample | None
    dictionary_page_size: int


def choose_encoding(sample: Sample) -> EncodingChoice:
    """Choose the encoding with the fewest bytes, or a simpler one that has only a few more (``NEGLIGIBLE``)."""
    if not sample.values:
        return EncodingChoice(Encoding.PLAIN.name, "there are no values to choose by")
    sizes = {encoding: size / sample.values for encoding, size in sample.sizes.items()}
    if sample.dictionary is not None:
        size = dictionary_size(sample, sample.dictionary)
        if size is not None:
            sizes[Encoding.RLE_DICTIONARY] = size
    acceptable = min(sizes.values()) / (1 - NEGLIGIBLE)
    best = next(encoding for encoding in BY_SIMPLICITY if encoding in sizes and sizes[encoding] <= acceptable)
    ranking = ", ".join(f"{encoding.name} {size:.2f}" for encoding, size in sorted(sizes.items(), key=lambda item: item[1]))
    return EncodingChoice(best.name, f"bytes per value, in a sample of {sample.values}: {ranking}")


def dictionary_size(sample: Sample, dictionary: DictionarySample) -> float | None:
    """Return the expected bytes per value in a dictionary-encoded chunk, including the dictionary; None if it is too large.

    The number of different values in the chunk is estimated from the values that occur once or twice in the sample (Chao 1984).
    """
    more = dictionary.once * (dictionary.once - 1) / (2 * (dictionary.twice + 1)) if sample.chunk_values > sample.values else 0
    distinct = min(dictionary.distinct + more, dictionary.distinct + max(0, sample.chunk_values - sample.values))
    growth = distinct / max(dictionary.distinct, 1)
    if dictionary.plain_size * growth > sample.dictionary_page_size:
        return None
    wider = index_width(distinct) / max(index_width(dictionary.distinct), 1)
    return dictionary.indices_size / sample.values * wider + dictionary.stored_size * growth / max(sample.chunk_values, 1)


def index_width(distinct: float) -> int:
    """Return the bits that an index needs in a dictionary with ``distinct`` values."""
    return max(1, int(distinct) - 1).bit_length()


def choose_level(sizes: Mapping[int, int]) -> int:
    """Choose a codec level: a higher one only if it saves more than ``LEAST_OF_LEVEL``.

    Args:
        sizes: stored bytes that a sample takes at each level. At least one level.
    """
    level, *higher = sorted(sizes)
    for other in higher:
        if sizes[other] < sizes[level] * (1 - LEAST_OF_LEVEL):
            level = other
    return level
